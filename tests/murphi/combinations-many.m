-- verdict: verified
-- states: 4
-- deadlock: off
--
-- So many combinations of values that each state takes long: this is told before the search begins.
-- A guard that asks for the first names alone leaves most of them out.
var n: 0..3;
startstate begin n := 0; end;
ruleset i: 0..1; j: 0..5000000 do
  rule n < 3 & i = n + 9 ==> begin n := 0; end;
end;
rule n < 3 ==> begin n := n + 1; end;

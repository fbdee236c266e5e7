-- verdict: verified
-- states: 4
-- deadlock: off
--
-- The ruleset has so many parameter values that expanding a state is slow: a warning precedes the search. Its guard
-- The guard fails for most values of `i` before `j` matters, so most combinations are never evaluated.
var n: 0..3;
startstate begin n := 0; end;
ruleset i: 0..1; j: 0..5000000 do
  rule n < 3 & i = n + 9 ==> begin n := 0; end;
end;
rule n < 3 ==> begin n := n + 1; end;

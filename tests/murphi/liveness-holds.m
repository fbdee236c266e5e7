-- verdict: verified
-- states: 4
--
-- Every value of n can be reached again from every state.
var n: 0..3;
startstate begin n := 0; end;
rule "next" begin n := (n + 1) % 4; end;
ruleset i: 0..3 do
  liveness "each again" n = i;
end;

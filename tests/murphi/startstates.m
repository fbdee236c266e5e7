-- verdict: verified
-- states: 6
-- rumur: refuses
--
-- Start states in a ruleset with a step; one of them equals the start state outside the ruleset.
var n: 0..9; b: boolean;
ruleset i := 0 to 6 by 3 do
  startstate "from" begin n := i; b := true; end;
end;
startstate begin n := 3; b := true; end;
rule begin b := !b; end;

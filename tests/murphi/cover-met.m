-- verdict: verified
-- states: 4
--
-- Both covers are reached: one is a property of states, the other a statement.
var n: 0..3;
startstate begin n := 0; end;
rule "next" begin n := (n + 1) % 4; cover "round" n = 0; end;
cover "three" n = 3;

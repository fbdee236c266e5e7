-- verdict: verified
-- states: 8
--
-- The smallest model: a counter that wraps around.
var n: 0..7;
startstate n := 0; end;
rule "next" begin n := (n + 1) % 8; end;
invariant n >= 0 & n <= 7;

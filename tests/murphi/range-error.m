-- verdict: violated
--
-- A number leaves its range.
var n: 0..3;
startstate begin n := 0; end;
rule "up" begin n := n + 1; end;

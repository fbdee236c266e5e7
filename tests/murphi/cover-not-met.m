-- verdict: violated
--
-- No reachable state has n = 5, so the cover fails.
var n: 0..7;
startstate begin n := 0; end;
rule "next" begin n := (n + 2) % 8; end;
cover "five" n = 5;

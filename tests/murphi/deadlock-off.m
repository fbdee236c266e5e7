-- verdict: verified
-- states: 2
-- deadlock: off
--
-- No rule leaves the second state, and nobody asks.
var n: 0..1;
startstate begin n := 0; end;
rule "up" n = 0 ==> begin n := 1; end;

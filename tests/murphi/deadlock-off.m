-- verdict: verified
-- states: 2
-- deadlock: off
--
-- No rule is enabled in the second state, but deadlocks are not checked.
var n: 0..1;
startstate begin n := 0; end;
rule "up" n = 0 ==> begin n := 1; end;

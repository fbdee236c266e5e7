-- verdict: verified
-- states: 2
-- deadlock: stuck
--
-- The same where a rule that may fire is enough.
var n: 0..1;
startstate begin n := 0; end;
rule "up" n = 0 ==> begin n := 1; end;
rule "stay" n = 1 ==> begin n := 1; end;

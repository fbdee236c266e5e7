-- verdict: verified
-- states: 2
-- deadlock: stuck
--
-- deadlock-stuttering.m where an enabled rule is enough, even if its firing changes nothing.
var n: 0..1;
startstate begin n := 0; end;
rule "up" n = 0 ==> begin n := 1; end;
rule "stay" n = 1 ==> begin n := 1; end;

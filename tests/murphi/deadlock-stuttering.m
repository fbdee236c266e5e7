-- verdict: violated
--
-- Only a rule that leaves the state as it is remains enabled: such stuttering counts as a deadlock.
var n: 0..1;
startstate begin n := 0; end;
rule "up" n = 0 ==> begin n := 1; end;
rule "stay" n = 1 ==> begin n := 1; end;

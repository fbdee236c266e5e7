-- verdict: violated
--
-- A rule that changes nothing is no progress.
var n: 0..1;
startstate begin n := 0; end;
rule "up" n = 0 ==> begin n := 1; end;
rule "stay" n = 1 ==> begin n := 1; end;

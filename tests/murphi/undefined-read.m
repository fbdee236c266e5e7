-- verdict: violated
--
-- A rule reads a variable that was never assigned.
var n: 0..3; done: boolean;
startstate begin done := false; end;
rule "copy" !done ==> begin n := n + 1; done := true; end;

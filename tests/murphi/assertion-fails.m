-- verdict: violated
--
-- An assertion with a message fails in a procedure.
var n: 0..2;
procedure expect_small(x: 0..2); begin assert x < 2 "small"; end;
startstate begin n := 0; end;
rule "up" n < 2 ==> begin n := n + 1; expect_small(n); end;

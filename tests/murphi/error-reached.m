-- verdict: violated
--
-- An error statement is reached after two steps.
var n: 0..2;
startstate begin n := 0; end;
rule "up" n < 2 ==> begin n := n + 1; end;
rule "bad" n = 2 ==> begin error "two is too much"; end;

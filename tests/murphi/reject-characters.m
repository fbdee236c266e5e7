-- verdict: rejected
--
-- Characters outside the language, and a string and a comment without end.
var n: 0..3; _m: 0..1;
startstate "begin begin n := 0; end;
rule n := n # 1; $ end;
/* for ever

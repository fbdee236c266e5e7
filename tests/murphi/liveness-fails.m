-- verdict: violated
--
-- No path leads from the states 2 and 3 (the trap) back to n = 0.
var n: 0..3;
startstate begin n := 0; end;
rule "round" n < 2 ==> begin n := 1 - n; end;
rule "trap" n = 1 ==> begin n := 2; end;
rule "in the trap" n >= 2 ==> begin n := 5 - n; end;
liveness "zero" n = 0;

-- verdict: violated
-- deadlock: off
--
-- Arithmetic has 64 bits. The last sum overflows: an error, not a negative number.
-- The sums and products before it would overflow 32 bits and must be accepted.
var n: -1..6000000000000000000;
startstate begin n := 1000000000; end;
rule "thousandfold" n < 1000000000000000000 ==> begin n := n * 1000; end;
rule "sixfold" n = 1000000000000000000 ==> begin n := n * 6; end;
rule "double" n + n > n ==> begin n := 0; end;

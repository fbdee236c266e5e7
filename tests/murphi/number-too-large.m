-- verdict: violated
-- dialect: cmurphi
-- rumur: differs it counts in more bits where the ranges of a model are this large
--
-- CMurphi has 32-bit arithmetic. The second sum overflows: an error, not a negative number.
var n: 0..2000000000;
startstate begin n := 1000000000; end;
rule "double" n + n > n ==> begin n := 2000000000; end;

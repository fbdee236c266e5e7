-- verdict: violated
-- dialect: cmurphi
-- rumur: differs it counts in more bits where the ranges of a model are this large
--
-- CMurphi counts in 32 bits. The second sum leaves them, which is an error: it does not become a negative number.
var n: 0..2000000000;
startstate begin n := 1000000000; end;
rule "double" n + n > n ==> begin n := 2000000000; end;

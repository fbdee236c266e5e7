-- verdict: violated
-- deadlock: off
--
-- Numbers have 64 bits. The last sum leaves them, which is an error: it does not become a negative number.
-- Those before were errors while numbers had 32 bits.
var n: -1..6000000000000000000;
startstate begin n := 1000000000; end;
rule "thousandfold" n < 1000000000000000000 ==> begin n := n * 1000; end;
rule "sixfold" n = 1000000000000000000 ==> begin n := n * 6; end;
rule "double" n + n > n ==> begin n := 0; end;

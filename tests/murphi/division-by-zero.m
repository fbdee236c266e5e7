-- verdict: violated
--
-- After two firings of "less" the divisor of "down" is zero.
var n: 0..2;
startstate begin n := 2; end;
rule "down" begin n := 2 / n - 1 + n % 2; end;
rule "less" n > 0 ==> begin n := n - 1; end;

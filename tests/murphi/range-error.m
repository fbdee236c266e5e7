-- verdict: violated
--
-- An assigned number is outside the range of its variable.
var n: 0..3;
startstate begin n := 0; end;
rule "up" begin n := n + 1; end;

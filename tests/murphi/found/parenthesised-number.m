-- verdict: verified
-- states: 3
--
-- A number may have parentheses around it, wherever it stands.
type small: (0)..((2));
var n: small;
startstate begin n := (0); end;
rule "next" begin n := (n + (1)) % (3); end;
invariant n <= (2) & n > (-(1));

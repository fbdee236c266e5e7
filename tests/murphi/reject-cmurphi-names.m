-- verdict: rejected
-- dialect: cmurphi
--
-- Accepted by Rumur only: several names in one `const` or `type`, and parameters without a `;` between them.
const a, b: 1;
type t, u: 0..3;
var n: t;
procedure p(x: t y: u); begin n := x; end;
startstate begin n := a; end;
rule begin p(n, b); end;

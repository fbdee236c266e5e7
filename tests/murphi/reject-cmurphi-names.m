-- verdict: rejected
-- dialect: cmurphi
--
-- What only Rumur takes: several names of constants and types at once, and parameters without a `;` between them.
const a, b: 1;
type t, u: 0..3;
var n: t;
procedure p(x: t y: u); begin n := x; end;
startstate begin n := a; end;
rule begin p(n, b); end;

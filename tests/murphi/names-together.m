-- verdict: verified
-- states: 5
--
-- Several names before one colon, in `const` and `type` as well as in `var`. Only Rumur accepts the first two.
const least, first: 1;
type number, other: 0..3;
var n, m: number; o: other;
startstate begin n := least; m := first; o := n - m; end;
rule begin n := (n + 1) % 4; m := n; o := n; end;

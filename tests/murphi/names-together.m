-- verdict: verified
-- states: 5
--
-- Several names before one colon, in `const` and `type` too. Only Rumur takes these.
const least, first: 1;
type number, other: 0..3;
var n, m: number; o: other;
startstate begin n := least; m := first; o := n - m; end;
rule begin n := (n + 1) % 4; m := n; o := n; end;

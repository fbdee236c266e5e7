-- verdict: rejected
--
-- Names that are declared twice in one scope; those of inner scopes may be the same.
type colour: enum { red, green, red };
var n: 0..1; n: boolean;
const green: 3;
type r: record f: boolean; f: 0..1; end;
startstate var n: boolean; begin n := true; end;

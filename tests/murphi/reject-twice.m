-- verdict: rejected
--
-- Duplicate names in one scope. A name in an inner scope may repeat one of an outer scope.
type colour: enum { red, green, red };
var n: 0..1; n: boolean;
const green: 3;
type r: record f: boolean; f: 0..1; end;
startstate var n: boolean; begin n := true; end;

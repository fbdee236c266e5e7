-- verdict: rejected
--
-- Symmetry needs a table of all values of a scalarset. One of this size would exhaust memory, so the type is rejected.
type t: scalarset(999999999);
var n: t;
startstate begin undefine n; end;
ruleset i: t do rule begin n := i; end; end;

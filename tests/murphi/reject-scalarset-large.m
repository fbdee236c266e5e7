-- verdict: rejected
--
-- A table of its values, for symmetry, would have been as large: memory ran out, and the check was aborted.
type t: scalarset(999999999);
var n: t;
startstate begin undefine n; end;
ruleset i: t do rule begin n := i; end; end;

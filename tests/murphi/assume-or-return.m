-- verdict: violated
--
-- An `assume` for one value may come before or after a `return` for another one, so the order of the loop matters.
type S: scalarset(2); T: scalarset(2);
var p, r: array [S] of T; q: T; x: S; done: boolean;
function found(): boolean;
begin
  for n: S do assume p[n] = q; if r[n] = q then return true; end; end;
  return false;
end;
ruleset a: S; t: T; u: T do startstate begin
  q := t; x := a; done := false;
  for n: S do p[n] := u; r[n] := t; end;
  p[a] := t;
end; end;
rule "go" !done ==> begin if found() then done := true; end; end;
invariant "never" !done | forall n: S do p[n] = q end;

-- verdict: violated
-- rumur: refuses
--
-- A quantifier over a union evaluates all values, since an error for one must not depend on the order of the others.
type S: scalarset(2); U: union { S, enum { home } };
var k: array [U] of 0..3; t: array [0..2] of boolean; done: boolean;
ruleset o: S do startstate begin
  for i := 0 to 2 do t[i] := false; end;
  for n: S do if n = o then k[n] := 0; else k[n] := 3; end; end; k[home] := 1; done := false; end; end;
rule "look" !done ==> begin if exists u: U do k[u] = 0 | t[k[u]] end then done := true; end; end;

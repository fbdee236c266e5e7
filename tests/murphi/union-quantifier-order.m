-- verdict: violated
-- rumur: refuses
--
-- As union-quantifier-error.m, with the deciding value before the one with the error.
type S: scalarset(2); U: union { S, enum { home } };
var k: array [U] of 0..3; t: array [1..3] of boolean; q: S; done: boolean;
startstate begin
  for i := 1 to 3 do t[i] := false; end;
  clear q;
  for n: S do if n = q then k[n] := 3; else k[n] := 0; end; end; k[home] := 1; done := false; end;
rule "look" !done ==> begin if exists u: U do k[u] = 3 | t[k[u]] end then done := true; end; end;

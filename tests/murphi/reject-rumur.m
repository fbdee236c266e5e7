-- verdict: rejected
-- dialect: rumur
--
-- Constructs that only CMurphi accepts.
type
  s: scalarset(2);
  t: enum { a, b };
  u: union { s, t };
var m: multiset [2] of boolean; x: u; n: 0..3; ok: boolean;
startstate begin
  n := undefined;
  ok := forall i: 0..1; j: 0..1 do i = j end;
  ok := forall i: 0..1 : i = 0 end;
  for i: 0..1; j: 0..1 do n := i; end;
  for i := 3 to 1 do n := i; end;
  multisetadd(ok, m);
end;
rule 3 "late" begin n := 0; end;
choose i: m do rule begin multisetremove(i, m); end; end;

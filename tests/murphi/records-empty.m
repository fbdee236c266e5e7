-- verdict: verified
-- states: 4
--
-- A record may have no fields. It has a single value, and is assigned, compared, passed,
-- and nested in arrays and records as any other.
type
  nothing: record end;
  full: record a: nothing; n: 0..3; b: nothing; end;
  some: array [0..1] of nothing;
var v: nothing; w: nothing; f: full; s: some;
procedure copy(from: nothing; var to_: nothing);
begin
  to_ := from;
end;
function same(x: nothing; y: nothing): boolean;
begin
  return x = y;
end;
startstate begin clear v; clear w; clear f; clear s; end;
rule "next"
  var l: nothing; g: full;
begin
  clear l;
  copy(l, v);
  s[1] := s[0];
  w := v;
  g := f;
  g.a := g.b;
  g.n := (g.n + 1) % 4;
  f := g;
  assert same(v, s[1]) & v = w & f = g & !(f != g);
end;
invariant v = w;

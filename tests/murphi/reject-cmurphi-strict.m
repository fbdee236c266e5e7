-- verdict: rejected
-- dialect: cmurphi
--
-- Stricter rules of CMurphi: semicolons, equal types, rules with guards, and texts that its C++ compiler would reject
-- or give another meaning.
const most: 3
type
  small: 0..most;
  other: 0..most
  pair: record a: small b: small end;
  bag: multiset [2] of small;
var n, k: small; o: other; p: pair; m: bag; a: array [small] of small;

procedure up(var x: small; step: small)
begin
  x := (x + step) % 4;
end

procedure both(x: small, y: other);
begin
  n := x;
endfunction;

function twice(x: small): small
begin
  return (2 * x) % 4;
endprocedure;

startstate begin
  n := 0; k := 0; o := 0;;
end

rule n := 1; end;
rule "types" begin
  up(o, n);
  up(n, o);
  up(n, n);
  up(a[k], a[n]);
  both(n, o);
  both(n + 0, o);
  multisetadd(o, m);
  multisetadd(n + 1, m);
  assert "in front" n = 0;
  switch n case 1, 2: k := 1; case 1: k := 2; end;
end;
ruleset i: small do
  rule "a" begin n := i; end
  rule "b" begin n := i; end
end;
assert n < 4;
invariant "last" n < 4

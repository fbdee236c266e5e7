-- verdict: rejected
--
-- Values of a wrong kind, in every construct that requires a kind.
type colour: enum { red, green };
  shape: enum { round, square };
  row: array [0..1] of boolean;
var c: colour; b: boolean; n: 0..3; a: row;
startstate begin
  c := round;
  n := b;
  b := n + 1;
  b := c < c;
  b := n = b;
  b := !n;
  n := -b;
  a := n;
  b := a[b];
  b := n[0];
  n := a.f;
  if n then b := true; end;
  while c do b := true; end;
  n := b ? c : n;
  b := a & b;
  assert n;
  switch c case 3: b := true; end;
end;
rule n ==> begin n := 0; end;
invariant c;

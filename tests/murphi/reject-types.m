-- verdict: rejected
--
-- Invalid types, and values of unrelated types in one expression.
type
  s: scalarset(3);
  t: scalarset(3);
  u: union { s, 0..3 };
  v: union { s, s };
  w: union { s, t };
var x: s; y: t; z: w; m: multiset [0] of boolean; n: multiset [2] of boolean; b: boolean;
startstate begin
  x := y;
  z := x; y := z;
  x := 0;
  b := x < x;
  b := ismember(x, t);
  b := ismember(b, s);
  b := n[0];
  b := isundefined(n);
  multisetadd(x, n);
  multisetadd(b, b);
  multisetremove(0, n);
  b := n = n;
end;
choose i: b do rule begin b := true; end; end;

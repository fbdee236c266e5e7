-- verdict: verified
-- states: 16
--
-- A var argument of a recursive procedure has another name in each call but is the same variable: a variable of the
-- state, with a constant or computed index, or a local variable of the caller.
type small: 0..3;
var v: small; q: array [0..1] of small; i: 0..1; done: boolean;
procedure down(n: small; var x: small);
begin
  v := 1;
  assert x = 1;
  if n > 1 then down(n - 1, x); end;
  done := true;
end;
-- The parameter keeps the element that the index selected at the call, even if the index changes later.
procedure fill(n: small; var x: small; var y: small);
begin
  i := 1 - i;
  x := n;
  assert y = n;
  if n > 0 then fill(n - 1, y, x); end;
  assert x = 0 & y = 0;
end;
procedure apart(n: small; var x: small; var y: small);
  var t: small;
begin
  t := x; x := y; y := t;
  if n > 0 then apart(n - 1, y, x); end;
end;
startstate begin v := 3; q[0] := 2; q[1] := 3; i := 0; done := false; end;
rule "down" begin down(3, v); assert v = 1; end;
rule "fill" begin fill(2, q[i], q[i]); end;
rule "apart"
  var l: small; m: small;
begin
  l := 2;
  fill(0, l, l);
  assert l = 0;
  -- Three recursive exchanges of the same two arguments.
  l := 1; m := 2;
  apart(2, l, m);
  assert l = 2 & m = 1;
  apart(1, q[0], q[1]);
end;

-- verdict: rejected
--
-- Calls with the wrong number or types of arguments, and uses of values where a call returns none.
type colour: enum { red, green };
  pair: record a: boolean; end;
var n: 0..3; m: 0..7; c: colour; p: pair;
function f(x: 0..3; y: colour): 0..3; begin return x; end;
procedure g(var x: 0..3); begin x := 0; return 3; end;
function h(): colour; begin return 3; return; end;
startstate begin
  n := f(n);
  n := f(c, n);
  g(m);
  n := g(n);
  c := f;
  n := n(3);
  n := h();
  return 4;
end;

-- verdict: verified
-- states: 12
--
-- Functions with value and var parameters, results of simple and of record types, and nested calls.
type
  small: 0..3;
  pair: record a: small; b: small; end;
var p: pair; q: array [0..1] of small; n: small;
function add(x: small; y: small): small;
begin
  if x + y > 3 then return 3; else return x + y; end;
end;
procedure swap(var x: small; var y: small);
  var t: small;
begin
  t := x; x := y; y := t;
end;
function swapped(r: pair): pair;
  var s: pair;
begin
  s := r;
  swap(s.a, s.b);
  return s;
end;
startstate begin
  p.a := 1; p.b := 2; q[0] := 0; q[1] := 3; n := 0;
end;
rule "swap" begin swap(q[0], q[1]); end;
rule "swapped" begin p := swapped(p); assert p.a != p.b; end;
rule "add" begin n := add(n, add(q[0], add(1, n))) ; end;
rule "reset" n = 3 ==> begin n := 0; end;
rule "one" begin n := add(0, 1); end;

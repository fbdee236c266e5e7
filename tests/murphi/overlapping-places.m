-- verdict: violated
-- states: 1
-- rumur: differs for a procedure that calls itself may be handed places of a local variable that overlap
--
-- Two var parameters are elements of one local array, with indices that may be equal.
type t: 0..3; var v: t;
procedure p(n: t; var x: t; var y: t);
begin
  x := n;
  if n > 0 then p(n - 1, y, x); end;
end;
startstate begin v := 0; end;
rule "hand over"
  var l: array [0..1] of t;
begin
  l[0] := 1; l[1] := 2;
  p(2, l[v], l[1 - v]);
  v := l[0];
end;

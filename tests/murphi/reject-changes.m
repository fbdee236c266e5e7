-- verdict: rejected
--
-- Guards and properties must not change the state, and constants, loop indices and expressions cannot be assigned.
type row: array [0..1] of 0..3;
var n: 0..3; a: row;
const three: 3;
function next(): 0..3; begin n := (n + 1) % 4; return n; end;
procedure set(var x: 0..3); begin x := 3; end;
function twice(): 0..3; begin return next() + next(); end;
function through(var x: 0..3): boolean; begin set(x); return true; end;
function fine(x: 0..3): boolean; var y: 0..3; begin y := x; set(y); return y = 3; end;
procedure value(x: 0..3); begin x := 2; end;
startstate begin n := 0; for i: 0..1 do a[i] := 0; end; end;
rule next() = 1 ==> begin n := 0; end;
rule fine(n) ==> begin three := 2; set(3); set(three); 3 := n; set(n + 1); end;
ruleset i: 0..1 do rule begin i := 0; set(i); alias x: n + 1 do x := 2; end; end; end;
invariant twice() = 2;
invariant through(n);
cover next() = 1;

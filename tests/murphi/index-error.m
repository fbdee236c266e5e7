-- verdict: violated
--
-- An index is outside the range of its array.
var a: array [0..2] of boolean; n: 0..3;
startstate begin n := 0; for i: 0..2 do a[i] := false; end; end;
rule "up" n < 3 ==> begin n := n + 1; end;
rule "set" begin a[n] := !a[n]; end;

-- verdict: violated
--
-- An array is indexed by a variable that was never assigned.
var a: array [0..2] of boolean; n: 0..2; x: boolean;
startstate begin x := true; for i: 0..2 do a[i] := false; end; end;
rule "set" x ==> begin a[n] := true; x := false; end;

var a: array [0..2] of 0..2; b: 0..2; t: 0..2;
function inc(): 0..2; begin b := (b + 1) % 3; return b; end;
startstate begin for i: 0..2 do a[i] := 0; end; b := 0; t := 0; end;
rule "store" begin a[b] := inc(); end;
rule "swap" begin t := a[b]; a[b] := a[(b + 1) % 3]; a[(b + 1) % 3] := t; t := 0; end;

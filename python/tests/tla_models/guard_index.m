var a: array [1..3] of 0..1; i: 0..3;
startstate begin for k: 1..3 do a[k] := 0; end; i := 0; end;
rule i = 0 | a[i] = 0 ==> begin i := (i + 1) % 4; end;

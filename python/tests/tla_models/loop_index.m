var a: array [0..2] of 0..3; y: 0..3;
startstate begin for i: 0..2 do a[i] := 0; end; y := 0; end;
rule begin for i: 0..3 do y := a[i]; end; end;
rule begin y := (y + 1) % 4; end;

type s: scalarset(2);
var a: array [s] of 0..3; x: s; y: 0..3;
startstate begin for i: s do a[i] := 0; end; y := 0; end;
rule begin y := a[x]; end;

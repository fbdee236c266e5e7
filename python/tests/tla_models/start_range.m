var x: 0..3; y: 0..3;
startstate begin x := 3; y := x + 1; end;
rule begin y := 0; x := 0; end;

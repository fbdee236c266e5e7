var x: 0..3; f: boolean; y: 0..3;
startstate begin y := 0; f := false; end;
rule x < 3 & f ==> begin y := 1; end;
rule begin y := (y + 1) % 4; end;

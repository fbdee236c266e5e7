var x: 0..3; y: 0..3; f: boolean;
startstate begin y := 0; f := true; end;
rule begin if f then y := x + 1; end; end;
rule begin f := !f; end;

var x: 0..3; y: 0..3;
ruleset i: 0..3 do startstate begin x := i; y := 0; assert i < 3 "n"; end; end;
rule begin y := (y + 1) % 4; end;
assume "z" x < 3;

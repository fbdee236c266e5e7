-- verdict: verified
-- states: 4
--
-- Parameters of two types without a `;` between them. Only Rumur accepts this.
type number: 0..3;
var n: number; m: number;
procedure p(x: number var y: number z: number); begin y := (x + z) % 4; end;
startstate begin n := 0; m := 0; end;
rule begin p(n, n, 1); end;

-- verdict: verified
-- states: 2
-- deadlock: off
--
-- A shift by 64 or more gives 0, not an overflow.
var n: 0..128; b: boolean;
startstate begin n := 128; b := false; end;
rule begin b := !b; end;
invariant "constant" 1 << 128 = 0 && 1 >> 128 = 0;
invariant "computed" 1 << n = 0 && n << n = 0 && n >> n = 0;

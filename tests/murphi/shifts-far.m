-- verdict: verified
-- states: 2
-- deadlock: off
--
-- A shift by 64 or more leaves 0. It was told as a number that leaves 32 bits, which was a false violation.
var n: 0..128; b: boolean;
startstate begin n := 128; b := false; end;
rule begin b := !b; end;
invariant "constant" 1 << 128 = 0 && 1 >> 128 = 0;
invariant "computed" 1 << n = 0 && n << n = 0 && n >> n = 0;

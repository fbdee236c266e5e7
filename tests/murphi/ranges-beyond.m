-- verdict: rejected
--
-- What is no number of 64 bits. The least number that they could hold is none: it stands for what is undefined.
type
  far: 0 .. 9223372036854775808;
  low: -9223372036854775807 - 1 .. 0;
  hex: 0 .. 0x8000000000000000;
var n: far;
startstate begin n := 1 << 63; end;

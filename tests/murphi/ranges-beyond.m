-- verdict: rejected
--
-- Numbers beyond 64 bits are rejected. So is the least 64-bit number, which encodes the undefined value.
type
  far: 0 .. 9223372036854775808;
  low: -9223372036854775807 - 1 .. 0;
  hex: 0 .. 0x8000000000000000;
var n: far;
startstate begin n := 1 << 63; end;

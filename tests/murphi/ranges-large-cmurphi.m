-- verdict: rejected
-- dialect: cmurphi
--
-- CMurphi has 32-bit arithmetic, so larger numbers are rejected.
type
  far: 0 .. 2147483648;
  wide: -2147483647 .. 2147483647;
  product: 0 .. 100000 * 100000;
var n: 0..3;
startstate begin n := 0; end;

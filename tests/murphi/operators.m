-- verdict: verified
-- states: 1
-- deadlock: off
--
-- Every operator of both dialects, on constants. Each `assert` states the expected value.
const
  two: 2;
  hex: 0x1F;
var n: -100..100; b: boolean;
startstate
begin
  n := -7; b := true;
  assert n / 2 = -3;
  assert n % 2 = -1;
  assert -n = 7 & +n = n;
  assert n + 3 * two = -1;
  assert hex = 31;
  assert (n != 3) == true;
  assert (6 & 3) = 2 & (6 | 3) = 7 & (6 ^ 3) = 5;
  assert ~5 = -6;
  assert 1 << 4 = 16 && 64 >> 3 = 8 || false;
  assert b -> !(n = 2);
  assert !n = 2;
  assert (b ? 4 : 5) = 4;
  assert n < 0 & n <= -7 & 0 > n & -7 >= n;
end;
rule n = n ==> begin n := n; b := true; end;
invariant "everything" b ∧ ¬(n = 7) ∧ n ≤ 0 ∧ n ≠ 1;

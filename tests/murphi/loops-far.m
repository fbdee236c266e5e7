-- verdict: verified
-- states: 2
-- deadlock: off
-- rumur: differs it has no type for numbers at both ends
--
-- Loops far from 0 and up to the largest number: the iteration ends there without an overflow.
-- The bounds of the second loop are not constant.
const most: 9223372036854775807;
var n: most - 1 .. most; b: boolean; sum: 0 .. 10;

startstate begin n := most; b := false; sum := 0; end;
rule
var count: 0 .. 20;
begin
  count := 0;
  for i := most - 4 to most do if i > most - 3 then count := count + 1; end; end;
  for i := n - 2 to n by 2 do count := count + 1; end;
  for i := -most + 2 to -most by -1 do count := count + 1; end;
  for i := -most to most by 1 << 62 do count := count + 1; end;
  if count != 12 then error "of 3, 2, 3 and 4 rounds"; end;
  if n % most != 0 then error "around a ring"; end;
  b := !b;
end;
invariant forall i := n to n do i = most end;

-- verdict: verified
-- states: 1
-- deadlock: off
--
-- Every kind of loop: ranges up, down, by a step, types, `while`, and quantifiers. Each `assert` states the sum after it.
var s: 0..100; i: 0..10;
startstate begin
  s := 0; i := 0;
  for k := 1 to 4 do s := s + k; end; assert s = 10;
  for k := 5 to 1 by -2 do s := s + k; end; assert s = 19;
  for k := 0 to 10 by 5 do s := s + k; end; assert s = 34;
  while i < 5 do i := i + 1; s := s + 1; end; assert s = 39;
  for b: boolean do if b then s := s + 1; end; end; assert s = 40;
  for k := i to i + 2 do s := s + k; end; assert s = 58;
  assert forall k := 0 to i do k <= 5 end;
  assert exists k := 0 to i by 2 do k = 4 end;
  assert !exists k := 0 to i by 2 do k = 3 end;
end;
rule begin s := s; end;

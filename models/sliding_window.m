-- verdict: verified
-- states: 1122
-- dialect: both
-- counted by: rumur
--
-- Go-back-n (the sliding window of V. G. Cerf and R. E. Kahn, 1974, in its simplest form) over channels that lose
-- messages but keep their order. Window 2, sequence numbers modulo 3. The receiver counts what it accepts modulo
-- 6, which distinguishes equal sequence numbers; the real numbers are in the model for the assertion only.

const
  window: 2;
  numbers: 3;
  reality: 6;
  capacity: 2;

type
  number: 0..numbers - 1;
  real_number: 0..reality - 1;
  length: 0..capacity;
  place: 1..capacity;

var
  base: real_number; -- number of the oldest unacknowledged message
  sent: 0..window; -- number of messages after `base` in flight
  expected: real_number;
  forth: record
    used: length;
    frames: array [place] of real_number;
  end;
  back: record
    used: length;
    wanted: array [place] of number;
  end;

rule "send the next"
  sent < window & forth.used < capacity
==>
begin
  forth.used := forth.used + 1;
  forth.frames[forth.used] := (base + sent) % reality;
  sent := sent + 1;
end;

rule "time out and go back"
  sent > 0
==>
begin
  sent := 0;
end;

rule "receive"
  forth.used > 0 & back.used < capacity
==>
begin
  if forth.frames[1] % numbers = expected % numbers then
    assert forth.frames[1] = expected "the number is that of the expected frame";
    expected := (expected + 1) % reality;
  end;
  back.used := back.used + 1;
  back.wanted[back.used] := expected % numbers;
  for k: place do
    if k < forth.used then forth.frames[k] := forth.frames[k + 1]; end;
  end;
  undefine forth.frames[forth.used];
  forth.used := forth.used - 1;
end;

rule "lose a frame"
  forth.used > 0
==>
begin
  for k: place do
    if k < forth.used then forth.frames[k] := forth.frames[k + 1]; end;
  end;
  undefine forth.frames[forth.used];
  forth.used := forth.used - 1;
end;

rule "take an acknowledgement"
  back.used > 0
==>
var steps: 0..numbers - 1;
begin
  -- Number of messages that the receiver has accepted since `base`, by the sequence numbers alone.
  steps := (back.wanted[1] + numbers - base % numbers) % numbers;
  base := (base + steps) % reality;
  if steps > sent then sent := 0; else sent := sent - steps; end;
  for k: place do
    if k < back.used then back.wanted[k] := back.wanted[k + 1]; end;
  end;
  undefine back.wanted[back.used];
  back.used := back.used - 1;
end;

rule "lose an acknowledgement"
  back.used > 0
==>
begin
  for k: place do
    if k < back.used then back.wanted[k] := back.wanted[k + 1]; end;
  end;
  undefine back.wanted[back.used];
  back.used := back.used - 1;
end;

startstate
begin
  base := 0;
  sent := 0;
  expected := 0;
  forth.used := 0;
  back.used := 0;
end;

invariant "the receiver is inside the window"
  (expected + reality - base) % reality <= window;

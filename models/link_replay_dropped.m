-- verdict: violated
-- property: invariant "the receiver is inside the window"
-- steps: 3
-- dialect: rumur
-- counted by: rumur
--
-- The link replay of `link_replay.m` with a receiver that counts a damaged block as received.
-- The kind of a damaged block is unknown: here it was a sync block, which has no number.

const
  window: 2;
  numbers: 5;
  reality: 10;
  capacity: 2;
  errors: 2;

type
  number: 0..numbers - 1;
  real_number: 0..reality - 1;
  length: 0..capacity;
  place: 1..capacity;
  kind: enum { BLOCK, SYNC, DAMAGED };

var
  base: real_number; -- number of the oldest unacknowledged block
  sent: 0..window; -- number of blocks from `base` on sent since the last replay began
  top: 0..window; -- number of blocks from `base` on in the replay buffer
  announce: boolean; -- a sync block must give the number of the next block
  expected: real_number;
  next_number: number; -- number of the next block to arrive, as the receiver counts
  lost: boolean;
  errors_left: 0..errors; -- number of errors that may still happen
  forward: record
    used: length;
    kinds: array [place] of kind;
    origin: array [place] of real_number; -- of a sync block: number of the next block
  end;
  back: record
    used: length;
    request: array [place] of boolean;
    wanted: array [place] of number;
  end;

procedure shift_forward();
begin
  for k: place do
    if k < forward.used then
      forward.kinds[k] := forward.kinds[k + 1];
      forward.origin[k] := forward.origin[k + 1];
    end;
  end;
  undefine forward.kinds[forward.used];
  undefine forward.origin[forward.used];
  forward.used := forward.used - 1;
end;

procedure shift_back();
begin
  for k: place do
    if k < back.used then
      back.request[k] := back.request[k + 1];
      back.wanted[k] := back.wanted[k + 1];
    end;
  end;
  undefine back.request[back.used];
  undefine back.wanted[back.used];
  back.used := back.used - 1;
end;

rule "send a block, new or replayed"
  !announce & sent < window & forward.used < capacity
==>
begin
  forward.used := forward.used + 1;
  forward.kinds[forward.used] := BLOCK;
  forward.origin[forward.used] := (base + sent) % reality;
  sent := sent + 1;
  if top < sent then top := sent; end;
end;

rule "send a sync block"
  forward.used < capacity
==>
begin
  forward.used := forward.used + 1;
  forward.kinds[forward.used] := SYNC;
  forward.origin[forward.used] := (base + sent) % reality;
  announce := false;
end;

rule "damage the last item in flight"
  forward.used > 0 & errors_left > 0
==>
begin
  errors_left := errors_left - 1;
  forward.kinds[forward.used] := DAMAGED;
end;

rule "receive"
  forward.used > 0
==>
var ahead: number;
begin
  switch forward.kinds[1]
    case DAMAGED:
      lost := true;
      expected := (expected + 1) % reality;
    case SYNC:
      -- A distance below half of the numbers means a later block, any other an earlier one.
      ahead := (forward.origin[1] + numbers - expected % numbers) % numbers;
      next_number := forward.origin[1] % numbers;
      lost := ahead > 0 & ahead < (numbers + 1) / 2;
    case BLOCK:
      if !lost then
        if next_number = expected % numbers then
          assert forward.origin[1] = expected "each block is taken once and in order";
          expected := (expected + 1) % reality;
        end;
        next_number := (next_number + 1) % numbers;
      end;
  end;
  shift_forward();
end;

rule "send an acknowledgement"
  back.used < capacity
==>
begin
  back.used := back.used + 1;
  back.request[back.used] := lost;
  back.wanted[back.used] := expected % numbers;
end;

rule "receive an acknowledgement"
  back.used > 0
==>
var steps: number;
begin
  steps := (back.wanted[1] + numbers - base % numbers) % numbers;
  assert steps <= top "only sent items are acknowledged";
  base := (base + steps) % reality;
  top := top - steps;
  if steps > sent then
    -- The stream skips the blocks that have arrived: the last sync number is no longer that of the next block.
    sent := 0;
    announce := true;
  else
    sent := sent - steps;
  end;
  if back.request[1] then
    sent := 0;
    announce := true;
  end;
  shift_back();
end;

rule "lose an acknowledgement"
  back.used > 0 & errors_left > 0
==>
begin
  errors_left := errors_left - 1;
  shift_back();
end;

startstate
begin
  base := 0;
  sent := 0;
  top := 0;
  announce := false;
  expected := 0;
  next_number := 0;
  lost := false;
  errors_left := errors;
  forward.used := 0;
  back.used := 0;
end;

invariant "the receiver is inside the window"
  (expected + reality - base) % reality <= top;

liveness "everything sent arrives and is acknowledged"
  top = 0 & !lost;

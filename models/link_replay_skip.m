-- verdict: violated
-- property: assert "each block is taken once and in order"
-- steps: 17
-- dialect: rumur
-- counted by: rumur
--
-- The link replay of `link_replay.m` with a sender that skips blocks without a new sync block. It has gone back, sent the
-- number, and learns that those blocks have arrived after all; the receiver takes the blocks after them for the skipped ones.

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
  coming: number; -- number of the next block to arrive, as the receiver counts
  lost: boolean;
  left: 0..errors; -- number of errors that may still happen
  forth: record
    used: length;
    what: array [place] of kind;
    origin: array [place] of real_number; -- of a sync block: number of the next block
  end;
  back: record
    used: length;
    request: array [place] of boolean;
    wanted: array [place] of number;
  end;

procedure shift_forth();
begin
  for k: place do
    if k < forth.used then
      forth.what[k] := forth.what[k + 1];
      forth.origin[k] := forth.origin[k + 1];
    end;
  end;
  undefine forth.what[forth.used];
  undefine forth.origin[forth.used];
  forth.used := forth.used - 1;
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
  !announce & sent < window & forth.used < capacity
==>
begin
  forth.used := forth.used + 1;
  forth.what[forth.used] := BLOCK;
  forth.origin[forth.used] := (base + sent) % reality;
  sent := sent + 1;
  if top < sent then top := sent; end;
end;

rule "send a sync block"
  forth.used < capacity
==>
begin
  forth.used := forth.used + 1;
  forth.what[forth.used] := SYNC;
  forth.origin[forth.used] := (base + sent) % reality;
  announce := false;
end;

rule "damage the last item in flight"
  forth.used > 0 & left > 0
==>
begin
  left := left - 1;
  forth.what[forth.used] := DAMAGED;
end;

rule "receive"
  forth.used > 0
==>
var ahead: number;
begin
  switch forth.what[1]
    case DAMAGED:
      lost := true;
    case SYNC:
      -- A distance below half of the numbers means a later block, any other an earlier one.
      ahead := (forth.origin[1] + numbers - expected % numbers) % numbers;
      coming := forth.origin[1] % numbers;
      lost := ahead > 0 & ahead < (numbers + 1) / 2;
    case BLOCK:
      if !lost then
        if coming = expected % numbers then
          assert forth.origin[1] = expected "each block is taken once and in order";
          expected := (expected + 1) % reality;
        end;
        coming := (coming + 1) % numbers;
      end;
  end;
  shift_forth();
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
    sent := 0;
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
  back.used > 0 & left > 0
==>
begin
  left := left - 1;
  shift_back();
end;

startstate
begin
  base := 0;
  sent := 0;
  top := 0;
  announce := false;
  expected := 0;
  coming := 0;
  lost := false;
  left := errors;
  forth.used := 0;
  back.used := 0;
end;

invariant "the receiver is inside the window"
  (expected + reality - base) % reality <= top;

liveness "everything sent arrives and is acknowledged"
  top = 0 & !lost;

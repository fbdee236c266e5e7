-- verdict: violated
-- property: invariant "the receiver is inside the window"
-- steps: 5
-- dialect: rumur
-- counted by: rumur
--
-- The link replay of `link_numbers.m` with a nak that names the refused packet, while the
-- sender expects the last received one. The sender discards a packet that never arrived.

const
  window: 2;
  numbers: 6;
  reality: 12;
  capacity: 2;
  errors: 2;

type
  number: 0..numbers - 1;
  real_number: 0..reality - 1;
  length: 0..capacity;
  place: 1..capacity;

var
  base: real_number; -- number of the oldest unacknowledged packet
  kept: 0..window; -- number of packets from `base` on in the replay buffer
  sent: 0..window; -- number of these sent since the last replay began
  expected: real_number;
  refused: boolean;
  send_ack: boolean; -- an acknowledgement is to be sent
  send_nak: boolean; -- a nak is to be sent
  errors_left: 0..errors; -- number of errors that may still happen
  forward: record
    used: length;
    damaged: array [place] of boolean;
    origin: array [place] of real_number;
  end;
  back: record
    used: length;
    refusal: array [place] of boolean;
    wanted: array [place] of number;
  end;

procedure shift_forward();
begin
  for k: place do
    if k < forward.used then
      forward.damaged[k] := forward.damaged[k + 1];
      forward.origin[k] := forward.origin[k + 1];
    end;
  end;
  undefine forward.damaged[forward.used];
  undefine forward.origin[forward.used];
  forward.used := forward.used - 1;
end;

procedure shift_back();
begin
  for k: place do
    if k < back.used then
      back.refusal[k] := back.refusal[k + 1];
      back.wanted[k] := back.wanted[k + 1];
    end;
  end;
  undefine back.refusal[back.used];
  undefine back.wanted[back.used];
  back.used := back.used - 1;
end;

rule "send a packet, new or replayed"
  sent < window & forward.used < capacity
==>
begin
  forward.used := forward.used + 1;
  forward.damaged[forward.used] := false;
  forward.origin[forward.used] := (base + sent) % reality;
  sent := sent + 1;
  if kept < sent then kept := sent; end;
end;

rule "replay after a timeout"
  -- The timeout may also be shorter than a round trip: a premature replay is correct too.
  sent > 0
==>
begin
  sent := 0;
end;

rule "damage the last item in flight"
  forward.used > 0 & errors_left > 0
==>
begin
  errors_left := errors_left - 1;
  forward.damaged[forward.used] := true;
end;

rule "receive"
  forward.used > 0
==>
var ahead: number;
begin
  ahead := (forward.origin[1] + reality - expected) % numbers;
  if !forward.damaged[1] & ahead = 0 then
    assert forward.origin[1] = expected "each packet is taken once and in order";
    expected := (expected + 1) % reality;
    refused := false;
    send_ack := true;
  elsif !forward.damaged[1] & ahead > numbers / 2 then
    send_ack := true;
  elsif !refused then
    refused := true;
    send_nak := true;
  end;
  shift_forward();
end;

rule "send an acknowledgement"
  (send_ack | send_nak) & back.used < capacity
==>
begin
  back.used := back.used + 1;
  back.refusal[back.used] := send_nak;
  back.wanted[back.used] := (send_nak ? expected + 1 : expected) % numbers;
  send_ack := false;
  send_nak := false;
end;

rule "receive an acknowledgement"
  back.used > 0
==>
var steps: number;
begin
  steps := (back.wanted[1] + numbers - base % numbers) % numbers;
  assert steps <= kept "only sent items are acknowledged";
  base := (base + steps) % reality;
  kept := kept - steps;
  if steps > sent | back.refusal[1] then sent := 0; else sent := sent - steps; end;
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
  kept := 0;
  sent := 0;
  expected := 0;
  refused := false;
  send_ack := false;
  send_nak := false;
  errors_left := errors;
  forward.used := 0;
  back.used := 0;
end;

invariant "the receiver is inside the window"
  (expected + reality - base) % reality <= kept;

liveness "everything sent arrives and is acknowledged"
  kept = 0;

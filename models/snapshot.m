-- verdict: verified
-- states: 842414
-- dialect: both
-- counted by: rumur
--
-- The Chandy-Lamport snapshot of a running system (K. M. Chandy and L. Lamport, "Distributed snapshots: determining
-- global states of distributed systems", 1985): three banks pass three coins to each other over channels that keep
-- their order. Any bank begins a snapshot; markers go through all channels. Coins that a bank receives between its
-- own snapshot and the channel's marker were in flight. Checked: every snapshot counts all coins.

const
  banks: 3;
  coins: 3;
  capacity: 3;

type
  bank: 0..banks - 1;
  money: 0..coins;
  thing: enum { coin, marker };

var
  has: array [bank] of money;
  -- [a][b]: coins and markers from a to b, the oldest first.
  channel: array [bank] of array [bank] of record
    used: 0..capacity;
    holds: array [1..capacity] of thing;
  end;
  done: array [bank] of boolean; -- has recorded its part of the snapshot
  saved: array [bank] of money;
  -- [a][b], for the channel from b to a: the marker has arrived, and the coins before the marker.
  closed: array [bank] of array [bank] of boolean;
  passing: array [bank] of array [bank] of money;
  in_progress: boolean;

procedure send(b: bank; c: bank; t: thing);
begin
  channel[b][c].used := channel[b][c].used + 1;
  channel[b][c].holds[channel[b][c].used] := t;
end;

procedure take(b: bank; c: bank);
begin
  for k: 1..capacity - 1 do
    if k < channel[b][c].used then channel[b][c].holds[k] := channel[b][c].holds[k + 1]; end;
  end;
  undefine channel[b][c].holds[channel[b][c].used];
  channel[b][c].used := channel[b][c].used - 1;
end;

function room(b: bank): boolean;
begin
  return forall c: bank do channel[b][c].used < capacity end;
end;

procedure save(b: bank);
begin
  done[b] := true;
  saved[b] := has[b];
  for c: bank do
    if c != b then send(b, c, marker); end;
  end;
end;

ruleset b: bank; c: bank do
  rule "pay"
    b != c & has[b] > 0 & channel[b][c].used < capacity - 1
  ==>
  begin
    has[b] := has[b] - 1;
    send(b, c, coin);
  end;

  rule "receive a coin"
    channel[c][b].used > 0 & channel[c][b].holds[1] = coin
  ==>
  begin
    take(c, b);
    has[b] := has[b] + 1;
    if done[b] & !closed[b][c] then passing[b][c] := passing[b][c] + 1; end;
  end;

  rule "receive a marker"
    channel[c][b].used > 0 & channel[c][b].holds[1] = marker & (done[b] | room(b))
  ==>
  begin
    take(c, b);
    if !done[b] then save(b); end;
    closed[b][c] := true;
  end;
end;

ruleset b: bank do
  rule "begin a snapshot"
    !in_progress & room(b)
  ==>
  begin
    in_progress := true;
    save(b);
  end;
end;

rule "count the snapshot"
  in_progress & forall b: bank do done[b] & forall c: bank do c = b | closed[b][c] end end
==>
  var sum: 0..9;
begin
  sum := 0;
  for b: bank do
    sum := sum + saved[b];
    for c: bank do sum := sum + passing[b][c]; end;
  end;
  assert sum = coins "the snapshot has all coins";
  in_progress := false;
  for b: bank do
    done[b] := false;
    undefine saved[b];
    for c: bank do closed[b][c] := false; passing[b][c] := 0; end;
  end;
end;

startstate
begin
  in_progress := false;
  for b: bank do
    has[b] := 1;
    done[b] := false;
    for c: bank do channel[b][c].used := 0; closed[b][c] := false; passing[b][c] := 0; end;
  end;
end;

-- verdict: verified
-- states: 534
-- dialect: both
-- counted by: rumur
--
-- Szymanski's mutual exclusion (B. K. Szymanski, "A simple solution to Lamport's concurrent programming problem with linear
-- wait", 1988) for four processes: a waiting room whose door the last to enter it closes. Five values of one flag each say
-- the section in which its process is; each test of all flags is one step.
-- flag: 0 outside, 1 wants in, 2 in the waiting room, 3 in the doorway, 4 has closed the door.

const
  processes: 4;

type
  proc: 1..processes;
  place: enum { outside, at_door, in_doorway, waits, door_closed, critical, leaving };

var
  at: array [proc] of place;
  flag: array [proc] of 0..4;

ruleset p: proc do
  rule "want"
    at[p] = outside
  ==>
  begin
    flag[p] := 1;
    at[p] := at_door;
  end;

  rule "step into the doorway"
    at[p] = at_door & forall q: proc do flag[q] < 3 end
  ==>
  begin
    flag[p] := 3;
    at[p] := in_doorway;
  end;

  rule "let another in"
    at[p] = in_doorway & exists q: proc do flag[q] = 1 end
  ==>
  begin
    flag[p] := 2;
    at[p] := waits;
  end;

  rule "close the door"
    at[p] = in_doorway & forall q: proc do flag[q] != 1 end
  ==>
  begin
    flag[p] := 4;
    at[p] := door_closed;
  end;

  rule "see the door closed"
    at[p] = waits & exists q: proc do flag[q] = 4 end
  ==>
  begin
    flag[p] := 4;
    at[p] := door_closed;
  end;

  rule "enter"
    at[p] = door_closed & forall q: proc do q < p -> flag[q] < 2 end
  ==>
  begin
    at[p] := critical;
  end;

  rule "see the others through"
    at[p] = critical & forall q: proc do q > p -> flag[q] < 2 | flag[q] = 4 end
  ==>
  begin
    at[p] := leaving;
  end;

  rule "leave"
    at[p] = leaving
  ==>
  begin
    flag[p] := 0;
    at[p] := outside;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := outside;
    flag[p] := 0;
  end;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    (at[p] = critical | at[p] = leaving) & (at[q] = critical | at[q] = leaving) -> p = q
  end end;

-- verdict: verified
-- states: 20
-- dialect: both
-- counted by: rumur
--
-- Peterson's mutual exclusion for two processes (G. L. Peterson, "Myths about the mutual exclusion problem", 1981).
-- A process raises its flag, yields the turn to the other, and waits while the other wants to enter and has
-- the turn. Checked: never both inside, and a step is always possible.

type
  proc: 0..1;
  place: enum { idle, wanting, waiting, critical };

var
  at: array [proc] of place;
  wants: array [proc] of boolean;
  turn: proc;

ruleset p: proc do
  rule "want"
    at[p] = idle
  ==>
  begin
    wants[p] := true;
    at[p] := wanting;
  end;

  rule "yield"
    at[p] = wanting
  ==>
  begin
    turn := 1 - p;
    at[p] := waiting;
  end;

  rule "enter"
    at[p] = waiting & (!wants[1 - p] | turn = p)
  ==>
  begin
    at[p] := critical;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    wants[p] := false;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    wants[p] := false;
  end;
  turn := 0;
end;

invariant "mutual exclusion"
  !(at[0] = critical & at[1] = critical);

-- verdict: violated
-- property: invariant "mutual exclusion"
-- steps: 6
-- dialect: both
-- counted by: rumur
--
-- Peterson's mutual exclusion for two processes with its two writes in the wrong order: the turn is yielded
-- before the flag is raised, as a compiler or a store buffer might reorder them. Violation: both enter.

type
  proc: 0..1;
  place: enum { idle, yielded, waiting, critical };

var
  at: array [proc] of place;
  wants: array [proc] of boolean;
  turn: proc;

ruleset p: proc do
  rule "yield"
    at[p] = idle
  ==>
  begin
    turn := 1 - p;
    at[p] := yielded;
  end;

  rule "want"
    at[p] = yielded
  ==>
  begin
    wants[p] := true;
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

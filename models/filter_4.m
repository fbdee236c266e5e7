-- verdict: verified
-- states: 5744
-- orbits: 322
-- dialect: both
-- counted by: rumur
--
-- Peterson's mutual exclusion for four processes, also known as the filter lock (G. L. Peterson, "Myths about the mutual
-- exclusion problem", 1981). A process passes levels 1 to 3. At each it makes itself the last to arrive there, and
-- waits while it still is the last and another process is at this level or above. The test is one step together with the
-- write of the next level; filter_fine_5.m takes smaller steps.
-- Checked: each level holds one process back, so at most one is inside.

const
  processes: 4;

type
  proc: scalarset(processes);
  level: 1..processes - 1;
  height: 0..processes - 1;
  place: enum { idle, arrived, waiting, critical };

var
  at: array [proc] of place;
  reached: array [proc] of height;
  last: array [level] of proc;

ruleset p: proc do
  rule "start"
    at[p] = idle
  ==>
  begin
    reached[p] := 1;
    at[p] := arrived;
  end;

  rule "become the last to arrive"
    at[p] = arrived
  ==>
  begin
    last[reached[p]] := p;
    at[p] := waiting;
  end;

  rule "pass"
    at[p] = waiting &
    (last[reached[p]] != p | forall q: proc do q != p -> reached[q] < reached[p] end)
  ==>
  begin
    if reached[p] = processes - 1 then
      at[p] := critical;
    else
      reached[p] := reached[p] + 1;
      at[p] := arrived;
    end;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    reached[p] := 0;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    reached[p] := 0;
  end;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

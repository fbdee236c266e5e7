-- verdict: verified
-- states: 772
-- orbits: 52
-- dialect: both
-- counted by: rumur
--
-- The ticket lock (J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
-- multiprocessors", 1991) for four processes: fetch-and-increment gives a ticket, and its holder waits until it is served.
-- Counters wrap around at the number of processes, which is enough. Checked: mutual exclusion, and first come first served:
-- the holder of an earlier ticket is never overtaken.

const
  processes: 4;

type
  proc: scalarset(processes);
  ticket: 0..processes - 1;
  place: enum { idle, waiting, critical, leaving };

var
  at: array [proc] of place;
  mine: array [proc] of ticket;
  next_ticket: ticket;
  now_serving: ticket;
  -- Processes that have overtaken a waiting one since it took its ticket; must stay empty.
  behind: array [proc] of array [proc] of boolean;

ruleset p: proc do
  rule "take a ticket"
    at[p] = idle
  ==>
  begin
    mine[p] := next_ticket;
    next_ticket := (next_ticket + 1) % processes;
    for q: proc do
      behind[p][q] := at[q] = waiting;
    end;
    at[p] := waiting;
  end;

  rule "enter"
    at[p] = waiting & mine[p] = now_serving
  ==>
  begin
    for q: proc do
      assert !behind[p][q] "no process is overtaken";
      behind[q][p] := false;
    end;
    at[p] := critical;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    undefine mine[p];
    at[p] := leaving;
  end;

  rule "serve the next"
    at[p] = leaving
  ==>
  begin
    now_serving := (now_serving + 1) % processes;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    for q: proc do behind[p][q] := false; end;
  end;
  next_ticket := 0;
  now_serving := 0;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

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
  state: enum { idle, waiting, critical, leaving };

var
  process_state: array [proc] of state;
  my_ticket: array [proc] of ticket;
  next_ticket: ticket;
  now_serving: ticket;
  -- earlier[p][q]: q was waiting when p took its ticket, and has not entered since. No such q may remain when p enters.
  earlier: array [proc] of array [proc] of boolean;

ruleset p: proc do
  rule "take a ticket"
    process_state[p] = idle
  ==>
  begin
    my_ticket[p] := next_ticket;
    next_ticket := (next_ticket + 1) % processes;
    for q: proc do
      earlier[p][q] := process_state[q] = waiting;
    end;
    process_state[p] := waiting;
  end;

  rule "enter"
    process_state[p] = waiting & my_ticket[p] = now_serving
  ==>
  begin
    for q: proc do
      assert !earlier[p][q] "no process is overtaken";
      earlier[q][p] := false;
    end;
    process_state[p] := critical;
  end;

  rule "leave"
    process_state[p] = critical
  ==>
  begin
    undefine my_ticket[p];
    process_state[p] := leaving;
  end;

  rule "serve the next"
    process_state[p] = leaving
  ==>
  begin
    now_serving := (now_serving + 1) % processes;
    process_state[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    process_state[p] := idle;
    for q: proc do earlier[p][q] := false; end;
  end;
  next_ticket := 0;
  now_serving := 0;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    process_state[p] = critical & process_state[q] = critical -> p = q
  end end;

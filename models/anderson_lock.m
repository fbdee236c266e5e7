-- verdict: verified
-- states: 772
-- orbits: 52
-- dialect: both
-- counted by: rumur
--
-- Anderson's array lock (T. E. Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors", 1990)
-- for four processes: fetch-and-increment gives each a slot in an array, on which it alone spins; a process that leaves opens
-- the next slot. Checked: mutual exclusion, and that either exactly one slot is open or the lock is held.

const
  processes: 4;

type
  proc: scalarset(processes);
  slot: 0..processes - 1;
  place: enum { idle, spinning, critical, leaving };

var
  at: array [proc] of place;
  mine: array [proc] of slot;
  open: array [slot] of boolean;
  last: slot; -- next slot to be assigned

ruleset p: proc do
  rule "take a slot"
    at[p] = idle
  ==>
  begin
    mine[p] := last;
    last := (last + 1) % processes;
    at[p] := spinning;
  end;

  rule "enter"
    at[p] = spinning & open[mine[p]]
  ==>
  begin
    at[p] := critical;
  end;

  rule "close the slot"
    at[p] = critical
  ==>
  begin
    open[mine[p]] := false;
    at[p] := leaving;
  end;

  rule "open the next slot"
    at[p] = leaving
  ==>
  begin
    open[(mine[p] + 1) % processes] := true;
    undefine mine[p];
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do at[p] := idle; end;
  for s: slot do open[s] := s = 0; end;
  last := 0;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    (at[p] = critical | at[p] = leaving) & (at[q] = critical | at[q] = leaving) -> p = q
  end end;

invariant "one slot is open, or none while a process leaves"
  forall s: slot do forall t: slot do open[s] & open[t] -> s = t end end
  & ((exists s: slot do open[s] end) | (exists p: proc do at[p] = leaving end));

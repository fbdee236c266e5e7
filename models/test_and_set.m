-- verdict: verified
-- states: 648
-- orbits: 36
-- dialect: both
-- counted by: rumur
--
-- The test-and-test-and-set lock (L. Rudolph and Z. Segall, 1984) for five processes: spin on a read, and try the atomic
-- exchange only if the lock was free. Only the number of processes in each state matters, so symmetry removes most states.

const
  processes: 5;

type
  proc: scalarset(processes);
  place: enum { idle, spinning, trying, critical };

var
  at: array [proc] of place;
  locked: boolean;

ruleset p: proc do
  rule "want"
    at[p] = idle
  ==>
  begin
    at[p] := spinning;
  end;

  rule "read"
    at[p] = spinning & !locked
  ==>
  begin
    at[p] := trying;
  end;

  rule "exchange"
    at[p] = trying
  ==>
  begin
    if locked then at[p] := spinning; else at[p] := critical; end;
    locked := true;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    locked := false;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
  end;
  locked := false;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

invariant "held when locked"
  locked = exists p: proc do at[p] = critical end;

-- verdict: verified
-- states: 817902
-- orbits: 7510
-- dialect: both
-- counted by: rumur
--
-- The MCS lock (J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
-- multiprocessors", 1991) with compare-and-swap. Waiting processes form a queue, and each spins on a flag of its own node.
-- Every access to shared memory and every test is a step. Five processes.
-- An undefined `proc` is the null pointer.
-- Checked: mutual exclusion, and that a releasing process passes the lock to exactly its successor in the queue.

const
  processes: 5;

type
  proc: scalarset(processes);
  place: enum {
    idle, exchanging, testing_before, linking, locking, spinning, critical, reading_next, swapping, awaiting_next, unlocking
  };

var
  at: array [proc] of place;
  locked: array [proc] of boolean;
  next: array [proc] of proc;
  before: array [proc] of proc;
  tail: proc;

ruleset p: proc do
  rule "clear the own node"
    at[p] = idle
  ==>
  begin
    undefine next[p];
    at[p] := exchanging;
  end;

  rule "exchange the tail"
    at[p] = exchanging
  ==>
  begin
    if !isundefined(tail) then before[p] := tail; end;
    tail := p;
    at[p] := testing_before;
  end;

  rule "test for a predecessor"
    at[p] = testing_before
  ==>
  begin
    if isundefined(before[p]) then at[p] := critical; else at[p] := locking; end;
  end;

  rule "lock the own node"
    at[p] = locking
  ==>
  begin
    locked[p] := true;
    at[p] := linking;
  end;

  rule "link to the predecessor"
    at[p] = linking
  ==>
  begin
    next[before[p]] := p;
    undefine before[p];
    at[p] := spinning;
  end;

  rule "spin"
    at[p] = spinning & !locked[p]
  ==>
  begin
    at[p] := critical;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    at[p] := reading_next;
  end;

  rule "read the successor"
    at[p] = reading_next
  ==>
  begin
    if isundefined(next[p]) then at[p] := swapping; else at[p] := unlocking; end;
  end;

  rule "compare and swap the tail"
    at[p] = swapping
  ==>
  begin
    if tail = p then
      undefine tail;
      at[p] := idle;
    else
      at[p] := awaiting_next;
    end;
  end;

  rule "wait until the successor is linked"
    at[p] = awaiting_next & !isundefined(next[p])
  ==>
  begin
    at[p] := unlocking;
  end;

  rule "unlock the next"
    at[p] = unlocking
  ==>
  begin
    assert at[next[p]] = spinning "the next one is spinning";
    locked[next[p]] := false;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    locked[p] := false;
  end;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

-- verdict: verified
-- states: 2053342
-- orbits: 18064
-- dialect: both
-- counted by: rumur
-- slow: yes
--
-- The MCS lock (J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on
-- shared-memory multiprocessors", 1991) with atomic exchange only, without compare-and-swap. A releasing
-- process exchanges the tail with null, and restores it if another process had queued behind it; processes
-- that queued in between (usurpers) are linked in front of the waiting ones. So the lock is not first
-- come, first served, but mutual exclusion holds. Five processes. An undefined `proc` is the null pointer.

const
  processes: 5;

type
  proc: scalarset(processes);
  place: enum {
    idle, exchanging, testing_before, locking, linking, spinning, critical, reading_next, taking_tail, returning_tail, awaiting_next,
    testing_usurper, handing_over, unlocking
  };

var
  at: array [proc] of place;
  locked: array [proc] of boolean;
  next: array [proc] of proc;
  before: array [proc] of proc;
  usurper: array [proc] of proc;
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
    if isundefined(next[p]) then at[p] := taking_tail; else at[p] := unlocking; end;
  end;

  rule "take the tail away"
    at[p] = taking_tail
  ==>
  begin
    if tail = p then
      at[p] := idle;
    else
      before[p] := tail;
      at[p] := returning_tail;
    end;
    undefine tail;
  end;

  rule "put the tail back"
    at[p] = returning_tail
  ==>
  begin
    if !isundefined(tail) then usurper[p] := tail; end;
    tail := before[p];
    undefine before[p];
    at[p] := awaiting_next;
  end;

  rule "wait until the successor is linked"
    at[p] = awaiting_next & !isundefined(next[p])
  ==>
  begin
    at[p] := testing_usurper;
  end;

  rule "test for a usurper"
    at[p] = testing_usurper
  ==>
  begin
    if isundefined(usurper[p]) then at[p] := unlocking; else at[p] := handing_over; end;
  end;

  rule "hand the queue over to the usurper"
    at[p] = handing_over
  ==>
  begin
    next[usurper[p]] := next[p];
    undefine usurper[p];
    at[p] := idle;
  end;

  rule "unlock the next"
    at[p] = unlocking
  ==>
  begin
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

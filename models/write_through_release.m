-- verdict: verified
-- states: 37408
-- orbits: 3570
-- dialect: both
-- counted by: rumur
--
-- Release consistency with write-through caches (K. Gharachorloo and others, "Memory consistency and event
-- ordering in scalable shared-memory multiprocessors", 1990), with two lines, three processors and one lock.
-- Copies are filled at any time and never invalidated by others; stores go into a write buffer and drain to
-- memory in any order. Acquiring the lock drops all copies, releasing it waits until the buffer is empty.
-- Checked: the holder of the lock reads the last value written, although others may read stale values.

const
  processors: 3;

type
  proc: scalarset(processors);
  line: scalarset(2);
  value: 0..1;

var
  memory: array [line] of value;
  latest: array [line] of value;
  holder: proc; -- undefined while the lock is free
  copy: array [proc] of array [line] of value;
  buffer: array [proc] of array [line] of value;

ruleset p: proc do
  rule "take the lock"
    isundefined(holder)
  ==>
  begin
    holder := p;
    undefine copy[p];
  end;

  rule "return the lock"
    !isundefined(holder) & holder = p & forall l: line do isundefined(buffer[p][l]) end
  ==>
  begin
    undefine holder;
  end;
end;

ruleset p: proc; l: line do
  rule "fill"
    isundefined(copy[p][l])
  ==>
  begin
    if isundefined(buffer[p][l]) then copy[p][l] := memory[l]; else copy[p][l] := buffer[p][l]; end;
  end;

  rule "drop"
    !isundefined(copy[p][l])
  ==>
  begin
    undefine copy[p][l];
  end;

  rule "drain"
    !isundefined(buffer[p][l])
  ==>
  begin
    memory[l] := buffer[p][l];
    undefine buffer[p][l];
  end;
end;

ruleset p: proc; l: line; v: value do
  rule "store"
    !isundefined(holder) & holder = p
  ==>
  begin
    buffer[p][l] := v;
    if !isundefined(copy[p][l]) then copy[p][l] := v; end;
    latest[l] := v;
  end;
end;

startstate
begin
  for l: line do
    memory[l] := 0;
    latest[l] := 0;
  end;
end;

invariant "the holder reads the latest"
  !isundefined(holder) ->
  forall l: line do !isundefined(copy[holder][l]) -> copy[holder][l] = latest[l] end;

invariant "memory is current when the lock is free"
  isundefined(holder) -> forall l: line do memory[l] = latest[l] end;

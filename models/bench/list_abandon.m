-- style: list
-- verdict: verified
-- states: 295832
-- orbits: 2558
--
-- Queue lock whose waiters may give up. Each waiter observes its predecessor. One that gives up removes itself from the
-- tail, or marks itself and waits until its successor has taken over the predecessor. The holder passes a value on.
type
  node: scalarset(5);
  value: 0..1;
  state: enum { idle, swapped, waiting, holding, released, giving_up, abandoned };

var
  at: array [node] of state;
  previous: array [node] of node;
  data: array [node] of value;
  tail: node;
  memory: value;
  latest: value;

startstate
begin
  for n: node do
    at[n] := idle;
  end;
  memory := 0;
  latest := 0;
end;

ruleset n: node do
  rule "swap into the tail" at[n] = idle ==>
  begin
    if !isundefined(tail) then previous[n] := tail; end;
    tail := n;
    at[n] := swapped;
  end;

  rule "queue" at[n] = swapped ==>
  begin
    if isundefined(previous[n]) then
      data[n] := memory;
      at[n] := holding;
    else
      at[n] := waiting;
    end;
  end;

  rule "take" at[n] = waiting & at[previous[n]] = released ==>
  begin
    data[n] := data[previous[n]];
    undefine data[previous[n]];
    at[previous[n]] := idle;
    undefine previous[n];
    at[n] := holding;
  end;

  rule "skip" (at[n] = waiting | at[n] = giving_up) & at[previous[n]] = abandoned ==>
  var gone: node;
  begin
    gone := previous[n];
    previous[n] := previous[gone];
    undefine previous[gone];
    at[gone] := idle;
  end;

  ruleset v: value do
    rule "store" at[n] = holding ==>
    begin
      data[n] := v;
      latest := v;
    end;
  end;

  rule "release" at[n] = holding ==>
  begin
    if tail = n then
      memory := data[n];
      undefine data[n];
      undefine tail;
      at[n] := idle;
    else
      at[n] := released;
    end;
  end;

  rule "give up" at[n] = waiting ==> begin at[n] := giving_up; end;

  rule "leave" at[n] = giving_up & at[previous[n]] != abandoned ==>
  begin
    if tail = n then
      tail := previous[n];
      if at[previous[n]] = released then
        -- The lock is free, and the last in the queue returns it.
        memory := data[previous[n]];
        undefine data[previous[n]];
        at[previous[n]] := idle;
        undefine tail;
      end;
      undefine previous[n];
      at[n] := idle;
    else
      at[n] := abandoned;
    end;
  end;
end;

invariant "one holder"
  forall a: node do forall b: node do a != b & at[a] = holding -> at[b] != holding & at[b] != released end end;
invariant "latest value"
  forall n: node do at[n] = holding | at[n] = released -> data[n] = latest end;
invariant "no waiter observes a process outside the queue"
  forall n: node do !isundefined(previous[n]) -> at[previous[n]] != idle end;

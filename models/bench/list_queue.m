-- style: list
-- verdict: verified
-- states: 751232
-- orbits: 1454
--
-- Queue of waiting caches, as for queue locks in hardware: a requester swaps itself into the tail of the queue, tells
-- its predecessor, and gets the line with its value from there.
type
  node: scalarset(6);
  value: 0..1;
  state: enum { idle, swapping, linking, waiting, holding, releasing };

var
  at: array [node] of state;
  has_next: array [node] of boolean;
  next: array [node] of node;
  old_tail: array [node] of node;
  grant: array [node] of record sent: boolean; data: value; end;
  data: array [node] of value;
  tail: node;
  memory: value;
  latest: value;

startstate
begin
  for n: node do
    at[n] := idle;
    has_next[n] := false;
    grant[n].sent := false;
  end;
  memory := 0;
  latest := 0;
end;

ruleset n: node do
  rule "request" at[n] = idle ==> begin at[n] := swapping; end;

  rule "swap" at[n] = swapping ==>
  begin
    if isundefined(tail) then
      grant[n].sent := true;
      grant[n].data := memory;
      at[n] := waiting;
    else
      old_tail[n] := tail;
      at[n] := linking;
    end;
    tail := n;
  end;

  rule "link" at[n] = linking ==>
  begin
    next[old_tail[n]] := n;
    has_next[old_tail[n]] := true;
    undefine old_tail[n];
    at[n] := waiting;
  end;

  rule "grant" at[n] = waiting & grant[n].sent ==>
  begin
    data[n] := grant[n].data;
    grant[n].sent := false;
    undefine grant[n].data;
    at[n] := holding;
  end;

  ruleset v: value do
    rule "store" at[n] = holding ==>
    begin
      data[n] := v;
      latest := v;
    end;
  end;

  rule "release" at[n] = holding ==> begin at[n] := releasing; end;

  rule "pass on" at[n] = releasing & has_next[n] ==>
  begin
    grant[next[n]].sent := true;
    grant[next[n]].data := data[n];
    has_next[n] := false;
    undefine next[n];
    undefine data[n];
    at[n] := idle;
  end;

  rule "return" at[n] = releasing & tail = n ==>
  begin
    memory := data[n];
    undefine tail;
    undefine data[n];
    at[n] := idle;
  end;
end;

invariant "one holder"
  forall a: node do forall b: node do a != b & at[a] = holding -> at[b] != holding end end;
invariant "latest value"
  forall a: node do at[a] = holding -> data[a] = latest end;

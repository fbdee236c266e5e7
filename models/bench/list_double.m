-- style: list
-- verdict: verified
-- states: 106240
-- orbits: 235
--
-- Doubly linked list of sharers in which any sharer may leave: it locks both neighbours, joins them, and is gone. A new
-- sharer becomes the first one.
type
  node: scalarset(6);
  state: enum { outside, attaching, member, locking, leaving };

var
  at: array [node] of state;
  has_next, has_previous: array [node] of boolean;
  next, previous: array [node] of node;
  lock: array [node] of boolean;
  head: node;

startstate
begin
  for n: node do
    at[n] := outside;
    has_next[n] := false;
    has_previous[n] := false;
    lock[n] := false;
  end;
end;

ruleset n: node do
  rule "attach" at[n] = outside & (isundefined(head) | at[head] = member & !lock[head]) ==>
  begin
    at[n] := attaching;
    lock[n] := true;
    if !isundefined(head) then
      next[n] := head;
      has_next[n] := true;
      lock[head] := true;
    end;
    head := n;
  end;

  rule "attached" at[n] = attaching ==>
  begin
    if has_next[n] then
      previous[next[n]] := n;
      has_previous[next[n]] := true;
      lock[next[n]] := false;
    end;
    lock[n] := false;
    at[n] := member;
  end;

  rule "lock" at[n] = member & !lock[n] & (has_previous[n] -> !lock[previous[n]]) & (has_next[n] -> !lock[next[n]]) ==>
  begin
    at[n] := locking;
    lock[n] := true;
    if has_previous[n] then lock[previous[n]] := true; end;
    if has_next[n] then lock[next[n]] := true; end;
  end;

  rule "unlink from the previous" at[n] = locking ==>
  begin
    if has_previous[n] then
      has_next[previous[n]] := has_next[n];
      if has_next[n] then next[previous[n]] := next[n]; else undefine next[previous[n]]; end;
    elsif has_next[n] then
      head := next[n];
    else
      undefine head;
    end;
    at[n] := leaving;
  end;

  rule "unlink from the next" at[n] = leaving ==>
  begin
    if has_next[n] then
      has_previous[next[n]] := has_previous[n];
      if has_previous[n] then previous[next[n]] := previous[n]; else undefine previous[next[n]]; end;
      lock[next[n]] := false;
    end;
    if has_previous[n] then lock[previous[n]] := false; end;
    lock[n] := false;
    at[n] := outside;
    has_next[n] := false;
    has_previous[n] := false;
    undefine next[n];
    undefine previous[n];
  end;
end;

invariant "links agree"
  forall n: node do
    at[n] = member & !lock[n] & has_next[n] & !lock[next[n]] -> has_previous[next[n]] & previous[next[n]] = n
  end;

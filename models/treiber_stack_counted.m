-- verdict: verified
-- states: 118136
-- dialect: both
-- counted by: rumur
--
-- treiber_stack.m with a version count in the top pointer, which every exchange compares and increments. It wraps around at
-- eight, which is enough. Shown: nodes are in the stack or with a thread, never both.

const
  nodes: 3;

type
  thread: 0..1;
  node: 1..nodes;
  link: 0..nodes; -- 0 is no node
  count: 0..7;
  place: enum { idle, read_next, exchange };

var
  top: link;
  changes: count; -- how often the top was exchanged
  next: array [node] of link;
  at: array [thread] of place;
  old: array [thread] of node; -- the top that was read
  below: array [thread] of link; -- what was beneath it
  seen: array [thread] of count;
  owner: array [node] of 0..2; -- who has popped it: thread 0, thread 1, or (2) nobody

-- Whether the next count is not one that somebody else has seen a whole turn ago.
function safe(t: thread): boolean;
begin
  return forall u: thread do u != t & at[u] != idle -> (changes + 1) % 8 != seen[u] end;
end;

ruleset t: thread do
  rule "pop: read the top"
    at[t] = idle & top != 0
  ==>
  begin
    old[t] := top;
    seen[t] := changes;
    at[t] := read_next;
  end;

  rule "pop: read what is beneath"
    at[t] = read_next
  ==>
  begin
    below[t] := next[old[t]];
    at[t] := exchange;
  end;

  rule "pop: exchange the top if it is still the same"
    at[t] = exchange & safe(t)
  ==>
  begin
    if top = old[t] & changes = seen[t] then
      top := below[t];
      changes := (changes + 1) % 8;
      assert owner[old[t]] = 2 "a node is popped once";
      owner[old[t]] := t;
    end;
    undefine old[t];
    undefine below[t];
    undefine seen[t];
    at[t] := idle;
  end;
end;

-- Pushing in one step is no weakening: what goes wrong goes wrong in pop.
ruleset t: thread; n: node do
  rule "push"
    at[t] = idle & owner[n] = t & safe(t)
  ==>
  begin
    next[n] := top;
    top := n;
    changes := (changes + 1) % 8;
    owner[n] := 2;
  end;
end;

startstate
begin
  top := nodes;
  changes := 0;
  for n: node do next[n] := n - 1; owner[n] := 2; end;
  for t: thread do at[t] := idle; end;
end;

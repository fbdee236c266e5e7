-- verdict: verified
-- states: 118136
-- dialect: both
-- counted by: rumur
--
-- treiber_stack.m with a version count in the top pointer, which every exchange compares and increments. It wraps around at
-- eight, which is enough. Checked: nodes are in the stack or with a thread, never both.

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
  changes: count; -- version: number of exchanges of the top
  next: array [node] of link;
  at: array [thread] of place;
  old: array [thread] of node; -- the top that was read
  below: array [thread] of link; -- the node below it that was read
  seen: array [thread] of count;
  owner: array [node] of 0..2; -- thread that has popped it, 0 or 1; 2 for none

-- True if no other thread still holds the next count from before a wrap-around.
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

  rule "pop: read the node below"
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

-- A push in one step loses no violation: the ABA problem occurs in pop.
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

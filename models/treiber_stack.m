-- verdict: violated
-- property: assert "a node is popped once"
-- steps: 13
-- dialect: both
-- counted by: rumur
--
-- Treiber's lock-free stack (R. K. Treiber, "Systems programming: coping with parallelism", 1986) with three reused nodes and
-- two threads, which has the ABA problem. One thread pops while the other pops, frees and pushes. Violation: compare-and-swap
-- takes a top that was popped and pushed again for an unchanged one, and the stack receives a node that is in use.

const
  nodes: 3;

type
  thread: 0..1;
  node: 1..nodes;
  link: 0..nodes; -- 0 is no node
  place: enum { idle, read_next, exchange };

var
  top: link;
  next: array [node] of link;
  at: array [thread] of place;
  old: array [thread] of node; -- the top that was read
  below: array [thread] of link; -- the node below it that was read
  owner: array [node] of 0..2; -- thread that has popped it, 0 or 1; 2 for none

ruleset t: thread do
  rule "pop: read the top"
    at[t] = idle & top != 0
  ==>
  begin
    old[t] := top;
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
    at[t] = exchange
  ==>
  begin
    if top = old[t] then
      top := below[t];
      assert owner[old[t]] = 2 "a node is popped once";
      owner[old[t]] := t;
    end;
    undefine old[t];
    undefine below[t];
    at[t] := idle;
  end;
end;

-- A push in one step loses no violation: the ABA problem occurs in pop.
ruleset t: thread; n: node do
  rule "push"
    at[t] = idle & owner[n] = t
  ==>
  begin
    next[n] := top;
    top := n;
    owner[n] := 2;
  end;
end;

startstate
begin
  top := nodes;
  for n: node do next[n] := n - 1; owner[n] := 2; end;
  for t: thread do at[t] := idle; end;
end;

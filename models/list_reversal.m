-- verdict: verified
-- states: 41151
-- orbits: 383
-- dialect: both
-- counted by: rumur
--
-- A linked list of up to five nodes with keys, with push, pop and reversal in place, one pointer at a time. Nodes
-- are a scalarset, so it does not matter which of them the allocator takes. Checked: no node is lost or shared;
-- the list, together with the part already reversed, has no cycle and holds exactly the nodes that are in use.

const
  node_count: 5;

type
  node: scalarset(node_count);
  key: 0..1;

var
  head: node; -- undefined for the empty list, as is `next` at its end
  reversed: node; -- the front of the part already reversed
  reversing: boolean;
  nodes: array [node] of record
    used: boolean;
    key: key;
    next: node;
  end;

-- Number of nodes from `n` on; a cycle would exceed the range, which is an error.
function length_from(n: node): 1..node_count;
var m: node; count: 1..node_count;
begin
  m := n;
  count := 1;
  while !isundefined(nodes[m].next) do
    m := nodes[m].next;
    count := count + 1;
  end;
  return count;
end;

function in_use(): 0..node_count;
var count: 0..node_count;
begin
  count := 0;
  for n: node do if nodes[n].used then count := count + 1; end; end;
  return count;
end;

ruleset n: node; k: key do
  rule "push"
    !nodes[n].used & !reversing
  ==>
  begin
    nodes[n].used := true;
    nodes[n].key := k;
    if !isundefined(head) then nodes[n].next := head; end;
    head := n;
  end;
end;

rule "pop"
  !isundefined(head) & !reversing
==>
var n: node;
begin
  n := head;
  if isundefined(nodes[n].next) then undefine head; else head := nodes[n].next; end;
  undefine nodes[n];
  nodes[n].used := false;
end;

rule "begin to reverse"
  !reversing & !isundefined(head)
==>
begin
  reversing := true;
end;

rule "turn one pointer"
  reversing & !isundefined(head)
==>
var n: node;
begin
  n := head;
  if isundefined(nodes[n].next) then undefine head; else head := nodes[n].next; end;
  if isundefined(reversed) then undefine nodes[n].next; else nodes[n].next := reversed; end;
  reversed := n;
end;

rule "end reversing"
  reversing & isundefined(head)
==>
begin
  head := reversed;
  undefine reversed;
  reversing := false;
end;

startstate
begin
  for n: node do nodes[n].used := false; end;
  reversing := false;
end;


invariant "nothing is lost"
  in_use() = (isundefined(head) ? 0 : length_from(head)) + (isundefined(reversed) ? 0 : length_from(reversed));

invariant "only nodes in use are linked"
  forall n: node do
    (!isundefined(nodes[n].next) -> nodes[n].used & nodes[nodes[n].next].used)
  end;

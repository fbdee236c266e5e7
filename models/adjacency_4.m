-- verdict: verified
-- states: 4096
-- orbits: 218
-- dialect: both
-- counted by: rumur
--
-- A directed graph on four interchangeable nodes with rules that add and remove edges. There are 2^12 graphs and, up to
-- renaming of nodes, 218 (sequence A000273 of the OEIS): a test of symmetry reductions, since only the edges distinguish nodes,
-- so sorting nodes by their own contents alone finds too many.

const
  node_count: 4;

type
  node: scalarset(node_count);

var
  edge: array [node] of array [node] of boolean;

ruleset a: node; b: node do
  rule "toggle an edge"
    a != b
  ==>
  begin
    edge[a][b] := !edge[a][b];
  end;
end;

startstate
begin
  for a: node do for b: node do edge[a][b] := false; end; end;
end;

invariant "no node has an edge to itself"
  forall a: node do !edge[a][a] end;

-- verdict: verified
-- states: 12
--
-- The last owner is seen, and one of two owners is the boss: the order in which they are looked at matters. With symmetry
-- this is undecided, and both results are shown.
type
  node: scalarset(2);
var
  owns: array [node] of boolean;
  boss, owner: node;

startstate begin for n: node do owns[n] := false; boss := n; end; undefine owner; end;

ruleset n: node do rule "take or leave" begin owns[n] := !owns[n]; end; end;

rule "look" begin for n: node do if owns[n] then owner := n; end; end; end;

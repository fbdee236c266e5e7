-- verdict: verified
-- states: 12
--
-- `owner` keeps the last owner in loop order, and `boss` distinguishes two owners, so the two orders give states that are
-- not equivalent. With symmetry the check is undecided, and shows both results.
type
  node: scalarset(2);
var
  owns: array [node] of boolean;
  boss, owner: node;

startstate begin for n: node do owns[n] := false; boss := n; end; undefine owner; end;

ruleset n: node do rule "take or leave" begin owns[n] := !owns[n]; end; end;

rule "look" begin for n: node do if owns[n] then owner := n; end; end; end;

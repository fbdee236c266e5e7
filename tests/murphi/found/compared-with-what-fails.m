-- verdict: violated
-- states: 1
-- deadlock: off
--
-- Found at random: a printed comparison whose one side has no value did not look at the other, where an undefined index
-- is used.
type
  node: scalarset(3);
var
  next: array [node] of node;
startstate
end;
ruleset a: node; b: node do
  rule "looks behind" (next[b] = (isundefined(next[next[b]]) ? a : next[next[b]])) ==>
  end;
end;

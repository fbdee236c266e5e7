-- verdict: verified
-- states: 4
--
-- A start state assigns to all values of a scalarset in a loop, as many public models do. A start state is a state like
-- any other, so the order of the iterations does not break symmetry.
type
  node: scalarset(3);
var
  home, owner: node;
  holds: array [node] of boolean;

startstate "the last value stays"
begin
  for n: node do home := n; owner := n; holds[n] := false; end;
end;

ruleset n: node do
  rule "take" owner != n ==> begin holds[owner] := false; owner := n; holds[n] := true; end;
end;

invariant "only the owner holds" forall n: node do holds[n] -> owner = n end;

-- verdict: verified
-- states: 9
--
-- A function returns the first free node. The order of the nodes does not matter, since the free nodes differ in nothing
-- else: a permutation maps one result to the other.
type node: scalarset(2);
var free: array [node] of boolean; taken: node;
function first_free(): node;
begin
  for n: node do if free[n] then return n; end; end;
  return taken;
end;
startstate begin for n: node do free[n] := true; end; end;
rule "take" exists n: node do free[n] end ==> begin taken := first_free(); free[taken] := false; end;
ruleset n: node do rule "give" !free[n] ==> begin free[n] := true; end; end;

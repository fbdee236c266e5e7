-- verdict: verified
-- states: 4
--
-- A function returns the first free node. The order of the nodes matters if two are free, one of which was the last to
-- be taken.
type node: scalarset(2);
var free: array [node] of boolean; taken, last: node;
function first_free(): node;
begin
  for n: node do if free[n] then return n; end; end;
  return taken;
end;
startstate begin for n: node do free[n] := true; end; end;
rule "take" isundefined(taken) ==> begin taken := first_free(); free[taken] := false; end;
rule "give" !isundefined(taken) ==> begin free[taken] := true; last := taken; undefine taken; end;

-- verdict: verified
-- states: 15
-- rumur: refuses
--
-- `owner` keeps the last owner in loop order. For any two orders, a permutation of nodes maps one result to the other.
type
  node: scalarset(3);
  any: union {node, enum {nobody}};
var
  owns: array [node] of boolean;
  owner: any;

startstate begin for n: node do owns[n] := false; end; owner := nobody; end;

ruleset n: node do rule "take" !owns[n] & owner = nobody ==> begin owns[n] := true; end; end;

rule "look" (exists n: node do owns[n] end) & owner = nobody ==>
begin
  for n: node do if owns[n] then owner := n; end; end;
end;

rule "leave" owner != nobody ==>
begin
  for n: node do owns[n] := false; end;
  owner := nobody;
end;

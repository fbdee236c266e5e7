-- verdict: verified
-- states: 11
-- rumur: refuses
--
-- The owner of a line is a cache, the memory or nobody: a union of a scalarset and an enumeration.
type
  cache: scalarset(2);
  other: enum { memory, nobody };
  agent: union { cache, other };
var owner: agent; had: array [agent] of boolean; n: 0..1;
startstate begin
  owner := nobody; n := 0;
  for a: agent do had[a] := false; end;
end;
ruleset c: cache do
  rule "take" owner = nobody ==> begin owner := c; had[c] := true; end;
  rule "give" owner = c ==> begin owner := memory; end;
end;
rule "write back" owner = memory ==> begin owner := nobody; end;
rule "forget" owner = nobody & had[owner] = false ==> begin
  for a: agent do if ismember(a, cache) then had[a] := false; end; end;
end;
invariant !ismember(owner, cache) | had[owner];
invariant !had[memory] & !had[nobody];

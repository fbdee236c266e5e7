-- verdict: violated
-- rumur: refuses
--
-- A value of a union is assigned to a variable of one member type that does not contain it.
type
  cache: enum { c1, c2 };
  other: enum { memory };
  agent: union { cache, other };
var owner: agent; last: cache;
startstate begin owner := c1; last := c1; end;
rule "to memory" begin owner := memory; end;
rule "remember" begin last := owner; end;

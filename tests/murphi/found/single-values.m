-- verdict: verified
-- states: 1
-- deadlock: off
--
-- States that take no bits at all, in an array over a scalarset.
type
  client: scalarset(2);
  only: enum { it };
var v: array [client] of only; w: only;
startstate begin
  w := it;
  for c: client do v[c] := it; end;
end;
rule begin w := it; end;

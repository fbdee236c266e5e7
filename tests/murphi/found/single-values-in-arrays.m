-- verdict: verified
-- states: 1
-- deadlock: off
--
-- Found at random: states that take no bits at all, in an array of arrays over a scalarset, where no element is alone.
type
  client: scalarset(3);
  only: enum { it };
var
  v: array [client] of array [client] of only;
startstate begin
  for c: client do for d: client do v[c][d] := it; end; end;
end;

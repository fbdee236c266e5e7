-- verdict: verified
-- states: 20
--
-- Three interchangeable clients share a lock.
type client: scalarset(3);
var owner: client; locked: boolean; asks: array [client] of boolean;
startstate begin locked := false; undefine owner; for c: client do asks[c] := false; end; end;
ruleset c: client do
  rule "ask" !asks[c] ==> begin asks[c] := true; end;
  rule "take" asks[c] & !locked ==> begin locked := true; owner := c; end;
  rule "give" locked & owner = c ==> begin locked := false; undefine owner; end;
end;
invariant locked = !isundefined(owner);

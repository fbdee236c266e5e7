-- verdict: violated
-- property: multiset full
-- steps: 5
-- dialect: cmurphi
-- counted by: brute_force.py
--
-- Three clients that repeat requests at any time, over a network that reorders messages and holds at most four. Violation: a
-- request for which the network has no space.

const
  clients: 3;
  capacity: 4;

type
  client: scalarset(clients);
  request: record
    from: client;
  end;

var
  network: multiset [capacity] of request;
  served: array [client] of boolean;

ruleset c: client do
  rule "request, perhaps again"
    !served[c]
  ==>
  var r: request;
  begin
    r.from := c;
    multisetadd(r, network);
  end;

  rule "forget"
    served[c]
  ==>
  begin
    served[c] := false;
  end;
end;

choose i: network do
  rule "serve"
    true
  ==>
  begin
    served[network[i].from] := true;
    multisetremove(i, network);
  end;
end;

startstate
begin
  for c: client do served[c] := false; end;
end;

-- verdict: violated
-- property: invariant "single writer"
-- steps: 8
-- dialect: both
-- counted by: rumur
--
-- german.m with a home that grants a shared copy although another client has the line
-- exclusively. Violation: a shortest path to a state with a writer and a reader.

const
  clients: 3;

type
  client: scalarset(clients);
  value: 0..1;
  state: enum { invalid, shared, exclusive };
  request: enum { no_request, want_shared, want_exclusive };
  order: enum { no_order, invalidate, grant_shared, grant_exclusive };
  reply: enum { no_reply, acknowledge };

var
  cache: array [client] of record
    state: state;
    data: value;
  end;
  requests: array [client] of request;
  orders: array [client] of record
    kind: order;
    data: value;
  end;
  replies: array [client] of record
    kind: reply;
    data: value;
  end;
  -- The home: current requester and request, possible sharers, sharers still to invalidate, and whether one is exclusive.
  serving: request;
  served: client;
  sharers: array [client] of boolean;
  to_invalidate: array [client] of boolean;
  exclusive_granted: boolean;
  memory: value;
  latest: value; -- value of the last store, for the invariant only

ruleset c: client do
  rule "client asks for a shared copy"
    cache[c].state = invalid & requests[c] = no_request
  ==>
  begin
    requests[c] := want_shared;
  end;

  rule "client asks for an exclusive copy"
    cache[c].state != exclusive & requests[c] = no_request
  ==>
  begin
    requests[c] := want_exclusive;
  end;

  rule "home picks a request"
    serving = no_request & requests[c] != no_request
  ==>
  begin
    serving := requests[c];
    served := c;
    requests[c] := no_request;
    for o: client do to_invalidate[o] := sharers[o]; end;
  end;

  rule "home invalidates"
    to_invalidate[c] & orders[c].kind = no_order &
    (serving = want_exclusive | (serving = want_shared & exclusive_granted))
  ==>
  begin
    orders[c].kind := invalidate;
    to_invalidate[c] := false;
  end;

  rule "client invalidates"
    orders[c].kind = invalidate & replies[c].kind = no_reply
  ==>
  begin
    orders[c].kind := no_order;
    replies[c].kind := acknowledge;
    if cache[c].state = exclusive then replies[c].data := cache[c].data; end;
    cache[c].state := invalid;
    undefine cache[c].data;
  end;

  rule "home takes an acknowledgement"
    replies[c].kind = acknowledge
  ==>
  begin
    replies[c].kind := no_reply;
    sharers[c] := false;
    if exclusive_granted then
      exclusive_granted := false;
      memory := replies[c].data;
      undefine replies[c].data;
    end;
  end;

  rule "client takes a shared copy"
    orders[c].kind = grant_shared
  ==>
  begin
    cache[c].state := shared;
    cache[c].data := orders[c].data;
    orders[c].kind := no_order;
    undefine orders[c].data;
  end;

  rule "client takes an exclusive copy"
    orders[c].kind = grant_exclusive
  ==>
  begin
    cache[c].state := exclusive;
    cache[c].data := orders[c].data;
    orders[c].kind := no_order;
    undefine orders[c].data;
  end;
end;

rule "home grants a shared copy"
  serving = want_shared & orders[served].kind = no_order
==>
begin
  orders[served].kind := grant_shared;
  orders[served].data := memory;
  sharers[served] := true;
  serving := no_request;
  undefine served;
end;

rule "home grants an exclusive copy"
  serving = want_exclusive & (forall c: client do !sharers[c] end) & orders[served].kind = no_order
==>
begin
  orders[served].kind := grant_exclusive;
  orders[served].data := memory;
  sharers[served] := true;
  exclusive_granted := true;
  serving := no_request;
  undefine served;
end;

ruleset c: client; v: value do
  rule "store"
    cache[c].state = exclusive
  ==>
  begin
    cache[c].data := v;
    latest := v;
  end;
end;

ruleset v: value do
  startstate
  begin
    for c: client do
      cache[c].state := invalid;
      requests[c] := no_request;
      orders[c].kind := no_order;
      replies[c].kind := no_reply;
      sharers[c] := false;
      to_invalidate[c] := false;
    end;
    serving := no_request;
    exclusive_granted := false;
    memory := v;
    latest := v;
  end;
end;

invariant "single writer"
  forall c: client do
    cache[c].state = exclusive -> forall o: client do o != c -> cache[o].state = invalid end
  end;

invariant "data value"
  forall c: client do cache[c].state != invalid -> cache[c].data = latest end;

invariant "memory is current unless granted exclusively"
  !exclusive_granted -> memory = latest;

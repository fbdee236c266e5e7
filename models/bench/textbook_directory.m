-- style: textbook
-- verdict: verified
-- states: 981377
-- orbits: 4712
--
-- Full-map directory with three states a cache. The home serves one request at a time: it invalidates the other copies,
-- collects their acknowledgements, and then grants the line.
type
  node: scalarset(6);
  value: 0..1;
  state: enum { invalid, shared, modified };
  request: enum { nothing, read, write };
  order: enum { no_order, invalidate, grant_read, grant_write };

var
  cache: array [node] of record state: state; data: value; end;
  wants: array [node] of request;
  orders: array [node] of record kind: order; data: value; end;
  acknowledged: array [node] of boolean;
  returned: array [node] of value;
  sharer: array [node] of boolean;
  pending: array [node] of boolean;
  has_owner: boolean;
  serving: request;
  client: node;
  memory: value;
  latest: value;

startstate
begin
  for n: node do
    cache[n].state := invalid;
    wants[n] := nothing;
    orders[n].kind := no_order;
    acknowledged[n] := false;
    sharer[n] := false;
    pending[n] := false;
  end;
  has_owner := false;
  serving := nothing;
  memory := 0;
  latest := 0;
end;

ruleset n: node do
  rule "ask to read" cache[n].state = invalid & wants[n] = nothing & orders[n].kind = no_order &
    (isundefined(client) | client != n) ==>
  begin
    wants[n] := read;
  end;

  rule "ask to write" cache[n].state != modified & wants[n] = nothing & orders[n].kind = no_order &
    (isundefined(client) | client != n) ==>
  begin
    wants[n] := write;
  end;

  rule "serve" serving = nothing & wants[n] != nothing & forall m: node do orders[m].kind = no_order end ==>
  begin
    serving := wants[n];
    client := n;
    wants[n] := nothing;
    for m: node do
      pending[m] := sharer[m] & m != n & (serving = write | has_owner);
      if pending[m] then orders[m].kind := invalidate; end;
    end;
  end;

  rule "invalidate" orders[n].kind = invalidate & !acknowledged[n] ==>
  begin
    orders[n].kind := no_order;
    if cache[n].state = modified then returned[n] := cache[n].data; end;
    cache[n].state := invalid;
    undefine cache[n].data;
    acknowledged[n] := true;
  end;

  rule "acknowledge" acknowledged[n] ==>
  begin
    acknowledged[n] := false;
    pending[n] := false;
    sharer[n] := false;
    if has_owner then
      memory := returned[n];
      has_owner := false;
    end;
    undefine returned[n];
  end;

  rule "receive" orders[n].kind = grant_read | orders[n].kind = grant_write ==>
  begin
    if orders[n].kind = grant_read then cache[n].state := shared; else cache[n].state := modified; end;
    cache[n].data := orders[n].data;
    orders[n].kind := no_order;
    undefine orders[n].data;
  end;

  ruleset v: value do
    rule "store" cache[n].state = modified ==>
    begin
      cache[n].data := v;
      latest := v;
    end;
  end;
end;

rule "grant" serving != nothing & forall n: node do !pending[n] end & orders[client].kind = no_order ==>
begin
  if serving = read then
    orders[client].kind := grant_read;
  else
    orders[client].kind := grant_write;
    has_owner := true;
  end;
  orders[client].data := memory;
  sharer[client] := true;
  serving := nothing;
  undefine client;
end;

invariant "single writer"
  forall n: node do forall m: node do
    n != m & cache[n].state = modified -> cache[m].state = invalid
  end end;
invariant "latest value"
  forall n: node do cache[n].state != invalid -> cache[n].data = latest end;

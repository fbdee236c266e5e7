-- style: multiset
-- verdict: verified
-- states: 48514
-- orbits: 2594
--
-- Directory protocol with two stable states. Requests and writebacks to the home, and messages to each cache, travel in
-- unordered networks.
type
  node: scalarset(4);
  value: 0..1;
  kind: enum { get, put_m, data, forward, put_ack, put_stale };
  message: record kind: kind; from: node; data: value; end;
  cache_state: enum { invalid, waiting, modified, evicting, superseded, outdated };
  network: multiset [4] of message;
  inbox: multiset [3] of message;

var
  cache: array [node] of record state: cache_state; data: value; end;
  to_home: network;
  to_cache: array [node] of inbox;
  owner: node;
  memory: value;
  latest: value;

procedure send_home(k: kind; from: node; data: value);
var m: message;
begin
  m.kind := k;
  m.from := from;
  m.data := data;
  multisetadd(m, to_home);
end;

procedure send(k: kind; to_node, from: node; data: value);
var m: message;
begin
  m.kind := k;
  m.from := from;
  m.data := data;
  multisetadd(m, to_cache[to_node]);
end;

startstate
begin
  for n: node do
    cache[n].state := invalid;
  end;
  memory := 0;
  latest := 0;
end;

ruleset n: node do
  rule "get" cache[n].state = invalid ==>
  begin
    send_home(get, n, 0);
    cache[n].state := waiting;
  end;

  ruleset v: value do
    rule "store" cache[n].state = modified ==>
    begin
      cache[n].data := v;
      latest := v;
    end;
  end;

  rule "evict" cache[n].state = modified ==>
  begin
    send_home(put_m, n, cache[n].data);
    cache[n].state := evicting;
  end;

  choose i: to_cache[n] do
    alias m: to_cache[n][i] do
      rule "receive" !(m.kind = forward & cache[n].state = waiting) ==>
      var from: node;
      begin
        from := m.from;
        switch m.kind
        case data:
          cache[n].data := m.data;
          cache[n].state := modified;
          multisetremove(i, to_cache[n]);
        case forward:
          multisetremove(i, to_cache[n]);
          send(data, from, n, cache[n].data);
          if cache[n].state = evicting then
            cache[n].state := superseded;
          else
            cache[n].state := invalid;
          end;
          undefine cache[n].data;
        case put_ack:
          multisetremove(i, to_cache[n]);
          cache[n].state := invalid;
          undefine cache[n].data;
        case put_stale:
          multisetremove(i, to_cache[n]);
          if cache[n].state = evicting then
            cache[n].state := outdated;
          else
            cache[n].state := invalid;
          end;
        else
          error "unexpected message";
        end;
      end;
    end;
  end;
end;

choose i: to_home do
  alias m: to_home[i] do
    rule "home" true ==>
    var from: node;
    begin
      from := m.from;
      if m.kind = get then
        if isundefined(owner) then
          send(data, from, from, memory);
        else
          send(forward, owner, from, 0);
        end;
        owner := from;
      else
        if !isundefined(owner) & owner = from then
          memory := m.data;
          undefine owner;
          send(put_ack, from, from, 0);
        else
          send(put_stale, from, from, 0);
        end;
      end;
      multisetremove(i, to_home);
    end;
  end;
end;

invariant "single writer"
  forall a: node do forall b: node do
    a != b & cache[a].state = modified -> cache[b].state != modified
  end end;
invariant "latest value"
  forall a: node do cache[a].state = modified -> cache[a].data = latest end;

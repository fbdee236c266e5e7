-- style: multiset
-- verdict: verified
-- states: 11232
-- orbits: 691
--
-- Directory protocol with three stable states and one unordered network. The home serves one request at a time, and
-- multicasts invalidations by a loop over the sharers; a sharer removes the invalidation before it sends the
-- acknowledgement.
type
  node: scalarset(4);
  kind: enum { get_s, get_m, inv, inv_ack, data_s, data_m, recall, returned };
  message: record kind: kind; at: node; end;
  cache_state: enum { cache_i, cache_s, cache_m, cache_is, cache_im };

var
  cache: array [node] of cache_state;
  net: multiset [8] of message;
  sharer: array [node] of boolean;
  owner: node;
  waiting: 0..4;
  requester: node;
  request: kind;

procedure send(k: kind; at: node);
var m: message;
begin
  m.kind := k;
  m.at := at;
  multisetadd(m, net);
end;

procedure grant();
begin
  if request = get_s then
    send(data_s, requester);
    sharer[requester] := true;
  else
    send(data_m, requester);
    owner := requester;
  end;
  undefine requester;
  undefine request;
end;

startstate
begin
  for n: node do
    cache[n] := cache_i;
    sharer[n] := false;
  end;
  waiting := 0;
end;

ruleset n: node do
  rule "read" cache[n] = cache_i ==>
  begin
    cache[n] := cache_is;
    send(get_s, n);
  end;
  rule "write" cache[n] = cache_i | cache[n] = cache_s ==>
  begin
    cache[n] := cache_im;
    send(get_m, n);
  end;
end;

choose i: net do
  alias m: net[i] do
    rule "request" (m.kind = get_s | m.kind = get_m) & isundefined(requester) ==>
    begin
      requester := m.at;
      request := m.kind;
      multisetremove(i, net);
      if !isundefined(owner) then
        send(recall, owner);
        waiting := 1;
      elsif request = get_m then
        for n: node do
          if sharer[n] then
            waiting := waiting + 1;
            send(inv, n);
          end;
          sharer[n] := false;
        end;
        if waiting = 0 then grant(); end;
      else
        grant();
      end;
    end;

    rule "invalidate" m.kind = inv & cache[m.at] != cache_is ==>
    var n: node;
    begin
      n := m.at;
      if cache[n] = cache_s then cache[n] := cache_i; end;
      multisetremove(i, net);
      send(inv_ack, n);
    end;

    rule "recall" m.kind = recall & cache[m.at] = cache_m ==>
    var n: node;
    begin
      n := m.at;
      cache[n] := cache_i;
      multisetremove(i, net);
      send(returned, n);
    end;

    rule "collect" m.kind = inv_ack | m.kind = returned ==>
    begin
      if m.kind = returned then undefine owner; end;
      waiting := waiting - 1;
      multisetremove(i, net);
      if waiting = 0 then grant(); end;
    end;

    rule "data" m.kind = data_s | m.kind = data_m ==>
    begin
      if m.kind = data_s then cache[m.at] := cache_s; else cache[m.at] := cache_m; end;
      multisetremove(i, net);
    end;
  end;
end;

invariant "single writer"
  forall a: node do forall b: node do
    a != b & cache[a] = cache_m -> cache[b] != cache_m & cache[b] != cache_s
  end end;

-- style: list
-- verdict: verified
-- states: 126528
-- orbits: 6078
--
-- Singly linked list of sharers, invalidated as a chain: the home knows the first sharer, and forwards each request to
-- it. A write travels from one sharer to the next, and the last one confirms it to the writer. An eviction purges the
-- whole list in the same manner, and returns the line to the home.
type
  node: scalarset(4);
  value: 0..1;
  state: enum { outside, clean, dirty };
  request: enum { nothing, read, write, flush };

var
  cache: array [node] of record state: state; has_next: boolean; next: node; data: value; end;
  wants: array [node] of request;
  sent: array [node] of boolean;
  -- A forwarded request at the first sharer, and an invalidation on its way along the list.
  forward: array [node] of record kind: request; requester: node; end;
  chain: array [node] of record sent: boolean; to_home: boolean; writer: node; end;
  reply: array [node] of record sent: boolean; has_next: boolean; next: node; data: value; end;
  has_data: array [node] of boolean;
  confirmed: array [node] of boolean;
  flushing: boolean;
  returned: record sent: boolean; data: value; end;
  head: node;
  memory: value;
  latest: value;

startstate
begin
  for n: node do
    cache[n].state := outside;
    cache[n].has_next := false;
    wants[n] := nothing;
    sent[n] := false;
    forward[n].kind := nothing;
    chain[n].sent := false;
    reply[n].sent := false;
    has_data[n] := false;
    confirmed[n] := false;
  end;
  flushing := false;
  returned.sent := false;
  memory := 0;
  latest := 0;
end;

-- Sends an invalidation to the next sharer, or confirms it after the last one.
procedure pass_on(n: node; to_home: boolean; writer: node);
begin
  if cache[n].has_next then
    chain[cache[n].next].sent := true;
    chain[cache[n].next].to_home := to_home;
    if !to_home then chain[cache[n].next].writer := writer; end;
  elsif to_home then
    returned.sent := true;
    returned.data := cache[n].data;
  else
    confirmed[writer] := true;
  end;
  cache[n].state := outside;
  cache[n].has_next := false;
  undefine cache[n].next;
  undefine cache[n].data;
end;

procedure complete_write(n: node);
begin
  if has_data[n] & confirmed[n] then
    cache[n].state := dirty;
    wants[n] := nothing;
    has_data[n] := false;
    confirmed[n] := false;
  end;
end;

ruleset n: node do
  rule "read" cache[n].state = outside & wants[n] = nothing ==> begin wants[n] := read; sent[n] := true; end;
  rule "write" cache[n].state = outside & wants[n] = nothing ==> begin wants[n] := write; sent[n] := true; end;
  rule "flush" cache[n].state != outside & wants[n] = nothing ==> begin wants[n] := flush; sent[n] := true; end;

  ruleset v: value do
    rule "store" cache[n].state = dirty ==>
    begin
      cache[n].data := v;
      latest := v;
    end;
  end;

  rule "home" sent[n] & !flushing & (isundefined(head) | forward[head].kind = nothing) ==>
  begin
    sent[n] := false;
    if wants[n] = flush then
      if isundefined(head) then
        wants[n] := nothing;
      else
        flushing := true;
        forward[head].kind := flush;
        forward[head].requester := n;
        undefine head;
      end;
    else
      if isundefined(head) then
        reply[n].sent := true;
        reply[n].has_next := false;
        reply[n].data := memory;
        if wants[n] = write then confirmed[n] := true; end;
      else
        forward[head].kind := wants[n];
        forward[head].requester := n;
      end;
      head := n;
    end;
  end;

  rule "first sharer" forward[n].kind != nothing & cache[n].state != outside ==>
  begin
    alias requester: forward[n].requester do
      switch forward[n].kind
      case read:
        reply[requester].sent := true;
        reply[requester].has_next := true;
        reply[requester].next := n;
        reply[requester].data := cache[n].data;
        cache[n].state := clean;
      case write:
        reply[requester].sent := true;
        reply[requester].has_next := false;
        reply[requester].data := cache[n].data;
        pass_on(n, false, requester);
      case flush:
        pass_on(n, true, n);
        wants[requester] := nothing;
      end;
    end;
    forward[n].kind := nothing;
    undefine forward[n].requester;
  end;

  rule "next sharer" chain[n].sent ==>
  begin
    if chain[n].to_home then pass_on(n, true, n); else pass_on(n, false, chain[n].writer); end;
    chain[n].sent := false;
    undefine chain[n].to_home;
    undefine chain[n].writer;
  end;

  rule "reply" reply[n].sent ==>
  begin
    cache[n].data := reply[n].data;
    if wants[n] = read then
      cache[n].has_next := reply[n].has_next;
      if reply[n].has_next then cache[n].next := reply[n].next; end;
      cache[n].state := clean;
      wants[n] := nothing;
    else
      has_data[n] := true;
      complete_write(n);
    end;
    reply[n].sent := false;
    undefine reply[n].has_next;
    undefine reply[n].next;
    undefine reply[n].data;
  end;

  rule "confirmation" confirmed[n] & has_data[n] ==> begin complete_write(n); end;
end;

rule "returned" returned.sent ==>
begin
  memory := returned.data;
  returned.sent := false;
  undefine returned.data;
  flushing := false;
end;

invariant "single writer"
  forall a: node do forall b: node do
    a != b & cache[a].state = dirty -> cache[b].state = outside
  end end;
invariant "latest value"
  forall n: node do cache[n].state != outside -> cache[n].data = latest end;

-- style: generated
-- verdict: verified
-- states: 61532
-- orbits: 10424
--
-- Directory protocol with an owned state and a blocking home, as a generator of protocols prints it: one function for
-- each kind of message. The owner supplies the line to readers, and memory is written by evictions alone.
const
  caches: 3;
  capacity: 3;
type
  cache_id: scalarset(caches);
  value: 0..1;
  message_type: enum { get_s, get_m, put_om, fwd_get_s, fwd_get_m, inv, inv_ack, data, ack_count, put_ack, unblock };
  cache_state: enum { cache_i, cache_is_d, cache_im_d, cache_s, cache_sm_d, cache_o, cache_om_c, cache_m, cache_oi_a, cache_ii_a };
  home_state: enum { home_unowned, home_owned };
  message: record
    mtype: message_type;
    source: cache_id;
    acks: 0..caches;
    cl: value;
  end;
  channel: record
    slots: array [0..capacity - 1] of message;
    count: 0..capacity;
  end;

var
  entries: array [cache_id] of record
    state: cache_state;
    cl: value;
    acks_received: 0..caches;
    acks_expected: 0..caches;
    has_count: boolean;
  end;
  home: record
    state: home_state;
    cl: value;
    owner: cache_id;
    sharers: array [cache_id] of boolean;
    blocked: boolean;
  end;
  requests: channel;
  unblocks: channel;
  forwards: array [cache_id] of channel;
  responses: array [cache_id] of channel;
  last_write: value;

procedure push(var c: channel; m: message);
begin
  c.slots[c.count] := m;
  c.count := c.count + 1;
end;

procedure pop(var c: channel);
begin
  for i := 0 to capacity - 2 do
    if i < c.count - 1 then c.slots[i] := c.slots[i + 1]; end;
  end;
  undefine c.slots[c.count - 1];
  c.count := c.count - 1;
end;

function make(t: message_type; source: cache_id; acks: 0..caches): message;
var m: message;
begin
  m.mtype := t;
  m.source := source;
  m.acks := acks;
  return m;
end;

function with_data(source: cache_id; acks: 0..caches; cl: value): message;
var m: message;
begin
  m := make(data, source, acks);
  m.cl := cl;
  return m;
end;

function invalidate_sharers(requester: cache_id): 0..caches;
var count: 0..caches;
begin
  count := 0;
  for c: cache_id do
    if home.sharers[c] & c != requester then
      push(forwards[c], make(inv, requester, 0));
      count := count + 1;
    end;
    home.sharers[c] := false;
  end;
  return count;
end;

procedure home_unowned_request(m: message);
begin
  switch m.mtype
  case get_s:
    push(responses[m.source], with_data(m.source, 0, home.cl));
    home.sharers[m.source] := true;
    home.blocked := true;
  case get_m:
    push(responses[m.source], with_data(m.source, invalidate_sharers(m.source), home.cl));
    home.owner := m.source;
    home.state := home_owned;
    home.blocked := true;
  case put_om:
    push(forwards[m.source], make(put_ack, m.source, 0));
  else
    error "unexpected request without an owner";
  end;
end;

procedure home_owned_request(m: message);
var count: 0..caches;
begin
  switch m.mtype
  case get_s:
    push(forwards[home.owner], make(fwd_get_s, m.source, 0));
    home.sharers[m.source] := true;
    home.blocked := true;
  case get_m:
    count := invalidate_sharers(m.source);
    if home.owner = m.source then
      push(responses[m.source], make(ack_count, m.source, count));
    else
      push(forwards[home.owner], make(fwd_get_m, m.source, count));
      home.owner := m.source;
    end;
    home.blocked := true;
  case put_om:
    push(forwards[m.source], make(put_ack, m.source, 0));
    if home.owner = m.source then
      home.cl := m.cl;
      undefine home.owner;
      home.state := home_unowned;
    end;
  else
    error "unexpected request with an owner";
  end;
end;

procedure cache_invalidation(m: message; c: cache_id);
begin
  alias entry: entries[c] do
    push(responses[m.source], make(inv_ack, c, 0));
    switch entry.state
    case cache_s:
      entry.state := cache_i;
      undefine entry.cl;
    case cache_sm_d:
      entry.state := cache_im_d;
      undefine entry.cl;
    case cache_i, cache_is_d, cache_im_d, cache_ii_a:
      -- The copy was evicted without a message.
    else
      error "unexpected invalidation";
    end;
  end;
end;

procedure cache_owner_forward(m: message; c: cache_id);
begin
  alias entry: entries[c] do
    push(responses[m.source], with_data(c, m.acks, entry.cl));
    if m.mtype = fwd_get_s then
      switch entry.state
      case cache_m:
        entry.state := cache_o;
      case cache_o, cache_om_c, cache_oi_a:
        -- The owner remains the owner.
      else
        error "unexpected forward of a read";
      end;
    else
      undefine entry.cl;
      switch entry.state
      case cache_m, cache_o:
        entry.state := cache_i;
      case cache_om_c:
        entry.state := cache_im_d;
      case cache_oi_a:
        entry.state := cache_ii_a;
      else
        error "unexpected forward of a write";
      end;
    end;
  end;
end;

procedure complete(c: cache_id; s: cache_state);
begin
  alias entry: entries[c] do
    entry.state := s;
    entry.acks_received := 0;
    entry.acks_expected := 0;
    entry.has_count := false;
    push(unblocks, make(unblock, c, 0));
  end;
end;

procedure cache_response(m: message; c: cache_id);
begin
  alias entry: entries[c] do
    switch m.mtype
    case inv_ack:
      entry.acks_received := entry.acks_received + 1;
    case data:
      entry.cl := m.cl;
      entry.acks_expected := m.acks;
      entry.has_count := true;
    case ack_count:
      assert entry.state = cache_om_c "only an owner gets a count without data";
      entry.acks_expected := m.acks;
      entry.has_count := true;
    else
      error "unexpected response";
    end;
    if entry.has_count & entry.acks_received = entry.acks_expected then
      switch entry.state
      case cache_is_d:
        complete(c, cache_s);
      case cache_im_d, cache_sm_d, cache_om_c:
        complete(c, cache_m);
      else
        error "no request";
      end;
    end;
  end;
end;

startstate
begin
  for c: cache_id do
    entries[c].state := cache_i;
    entries[c].acks_received := 0;
    entries[c].acks_expected := 0;
    entries[c].has_count := false;
    forwards[c].count := 0;
    responses[c].count := 0;
    home.sharers[c] := false;
  end;
  home.state := home_unowned;
  home.cl := 0;
  home.blocked := false;
  requests.count := 0;
  unblocks.count := 0;
  last_write := 0;
end;

ruleset c: cache_id do
  alias entry: entries[c] do
    rule "load" entry.state = cache_i & requests.count < capacity ==>
    begin
      push(requests, make(get_s, c, 0));
      entry.state := cache_is_d;
    end;

    rule "store without permission"
      (entry.state = cache_i | entry.state = cache_s | entry.state = cache_o) & requests.count < capacity ==>
    begin
      push(requests, make(get_m, c, 0));
      switch entry.state
      case cache_i:
        entry.state := cache_im_d;
      case cache_s:
        entry.state := cache_sm_d;
      case cache_o:
        entry.state := cache_om_c;
      end;
    end;

    ruleset v: value do
      rule "store" entry.state = cache_m ==>
      begin
        entry.cl := v;
        last_write := v;
      end;
    end;

    rule "evict S" entry.state = cache_s ==>
    begin
      entry.state := cache_i;
      undefine entry.cl;
    end;

    rule "evict O or M" (entry.state = cache_o | entry.state = cache_m) & requests.count < capacity ==>
      var m: message;
    begin
      m := make(put_om, c, 0);
      m.cl := entry.cl;
      push(requests, m);
      entry.state := cache_oi_a;
    end;

    rule "forward" forwards[c].count > 0 ==>
      var m: message;
    begin
      m := forwards[c].slots[0];
      pop(forwards[c]);
      switch m.mtype
      case inv:
        cache_invalidation(m, c);
      case fwd_get_s, fwd_get_m:
        cache_owner_forward(m, c);
      case put_ack:
        entry.state := cache_i;
        undefine entry.cl;
      end;
    end;

    rule "response" responses[c].count > 0 ==>
      var m: message;
    begin
      m := responses[c].slots[0];
      pop(responses[c]);
      cache_response(m, c);
    end;
  end;
end;

rule "request" requests.count > 0 & !home.blocked ==>
  var m: message;
begin
  m := requests.slots[0];
  pop(requests);
  switch home.state
  case home_unowned:
    home_unowned_request(m);
  case home_owned:
    home_owned_request(m);
  end;
end;

rule "unblock" unblocks.count > 0 ==>
begin
  home.blocked := false;
  pop(unblocks);
end;

invariant "single writer"
  forall a: cache_id do forall b: cache_id do
    a != b & entries[a].state = cache_m ->
      entries[b].state != cache_m & entries[b].state != cache_o & entries[b].state != cache_s
  end end;
invariant "latest value"
  forall a: cache_id do
    entries[a].state = cache_m | entries[a].state = cache_o | entries[a].state = cache_s -> entries[a].cl = last_write
  end;

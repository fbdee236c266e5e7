-- style: generated
-- verdict: verified
-- states: 56314
-- orbits: 9568
--
-- Directory protocol with an exclusive clean state and a blocking home, as a generator of protocols prints it. The home
-- takes no request until the requester has confirmed the last one, and the owner has returned its data.
const
  caches: 3;
  capacity: 3;
type
  cache_id: scalarset(caches);
  value: 0..1;
  message_type: enum { get_s, get_m, put_e, put_m, fwd_get_s, fwd_get_m, inv, inv_ack, data, data_e, put_ack, unblock };
  cache_state: enum { cache_i, cache_is_d, cache_im_d, cache_im_a, cache_s, cache_sm_d, cache_e, cache_m, cache_ei_a, cache_mi_a, cache_ii_a };
  home_state: enum { home_i, home_s, home_em };
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
  cache_entry: record
    state: cache_state;
    cl: value;
    acks_received: 0..caches;
    acks_expected: 0..caches;
  end;

var
  entries: array [cache_id] of cache_entry;
  home: record
    state: home_state;
    cl: value;
    owner: cache_id;
    sharers: array [cache_id] of boolean;
    waits_unblock: boolean;
    waits_data: boolean;
  end;
  requests: channel;
  confirmations: channel;
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

function make(t: message_type; source: cache_id): message;
var m: message;
begin
  m.mtype := t;
  m.source := source;
  m.acks := 0;
  return m;
end;

function with_data(t: message_type; source: cache_id; acks: 0..caches; cl: value): message;
var m: message;
begin
  m := make(t, source);
  m.acks := acks;
  m.cl := cl;
  return m;
end;

function invalidate_sharers(requester: cache_id): 0..caches;
var count: 0..caches;
begin
  count := 0;
  for c: cache_id do
    if home.sharers[c] & c != requester then
      push(forwards[c], make(inv, requester));
      count := count + 1;
    end;
    home.sharers[c] := false;
  end;
  return count;
end;

procedure block(for_data: boolean);
begin
  home.waits_unblock := true;
  home.waits_data := for_data;
end;

procedure home_put(m: message);
begin
  push(forwards[m.source], make(put_ack, m.source));
  if home.state = home_em & home.owner = m.source then
    if m.mtype = put_m then home.cl := m.cl; end;
    home.state := home_i;
    undefine home.owner;
  end;
end;

procedure home_request(m: message);
begin
  switch home.state
  case home_i:
    switch m.mtype
    case get_s, get_m:
      if m.mtype = get_s then
        push(responses[m.source], with_data(data_e, m.source, 0, home.cl));
      else
        push(responses[m.source], with_data(data, m.source, 0, home.cl));
      end;
      home.owner := m.source;
      home.state := home_em;
      block(false);
    case put_e, put_m:
      home_put(m);
    else
      error "unexpected request in state I";
    end;
  case home_s:
    switch m.mtype
    case get_s:
      push(responses[m.source], with_data(data, m.source, 0, home.cl));
      home.sharers[m.source] := true;
      block(false);
    case get_m:
      push(responses[m.source], with_data(data, m.source, invalidate_sharers(m.source), home.cl));
      home.owner := m.source;
      home.state := home_em;
      block(false);
    case put_e, put_m:
      home_put(m);
    else
      error "unexpected request in state S";
    end;
  case home_em:
    switch m.mtype
    case get_s:
      push(forwards[home.owner], make(fwd_get_s, m.source));
      home.sharers[m.source] := true;
      home.sharers[home.owner] := true;
      undefine home.owner;
      home.state := home_s;
      block(true);
    case get_m:
      push(forwards[home.owner], make(fwd_get_m, m.source));
      home.owner := m.source;
      block(false);
    case put_e, put_m:
      home_put(m);
    else
      error "unexpected request in state EM";
    end;
  end;
end;

procedure cache_forward(m: message; c: cache_id);
begin
  alias entry: entries[c] do
    switch m.mtype
    case inv:
      push(responses[m.source], make(inv_ack, c));
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
    case fwd_get_s:
      push(responses[m.source], with_data(data, c, 0, entry.cl));
      push(confirmations, with_data(data, c, 0, entry.cl));
      switch entry.state
      case cache_e, cache_m:
        entry.state := cache_s;
      case cache_ei_a, cache_mi_a:
        entry.state := cache_ii_a;
        undefine entry.cl;
      else
        error "unexpected forward of a read";
      end;
    case fwd_get_m:
      push(responses[m.source], with_data(data, c, 0, entry.cl));
      undefine entry.cl;
      switch entry.state
      case cache_e, cache_m:
        entry.state := cache_i;
      case cache_ei_a, cache_mi_a:
        entry.state := cache_ii_a;
      else
        error "unexpected forward of a write";
      end;
    case put_ack:
      entry.state := cache_i;
      undefine entry.cl;
    else
      error "unexpected forward";
    end;
  end;
end;

procedure complete_write(c: cache_id);
begin
  alias entry: entries[c] do
    entry.state := cache_m;
    entry.acks_received := 0;
    entry.acks_expected := 0;
    push(confirmations, make(unblock, c));
  end;
end;

procedure cache_response(m: message; c: cache_id);
begin
  alias entry: entries[c] do
    switch m.mtype
    case inv_ack:
      entry.acks_received := entry.acks_received + 1;
      if entry.state = cache_im_a & entry.acks_received = entry.acks_expected then complete_write(c); end;
    case data_e:
      assert entry.state = cache_is_d "only a read gets an exclusive copy";
      entry.cl := m.cl;
      entry.state := cache_e;
      push(confirmations, make(unblock, c));
    case data:
      entry.cl := m.cl;
      switch entry.state
      case cache_is_d:
        entry.state := cache_s;
        push(confirmations, make(unblock, c));
      case cache_im_d, cache_sm_d:
        entry.acks_expected := m.acks;
        if m.acks = entry.acks_received then complete_write(c); else entry.state := cache_im_a; end;
      else
        error "unexpected data";
      end;
    else
      error "unexpected response";
    end;
  end;
end;

startstate
begin
  for c: cache_id do
    entries[c].state := cache_i;
    entries[c].acks_received := 0;
    entries[c].acks_expected := 0;
    forwards[c].count := 0;
    responses[c].count := 0;
    home.sharers[c] := false;
  end;
  home.state := home_i;
  home.cl := 0;
  home.waits_unblock := false;
  home.waits_data := false;
  requests.count := 0;
  confirmations.count := 0;
  last_write := 0;
end;

ruleset c: cache_id do
  alias entry: entries[c] do
    rule "load in I" entry.state = cache_i & requests.count < capacity ==>
    begin
      push(requests, make(get_s, c));
      entry.state := cache_is_d;
    end;

    rule "store in I" entry.state = cache_i & requests.count < capacity ==>
    begin
      push(requests, make(get_m, c));
      entry.state := cache_im_d;
    end;

    rule "store in S" entry.state = cache_s & requests.count < capacity ==>
    begin
      push(requests, make(get_m, c));
      entry.state := cache_sm_d;
    end;

    rule "evict S" entry.state = cache_s ==>
    begin
      entry.state := cache_i;
      undefine entry.cl;
    end;

    rule "evict E" entry.state = cache_e & requests.count < capacity ==>
    begin
      push(requests, make(put_e, c));
      entry.state := cache_ei_a;
    end;

    rule "evict M" entry.state = cache_m & requests.count < capacity ==>
    begin
      push(requests, with_data(put_m, c, 0, entry.cl));
      entry.state := cache_mi_a;
    end;

    ruleset v: value do
      rule "store in E or M" entry.state = cache_e | entry.state = cache_m ==>
      begin
        entry.state := cache_m;
        entry.cl := v;
        last_write := v;
      end;
    end;

    rule "forward" forwards[c].count > 0 & confirmations.count < capacity ==>
      var m: message;
    begin
      m := forwards[c].slots[0];
      pop(forwards[c]);
      cache_forward(m, c);
    end;

    rule "response" responses[c].count > 0 & confirmations.count < capacity ==>
      var m: message;
    begin
      m := responses[c].slots[0];
      pop(responses[c]);
      cache_response(m, c);
    end;
  end;
end;

rule "request" requests.count > 0 & !home.waits_unblock & !home.waits_data ==>
  var m: message;
begin
  m := requests.slots[0];
  pop(requests);
  home_request(m);
end;

rule "confirmation" confirmations.count > 0 ==>
begin
  if confirmations.slots[0].mtype = data then
    home.cl := confirmations.slots[0].cl;
    home.waits_data := false;
  else
    home.waits_unblock := false;
  end;
  pop(confirmations);
end;

invariant "single writer"
  forall a: cache_id do forall b: cache_id do
    a != b & (entries[a].state = cache_m | entries[a].state = cache_e) ->
      entries[b].state != cache_m & entries[b].state != cache_e & entries[b].state != cache_s
  end end;
invariant "latest value"
  forall a: cache_id do
    entries[a].state = cache_m | entries[a].state = cache_e | entries[a].state = cache_s -> entries[a].cl = last_write
  end;

-- style: generated
-- verdict: verified
-- states: 60976
-- orbits: 10326
--
-- The protocol of generated_msi.m without upgrades of shared lines.
const
  caches: 3;
  capacity: 4;
type
  cache_id: scalarset(caches);
  access: enum { load, store, evict };
  value: 0..1;
  message_type: enum { get_s, get_m, put_m, fwd_get_s, fwd_get_m, inv, inv_ack, data, put_ack };
  cache_state: enum { cache_i, cache_is_d, cache_is_d_i, cache_im_d, cache_im_a, cache_s, cache_sm_d, cache_sm_a, cache_m, cache_mi_a };
  home_state: enum { home_i, home_s, home_m, home_s_d };
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
  end;
  -- Requests to the home, forwards from it, and responses between caches.
  requests: channel;
  forwards: array [cache_id] of channel;
  responses: array [cache_id] of channel;
  writebacks: channel;
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

function with_data(source: cache_id; acks: 0..caches; cl: value): message;
var m: message;
begin
  m := make(data, source);
  m.acks := acks;
  m.cl := cl;
  return m;
end;

function sharer_count(): 0..caches;
var count: 0..caches;
begin
  count := 0;
  for c: cache_id do
    if home.sharers[c] then count := count + 1; end;
  end;
  return count;
end;

procedure clear_sharers();
begin
  for c: cache_id do home.sharers[c] := false; end;
end;

procedure invalidate_sharers(requester: cache_id);
begin
  for c: cache_id do
    if home.sharers[c] & c != requester then push(forwards[c], make(inv, requester)); end;
  end;
end;

function have_room(): boolean;
begin
  for c: cache_id do
    if forwards[c].count = capacity | responses[c].count = capacity then return false; end;
  end;
  return writebacks.count < capacity;
end;

-- Returns true if the home takes the request.
function home_request(m: message): boolean;
var others: 0..caches;
begin
  others := sharer_count();
  if home.sharers[m.source] then others := others - 1; end;
  switch home.state
  case home_i:
    switch m.mtype
    case get_s:
      home.sharers[m.source] := true;
      push(responses[m.source], with_data(m.source, 0, home.cl));
      home.state := home_s;
      return true;
    case get_m:
      home.owner := m.source;
      push(responses[m.source], with_data(m.source, 0, home.cl));
      home.state := home_m;
      return true;
    case put_m:
      push(forwards[m.source], make(put_ack, m.source));
      return true;
    else
      error "unexpected request in state I";
    end;
  case home_s:
    switch m.mtype
    case get_s:
      home.sharers[m.source] := true;
      push(responses[m.source], with_data(m.source, 0, home.cl));
      return true;
    case get_m:
      push(responses[m.source], with_data(m.source, others, home.cl));
      invalidate_sharers(m.source);
      clear_sharers();
      home.owner := m.source;
      home.state := home_m;
      return true;
    case put_m:
      push(forwards[m.source], make(put_ack, m.source));
      return true;
    else
      error "unexpected request in state S";
    end;
  case home_m:
    switch m.mtype
    case get_s:
      push(forwards[home.owner], make(fwd_get_s, m.source));
      home.sharers[m.source] := true;
      home.sharers[home.owner] := true;
      undefine home.owner;
      home.state := home_s_d;
      return true;
    case get_m:
      push(forwards[home.owner], make(fwd_get_m, m.source));
      home.owner := m.source;
      return true;
    case put_m:
      push(forwards[m.source], make(put_ack, m.source));
      if home.owner = m.source then
        home.cl := m.cl;
        undefine home.owner;
        home.state := home_i;
      end;
      return true;
    else
      error "unexpected request in state M";
    end;
  case home_s_d:
    if m.mtype = put_m then
      push(forwards[m.source], make(put_ack, m.source));
      return true;
    end;
    return false;
  end;
  return false;
end;

-- Returns true if the cache takes the forward.
function cache_forward(m: message; c: cache_id): boolean;
begin
  alias entry: entries[c] do
    switch entry.state
    case cache_s, cache_sm_d, cache_is_d, cache_is_d_i, cache_im_d, cache_i:
      if m.mtype = inv then
        push(responses[m.source], make(inv_ack, c));
        if entry.state = cache_s then
          entry.state := cache_i;
          undefine entry.cl;
        elsif entry.state = cache_is_d then
          entry.state := cache_is_d_i;
        elsif entry.state = cache_sm_d then
          entry.state := cache_im_d;
          undefine entry.cl;
        end;
        return true;
      end;
      return false;
    case cache_m, cache_mi_a:
      switch m.mtype
      case fwd_get_s:
        push(responses[m.source], with_data(c, 0, entry.cl));
        push(writebacks, with_data(c, 0, entry.cl));
        if entry.state = cache_m then entry.state := cache_s; end;
        return true;
      case fwd_get_m:
        push(responses[m.source], with_data(c, 0, entry.cl));
        if entry.state = cache_m then
          entry.state := cache_i;
          undefine entry.cl;
        end;
        return true;
      case put_ack:
        if entry.state = cache_m then return false; end;
        entry.state := cache_i;
        undefine entry.cl;
        return true;
      case inv:
        if entry.state = cache_m then return false; end;
        push(responses[m.source], make(inv_ack, c));
        return true;
      else
        error "unexpected forward";
      end;
    case cache_im_a, cache_sm_a:
      return false;
    end;
  end;
  return false;
end;

procedure complete_write(c: cache_id);
begin
  alias entry: entries[c] do
    entry.state := cache_m;
    entry.acks_received := 0;
    entry.acks_expected := 0;
  end;
end;

-- Returns true if the cache takes the response.
function cache_response(m: message; c: cache_id): boolean;
begin
  alias entry: entries[c] do
    if m.mtype = inv_ack then
      entry.acks_received := entry.acks_received + 1;
      if (entry.state = cache_im_a | entry.state = cache_sm_a) & entry.acks_received = entry.acks_expected then
        complete_write(c);
      end;
      return true;
    end;
    switch entry.state
    case cache_is_d:
      entry.cl := m.cl;
      entry.state := cache_s;
      return true;
    case cache_is_d_i:
      entry.state := cache_i;
      return true;
    case cache_im_d, cache_sm_d:
      entry.cl := m.cl;
      entry.acks_expected := m.acks;
      if m.acks = entry.acks_received then
        complete_write(c);
      elsif entry.state = cache_im_d then
        entry.state := cache_im_a;
      else
        entry.state := cache_sm_a;
      end;
      return true;
    else
      error "unexpected response";
    end;
  end;
  return false;
end;

procedure reset();
begin
  for c: cache_id do
    entries[c].state := cache_i;
    entries[c].acks_received := 0;
    entries[c].acks_expected := 0;
    undefine entries[c].cl;
    forwards[c].count := 0;
    responses[c].count := 0;
  end;
  clear_sharers();
  home.state := home_i;
  home.cl := 0;
  undefine home.owner;
  requests.count := 0;
  writebacks.count := 0;
  last_write := 0;
end;

startstate
begin
  reset();
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


    rule "evict S" entry.state = cache_s ==>
    begin
      entry.state := cache_i;
      undefine entry.cl;
    end;

    ruleset v: value do
      rule "store in M" entry.state = cache_m ==>
      begin
        entry.cl := v;
        last_write := v;
      end;
    end;

    rule "evict M" entry.state = cache_m & requests.count < capacity ==>
      var m: message;
    begin
      m := make(put_m, c);
      m.cl := entry.cl;
      push(requests, m);
      entry.state := cache_mi_a;
    end;

    rule "forward" forwards[c].count > 0 & have_room() ==>
    begin
      if cache_forward(forwards[c].slots[0], c) then pop(forwards[c]); end;
    end;

    rule "response" responses[c].count > 0 & have_room() ==>
    begin
      if cache_response(responses[c].slots[0], c) then pop(responses[c]); end;
    end;
  end;
end;

rule "request" requests.count > 0 & have_room() ==>
begin
  if home_request(requests.slots[0]) then pop(requests); end;
end;

rule "writeback" writebacks.count > 0 & home.state = home_s_d ==>
begin
  home.cl := writebacks.slots[0].cl;
  home.state := home_s;
  pop(writebacks);
end;

invariant "single writer"
  forall a: cache_id do forall b: cache_id do
    a != b & entries[a].state = cache_m -> entries[b].state != cache_m & entries[b].state != cache_s
  end end;
invariant "latest value"
  forall a: cache_id do entries[a].state = cache_m -> entries[a].cl = last_write end;

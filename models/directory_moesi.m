-- verdict: verified
-- states: 39288
-- orbits: 7038
-- dialect: both
-- counted by: rumur
--
-- directory_msi.m with the owned state of MOESI, but without the exclusive state (MOSI; P. Sweazey and A. J. Smith, 1986,
-- here with a directory): an owner whose line becomes shared still responds to requests and writes the line back, and memory
-- stays stale. An owner that wants to write again gets write permission without data, unless another writer comes first.

const
  caches: 3;

type
  cache: scalarset(caches);
  value: 0..1;
  count: 0..caches;
  -- i_s: waits for a shared copy. i_m: waits to write. s_m, o_m: upgrade from shared, from owned. m_i: write-back
  -- unacknowledged; i_i: the same after a forwarded store.
  state: enum { invalid, shared, owned, modified, i_s, i_m, s_m, o_m, m_i, i_i };
  request: enum { no_request, get_s, get_m, put_m };
  forward: enum { no_forward, forward_s, forward_m, drop };
  answer_kind: enum { no_answer, data, upgraded, put_done };
  home_state: enum { h_invalid, h_shared, h_owned };

var
  line: array [cache] of record
    state: state;
    data: value;
    has_data: boolean; -- in i_m and s_m: data received, acknowledgements may be missing
    needed: count; -- number of acknowledgements announced with the data
    got: count; -- number of acknowledgements received
  end;
  requests: array [cache] of record
    kind: request;
    data: value;
  end;
  forwards: array [cache] of record
    kind: forward;
    requester: cache;
    acks: count;
  end;
  answers: array [cache] of record
    kind: answer_kind;
    data: value;
    acks: count;
  end;
  home: record
    state: home_state;
    busy: boolean;
    served: cache;
    owner: cache;
    sharers: array [cache] of boolean;
  end;
  done: boolean;
  memory: value;
  latest: value; -- value of the last store, for the invariant only

function readable(s: state): boolean;
begin
  return s = shared | s = owned | s = modified | s = s_m | s = o_m;
end;

procedure ask(c: cache; r: request; s: state);
begin
  requests[c].kind := r;
  line[c].state := s;
end;

procedure answer(c: cache; kind: answer_kind; v: value; n: count);
begin
  assert answers[c].kind = no_answer "one answer at a time";
  answers[c].kind := kind;
  answers[c].data := v;
  answers[c].acks := n;
end;

procedure clear_forward(c: cache);
begin
  forwards[c].kind := no_forward;
  forwards[c].acks := 0;
  undefine forwards[c].requester;
end;

function is_owner(c: cache): boolean;
begin
  return line[c].state = modified | line[c].state = owned | line[c].state = o_m | line[c].state = m_i;
end;

procedure lose(c: cache);
begin
  undefine line[c].data;
  line[c].has_data := false;
end;

procedure send_forward(c: cache; f: forward; r: cache; n: count);
begin
  assert forwards[c].kind = no_forward "one forward at a time";
  forwards[c].kind := f;
  forwards[c].requester := r;
  forwards[c].acks := n;
end;

ruleset c: cache do
  rule "load miss"
    line[c].state = invalid & requests[c].kind = no_request
  ==>
  begin
    ask(c, get_s, i_s);
  end;

  rule "store miss"
    line[c].state = invalid & requests[c].kind = no_request
  ==>
  begin
    ask(c, get_m, i_m);
  end;

  rule "upgrade"
    line[c].state = shared & requests[c].kind = no_request
  ==>
  begin
    ask(c, get_m, s_m);
  end;

  rule "upgrade an owned copy"
    line[c].state = owned & requests[c].kind = no_request
  ==>
  begin
    ask(c, get_m, o_m);
  end;

  rule "drop a shared copy"
    line[c].state = shared
  ==>
  begin
    line[c].state := invalid;
    lose(c);
  end;

  rule "write back"
    (line[c].state = modified | line[c].state = owned) & requests[c].kind = no_request
  ==>
  begin
    requests[c].data := line[c].data;
    ask(c, put_m, m_i);
  end;

  rule "invalidated"
    forwards[c].kind = drop
  ==>
  begin
    switch line[c].state
    case shared:
      line[c].state := invalid;
      lose(c);
    case s_m:
      line[c].state := i_m;
      lose(c);
    case invalid, i_s, i_m:
      -- The sharer had dropped its copy silently.
    else
      error "invalidation in an impossible state";
    end;
    line[forwards[c].requester].got := line[forwards[c].requester].got + 1;
    clear_forward(c);
  end;

  rule "forwarded load"
    forwards[c].kind = forward_s
  ==>
  begin
    assert is_owner(c) "only an owner receives a forwarded load";
    answer(forwards[c].requester, data, line[c].data, 0);
    if line[c].state = modified then line[c].state := owned; end;
    clear_forward(c);
  end;

  rule "forwarded store"
    forwards[c].kind = forward_m
  ==>
  begin
    assert is_owner(c) "only an owner receives a forwarded store";
    answer(forwards[c].requester, data, line[c].data, forwards[c].acks);
    switch line[c].state
    case modified, owned:
      line[c].state := invalid;
    case o_m:
      line[c].state := i_m;
    case m_i:
      line[c].state := i_i;
    end;
    lose(c);
    clear_forward(c);
  end;

  rule "data for a load"
    answers[c].kind = data & line[c].state = i_s
  ==>
  begin
    line[c].state := shared;
    line[c].data := answers[c].data;
    clear answers[c];
    done := true;
  end;

  rule "data for a store"
    answers[c].kind = data & (line[c].state = i_m | line[c].state = s_m)
  ==>
  begin
    line[c].data := answers[c].data;
    line[c].has_data := true;
    line[c].needed := answers[c].acks;
    clear answers[c];
  end;

  rule "granted without data"
    answers[c].kind = upgraded
  ==>
  begin
    assert line[c].state = o_m "only an owner is granted without data";
    line[c].has_data := true;
    line[c].needed := answers[c].acks;
    clear answers[c];
  end;

  rule "all acknowledgements are there"
    (line[c].state = i_m | line[c].state = s_m | line[c].state = o_m) & line[c].has_data & line[c].got = line[c].needed
  ==>
  begin
    line[c].state := modified;
    line[c].has_data := false;
    line[c].needed := 0;
    line[c].got := 0;
    done := true;
  end;

  rule "write-back is acknowledged"
    answers[c].kind = put_done
  ==>
  begin
    assert line[c].state = m_i | line[c].state = i_i "only a write-back is acknowledged";
    line[c].state := invalid;
    lose(c);
    clear answers[c];
  end;

  rule "home serves a load"
    requests[c].kind = get_s & !home.busy
  ==>
  begin
    home.busy := true;
    home.served := c;
    if home.state = h_owned then
      send_forward(home.owner, forward_s, c, 0);
    else
      answer(c, data, memory, 0);
      home.state := h_shared;
    end;
    home.sharers[c] := true;
    requests[c].kind := no_request;
  end;

  rule "home serves a store"
    requests[c].kind = get_m & !home.busy
  ==>
  var others: count;
  begin
    home.busy := true;
    home.served := c;
    others := 0;
    for o: cache do
      if o != c & home.sharers[o] then
        send_forward(o, drop, c, 0);
        others := others + 1;
      end;
      home.sharers[o] := false;
    end;
    if home.state != h_owned then
      answer(c, data, memory, others);
    elsif home.owner = c then
      answer(c, upgraded, memory, others);
    else
      send_forward(home.owner, forward_m, c, others);
    end;
    home.state := h_owned;
    home.owner := c;
    requests[c].kind := no_request;
  end;

  rule "home takes a write-back"
    requests[c].kind = put_m & !home.busy & answers[c].kind = no_answer
  ==>
  begin
    if home.state = h_owned & home.owner = c then
      memory := requests[c].data;
      home.state := h_shared;
      undefine home.owner;
    end;
    answers[c].kind := put_done;
    requests[c].kind := no_request;
    undefine requests[c].data;
  end;
end;

rule "home completes the request"
  done
==>
begin
  done := false;
  home.busy := false;
  undefine home.served;
end;

ruleset c: cache; v: value do
  rule "store"
    line[c].state = modified
  ==>
  begin
    line[c].data := v;
    latest := v;
  end;
end;

ruleset v: value do
  startstate
  begin
    for c: cache do
      line[c].state := invalid;
      line[c].has_data := false;
      line[c].needed := 0;
      line[c].got := 0;
      requests[c].kind := no_request;
      forwards[c].kind := no_forward;
      forwards[c].acks := 0;
      clear answers[c];
      home.sharers[c] := false;
    end;
    home.state := h_invalid;
    home.busy := false;
    done := false;
    memory := v;
    latest := v;
  end;
end;

invariant "single writer"
  forall c: cache do
    line[c].state = modified ->
    forall o: cache do o != c -> !readable(line[o].state) end
  end;

invariant "data value"
  forall c: cache do
    readable(line[c].state) -> line[c].data = latest
  end;

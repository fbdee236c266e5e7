-- verdict: verified
-- states: 44640
-- orbits: 7884
-- dialect: both
-- counted by: rumur
--
-- directory_msi.m with the exclusive state of MESI: a load that finds no copy gets the line exclusively, and a store to it
-- needs no message (M. S. Papamarcos and J. H. Patel, 1984, here with a directory instead of their bus). The home treats
-- exclusive lines as modified: it forwards requests to their owner, who writes the line back on eviction.

const
  caches: 3;

type
  cache: scalarset(caches);
  value: 0..1;
  count: 0..caches;
  -- i_s: waits for a shared copy. i_m: waits to write. s_m: upgrade. m_i: write-back unacknowledged; s_i, i_i: the
  -- same after a forwarded load or a forwarded store.
  state: enum { invalid, shared, exclusive, modified, i_s, i_m, s_m, m_i, s_i, i_i };
  request: enum { no_request, get_s, get_m, put_m };
  forward: enum { no_forward, forward_s, forward_m, drop };
  answer: enum { no_answer, data, data_exclusive, put_done };
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
  end;
  answers: array [cache] of record
    kind: answer;
    data: value;
    acks: count;
  end;
  home: record
    state: home_state;
    busy: boolean;
    served: cache;
    owner: cache;
    sharers: array [cache] of boolean;
    awaits_back: boolean; -- the home waits for the data of an owner that became a sharer
  end;
  back: record
    there: boolean;
    data: value;
  end;
  done: boolean;
  memory: value;
  latest: value; -- value of the last store, for the invariant only

function owns(c: cache): boolean;
begin
  return line[c].state = modified | line[c].state = exclusive;
end;

procedure ask(c: cache; r: request; s: state);
begin
  requests[c].kind := r;
  line[c].state := s;
end;

procedure answer_data(c: cache; kind: answer; v: value; n: count);
begin
  assert answers[c].kind = no_answer "one answer at a time";
  answers[c].kind := kind;
  answers[c].data := v;
  answers[c].acks := n;
end;

procedure lose(c: cache);
begin
  undefine line[c].data;
  line[c].has_data := false;
end;

procedure send_forward(c: cache; f: forward; r: cache);
begin
  assert forwards[c].kind = no_forward "one forward at a time";
  forwards[c].kind := f;
  forwards[c].requester := r;
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

  rule "drop a shared copy"
    line[c].state = shared
  ==>
  begin
    line[c].state := invalid;
    lose(c);
  end;

  rule "write back"
    owns(c) & requests[c].kind = no_request
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
    case invalid, i_s, i_m, s_i:
      -- The sharer had dropped its copy silently.
    else
      error "invalidation in an impossible state";
    end;
    line[forwards[c].requester].got := line[forwards[c].requester].got + 1;
    forwards[c].kind := no_forward;
    undefine forwards[c].requester;
  end;

  rule "forwarded load"
    forwards[c].kind = forward_s & !back.there
  ==>
  begin
    assert owns(c) | line[c].state = m_i "only an owner receives a forwarded load";
    answer_data(forwards[c].requester, data, line[c].data, 0);
    back.there := true;
    back.data := line[c].data;
    if owns(c) then
      line[c].state := shared;
    else
      line[c].state := s_i;
      lose(c);
    end;
    forwards[c].kind := no_forward;
    undefine forwards[c].requester;
  end;

  rule "forwarded store"
    forwards[c].kind = forward_m
  ==>
  begin
    assert owns(c) | line[c].state = m_i "only an owner receives a forwarded store";
    answer_data(forwards[c].requester, data, line[c].data, 0);
    if owns(c) then line[c].state := invalid; else line[c].state := i_i; end;
    lose(c);
    forwards[c].kind := no_forward;
    undefine forwards[c].requester;
  end;

  rule "data for a load"
    (answers[c].kind = data | answers[c].kind = data_exclusive) & line[c].state = i_s
  ==>
  begin
    if answers[c].kind = data then line[c].state := shared; else line[c].state := exclusive; end;
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

  rule "all acknowledgements are there"
    (line[c].state = i_m | line[c].state = s_m) & line[c].has_data & line[c].got = line[c].needed
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
    assert line[c].state = m_i | line[c].state = s_i | line[c].state = i_i "only a write-back is acknowledged";
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
      send_forward(home.owner, forward_s, c);
      home.awaits_back := true;
      home.sharers[home.owner] := true;
      undefine home.owner;
      home.sharers[c] := true;
      home.state := h_shared;
    elsif home.state = h_shared then
      answer_data(c, data, memory, 0);
      home.sharers[c] := true;
    else
      answer_data(c, data_exclusive, memory, 0);
      home.owner := c;
      home.state := h_owned;
    end;
    requests[c].kind := no_request;
  end;

  rule "home serves a store"
    requests[c].kind = get_m & !home.busy
  ==>
  var others: count;
  begin
    home.busy := true;
    home.served := c;
    if home.state = h_owned then
      send_forward(home.owner, forward_m, c);
    else
      others := 0;
      for o: cache do
        if o != c & home.sharers[o] then
          send_forward(o, drop, c);
          others := others + 1;
        end;
        home.sharers[o] := false;
      end;
      answer_data(c, data, memory, others);
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
      home.state := h_invalid;
      undefine home.owner;
    else
      home.sharers[c] := false;
    end;
    answers[c].kind := put_done;
    requests[c].kind := no_request;
    undefine requests[c].data;
  end;
end;

rule "home takes the data of a shared owner"
  back.there
==>
begin
  memory := back.data;
  back.there := false;
  undefine back.data;
  home.awaits_back := false;
end;

rule "home completes the request"
  done & !home.awaits_back
==>
begin
  done := false;
  home.busy := false;
  undefine home.served;
end;

ruleset c: cache; v: value do
  rule "store"
    owns(c)
  ==>
  begin
    line[c].state := modified;
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
      clear answers[c];
      home.sharers[c] := false;
    end;
    home.state := h_invalid;
    home.busy := false;
    home.awaits_back := false;
    back.there := false;
    done := false;
    memory := v;
    latest := v;
  end;
end;

invariant "single writer"
  forall c: cache do
    owns(c) ->
    forall o: cache do o != c -> !owns(o) & line[o].state != shared & line[o].state != s_m end
  end;

invariant "data value"
  forall c: cache do
    owns(c) | line[c].state = shared | line[c].state = s_m -> line[c].data = latest
  end;

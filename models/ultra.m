-- verdict: verified
-- states: 12832
-- orbits: 2382
-- dialect: both
-- counted by: rumur
--
-- A packet-switched snoopless bus in the style of the Ultra Port Architecture of Sun's first UltraSPARC machines: a system
-- controller keeps a copy of every cache's tag, snoops only the caches concerned, and answers when all have responded. Two
-- classes of requests race: a miss first sends the victim's dirty line (writeback) and then the miss itself (read to share,
-- read to own). A writeback whose line was invalidated in between is cancelled. States are those of MOESI. Three processors.
-- Checked: tags agree with the caches when no message is in flight, one owner, and every reader has the latest value.

const
  processors: 3;

type
  proc: scalarset(processors);
  value: 0..1;
  state: enum { invalid, shared, exclusive, owned, modified };
  request: enum { no_request, read_to_share, read_to_own, write_back };
  snoop: enum { no_snoop, copy_back, copy_back_invalidate, invalidate };
  answer: enum { no_answer, data_shared, data_exclusive, ownership, take_data, cancelled };

var
  cache: array [proc] of state;
  data: array [proc] of value;
  requests: array [proc] of request;
  snoops: array [proc] of snoop;
  answers: array [proc] of answer;
  answer_data: array [proc] of value;
  -- The system controller: its tags, current requester and request, snoops outstanding, and data received.
  tags: array [proc] of state;
  served: proc;
  serving: request;
  waits_for: array [proc] of boolean;
  has_data: boolean;
  line_data: value;
  memory: value;
  latest: value;

function owns(s: state): boolean;
begin
  return s = exclusive | s = owned | s = modified;
end;

-- True if the processor has no request or answer in flight.
function free(p: proc): boolean;
begin
  return requests[p] = no_request & answers[p] = no_answer & !(serving != no_request & served = p);
end;

procedure lose(p: proc);
begin
  cache[p] := invalid;
  undefine data[p];
end;

procedure finish();
begin
  undefine served;
  serving := no_request;
  has_data := false;
  undefine line_data;
end;

ruleset p: proc do
  rule "load miss"
    cache[p] = invalid & free(p)
  ==>
  begin
    requests[p] := read_to_share;
  end;

  rule "store miss or upgrade"
    !(cache[p] = modified | cache[p] = exclusive) & free(p)
  ==>
  begin
    requests[p] := read_to_own;
  end;

  rule "write back"
    (cache[p] = modified | cache[p] = owned) & free(p)
  ==>
  begin
    requests[p] := write_back;
  end;

  rule "controller takes a read to share"
    serving = no_request & requests[p] = read_to_share
  ==>
  begin
    requests[p] := no_request;
    serving := read_to_share;
    served := p;
    for o: proc do
      if o != p & owns(tags[o]) then
        snoops[o] := copy_back;
        waits_for[o] := true;
      end;
    end;
  end;

  rule "controller takes a read to own"
    serving = no_request & requests[p] = read_to_own
  ==>
  begin
    requests[p] := no_request;
    serving := read_to_own;
    served := p;
    for o: proc do
      if o != p & tags[o] != invalid then
        if owns(tags[o]) then snoops[o] := copy_back_invalidate; else snoops[o] := invalidate; end;
        waits_for[o] := true;
      end;
    end;
  end;

  rule "controller takes a write back"
    serving = no_request & requests[p] = write_back
  ==>
  begin
    requests[p] := no_request;
    if tags[p] = modified | tags[p] = owned | tags[p] = exclusive then
      serving := write_back;
      served := p;
      answers[p] := take_data;
    else
      answers[p] := cancelled;
    end;
  end;

  rule "copy back"
    snoops[p] = copy_back
  ==>
  begin
    assert owns(cache[p]) "the tags contain an owner";
    has_data := true;
    line_data := data[p];
    if cache[p] = modified then cache[p] := owned; end;
    if cache[p] = exclusive then cache[p] := shared; end;
    snoops[p] := no_snoop;
    waits_for[p] := false;
    -- The snoop makes a clean exclusive line shared and a modified one owned; the answer reports the new state.
    tags[p] := cache[p];
  end;

  rule "copy back and invalidate"
    snoops[p] = copy_back_invalidate
  ==>
  begin
    assert owns(cache[p]) "the tags contain an owner";
    has_data := true;
    line_data := data[p];
    lose(p);
    tags[p] := invalid;
    snoops[p] := no_snoop;
    waits_for[p] := false;
  end;

  rule "invalidate"
    snoops[p] = invalidate
  ==>
  begin
    lose(p);
    tags[p] := invalid;
    snoops[p] := no_snoop;
    waits_for[p] := false;
  end;

  rule "shared data"
    answers[p] = data_shared
  ==>
  begin
    cache[p] := shared;
    data[p] := answer_data[p];
    answers[p] := no_answer;
    undefine answer_data[p];
    finish();
  end;

  rule "exclusive data"
    answers[p] = data_exclusive
  ==>
  begin
    cache[p] := tags[p];
    data[p] := answer_data[p];
    answers[p] := no_answer;
    undefine answer_data[p];
    finish();
  end;

  rule "ownership without data"
    answers[p] = ownership
  ==>
  begin
    assert cache[p] != invalid "a grant without data goes to a cache with a copy";
    cache[p] := modified;
    answers[p] := no_answer;
    finish();
  end;

  rule "give the data of a write back"
    answers[p] = take_data
  ==>
  begin
    memory := data[p];
    lose(p);
    tags[p] := invalid;
    answers[p] := no_answer;
    finish();
  end;

  rule "write back cancelled"
    answers[p] = cancelled
  ==>
  begin
    assert cache[p] = invalid | cache[p] = shared "another request took the line";
    answers[p] := no_answer;
  end;

  rule "drop a clean line"
    (cache[p] = shared | cache[p] = exclusive) & free(p) & snoops[p] = no_snoop
  ==>
  begin
    -- The controller learns of the replacement of a clean line immediately.
    lose(p);
    tags[p] := invalid;
  end;
end;

rule "controller answers a read to share"
  serving = read_to_share & (forall o: proc do !waits_for[o] end) & answers[served] = no_answer
==>
begin
  if has_data then answer_data[served] := line_data; else answer_data[served] := memory; end;
  if exists o: proc do o != served & tags[o] != invalid end then
    answers[served] := data_shared;
    tags[served] := shared;
  else
    answers[served] := data_exclusive;
    tags[served] := exclusive;
  end;
end;

rule "controller answers a read to own"
  serving = read_to_own & (forall o: proc do !waits_for[o] end) & answers[served] = no_answer
==>
begin
  if tags[served] != invalid then
    answers[served] := ownership;
  else
    answers[served] := data_exclusive;
    if has_data then answer_data[served] := line_data; else answer_data[served] := memory; end;
  end;
  tags[served] := modified;
end;

ruleset p: proc; v: value do
  rule "store"
    (cache[p] = modified | cache[p] = exclusive)
  ==>
  begin
    cache[p] := modified;
    data[p] := v;
    latest := v;
  end;
end;

ruleset v: value do
  startstate
  begin
    for p: proc do
      cache[p] := invalid;
      requests[p] := no_request;
      snoops[p] := no_snoop;
      answers[p] := no_answer;
      tags[p] := invalid;
      waits_for[p] := false;
    end;
    serving := no_request;
    has_data := false;
    memory := v;
    latest := v;
  end;
end;

invariant "one owner"
  forall p: proc do forall o: proc do owns(cache[p]) & owns(cache[o]) -> p = o end end;

invariant "single writer"
  forall p: proc do
    cache[p] = modified | cache[p] = exclusive -> forall o: proc do o != p -> cache[o] = invalid end
  end;

invariant "every reader has the latest value"
  forall p: proc do cache[p] != invalid -> data[p] = latest end;

invariant "tags agree when nothing is in flight"
  serving = no_request ->
  forall p: proc do tags[p] = cache[p] | (tags[p] = exclusive & cache[p] = modified) end;

-- verdict: verified
-- states: 2958442
-- orbits: 142350
-- dialect: both
-- counted by: rumur
-- slow: yes
--
-- A directory protocol in the style of FLASH (J. Kuskin and others, "The Stanford FLASH multiprocessor", 1994; verified
-- by S. Park and D. L. Dill, "Verification of FLASH cache coherence protocol by aggregation of distributed
-- transactions", 1996), four nodes and a home. The home is never blocked: while a line is pending it refuses requests
-- (nak), and the requester retries. Requests to a dirty line are forwarded to its owner, who answers the requester and
-- notifies the home, or refuses when it has just written the line back. Writers get their data immediately; the
-- invalidations that they cause are acknowledged to the home, which keeps the line pending until all have arrived.
-- Checked: one dirty copy, no unexpected message, and, once no message is in flight, every reader has the latest value.

const
  node_count: 4;

type
  node: scalarset(node_count);
  value: 0..1;
  cache_state: enum { invalid, shared, exclusive };
  wish: enum { nothing, to_read, to_write };
  -- A message between a node and the home, or another node, about the node's own request.
  message: enum { none, get, get_x, forwarded_get, forwarded_get_x, reply, reply_x, nak };

var
  cache: array [node] of record
    state: cache_state;
    data: value;
    wish: wish;
    invalidated: boolean; -- an invalidation arrived while the copy was in flight
  end;
  messages: array [node] of record
    kind: message;
    owner: node; -- receiver of a forwarded request
    data: value;
  end;
  invalidations: array [node] of enum { no_invalidation, invalidate, invalidated };
  write_back: record
    there: boolean;
    from: node;
    data: value;
  end;
  -- Report of an owner to the home: it shared the line, transferred it, or no longer had it.
  report: record
    kind: enum { no_report, shared_it, handed_over, did_not_have };
    requester: node;
    data: value;
  end;
  directory: record
    pending: boolean;
    dirty: boolean;
    owner: node;
    sharers: array [node] of boolean;
  end;
  memory: value;
  latest: value;

ruleset n: node do
  rule "read miss"
    cache[n].wish = nothing & cache[n].state = invalid & messages[n].kind = none
  ==>
  begin
    cache[n].wish := to_read;
    messages[n].kind := get;
  end;

  rule "write miss"
    cache[n].wish = nothing & cache[n].state != exclusive & messages[n].kind = none
  ==>
  begin
    cache[n].wish := to_write;
    cache[n].state := invalid;
    undefine cache[n].data;
    messages[n].kind := get_x;
  end;

  rule "replace a shared line"
    cache[n].wish = nothing & cache[n].state = shared
  ==>
  begin
    cache[n].state := invalid;
    undefine cache[n].data;
  end;

  rule "write back"
    cache[n].wish = nothing & cache[n].state = exclusive & !write_back.there
  ==>
  begin
    write_back.there := true;
    write_back.from := n;
    write_back.data := cache[n].data;
    cache[n].state := invalid;
    undefine cache[n].data;
  end;

  rule "refused"
    messages[n].kind = nak
  ==>
  begin
    messages[n].kind := none;
    cache[n].wish := nothing;
    cache[n].invalidated := false;
  end;

  rule "data to read"
    messages[n].kind = reply
  ==>
  begin
    if !cache[n].invalidated then
      cache[n].state := shared;
      cache[n].data := messages[n].data;
    end;
    cache[n].invalidated := false;
    cache[n].wish := nothing;
    messages[n].kind := none;
    undefine messages[n].data;
  end;

  rule "data to write"
    messages[n].kind = reply_x
  ==>
  begin
    cache[n].state := exclusive;
    cache[n].data := messages[n].data;
    cache[n].invalidated := false;
    cache[n].wish := nothing;
    messages[n].kind := none;
    undefine messages[n].data;
  end;

  rule "invalidation"
    invalidations[n] = invalidate
  ==>
  begin
    assert cache[n].state != exclusive "an owner receives a forwarded store, not an invalidation";
    cache[n].state := invalid;
    undefine cache[n].data;
    if cache[n].wish = to_read then cache[n].invalidated := true; end;
    invalidations[n] := invalidated;
  end;

  rule "home takes an acknowledgement"
    invalidations[n] = invalidated
  ==>
  begin
    invalidations[n] := no_invalidation;
    if forall o: node do o != n -> invalidations[o] = no_invalidation end then directory.pending := false; end;
  end;

  rule "home refuses"
    (messages[n].kind = get | messages[n].kind = get_x) & directory.pending
  ==>
  begin
    messages[n].kind := nak;
  end;

  rule "home waits for a write-back of the requester itself"
    (messages[n].kind = get | messages[n].kind = get_x) & !directory.pending & directory.dirty & directory.owner = n
  ==>
  begin
    messages[n].kind := nak;
  end;

  rule "home forwards"
    (messages[n].kind = get | messages[n].kind = get_x) & !directory.pending & directory.dirty & directory.owner != n
  ==>
  begin
    directory.pending := true;
    messages[n].owner := directory.owner;
    if messages[n].kind = get then
      messages[n].kind := forwarded_get;
    else
      messages[n].kind := forwarded_get_x;
    end;
  end;

  rule "home answers a read"
    messages[n].kind = get & !directory.pending & !directory.dirty
  ==>
  begin
    directory.sharers[n] := true;
    messages[n].kind := reply;
    messages[n].data := memory;
  end;

  rule "home answers a write"
    messages[n].kind = get_x & !directory.pending & !directory.dirty
  ==>
  begin
    for o: node do
      if o != n & directory.sharers[o] then
        invalidations[o] := invalidate;
        directory.pending := true;
      end;
      directory.sharers[o] := false;
    end;
    directory.dirty := true;
    directory.owner := n;
    messages[n].kind := reply_x;
    messages[n].data := memory;
  end;

  rule "owner shares"
    messages[n].kind = forwarded_get & report.kind = no_report & cache[messages[n].owner].state = exclusive
  ==>
  begin
    alias o: messages[n].owner do
      cache[o].state := shared;
      messages[n].kind := reply;
      messages[n].data := cache[o].data;
      report.kind := shared_it;
      report.requester := n;
      report.data := cache[o].data;
    end;
    undefine messages[n].owner;
  end;

  rule "owner hands over"
    messages[n].kind = forwarded_get_x & report.kind = no_report & cache[messages[n].owner].state = exclusive
  ==>
  begin
    alias o: messages[n].owner do
      messages[n].kind := reply_x;
      messages[n].data := cache[o].data;
      cache[o].state := invalid;
      undefine cache[o].data;
      report.kind := handed_over;
      report.requester := n;
    end;
    undefine messages[n].owner;
  end;

  rule "owner does not have it"
    (messages[n].kind = forwarded_get | messages[n].kind = forwarded_get_x) & report.kind = no_report &
    cache[messages[n].owner].state != exclusive
  ==>
  begin
    messages[n].kind := nak;
    undefine messages[n].owner;
    report.kind := did_not_have;
  end;
end;

rule "home learns that the line is shared"
  report.kind = shared_it
==>
begin
  memory := report.data;
  directory.dirty := false;
  directory.sharers[directory.owner] := true;
  directory.sharers[report.requester] := true;
  undefine directory.owner;
  directory.pending := false;
  report.kind := no_report;
  undefine report.requester;
  undefine report.data;
end;

rule "home learns of the new owner"
  report.kind = handed_over
==>
begin
  directory.owner := report.requester;
  directory.pending := false;
  report.kind := no_report;
  undefine report.requester;
end;

rule "home learns that the owner did not have it"
  report.kind = did_not_have
==>
begin
  directory.pending := false;
  report.kind := no_report;
end;

rule "home takes a write-back"
  write_back.there & report.kind != handed_over
==>
begin
  assert directory.dirty & directory.owner = write_back.from "only the owner writes back";
  memory := write_back.data;
  directory.dirty := false;
  undefine directory.owner;
  write_back.there := false;
  undefine write_back.from;
  undefine write_back.data;
end;

ruleset n: node; v: value do
  rule "store"
    cache[n].state = exclusive
  ==>
  begin
    cache[n].data := v;
    latest := v;
  end;
end;

ruleset v: value do
  startstate
  begin
    for n: node do
      cache[n].state := invalid;
      cache[n].wish := nothing;
      cache[n].invalidated := false;
      messages[n].kind := none;
      invalidations[n] := no_invalidation;
      directory.sharers[n] := false;
    end;
    write_back.there := false;
    report.kind := no_report;
    directory.pending := false;
    directory.dirty := false;
    memory := v;
    latest := v;
  end;
end;

invariant "one dirty copy"
  forall n: node do forall o: node do
    cache[n].state = exclusive & cache[o].state = exclusive -> n = o
  end end;

invariant "a dirty copy is the latest"
  forall n: node do cache[n].state = exclusive -> cache[n].data = latest end;

invariant "a copy is the latest unless its invalidation is in flight"
  forall n: node do cache[n].state = shared -> cache[n].data = latest | invalidations[n] = invalidate end;

invariant "memory is the latest unless dirty"
  !directory.dirty -> memory = latest;

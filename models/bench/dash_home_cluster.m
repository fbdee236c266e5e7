-- style: dash
-- verdict: verified
-- states: 1461630
-- orbits: 81070
--
-- The home cluster of a line and its remote clusters, in the manner of DASH: the home's processor reaches its memory and
-- directory over a bus. The directory has one pointer; with more sharers it broadcasts its invalidations. Large rules
-- handle all requests of one kind.
type
  remote: scalarset(4);
  value: 0..1;
  cache_state: enum { not_cached, shared, dirty };
  directory: enum { uncached, one_sharer, many_sharers, dirty_remote };
  request_kind: enum { no_request, read, own };
  reply_kind: enum { no_reply, read_reply, own_reply, nak };

var
  local: record state: cache_state; data: value; waits: request_kind; end;
  processor: array [remote] of record state: cache_state; data: value; waits: request_kind; end;
  requests: array [remote] of request_kind;
  replies: array [remote] of record kind: reply_kind; data: value; end;
  -- A request of the home's processor or of a remote cluster, at the owner.
  at_owner: record kind: request_kind; of_home: boolean; origin: remote; end;
  invalidations: array [remote] of boolean;
  acknowledgements: array [remote] of boolean;
  expected: array [remote] of boolean;
  busy: boolean;
  dir: record state: directory; pointer: remote; end;
  memory: value;
  latest: value;

procedure invalidate(r: remote);
begin
  invalidations[r] := true;
  expected[r] := true;
end;

-- Invalidates the remote copies: the one that the directory knows, or all but the requester's.
procedure invalidate_all();
begin
  switch dir.state
  case one_sharer:
    invalidate(dir.pointer);
  case many_sharers:
    for r: remote do invalidate(r); end;
  end;
  dir.state := uncached;
  undefine dir.pointer;
end;

procedure set_owner(r: remote);
begin
  dir.state := dirty_remote;
  dir.pointer := r;
end;

procedure add_sharer(r: remote);
begin
  switch dir.state
  case uncached:
    dir.state := one_sharer;
    dir.pointer := r;
  case one_sharer:
    if dir.pointer != r then
      dir.state := many_sharers;
      undefine dir.pointer;
    end;
  end;
end;

startstate
begin
  local.state := not_cached;
  local.waits := no_request;
  for r: remote do
    processor[r].state := not_cached;
    processor[r].waits := no_request;
    requests[r] := no_request;
    replies[r].kind := no_reply;
    invalidations[r] := false;
    acknowledgements[r] := false;
    expected[r] := false;
  end;
  at_owner.kind := no_request;
  busy := false;
  dir.state := uncached;
  memory := 0;
  latest := 0;
end;

ruleset k: request_kind do
  rule "home's processor misses" k != no_request & local.waits = no_request &
    (k = read & local.state = not_cached | k = own & local.state != dirty) ==>
  begin
    local.waits := k;
  end;
end;

ruleset v: value do
  rule "home's processor stores" local.state = dirty & !busy ==>
  begin
    local.data := v;
    latest := v;
  end;
end;

rule "home's processor writes back" local.state != not_cached & local.waits = no_request ==>
begin
  if local.state = dirty then memory := local.data; end;
  local.state := not_cached;
  undefine local.data;
end;

rule "bus request of the home" local.waits != no_request & !busy ==>
begin
  if dir.state = dirty_remote then
    at_owner.kind := local.waits;
    at_owner.of_home := true;
  elsif local.waits = own then
    invalidate_all();
    local.state := dirty;
    local.data := memory;
    local.waits := no_request;
  else
    local.state := shared;
    local.data := memory;
    local.waits := no_request;
  end;
  busy := dir.state = dirty_remote | exists r: remote do expected[r] end;
end;

ruleset r: remote do
  ruleset k: request_kind do
    rule "remote processor misses" k != no_request & processor[r].waits = no_request &
      (k = read & processor[r].state = not_cached | k = own & processor[r].state != dirty) ==>
    begin
      processor[r].waits := k;
      requests[r] := k;
    end;
  end;

  ruleset v: value do
    rule "remote processor stores" processor[r].state = dirty & !busy ==>
    begin
      processor[r].data := v;
      latest := v;
    end;
  end;

  rule "remote processor drops the line" processor[r].state = shared & processor[r].waits = no_request ==>
  begin
    processor[r].state := not_cached;
    undefine processor[r].data;
  end;

  rule "home handles a request" requests[r] != no_request & replies[r].kind = no_reply ==>
  begin
    if busy then
      replies[r].kind := nak;
    elsif dir.state = dirty_remote then
      at_owner.kind := requests[r];
      at_owner.of_home := false;
      at_owner.origin := r;
      busy := true;
    else
      if local.state = dirty then
        memory := local.data;
        local.state := shared;
      end;
      replies[r].data := memory;
      if requests[r] = read then
        replies[r].kind := read_reply;
        add_sharer(r);
      else
        replies[r].kind := own_reply;
        local.state := not_cached;
        undefine local.data;
        invalidate_all();
        invalidations[r] := false;
        expected[r] := false;
        set_owner(r);
        busy := true;
      end;
    end;
    requests[r] := no_request;
  end;

  rule "owner handles a request" at_owner.kind != no_request & dir.pointer = r & processor[r].state = dirty ==>
  begin
    memory := processor[r].data;
    if at_owner.kind = read then
      processor[r].state := shared;
      dir.state := one_sharer;
    else
      processor[r].state := not_cached;
      undefine processor[r].data;
      dir.state := uncached;
      undefine dir.pointer;
    end;
    if at_owner.of_home then
      local.data := memory;
      if at_owner.kind = read then local.state := shared; else local.state := dirty; end;
      local.waits := no_request;
      busy := false;
    else
      alias origin: at_owner.origin do
        replies[origin].data := memory;
        if at_owner.kind = read then
          replies[origin].kind := read_reply;
          add_sharer(origin);
          busy := false;
        else
          replies[origin].kind := own_reply;
          set_owner(origin);
        end;
      end;
    end;
    at_owner.kind := no_request;
    undefine at_owner.of_home;
    undefine at_owner.origin;
  end;

  rule "reply" replies[r].kind != no_reply &
    (replies[r].kind = own_reply -> forall other: remote do !expected[other] end) ==>
  begin
    switch replies[r].kind
    case read_reply:
      processor[r].state := shared;
      processor[r].data := replies[r].data;
      processor[r].waits := no_request;
    case own_reply:
      processor[r].state := dirty;
      processor[r].data := replies[r].data;
      processor[r].waits := no_request;
      busy := false;
    case nak:
      requests[r] := processor[r].waits;
    end;
    replies[r].kind := no_reply;
    undefine replies[r].data;
  end;

  rule "invalidate" invalidations[r] & replies[r].kind != read_reply ==>
  begin
    if processor[r].state = shared then
      processor[r].state := not_cached;
      undefine processor[r].data;
    end;
    invalidations[r] := false;
    acknowledgements[r] := true;
  end;

  rule "acknowledgement" acknowledgements[r] ==>
  begin
    acknowledgements[r] := false;
    expected[r] := false;
    if !(exists other: remote do expected[other] | replies[other].kind = own_reply end) then
      busy := false;
    end;
  end;
end;

invariant "single writer"
  !busy -> forall a: remote do
    (local.state = dirty -> processor[a].state = not_cached) &
    (processor[a].state = dirty -> local.state = not_cached & forall b: remote do
      a != b -> processor[b].state = not_cached
    end)
  end;
invariant "latest value at the home"
  local.state != not_cached -> local.data = latest;
invariant "latest value at a remote cluster"
  forall r: remote do processor[r].state != not_cached -> processor[r].data = latest end;

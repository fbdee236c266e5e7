-- style: dash
-- verdict: verified
-- states: 121546
-- orbits: 6786
--
-- Clusters that replace their lines, in the manner of DASH: a request that finds the owner's copy gone gets a negative
-- acknowledgement and is tried again, while the write-back travels to the home. Each message is handled by one large
-- rule; requests and replies have separate networks of one slot for each cluster.
type
  cluster: scalarset(4);
  value: 0..1;
  cache_state: enum { not_cached, shared, dirty };
  access: enum { no_access, wait_read, wait_write };
  directory: enum { uncached, shared_remote, dirty_remote };
  request_kind: enum { no_request, read_home, own_home, read_remote, own_remote };
  reply_kind: enum { no_reply, read_reply, own_reply, nak };

var
  processor: array [cluster] of record state: cache_state; data: value; end;
  rac: array [cluster] of access;
  to_home: array [cluster] of request_kind;
  to_owner: array [cluster] of record kind: request_kind; origin: cluster; end;
  replies: array [cluster] of record kind: reply_kind; data: value; end;
  invalidations: array [cluster] of boolean;
  -- The home waits for the acknowledgements of a write before it serves the next request.
  unacknowledged: array [cluster] of boolean;
  write_back: array [cluster] of record pending: boolean; data: value; end;
  revision: record pending: boolean; shares: boolean; old_owner: cluster; reader: cluster; data: value; end;
  dir: record state: directory; sharer: array [cluster] of boolean; owner: cluster; end;
  memory: value;
  latest: value;

startstate
begin
  for c: cluster do
    processor[c].state := not_cached;
    rac[c] := no_access;
    to_home[c] := no_request;
    to_owner[c].kind := no_request;
    replies[c].kind := no_reply;
    invalidations[c] := false;
    unacknowledged[c] := false;
    write_back[c].pending := false;
    dir.sharer[c] := false;
  end;
  revision.pending := false;
  dir.state := uncached;
  memory := 0;
  latest := 0;
end;

ruleset c: cluster do
  rule "processor misses" processor[c].state != dirty & rac[c] = no_access & !write_back[c].pending ==>
  begin
    if processor[c].state = not_cached then
      rac[c] := wait_read;
      to_home[c] := read_home;
    else
      rac[c] := wait_write;
      to_home[c] := own_home;
    end;
  end;

  rule "processor misses with a store" processor[c].state = not_cached & rac[c] = no_access & !write_back[c].pending ==>
  begin
    rac[c] := wait_write;
    to_home[c] := own_home;
  end;

  ruleset v: value do
    rule "processor stores" processor[c].state = dirty ==>
    begin
      processor[c].data := v;
      latest := v;
    end;
  end;

  rule "processor replaces the line" processor[c].state != not_cached & rac[c] = no_access ==>
  begin
    if processor[c].state = dirty then
      write_back[c].pending := true;
      write_back[c].data := processor[c].data;
    end;
    processor[c].state := not_cached;
    undefine processor[c].data;
  end;

  rule "home handles a request" to_home[c] != no_request & replies[c].kind = no_reply & !revision.pending &
    (forall d: cluster do !unacknowledged[d] & to_owner[d].kind = no_request end) ==>
  begin
    switch dir.state
    case uncached, shared_remote:
      replies[c].data := memory;
      if to_home[c] = read_home then
        replies[c].kind := read_reply;
        dir.state := shared_remote;
        dir.sharer[c] := true;
      else
        replies[c].kind := own_reply;
        for d: cluster do
          if d != c & dir.sharer[d] then
            invalidations[d] := true;
            unacknowledged[d] := true;
          end;
          dir.sharer[d] := false;
        end;
        dir.state := dirty_remote;
        dir.owner := c;
      end;
    case dirty_remote:
      if dir.owner = c then
        -- The write-back of the requester is on its way.
        replies[c].kind := nak;
      else
        to_owner[dir.owner].origin := c;
        if to_home[c] = read_home then
          to_owner[dir.owner].kind := read_remote;
        else
          to_owner[dir.owner].kind := own_remote;
        end;
      end;
    end;
    to_home[c] := no_request;
  end;

  rule "owner handles a request" to_owner[c].kind != no_request ==>
  begin
    alias origin: to_owner[c].origin do
      if processor[c].state != dirty then
        replies[origin].kind := nak;
      else
        replies[origin].data := processor[c].data;
        revision.pending := true;
        revision.old_owner := c;
        revision.reader := origin;
        revision.data := processor[c].data;
        if to_owner[c].kind = read_remote then
          replies[origin].kind := read_reply;
          revision.shares := true;
          processor[c].state := shared;
        else
          replies[origin].kind := own_reply;
          revision.shares := false;
          processor[c].state := not_cached;
          undefine processor[c].data;
        end;
      end;
    end;
    to_owner[c].kind := no_request;
    undefine to_owner[c].origin;
  end;

  rule "reply" replies[c].kind != no_reply & (replies[c].kind = own_reply -> forall d: cluster do !unacknowledged[d] end) ==>
  begin
    switch replies[c].kind
    case read_reply:
      processor[c].state := shared;
      processor[c].data := replies[c].data;
      rac[c] := no_access;
    case own_reply:
      processor[c].state := dirty;
      processor[c].data := replies[c].data;
      rac[c] := no_access;
    case nak:
      if rac[c] = wait_read then to_home[c] := read_home; else to_home[c] := own_home; end;
    end;
    replies[c].kind := no_reply;
    undefine replies[c].data;
  end;

  rule "invalidate" invalidations[c] & replies[c].kind != read_reply ==>
  begin
    if processor[c].state = shared then
      processor[c].state := not_cached;
      undefine processor[c].data;
    end;
    invalidations[c] := false;
    unacknowledged[c] := false;
  end;

  rule "home handles a write-back" write_back[c].pending & !revision.pending ==>
  begin
    memory := write_back[c].data;
    if !isundefined(dir.owner) & dir.owner = c then
      undefine dir.owner;
      dir.state := uncached;
    else
      error "write-back of a line that the cluster does not own";
    end;
    write_back[c].pending := false;
    undefine write_back[c].data;
  end;
end;

rule "revision" revision.pending ==>
begin
  if revision.shares then
    memory := revision.data;
    dir.state := shared_remote;
    dir.sharer[revision.old_owner] := true;
    dir.sharer[revision.reader] := true;
    undefine dir.owner;
  else
    dir.owner := revision.reader;
  end;
  revision.pending := false;
  undefine revision.shares;
  undefine revision.old_owner;
  undefine revision.reader;
  undefine revision.data;
end;

invariant "single writer"
  forall a: cluster do forall b: cluster do
    a != b & processor[a].state = dirty -> processor[b].state = not_cached
  end end;
invariant "latest value"
  forall c: cluster do processor[c].state != not_cached -> processor[c].data = latest end;

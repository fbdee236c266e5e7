-- style: dash
-- verdict: verified
-- states: 859544
-- orbits: 143547
--
-- Clusters with a directory at the home of one line, in the manner of DASH: requests and replies in separate networks
-- of one slot for each pair, a remote access cache for outstanding requests, and large rules that each handle all
-- cases of a message.
const clusters: 3;
type
  cluster: scalarset(clusters);
  value: 0..1;
  cache_state: enum { not_cached, locally_shared, locally_exclusive };
  access: enum { no_access, wait_read, wait_write };
  directory: enum { uncached, shared_remote, dirty_remote };
  request_kind: enum { read_home, read_remote, own_home, own_remote, invalidate };
  reply_kind: enum { no_reply, read_reply, own_reply, nak, inv_ack };

var
  processor: array [cluster] of record state: cache_state; data: value; end;
  rac: array [cluster] of record
    access: access;
    invalidated: boolean;
    has_data: boolean;
    missing: array [cluster] of boolean;
    data: value;
  end;
  requests: array [cluster] of array [cluster] of record pending: boolean; kind: request_kind; origin: cluster; end;
  home_requests: array [cluster] of record pending: boolean; kind: request_kind; end;
  replies: array [cluster] of array [cluster] of record kind: reply_kind; data: value; end;
  home_replies: array [cluster] of record kind: reply_kind; sharers: array [cluster] of boolean; data: value; end;
  revision: array [cluster] of record pending: boolean; shares: boolean; reader: cluster; data: value; end;
  dir: record state: directory; sharer: array [cluster] of boolean; owner: cluster; end;
  memory: value;
  latest: value;

startstate
begin
  for c: cluster do
    processor[c].state := not_cached;
    rac[c].access := no_access;
    rac[c].invalidated := false;
    rac[c].has_data := false;
    home_requests[c].pending := false;
    home_replies[c].kind := no_reply;
    revision[c].pending := false;
    dir.sharer[c] := false;
    for d: cluster do
      rac[c].missing[d] := false;
      requests[c][d].pending := false;
      replies[c][d].kind := no_reply;
      home_replies[c].sharers[d] := false;
    end;
  end;
  dir.state := uncached;
  memory := 0;
  latest := 0;
end;

procedure complete_write(c: cluster);
begin
  if rac[c].has_data & forall d: cluster do !rac[c].missing[d] end then
    processor[c].state := locally_exclusive;
    processor[c].data := rac[c].data;
    rac[c].access := no_access;
    rac[c].has_data := false;
    rac[c].invalidated := false;
    undefine rac[c].data;
  end;
end;

ruleset c: cluster do
  rule "read miss" processor[c].state = not_cached & rac[c].access = no_access & !home_requests[c].pending &
    home_replies[c].kind = no_reply ==>
  begin
    rac[c].access := wait_read;
    home_requests[c].pending := true;
    home_requests[c].kind := read_home;
  end;

  rule "write miss" processor[c].state != locally_exclusive & rac[c].access = no_access & !home_requests[c].pending &
    home_replies[c].kind = no_reply & (forall d: cluster do replies[d][c].kind = no_reply end) ==>
  begin
    rac[c].access := wait_write;
    home_requests[c].pending := true;
    home_requests[c].kind := own_home;
  end;

  ruleset v: value do
    rule "store" processor[c].state = locally_exclusive ==>
    begin
      processor[c].data := v;
      latest := v;
    end;
  end;

  rule "home handles a request" home_requests[c].pending & home_replies[c].kind = no_reply &
    (forall d: cluster do !requests[d][c].pending end) ==>
  begin
    if home_requests[c].kind = read_home then
      switch dir.state
      case uncached, shared_remote:
        dir.state := shared_remote;
        dir.sharer[c] := true;
        home_replies[c].kind := read_reply;
        home_replies[c].data := memory;
      case dirty_remote:
        if dir.owner = c | requests[dir.owner][c].pending then
          home_replies[c].kind := nak;
        else
          requests[dir.owner][c].pending := true;
          requests[dir.owner][c].kind := read_remote;
          requests[dir.owner][c].origin := c;
        end;
      end;
    else
      switch dir.state
      case uncached, shared_remote:
        home_replies[c].kind := own_reply;
        home_replies[c].data := memory;
        for d: cluster do
          if d != c & dir.sharer[d] then
            requests[d][c].pending := true;
            requests[d][c].kind := invalidate;
            requests[d][c].origin := c;
            home_replies[c].sharers[d] := true;
          end;
          dir.sharer[d] := false;
        end;
        dir.state := dirty_remote;
        dir.owner := c;
      case dirty_remote:
        if dir.owner = c | requests[dir.owner][c].pending then
          home_replies[c].kind := nak;
        else
          requests[dir.owner][c].pending := true;
          requests[dir.owner][c].kind := own_remote;
          requests[dir.owner][c].origin := c;
        end;
      end;
    end;
    home_requests[c].pending := false;
    undefine home_requests[c].kind;
  end;

  rule "home reply" home_replies[c].kind != no_reply ==>
  begin
    switch home_replies[c].kind
    case read_reply:
      if !rac[c].invalidated then
        processor[c].state := locally_shared;
        processor[c].data := home_replies[c].data;
      end;
      rac[c].access := no_access;
      rac[c].invalidated := false;
    case own_reply:
      rac[c].has_data := true;
      rac[c].data := home_replies[c].data;
      for d: cluster do
        if home_replies[c].sharers[d] then rac[c].missing[d] := !rac[c].missing[d]; end;
        home_replies[c].sharers[d] := false;
      end;
      complete_write(c);
    case nak:
      rac[c].access := no_access;
      rac[c].invalidated := false;
    end;
    home_replies[c].kind := no_reply;
    undefine home_replies[c].data;
  end;

  ruleset d: cluster do
    rule "cluster handles a request" requests[c][d].pending & replies[c][d].kind = no_reply & !revision[c].pending ==>
    begin
      switch requests[c][d].kind
      case read_remote:
        if processor[c].state = locally_exclusive then
          replies[c][d].kind := read_reply;
          replies[c][d].data := processor[c].data;
          revision[c].pending := true;
          revision[c].shares := true;
          revision[c].reader := d;
          revision[c].data := processor[c].data;
          processor[c].state := locally_shared;
        else
          replies[c][d].kind := nak;
        end;
      case own_remote:
        if processor[c].state = locally_exclusive then
          replies[c][d].kind := own_reply;
          replies[c][d].data := processor[c].data;
          revision[c].pending := true;
          revision[c].shares := false;
          revision[c].reader := d;
          processor[c].state := not_cached;
          undefine processor[c].data;
        else
          replies[c][d].kind := nak;
        end;
      case invalidate:
        if processor[c].state = locally_shared then
          processor[c].state := not_cached;
          undefine processor[c].data;
        end;
        if rac[c].access = wait_read then rac[c].invalidated := true; end;
        replies[c][d].kind := inv_ack;
      else
        error "unexpected request";
      end;
      requests[c][d].pending := false;
      undefine requests[c][d].kind;
      undefine requests[c][d].origin;
    end;

    rule "reply" replies[d][c].kind != no_reply ==>
    begin
      switch replies[d][c].kind
      case read_reply:
        if !rac[c].invalidated then
          processor[c].state := locally_shared;
          processor[c].data := replies[d][c].data;
        end;
        rac[c].access := no_access;
        rac[c].invalidated := false;
      case own_reply:
        rac[c].has_data := true;
        rac[c].data := replies[d][c].data;
        complete_write(c);
      case nak:
        rac[c].access := no_access;
        rac[c].invalidated := false;
      case inv_ack:
        rac[c].missing[d] := !rac[c].missing[d];
        complete_write(c);
      end;
      replies[d][c].kind := no_reply;
      undefine replies[d][c].data;
    end;
  end;

  rule "revision" revision[c].pending ==>
  begin
    if revision[c].shares then
      memory := revision[c].data;
      dir.state := shared_remote;
      dir.sharer[c] := true;
      dir.sharer[revision[c].reader] := true;
      undefine dir.owner;
    else
      dir.owner := revision[c].reader;
    end;
    revision[c].pending := false;
    undefine revision[c].shares;
    undefine revision[c].reader;
    undefine revision[c].data;
  end;
end;

invariant "single writer"
  forall a: cluster do forall b: cluster do
    a != b & processor[a].state = locally_exclusive -> processor[b].state != locally_exclusive
  end end;
invariant "latest value"
  forall a: cluster do processor[a].state = locally_exclusive -> processor[a].data = latest end;

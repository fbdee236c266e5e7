-- style: dash
-- verdict: verified
-- states: 125841
-- orbits: 3240
--
-- Locks in a directory, in the manner of DASH: a directory entry records the waiting clusters of each lock, and passes a
-- released lock to one of them; the grant invalidates the other waiting copies, which ask again. Requests that arrive
-- in between get a negative acknowledgement.
type
  cluster: scalarset(4);
  lock_id: scalarset(2);
  lock_state: enum { lock_free, lock_held, lock_passing };
  wait: enum { no_wait, wait_queue, wait_grant, wait_retry };
  request_kind: enum { no_request, acquire, release };
  reply_kind: enum { no_reply, queued, granted, nak, retry };

var
  dir: array [lock_id] of record state: lock_state; waiting: array [cluster] of boolean; holder: cluster; end;
  rac: array [cluster] of record wait: wait; lock: lock_id; holds: boolean; end;
  requests: array [cluster] of record kind: request_kind; lock: lock_id; end;
  replies: array [cluster] of record kind: reply_kind; lock: lock_id; end;

startstate
begin
  for l: lock_id do
    dir[l].state := lock_free;
    for c: cluster do dir[l].waiting[c] := false; end;
  end;
  for c: cluster do
    rac[c].wait := no_wait;
    rac[c].holds := false;
    requests[c].kind := no_request;
    replies[c].kind := no_reply;
  end;
end;

ruleset c: cluster do
  ruleset l: lock_id do
    rule "acquire" rac[c].wait = no_wait & !rac[c].holds & requests[c].kind = no_request & replies[c].kind = no_reply ==>
    begin
      rac[c].wait := wait_queue;
      rac[c].lock := l;
      requests[c].kind := acquire;
      requests[c].lock := l;
    end;
  end;

  rule "release" rac[c].holds & requests[c].kind = no_request & replies[c].kind = no_reply ==>
  begin
    requests[c].kind := release;
    requests[c].lock := rac[c].lock;
    rac[c].holds := false;
    undefine rac[c].lock;
  end;

  rule "retry" rac[c].wait = wait_retry & requests[c].kind = no_request ==>
  begin
    rac[c].wait := wait_queue;
    requests[c].kind := acquire;
    requests[c].lock := rac[c].lock;
  end;

  rule "directory" requests[c].kind != no_request & replies[c].kind = no_reply ==>
  begin
    alias entry: dir[requests[c].lock] do
      switch requests[c].kind
      case acquire:
        switch entry.state
        case lock_free:
          entry.state := lock_held;
          entry.holder := c;
          replies[c].kind := granted;
          replies[c].lock := requests[c].lock;
        case lock_held:
          entry.waiting[c] := true;
          replies[c].kind := queued;
          replies[c].lock := requests[c].lock;
        case lock_passing:
          replies[c].kind := nak;
          replies[c].lock := requests[c].lock;
        end;
      case release:
        undefine entry.holder;
        entry.state := lock_free;
        for d: cluster do
          if entry.waiting[d] then entry.state := lock_passing; end;
        end;
      end;
    end;
    requests[c].kind := no_request;
    undefine requests[c].lock;
  end;

  ruleset l: lock_id do
    rule "pass" dir[l].state = lock_passing & dir[l].waiting[c] &
      (forall d: cluster do dir[l].waiting[d] -> replies[d].kind = no_reply end) ==>
    begin
      for d: cluster do
        if dir[l].waiting[d] then
          if d = c then replies[d].kind := granted; else replies[d].kind := retry; end;
          replies[d].lock := l;
        end;
        dir[l].waiting[d] := false;
      end;
      dir[l].state := lock_held;
      dir[l].holder := c;
    end;
  end;

  rule "reply" replies[c].kind != no_reply ==>
  begin
    switch replies[c].kind
    case queued:
      rac[c].wait := wait_grant;
    case granted:
      rac[c].wait := no_wait;
      rac[c].holds := true;
    case nak, retry:
      rac[c].wait := wait_retry;
    end;
    replies[c].kind := no_reply;
    undefine replies[c].lock;
  end;
end;

invariant "one holder"
  forall a: cluster do forall b: cluster do
    a != b & rac[a].holds & rac[b].holds -> rac[a].lock != rac[b].lock
  end end;

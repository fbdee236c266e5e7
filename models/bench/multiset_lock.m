-- style: multiset
-- verdict: verified
-- states: 273714
-- orbits: 5124
--
-- Lock server with cancellation. Messages overtake each other: a cancellation that arrives before its request waits for
-- it, and one that arrives after the grant is answered, so that the client releases only then. The lock passes a value.
type
  client: scalarset(5);
  value: 0..1;
  kind: enum { acquire, grant, release, cancel, cancelled, too_late };
  message: record kind: kind; from: client; data: value; end;
  place: enum { idle, waiting, holding, cancelling, cancelling_granted, granted_late };

var
  at: array [client] of place;
  data: array [client] of value;
  net: multiset [10] of message;
  queued: array [client] of boolean;
  early_cancel: array [client] of boolean;
  holder: client;
  stored: value;
  latest: value;

procedure send(k: kind; c: client);
var m: message;
begin
  m.kind := k;
  m.from := c;
  if k = grant then m.data := stored; end;
  if k = release then m.data := data[c]; end;
  multisetadd(m, net);
end;

procedure let_go(c: client);
begin
  send(release, c);
  undefine data[c];
  at[c] := idle;
end;

startstate
begin
  for c: client do
    at[c] := idle;
    queued[c] := false;
    early_cancel[c] := false;
  end;
  stored := 0;
  latest := 0;
end;

ruleset c: client do
  rule "acquire" at[c] = idle & multisetcount(i: net, net[i].from = c) = 0 & (isundefined(holder) | holder != c) ==>
  begin
    send(acquire, c);
    at[c] := waiting;
  end;

  rule "cancel" at[c] = waiting ==>
  begin
    send(cancel, c);
    at[c] := cancelling;
  end;

  ruleset v: value do
    rule "store" at[c] = holding ==>
    begin
      data[c] := v;
      latest := v;
    end;
  end;

  rule "release" at[c] = holding ==> begin let_go(c); end;

  rule "grant" queued[c] & isundefined(holder) ==>
  begin
    queued[c] := false;
    holder := c;
    send(grant, c);
  end;
end;

choose i: net do
  rule "server" net[i].kind = acquire | net[i].kind = release | net[i].kind = cancel ==>
  var m: message;
  begin
    m := net[i];
    multisetremove(i, net);
    switch m.kind
    case acquire:
      if early_cancel[m.from] then
        early_cancel[m.from] := false;
        send(cancelled, m.from);
      else
        queued[m.from] := true;
      end;
    case release:
      assert holder = m.from "only the holder releases";
      stored := m.data;
      undefine holder;
    case cancel:
      if queued[m.from] then
        queued[m.from] := false;
        send(cancelled, m.from);
      elsif !isundefined(holder) & holder = m.from then
        send(too_late, m.from);
      else
        early_cancel[m.from] := true;
      end;
    end;
  end;

  rule "client" net[i].kind = grant | net[i].kind = cancelled | net[i].kind = too_late ==>
  var m: message;
  begin
    m := net[i];
    multisetremove(i, net);
    switch m.kind
    case grant:
      data[m.from] := m.data;
      switch at[m.from]
      case waiting:
        at[m.from] := holding;
      case cancelling:
        at[m.from] := cancelling_granted;
      case granted_late:
        let_go(m.from);
      else
        error "unexpected grant";
      end;
    case cancelled:
      assert at[m.from] = cancelling "only a cancelling client is cancelled";
      at[m.from] := idle;
    case too_late:
      if at[m.from] = cancelling_granted then let_go(m.from); else at[m.from] := granted_late; end;
    end;
  end;
end;

invariant "one holder"
  forall a: client do forall b: client do
    a != b & (at[a] = holding | at[a] = cancelling_granted) -> at[b] != holding & at[b] != cancelling_granted
  end end;
invariant "latest value"
  forall c: client do at[c] = holding -> data[c] = latest end;

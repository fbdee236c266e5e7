-- verdict: violated
-- rumur: refuses
--
-- A lock whose home never marks it as taken. Clients and home communicate by messages in multisets.
type
  client: scalarset(2);
  agent: union { client, enum { Home } };
  kind: enum { Ask, Grant, Release };
  message: record kind: kind; src: agent; end;
var
  net: array [agent] of multiset [3] of message;
  at: array [client] of enum { idle, asking, inside };
  taken: boolean;

procedure send(k: kind; dst, src: agent);
var m: message;
begin
  m.kind := k;
  m.src := src;
  multisetadd(m, net[dst]);
end;

startstate begin
  for c: client do at[c] := idle; end;
  taken := false;
end;

ruleset c: client do
  rule "ask" at[c] = idle ==>
  begin
    at[c] := asking;
    send(Ask, Home, c);
  end;

  rule "leave" at[c] = inside ==>
  begin
    at[c] := idle;
    send(Release, Home, c);
  end;

  choose i: net[c] do
    rule "enter" net[c][i].kind = Grant ==>
    begin
      at[c] := inside;
      multisetremove(i, net[c]);
    end;
  end;
end;

choose i: net[Home] do
  rule "grant" net[Home][i].kind = Ask & !taken ==>
  begin
    send(Grant, net[Home][i].src, Home);
    multisetremove(i, net[Home]);
  end;

  rule "take back" net[Home][i].kind = Release ==>
  begin
    multisetremove(i, net[Home]);
  end;
end;

invariant "one inside"
  forall c: client do forall d: client do at[c] = inside & at[d] = inside -> c = d end end;

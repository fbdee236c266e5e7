-- verdict: verified
-- states: 4800
-- orbits: 924
-- dialect: cmurphi
-- counted by: brute_force.py
--
-- A line that one client at a time may own, over a reordering network that is a multiset of messages.
-- A client requests the line, the home grants it or recalls it from the owner, and the owner returns
-- it, recalled or not. A recall may overtake the grant that it follows, and then stays in the
-- network. A late recall is dropped or causes an unneeded return. Checked: one owner, with the latest
-- value, and that a full network never deadlocks. network_slots.m is the same with slots in an array.

const
  clients: 3;
  capacity: 5;

type
  client: scalarset(clients);
  value: 0..1;
  state: enum { idle, waiting, owning };
  kind: enum { get, grant, recall, give_back };
  message: record
    kind: kind;
    client: client;
    data: value;
  end;

var
  at: array [client] of state;
  data: array [client] of value;
  network: multiset [capacity] of message;
  owner: client; -- undefined while the home has the line
  recalled: boolean;
  memory: value;
  latest: value;

procedure send(k: kind; c: client);
var m: message;
begin
  m.kind := k;
  m.client := c;
  multisetadd(m, network);
end;

procedure send_data(k: kind; c: client; v: value);
var m: message;
begin
  m.kind := k;
  m.client := c;
  m.data := v;
  multisetadd(m, network);
end;

ruleset c: client do
  rule "ask"
    at[c] = idle & multisetcount(i: network, true) < capacity
  ==>
  begin
    at[c] := waiting;
    send(get, c);
  end;

  rule "give back unasked"
    at[c] = owning & multisetcount(i: network, true) < capacity
  ==>
  begin
    at[c] := idle;
    send_data(give_back, c, data[c]);
    undefine data[c];
  end;
end;

choose i: network do
  rule "home grants"
    network[i].kind = get & isundefined(owner)
  ==>
  begin
    owner := network[i].client;
    recalled := false;
    multisetremove(i, network);
    send_data(grant, owner, memory);
  end;

  rule "granted"
    network[i].kind = grant
  ==>
  begin
    assert at[network[i].client] = waiting "only a requester receives a grant";
    at[network[i].client] := owning;
    data[network[i].client] := network[i].data;
    multisetremove(i, network);
  end;

  rule "give back when asked"
    network[i].kind = recall & at[network[i].client] = owning
  ==>
  var c: client;
  begin
    c := network[i].client;
    at[c] := idle;
    multisetremove(i, network);
    send_data(give_back, c, data[c]);
    undefine data[c];
  end;

  rule "recall arrives too late"
    network[i].kind = recall & at[network[i].client] = idle
  ==>
  begin
    multisetremove(i, network);
  end;

  rule "home receives the line"
    network[i].kind = give_back
  ==>
  begin
    assert owner = network[i].client "only the owner gives back";
    memory := network[i].data;
    undefine owner;
    recalled := false;
    multisetremove(i, network);
  end;

  rule "home recalls"
    network[i].kind = get & !isundefined(owner) & !recalled & multisetcount(j: network, true) < capacity
  ==>
  begin
    recalled := true;
    send(recall, owner);
  end;
end;

ruleset c: client; v: value do
  rule "store"
    at[c] = owning
  ==>
  begin
    data[c] := v;
    latest := v;
  end;
end;

ruleset v: value do
  startstate
  begin
    for c: client do at[c] := idle; end;
    recalled := false;
    memory := v;
    latest := v;
  end;
end;

invariant "one owner"
  forall c: client do forall d: client do at[c] = owning & at[d] = owning -> c = d end end;

invariant "the owner reads the latest"
  forall c: client do at[c] = owning -> data[c] = latest end;

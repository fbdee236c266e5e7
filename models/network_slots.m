-- verdict: verified
-- states: 300944
-- orbits: 924
-- dialect: both
-- counted by: rumur
--
-- A line that one client at a time may own, over a reordering network that is an array of message slots. A
-- client requests the line, the home grants it or recalls it from the owner, and the owner returns it, recalled
-- or not. A recall may overtake the grant that it follows, and then stays in the network. A late recall is
-- dropped or causes an unneeded return. Checked: one owner, with the latest value, and that a full network never
-- deadlocks. Which free slot a message takes does not matter, so slots are a scalarset beside the clients.

const
  clients: 3;
  capacity: 5;

type
  client: scalarset(clients);
  slot: scalarset(capacity);
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
  network: array [slot] of message;
  owner: client; -- undefined while the home has the line
  recalled: boolean;
  memory: value;
  latest: value;

ruleset c: client; s: slot do
  rule "ask"
    at[c] = idle & isundefined(network[s].kind)
  ==>
  begin
    at[c] := waiting;
    network[s].kind := get;
    network[s].client := c;
  end;

  rule "give back unasked"
    at[c] = owning & isundefined(network[s].kind)
  ==>
  begin
    at[c] := idle;
    network[s].kind := give_back;
    network[s].client := c;
    network[s].data := data[c];
    undefine data[c];
  end;
end;

ruleset s: slot do
  rule "home grants"
    !isundefined(network[s].kind) & network[s].kind = get & isundefined(owner)
  ==>
  begin
    owner := network[s].client;
    recalled := false;
    network[s].kind := grant;
    network[s].data := memory;
  end;

  rule "granted"
    !isundefined(network[s].kind) & network[s].kind = grant
  ==>
  begin
    assert at[network[s].client] = waiting "only a requester receives a grant";
    at[network[s].client] := owning;
    data[network[s].client] := network[s].data;
    undefine network[s];
  end;

  rule "give back when asked"
    !isundefined(network[s].kind) & network[s].kind = recall & at[network[s].client] = owning
  ==>
  begin
    alias c: network[s].client do
      at[c] := idle;
      network[s].kind := give_back;
      network[s].data := data[c];
      undefine data[c];
    end;
  end;

  rule "recall arrives too late"
    !isundefined(network[s].kind) & network[s].kind = recall & at[network[s].client] = idle
  ==>
  begin
    undefine network[s];
  end;

  rule "home receives the line"
    !isundefined(network[s].kind) & network[s].kind = give_back
  ==>
  begin
    assert owner = network[s].client "only the owner gives back";
    memory := network[s].data;
    undefine owner;
    recalled := false;
    undefine network[s];
  end;
end;

ruleset s: slot; t: slot do
  rule "home recalls"
    !isundefined(network[s].kind) & network[s].kind = get & !isundefined(owner) & !recalled &
    isundefined(network[t].kind)
  ==>
  begin
    recalled := true;
    network[t].kind := recall;
    network[t].client := owner;
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

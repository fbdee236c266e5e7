-- style: multiset
-- verdict: verified
-- states: 5860
-- orbits: 218
--
-- Token coherence: each node may send any of its tokens to any other node; one of them is the owner's and carries the
-- data. A node reads with one token, and writes with all.
const tokens: 4;
type
  node: scalarset(5);
  value: 0..1;
  message: record to_node: node; count: 1..tokens; owner: boolean; data: value; end;

var
  held: array [node] of record count: 0..tokens; owner: boolean; data: value; end;
  net: multiset [3] of message;
  latest: value;

ruleset first: node do
  startstate
  begin
    for n: node do
      held[n].count := 0;
      held[n].owner := false;
    end;
    held[first].count := tokens;
    held[first].owner := true;
    held[first].data := 0;
    latest := 0;
  end;
end;

ruleset n: node do
  ruleset v: value do
    rule "write" held[n].count = tokens ==>
    begin
      held[n].data := v;
      latest := v;
    end;
  end;

  ruleset other: node do
    rule "send all" n != other & held[n].count > 0 & held[n].owner & multisetcount(i: net, true) < 3 ==>
      var m: message;
    begin
      m.to_node := other;
      m.count := held[n].count;
      m.owner := true;
      m.data := held[n].data;
      multisetadd(m, net);
      held[n].count := 0;
      held[n].owner := false;
      undefine held[n].data;
    end;

    rule "send one" n != other & held[n].count > 1 & multisetcount(i: net, true) < 3 ==>
      var m: message;
    begin
      m.to_node := other;
      m.count := 1;
      m.owner := false;
      m.data := held[n].data;
      multisetadd(m, net);
      held[n].count := held[n].count - 1;
    end;

    rule "return" n != other & held[n].count > 0 & !held[n].owner & multisetcount(i: net, true) < 3 ==>
      var m: message;
    begin
      m.to_node := other;
      m.count := held[n].count;
      m.owner := false;
      m.data := held[n].data;
      multisetadd(m, net);
      held[n].count := 0;
      undefine held[n].data;
    end;
  end;
end;

choose i: net do
  rule "receive" true ==>
  var m: message;
  begin
    m := net[i];
    multisetremove(i, net);
    alias node_state: held[m.to_node] do
      node_state.count := node_state.count + m.count;
      node_state.owner := node_state.owner | m.owner;
      node_state.data := m.data;
    end;
  end;
end;

invariant "latest value"
  forall n: node do held[n].count > 0 -> held[n].data = latest end;
invariant "one owner"
  forall a: node do forall b: node do a != b & held[a].owner -> !held[b].owner end end;

-- verdict: verified
-- states: 1
-- deadlock: off
-- rumur: refuses
--
-- Slot numbers that name an element before and after a removal: of the element itself, which an insertion may replace,
-- and of another one. The multiset is an element of an array that an alias selects. No warning is printed.
type
  node: scalarset(3);
  place: union { node, enum { home } };
  note: record source: node; urgent: boolean; end;
var
  net: array [place] of multiset [3] of note;
  last: node;
  owner: place;

procedure send(to_place: place; source: node);
var m: note;
begin
  m.source := source;
  m.urgent := false;
  multisetadd(m, net[to_place]);
end;

startstate
begin
  for n: node do send(n, n); send(home, n); end;
  owner := home;
end;

ruleset p: place do
  choose i: net[p] do
    alias channel: net[p]; m: channel[i] do
    rule "replace" false ==>
    begin
      last := m.source;
      multisetremove(i, channel);
      send(p, last);
      m.urgent := true;
    end;

    choose j: net[p] do
      rule "answer the other" i != j & m.urgent ==>
        var s: node;
      begin
        s := m.source;
        if net[p][j].urgent then multisetremove(i, channel); else multisetremove(j, channel); end;
        send(p, s);
        send(home, s);
        net[p][j].urgent := true;
        m.urgent := true;
      end;
    end;
    end;
  end;
end;

alias channel: net[owner] do
  choose i: channel do
    rule "take" channel[i].urgent ==>
    begin
      last := channel[i].source;
      multisetremove(i, channel);
      owner := last;
    end;
  end;
end;

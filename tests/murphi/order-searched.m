-- verdict: verified
-- states: 91
-- rumur: refuses
--
-- Loops whose order the analysis cannot exclude, and which matters in no reachable state. A multicast reuses one message
-- for all receivers, and a function returns as soon as one channel is full.
const
  depth: 2;
type
  node: scalarset(3);
  note: record source: node; destination: node; end;
var
  channel: array [node] of array [0..depth - 1] of note;
  count: array [node] of 0..depth;
  heard: array [node] of boolean;
  listeners: multiset [3] of node;

procedure send(m: note);
begin
  channel[m.destination][count[m.destination]] := m;
  count[m.destination] := count[m.destination] + 1;
end;

procedure multicast(var m: note; to_all: boolean);
begin
  for n: node do
    if n != m.source & (to_all | multisetcount(i: listeners, listeners[i] = n) = 1) then
      m.destination := n;
      send(m);
    end;
  end;
end;

function ready(): boolean;
begin
  for n: node do
    if count[n] >= depth - 1 then return false; end;
  end;
  return true;
end;

startstate
begin
  for n: node do count[n] := 0; heard[n] := false; end;
end;

ruleset n: node do
  rule "listen" multisetcount(i: listeners, true) < 2 & multisetcount(i: listeners, listeners[i] = n) = 0 & ready() ==>
  begin
    multisetadd(n, listeners);
  end;

  rule "tell" ready() & multisetcount(i: listeners, true) > 0 ==>
    var m: note;
  begin
    m.source := n;
    multicast(m, false);
  end;

  rule "hear" count[n] > 0 ==>
  begin
    heard[n] := true;
    undefine channel[n][0];
    count[n] := count[n] - 1;
  end;

  rule "forget" heard[n] ==> begin heard[n] := false; end;
end;

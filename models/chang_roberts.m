-- verdict: verified
-- deadlock: off
-- states: 257
-- dialect: both
-- counted by: rumur
--
-- Leader election in a ring of five nodes (E. Chang and R. Roberts, "An improved algorithm for decentralized
-- extrema-finding in circular configurations of processes", 1979), with the identities 3, 5, 1, 4, 2 around the
-- ring. A node passes on larger identities, drops smaller ones, and wins when its own returns. Links hold two
-- messages and keep their order. Checked: only the largest wins, and no link receives more messages than it holds.

const
  nodes: 5;
  capacity: 2;

type
  node: 0..nodes - 1;
  identity: 1..nodes;
  length: 0..capacity;

var
  own: array [node] of identity;
  link: array [node] of record -- into the node
    used: length;
    message: array [1..capacity] of identity;
  end;
  started: array [node] of boolean;
  leader: array [node] of boolean;

function next(n: node): node;
begin
  return (n + 1) % nodes;
end;

procedure send(n: node; i: identity);
begin
  link[n].used := link[n].used + 1;
  link[n].message[link[n].used] := i;
end;

ruleset n: node do
  rule "start"
    !started[n] & link[next(n)].used < capacity
  ==>
  begin
    started[n] := true;
    send(next(n), own[n]);
  end;

  rule "receive"
    link[n].used > 0 & link[next(n)].used < capacity
  ==>
  var got: identity;
  begin
    got := link[n].message[1];
    for k := 2 to capacity do
      if k <= link[n].used then link[n].message[k - 1] := link[n].message[k]; end;
    end;
    undefine link[n].message[link[n].used];
    link[n].used := link[n].used - 1;
    if got > own[n] then
      started[n] := true; -- a later start is unnecessary
      send(next(n), got);
    elsif got = own[n] then
      leader[n] := true;
    end;
  end;
end;

startstate
begin
  own[0] := 3;
  own[1] := 5;
  own[2] := 1;
  own[3] := 4;
  own[4] := 2;
  for n: node do
    link[n].used := 0;
    started[n] := false;
    leader[n] := false;
  end;
end;

invariant "only the largest wins"
  forall n: node do leader[n] -> own[n] = nodes end;

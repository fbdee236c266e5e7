-- verdict: verified
-- states: 40
-- deadlock: off
-- rumur: refuses
--
-- Loops over scalarsets whose iterations commute: no warning is printed.
const
  most: 3;
type
  node: scalarset(3);
  place: union { node, enum { home } };
  note: record dest: place; urgent: boolean; end;
var
  up, seen: array [node] of boolean;
  link: array [node] of array [node] of boolean;
  any: boolean;
  count: 0..most;
  owner: node;
  net: multiset [most] of note;
  told: array [place] of boolean;

procedure send(dest: place; urgent: boolean);
var n: note;
begin
  n.dest := dest;
  n.urgent := urgent;
  multisetadd(n, net);
end;

function some(): boolean;
begin
  for n: node do if isundefined(owner) & n = n then return false; end; end;
  return true;
end;

procedure lower(n: node);
begin
  up[n] := false;
  seen[n] := up[n];
end;

startstate
begin
  for n: node do
    up[n] := true;
    seen[n] := false;
    for m: node do link[n][m] := false; link[m][n] := false; end;
  end;
  for p: place do told[p] := false; end;
  any := false;
  count := 0;
end;

ruleset n: node do
  -- Each round has elements of its own; what all store is the same; sums grow in any order.
  rule "lower all others" count = 0 & up[n] ==>
  begin
    owner := n;
    any := false;
    for o: node do
      if o != n & up[o] then
        up[o] := up[n];
        count := count + 1;
        any := true;
        link[n][o] := true;
        link[o][n] := true;
      end;
      told[o] := true;
    end;
    any := some();
  end;

  -- The same by procedures.
  rule "tell all" count > 0 & up[n] & any ==>
  begin
    any := false;
    for o: node do
      if o != n then
        lower(o);
        send(o, false);
      end;
    end;
  end;
end;

choose i: net do
  rule "hear" begin
    told[net[i].dest] := false;
    multisetremove(i, net);
  end;
end;

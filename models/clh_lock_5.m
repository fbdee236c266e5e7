-- verdict: verified
-- states: 1232640
-- dialect: both
-- counted by: rumur
--
-- The CLH lock (T. S. Craig, 1993; P. Magnusson, A. Landin and E. Hagersten, 1994) for five processes. A process queues
-- a node of its own by exchanging the tail, spins on its predecessor's node, and keeps that node for its next use when
-- it leaves. There is one node more than processes. Checked: mutual exclusion, and that no node ever has two owners.

const
  processes: 5;

type
  proc: 1..processes;
  node: 0..processes;
  place: enum { idle, exchanging, spinning, critical };

var
  at: array [proc] of place;
  mine: array [proc] of node;
  before: array [proc] of node;
  busy: array [node] of boolean;
  tail: node;

ruleset p: proc do
  rule "mark the own node busy"
    at[p] = idle
  ==>
  begin
    busy[mine[p]] := true;
    at[p] := exchanging;
  end;

  rule "exchange the tail"
    at[p] = exchanging
  ==>
  begin
    before[p] := tail;
    tail := mine[p];
    at[p] := spinning;
  end;

  rule "spin"
    at[p] = spinning & !busy[before[p]]
  ==>
  begin
    at[p] := critical;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    busy[mine[p]] := false;
    mine[p] := before[p];
    undefine before[p];
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    mine[p] := p;
  end;
  for n: node do busy[n] := false; end;
  tail := 0;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

invariant "a node has one owner"
  forall p: proc do forall q: proc do
    p != q -> mine[p] != mine[q]
  end end;

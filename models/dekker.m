-- verdict: verified
-- states: 48
-- dialect: both
-- counted by: rumur
--
-- Dekker's mutual exclusion for two processes (described by E. W. Dijkstra, "Cooperating sequential processes", 1965), the
-- first algorithm that needs only single reads and writes. Each read and each write is a step of its own.

type
  proc: 0..1;
  place: enum { idle, testing, deciding, stepped_back, critical, leaving };

var
  at: array [proc] of place;
  wants: array [proc] of boolean;
  turn: proc;

ruleset p: proc do
  rule "want"
    at[p] = idle
  ==>
  begin
    wants[p] := true;
    at[p] := testing;
  end;

  rule "test"
    at[p] = testing
  ==>
  begin
    if wants[1 - p] then at[p] := deciding; else at[p] := critical; end;
  end;

  rule "insist"
    at[p] = deciding & turn = p
  ==>
  begin
    at[p] := testing;
  end;

  rule "step back"
    at[p] = deciding & turn != p
  ==>
  begin
    wants[p] := false;
    at[p] := stepped_back;
  end;

  rule "come again"
    at[p] = stepped_back & turn = p
  ==>
  begin
    wants[p] := true;
    at[p] := testing;
  end;

  rule "yield"
    at[p] = critical
  ==>
  begin
    turn := 1 - p;
    at[p] := leaving;
  end;

  rule "leave"
    at[p] = leaving
  ==>
  begin
    wants[p] := false;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    wants[p] := false;
  end;
  turn := 0;
end;

invariant "mutual exclusion"
  !(at[0] = critical & at[1] = critical);

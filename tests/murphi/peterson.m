-- verdict: verified
-- states: 20
--
-- Peterson's mutual exclusion for two processes: the last to set `turn` waits.

type
  process: 0..1;
  place: enum { idle, wants, waits, critical };

var
  flag: array [process] of boolean;
  turn: process;
  at: array [process] of place;

startstate "nobody wants"
begin
  for p: process do
    flag[p] := false;
    at[p] := idle;
  end;
  turn := 0;
end;

ruleset p: process do
  rule "wants"
    at[p] = idle
  ==>
  begin
    flag[p] := true;
    at[p] := wants;
  end;

  rule "gives way"
    at[p] = wants
  ==>
  begin
    turn := 1 - p;
    at[p] := waits;
  end;

  rule "enters"
    at[p] = waits & (!flag[1 - p] | turn = p)
  ==>
  begin
    at[p] := critical;
  end;

  rule "leaves"
    at[p] = critical
  ==>
  begin
    flag[p] := false;
    at[p] := idle;
  end;
end;

invariant "mutual exclusion"
  !(at[0] = critical & at[1] = critical);

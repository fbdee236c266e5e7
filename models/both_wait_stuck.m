-- verdict: verified
-- deadlock: stuck
-- states: 8
-- dialect: both
-- counted by: rumur
--
-- both_wait.m, where only a state without an enabled rule counts as a deadlock: processes that spin for ever pass.

type
  proc: 0..1;
  place: enum { idle, spinning, critical };

var
  at: array [proc] of place;
  flag: array [proc] of boolean;

ruleset p: proc do
  rule "raise the flag"
    at[p] = idle
  ==>
  begin
    flag[p] := true;
    at[p] := spinning;
  end;

  rule "look"
    at[p] = spinning
  ==>
  begin
    if !flag[1 - p] then at[p] := critical; end;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    flag[p] := false;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    flag[p] := false;
  end;
end;

invariant "mutual exclusion"
  !(at[0] = critical & at[1] = critical);

-- verdict: violated
-- property: deadlock
-- steps: 2
-- dialect: both
-- counted by: rumur
--
-- Mutual exclusion with one flag per process and no turn: each of two processes raises its flag and spins while the other's is
-- up. Spinning is a rule that is enabled and changes nothing, so this deadlock is found only if such steps do not count.

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

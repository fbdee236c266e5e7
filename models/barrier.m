-- verdict: verified
-- states: 4108
-- orbits: 220
-- dialect: both
-- counted by: rumur
--
-- A sense-reversing barrier (D. Hensgen, R. Finkel and U. Manber, "Two algorithms for barrier synchronization",
-- 1988; J. M. Mellor-Crummey and M. L. Scott, 1991) for five processes. The last to arrive resets the count and
-- reverses the sense. Checked: no process is more than one round ahead of another, and none waits for ever.

const
  processes: 5;
  rounds: 4;

type
  proc: scalarset(processes);
  round: 0..rounds - 1;
  place: enum { working, arriving, resetting, waiting };

var
  at: array [proc] of place;
  mine: array [proc] of boolean;
  sense: boolean;
  missing: 0..processes;
  in_round: array [proc] of round; -- modulo four, which shows a process that is two rounds ahead

ruleset p: proc do
  rule "finish working"
    at[p] = working
  ==>
  begin
    mine[p] := !mine[p];
    at[p] := arriving;
  end;

  rule "count down"
    at[p] = arriving
  ==>
  begin
    missing := missing - 1;
    if missing = 0 then at[p] := resetting; else at[p] := waiting; end;
  end;

  rule "let all go"
    at[p] = resetting
  ==>
  begin
    missing := processes;
    sense := mine[p];
    in_round[p] := (in_round[p] + 1) % rounds;
    at[p] := working;
  end;

  rule "go"
    at[p] = waiting & sense = mine[p]
  ==>
  begin
    in_round[p] := (in_round[p] + 1) % rounds;
    at[p] := working;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := working;
    mine[p] := false;
    in_round[p] := 0;
  end;
  sense := false;
  missing := processes;
end;

invariant "all working processes are in the same round"
  forall p: proc do forall q: proc do
    at[p] = working & at[q] = working -> in_round[p] = in_round[q]
  end end;

invariant "no process is two rounds ahead"
  forall p: proc do forall q: proc do
    (in_round[p] + rounds - in_round[q]) % rounds != 2
  end end;

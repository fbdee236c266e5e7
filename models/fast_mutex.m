-- verdict: verified
-- states: 11396
-- dialect: both
-- counted by: rumur
--
-- Lamport's fast mutual exclusion (L. Lamport, "A fast mutual exclusion algorithm", 1987) for three processes: without
-- contention a process enters after seven accesses to memory. Checked: mutual exclusion, with each access a step of its own.

const
  processes: 3;

type
  proc: 1..processes;
  nobody: 0..processes;
  place: enum { idle, set_x, test_y, withdraw, wait_y, set_y, test_x, lower, scan, retest, wait_again, critical, clear_y,
    clear_flag };

var
  x: nobody;
  y: nobody;
  flag: array [proc] of boolean;
  at: array [proc] of place;
  next: array [proc] of proc; -- the flag to wait for

ruleset p: proc do
  rule "raise the flag" at[p] = idle ==>
  begin flag[p] := true; at[p] := set_x; end;

  rule "write x" at[p] = set_x ==>
  begin x := p; at[p] := test_y; end;

  rule "read y" at[p] = test_y ==>
  begin if y != 0 then at[p] := withdraw; else at[p] := set_y; end; end;

  rule "lower the flag" at[p] = withdraw ==>
  begin flag[p] := false; at[p] := wait_y; end;

  rule "wait for y" at[p] = wait_y & y = 0 ==>
  begin at[p] := idle; end;

  rule "write y" at[p] = set_y ==>
  begin y := p; at[p] := test_x; end;

  rule "read x" at[p] = test_x ==>
  begin if x != p then at[p] := lower; else at[p] := critical; end; end;

  rule "lower the flag after a loss" at[p] = lower ==>
  begin flag[p] := false; next[p] := 1; at[p] := scan; end;

  rule "wait for a flag" at[p] = scan & !flag[next[p]] ==>
  begin
    if next[p] = processes then undefine next[p]; at[p] := retest; else next[p] := next[p] + 1; end;
  end;

  rule "read y again" at[p] = retest ==>
  begin if y = p then at[p] := critical; else at[p] := wait_again; end; end;

  rule "wait for y again" at[p] = wait_again & y = 0 ==>
  begin at[p] := idle; end;

  rule "leave" at[p] = critical ==>
  begin at[p] := clear_y; end;

  rule "write zero to y" at[p] = clear_y ==>
  begin y := 0; at[p] := clear_flag; end;

  rule "lower the flag at the end" at[p] = clear_flag ==>
  begin flag[p] := false; at[p] := idle; end;
end;

startstate
begin
  x := 0;
  y := 0;
  for p: proc do flag[p] := false; at[p] := idle; end;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do at[p] = critical & at[q] = critical -> p = q end end;

-- verdict: verified
-- states: 1662
-- dialect: both
-- counted by: rumur
--
-- Dijkstra's mutual exclusion (E. W. Dijkstra, "Solution of a problem in concurrent programming control", 1965) for three
-- processes, the first algorithm for more than two. Two flags and one shared variable `favoured`; every read of another
-- process's flag is a step of its own.

const
  processes: 3;

type
  proc: 1..processes;
  step: 1..processes + 1;
  place: enum { idle, wanting, asking, favouring, checking, critical, leaving };

var
  at: array [proc] of place;
  passive: array [proc] of boolean;
  outside: array [proc] of boolean;
  favoured: proc;
  next: array [proc] of step;

ruleset p: proc do
  rule "want"
    at[p] = idle
  ==>
  begin
    passive[p] := false;
    at[p] := wanting;
  end;

  rule "not favoured"
    at[p] = wanting & favoured != p
  ==>
  begin
    outside[p] := true;
    at[p] := asking;
  end;

  rule "ask whether the favoured is passive"
    at[p] = asking
  ==>
  begin
    if passive[favoured] then at[p] := favouring; else at[p] := wanting; end;
  end;

  rule "favour oneself"
    at[p] = favouring
  ==>
  begin
    favoured := p;
    at[p] := wanting;
  end;

  rule "favoured"
    at[p] = wanting & favoured = p
  ==>
  begin
    outside[p] := false;
    next[p] := 1;
    at[p] := checking;
  end;

  rule "check another"
    at[p] = checking & next[p] <= processes
  ==>
  begin
    if next[p] = p | outside[next[p]] then
      next[p] := next[p] + 1;
    else
      next[p] := 1;
      at[p] := wanting;
    end;
  end;

  rule "enter"
    at[p] = checking & next[p] > processes
  ==>
  begin
    next[p] := 1;
    at[p] := critical;
  end;

  rule "step outside"
    at[p] = critical
  ==>
  begin
    outside[p] := true;
    at[p] := leaving;
  end;

  rule "leave"
    at[p] = leaving
  ==>
  begin
    passive[p] := true;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    passive[p] := true;
    outside[p] := true;
    next[p] := 1;
  end;
  favoured := 1;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

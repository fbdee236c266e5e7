-- verdict: verified
-- states: 12454
-- dialect: both
-- counted by: rumur
--
-- Lamport's bakery algorithm (L. Lamport, "A new solution of Dijkstra's concurrent programming problem", 1974) for three
-- processes. A process reads all tickets one after the other and takes one more than the largest, then waits for each other
-- process that is choosing or has a smaller ticket. Tickets grow without bound; here no process takes one above `largest`, and
-- a process waits instead until no other holds a ticket.

const
  processes: 3;
  largest: 3;

type
  proc: 1..processes;
  ticket: 0..largest;
  step: 1..processes + 1;
  place: enum { idle, reading, waiting_choice, waiting_ticket, critical };

var
  at: array [proc] of place;
  choosing: array [proc] of boolean;
  number: array [proc] of ticket;
  most: array [proc] of ticket;
  next: array [proc] of step;

ruleset p: proc do
  rule "begin to choose"
    at[p] = idle
  ==>
  begin
    choosing[p] := true;
    most[p] := 0;
    next[p] := 1;
    at[p] := reading;
  end;

  rule "read a ticket"
    at[p] = reading & next[p] <= processes
  ==>
  begin
    if number[next[p]] > most[p] then most[p] := number[next[p]]; end;
    next[p] := next[p] + 1;
  end;

  rule "no ticket left"
    at[p] = reading & next[p] > processes & most[p] = largest
  ==>
  begin
    choosing[p] := false;
    most[p] := 0;
    next[p] := 1;
    at[p] := idle;
  end;

  rule "take a ticket"
    at[p] = reading & next[p] > processes & most[p] < largest
  ==>
  begin
    number[p] := most[p] + 1;
    choosing[p] := false;
    most[p] := 0;
    next[p] := 1;
    at[p] := waiting_choice;
  end;

  rule "the other has chosen"
    at[p] = waiting_choice & next[p] <= processes & !choosing[next[p]]
  ==>
  begin
    at[p] := waiting_ticket;
  end;

  rule "the other comes later"
    at[p] = waiting_ticket &
    (number[next[p]] = 0 | number[p] < number[next[p]] | (number[p] = number[next[p]] & p <= next[p]))
  ==>
  begin
    next[p] := next[p] + 1;
    at[p] := waiting_choice;
  end;

  rule "enter"
    at[p] = waiting_choice & next[p] > processes
  ==>
  begin
    next[p] := 1;
    at[p] := critical;
  end;

  rule "leave"
    at[p] = critical
  ==>
  begin
    number[p] := 0;
    at[p] := idle;
  end;
end;

startstate
begin
  for p: proc do
    at[p] := idle;
    choosing[p] := false;
    number[p] := 0;
    most[p] := 0;
    next[p] := 1;
  end;
end;

invariant "mutual exclusion"
  forall p: proc do forall q: proc do
    at[p] = critical & at[q] = critical -> p = q
  end end;

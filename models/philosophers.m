-- verdict: verified
-- states: 408
-- dialect: both
-- counted by: rumur
--
-- Seven dining philosophers, the last of whom takes the right fork first (E. W. Dijkstra, "Hierarchical
-- ordering of sequential processes", 1971). So forks are taken in one global order, and no cyclic wait exists.

const
  philosophers: 7;

type
  seat: 0..philosophers - 1;
  state: enum { thinking, has_first, eating };

var
  at: array [seat] of state;
  taken: array [seat] of boolean; -- fork i lies to the left of seat i

ruleset p: seat do
  alias first: (p = philosophers - 1 ? 0 : p); second: (p = philosophers - 1 ? p : p + 1) do
    rule "take the first fork"
      at[p] = thinking & !taken[first]
    ==>
    begin
      taken[first] := true;
      at[p] := has_first;
    end;

    rule "take the second fork"
      at[p] = has_first & !taken[second]
    ==>
    begin
      taken[second] := true;
      at[p] := eating;
    end;

    rule "stop eating"
      at[p] = eating
    ==>
    begin
      taken[first] := false;
      taken[second] := false;
      at[p] := thinking;
    end;
  end;
end;

startstate
begin
  for p: seat do
    at[p] := thinking;
    taken[p] := false;
  end;
end;

invariant "neighbours do not eat together"
  forall p: seat do !(at[p] = eating & at[(p + 1) % philosophers] = eating) end;

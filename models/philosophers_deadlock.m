-- verdict: violated
-- property: deadlock
-- steps: 5
-- dialect: both
-- counted by: rumur
--
-- Five dining philosophers who all take the left fork first (E. W. Dijkstra, "Hierarchical ordering of sequential
-- processes", 1971). Violation: each holds one fork and waits for the second for ever.

const
  philosophers: 5;

type
  seat: 0..philosophers - 1;
  state: enum { thinking, has_left, eating };

var
  at: array [seat] of state;
  taken: array [seat] of boolean; -- fork i lies to the left of seat i

ruleset p: seat do
  alias right: (p + 1) % philosophers do
    rule "take the left fork"
      at[p] = thinking & !taken[p]
    ==>
    begin
      taken[p] := true;
      at[p] := has_left;
    end;

    rule "take the right fork"
      at[p] = has_left & !taken[right]
    ==>
    begin
      taken[right] := true;
      at[p] := eating;
    end;

    rule "stop eating"
      at[p] = eating
    ==>
    begin
      taken[p] := false;
      taken[right] := false;
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

-- verdict: violated
-- states: 1
-- dialect: rumur
--
-- Found at random: a slot that has a value in every stored state may lack one within a step, for which packed states
-- have no room.

type
  node: scalarset(1);
var
  v: node;
  w: boolean;

ruleset n: node do
  startstate begin
    v := n;
    w := false;
  end;
end;

rule "loses it" begin
  undefine v;
  v := v;
  w := true;
end;

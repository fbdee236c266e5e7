-- verdict: verified
-- states: 3
-- dialect: rumur
--
-- Found at random: whether one value stays within reach is not the same question in all states of an orbit, so that
-- one state of each orbit does not do.

type
  node: scalarset(2);
var
  v: node;

startstate begin
end;

ruleset n: node do
  rule "take" begin
    v := n;
  end;
end;

ruleset n: node do
  liveness "in reach" !isundefined(v) & v != n;
end;

-- verdict: violated
-- states: 1
-- dialect: rumur
--
-- Found at random: the order of a loop matters in a step that an assumption discards in the end.
type node: scalarset(2);
var last: node; up: boolean;
startstate begin up := true; end;
rule "look" begin
  for n: node do last := n; end;
  assume false;
end;

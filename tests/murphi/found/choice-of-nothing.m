-- verdict: verified
-- states: 16
-- deadlock: off
-- rumur: differs for Rumur reading what has no value is an error
--
-- A choice whose outcome has no value is stored and compared like a variable that has none.
type
  node: scalarset(2);
var
  a: node;
  b: node;
  turn: boolean;
startstate
  turn := false;
end;
rule "stores" begin
  a := turn ? b : a;
  turn := !turn;
end;
rule "forgets" turn ==> begin
  undefine b;
end;
ruleset n: node do
  rule "compares" (turn ? a : b) = (turn ? b : a) ==> begin
    b := n;
  end;
end;

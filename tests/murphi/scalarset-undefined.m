-- verdict: verified
-- states: 3
-- rumur: differs for Rumur reading it is an error
--
-- The undefined value of a scalarset is a distinct value that can be compared.
type client: scalarset(2);
var a: client; b: client;
startstate begin undefine a; undefine b; end;
ruleset c: client do
  rule "first" a = b ==> begin a := c; end;
end;
rule "back" a != b ==> begin undefine a; end;
invariant isundefined(b);

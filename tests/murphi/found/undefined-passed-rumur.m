-- verdict: verified
-- states: 6
-- deadlock: off
-- dialect: rumur
--
-- Found at random: an undefined variable may be passed to a function as it is, which alone it may ask for.
type
  node: scalarset(2);
  small: 0..3;
var
  v: array [boolean] of node;
  n: small;
  told: boolean;

function nobody(here: boolean; who: node): boolean;
begin
  return here & isundefined(who);
end;

function nothing(what: small): boolean;
begin
  return isundefined(what);
end;

startstate begin told := false; end;

rule "nobody" begin told := nobody(true, v[false]); end;
ruleset who: node do
  rule "somebody" told ==> begin v[false] := who; told := nobody(true, v[false]) | nothing(n); end;
end;

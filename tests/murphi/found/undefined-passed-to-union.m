-- verdict: verified
-- states: 6
-- deadlock: off
-- rumur: refuses
-- dialect: cmurphi
--
-- Found at random: an undefined value of a member is passed as a value of the union, which Rumur's dialect cannot state.
type
  left: scalarset(2);
  right: scalarset(2);
  both: union { left, right };
var
  w: right;
  up: boolean;

function nobody(who: both): boolean;
begin
  return isundefined(who);
end;

startstate begin up := false; end;

rule "ask" begin up := nobody(w); end;
ruleset p: right do
  rule "set" begin w := p; end;
end;

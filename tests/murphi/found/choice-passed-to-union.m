-- verdict: verified
-- states: 18
-- deadlock: off
-- rumur: refuses
-- dialect: cmurphi
--
-- A choice between a member and the union is passed as a value of the union. The member may be undefined, so that the
-- printed model would read it in order to convert it.
type
  left: scalarset(2);
  right: scalarset(2);
  both: union { left, right };
var
  v: both;
  w: right;
  up: boolean;

function nobody(who: both): boolean;
begin
  return isundefined(who);
end;

startstate begin up := false; end;

rule "ask" begin up := nobody(up ? w : v); end;
ruleset p: right do
  rule "set" begin w := p; end;
end;
ruleset p: left do
  rule "store" begin v := p; end;
end;

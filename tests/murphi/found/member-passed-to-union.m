-- verdict: verified
-- states: 6
-- deadlock: off
-- rumur: refuses
-- dialect: cmurphi
--
-- A parameter of a ruleset, which is always defined, is passed as a value of the union.
type
  left: scalarset(2);
  right: scalarset(2);
  both: union { left, right };
var
  v: both;
  up: boolean;

function is_left(who: both): boolean;
begin
  return ismember(who, left);
end;

startstate begin up := false; undefine v; end;

ruleset p: right do
  rule "ask" begin up := is_left(p); v := p; end;
end;
ruleset p: left do
  rule "ask the other" begin up := is_left(p); end;
end;

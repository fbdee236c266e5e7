-- verdict: verified
-- states: 6
-- deadlock: off
-- rumur: refuses
-- dialect: cmurphi
--
-- Found at random: the printed model read an undefined value of a member in order to convert it to the union.
type
  left: scalarset(2);
  right: scalarset(2);
  both: union { left, right };
var
  v: both;
  w: right;
  up: boolean;

startstate begin up := false; end;

rule "copy" begin v := w; end;
rule "copy one of two" begin v := (up ? w : v); up := !up; end;
ruleset p: left do
  rule "set" begin v := p; end;
end;

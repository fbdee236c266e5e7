-- verdict: verified
-- states: 2
-- rumur: refuses
--
-- Rules without a guard, without `begin`, and without a name.
var n: 0..1;
startstate n := 0 end;
rule n := 1 - n; end;
rule n = 0 ==> n := 1 end;
rule begin end;

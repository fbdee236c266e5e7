-- verdict: rejected
-- dialect: rumur
--
-- A rule without guard and begin, which no parser can tell from a guard.
var n: 0..3;
startstate n := 0; end;
rule "up" n := (n + 1) % 4; end;

-- verdict: rejected
-- dialect: rumur
--
-- A rule without guard and `begin`: its first statement is ambiguous, since it might be a guard. CMurphi accepts it.
var n: 0..3;
startstate n := 0; end;
rule "up" n := (n + 1) % 4; end;

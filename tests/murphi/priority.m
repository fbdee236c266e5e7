-- verdict: verified
-- states: 4
-- rumur: refuses
--
-- The rule that would fail never fires, since a rule of higher priority is always enabled.
var n: 0..3;
startstate begin n := 0; end;
rule 1 "wrong" n > 0 ==> begin error "not urgent"; end;
rule 0 "step" begin n := (n + 1) % 4; end;

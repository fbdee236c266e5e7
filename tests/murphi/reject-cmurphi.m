-- verdict: rejected
-- dialect: cmurphi
--
-- Constructs that only Rumur accepts.
var n: 0..0x3; b: boolean; r: record f: 0..1 end; q: record f: 0..1; end;
startstate begin n := 0; b := true && true; b := true || b; end;
rule "a" n == 1 ==> begin n := 1 << 2; end
rule "b" begin b := r = q; n := 6 | 1; n := ~1; assume b; cover b; end;
const late: 3;
assume b;
cover b;
liveness b;
invariant "≤" n ≤ 3;

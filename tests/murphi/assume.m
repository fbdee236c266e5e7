-- verdict: verified
-- states: 5
--
-- States that violate an assumption are excluded, and so is a rule firing that violates an assumption in its body.
var n: 0..9; m: 0..1;
startstate begin n := 0; m := 0; end;
startstate begin n := 9; m := 0; end;
rule "up" begin n := n + 1; end;
rule "never" begin m := 1; assume m = 0; end;
assume "small" n < 5;

-- verdict: rejected
--
-- Real numbers, probabilities and C++ functions are unsupported, and each message names the construct.
var x: real(6, 99); n: 0..3;
externfun f(): 0..3;
startstate begin n := 0; x := 1.5; end;
pctl true;

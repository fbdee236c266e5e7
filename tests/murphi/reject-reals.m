-- verdict: rejected
--
-- Reals, probabilities and functions in C++ are refused by name.
var x: real(6, 99); n: 0..3;
externfun f(): 0..3;
startstate begin n := 0; x := 1.5; end;
pctl true;

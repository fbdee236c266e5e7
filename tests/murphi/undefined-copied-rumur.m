-- verdict: violated
-- dialect: rumur
--
-- undefined-copied.m in Rumur's dialect, where the assignment `b := a` of an undefined variable is an error.
var a: 0..3; b: 0..3;
startstate begin b := 3; end;
rule "copy" !isundefined(b) ==> begin b := a; end;

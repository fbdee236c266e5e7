-- verdict: verified
-- states: 3
-- rumur: differs for Rumur the copy itself is an error
--
-- An undefined variable is copied as it is; whether it is undefined can be asked.
var a: 0..3; b: 0..3;
startstate begin b := 3; end;
rule "copy" !isundefined(b) ==> begin b := a; end;
rule "define" isundefined(b) ==> begin a := 3; b := a; end;
rule "forget" !isundefined(a) ==> begin undefine a; end;

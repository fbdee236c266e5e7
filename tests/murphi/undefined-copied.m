-- verdict: verified
-- states: 3
-- rumur: differs for Rumur the copy itself is an error
--
-- An undefined variable is copied without an error, and `isundefined` detects the copy.
var a: 0..3; b: 0..3;
startstate begin b := 3; end;
rule "copy" !isundefined(b) ==> begin b := a; end;
rule "define" isundefined(b) ==> begin a := 3; b := a; end;
rule "forget" !isundefined(a) ==> begin undefine a; end;

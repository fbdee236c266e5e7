-- verdict: violated
-- dialect: rumur
--
-- The same for Rumur, to which this copy is an error.
var a: 0..3; b: 0..3;
startstate begin b := 3; end;
rule "copy" !isundefined(b) ==> begin b := a; end;

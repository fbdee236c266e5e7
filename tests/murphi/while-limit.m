-- verdict: violated
-- dialect: cmurphi
-- rumur: differs it would run for ever
--
-- An endless loop; CMurphi stops it after 1000 iterations.
var n: 0..1;
startstate begin n := 0; end;
rule "spin" begin while n = 0 do n := 0; end; end;

-- verdict: violated
-- rumur: refuses
--
-- One message too many.
var net: multiset [2] of boolean; b: boolean;
startstate begin b := true; end;
rule "send" begin multisetadd(b, net); end;

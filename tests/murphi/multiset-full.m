-- verdict: violated
-- rumur: refuses
--
-- A third element is added to a multiset with room for two.
var net: multiset [2] of boolean; b: boolean;
startstate begin b := true; end;
rule "send" begin multisetadd(b, net); end;

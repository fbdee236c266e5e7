-- verdict: rejected
--
-- An index may have more values than there is room for elements.
var a: array [0 .. 1099511627776] of boolean;
startstate begin undefine a; end;
rule begin undefine a; end;

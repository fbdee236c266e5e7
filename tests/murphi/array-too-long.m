-- verdict: rejected
--
-- A range of indices can be larger than the longest supported array: such an array is rejected.
var a: array [0 .. 1099511627776] of boolean;
startstate begin undefine a; end;
rule begin undefine a; end;

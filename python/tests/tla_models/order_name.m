type c: scalarset(2);
var c_in_order: 0..3;
startstate begin c_in_order := 0; end;
rule begin c_in_order := 0; for i: c do c_in_order := c_in_order + 1; end; end;

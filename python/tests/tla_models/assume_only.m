var n: 0..3;
startstate begin n := 0; end;
rule "a" begin assume n < 2; end;
rule "b" n < 3 ==> begin n := n + 1; end;
rule "c" n = 3 ==> begin n := 0; end;

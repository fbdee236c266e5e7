-- verdict: rejected
--
-- All six syntax errors are reported, not only the first: lines 6, 7, 9, 12, 13, 14 (messages in reject-syntax.txt).
var n: 0..3;
startstate begin
  n = 0;
  n := 1 = 2 = 3;
  if n = 1 then n := 0;
    else n := ;
  end;
end;
rule "a" n = ==> begin n := 0; end;
rule "b" n = 0 ==> begin n := 0 n := 1; end;
invariant n <

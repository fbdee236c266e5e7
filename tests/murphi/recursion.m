-- verdict: verified
-- states: 7
--
-- A recursive function; each call has its own local variables.
type num: 0..1000;
var n: 0..6; f: num;
function factorial(x: num): num;
  var rest: num;
begin
  if x <= 1 then return 1; end;
  rest := factorial(x - 1);
  if rest * x > 1000 then return 1000; end;
  return rest * x;
end;
startstate begin n := 0; f := 1; end;
rule "next" begin
  n := (n + 1) % 7;
  f := factorial(n);
  assert n = 4 -> f = 24;
end;

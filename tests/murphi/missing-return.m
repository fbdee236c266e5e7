-- verdict: violated
--
-- A function reaches its end without a `return`, for an odd argument.
var n: 0..3;
function half(x: 0..3): 0..3;
begin
  if x % 2 = 0 then return x / 2; end;
end;
startstate begin n := 2; end;
rule begin n := half(n); end;

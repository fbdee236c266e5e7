-- verdict: verified
-- states: 4
--
-- Bounds of ranges are any constant expressions: bit operators, shifts, `?:`, and aliases of constants.
const a: 7;
var n: 0..a & 3; m: 1 | 2 .. 1 << 2; k: 0..true ? 3 : 1;
startstate begin n := 0; m := 3; k := 3; end;
alias top: a - 4 do
  ruleset i: 0..top do
    rule begin n := i; end;
  end;
  rule begin
    alias most: top + 0 do
      for j: 0..most do assert j <= 3; end;
    end;
  end;
end;

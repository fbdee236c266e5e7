-- verdict: rejected
--
-- Expressions that must be constant, within their range, or non-empty, and are not.
var n: 0..3;
const k: n;
type
  down: 3..1;
  far: 0..30000000000000000000;
  none: scalarset(0);
  zero: 1/0 .. 3;
  flag: true..false;
  parts: array [array [0..1] of boolean] of boolean;
startstate begin n := 0; for i := 0 to 3 by 0 do n := i; end; end;
ruleset i := 0 to n do rule begin n := i; end; end;

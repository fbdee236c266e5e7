-- verdict: verified
-- states: 240
--
-- Ranges up to 2^63, above and below 0, as Rumur accepts them. One range with its undefined value takes all 64 bits of
-- a word, so no field crosses a word boundary.
const
  most: 9223372036854775807;
  third: most / 3;
type
  whole: -most .. most;
  far: 0 .. 1 << 40;
  end_: most - 2 .. most;
  mark: boolean;
var
  w: whole;
  f: far;
  e: end_;
  a: array [0..2] of far;
  r: record low: -(1 << 62) .. 0; b: mark; high: whole; end;

startstate "all at their ends"
begin
  w := -most; f := 0; e := most - 2;
  for i := 0 to 2 do a[i] := 1 << 40; end;
  r.low := -(1 << 62); r.b := false; r.high := most;
end;

rule "over" w < most ==> begin w := w < 0 ? w + third * 3 : most; end;
rule "up" f < 1 << 40 ==> begin f := f * 1024 + 1023; if f > 1 << 39 then f := 1 << 40; end; end;
rule "on" e < most ==> begin e := e + 1; end;
rule "down" r.low < 0 ==> begin r.low := r.low / 3000000000; r.b := !r.b; undefine r.high; end;
rule "around" w = most & f = 1 << 40 & e = most & r.low = 0 ==>
begin
  w := -most; f := 0; e := most - 2; r.low := -(1 << 62); r.b := false; r.high := -most;
end;

invariant "in between" w = -most | w = -1 | w = most - 2 | w = most;
invariant "halves" (f + f) / 2 = f & -(-w) = w & e - most + 2 >= 0;
invariant "bits" (e >> 61) = 3 & (w = most | ~w = -w - 1) & (r.low >> 62) + (r.low < 0 ? 1 : 0) = 0;

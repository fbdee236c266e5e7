-- verdict: verified
-- states: 4
--
-- Whole records and arrays are copied, compared and cleared.
type
  cell: record v: 0..3; valid: boolean; end;
  row: array [0..1] of cell;
var r: row; s: row; c: cell;
startstate begin clear r; clear s; clear c; end;
rule "step" begin
  r[0].v := (r[0].v + 1) % 4;
  s := r;
  c := r[0];
  assert s = r & c = r[0];
  assert (r[0].v = 0) = (r[0] = r[1]);
end;

-- verdict: violated
-- property: index
-- steps: 6
-- dialect: both
-- counted by: rumur
--
-- A ring buffer whose writer wraps around one slot too late. Violation: the write beyond the end of the array.

const
  size: 4;

type
  cursor: 0..size;

var
  ring: array [0..size - 1] of boolean;
  read_at: cursor;
  write_at: cursor;
  used: 0..size;

rule "write"
  used < size
==>
begin
  ring[write_at] := true;
  if write_at = size then write_at := 0; else write_at := write_at + 1; end;
  used := used + 1;
end;

rule "read"
  used > 0
==>
begin
  ring[read_at] := false;
  read_at := (read_at + 1) % size;
  used := used - 1;
end;

startstate
begin
  for i := 0 to size - 1 do ring[i] := false; end;
  read_at := 0;
  write_at := 0;
  used := 0;
end;

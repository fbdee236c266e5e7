-- verdict: violated
-- property: invariant "mutual exclusion"
-- steps: 6
-- dialect: both
-- counted by: rumur
--
-- Peterson's mutual exclusion for two processes on a machine with store buffers (total store order, as of x86): a write
-- is buffered while later reads overtake it. Violation: without a fence between the writes and the read both enter.

const
  depth: 2;

type
  proc: 0..1;
  cell: enum { flag0, flag1, turn };
  place: enum { idle, write_turn, look, critical };

var
  memory: array [cell] of 0..1;
  buffer: array [proc] of array [1..depth] of record where_to: cell; what: 0..1; end;
  held: array [proc] of 0..depth; -- entries of the buffer, the oldest first
  at: array [proc] of place;

function flag(p: proc): cell;
begin
  if p = 0 then return flag0; else return flag1; end;
end;

-- Value that a process reads: its own latest buffered write, or else memory.
function read(p: proc; c: cell): 0..1;
begin
  for k: 1..depth do
    if depth + 1 - k <= held[p] then
      if buffer[p][depth + 1 - k].where_to = c then return buffer[p][depth + 1 - k].what; end;
    end;
  end;
  return memory[c];
end;

procedure write(p: proc; c: cell; v: 0..1);
begin
  held[p] := held[p] + 1;
  buffer[p][held[p]].where_to := c;
  buffer[p][held[p]].what := v;
end;

ruleset p: proc do
  rule "raise the flag"
    at[p] = idle & held[p] < depth
  ==>
  begin
    write(p, flag(p), 1);
    at[p] := write_turn;
  end;

  rule "let the other go first"
    at[p] = write_turn & held[p] < depth
  ==>
  begin
    write(p, turn, 1 - p);
    at[p] := look;
  end;

  rule "enter"
    at[p] = look & (read(p, flag(1 - p)) = 0 | read(p, turn) = p)
  ==>
  begin
    at[p] := critical;
  end;

  rule "leave"
    at[p] = critical & held[p] < depth
  ==>
  begin
    write(p, flag(p), 0);
    at[p] := idle;
  end;

  rule "the oldest write reaches memory"
    held[p] > 0
  ==>
  begin
    memory[buffer[p][1].where_to] := buffer[p][1].what;
    for k: 1..depth - 1 do
      if k < held[p] then buffer[p][k] := buffer[p][k + 1]; end;
    end;
    undefine buffer[p][held[p]];
    held[p] := held[p] - 1;
  end;
end;

startstate
begin
  for c: cell do memory[c] := 0; end;
  for p: proc do held[p] := 0; at[p] := idle; end;
end;

invariant "mutual exclusion"
  !(at[0] = critical & at[1] = critical);

-- verdict: verified
-- states: 276
-- orbits: 59
-- dialect: both
-- counted by: rumur
--
-- Readers and writers with preference for readers (P. J. Courtois, F. Heymans and D. L. Parnas, "Concurrent control with
-- readers and writers", 1971). The first reader takes the semaphore `room` on behalf of all, the last returns it; `gate`
-- protects the count. Three readers, two writers. Checked: a writer is alone, and the count is right.

const
  reader_count: 3;
  writer_count: 2;

type
  reader: scalarset(reader_count);
  writer: scalarset(writer_count);
  reader_place: enum { r_idle, r_counting, r_first, r_opening, r_reading, r_done, r_leaving };
  writer_place: enum { w_idle, w_waiting, w_writing };

var
  at_r: array [reader] of reader_place;
  at_w: array [writer] of writer_place;
  readers: 0..reader_count;
  gate: boolean; -- semaphore of the readers' count; true if free
  room: boolean; -- semaphore of the shared resource; true if free

ruleset r: reader do
  rule "reader takes the gate"
    at_r[r] = r_idle & gate
  ==>
  begin
    gate := false;
    at_r[r] := r_counting;
  end;

  rule "reader counts itself"
    at_r[r] = r_counting
  ==>
  begin
    readers := readers + 1;
    if readers = 1 then at_r[r] := r_first; else at_r[r] := r_opening; end;
  end;

  rule "first reader takes the room"
    at_r[r] = r_first & room
  ==>
  begin
    room := false;
    at_r[r] := r_opening;
  end;

  rule "reader opens the gate"
    at_r[r] = r_opening
  ==>
  begin
    gate := true;
    at_r[r] := r_reading;
  end;

  rule "reader takes the gate to leave"
    at_r[r] = r_reading & gate
  ==>
  begin
    gate := false;
    at_r[r] := r_done;
  end;

  rule "reader discounts itself"
    at_r[r] = r_done
  ==>
  begin
    readers := readers - 1;
    if readers = 0 then room := true; end;
    at_r[r] := r_leaving;
  end;

  rule "reader leaves"
    at_r[r] = r_leaving
  ==>
  begin
    gate := true;
    at_r[r] := r_idle;
  end;
end;

ruleset w: writer do
  rule "writer wants"
    at_w[w] = w_idle
  ==>
  begin
    at_w[w] := w_waiting;
  end;

  rule "writer takes the room"
    at_w[w] = w_waiting & room
  ==>
  begin
    room := false;
    at_w[w] := w_writing;
  end;

  rule "writer leaves"
    at_w[w] = w_writing
  ==>
  begin
    room := true;
    at_w[w] := w_idle;
  end;
end;

startstate
begin
  for r: reader do at_r[r] := r_idle; end;
  for w: writer do at_w[w] := w_idle; end;
  readers := 0;
  gate := true;
  room := true;
end;

invariant "a writer is alone"
  forall w: writer do
    at_w[w] = w_writing ->
    forall r: reader do at_r[r] != r_reading end &
    forall v: writer do at_w[v] = w_writing -> v = w end
  end;

invariant "the room is taken while someone reads"
  (exists r: reader do at_r[r] = r_reading end) -> !room;

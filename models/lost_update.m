-- verdict: violated
-- property: assert "no update is lost"
-- steps: 5
-- dialect: both
-- counted by: rumur
--
-- Two threads increment a counter by read, add and write, without a lock. Violation: an update is lost.

type
  thread: 0..1;
  place: enum { reading, writing, ended };

var
  counter: 0..2;
  at: array [thread] of place;
  register: array [thread] of 0..2;

ruleset t: thread do
  rule "read"
    at[t] = reading
  ==>
  begin
    register[t] := counter;
    at[t] := writing;
  end;

  rule "write"
    at[t] = writing
  ==>
  begin
    counter := register[t] + 1;
    undefine register[t];
    at[t] := ended;
  end;
end;

rule "check and begin again"
  forall t: thread do at[t] = ended end
==>
begin
  assert counter = 2 "no update is lost";
  counter := 0;
  for t: thread do at[t] := reading; end;
end;

startstate
begin
  counter := 0;
  for t: thread do at[t] := reading; end;
end;

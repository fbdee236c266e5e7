-- verdict: violated
-- property: deadlock
-- steps: 3
-- dialect: rumur
-- counted by: rumur
--
-- A client retries a request that a busy server refuses, under an assumption that no client retries a third time. An assumption
-- inside a rule removes the transition; the model has no other one. Violation: the state from which the only transition was
-- removed.

var
  busy: boolean;
  waiting: boolean;
  retries: 0..9;

rule "request"
  !waiting
==>
begin
  waiting := true;
  busy := true;
  retries := 0;
end;

rule "serve"
  waiting & retries < 2
==>
begin
  busy := false;
  waiting := false;
end;

rule "retry"
  waiting & busy
==>
begin
  assume "nobody retries a third time" retries < 2;
  retries := retries + 1;
end;

startstate
begin
  busy := false;
  waiting := false;
  retries := 0;
end;

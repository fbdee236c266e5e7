-- verdict: violated
-- property: deadlock
-- steps: 3
-- dialect: rumur
-- counted by: rumur
--
-- A client retries a request that a server refuses while it is busy. The model assumes that nobody retries a third time, and
-- forgets what then happens: an assumption inside a rule takes the transition away. Shown: the state from which the only way
-- was the assumed-away one.

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

-- verdict: violated
-- property: error "a grant that nobody waits for"
-- steps: 4
-- dialect: both
-- counted by: rumur
--
-- A client may cancel its request to a server, and wrongly treats the cancellation as
-- immediate. Violation: a grant that the server sent before it received the cancellation.

type
  client_state: enum { idle, waiting, granted };
  to_server: enum { quiet, ask, cancel, give_back };
  to_client: enum { silent, grant };

var
  client: client_state;
  up: to_server;
  down: to_client;
  taken: boolean;

rule "ask"
  client = idle & up = quiet
==>
begin
  client := waiting;
  up := ask;
end;

rule "cancel"
  client = waiting & up = quiet
==>
begin
  client := idle;
  up := cancel;
end;

rule "server grants"
  up = ask & !taken & down = silent
==>
begin
  taken := true;
  down := grant;
  up := quiet;
end;

rule "server receives the cancellation or the end"
  up = cancel | up = give_back
==>
begin
  taken := false;
  up := quiet;
end;

rule "client receives"
  down = grant
==>
begin
  down := silent;
  switch client
  case waiting:
    client := granted;
  case idle, granted:
    error "a grant that nobody waits for";
  end;
end;

rule "give back"
  client = granted & up = quiet
==>
begin
  client := idle;
  up := give_back;
end;

startstate
begin
  client := idle;
  up := quiet;
  down := silent;
  taken := false;
end;

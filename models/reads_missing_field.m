-- verdict: violated
-- property: undefined
-- steps: 3
-- dialect: both
-- counted by: rumur
--
-- A cache reads the data of a response without a test of its kind; a
-- refusal has no data. Violation: the read of a field that was never written.

type
  response_kind: enum { none, data, refused };
  word: 0..3;

var
  requested: boolean;
  response: record
    kind: response_kind;
    word: word;
  end;
  sum: 0..7;

rule "request"
  !requested
==>
begin
  requested := true;
end;

rule "respond with data"
  requested & response.kind = none
==>
begin
  response.kind := data;
  response.word := 2;
end;

rule "refuse"
  requested & response.kind = none
==>
begin
  response.kind := refused;
end;

rule "take the response"
  response.kind != none
==>
begin
  sum := (sum + response.word) % 8;
  response.kind := none;
  undefine response.word;
  requested := false;
end;

startstate
begin
  requested := false;
  response.kind := none;
  sum := 0;
end;

-- verdict: violated
-- property: undefined
-- steps: 3
-- dialect: both
-- counted by: rumur
--
-- A cache reads the data field of a response without a test of its kind; a
-- refusal has no data. Violation: the read of a field that was never written.

type
  kind: enum { no_answer, data, refused };
  value: 0..3;

var
  requested: boolean;
  answer: record
    kind: kind;
    data: value;
  end;
  sum: 0..7;

rule "request"
  !requested
==>
begin
  requested := true;
end;

rule "answer with data"
  requested & answer.kind = no_answer
==>
begin
  answer.kind := data;
  answer.data := 2;
end;

rule "refuse"
  requested & answer.kind = no_answer
==>
begin
  answer.kind := refused;
end;

rule "take the answer"
  answer.kind != no_answer
==>
begin
  sum := (sum + answer.data) % 8;
  answer.kind := no_answer;
  undefine answer.data;
  requested := false;
end;

startstate
begin
  requested := false;
  answer.kind := no_answer;
  sum := 0;
end;

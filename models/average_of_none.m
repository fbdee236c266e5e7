-- verdict: violated
-- property: division by zero
-- steps: 6
-- dialect: both
-- counted by: rumur
--
-- A meter shows the average of its samples and sometimes clears them. Violation: a query after clearing divides by
-- zero.

const
  most: 3;

var
  count: 0..most;
  sum: 0..most * 5;
  shown: 0..5;

ruleset sample: 1..5 do
  rule "sample"
    count < most
  ==>
  begin
    count := count + 1;
    sum := sum + sample;
  end;
end;

rule "show"
  count > 0 | shown > 3
==>
begin
  shown := sum / count;
end;

rule "forget"
  count = most
==>
begin
  count := 0;
  sum := 0;
end;

startstate
begin
  count := 0;
  sum := 0;
  shown := 0;
end;

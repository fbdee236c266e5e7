-- verdict: violated
-- property: range
-- steps: 3
-- dialect: both
-- counted by: rumur
--
-- Two users of a counting semaphore with maximum two, one of which releases it twice if it is
-- interrupted (as a deferred cleanup that runs twice). Violation: the count leaves its range.

const
  places: 2;

type
  user: scalarset(2);

var
  count: 0..places;
  inside: array [user] of boolean;
  interrupted: array [user] of boolean;

ruleset u: user do
  rule "acquire"
    !inside[u] & count > 0
  ==>
  begin
    count := count - 1;
    inside[u] := true;
    interrupted[u] := false;
  end;

  rule "interrupt"
    inside[u] & !interrupted[u]
  ==>
  begin
    interrupted[u] := true;
    count := count + 1;
  end;

  rule "release"
    inside[u]
  ==>
  begin
    count := count + 1;
    inside[u] := false;
  end;
end;

startstate
begin
  count := places;
  for u: user do
    inside[u] := false;
    interrupted[u] := false;
  end;
end;

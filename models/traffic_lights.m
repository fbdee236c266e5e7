-- verdict: violated
-- property: cover "all lights are red"
-- states: 4
-- dialect: rumur
-- counted by: rumur
--
-- A crossing with two traffic lights that alternate. The designer expects a state in which all are red, as a
-- cover. Violation: one goes green in the step in which the other goes red, so no such state is reachable.

type
  road: 0..1;
  light: enum { red, yellow, green };

var
  lights: array [road] of light;

ruleset r: road do
  rule "warn"
    lights[r] = green
  ==>
  begin
    lights[r] := yellow;
  end;

  rule "take turns"
    lights[r] = yellow
  ==>
  begin
    lights[r] := red;
    lights[1 - r] := green;
  end;
end;

startstate
begin
  lights[0] := green;
  lights[1] := red;
end;

invariant "one road at a time"
  lights[0] = red | lights[1] = red;

cover "the other road goes"
  lights[1] = green;

cover "all lights are red"
  lights[0] = red & lights[1] = red;

-- verdict: rejected
--
-- Undeclared names; each message lists the declared names in scope.
type colour: enum { red, green };
var lamp: colour; r: record left: boolean; right: boolean; end;
startstate begin
  lamb := red;
  lamp := gren;
  r.lift := true;
  flip(lamp);
end;
var other: color;
rule lamp = late ==> begin lamp := red; end;
var late: colour;

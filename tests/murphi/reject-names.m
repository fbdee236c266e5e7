-- verdict: rejected
--
-- Names that nobody has declared, each with those that exist.
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

-- verdict: verified
-- states: 4
--
-- The first matching case is executed; without a match and without `else`, nothing happens.
type colour: enum { red, green, blue, white };
var c: colour;
startstate begin c := red; end;
rule "next" begin
  switch c
    case red: c := green;
    case green, blue:
      if c = green then c := blue; else c := white; end;
    else c := red;
  end;
  switch c case red: switch 3 case 4: error "four"; end; end;
end;

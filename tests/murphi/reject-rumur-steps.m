-- verdict: rejected
-- dialect: rumur
--
-- A constant step that leads away from the end of its range is rejected, explicit or default, in every construct.
const a: 3;
var n: 0..3;
startstate begin
  n := 0;
  for i := a to 1 do n := i; end;
  for i := 3 to 1 by 1 do n := i; end;
  for i := 1 to a by -2 do n := i; end;
end;
ruleset i := 3 to 1 by 2 do rule begin n := i; end; end;
invariant forall i := 1 to 3 by -1 do n >= 0 end;
invariant exists i := 3 to 3 by -1 do n >= 0 end;

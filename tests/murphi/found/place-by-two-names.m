-- verdict: verified
-- states: 3
-- deadlock: off
--
-- Found at random: a procedure that calls itself got a copy of the place that is handed to it, and put it back over what
-- it had made of that place by its own name.
type
  small: 1 .. 4;
var
  v: small;
  done: boolean;
procedure down(n: small; var x: small);
  v := 1;
  if n > 1 then
    down(n - 1, x);
  end;
  done := true;
end;
startstate
  v := 4;
end;
rule "one" 2 != v ==>
  v := 1;
end;
rule "down"
begin
  down(4, v);
end;

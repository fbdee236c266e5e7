-- verdict: verified
-- states: 12
--
-- An alias of a variable keeps the element that its index selected; an alias of an expression keeps the value computed.
var a: array [0..2] of 0..3; i: 0..2;
startstate begin for k: 0..2 do a[k] := 0; end; i := 0; end;
rule "bump" begin
  alias here: a[i]; sum: i + 10 do
    i := (i + 1) % 3;
    here := (here + 1) % 4;
    assert sum >= 10 & sum != i + 10;
  end;
end;
alias first: a[0] do
  rule "together" first = 3 ==> begin
    for k: 0..2 do a[k] := 0; end; i := 0;
  end;
end;
invariant forall k: 0..2 do a[k] <= 3 end;

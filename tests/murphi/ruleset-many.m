-- verdict: verified
-- states: 120
--
-- Two million rule instances, of which at most two are enabled in any state.
const N: 1000;
type T: 1..N;
var a, b: T; c: boolean; m: 0..2;
startstate begin a := 1; b := 1; c := false; m := 0; end;
ruleset i: T; j: T; k: boolean do
  alias here: b do
    rule "step" a = i & i < 20 & k != c & here = j ==>
    begin a := i + 1; here := N + 1 - j; c := k; end;
  end;
end;
rule "wrap" a = 20 ==> begin a := 1; m := (m + 1) % 3; end;

-- verdict: rejected
--
-- What separates names of quantifiers stands between two of them: a syntax error for both checkers where it does not.
type t: 0..3;
var n: t;
startstate begin
  n := 0;
  for i: t; do n := 1; end;
end;
ruleset i: t, do rule begin n := i; end; end;
invariant forall i: t; do true end;

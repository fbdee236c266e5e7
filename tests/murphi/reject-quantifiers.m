-- verdict: rejected
--
-- A separator between quantifiers without a second quantifier: a syntax error in both dialects.
type t: 0..3;
var n: t;
startstate begin
  n := 0;
  for i: t; do n := 1; end;
end;
ruleset i: t, do rule begin n := i; end; end;
invariant forall i: t; do true end;

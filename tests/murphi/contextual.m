-- verdict: verified
-- states: 2
-- rumur: refuses
--
-- Words reserved in only one of the two dialects are valid identifiers where they are used as identifiers.
type choose: 0..1;
var cover: choose; multiset: choose; undefined: choose;
startstate begin cover := 0; multiset := 0; undefined := 0; end;
rule "flip" begin cover := 1 - cover; multiset := cover; undefined := cover; end;
invariant cover = undefined;

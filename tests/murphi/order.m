-- verdict: verified
-- states: 4
--
-- Declarations, functions and rules in any order; semicolons where they are missed.
var n: 0..3
startstate begin n := 0 end
const start_at: 0
rule "next" begin n := (n + 1) % 4 end;;
invariant n < 4

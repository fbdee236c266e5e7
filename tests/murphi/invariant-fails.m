-- verdict: violated
--
-- No two counters may both be 2; the invariant quantifies over all pairs and fails.
type id: 0..1;
var n: array [id] of 0..2;
startstate begin for i: id do n[i] := 0; end; end;
ruleset i: id do
  rule "up" n[i] < 2 ==> begin n[i] := n[i] + 1; end;
  rule "back" n[i] = 2 ==> begin n[i] := 0; end;
end;
invariant "not both" forall i: id do forall j: id do i = j | n[i] != 2 | n[j] != 2 end end;

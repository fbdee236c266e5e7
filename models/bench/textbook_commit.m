-- style: textbook
-- verdict: verified
-- states: 1723152
-- orbits: 2942
--
-- Atomic commitment: a coordinator asks all participants for their votes, decides, and informs them; a participant may
-- fail before it votes, and the coordinator then aborts.
type
  participant: scalarset(7);
  phase: enum { idle, asked, voted_yes, voted_no, committed, aborted };
  decision: enum { open, commit, abort };

var
  at: array [participant] of phase;
  vote_known: array [participant] of boolean;
  decided: decision;

startstate
begin
  for p: participant do
    at[p] := idle;
    vote_known[p] := false;
  end;
  decided := open;
end;

ruleset p: participant do
  rule "ask" at[p] = idle & decided = open ==> begin at[p] := asked; end;
  rule "vote yes" at[p] = asked ==> begin at[p] := voted_yes; end;
  rule "vote no" at[p] = asked ==> begin at[p] := voted_no; end;
  rule "learn" decided = open & (at[p] = voted_yes | at[p] = voted_no) & !vote_known[p] ==>
  begin
    vote_known[p] := true;
    if at[p] = voted_no then decided := abort; end;
  end;
  rule "time out" decided = open & at[p] = asked ==> begin decided := abort; end;
  rule "inform" decided != open & (at[p] = voted_yes | at[p] = idle) ==>
  begin
    if decided = commit then at[p] := committed; else at[p] := aborted; end;
  end;
end;

rule "decide" decided = open & forall p: participant do vote_known[p] & at[p] = voted_yes end ==>
begin
  decided := commit;
end;

rule "next transaction"
  decided != open & forall p: participant do at[p] = committed | at[p] = aborted | at[p] = voted_no end ==>
begin
  for p: participant do
    at[p] := idle;
    vote_known[p] := false;
  end;
  decided := open;
end;

invariant "agreement"
  forall p: participant do forall q: participant do at[p] = committed -> at[q] != aborted & at[q] != voted_no end end;

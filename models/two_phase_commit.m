-- verdict: verified
-- deadlock: stuck
-- states: 6833
-- orbits: 535
-- dialect: both
-- counted by: rumur
--
-- Two-phase commit (J. N. Gray, "Notes on data base operating systems", 1978), a coordinator and four participants,
-- with reordered messages and a coordinator that may abort while it waits for votes. Checked: no participant commits
-- while another aborts, and all terminate. A terminated system has a self-loop, so that it is not a deadlock.

const
  participants: 4;

type
  participant: scalarset(participants);
  state: enum { working, prepared, committed, aborted };
  vote: enum { no_vote, says_yes, says_no };
  decision: enum { undecided, commit, abort };

var
  at: array [participant] of state;
  votes: array [participant] of vote; -- in flight
  counted: array [participant] of boolean;
  orders: array [participant] of decision; -- in flight
  decided: decision;

ruleset p: participant do
  rule "vote yes"
    at[p] = working
  ==>
  begin
    at[p] := prepared;
    votes[p] := says_yes;
  end;

  rule "vote no"
    at[p] = working
  ==>
  begin
    at[p] := aborted;
    votes[p] := says_no;
  end;

  rule "count a yes"
    votes[p] = says_yes
  ==>
  begin
    votes[p] := no_vote;
    counted[p] := true;
  end;

  rule "learn of a no"
    votes[p] = says_no
  ==>
  begin
    votes[p] := no_vote;
    if decided = undecided then
      decided := abort;
      for q: participant do orders[q] := abort; end;
    end;
  end;

  rule "obey"
    orders[p] != undecided
  ==>
  begin
    if orders[p] = commit then
      assert at[p] = prepared "only a prepared participant commits";
      at[p] := committed;
    else
      assert at[p] != committed "a committed participant never aborts";
      at[p] := aborted;
    end;
    orders[p] := undecided;
  end;
end;

rule "decide to commit"
  decided = undecided & forall p: participant do counted[p] end
==>
begin
  decided := commit;
  for p: participant do orders[p] := commit; end;
end;

rule "give up"
  decided = undecided
==>
begin
  decided := abort;
  for p: participant do orders[p] := abort; end;
end;

rule "all have ended"
  forall p: participant do
    (at[p] = committed | at[p] = aborted) & orders[p] = undecided & votes[p] = no_vote
  end
==>
begin
end;

startstate
begin
  for p: participant do
    at[p] := working;
    votes[p] := no_vote;
    counted[p] := false;
    orders[p] := undecided;
  end;
  decided := undecided;
end;

invariant "all or nothing"
  !((exists p: participant do at[p] = committed end) & exists p: participant do at[p] = aborted end);

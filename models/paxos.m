-- verdict: verified
-- deadlock: off
-- states: 173824
-- orbits: 31616
-- dialect: both
-- counted by: rumur
--
-- Paxos for a single decision (L. Lamport, "The part-time parliament", 1998), three acceptors, two values, three
-- ballots with a proposer each. Messages stay in flight for ever: an acceptor remembers its promise and its last
-- vote, and the votes and promises of each ballot stay visible. Checked: two ballots never choose different values.

const
  acceptors: 3;
  ballots: 3;

type
  acceptor: scalarset(acceptors);
  ballot: 1..ballots;
  maybe_ballot: 0..ballots;
  value: enum { none, red, blue };

var
  promised: array [acceptor] of maybe_ballot;
  -- Promise of an acceptor in a ballot, with its last earlier vote.
  promise_of: array [ballot] of array [acceptor] of record
    there: boolean;
    voted_in: maybe_ballot;
    voted_for: value;
  end;
  vote_ballot: array [acceptor] of maybe_ballot;
  vote_value: array [acceptor] of value;
  proposed: array [ballot] of value;
  voted: array [ballot] of array [acceptor] of boolean;

function promises(b: ballot): 0..acceptors;
var n: 0..acceptors;
begin
  n := 0;
  for a: acceptor do if promise_of[b][a].there then n := n + 1; end; end;
  return n;
end;

-- The value of the highest vote among the promises of a ballot; none if there is no vote.
function bound_to(b: ballot): value;
var v: value;
begin
  v := none;
  for a: acceptor do
    if promise_of[b][a].there & promise_of[b][a].voted_in > 0 & forall o: acceptor do
      promise_of[b][o].there -> promise_of[b][o].voted_in <= promise_of[b][a].voted_in end then
      v := promise_of[b][a].voted_for;
    end;
  end;
  return v;
end;

function chosen(b: ballot): boolean;
var n: 0..acceptors;
begin
  n := 0;
  for a: acceptor do if voted[b][a] then n := n + 1; end; end;
  return 2 * n > acceptors;
end;

ruleset b: ballot; a: acceptor do
  rule "promise"
    promised[a] < b
  ==>
  begin
    promised[a] := b;
    promise_of[b][a].there := true;
    promise_of[b][a].voted_in := vote_ballot[a];
    promise_of[b][a].voted_for := vote_value[a];
  end;

  rule "accept"
    proposed[b] != none & promised[a] <= b & !voted[b][a]
  ==>
  begin
    promised[a] := b;
    vote_ballot[a] := b;
    vote_value[a] := proposed[b];
    voted[b][a] := true;
  end;
end;

ruleset b: ballot; v: value do
  rule "propose"
    v != none & proposed[b] = none & 2 * promises(b) > acceptors & (bound_to(b) = none | bound_to(b) = v)
  ==>
  begin
    proposed[b] := v;
  end;
end;

startstate
begin
  for a: acceptor do
    promised[a] := 0;
    vote_ballot[a] := 0;
    vote_value[a] := none;
    for b: ballot do
      promise_of[b][a].there := false;
      promise_of[b][a].voted_in := 0;
      promise_of[b][a].voted_for := none;
      voted[b][a] := false;
    end;
  end;
  for b: ballot do proposed[b] := none; end;
end;

invariant "one value is chosen"
  forall b: ballot do forall c: ballot do
    chosen(b) & chosen(c) -> proposed[b] = proposed[c]
  end end;

-- verdict: verified
-- deadlock: off
-- states: 183931
-- orbits: 30806
-- dialect: both
-- counted by: rumur
--
-- The leader election of Raft (D. Ongaro and J. Ousterhout, "In search of an understandable consensus algorithm", 2014), three
-- servers, three terms, with lost, duplicated and reordered messages, and servers that crash and restart from disk: their term
-- and whether they have voted in it. Checked: a term has one leader at most.

const
  servers: 3;
  terms: 3;

type
  server: scalarset(servers);
  term: 0..terms;
  role: enum { follower, candidate, leader };

var
  current: array [server] of term;
  voted: array [server] of boolean; -- has voted in its current term
  role_of: array [server] of role;
  votes: array [server] of array [server] of boolean; -- votes that a candidate has received
  -- Every message ever sent stays in flight, so it may arrive late, twice, or never.
  requested: array [term] of array [server] of boolean;
  granted: array [term] of array [server] of array [server] of boolean; -- to the first, by the second
  led: array [term] of array [server] of boolean; -- servers that have led a term, for the invariant only

ruleset s: server do
  rule "time out"
    role_of[s] != leader & current[s] < terms
  ==>
  begin
    current[s] := current[s] + 1;
    role_of[s] := candidate;
    voted[s] := true;
    for t: server do votes[s][t] := s = t; end;
    requested[current[s]][s] := true;
  end;

  rule "stop and start again"
    role_of[s] != follower
  ==>
  begin
    role_of[s] := follower;
    for t: server do votes[s][t] := false; end;
  end;

  rule "win"
    role_of[s] = candidate & exists t: server do t != s & votes[s][t] end
  ==>
  begin
    role_of[s] := leader;
    led[current[s]][s] := true;
    for t: server do votes[s][t] := false; end;
  end;
end;

ruleset s: server; c: server; n: 1..terms do
  rule "a request for a vote arrives"
    s != c & requested[n][c] & (n > current[s] | (n = current[s] & !voted[s]))
  ==>
  begin
    if n > current[s] then
      current[s] := n;
      role_of[s] := follower;
      for t: server do votes[s][t] := false; end;
    end;
    voted[s] := true;
    granted[n][c][s] := true;
  end;

  rule "a vote arrives"
    granted[n][c][s] & role_of[c] = candidate & current[c] = n & !votes[c][s]
  ==>
  begin
    votes[c][s] := true;
  end;

  rule "a leader is heard of"
    s != c & role_of[c] = leader & current[c] = n & (n > current[s] | (n = current[s] & role_of[s] = candidate))
  ==>
  begin
    if n > current[s] then voted[s] := false; end;
    current[s] := n;
    role_of[s] := follower;
    for t: server do votes[s][t] := false; end;
  end;
end;

startstate
begin
  for s: server do
    current[s] := 0;
    voted[s] := false;
    role_of[s] := follower;
    for t: server do votes[s][t] := false; end;
  end;
  for n: term do
    for s: server do
      requested[n][s] := false;
      led[n][s] := false;
      for t: server do granted[n][s][t] := false; end;
    end;
  end;
end;

invariant "a term has one leader"
  forall n: term do forall s: server do forall t: server do led[n][s] & led[n][t] -> s = t end end end;

-- verdict: verified
-- states: 1538
-- dialect: rumur
-- counted by: rumur
--
-- Two replicas append to their logs and copy entries from each other, under an assumption that bounds logs to six entries. The
-- assumption at top level also excludes start states that differ. Checked: within that bound one log is a prefix of the other.

const
  most: 6;
  beyond: 8;

type
  replica: 0..1;
  length: 0..beyond;
  entry: 0..1;

var
  log: array [replica] of array [1..beyond] of entry;
  used: array [replica] of length;
  leader: replica;

ruleset e: entry do
  rule "append at the leader"
    used[leader] < beyond
  ==>
  begin
    used[leader] := used[leader] + 1;
    log[leader][used[leader]] := e;
  end;
end;

rule "copy one entry"
  used[1 - leader] < used[leader]
==>
begin
  used[1 - leader] := used[1 - leader] + 1;
  log[1 - leader][used[1 - leader]] := log[leader][used[1 - leader]];
end;

rule "change the leader when all is copied"
  used[0] = used[1]
==>
begin
  leader := 1 - leader;
end;

ruleset n: 0..1; m: 0..1 do
  startstate
  begin
    used[0] := n;
    used[1] := m;
    if n = 1 then log[0][1] := 0; end;
    if m = 1 then log[1][1] := 1; end;
    leader := 0;
  end;
end;

assume "logs are short"
  used[0] <= most & used[1] <= most;

assume "replicas start alike"
  used[0] = 0 | used[1] = 0 | log[0][1] = log[1][1];

assume "nobody starts ahead of the leader"
  used[1 - leader] <= used[leader];

invariant "one log is a prefix of the other"
  forall k: 1..beyond do
    k <= used[0] & k <= used[1] -> log[0][k] = log[1][k]
  end;

cover "the longest log is copied"
  used[0] = most & used[1] = most;

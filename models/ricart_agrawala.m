-- verdict: verified
-- states: 42319
-- dialect: both
-- counted by: rumur
--
-- Mutual exclusion by messages (G. Ricart and A. K. Agrawala, "An optimal algorithm for mutual exclusion
-- in computer networks", 1981) for three nodes, over a network that reorders messages. A request carries
-- a clock; a node defers its answer to later requests than its own. Each node enters twice, so that
-- clocks are bounded. Checked: mutual exclusion, and no deadlock before all nodes have entered twice.

const
  nodes: 3;
  visits: 2;
  latest: 6;

type
  node: 0..nodes - 1;
  clock: 0..latest;
  place: enum { idle, waiting, critical };

var
  at: array [node] of place;
  highest: array [node] of clock; -- highest clock seen
  own: array [node] of clock; -- clock of the node's own request
  left: array [node] of 0..visits;
  granted: array [node] of array [node] of boolean; -- [a][b]: a has received the reply of b
  deferred: array [node] of array [node] of boolean; -- [a][b]: a owes b a reply
  -- [a][b], messages from a to b.
  request: array [node] of array [node] of record sent: boolean; sent_at: clock; end;
  answer: array [node] of array [node] of boolean;

function earlier(a: clock; n: node; b: clock; m: node): boolean;
begin
  return a < b | (a = b & n < m);
end;

ruleset n: node do
  rule "ask"
    at[n] = idle & left[n] > 0 & forall m: node do !request[n][m].sent end
  ==>
  begin
    own[n] := highest[n] + 1;
    highest[n] := own[n];
    left[n] := left[n] - 1;
    for m: node do
      if m != n then
        request[n][m].sent := true;
        request[n][m].sent_at := own[n];
      end;
    end;
    at[n] := waiting;
  end;

  rule "enter"
    at[n] = waiting & forall m: node do m = n | granted[n][m] end
  ==>
  begin
    at[n] := critical;
  end;

  rule "leave"
    at[n] = critical
  ==>
  begin
    for m: node do
      granted[n][m] := false;
      if deferred[n][m] then
        deferred[n][m] := false;
        answer[n][m] := true;
      end;
    end;
    undefine own[n];
    at[n] := idle;
  end;
end;

ruleset n: node; m: node do
  rule "a request arrives"
    request[m][n].sent
  ==>
  begin
    if request[m][n].sent_at > highest[n] then highest[n] := request[m][n].sent_at; end;
    if at[n] = critical then
      deferred[n][m] := true;
    elsif at[n] = waiting then
      if earlier(own[n], n, request[m][n].sent_at, m) then
        deferred[n][m] := true;
      else
        answer[n][m] := true;
      end;
    else
      answer[n][m] := true;
    end;
    request[m][n].sent := false;
    undefine request[m][n].sent_at;
  end;

  rule "an answer arrives"
    answer[m][n]
  ==>
  begin
    assert at[n] = waiting "an answer to a request";
    answer[m][n] := false;
    granted[n][m] := true;
  end;
end;

-- All nodes have entered as often as allowed; the counts restart.
rule "begin again"
  forall n: node do at[n] = idle & left[n] = 0
    & forall m: node do !request[n][m].sent & !answer[n][m] end end
==>
begin
  for n: node do left[n] := visits; highest[n] := 0; end;
end;

startstate
begin
  for n: node do
    at[n] := idle;
    highest[n] := 0;
    left[n] := visits;
    for m: node do
      granted[n][m] := false;
      deferred[n][m] := false;
      request[n][m].sent := false;
      answer[n][m] := false;
    end;
  end;
end;

invariant "mutual exclusion"
  forall n: node do forall m: node do at[n] = critical & at[m] = critical -> n = m end end;

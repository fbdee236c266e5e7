-- verdict: verified
-- states: 1536
-- dialect: both
-- counted by: rumur
--
-- ring_network_deadlock.m with two virtual channels on each link and a dateline (W. J. Dally and C. L. Seitz, "Deadlock-free
-- message routing in multiprocessor interconnection networks", 1987): a packet that passes router 0 changes to the second
-- channel. Checked: no deadlock.

const
  routers: 4;
  lanes: 2;

type
  router: 0..routers - 1;
  lane: 0..lanes - 1;

var
  -- Buffer of each virtual channel (lane) of the link into a router: occupied, and its packet's destination.
  full: array [router] of array [lane] of boolean;
  target: array [router] of array [lane] of router;

function next(r: router): router;
begin
  return (r + 1) % routers;
end;

-- Returns the lane of the link into a router for a packet that arrives from lane `l` of the link before.
function next_lane(into: router; l: lane): lane;
begin
  if into = 0 then return lanes - 1; else return l; end;
end;

ruleset r: router; t: router do
  rule "inject a packet"
    t != r & !full[next(r)][next_lane(next(r), 0)]
  ==>
  begin
    full[next(r)][next_lane(next(r), 0)] := true;
    target[next(r)][next_lane(next(r), 0)] := t;
  end;
end;

ruleset r: router; l: lane do
  rule "forward a packet"
    full[r][l] & target[r][l] != r & !full[next(r)][next_lane(next(r), l)]
  ==>
  begin
    full[next(r)][next_lane(next(r), l)] := true;
    target[next(r)][next_lane(next(r), l)] := target[r][l];
    full[r][l] := false;
    undefine target[r][l];
  end;

  rule "eject a packet"
    full[r][l] & target[r][l] = r
  ==>
  begin
    full[r][l] := false;
    undefine target[r][l];
  end;
end;

startstate
begin
  for r: router do
    for l: lane do full[r][l] := false; undefine target[r][l]; end;
  end;
end;

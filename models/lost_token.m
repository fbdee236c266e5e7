-- verdict: violated
-- property: liveness "somebody can enter again"
-- states: 144
-- dialect: rumur
-- counted by: rumur
--
-- A token circulates in a ring of four stations over links that may lose it, and is never regenerated. Stations keep polling,
-- so there is no deadlock. Violation: after a loss no station can ever enter again.

const
  stations: 4;

type
  station: 0..stations - 1;

var
  has_token: array [station] of boolean;
  on_link: array [station] of boolean; -- into the station
  polls: array [station] of boolean;

ruleset s: station do
  rule "pass on"
    has_token[s]
  ==>
  begin
    has_token[s] := false;
    on_link[(s + 1) % stations] := true;
  end;

  rule "receive"
    on_link[s]
  ==>
  begin
    on_link[s] := false;
    has_token[s] := true;
  end;

  rule "lose"
    on_link[s]
  ==>
  begin
    on_link[s] := false;
  end;

  rule "poll"
    true
  ==>
  begin
    polls[s] := !polls[s];
  end;
end;

startstate
begin
  for s: station do
    has_token[s] := s = 0;
    on_link[s] := false;
    polls[s] := false;
  end;
end;

invariant "at most one token"
  forall s: station do has_token[s] -> forall t: station do !on_link[t] & (has_token[t] -> s = t) end end;

liveness "somebody can enter again"
  exists s: station do has_token[s] end;

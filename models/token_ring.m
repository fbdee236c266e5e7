-- verdict: verified
-- states: 256
-- dialect: rumur
-- counted by: rumur
--
-- Dijkstra's self-stabilising token ring (E. W. Dijkstra, "Self-stabilizing systems in spite of distributed
-- control", 1974), four machines with four states each, from every initial state. Machine 0 has the token
-- if its state equals that of its left neighbour, another machine if it does not. Checked: a token always
-- exists, and from every state one with a single token can be reached, which then stays single.

const
  machines: 4;
  values: 4;

type
  machine: 0..machines - 1;
  value: 0..values - 1;

var
  x: array [machine] of value;
  stable: boolean; -- there has been a state with a single token

function left(m: machine): machine;
begin
  return (m + machines - 1) % machines;
end;

function has_token(m: machine): boolean;
begin
  if m = 0 then return x[m] = x[left(m)]; end;
  return x[m] != x[left(m)];
end;

function tokens(): 0..machines;
var n: 0..machines;
begin
  n := 0;
  for m: machine do
    if has_token(m) then n := n + 1; end;
  end;
  return n;
end;

ruleset m: machine do
  rule "pass the token"
    has_token(m)
  ==>
  begin
    if m = 0 then x[m] := (x[m] + 1) % values; else x[m] := x[left(m)]; end;
    stable := stable | tokens() = 1;
  end;
end;

ruleset a: value; b: value; c: value; d: value do
  startstate
  begin
    x[0] := a;
    x[1] := b;
    x[2] := c;
    x[3] := d;
    stable := tokens() = 1;
  end;
end;

invariant "some machine has a token"
  tokens() > 0;

invariant "a single token stays single"
  stable -> tokens() = 1;

liveness "the ring stabilises"
  stable;

cover "all have tokens but one"
  tokens() = machines - 1;

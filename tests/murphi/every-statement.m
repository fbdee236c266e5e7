-- verdict: verified
-- states: 3507
-- rumur: differs it has neither unions nor operators on the bits of numbers
--
-- Every operator and every kind of statement, on small numbers of both signs.
const limit: 2;
type
  small: -limit .. limit;
  node: scalarset(2);
  colour: enum { red, green, blue };
  owner: union { node, colour };
  pair: record left: small; right: small; end;
var
  a, b: small;
  result: -100 .. 100;
  place: array [node] of colour;
  holder: owner;
  both: pair;
  steps: array [0 .. 3] of 0 .. 9;
  phase: 0 .. 15;

function quotient(x, y: small): small;
begin
  if y = 0 then return 0; end;
  return x / y;
end;

function first_above(bound: small): small;
begin
  for i: small do
    if i > bound then return i; end;
  end;
  return limit;
end;

procedure swap(var p: pair);
var left: small;
begin
  left := p.left;
  p.left := p.right;
  p.right := left;
end;

procedure advance();
begin
  if phase = 15 then return; end;
  phase := phase + 1;
end;

function take(): small;
begin
  phase := (phase + 3) % 16;
  return phase % 5;
end;

startstate "zero"
begin
  a := 0; b := 0; result := 0; phase := 0;
  for n: node do place[n] := red; end;
  clear both;
  for i := 3 to 0 by -1 do steps[i] := 3 - i; end;
  undefine holder;
end;

ruleset x: small; y: small do
  rule "compute" phase = 0 ==>
  begin
    a := x; b := y;
    both.left := x; both.right := y;
    phase := 1;
  end;
end;

rule "quotient" phase = 1 ==> begin result := quotient(a, b); advance(); end;
rule "remainder" phase = 1 & b != 0 ==> begin result := a % b; phase := 2; end;
rule "bits" phase = 2 ==> begin result := (a & b) + (a | b) - (a ^ b); advance(); end;
rule "shifts" phase = 3 ==> begin result := (a << 2) + (b >> 1) + (a >> -1) + (b << -2); phase := 4; end;
rule "swap" phase = 4 ==> begin swap(both); advance(); end;
rule "search" phase = 5 ==> begin result := first_above(both.left); advance(); end;
rule "sum" phase = 6 ==>
var total: 0 .. 100; rounds: 0 .. 20;
begin
  total := 0;
  rounds := 0;
  while total < 20 & rounds < limit + a do
    rounds := rounds + 1;
    total := total + rounds;
  end;
  result := total - rounds;
  phase := 7;
end;
ruleset n: node do
  rule "colours" phase = 7 ==>
  begin
    switch place[n]
      case red: place[n] := green;
      case green, blue: place[n] := blue;
    end;
    alias mine: place[n] do
      if mine = blue then holder := n; else holder := mine; end;
    end;
    phase := 8;
  end;
end;
rule "owner is a node" phase = 8 & !isundefined(holder) & ismember(holder, node) ==>
begin
  undefine holder;
  phase := 9;
end;
rule "owner is a colour" phase = 8 & ismember(holder, colour) ==>
begin
  if exists n: node do place[n] = holder end then phase := 9; end;
end;
rule "steps" phase = 9 ==>
begin
  for i := 0 to 3 by 2 do steps[i] := (steps[i] + i + 1) % 3; end;
  for i := 3 to 1 by -2 do steps[i] := steps[i - 1]; end;
  result := a < b ? (b - a) : (-b + a);
  result := result + (forall i := 0 to 3 do steps[i] < 2 end ? 1 : 2);
  phase := 10;
end;
rule "returns early" phase = 10 ==>
begin
  result := 0;
  if a > b then phase := 12; return; end;
  for i: small do
    if i = a then phase := 13; return; end;
    result := result + 1;
  end;
  phase := 14;
end;
rule "takes" phase = 12 ==> begin result := take(); end;
rule "again" phase > 12 ==>
begin
  phase := 7;
  result := 0;
end;
invariant "small results" result < 60;
invariant "owner at phase 8" phase = 8 -> !isundefined(holder);

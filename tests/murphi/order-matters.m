-- verdict: verified
-- states: 1
-- deadlock: off
-- rumur: refuses
--
-- Loops whose result depends on the order of scalarset values, which have none. A search tests most loops of rules; for
-- the others, with a warning, symmetry is not used.
type
  node: scalarset(3);
  thing: scalarset(2);
var
  up: array [node] of boolean;
  rank: array [node] of 0..3;
  next: array [node] of node;
  last, first: node;
  kept: 0..3;
  bag: multiset [3] of node;
  t: thing;
  sum: -1..1;

function lowest(): node;
begin
  for n: node do if !up[n] then return n; end; end;
end;

function deep(n: node; left: 0..2): boolean;
begin
  if left = 0 then return up[n]; end;
  for m: node do kept := rank[m]; end;
  return deep(n, left - 1);
end;

procedure put_into(n: node; var into: 0..3);
begin
  into := rank[n];
end;

function different(): boolean;
var before: 0..3;
begin
  before := 0;
  for n: node do if rank[n] != before then before := rank[n]; end; end;
  return before > 0;
end;

startstate begin
  for n: node do up[n] := true; rank[n] := 0; end;
end;

rule "the last one stays" false ==>
begin
  for n: node do if up[n] then last := n; end; end;
end;

rule "the same in a procedure" false ==>
begin
  for n: node do put_into(n, kept); end;
end;

rule "counted" false ==>
begin
  kept := 0;
  for n: node do rank[n] := kept; kept := kept + 1; end;
end;

rule "handed on" false ==>
begin
  for n: node do up[n] := up[last] | up[n]; end;
end;

rule "the first one" false ==>
begin
  first := lowest();
end;

rule "up and down" false ==>
begin
  sum := 0;
  for n: node do if up[n] then sum := sum + 1; else sum := sum - 1; end; end;
end;

rule "discarded or failed" false ==>
begin
  for n: node do assume up[n]; assert rank[n] = 0; end;
end;

rule "compared one by one" different() ==> begin end;

ruleset m: node do
  rule "all but one" false ==>
  begin
    for n: node do if n = m then up[n] := up[m]; else up[m] := up[n]; end; end;
  end;
end;

rule "calls itself" false ==>
begin
  for n: node do if deep(n, 2) then up[n] := false; end; end;
end;

rule "chosen by place" false ==>
begin
  clear t;
  multisetremovepred(i: bag, multisetcount(j: bag, bag[j] != bag[i]) > 0);
end;

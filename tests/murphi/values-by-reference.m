-- verdict: verified
-- states: 6
-- dialect: cmurphi
-- rumur: differs what is passed as a value is a copy
--
-- A record in a global variable is passed by value to a procedure that changes the variable. CMurphi passes all arguments
-- by reference, so the parameter changes with the variable.
type
  who: 0..2;
  msg: record src: who; n: 0..5; end;
var
  net: array [who] of msg;
  last, n: 0..5;

procedure keep(m: msg; at: who);
begin
  net[at].n := 5;
  last := m.n;
end;

procedure keep_twice(m: msg; at: who);
begin
  keep(m, at);
end;

function next_of(var m: msg; old: msg): who;
begin
  m.src := (m.src + 1) % 3;
  return old.src;
end;

startstate begin
  for w: who do net[w].src := w; net[w].n := 0; end;
  last := 0; n := 0;
end;

rule "out of a global" n = 0 ==>
begin
  keep(net[1], 1);
  assert last = 5;
  keep(net[0], 2);
  assert last = 0;
  n := 1;
end;

rule "through two" n = 1 ==>
begin
  net[1].n := 2;
  keep_twice(net[1], 1);
  assert last = 5;
  n := 2;
end;

rule "of a variable parameter" n = 2 ==>
begin
  net[0].src := 1;
  last := next_of(net[0], net[0]);
  assert last = 2;
  n := 3;
end;

rule "of another" n = 3 ==>
begin
  last := next_of(net[0], net[2]);
  assert last = net[2].src;
  n := 4;
end;

rule "on" n >= 4 ==> begin n := n = 5 ? 4 : 5; end;

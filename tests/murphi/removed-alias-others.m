-- verdict: verified
-- states: 4
-- rumur: refuses
--
-- Aliases of remaining elements, and an alias of a slot that was filled again: as in CMurphi, it is the new element.
type
  who: 0..3;
  msg: record dst: who; end;
var
  net: multiset [3] of msg;
  a: msg;
  got, kept: who;
  done: 0..2;

procedure put_back(var m: msg; d: who);
begin
  m.dst := d;
end;

procedure take_all();
begin
  multisetremovepred(i: net, true);
end;

startstate begin
  undefine net; got := 0; kept := 0; done := 0;
  a.dst := 1; multisetadd(a, net);
  a.dst := 2; multisetadd(a, net);
  a.dst := 0;
end;

choose i: net do
  choose j: net do
    rule "the other goes" done = 0 & net[i].dst = 1 & net[j].dst = 2 ==>
    begin
      alias stays: net[i].dst do
        alias goes: net[j] do
          kept := goes.dst;
          multisetremove(j, net);
          got := stays;
        end;
      end;
      done := 1;
    end;
  end;

  rule "filled again" done = 1 ==>
  begin
    alias d: net[i].dst do
      multisetremove(i, net);
      a.dst := 3;
      multisetadd(a, net);
      assert d = 3;
      put_back(net[i], 2);
      assert d = 2;
    end;
    done := 2;
  end;
end;

rule "all go" done = 2 ==>
var one: who;
begin
  alias last: one do
    take_all();
    last := got;
    assert last = 1 & kept = 2;
  end;
  done := 0; got := 0; kept := 0; a.dst := 0;
end;

rule "again" multisetcount(i: net, true) = 0 ==>
begin
  a.dst := 1; multisetadd(a, net);
  a.dst := 2; multisetadd(a, net);
  a.dst := 0;
end;

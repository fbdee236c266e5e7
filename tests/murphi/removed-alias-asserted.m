-- verdict: violated
-- deadlock: off
-- rumur: refuses
--
-- removed-alias.m with an assertion about the alias: the reported error is the read, not a false assertion.
type who: 0..2;
     msg: record dst: who; end;
var net: multiset[3] of msg; got: who; a: msg;
procedure keep(d: who); begin got := d; assert d = 1; end;
startstate
begin
  undefine net; got := 0; a.dst := 1; multisetadd(a, net); a.dst := 2; multisetadd(a, net); a.dst := 0;
end;
choose i: net do
  rule "take" net[i].dst = 1 ==>
  begin
    alias d: net[i].dst do
      multisetremove(i, net);
      got := d; assert d = 1;
    end;
  end;
end;

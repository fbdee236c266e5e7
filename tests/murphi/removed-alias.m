-- verdict: violated
-- deadlock: off
-- rumur: refuses
--
-- An alias is read after its element was removed: an error. It must not be read as the first value of its type.
type who: 0..2;
     msg: record dst: who; end;
var net: multiset[3] of msg; got: who; a: msg;
procedure keep(d: who); begin got := d; end;
startstate
begin
  undefine net; got := 0; a.dst := 1; multisetadd(a, net); a.dst := 2; multisetadd(a, net); a.dst := 0;
end;
choose i: net do
  rule "take" true ==>
  begin
    alias d: net[i].dst do
      multisetremove(i, net);
      got := d;
    end;
  end;
end;

-- verdict: verified
-- states: 10
-- rumur: refuses
--
-- An unordered channel: it may hold two equal messages, and states that differ only in the order of elements are equal.
type
  kind: enum { get, take, ack };
  message: record what: kind; end;
var net: multiset [2] of message;
startstate begin undefine net; end;
ruleset k: kind do
  rule "send" multisetcount(i: net, true) < 2 ==>
    var m: message;
  begin
    m.what := k;
    multisetadd(m, net);
  end;
end;
choose i: net do
  rule "receive" begin multisetremove(i, net); end;
end;
rule "drop all acks" multisetcount(i: net, net[i].what = ack) > 0 ==> begin
  multisetremovepred(i: net, net[i].what = ack);
end;
invariant multisetcount(i: net, true) <= 2;

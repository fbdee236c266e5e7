-- style: textbook
-- verdict: verified
-- states: 328030
-- orbits: 5190
--
-- Snooping bus with three states a cache. Each cache snoops the transaction on the bus at a time of its own; a modified
-- copy supplies the line. A waiting upgrade becomes an exclusive read when its copy is invalidated.
type
  node: scalarset(5);
  value: 0..1;
  state: enum { invalid, shared, modified };
  transaction: enum { nothing, read, exclusive_read, upgrade, write_back };

var
  cache: array [node] of record state: state; data: value; end;
  wants: array [node] of transaction;
  snooped: array [node] of boolean;
  master: node;
  supplied: boolean;
  memory: value;
  latest: value;

startstate
begin
  for n: node do
    cache[n].state := invalid;
    wants[n] := nothing;
    snooped[n] := false;
  end;
  supplied := false;
  memory := 0;
  latest := 0;
end;

ruleset n: node do
  rule "load miss" cache[n].state = invalid & wants[n] = nothing ==> begin wants[n] := read; end;

  rule "store miss" cache[n].state != modified & wants[n] = nothing ==>
  begin
    if cache[n].state = shared then wants[n] := upgrade; else wants[n] := exclusive_read; end;
  end;

  ruleset v: value do
    rule "store" cache[n].state = modified & wants[n] = nothing ==>
    begin
      cache[n].data := v;
      latest := v;
    end;
  end;

  rule "evict" cache[n].state != invalid & wants[n] = nothing ==>
  begin
    if cache[n].state = modified then
      wants[n] := write_back;
    else
      cache[n].state := invalid;
      undefine cache[n].data;
    end;
  end;

  rule "arbitrate" isundefined(master) & wants[n] != nothing ==>
  begin
    master := n;
    snooped[n] := true;
  end;

  rule "snoop" !isundefined(master) & !snooped[n] ==>
  begin
    switch wants[master]
    case read:
      if cache[n].state = modified then
        supplied := true;
        memory := cache[n].data;
        cache[n].state := shared;
        if wants[n] = write_back then wants[n] := nothing; end;
      end;
    case exclusive_read, upgrade:
      if cache[n].state = modified then
        assert wants[master] = exclusive_read "no upgrade beside a modified copy";
        supplied := true;
        memory := cache[n].data;
        if wants[n] = write_back then wants[n] := nothing; end;
      end;
      if wants[n] = upgrade then wants[n] := exclusive_read; end;
      cache[n].state := invalid;
      undefine cache[n].data;
    end;
    snooped[n] := true;
  end;
end;

rule "complete" !isundefined(master) & forall n: node do snooped[n] end ==>
begin
  switch wants[master]
  case read:
    cache[master].state := shared;
    cache[master].data := memory;
  case exclusive_read:
    cache[master].state := modified;
    cache[master].data := memory;
  case upgrade:
    assert !supplied "no other cache supplies the line of an upgrade";
    cache[master].state := modified;
  case write_back:
    memory := cache[master].data;
    cache[master].state := invalid;
    undefine cache[master].data;
  end;
  wants[master] := nothing;
  for n: node do snooped[n] := false; end;
  supplied := false;
  undefine master;
end;

invariant "single writer"
  forall a: node do forall b: node do
    a != b & cache[a].state = modified -> cache[b].state = invalid
  end end;
invariant "latest value"
  forall n: node do cache[n].state != invalid -> cache[n].data = latest end;
invariant "memory is up to date without a modified copy"
  memory = latest | exists n: node do cache[n].state = modified end;

-- verdict: verified
-- states: 1296
-- orbits: 693
-- dialect: both
-- counted by: rumur
--
-- A bounded buffer between two producers and two consumers, with three semaphores (E. W. Dijkstra, "Cooperating sequential
-- processes", 1965). Producers write items of two kinds into a ring; a ghost queue records the expected order.
-- Checked: items are consumed in the order in which they were produced, and no slot is read before it is written.

const
  capacity: 3;

type
  agent: scalarset(2);
  item: 0..1;
  slot: 0..capacity - 1;
  level: 0..capacity;
  producer_place: enum { p_idle, p_counted, p_inside, p_leaving };
  consumer_place: enum { c_idle, c_counted, c_inside, c_leaving };

var
  producers: array [agent] of producer_place;
  consumers: array [agent] of consumer_place;
  buffer: array [slot] of item;
  read_at: slot;
  write_at: slot;
  empty: level;
  full: level;
  free: boolean;
  ghost: array [1..capacity] of item;
  ghost_length: level;

ruleset a: agent do
  rule "producer waits for room"
    producers[a] = p_idle & empty > 0
  ==>
  begin
    empty := empty - 1;
    producers[a] := p_counted;
  end;

  rule "producer goes in"
    producers[a] = p_counted & free
  ==>
  begin
    free := false;
    producers[a] := p_inside;
  end;

  rule "producer leaves"
    producers[a] = p_leaving
  ==>
  begin
    free := true;
    full := full + 1;
    producers[a] := p_idle;
  end;

  rule "consumer waits for an item"
    consumers[a] = c_idle & full > 0
  ==>
  begin
    full := full - 1;
    consumers[a] := c_counted;
  end;

  rule "consumer goes in"
    consumers[a] = c_counted & free
  ==>
  begin
    free := false;
    consumers[a] := c_inside;
  end;

  rule "consumer reads"
    consumers[a] = c_inside
  ==>
  begin
    assert buffer[read_at] = ghost[1] "first in, first out";
    undefine buffer[read_at];
    read_at := (read_at + 1) % capacity;
    for k := 1 to capacity - 1 do
      if k < ghost_length then ghost[k] := ghost[k + 1]; end;
    end;
    undefine ghost[ghost_length];
    ghost_length := ghost_length - 1;
    consumers[a] := c_leaving;
  end;

  rule "consumer leaves"
    consumers[a] = c_leaving
  ==>
  begin
    free := true;
    empty := empty + 1;
    consumers[a] := c_idle;
  end;
end;

ruleset a: agent; i: item do
  rule "producer writes"
    producers[a] = p_inside
  ==>
  begin
    assert isundefined(buffer[write_at]) "nothing is overwritten";
    buffer[write_at] := i;
    write_at := (write_at + 1) % capacity;
    ghost_length := ghost_length + 1;
    ghost[ghost_length] := i;
    producers[a] := p_leaving;
  end;
end;

startstate
begin
  for a: agent do
    producers[a] := p_idle;
    consumers[a] := c_idle;
  end;
  read_at := 0;
  write_at := 0;
  empty := capacity;
  full := 0;
  free := true;
  ghost_length := 0;
end;

-- verdict: verified
-- states: 1068
-- orbits: 246
-- dialect: both
-- counted by: rumur
--
-- MSI on an atomic snooping bus, three caches, one line, two values (the three-state protocol of textbooks; its predecessor
-- is the write-once protocol of J. R. Goodman, 1983). A cache requests the bus; when granted, all others snoop in the same
-- step. A request whose line was invalidated while it waited is served as a miss. Checked: one writer or many readers,
-- and every read returns the last value written.

const
  caches: 3;

type
  cache: scalarset(caches);
  value: 0..1;
  state: enum { invalid, shared, modified };
  request: enum { none, read, write, evict };

var
  line: array [cache] of record
    state: state;
    data: value;
    asked: request;
  end;
  memory: value;
  latest: value; -- value of the last store, for the invariant only

procedure drop(c: cache);
begin
  line[c].state := invalid;
  undefine line[c].data;
end;

ruleset c: cache do
  rule "ask to read"
    line[c].asked = none & line[c].state = invalid
  ==>
  begin
    line[c].asked := read;
  end;

  rule "ask to write"
    line[c].asked = none & line[c].state != modified
  ==>
  begin
    line[c].asked := write;
  end;

  rule "ask to evict"
    line[c].asked = none & line[c].state != invalid
  ==>
  begin
    line[c].asked := evict;
  end;

  rule "bus read"
    line[c].asked = read
  ==>
  begin
    for o: cache do
      if o != c & line[o].state = modified then
        memory := line[o].data;
        line[o].state := shared;
      end;
    end;
    line[c].state := shared;
    line[c].data := memory;
    line[c].asked := none;
  end;

  rule "bus write"
    line[c].asked = write
  ==>
  begin
    for o: cache do
      if o != c & line[o].state != invalid then
        if line[o].state = modified then memory := line[o].data; end;
        drop(o);
      end;
    end;
    if line[c].state = invalid then line[c].data := memory; end;
    line[c].state := modified;
    line[c].asked := none;
  end;

  rule "bus evict"
    line[c].asked = evict
  ==>
  begin
    if line[c].state = modified then memory := line[c].data; end;
    if line[c].state != invalid then drop(c); end;
    line[c].asked := none;
  end;
end;

ruleset c: cache; v: value do
  rule "store"
    line[c].state = modified
  ==>
  begin
    line[c].data := v;
    latest := v;
  end;
end;

ruleset v: value do
  startstate
  begin
    for c: cache do
      line[c].state := invalid;
      line[c].asked := none;
    end;
    memory := v;
    latest := v;
  end;
end;

invariant "single writer"
  forall c: cache do
    line[c].state = modified -> forall o: cache do o != c -> line[o].state = invalid end
  end;

invariant "data value"
  forall c: cache do line[c].state != invalid -> line[c].data = latest end;

invariant "memory is current unless somebody has modified it"
  (forall c: cache do line[c].state != modified end) -> memory = latest;

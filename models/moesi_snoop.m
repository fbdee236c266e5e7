-- verdict: verified
-- states: 32457
-- orbits: 2274
-- dialect: both
-- counted by: rumur
--
-- MOESI on an atomic snooping bus (P. Sweazey and A. J. Smith, "A class of compatible cache consistency protocols and their
-- support by the IEEE Futurebus", 1986), four caches, one line, three values. A modified line that another cache reads
-- becomes owned: memory stays stale, and the owner supplies data to readers and writes the line back on eviction.

const
  caches: 4;

type
  cache: scalarset(caches);
  value: 0..2;
  state: enum { invalid, shared, exclusive, owned, modified };
  request: enum { none, read, write, evict };

var
  line: array [cache] of record
    state: state;
    data: value;
    asked: request;
  end;
  memory: value;
  latest: value; -- value of the last store, for the invariant only

function supplies(s: state): boolean;
begin
  return s = owned | s = modified | s = exclusive;
end;

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
    line[c].asked = none & line[c].state != modified & line[c].state != exclusive
  ==>
  begin
    line[c].asked := write;
  end;

  rule "ask to evict"
    line[c].asked = none & (line[c].state = modified | line[c].state = owned)
  ==>
  begin
    line[c].asked := evict;
  end;

  rule "drop a clean line"
    line[c].asked = none & (line[c].state = shared | line[c].state = exclusive)
  ==>
  begin
    drop(c);
  end;

  rule "bus read"
    line[c].asked = read
  ==>
  var alone: boolean;
  begin
    alone := true;
    line[c].data := memory;
    for o: cache do
      if o != c & line[o].state != invalid then
        alone := false;
        if supplies(line[o].state) then line[c].data := line[o].data; end;
        if line[o].state = modified then line[o].state := owned; end;
        if line[o].state = exclusive then line[o].state := shared; end;
      end;
    end;
    if alone then line[c].state := exclusive; else line[c].state := shared; end;
    line[c].asked := none;
  end;

  rule "bus write"
    line[c].asked = write
  ==>
  begin
    if line[c].state = invalid then line[c].data := memory; end;
    for o: cache do
      if o != c & line[o].state != invalid then
        if supplies(line[o].state) then line[c].data := line[o].data; end;
        drop(o);
      end;
    end;
    line[c].state := modified;
    line[c].asked := none;
  end;

  rule "bus write back"
    line[c].asked = evict
  ==>
  begin
    if line[c].state = modified | line[c].state = owned then
      memory := line[c].data;
      drop(c);
    end;
    line[c].asked := none;
  end;
end;

ruleset c: cache; v: value do
  rule "store"
    line[c].state = modified | line[c].state = exclusive
  ==>
  begin
    line[c].state := modified;
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
    line[c].state = modified | line[c].state = exclusive ->
    forall o: cache do o != c -> line[o].state = invalid end
  end;

invariant "one owner"
  forall c: cache do forall o: cache do
    line[c].state = owned & line[o].state = owned -> c = o
  end end;

invariant "data value"
  forall c: cache do line[c].state != invalid -> line[c].data = latest end;

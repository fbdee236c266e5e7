-- verdict: verified
-- states: 1898
-- orbits: 200
-- dialect: both
-- counted by: rumur
--
-- MESI, also known as Illinois, on an atomic snooping bus (M. S. Papamarcos and J. H. Patel, "A low-overhead coherence
-- solution for multiprocessors with private cache memories", 1984), four caches, one line, two values. A read that finds no
-- other copy takes the line exclusively, and a store to it then needs no bus. Other caches serve a read where they can.

const
  caches: 4;

type
  cache: scalarset(caches);
  value: 0..1;
  state: enum { invalid, shared, exclusive, modified };
  request: enum { none, read, write };

var
  line: array [cache] of record
    state: state;
    data: value;
    asked: request;
  end;
  memory: value;
  latest: value; -- value of the last store, for the invariant only

ruleset c: cache do
  rule "ask to read"
    line[c].asked = none & line[c].state = invalid
  ==>
  begin
    line[c].asked := read;
  end;

  rule "ask to write"
    line[c].asked = none & (line[c].state = invalid | line[c].state = shared)
  ==>
  begin
    line[c].asked := write;
  end;

  rule "bus read"
    line[c].asked = read
  ==>
  var alone: boolean;
  begin
    alone := true;
    for o: cache do
      if line[o].state != invalid then
        alone := false;
        if line[o].state = modified then memory := line[o].data; end;
        line[o].state := shared;
      end;
    end;
    line[c].data := memory;
    if alone then line[c].state := exclusive; else line[c].state := shared; end;
    line[c].asked := none;
  end;

  rule "bus write"
    line[c].asked = write
  ==>
  begin
    for o: cache do
      if o != c & line[o].state != invalid then
        if line[o].state = modified then memory := line[o].data; end;
        line[o].state := invalid;
        undefine line[o].data;
      end;
    end;
    if line[c].state = invalid then line[c].data := memory; end;
    line[c].state := modified;
    line[c].asked := none;
  end;

  rule "evict"
    line[c].asked = none & line[c].state != invalid
  ==>
  begin
    if line[c].state = modified then memory := line[c].data; end;
    line[c].state := invalid;
    undefine line[c].data;
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

invariant "data value"
  forall c: cache do line[c].state != invalid -> line[c].data = latest end;

invariant "a clean line agrees with memory"
  forall c: cache do
    line[c].state = exclusive | line[c].state = shared -> line[c].data = memory
  end;

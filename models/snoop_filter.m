-- verdict: verified
-- states: 493324
-- orbits: 90308
-- dialect: both
-- counted by: rumur
--
-- A snoop filter with one entry, for three caches and two lines. The home has an entry for every cached
-- line; for another line it first recalls the copies of that entry, which may cross a write-back in flight.
-- Checked: every cached line is in the filter, a writer is alone, and every reader has the latest value.

const
  caches: 3;
  lines: 2;

type
  cache: scalarset(caches);
  line: 0..lines - 1;
  value: 0..1;
  state: enum { invalid, shared, modified, waiting_shared, waiting_modified, writing_back };
  asking: enum { nothing, read, own };
  reply: enum { none, dropped, dirty };

var
  at: array [cache] of array [line] of state;
  has: array [cache] of array [line] of value;
  -- From a cache to the home.
  request: array [cache] of array [line] of asking;
  write_back: array [cache] of array [line] of record sent: boolean; data: value; end;
  -- Grants and recalls from the home to a cache, and answers to recalls.
  grant: array [cache] of array [line] of record sent: boolean; alone: boolean; data: value; end;
  recall: array [cache] of array [line] of boolean;
  answer: array [cache] of array [line] of record kind: reply; data: value; end;
  memory: array [line] of value;
  latest: array [line] of value; -- value of the last store
  -- The filter's only entry.
  used: boolean;
  tag: line;
  sharer: array [cache] of boolean;
  recalling: boolean;

ruleset c: cache; l: line do
  rule "miss"
    at[c][l] = invalid
  ==>
  begin
    request[c][l] := read;
    at[c][l] := waiting_shared;
  end;

  rule "miss to write"
    at[c][l] = invalid
  ==>
  begin
    request[c][l] := own;
    at[c][l] := waiting_modified;
  end;

  rule "write"
    at[c][l] = modified
  ==>
  begin
    has[c][l] := 1 - latest[l];
    latest[l] := has[c][l];
  end;

  rule "evict a modified line"
    at[c][l] = modified
  ==>
  begin
    write_back[c][l].sent := true;
    write_back[c][l].data := has[c][l];
    undefine has[c][l];
    at[c][l] := writing_back;
  end;

  rule "evict silently"
    at[c][l] = shared
  ==>
  begin
    undefine has[c][l];
    at[c][l] := invalid;
  end;

  rule "a grant arrives"
    grant[c][l].sent
  ==>
  begin
    if grant[c][l].alone then at[c][l] := modified; else at[c][l] := shared; end;
    has[c][l] := grant[c][l].data;
    grant[c][l].sent := false;
    undefine grant[c][l].alone;
    undefine grant[c][l].data;
  end;

  -- A cache receives a grant in flight before the recall.
  rule "a recall arrives"
    recall[c][l] & !grant[c][l].sent
  ==>
  begin
    recall[c][l] := false;
    if at[c][l] = modified then
      answer[c][l].kind := dirty;
      answer[c][l].data := has[c][l];
    else
      answer[c][l].kind := dropped;
    end;
    if at[c][l] = modified | at[c][l] = shared then
      undefine has[c][l];
      at[c][l] := invalid;
    end;
  end;

  -- The home receives a write-back before the answer to its recall, since the two may cross.
  rule "a write-back arrives"
    write_back[c][l].sent
  ==>
  begin
    memory[l] := write_back[c][l].data;
    write_back[c][l].sent := false;
    undefine write_back[c][l].data;
    at[c][l] := invalid;
    if !recalling then sharer[c] := false; end;
  end;

  rule "an answer to a recall arrives"
    answer[c][l].kind != none & !write_back[c][l].sent
  ==>
  begin
    if answer[c][l].kind = dirty then memory[l] := answer[c][l].data; end;
    answer[c][l].kind := none;
    undefine answer[c][l].data;
    sharer[c] := false;
  end;

  rule "a request is granted"
    request[c][l] != nothing & !recalling
    & (!used | (tag = l & forall d: cache do !sharer[d] | (request[c][l] = read & at[d][l] = shared) end))
  ==>
  begin
    used := true;
    tag := l;
    sharer[c] := true;
    grant[c][l].sent := true;
    grant[c][l].alone := request[c][l] = own;
    grant[c][l].data := memory[l];
    request[c][l] := nothing;
  end;

  rule "a request makes the home take copies back"
    request[c][l] != nothing & !recalling & used & exists d: cache do sharer[d] end
  ==>
  begin
    recalling := true;
    for d: cache do
      if sharer[d] then recall[d][tag] := true; end;
    end;
  end;
end;

rule "all copies are back"
  used & forall d: cache do !sharer[d] end
==>
begin
  used := false;
  undefine tag;
  recalling := false;
end;

startstate
begin
  for l: line do
    memory[l] := 0;
    latest[l] := 0;
    for c: cache do
      at[c][l] := invalid;
      request[c][l] := nothing;
      write_back[c][l].sent := false;
      grant[c][l].sent := false;
      recall[c][l] := false;
      answer[c][l].kind := none;
    end;
  end;
  for c: cache do sharer[c] := false; end;
  used := false;
  recalling := false;
end;

invariant "the filter tracks every copy"
  forall c: cache do forall l: line do
    at[c][l] = shared | at[c][l] = modified -> used & sharer[c] & tag = l
  end end;

invariant "single writer"
  forall c: cache do forall d: cache do forall l: line do
    c != d & at[c][l] = modified -> at[d][l] != modified & at[d][l] != shared
  end end end;

invariant "a copy has the latest value"
  forall c: cache do forall l: line do
    at[c][l] = shared | at[c][l] = modified -> has[c][l] = latest[l]
  end end;

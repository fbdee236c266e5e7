-- style: list
-- verdict: verified
-- states: 204295
-- orbits: 2555
--
-- Linked list of sharers: the home stores the first one, and each sharer its successor. A new sharer becomes the first.
-- A writer becomes the first too, and then purges its successors one after the other.
type
  node: scalarset(5);
  value: 0..1;
  state: enum { out_of_list, joining, clean, purging, dirty };

var
  list: array [node] of record state: state; has_next: boolean; next: node; data: value; end;
  writes: array [node] of boolean;
  reply: array [node] of record sent: boolean; has_old: boolean; old: node; data: value; end;
  purge: array [node] of boolean;
  purged: array [node] of record sent: boolean; has_next: boolean; next: node; data: value; end;
  has_head: boolean;
  head: node;
  memory: value;
  latest: value;

startstate
begin
  for n: node do
    list[n].state := out_of_list;
    list[n].has_next := false;
    writes[n] := false;
    reply[n].sent := false;
    purge[n] := false;
    purged[n].sent := false;
  end;
  has_head := false;
  memory := 0;
  latest := 0;
end;

ruleset n: node do
  ruleset w: boolean do
    rule "join" list[n].state = out_of_list & !purged[n].sent & !purge[n] &
      (has_head -> list[head].state = clean | list[head].state = dirty) &
      (forall m: node do list[m].state != joining & list[m].state != purging end) ==>
    begin
      list[n].state := joining;
      writes[n] := w;
      reply[n].sent := true;
      reply[n].has_old := has_head;
      if has_head then reply[n].old := head; end;
      reply[n].data := memory;
      has_head := true;
      head := n;
    end;
  end;

  rule "reply" reply[n].sent ==>
  begin
    list[n].has_next := reply[n].has_old;
    if reply[n].has_old then list[n].next := reply[n].old; end;
    list[n].data := reply[n].data;
    reply[n].sent := false;
    reply[n].has_old := false;
    undefine reply[n].old;
    undefine reply[n].data;
    if list[n].has_next then
      -- The old first sharer may be dirty.
      if list[list[n].next].state = dirty then
        list[n].data := list[list[n].next].data;
        memory := list[n].data;
        list[list[n].next].state := clean;
      end;
    end;
    if writes[n] then list[n].state := purging; else list[n].state := clean; end;
    writes[n] := false;
  end;

  rule "purge" list[n].state = purging & list[n].has_next & !purge[list[n].next] & !purged[list[n].next].sent ==>
  begin
    purge[list[n].next] := true;
  end;

  rule "purged" purge[n] ==>
  begin
    purge[n] := false;
    purged[n].sent := true;
    purged[n].has_next := list[n].has_next;
    if list[n].has_next then purged[n].next := list[n].next; end;
    purged[n].data := list[n].data;
    list[n].state := out_of_list;
    list[n].has_next := false;
    undefine list[n].next;
    undefine list[n].data;
  end;

  ruleset m: node do
    rule "advance" list[n].state = purging & list[n].has_next & list[n].next = m & purged[m].sent ==>
    begin
      list[n].has_next := purged[m].has_next;
      if purged[m].has_next then list[n].next := purged[m].next; else undefine list[n].next; end;
      purged[m].sent := false;
      purged[m].has_next := false;
      undefine purged[m].next;
      undefine purged[m].data;
    end;
  end;

  rule "own" list[n].state = purging & !list[n].has_next ==>
  begin
    list[n].state := dirty;
    undefine list[n].next;
  end;

  ruleset v: value do
    rule "store" list[n].state = dirty ==>
    begin
      list[n].data := v;
      latest := v;
    end;
  end;

  rule "leave" has_head & head = n & (list[n].state = clean | list[n].state = dirty) ==>
  begin
    if list[n].state = dirty then memory := list[n].data; end;
    has_head := list[n].has_next;
    if list[n].has_next then head := list[n].next; else undefine head; end;
    list[n].state := out_of_list;
    list[n].has_next := false;
    undefine list[n].next;
    undefine list[n].data;
  end;
end;

invariant "single writer"
  forall a: node do forall b: node do
    a != b & list[a].state = dirty -> list[b].state != dirty & list[b].state != clean
  end end;
invariant "latest value"
  forall a: node do list[a].state = dirty -> list[a].data = latest end;

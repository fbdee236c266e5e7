-- verdict: verified
-- states: 704
-- orbits: 79
-- dialect: cmurphi
-- counted by: brute_force.py
--
-- Readers and writers that are admitted in order of arrival (unlike those of P. J. Courtois, F. Heymans and D. L. Parnas, 1971,
-- whose readers may starve writers). Readers and writers are two scalarsets; the queue holds both, so its elements are of their
-- union, and `ismember` distinguishes the kinds at its head.

const
  reader_count: 3;
  writer_count: 2;

type
  reader: scalarset(reader_count);
  writer: scalarset(writer_count);
  person: union { reader, writer };
  place: 1..reader_count + writer_count;
  state: enum { outside, queueing, inside };

var
  at: array [person] of state;
  queue: array [place] of person;
  length: 0..reader_count + writer_count;

procedure let_first_in();
begin
  at[queue[1]] := inside;
  for k := 1 to reader_count + writer_count - 1 do
    queue[k] := queue[k + 1];
  end;
  undefine queue[reader_count + writer_count];
  length := length - 1;
end;

ruleset p: person do
  rule "queue up"
    at[p] = outside
  ==>
  begin
    at[p] := queueing;
    length := length + 1;
    queue[length] := p;
  end;

  rule "leave"
    at[p] = inside
  ==>
  begin
    at[p] := outside;
  end;
end;

rule "let a reader in"
  length > 0 & ismember(queue[1], reader) & forall w: writer do at[w] != inside end
==>
begin
  let_first_in();
end;

rule "let a writer in"
  length > 0 & ismember(queue[1], writer) & forall p: person do at[p] != inside end
==>
begin
  let_first_in();
end;

startstate
begin
  for p: person do at[p] := outside; end;
  length := 0;
end;

invariant "a writer is alone"
  forall w: writer do
    at[w] = inside -> forall p: person do at[p] = inside -> p = w end
  end;

invariant "a queueing process is in the queue once"
  forall p: person do
    (at[p] = queueing) = exists k: place do queue[k] = p end
  end;

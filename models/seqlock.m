-- verdict: verified
-- states: 43716
-- orbits: 22572
-- dialect: both
-- counted by: rumur
--
-- A sequence lock for a writer and two readers: the writer makes the count odd, writes two words, and makes it even
-- again; readers read both words between two reads of the count, and read again if it was odd or has changed. The
-- count wraps around, so a reader delayed for a full wrap-around would accept torn data; here it counts to eight, and
-- each write waits for readers that are three writes behind. Checked: no reader keeps two words of different writes.

const
  readers: 2;
  counts: 8;

type
  reader: scalarset(readers);
  count: 0..counts - 1;
  value: 0..2;
  place: enum { idle, first, second, again };

var
  sequence: count;
  words: array [0..1] of value;
  writing: 0..3; -- next step of the writer
  at: array [reader] of place;
  seen: array [reader] of count;
  got: array [reader] of array [0..1] of value;

function behind(r: reader): count;
begin
  return (sequence + counts - seen[r]) % counts;
end;

rule "write begins"
  writing = 0 & forall r: reader do at[r] != idle -> behind(r) < counts - 2 end
==>
begin
  sequence := (sequence + 1) % counts;
  writing := 1;
end;

rule "write a word"
  writing = 1 | writing = 2
==>
begin
  words[writing - 1] := (words[writing - 1] + 1) % 3;
  writing := writing + 1;
end;

rule "write ends"
  writing = 3
==>
begin
  sequence := (sequence + 1) % counts;
  writing := 0;
end;

ruleset r: reader do
  rule "look at the count"
    at[r] = idle & sequence % 2 = 0
  ==>
  begin
    seen[r] := sequence;
    at[r] := first;
  end;

  rule "read the first word"
    at[r] = first
  ==>
  begin
    got[r][0] := words[0];
    at[r] := second;
  end;

  rule "read the second word"
    at[r] = second
  ==>
  begin
    got[r][1] := words[1];
    at[r] := again;
  end;

  rule "look again"
    at[r] = again
  ==>
  begin
    assert sequence != seen[r] | got[r][0] = got[r][1] "both words come from one write";
    at[r] := idle;
    undefine seen[r];
    undefine got[r];
  end;
end;

startstate
begin
  sequence := 0;
  words[0] := 0;
  words[1] := 0;
  writing := 0;
  for r: reader do at[r] := idle; end;
end;

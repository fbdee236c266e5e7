-- style: textbook
-- verdict: verified
-- states: 433214
-- orbits: 2130
--
-- Big-reader lock: a reader raises a flag of its own and then checks for a writer; a writer claims the lock and then
-- checks the flag of each process, one after the other. Data are two words, written and read one after the other.
type
  process: scalarset(6);
  value: 0..1;
  place: enum { outside, raised, reading, checking, claiming, scanning, writing, written };

var
  at: array [process] of place;
  flag: array [process] of boolean;
  scanned: array [process] of boolean;
  seen: array [process] of value;
  writer: process;
  first_word, second_word: value;

startstate
begin
  for p: process do
    at[p] := outside;
    flag[p] := false;
    scanned[p] := false;
  end;
  first_word := 0;
  second_word := 0;
end;

ruleset p: process do
  rule "raise" at[p] = outside & !flag[p] ==>
  begin
    flag[p] := true;
    at[p] := raised;
  end;

  rule "check for a writer" at[p] = raised ==>
  begin
    if isundefined(writer) then
      at[p] := reading;
    else
      flag[p] := false;
      at[p] := outside;
    end;
  end;

  rule "read the first word" at[p] = reading ==>
  begin
    seen[p] := first_word;
    at[p] := checking;
  end;

  rule "read the second word" at[p] = checking ==>
  begin
    assert seen[p] = second_word "a reader sees both words of one write";
    undefine seen[p];
    flag[p] := false;
    at[p] := outside;
  end;

  rule "want to write" at[p] = outside ==> begin at[p] := claiming; end;

  rule "claim" at[p] = claiming & isundefined(writer) ==>
  begin
    writer := p;
    scanned[p] := true;
    at[p] := scanning;
  end;

  rule "scan" !isundefined(writer) & at[writer] = scanning & !scanned[p] & !flag[p] ==>
  begin
    scanned[p] := true;
  end;

  ruleset v: value do
    rule "write the first word" at[p] = scanning & forall q: process do scanned[q] end ==>
    begin
      first_word := v;
      at[p] := writing;
    end;
  end;

  rule "write the second word" at[p] = writing ==>
  begin
    second_word := first_word;
    at[p] := written;
  end;

  rule "release" at[p] = written ==>
  begin
    undefine writer;
    for q: process do scanned[q] := false; end;
    at[p] := outside;
  end;
end;

invariant "no reader beside a writer"
  forall p: process do forall q: process do
    at[p] = writing | at[p] = written -> at[q] != reading & at[q] != checking
  end end;
invariant "one writer"
  forall p: process do
    at[p] = scanning | at[p] = writing | at[p] = written -> !isundefined(writer) & writer = p
  end;

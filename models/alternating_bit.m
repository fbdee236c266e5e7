-- verdict: verified
-- states: 174
-- dialect: rumur
-- counted by: rumur
--
-- The alternating bit protocol (K. A. Bartlett, R. A. Scantlebury and P. T. Wilkinson, "A note on reliable full-duplex
-- transmission over half-duplex links", 1969) over channels that lose and duplicate messages but keep their order. The
-- sender numbers messages with one bit. Contents are 0, 1, 2, 0, ... in turn, so the receiver can detect a missing message.
-- Checked: no message is lost, duplicated or reordered; every message can still arrive; each kind of fault happens.

const
  capacity: 2;
  contents: 3;

type
  bit: 0..1;
  content: 0..contents - 1;
  length: 0..capacity;
  place: 1..capacity;

var
  send_bit: bit;
  send_content: content;
  expected_bit: bit;
  expected_content: content;
  forth: record
    used: length;
    bits: array [place] of bit;
    contents: array [place] of content;
  end;
  back: record
    used: length;
    bits: array [place] of bit;
  end;

procedure drop_forth();
begin
  for k: place do
    if k < forth.used then
      forth.bits[k] := forth.bits[k + 1];
      forth.contents[k] := forth.contents[k + 1];
    end;
  end;
  undefine forth.bits[forth.used];
  undefine forth.contents[forth.used];
  forth.used := forth.used - 1;
end;

procedure drop_back();
begin
  for k: place do
    if k < back.used then back.bits[k] := back.bits[k + 1]; end;
  end;
  undefine back.bits[back.used];
  back.used := back.used - 1;
end;

rule "send or send again"
  forth.used < capacity
==>
begin
  forth.used := forth.used + 1;
  forth.bits[forth.used] := send_bit;
  forth.contents[forth.used] := send_content;
end;

rule "the channel forth loses"
  forth.used > 0
==>
begin
  drop_forth();
end;

rule "receive and answer"
  forth.used > 0 & back.used < capacity
==>
begin
  back.used := back.used + 1;
  back.bits[back.used] := forth.bits[1];
  if forth.bits[1] = expected_bit then
    assert forth.contents[1] = expected_content "the expected content arrives";
    expected_bit := 1 - expected_bit;
    expected_content := (expected_content + 1) % contents;
  else
    cover "a repetition is recognised" true;
  end;
  drop_forth();
end;

rule "the channel back loses"
  back.used > 0
==>
begin
  drop_back();
end;

rule "take an answer"
  back.used > 0
==>
begin
  if back.bits[1] = send_bit then
    send_bit := 1 - send_bit;
    send_content := (send_content + 1) % contents;
  end;
  drop_back();
end;

startstate
begin
  send_bit := 0;
  send_content := 0;
  expected_bit := 0;
  expected_content := 0;
  forth.used := 0;
  back.used := 0;
end;

invariant "the sender is at most one behind"
  expected_content = send_content | expected_content = (send_content + 1) % contents;

liveness "everything so far can be acknowledged"
  expected_content = send_content & forth.used = 0 & back.used = 0;

cover "both channels full"
  forth.used = capacity & back.used = capacity;

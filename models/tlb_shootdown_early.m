-- verdict: violated
-- property: assert "a store to a page that is still ours"
-- steps: 6
-- dialect: both
-- counted by: rumur
--
-- tlb_shootdown.m, but the page is reused after the requests, before the
-- acknowledgements. Violation: a store through an old translation reaches the page.

const
  processors: 3;

type
  proc: scalarset(processors);

  stage: enum { calm, changed, sent };

var
  mapped: boolean; -- the page table has the translation
  cached: array [proc] of boolean; -- the TLB of a processor has the translation
  storing: array [proc] of boolean; -- a store has been translated and is in flight
  requested: array [proc] of boolean; -- a request to invalidate the translation is pending
  initiator: proc;
  at: stage;
  reused: boolean; -- the page has been reused

ruleset p: proc do
  rule "look up"
    mapped & !cached[p]
  ==>
  begin
    cached[p] := true;
  end;

  rule "translate a store"
    cached[p] & !storing[p] & !requested[p]
  ==>
  begin
    storing[p] := true;
  end;

  rule "the store reaches the page"
    storing[p]
  ==>
  begin
    assert !reused "a store to a page that is still ours";
    storing[p] := false;
  end;

  rule "evict the translation"
    cached[p]
  ==>
  begin
    cached[p] := false;
  end;

  rule "take the page away"
    at = calm & mapped
  ==>
  begin
    mapped := false;
    initiator := p;
    at := changed;
  end;

  -- A processor acknowledges when its outstanding stores have completed.
  rule "forget and answer"
    requested[p] & !storing[p]
  ==>
  begin
    cached[p] := false;
    requested[p] := false;
  end;
end;

rule "ask all"
  at = changed
==>
begin
  for p: proc do requested[p] := true; end;
  at := sent;
end;

rule "give the page away"
  at = sent & !reused
==>
begin
  reused := true;
end;

rule "the page comes back"
  reused & forall p: proc do !requested[p] end
==>
begin
  reused := false;
  mapped := true;
  undefine initiator;
  at := calm;
end;

startstate
begin
  mapped := true;
  reused := false;
  at := calm;
  for p: proc do cached[p] := false; storing[p] := false; requested[p] := false; end;
end;

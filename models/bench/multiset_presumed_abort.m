-- style: multiset
-- verdict: verified
-- states: 195642
-- orbits: 3564
--
-- Atomic commitment with presumed abort over a network that loses messages, and reorders those of different
-- participants. The coordinator forgets an aborted transaction; a prepared participant that asks about an unknown
-- transaction learns that it aborted.
type
  participant: scalarset(5);
  kind: enum { prepare, yes, no, commit, abort, done, inquiry };
  message: record kind: kind; at: participant; end;
  place: enum { working, prepared, refused, committed, aborted };
  phase: enum { unknown, collecting, committing, finished };

var
  at: array [participant] of place;
  voted: array [participant] of boolean;
  confirmed: array [participant] of boolean;
  coordinator: phase;
  net: multiset [3] of message;

procedure send(k: kind; p: participant);
var m: message;
begin
  m.kind := k;
  m.at := p;
  multisetadd(m, net);
end;

procedure reset();
begin
  for p: participant do
    at[p] := working;
    voted[p] := false;
    confirmed[p] := false;
  end;
  coordinator := collecting;
end;

startstate
begin
  reset();
end;

ruleset p: participant do
  rule "ask to prepare"
    coordinator = collecting & !voted[p] & multisetcount(i: net, net[i].at = p) = 0 & multisetcount(i: net, true) < 3 ==>
  begin
    send(prepare, p);
  end;

  rule "decide to commit" coordinator = committing & !confirmed[p] & multisetcount(i: net, net[i].at = p) = 0 &
    multisetcount(i: net, true) < 3 ==>
  begin
    send(commit, p);
  end;

  rule "inquire"
    at[p] = prepared & multisetcount(i: net, net[i].at = p) = 0 & multisetcount(i: net, true) < 3 ==>
  begin
    send(inquiry, p);
  end;

  rule "abort alone" at[p] = working ==> begin at[p] := refused; end;
end;

rule "commit" coordinator = collecting & forall p: participant do voted[p] end ==>
begin
  coordinator := committing;
end;

rule "time out" coordinator = collecting ==>
begin
  coordinator := unknown;
  for p: participant do voted[p] := false; end;
end;

rule "finish" coordinator = committing & forall p: participant do confirmed[p] end ==>
begin
  coordinator := finished;
end;

rule "next transaction" multisetcount(i: net, true) = 0 & (coordinator = unknown | coordinator = finished) &
  forall p: participant do at[p] != prepared & at[p] != working end ==>
begin
  reset();
end;

choose i: net do
  rule "lose" true ==> begin multisetremove(i, net); end;

  rule "participant" net[i].kind = prepare | net[i].kind = commit | net[i].kind = abort ==>
  var m: message;
  begin
    m := net[i];
    multisetremove(i, net);
    switch m.kind
    case prepare:
      if at[m.at] = working then at[m.at] := prepared; end;
      if at[m.at] = prepared then send(yes, m.at); end;
      if at[m.at] = refused then send(no, m.at); end;
    case commit:
      assert at[m.at] = prepared | at[m.at] = committed "a participant that commits has prepared";
      at[m.at] := committed;
      send(done, m.at);
    case abort:
      if at[m.at] = prepared then at[m.at] := aborted; end;
    end;
  end;

  rule "coordinator" net[i].kind = yes | net[i].kind = no | net[i].kind = done | net[i].kind = inquiry ==>
  var m: message;
  begin
    m := net[i];
    multisetremove(i, net);
    switch m.kind
    case yes:
      if coordinator = collecting then voted[m.at] := true; end;
      if coordinator = unknown then send(abort, m.at); end;
    case no:
      if coordinator = collecting then
        coordinator := unknown;
        for p: participant do voted[p] := false; end;
      end;
    case done:
      if coordinator = committing then confirmed[m.at] := true; end;
    case inquiry:
      switch coordinator
      case unknown:
        send(abort, m.at);
      case committing, finished:
        send(commit, m.at);
      end;
    end;
  end;
end;

invariant "agreement"
  forall p: participant do forall q: participant do
    at[p] = committed -> at[q] != aborted & at[q] != refused & at[q] != working
  end end;
invariant "no finished transaction is open"
  coordinator = finished -> forall p: participant do at[p] = committed end;

-- verdict: violated
-- property: invariant "Bob is with Alice only if she is with him"
-- deadlock: off
-- steps: 8
-- dialect: both
-- counted by: rumur
--
-- The public-key protocol of R. M. Needham and M. D. Schroeder ("Using encryption for authentication in large networks of
-- computers", 1978) with one initiator, one responder and Mallory, who reads, stores, replays and forges messages but breaks
-- no encryption. Violation: the attack that G. Lowe found in 1995: Alice talks to Mallory, and Bob believes it is Alice.

const
  names_responder: 0;

type
  agent: enum { alice, bob, mallory };
  nonce: enum { of_alice, of_bob, of_mallory };
  kind: enum { empty, first, second, third };
  place: enum { idle, waiting, committed };

  -- A message is encrypted for `key`. The first message carries a nonce and a name, the second two nonces, the third a
  -- nonce; absent fields are undefined.
  message: record
    kind: kind;
    key: agent;
    one: nonce;
    two: nonce;
    name: agent;
  end;

var
  network: message; -- at most one message in flight
  kept: message; -- a message stored by Mallory, who could not decrypt it
  knows: array [nonce] of boolean;
  alice_at: place;
  alice_with: agent;
  bob_at: place;
  bob_with: agent;
  bob_got: nonce;

procedure send(k: kind; key: agent; one: nonce);
begin
  network.kind := k;
  network.key := key;
  network.one := one;
end;

ruleset p: agent do
  rule "Alice begins"
    p != alice & alice_at = idle & network.kind = empty
  ==>
  begin
    alice_with := p;
    alice_at := waiting;
    send(first, p, of_alice);
    network.name := alice;
  end;
end;

rule "Bob answers"
  network.kind = first & network.key = bob & bob_at = idle
==>
begin
  bob_with := network.name;
  bob_got := network.one;
  bob_at := waiting;
  undefine network;
  send(second, bob_with, bob_got);
  network.two := of_bob;
  if names_responder = 1 then network.name := bob; end;
end;

rule "Alice answers"
  network.kind = second & network.key = alice & alice_at = waiting & network.one = of_alice &
  (names_responder = 1 -> network.name = alice_with)
==>
var n: nonce;
begin
  n := network.two;
  alice_at := committed;
  undefine network;
  send(third, alice_with, n);
end;

rule "Bob commits"
  network.kind = third & network.key = bob & bob_at = waiting & network.one = of_bob
==>
begin
  bob_at := committed;
  undefine network;
  network.kind := empty;
end;

rule "Mallory reads"
  network.kind != empty & network.key = mallory
==>
begin
  knows[network.one] := true;
  if network.kind = second then knows[network.two] := true; end;
  undefine network;
  network.kind := empty;
end;

rule "Mallory stores a message that she cannot decrypt"
  network.kind != empty & network.key != mallory
==>
begin
  kept := network;
  undefine network;
  network.kind := empty;
end;

rule "Mallory replays a stored message"
  network.kind = empty & kept.kind != empty
==>
begin
  network := kept;
end;

ruleset n: nonce; a: agent do
  rule "Mallory begins with Bob as anybody"
    network.kind = empty & knows[n]
  ==>
  begin
    send(first, bob, n);
    network.name := a;
  end;
end;

ruleset m: nonce; n: nonce; a: agent do
  rule "Mallory answers Alice as anybody"
    network.kind = empty & knows[m] & knows[n]
  ==>
  begin
    send(second, alice, m);
    network.two := n;
    if names_responder = 1 then network.name := a; end;
  end;
end;

ruleset n: nonce do
  rule "Mallory confirms to Bob"
    network.kind = empty & knows[n]
  ==>
  begin
    send(third, bob, n);
  end;
end;

startstate
begin
  network.kind := empty;
  kept.kind := empty;
  for n: nonce do knows[n] := n = of_mallory; end;
  alice_at := idle;
  bob_at := idle;
end;

invariant "Bob is with Alice only if she is with him"
  bob_at = committed & bob_with = alice -> alice_at != idle & alice_with = bob;

invariant "Bob's nonce stays secret"
  bob_at = committed & bob_with = alice -> !knows[of_bob];

-- verdict: verified
-- states: 208
-- orbits: 23
-- dialect: cmurphi
-- counted by: brute_force.py
--
-- A lock token that a server or one of four clients holds (the token-based mutual exclusion of I. Suzuki and T. Kasami, 1985,
-- in its centralised form). Holders and mailboxes are over the union of the scalarset of clients and one named server. Clients
-- are interchangeable, the server is not: symmetry permutes a part of the union only.

const
  client_count: 4;

type
  client: scalarset(client_count);
  agent: union { client, enum { server } };
  mail: enum { nothing, ask, token };

var
  holder: agent; -- undefined while the token is in flight
  wants: array [client] of boolean;
  mailbox: array [agent] of mail;
  asked_by: client;

ruleset c: client do
  rule "want"
    !wants[c] & holder != c
  ==>
  begin
    wants[c] := true;
  end;

  rule "ask"
    wants[c] & holder != c & mailbox[server] = nothing & mailbox[c] = nothing
  ==>
  begin
    mailbox[server] := ask;
    asked_by := c;
  end;

  rule "receive the token"
    mailbox[c] = token
  ==>
  begin
    mailbox[c] := nothing;
    holder := c;
  end;

  rule "return the token"
    holder = c
  ==>
  begin
    wants[c] := false;
    holder := server;
  end;
end;

rule "server answers"
  mailbox[server] = ask & holder = server
==>
begin
  mailbox[server] := nothing;
  mailbox[asked_by] := token;
  undefine asked_by;
  undefine holder;
end;

startstate
begin
  holder := server;
  for c: client do wants[c] := false; end;
  for a: agent do mailbox[a] := nothing; end;
end;

invariant "who has the token wanted it"
  forall c: client do holder = c -> wants[c] end;

invariant "one token"
  forall a: agent do forall b: agent do
    mailbox[a] = token & mailbox[b] = token -> a = b
  end end;

-- verdict: verified
-- states: 208
-- orbits: 23
-- dialect: cmurphi
-- counted by: brute_force.py
--
-- A lock token that a server or one of four clients holds (a central lock server: requests go to the server alone and are not
-- broadcast). Holders and mailboxes are over the union of the scalarset of clients and one named server. Clients
-- are interchangeable, the server is not: symmetry permutes a part of the union only.

const
  client_count: 4;

type
  client: scalarset(client_count);
  agent: union { client, enum { server } };
  content: enum { empty, request, token };

var
  holder: agent; -- undefined while the token is in flight
  wants: array [client] of boolean;
  mailbox: array [agent] of content;
  requester: client;

ruleset c: client do
  rule "want"
    !wants[c] & holder != c
  ==>
  begin
    wants[c] := true;
  end;

  rule "request"
    wants[c] & holder != c & mailbox[server] = empty & mailbox[c] = empty
  ==>
  begin
    mailbox[server] := request;
    requester := c;
  end;

  rule "receive the token"
    mailbox[c] = token
  ==>
  begin
    mailbox[c] := empty;
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

rule "server sends the token"
  mailbox[server] = request & holder = server
==>
begin
  mailbox[server] := empty;
  mailbox[requester] := token;
  undefine requester;
  undefine holder;
end;

startstate
begin
  holder := server;
  for c: client do wants[c] := false; end;
  for a: agent do mailbox[a] := empty; end;
end;

invariant "the holder has requested the token"
  forall c: client do holder = c -> wants[c] end;

invariant "one token"
  forall a: agent do forall b: agent do
    mailbox[a] = token & mailbox[b] = token -> a = b
  end end;

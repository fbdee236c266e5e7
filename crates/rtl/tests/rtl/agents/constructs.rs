//! Protocols with constructs that no shipped protocol has.

/// A protocol with the numbers of its remotes.
pub type Example = (&'static str, &'static str, &'static [u16]);

/// Kinds with rows of their own; arrays, loops, choices and sets in messages; cyclic numbers.
pub const EXAMPLES: [Example; 3] = [
    ("readers", READERS, &[2, 1]),
    ("arrays", ARRAYS, &[2]),
    ("numbered", NUMBERED, &[2]),
];

/// Two kinds with different rows.
const READERS: &str = "
protocol readers
line 64 bytes
channels {
  request remote -> home;  put cpu -> home;  reply home -> remote
  recall home -> cpu;  inv home -> device;  inv_ack device -> home
  ordered reply, inv
  ordered Taken behind Recall
}
messages {
  request: GetS, GetM;  put: Put (line);  reply: Data (line)
  recall: Recall, Taken;  inv: Inv;  inv_ack: InvAck
}
remote cpu {
  states { I; M reads writes dirty; W waits Data; P holds dirty, waits Taken }
  variables { fills: 0..2 }
  I | load store       | send GetM  | W
  W | Data if fills < 2 | fills += 1 | M
  W | Data             | fills := 0 | M
  M | evict            | send Put   | P
  P | Taken            |            | I
  M | Recall           | send Put   | P
  P | Recall           |            | stay
  W | Recall           | stall
}
remote device {
  states { I; S reads; W waits Data }
  variables { fills: bool }
  I   | load | send GetS, fills := true   | W
  W   | Data |             | S
  S   | Inv  | send InvAck, fills := false | I
  I W | Inv  | send InvAck | stay
}
home directory {
  states { I; S; M; B waits InvAck; R waits Put }
  variables { owner: remote; requester: remote; pending: count }
  I   | GetS                       | send Data                                                         | S
  S   | GetS                       | send Data                                                         | stay
  I   | GetM                       | send Data, owner := sender                                        | M
  S   | GetM                       | send Inv to device, pending := count(device), requester := sender | B
  B   | InvAck if pending == 1     | send Data to requester, owner := requester, pending := 0          | M
  B   | InvAck                     | pending -= 1                                                      | stay
  M   | GetS GetM                  | send Recall to owner, requester := sender                         | R
  R   | Put if requester in device | write, send Taken, send Data to requester, owner := none          | S
  R   | Put                        | write, send Taken, send Data to requester, owner := requester     | M
  M   | Put                        | write, send Taken, owner := none                                  | I
  B R | GetS GetM                  | stall
}
";

/// Arrays with one and two indices, a loop, a choice, and a set in a message.
const ARRAYS: &str = "
protocol arrays
line 64 bytes
channels { ask remote -> home; inv home -> remote; reply home -> remote; back remote -> home; hop remote -> remote }
messages {
  ask: GetS, GetM; inv: Inv (copies: 0..3, others: set of remote), Fetch (to: remote)
  reply: Data (line); back: InvAck (n: 0..3), Miss; hop: Pass (line)
}
remote cache {
  states { I; S reads; W waits Data }
  variables { seen: set of remote; turns: 0..3 per 4; last: cycle 4 }
  I   | load                                  | send GetS                                                        | W
  S   | evict                                 | send GetM                                                        | W
  W   | Data                                  | turns[last] := 2, last += 1                                      | S
  S   | Inv if self in others and copies > 1  | send InvAck (n = copies - 1), seen := others + { self }, turns := 1 | I
  S   | Inv                                   | send InvAck (n = count(others - { self })), seen -= { self }     | I
  I W | Inv                                   | send InvAck (n = 0)                                              | stay
  S   | Fetch                                 | send Pass to to                                                  | stay
  I W | Fetch                                 | send Miss                                                        | stay
  W   | Pass                                  |                                                                  | S
  I S | Pass                                  |                                                                  | stay
}
home directory {
  states { S; B waits InvAck Miss }
  variables { credits: 0..3 per remote = 3; sharers: set of remote; pending: count; holder: remote; grid: 0..2 per remote per 2 }
  S | GetS if credits[sender] > 0 and grid[sender][0] < 2 | send Data, sharers += { sender }, credits[sender] -= 1, grid[sender][1] := 2 | stay
  S | GetS if count(sharers) > 1                          | holder := any sharers, send Fetch (to = sender) to holder | B
  S | GetS                                                | stall
  S | GetM                                                | for r in sharers { send Inv (copies = 3 - credits[r], others = sharers) to r, pending += 1 }, credits := 3, grid := 0, sharers := {} | B
  B | InvAck if n == pending or credits[sender] != n      | pending -= 1                                              | stay
  B | InvAck                                              | grid[holder][0] += 1, holder := none                      | S
  B | Miss if not holder in sharers                       | pending := count(cache) - count(sharers)                  | stay
  B | Miss                                                |                                                           | S
  B | GetS GetM                                           | stall
}
";

/// Cyclic numbers that are not powers of two.
const NUMBERED: &str = "
protocol numbered
line 64 bytes
size turns 3
channels { ask remote -> home; reply home -> remote; note home -> remote; ordered note }
messages { ask: Get (turn: cycle turns); reply: Data (line, turn: cycle turns); note: Note (turn: cycle turns) }
remote cache {
  states { I; W waits Data }
  variables { now: cycle turns; open: 0..2 }
  I | read_once if open < 2 | send Get (turn = now), open += 1 | W
  W | Data if turn == now   | done, now += 2                   | I
  I | Note if turn != now   | open -= 1                        | stay
  W | Note                  | open -= 1                        | stay
}
home memory {
  states { Idle }
  Idle | Get | send Data (turn = turn), send Note (turn = turn) | stay
}
";

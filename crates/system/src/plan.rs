//! What follows from a row alone, and from all rows of a protocol.

use cohkit_protocol::controller::{Access, Controller, Effect, Event, Rule, Statement};
use cohkit_protocol::protocol::{MessageId, Protocol, Right, StateId};
use cohkit_protocol::under_way::{Accesses, Ending, UnderWay};

use crate::stores::{Senders, StoreSend};

/// What a state gives its agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// What the agent may do.
    pub right: Right,
    /// Whether the agent has the line's bytes.
    pub holds: bool,
}

/// What `done` means in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// It ends the access under way.
    Ends(Ending),
    /// The row does not say `done`.
    Absent,
    /// It may end more than one sort of access, or none.
    Unclear,
}

/// What follows from one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What the row's state gives.
    pub before: About,
    /// What the state that it leads to gives.
    pub after: About,
    /// Whether it leads to another state.
    pub moves: bool,
    /// Whether it takes its event and does nothing but, perhaps, say that the access is to be tried again.
    pub idle: bool,
    /// Whether it performs a write in the agent's own copy, after its statements.
    pub performs: bool,
    /// The read that it begins, if that is under way after it.
    pub begins: Option<Access>,
    /// What its `done` ends.
    pub done: Done,
    /// Whether the write that its `done` may end leaves a part of the line as it was, so that it needs the last bytes.
    pub keeps_a_part: bool,
    /// Whether it gives up a write whose bytes have been sent.
    pub gives_up: bool,
    /// Whether it posts a write: it sends the bytes and does not wait for an answer.
    pub posts: bool,
    /// Whether it performs a read in the agent's own copy.
    pub reads: bool,
    /// The access that it begins, if that is in progress after it.
    pub opens: Option<Access>,
}

impl Plan {
    /// What follows from a row of a controller; `remote` are the accesses under way, if it is a remote's.
    pub fn new(controller: &Controller, row: &Rule, remote: Option<&Accesses>) -> Plan {
        let about = |state: usize| About {
            right: controller.states[state].right,
            holds: controller.states[state].holds_line,
        };
        let from = row.state.index();
        let next = match &row.effect {
            Effect::Take { next, .. } => next.map_or(from, |next| next.index()),
            _ => from,
        };
        let (before, after) = (about(from), about(next));
        let writes = matches!(row.event, Event::Access(access) if access.writes());
        let reads = matches!(row.event, Event::Access(access) if access.needs() == Right::Read);
        let body = match &row.effect {
            Effect::Take { body, .. } => Some(body),
            _ => None,
        };
        let opens = remote.and_then(|accesses| accesses.begins(controller, row));
        Plan {
            before,
            after,
            moves: next != from,
            idle: body.is_some_and(|body| body.iter().all(|s| *s == Statement::Retry)),
            performs: writes && before.right == Right::Write && after.right == Right::Write,
            begins: opens.filter(|access| access.needs() == Right::Read),
            done: match remote {
                _ if !row.says(&|s| *s == Statement::Done) => Done::Absent,
                Some(accesses) => ends(accesses, row),
                None => Done::Unclear,
            },
            keeps_a_part: remote.is_some_and(|accesses| {
                let part = |u: &UnderWay| u.access.writes() && u.access != Access::WriteLine;
                accesses.within(row.state).iter().any(part)
            }),
            gives_up: remote.is_some_and(|accesses| accesses.gives_up(controller, row)),
            posts: remote.is_some_and(|accesses| accesses.posts(controller, row)),
            reads: reads
                && body.is_some_and(|body| !body.contains(&Statement::Retry))
                && before.right.min(after.right) >= Right::Read,
            opens,
        }
    }

    /// What follows from each row of a controller.
    pub fn of(controller: &Controller, remote: Option<&Accesses>) -> Vec<Plan> {
        let rows = controller.rules.iter();
        rows.map(|row| Plan::new(controller, row, remote)).collect()
    }
}

/// Whether an access is performed in the agent's own copy without a row in a state.
pub fn hits(remote: &Controller, state: usize, access: Access) -> bool {
    access.is_performed_in_place()
        && remote.states[state].right >= access.needs()
        && !remote.rules.iter().any(|row| {
            row.event == Event::Access(access)
                && row.state.index() == state
                && matches!(row.effect, Effect::Take { .. })
        })
}

/// Returns true if stores, or atomics that some row distinguishes from them, are performed in the agent's own copy without a
/// row in a state.
pub fn write_hits(remote: &Controller, state: usize) -> bool {
    let atomic = Event::Access(Access::Atomic);
    hits(remote, state, Access::Store)
        || hits(remote, state, Access::Atomic) && remote.rules.iter().any(|row| row.event == atomic)
}

/// Which sort of access `done` ends: the one whose row led here.
fn ends(accesses: &Accesses, row: &Rule) -> Done {
    let mut endings: Vec<Ending> = accesses.endings(row).map(|(_, ending)| ending).collect();
    endings.sort_unstable();
    endings.dedup();
    match endings[..] {
        [ending] => Done::Ends(ending),
        _ => Done::Unclear,
    }
}

/// What follows from all rows of a protocol and its home.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Whether copies that may be read, or are used, are to be those of the last write.
    pub coherent: bool,
    /// What remotes have begun in each of their states.
    pub accesses: Accesses,
    /// Whether the home's memory takes its time, with one operation of a line at a time; otherwise it acts at once.
    pub slot: bool,
    /// Whether the home ever keeps the bytes of a write to write them later.
    pub aside: bool,
    /// Whether stores are followed from the remote that sends them to memory ([`crate::stores`]).
    /// Asynchronous memory needs no such record: a home that starts no store never hears that it is done.
    pub stores_pending: bool,
    /// Of each message, which rows of remotes send stores in it.
    pub senders: Vec<Senders>,
    /// Whether the program order of one line is checked: copies are current, and stores are posted.
    pub line_order: bool,
    /// Of each message, whether it may bring what an atomic access finds whose store the home performs.
    pub answers_atomic: Vec<bool>,
    /// Of each state of the remotes, whether an atomic access may be in progress there whose store the home performs.
    pub atomic_in: Vec<bool>,
    /// Whether the device can lock lines.
    pub locks: bool,
    /// Of each message, whether a remote performs an access with its bytes without having to keep them.
    pub used_once: Vec<bool>,
    /// Of each access, in the order of [`Access::ALL`], the messages whose bytes may end it if it is a read.
    answers: Vec<Vec<MessageId>>,
    /// Alternatives of what may follow a memory read.
    pub choices: u8,
}

impl Facts {
    /// Of a protocol with this home, which is written by hand or constructed.
    pub fn new(protocol: &Protocol, home: &Controller) -> Facts {
        let accesses = Accesses::new(&protocol.remote, &protocol.messages);
        let remote = &protocol.remote;
        let home_says = |what: &dyn Fn(&Statement) -> bool| home.rules.iter().any(|r| r.says(what));
        let slot = home_says(&|s| {
            matches!(
                s,
                Statement::StartRead | Statement::StartWrite | Statement::StartStore { .. }
            )
        });
        let sends_store = |s: &Statement| matches!(s, Statement::Send { message, .. } if protocol.message(*message).carries.store());
        let stores_pending = !slot && remote.rules.iter().any(|row| row.says(&sends_store));
        let mut senders = vec![Senders::default(); protocol.messages.len()];
        for row in remote.rules.iter().filter(|_| stores_pending) {
            let mut send = StoreSend::first(accesses.posts(remote, row));
            row.visit(&mut |statement| match statement {
                Statement::Send { message, .. } if sends_store(statement) => {
                    let senders = &mut senders[message.index()];
                    match send.take() {
                        StoreSend::Posted => senders.post = true,
                        StoreSend::Awaited | StoreSend::Repeated => senders.wait = true,
                    }
                }
                _ => {}
            });
        }
        let atomic_in = atomic_in(remote, &accesses);
        let line_order = protocol.guarantee.coherent && senders.iter().any(|s| s.post);
        let choices = home.rules.iter().map(|row| match row.event {
            Event::MemoryData(choice) => choice + 1,
            _ => 1,
        });
        Facts {
            coherent: protocol.guarantee.coherent,
            slot,
            aside: home_says(&|s| *s == Statement::SetAside),
            stores_pending,
            line_order,
            senders,
            answers_atomic: protocol
                .message_ids()
                .map(|message| {
                    let its = (&accesses, &atomic_in[..]);
                    stores_pending && answers_atomic(protocol, its, message)
                })
                .collect(),
            atomic_in,
            locks: home.locals.iter().any(|local| local.locks),
            used_once: protocol
                .message_ids()
                .map(|message| protocol.used_once(message))
                .collect(),
            choices: choices.max().unwrap_or(1),
            answers: Access::ALL
                .iter()
                .map(|&(access, _)| answers(protocol, &accesses, access))
                .collect(),
            accesses,
        }
    }

    /// Whether remotes have atomic accesses that the home performs and answers with the line.
    pub fn atomics(&self) -> bool {
        self.answers_atomic.contains(&true)
    }

    /// Whether some store is sent by a row that waits for its end.
    pub fn awaits_stores(&self) -> bool {
        self.senders.iter().any(|senders| senders.wait)
    }

    /// The messages whose bytes may end a read of this kind. It must not end with what was old before it began.
    pub fn answers(&self, read: Access) -> &[MessageId] {
        &self.answers[read as usize]
    }
}

/// The messages with whose bytes a row of the remote may end a read of this kind.
fn answers(protocol: &Protocol, accesses: &Accesses, read: Access) -> Vec<MessageId> {
    let ends = |&message: &MessageId| {
        let mut rows = protocol.remote.rules.iter();
        protocol.used_once(message)
            && rows.any(|row| {
                row.event == Event::Message(message)
                    && row.says(&|s| *s == Statement::Done)
                    && accesses.endings(row).any(|(under_way, ending)| {
                        ending == Ending::Read && under_way.access == read
                    })
            })
    };
    protocol.message_ids().filter(ends).collect()
}

/// Of each state of the remotes, whether an atomic access may be in progress there whose store the home performs.
fn atomic_in(remote: &Controller, accesses: &Accesses) -> Vec<bool> {
    let states = (0..remote.states.len() as u16).map(StateId);
    let its = |u: &UnderWay| u.access == Access::Atomic;
    let within = |state: StateId| accesses.within(state).iter().any(its);
    let mut found: Vec<bool> = states
        .map(|state| accesses.within(state).iter().any(|u| its(u) && u.sent))
        .collect();
    loop {
        let before = found.clone();
        for row in &remote.rules {
            if let (Event::Message(_), Effect::Take { next, .. }) = (row.event, &row.effect) {
                let next = next.unwrap_or(row.state);
                found[row.state.index()] |= found[next.index()] && within(row.state);
            }
        }
        if found == before {
            return found;
        }
    }
}

/// Whether a message may bring what an atomic access finds whose store the home performs: a row takes it with the line while
/// that access is in progress, and does not perform the access in the remote's own copy.
fn answers_atomic(
    protocol: &Protocol,
    (accesses, atomic_in): (&Accesses, &[bool]),
    message: MessageId,
) -> bool {
    let answers = |row: &Rule| {
        let Effect::Take { body, next } = &row.effect else {
            return false;
        };
        let next = next.unwrap_or(row.state);
        let ends = || {
            let mut endings = accesses.endings(row);
            endings.any(|(u, ending)| u.access == Access::Atomic && ending == Ending::Sent)
        };
        row.event == Event::Message(message)
            && atomic_in[row.state.index()]
            && match body.contains(&Statement::Done) {
                true => ends(),
                false => atomic_in[next.index()],
            }
    };
    protocol.message(message).carries.line() && protocol.remote.rules.iter().any(answers)
}

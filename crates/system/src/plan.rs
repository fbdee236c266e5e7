//! Static analysis of single rows ([`Plan`]) and of a protocol with its home ([`ProtocolFacts`]).
//!
//! Each executor (model checker, explorer, and lockstep reference) derives its behaviour from these results, so that
//! they agree on the meaning of a row.

use cohkit_protocol::controller::{Access, Controller, Effect, Event, Rule, Statement};
use cohkit_protocol::pending_access::{Accesses, CompletionKind, PendingAccess};
use cohkit_protocol::protocol::{Carries, MessageId, Permission, Protocol, StateId};

use crate::stores::{Senders, StoreSend};

/// Properties of a state of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateProperties {
    /// Permission of the agent.
    pub permission: Permission,
    /// True if the agent holds a copy of the line.
    pub holds: bool,
}

/// Meaning of `done` in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionEffect {
    /// Completes the outstanding access.
    Completes(CompletionKind),
    /// The row does not contain `done`.
    Absent,
    /// `done` may complete more than one kind of access, or none.
    Ambiguous,
}

/// Effects of a remote's row on copies and accesses that its acts do not determine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteEffects {
    /// True if the remote holds a copy of the line after the row.
    pub holds_after: bool,
    /// True if the row performs a write in the agent's own copy, after its statements.
    pub performs: bool,
    /// Meaning of `done` in the row.
    pub done: CompletionEffect,
    /// True if the outstanding write may cover only a part of the line. Such a write needs the current bytes of the
    /// rest.
    pub is_partial_write: bool,
    /// True if the row abandons a write whose bytes have been sent.
    pub abandons_write: bool,
}

impl RemoteEffects {
    /// Effects of a row that holds, performs and completes nothing.
    pub const NONE: RemoteEffects = RemoteEffects {
        holds_after: false,
        performs: false,
        done: CompletionEffect::Absent,
        is_partial_write: false,
        abandons_write: false,
    };
}

/// Static analysis of one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Properties of the row's state.
    pub before: StateProperties,
    /// Properties of the next state.
    pub after: StateProperties,
    /// True if the next state differs from the row's state.
    pub changes_state: bool,
    /// True if the row consumes its event and does nothing else, apart from `retry`.
    pub idle: bool,
    /// Effects on copies and accesses.
    pub effects: RemoteEffects,
    /// True if the row posts a write: it sends the bytes and does not wait for a response.
    pub posts: bool,
    /// True if the row performs a read in the agent's own copy.
    pub reads: bool,
    /// The access that the row begins, if it is outstanding after the row.
    pub begun_access: Option<Access>,
}

impl Plan {
    /// Analyses a row of a controller. `remote` holds the outstanding accesses per state if it is a remote's
    /// controller.
    pub fn new(controller: &Controller, row: &Rule, remote: Option<&Accesses>) -> Plan {
        let properties_of = |state: usize| StateProperties {
            permission: controller.states[state].permission,
            holds: controller.states[state].holds_line,
        };
        let from = row.state.index();
        let next = match &row.effect {
            Effect::Take { next, .. } => next.map_or(from, |next| next.index()),
            _ => from,
        };
        let (before, after) = (properties_of(from), properties_of(next));
        let writes = matches!(row.event, Event::Access(access) if access.writes());
        let reads =
            matches!(row.event, Event::Access(access) if access.needs() == Permission::Read);
        let body = match &row.effect {
            Effect::Take { body, .. } => Some(body),
            _ => None,
        };
        Plan {
            before,
            after,
            changes_state: next != from,
            idle: body
                .is_some_and(|body| body.iter().all(|statement| *statement == Statement::Retry)),
            effects: RemoteEffects {
                holds_after: after.holds,
                performs: writes
                    && before.permission == Permission::Write
                    && after.permission == Permission::Write,
                done: match remote {
                    _ if !row.has_statement(&|statement| *statement == Statement::Done) => {
                        CompletionEffect::Absent
                    }
                    Some(accesses) => completion_effect(accesses, row),
                    None => CompletionEffect::Ambiguous,
                },
                is_partial_write: remote.is_some_and(|accesses| {
                    let is_partial = |pending: &PendingAccess| {
                        pending.access.writes() && pending.access != Access::WriteLine
                    };
                    accesses.pending_in(row.state).iter().any(is_partial)
                }),
                abandons_write: remote
                    .is_some_and(|accesses| accesses.abandons_sent_write(controller, row)),
            },
            posts: remote.is_some_and(|accesses| accesses.posts(controller, row)),
            reads: reads
                && body.is_some_and(|body| !body.contains(&Statement::Retry))
                && before.permission.min(after.permission) >= Permission::Read,
            begun_access: remote.and_then(|accesses| accesses.started_access(controller, row)),
        }
    }

    /// Analyses each row of a controller.
    pub fn of(controller: &Controller, remote: Option<&Accesses>) -> Vec<Plan> {
        let rows = controller.rules.iter();
        rows.map(|row| Plan::new(controller, row, remote)).collect()
    }
}

/// True if a remote in this state performs the access in its own copy, and no row handles it.
pub fn hits(remote: &Controller, state: usize, access: Access) -> bool {
    access.is_performed_in_place()
        && remote.states[state].permission >= access.needs()
        && !remote.rules.iter().any(|row| {
            row.event == Event::Access(access)
                && row.state.index() == state
                && matches!(row.effect, Effect::Take { .. })
        })
}

/// True if a remote in this state performs stores in its own copy without a row, or atomics that some row distinguishes
/// from stores.
pub fn write_hits(remote: &Controller, state: usize) -> bool {
    let atomic = Event::Access(Access::Atomic);
    hits(remote, state, Access::Store)
        || hits(remote, state, Access::Atomic) && remote.rules.iter().any(|row| row.event == atomic)
}

/// Returns the meaning of `done` in a row, derived from the accesses that may be outstanding there.
fn completion_effect(accesses: &Accesses, row: &Rule) -> CompletionEffect {
    let mut kinds: Vec<CompletionKind> = accesses.completions(row).map(|(_, kind)| kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds[..] {
        [kind] => CompletionEffect::Completes(kind),
        _ => CompletionEffect::Ambiguous,
    }
}

/// Static analysis of a protocol and its home.
#[derive(Clone, Debug)]
pub struct ProtocolFacts {
    /// True if the protocol guarantees coherence: every copy that may be read, or whose bytes are used, must hold the
    /// value of the last write.
    pub coherent: bool,
    /// Accesses that may be outstanding in each state of the remotes.
    pub accesses: Accesses,
    /// True if memory is split: an operation takes several steps, with at most one operation per line in progress.
    /// Otherwise memory operations are atomic.
    pub slot: bool,
    /// True if the home ever defers a write: it keeps the bytes and writes them later.
    pub defers_stores: bool,
    /// True if stores are tracked from the remote that sends them to memory ([`crate::stores`]). Split memory needs no
    /// such record: a home that starts no store receives no completion.
    pub stores_pending: bool,
    /// Per message, the kinds of rows of remotes that send stores in it.
    pub senders: Vec<Senders>,
    /// True if the program order of one line is checked: the protocol is coherent, and stores are posted.
    pub line_order: bool,
    /// Per message, true if it may carry the old value to an atomic access that the home performs.
    pub answers_atomic: Vec<bool>,
    /// Per state of the remotes, true if an atomic access that the home performs may be outstanding there.
    pub atomic_in: Vec<bool>,
    /// True if some local operation of the device locks the line.
    pub locks: bool,
    /// Data that each message carries.
    pub carries: Vec<Carries>,
    /// Per message, true if a remote performs an access with its bytes without having to keep them.
    pub is_single_use: Vec<bool>,
    /// Per access, in the order of [`Access::ALL`], the messages whose bytes may complete it if it is a read.
    answers: Vec<Vec<MessageId>>,
    /// Number of alternative events that may follow a memory read.
    pub choices: u8,
}

impl ProtocolFacts {
    /// Analyses a protocol with this home, which is written by hand or constructed.
    pub fn new(protocol: &Protocol, home: &Controller) -> ProtocolFacts {
        let accesses = Accesses::new(&protocol.remote, &protocol.messages);
        let remote = &protocol.remote;
        let home_has = |predicate: &dyn Fn(&Statement) -> bool| {
            home.rules.iter().any(|row| row.has_statement(predicate))
        };
        let slot = home_has(&|s| {
            matches!(
                s,
                Statement::StartRead | Statement::StartWrite | Statement::StartStore { .. }
            )
        });
        let sends_store = |s: &Statement| matches!(s, Statement::Send { message, .. } if protocol.message(*message).carries.store());
        let stores_pending = !slot
            && remote
                .rules
                .iter()
                .any(|row| row.has_statement(&sends_store));
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
        ProtocolFacts {
            coherent: protocol.guarantee.coherent,
            slot,
            defers_stores: home_has(&|s| *s == Statement::DeferStore),
            stores_pending,
            line_order,
            senders,
            answers_atomic: protocol
                .message_ids()
                .map(|message| {
                    let accesses_and_states = (&accesses, &atomic_in[..]);
                    stores_pending && answers_atomic(protocol, accesses_and_states, message)
                })
                .collect(),
            atomic_in,
            locks: home.locals.iter().any(|local| local.locks),
            carries: (protocol.messages.iter())
                .map(|message| message.carries)
                .collect(),
            is_single_use: protocol
                .message_ids()
                .map(|message| protocol.is_single_use(message))
                .collect(),
            choices: choices.max().unwrap_or(1),
            answers: Access::ALL
                .iter()
                .map(|&(access, _)| answers(protocol, &accesses, access))
                .collect(),
            accesses,
        }
    }

    /// True if remotes have atomic accesses that the home performs and answers with the line.
    pub fn atomics(&self) -> bool {
        self.answers_atomic.contains(&true)
    }

    /// True if some row sends a store and waits for its completion.
    pub fn awaits_stores(&self) -> bool {
        self.senders.iter().any(|senders| senders.wait)
    }

    /// Returns the messages whose bytes may complete a read of this kind. The read must not return bytes that were
    /// stale before it began.
    pub fn answers(&self, read: Access) -> &[MessageId] {
        &self.answers[read as usize]
    }
}

/// Returns the messages whose bytes complete a read of this kind in some row of the remote.
fn answers(protocol: &Protocol, accesses: &Accesses, read: Access) -> Vec<MessageId> {
    let completes_read = |&message: &MessageId| {
        let mut rows = protocol.remote.rules.iter();
        protocol.is_single_use(message)
            && rows.any(|row| {
                row.event == Event::Message(message)
                    && row.has_statement(&|statement| *statement == Statement::Done)
                    && accesses.completions(row).any(|(pending, kind)| {
                        kind == CompletionKind::Read && pending.access == read
                    })
            })
    };
    protocol.message_ids().filter(completes_read).collect()
}

/// Returns, per state of the remotes, whether an atomic access that the home performs may be outstanding there: its
/// bytes have been sent, or messages lead to a state in which they have.
fn atomic_in(remote: &Controller, accesses: &Accesses) -> Vec<bool> {
    let states = (0..remote.states.len() as u16).map(StateId);
    let is_atomic = |pending: &PendingAccess| pending.access == Access::Atomic;
    let has_atomic = |state: StateId| accesses.pending_in(state).iter().any(is_atomic);
    let mut possible: Vec<bool> = states
        .map(|state| {
            accesses
                .pending_in(state)
                .iter()
                .any(|pending| is_atomic(pending) && pending.sent)
        })
        .collect();
    // Propagate against the direction of the rows, up to the fixed point.
    loop {
        let previous = possible.clone();
        for row in &remote.rules {
            if let (Event::Message(_), Effect::Take { next, .. }) = (row.event, &row.effect) {
                let next = next.unwrap_or(row.state);
                possible[row.state.index()] |= possible[next.index()] && has_atomic(row.state);
            }
        }
        if possible == previous {
            return possible;
        }
    }
}

/// True if a message may carry the old value to an atomic access that the home performs. Some row then consumes it,
/// with the line, while that access is outstanding, and does not perform the access in the remote's own copy.
fn answers_atomic(
    protocol: &Protocol,
    (accesses, atomic_in): (&Accesses, &[bool]),
    message: MessageId,
) -> bool {
    let is_answer = |row: &Rule| {
        let Effect::Take { body, next } = &row.effect else {
            return false;
        };
        let next = next.unwrap_or(row.state);
        let completes = || {
            let mut completions = accesses.completions(row);
            completions.any(|(pending, kind)| {
                pending.access == Access::Atomic && kind == CompletionKind::Sent
            })
        };
        row.event == Event::Message(message)
            && atomic_in[row.state.index()]
            && match body.contains(&Statement::Done) {
                true => completes(),
                false => atomic_in[next.index()],
            }
    };
    protocol.message(message).carries.line() && protocol.remote.rules.iter().any(is_answer)
}

//! Effects of a row on its environment: data, memory, locks and accesses.
//!
//! [`cohkit_protocol::execute`] evaluates a row and returns its acts. This module applies these acts. Each executor
//! implements [`RemoteContext`] and [`HomeContext`] for its own representation of copies and memory.

use cohkit_protocol::execute::{Act, Receiver};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Carries, MessageId, Permission, Protocol, StateId};

use crate::plan::{CompletionEffect, Plan, ProtocolFacts};
pub use crate::violation::Violation;
use std::borrow::Cow;

/// Data of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bytes<Copy> {
    /// No data.
    None,
    /// A copy of the line.
    Line(Copy),
    /// The bytes of the outstanding write.
    Write,
}

/// A message to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingMessage<Copy> {
    /// Message type.
    pub message: MessageId,
    /// Destination.
    pub to: Receiver,
    /// Field values, in the order of their declaration; a set is one value.
    pub fields: Vec<u16>,
    /// Data that the message carries.
    pub bytes: Bytes<Copy>,
}

/// Environment of a remote: its channels, and the accesses of its core.
pub trait RemoteContext {
    /// A copy of a line, or an abstraction of it.
    type Copy: Clone + Default;
    /// Error type of the executor.
    type Error: From<Violation>;

    /// True if `copy` contains every write performed so far.
    fn is_current(&self, copy: &Self::Copy) -> bool;
    /// Sends a message.
    ///
    /// # Errors
    /// The channel is full, or the message exceeds a declared bound.
    fn send(&mut self, outgoing: OutgoingMessage<Self::Copy>) -> Result<(), Self::Error>;
    /// Performs the outstanding write in a copy. Returns the new copy.
    ///
    /// # Errors
    /// No write is outstanding, or it must not be performed in this copy.
    fn write(&mut self, copy: &Self::Copy) -> Result<Self::Copy, Self::Error>;
    /// Completes the outstanding read with a copy.
    ///
    /// # Errors
    /// No read is outstanding, or it must return a different value.
    fn read(&mut self, copy: &Self::Copy) -> Result<(), Self::Error>;
    /// Completes the outstanding write whose bytes were sent. `old_copy` is the value before the write, if the home
    /// returned it.
    ///
    /// # Errors
    /// The home has not performed the write.
    fn complete_sent_write(&mut self, old_copy: Option<&Self::Copy>) -> Result<(), Self::Error>;
    /// Abandons the outstanding write, whose bytes were sent.
    fn abandon_write(&mut self);
    /// Moves all lines of the agent that are in state `from` to state `to`, after the row has been applied.
    ///
    /// # Errors
    /// The executor models a single line per agent.
    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Result<(), Self::Error>;
}

/// Applies the acts of a remote's row. Returns the remote's new copy.
///
/// `plan` is that of the row. `old_copy` is the remote's copy, or the default if it has none. `carried_copy` is the
/// copy in the current message, if any.
///
/// # Errors
/// The first violated property.
pub fn remote<A: RemoteContext>(
    protocol: &Protocol,
    facts: &ProtocolFacts,
    plan: &Plan,
    acts: Vec<Act>,
    old_copy: &A::Copy,
    carried_copy: Option<&A::Copy>,
    context: &mut A,
) -> Result<A::Copy, A::Error> {
    let mut copy = carried_copy.unwrap_or(old_copy).clone();
    let mut written = false;
    for act in acts {
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                let carries = protocol.message(message).carries;
                let bytes = match carries {
                    Carries::Nothing => Bytes::None,
                    Carries::Line | Carries::DirtyLine => Bytes::Line(copy.clone()),
                    Carries::Store | Carries::PartialStore => Bytes::Write,
                };
                if facts.is_single_use[message.index()] && !context.is_current(&copy) {
                    return Err(stale_single_use(protocol, message).into());
                }
                context.send(OutgoingMessage {
                    message,
                    to,
                    fields,
                    bytes,
                })?;
            }
            Act::Done => match plan.done {
                CompletionEffect::Completes(CompletionKind::Write) => {
                    if facts.coherent && plan.is_partial_write && !context.is_current(&copy) {
                        return Err(Violation::data_value(PARTIAL_WRITE_TO_STALE_COPY).into());
                    }
                    copy = context.write(&copy)?;
                    written = true;
                }
                CompletionEffect::Completes(CompletionKind::Sent) => {
                    context.complete_sent_write(carried_copy)?
                }
                // The copy of a message was checked when it was sent.
                CompletionEffect::Completes(CompletionKind::Read) => {
                    if facts.coherent && carried_copy.is_none() && !context.is_current(&copy) {
                        return Err(
                            Violation::data_value("a read completes with a stale copy").into()
                        );
                    }
                    context.read(&copy)?;
                }
                CompletionEffect::Absent | CompletionEffect::Ambiguous => {
                    let description = "`done` does not identify the access that it completes";
                    return Err(Violation::new("no unexpected message", description).into());
                }
            },
            Act::BulkTransition { from, to } => context.bulk_transition(from, to)?,
            other => {
                let description = format!("a remote executes an action of a home: {other:?}");
                return Err(Violation::new("no unexpected message", description).into());
            }
        }
    }
    let new_copy = if !plan.after.holds {
        A::Copy::default()
    } else if plan.performs {
        context.write(old_copy)?
    } else if carried_copy.is_some() || written {
        copy
    } else {
        old_copy.clone()
    };
    if plan.abandons_write {
        context.abandon_write();
    }
    Ok(new_copy)
}

/// Name of the property that a lost or repeated store violates. It also holds in a protocol that guarantees no
/// coherence, but there it is no part of the data-value property.
pub fn stores(facts: &ProtocolFacts) -> &'static str {
    match facts.coherent {
        true => "data value",
        false => "every store is performed once",
    }
}

/// Violation: a partial write is performed in a stale copy, so the rest of the line loses an earlier write.
pub const PARTIAL_WRITE_TO_STALE_COPY: &str = "a partial store is performed on a stale copy";

/// Violation: a read begins while a response that may complete it, with stale data, is already in flight.
pub const STALE_RESPONSE_IN_FLIGHT: &str =
    "a read starts while a stale response that could complete it is in flight";

/// Returns the violation of a message that carries a stale copy to an access that uses it without caching it.
fn stale_single_use(protocol: &Protocol, message: MessageId) -> Violation {
    let name = &protocol.message(message).name;
    Violation::data_value(format!(
        "{name} carries a stale copy for an access that does not cache it"
    ))
}

/// An operation that a home requests of split memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryOp<Copy> {
    /// Read the whole line.
    Read,
    /// Write this copy of the line.
    Write(Copy),
    /// Write the bytes of the current write.
    Store {
        /// True if the bytes cover the whole line.
        whole: bool,
    },
}

/// Environment of a home: its channels, memory, and the device.
pub trait HomeContext {
    /// A copy of a line, or an abstraction of it.
    type Copy: Clone + Default;
    /// Error type of the executor.
    type Error: From<Violation>;

    /// True if `copy` contains every write performed so far.
    fn is_current(&self, copy: &Self::Copy) -> bool;
    /// The value of `copy` after memory performs a store that it does not contain.
    fn mark_stale(&self, copy: &Self::Copy) -> Self::Copy;
    /// Sends a message.
    ///
    /// # Errors
    /// The channel is full, or the message exceeds a declared bound.
    fn send(&mut self, outgoing: OutgoingMessage<Self::Copy>) -> Result<(), Self::Error>;
    /// Contents of memory for the line.
    fn memory(&self) -> Self::Copy;
    /// Sets the contents of memory.
    ///
    /// # Errors
    /// Memory is split in this executor; see [`HomeContext::start`].
    fn set_memory(&mut self, copy: &Self::Copy) -> Result<(), Self::Error>;
    /// Permission that the device's lock gives to the device; none if the line is not locked.
    fn lock(&self) -> Permission;
    /// Performs a remote's write in memory. `from` is the number of the remote that sent it.
    ///
    /// # Errors
    /// The write must not be performed in this state.
    fn store(&mut self, from: Option<u8>, whole_line: bool) -> Result<(), Self::Error>;
    /// Defers the write of the current message: keeps its bytes until [`HomeContext::take_deferred_write`]. `from` is
    /// the number of the remote that sent it.
    ///
    /// # Errors
    /// Another write to the line is already deferred, or no remote has sent this one.
    fn defer_write(&mut self, from: Option<u8>, whole_line: bool) -> Result<(), Self::Error>;
    /// Removes the deferred write. Returns its sender, and true if it covers the whole line.
    ///
    /// # Errors
    /// No write is deferred.
    fn take_deferred_write(&mut self) -> Result<(Option<u8>, bool), Self::Error>;
    /// Starts a memory operation.
    ///
    /// # Errors
    /// Another operation on the line is in progress.
    fn start(&mut self, operation: MemoryOp<Self::Copy>) -> Result<(), Self::Error>;
    /// Acknowledges a local operation of the device, an index into the home's local operations.
    ///
    /// # Errors
    /// The operation was not accepted, or the state that it promises does not hold.
    fn acknowledge(&mut self, local: u8) -> Result<(), Self::Error>;
    /// Acknowledges the device's unlock.
    fn acknowledge_unlock(&mut self);
}

/// An event that a home consumes.
#[derive(Clone, Copy, Debug)]
pub struct HomeInput<'t, Copy> {
    /// Message type; `None` for a memory completion or a request of the device.
    pub message: Option<MessageId>,
    /// Number of the remote that sent the message; `None` if another home sent it.
    pub sender: Option<u8>,
    /// Copy of the line, from the message or from memory.
    pub carried_copy: Option<&'t Copy>,
}

/// Applies the acts of a home's row.
///
/// # Errors
/// The first violated property.
pub fn home<A: HomeContext>(
    protocol: &Protocol,
    facts: &ProtocolFacts,
    acts: Vec<Act>,
    input: HomeInput<A::Copy>,
    context: &mut A,
) -> Result<(), A::Error> {
    let data_violation = |description: &str| A::Error::from(Violation::data_value(description));
    let carries = input.message.map(|m| protocol.message(m).carries);
    let whole_line = carries == Some(Carries::Store);
    let mut carried_copy = input.carried_copy.map(Cow::Borrowed);
    for act in acts {
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                let bytes = match protocol.message(message).carries {
                    Carries::Nothing => Bytes::None,
                    Carries::Line | Carries::DirtyLine => {
                        // On a memory completion, send the data that was read; otherwise read memory now.
                        let copy = match (&carried_copy, input.message) {
                            (Some(read), None) => read.as_ref().clone(),
                            _ => context.memory(),
                        };
                        if facts.is_single_use[message.index()] {
                            if !context.is_current(&copy) {
                                return Err(stale_single_use(protocol, message).into());
                            }
                            // Split memory is checked when it performs the read, in a separate step.
                            if !facts.slot && context.lock() == Permission::Write {
                                return Err(read_under_lock().into());
                            }
                        }
                        Bytes::Line(copy)
                    }
                    Carries::Store | Carries::PartialStore => Bytes::Write,
                };
                context.send(OutgoingMessage {
                    message,
                    to,
                    fields,
                    bytes,
                })?;
            }
            Act::WriteMemory => match (carries, &carried_copy) {
                (Some(Carries::Store | Carries::PartialStore), _) => {
                    context.store(input.sender, whole_line)?;
                }
                (_, Some(copy)) => context.set_memory(copy)?,
                _ => return Err(data_violation("the home writes memory without data")),
            },
            Act::DeferStore => match carries {
                Some(Carries::Store | Carries::PartialStore) => {
                    context.defer_write(input.sender, whole_line)?;
                }
                _ => {
                    return Err(data_violation(
                        "the home defers a store, but its message carries none",
                    ))
                }
            },
            Act::CommitDeferred => {
                let (from, whole_line) = context.take_deferred_write()?;
                context.store(from, whole_line)?;
                // The received copy does not contain the deferred store.
                carried_copy = carried_copy.map(|copy| Cow::Owned(context.mark_stale(&copy)));
            }
            Act::StartRead => context.start(MemoryOp::Read)?,
            Act::StartWrite => match &carried_copy {
                Some(copy) => context.start(MemoryOp::Write(copy.as_ref().clone()))?,
                None => return Err(data_violation("the home writes memory without a line")),
            },
            Act::StartStore { whole } => context.start(MemoryOp::Store { whole })?,
            Act::Acknowledge(local) => context.acknowledge(local)?,
            Act::AcknowledgeUnlock => context.acknowledge_unlock(),
            Act::Done => {
                return Err(data_violation(
                    "the home completes an access, which only a remote can",
                ))
            }
            Act::BulkTransition { .. } => {
                return Err(data_violation(
                    "the home executes a bulk transition, which only a remote can",
                ))
            }
        }
    }
    Ok(())
}

/// Violation: memory is read for a remote while the device, under its lock, may write it.
pub fn read_under_lock() -> Violation {
    let description = "memory is read for a remote while the device may write it under its lock";
    Violation::new("single writer", description)
}

/// Violation: a remote's write is performed in memory while the device holds a lock.
pub fn store_under_lock() -> Violation {
    let description = "a store reaches memory while the device holds the lock";
    Violation::new("single writer", description)
}

/// Drops the name of the property, for executors that report violations as plain text.
impl From<Violation> for String {
    fn from(violation: Violation) -> String {
        violation.description
    }
}

//! Effects of a row on its environment: data, memory, locks and accesses.
//!
//! [`cohkit_protocol::execute`] evaluates a row and returns its acts. This module applies these acts. Each executor
//! implements [`RemoteContext`] and [`HomeContext`] for its own representation of copies, memory and channels: the
//! executable system, the exploration of applications, the simulator, and the test bench of the hardware.

use cohkit_protocol::execute::{Act, Receiver};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Carries, MessageId, Protocol, StateId};

use crate::plan::{CompletionEffect, ProtocolFacts, RemoteEffects};
pub use crate::violation::Violation;

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
pub struct OutgoingMessage<Copy, Fields = Vec<u16>> {
    /// Message type.
    pub message: MessageId,
    /// Destination.
    pub to: Receiver,
    /// Field values, in the order of their declaration; a set is one value.
    pub fields: Fields,
    /// Data that the message carries.
    pub bytes: Bytes<Copy>,
}

/// Problem of a row: a violated property, or an act that the row cannot perform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowProblem<'c, Copy> {
    /// A message carries a stale copy to an access that uses it without caching it.
    StaleSingleUse(MessageId, &'c Copy),
    /// A write that leaves a part of the line unchanged is performed in a stale copy, so the rest of the line loses an
    /// earlier write.
    StalePartialWrite(&'c Copy),
    /// A read completes with a stale copy of the remote's own.
    StaleRead(&'c Copy),
    /// Memory is read for a remote while the device, under its lock, may write it.
    ReadUnderLock,
    /// `done` does not identify the access that it completes.
    AmbiguousCompletion,
    /// A remote executes an act of a home.
    HomeAct,
    /// A home completes an access.
    HomeCompletes,
    /// A home executes a bulk transition.
    HomeBulkTransition,
    /// The home writes the line of its input to memory, but the input has none.
    NoLineToWrite,
    /// The home defers the store of its message, but the message carries none.
    NoStoreToDefer,
}

impl<Copy> RowProblem<'_, Copy> {
    /// Returns the property that the problem violates, and its description.
    pub fn violation(&self, protocol: &Protocol) -> Violation {
        let unexpected = |description| Violation::new("no unexpected message", description);
        match self {
            RowProblem::StaleSingleUse(message, _) => {
                let name = &protocol.message(*message).name;
                Violation::data_value(format!(
                    "{name} carries a stale copy for an access that does not cache it"
                ))
            }
            RowProblem::StalePartialWrite(_) => Violation::data_value(PARTIAL_WRITE_TO_STALE_COPY),
            RowProblem::StaleRead(_) => Violation::data_value("a read completes with a stale copy"),
            RowProblem::ReadUnderLock => read_under_lock(),
            RowProblem::AmbiguousCompletion => {
                unexpected("`done` does not identify the access that it completes")
            }
            RowProblem::HomeAct => unexpected("a remote executes an action of a home"),
            RowProblem::HomeCompletes => {
                Violation::data_value("the home completes an access, which only a remote can")
            }
            RowProblem::HomeBulkTransition => Violation::data_value(
                "the home executes a bulk transition, which only a remote can",
            ),
            RowProblem::NoLineToWrite => {
                Violation::data_value("the home writes memory without data")
            }
            RowProblem::NoStoreToDefer => {
                Violation::data_value("the home defers a store, but its message carries none")
            }
        }
    }
}

/// Environment of a row, of a remote or of a home: its acts, copies of lines, and channels.
pub trait RowContext {
    /// A copy of a line, or an abstraction of it.
    type Copy: Clone;
    /// Field values of a message, in the order of their declaration.
    type Fields;
    /// Reason for which a row is not applied to its end.
    type Error;

    /// Returns the next act of the row, in their order.
    fn next_act(&mut self) -> Option<Act<Self::Fields>>;
    /// True if `copy` contains every write performed so far.
    fn is_current(&self, copy: &Self::Copy) -> bool;
    /// Returns a further holder of the content of `copy`. An executor that counts the holders of a content overrides
    /// this method and [`RowContext::release`].
    #[inline]
    fn share(&mut self, copy: &Self::Copy) -> Self::Copy {
        copy.clone()
    }
    /// Gives up a copy that the agent does not keep.
    #[inline]
    fn release(&mut self, copy: Self::Copy) {
        drop(copy);
    }
    /// Reports a problem of the row. An executor that records the problem elsewhere returns `Ok`, and the row goes on.
    ///
    /// # Errors
    /// The row is not to be continued.
    fn report(&mut self, problem: RowProblem<Self::Copy>) -> Result<(), Self::Error>;
    /// Sends a message.
    ///
    /// # Errors
    /// The channel is full, or the message exceeds a declared bound.
    fn send(
        &mut self,
        outgoing: OutgoingMessage<Self::Copy, Self::Fields>,
    ) -> Result<(), Self::Error>;
}

/// Environment of a remote's row: also the accesses of its core.
pub trait RemoteContext: RowContext<Copy: Default> {
    /// Performs the outstanding write in a copy. Returns the new copy, which replaces the given one.
    ///
    /// # Errors
    /// No write is outstanding, or it must not be performed in this copy.
    fn write(&mut self, copy: Self::Copy) -> Result<Self::Copy, Self::Error>;
    /// Performs the write that begins with the row in the remote's own copy, which permits it. Returns the new copy.
    ///
    /// # Errors
    /// The write must not be performed in this copy.
    fn write_in_place(&mut self, copy: Self::Copy) -> Result<Self::Copy, Self::Error> {
        self.write(copy)
    }
    /// Completes the outstanding read with a copy.
    ///
    /// # Errors
    /// No read is outstanding, or it must return a different value.
    fn read(&mut self, copy: &Self::Copy) -> Result<(), Self::Error>;
    /// Completes the outstanding write whose bytes were sent. `returned_copy` is the value before the write, if the
    /// home returned it.
    ///
    /// # Errors
    /// The home has not performed the write.
    fn complete_sent_write(
        &mut self,
        returned_copy: Option<&Self::Copy>,
    ) -> Result<(), Self::Error>;
    /// Abandons the outstanding write, whose bytes were sent.
    fn abandon_write(&mut self);
    /// Moves all lines of the agent that are in state `from` to state `to`, after the row has been applied.
    ///
    /// # Errors
    /// The executor models a single line per agent.
    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Result<(), Self::Error>;
}

/// Applies the acts of a remote's row. Returns the remote's new copy, the default if it holds none.
///
/// `effects` are those of the row. `own_copy` is the remote's copy, or the default if it has none. `carried_copy` is
/// the copy in the current message, if any. The remote keeps one of the two copies at most, and releases the other.
///
/// # Errors
/// The first error that the context returns.
#[inline]
pub fn remote<A: RemoteContext>(
    facts: &ProtocolFacts,
    effects: &RemoteEffects,
    mut own_copy: A::Copy,
    mut carried_copy: Option<A::Copy>,
    context: &mut A,
) -> Result<A::Copy, A::Error> {
    while let Some(act) = context.next_act() {
        let copy = carried_copy.as_ref().unwrap_or(&own_copy);
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                if facts.is_single_use[message.index()] && !context.is_current(copy) {
                    context.report(RowProblem::StaleSingleUse(message, copy))?;
                }
                let bytes = match facts.carries[message.index()] {
                    Carries::Nothing => Bytes::None,
                    Carries::Line | Carries::DirtyLine => Bytes::Line(context.share(copy)),
                    Carries::Store | Carries::PartialStore => Bytes::Write,
                };
                context.send(OutgoingMessage {
                    message,
                    to,
                    fields,
                    bytes,
                })?;
            }
            Act::Done => match effects.done {
                CompletionEffect::Completes(CompletionKind::Write) => {
                    if facts.coherent && effects.is_partial_write && !context.is_current(copy) {
                        context.report(RowProblem::StalePartialWrite(copy))?;
                    }
                    let copy = carried_copy.as_mut().unwrap_or(&mut own_copy);
                    *copy = context.write(std::mem::take(copy))?;
                }
                CompletionEffect::Completes(CompletionKind::Sent) => {
                    context.complete_sent_write(carried_copy.as_ref())?
                }
                // The copy of a message was checked when it was sent.
                CompletionEffect::Completes(CompletionKind::Read) => {
                    if facts.coherent && carried_copy.is_none() && !context.is_current(copy) {
                        context.report(RowProblem::StaleRead(copy))?;
                    }
                    context.read(copy)?;
                }
                CompletionEffect::Absent | CompletionEffect::Ambiguous => {
                    context.report(RowProblem::AmbiguousCompletion)?;
                }
            },
            Act::BulkTransition { from, to } => context.bulk_transition(from, to)?,
            _ => context.report(RowProblem::HomeAct)?,
        }
    }
    if effects.abandons_write {
        context.abandon_write();
    }
    let is_carried_kept = effects.holds_after && !effects.performs;
    match carried_copy {
        Some(copy) if is_carried_kept => {
            context.release(own_copy);
            return Ok(copy);
        }
        Some(copy) => context.release(copy),
        None => {}
    }
    if !effects.holds_after {
        context.release(own_copy);
        Ok(A::Copy::default())
    } else if effects.performs {
        context.write_in_place(own_copy)
    } else {
        Ok(own_copy)
    }
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

/// Environment of a home's row: also memory, and the device.
pub trait HomeContext: RowContext {
    /// The value of `copy` after memory performs a store that it does not contain.
    fn mark_stale(&self, copy: &Self::Copy) -> Self::Copy;
    /// Returns a holder of memory's content for the line.
    fn memory(&mut self) -> Self::Copy;
    /// False if the device may write the line now, so that memory must not be read for a remote. True with split
    /// memory, which is checked when it performs the read, in a separate step.
    fn may_read_memory(&self) -> bool;
    /// Sets the contents of memory.
    ///
    /// # Errors
    /// Memory is split in this executor; see [`HomeContext::start`].
    fn set_memory(&mut self, copy: Self::Copy) -> Result<(), Self::Error>;
    /// Performs the write of the current message in memory.
    ///
    /// # Errors
    /// The write must not be performed in this state.
    fn store(&mut self, whole_line: bool) -> Result<(), Self::Error>;
    /// Defers the write of the current message: keeps its bytes until [`HomeContext::commit_deferred`].
    ///
    /// # Errors
    /// Another write to the line is already deferred, or no remote has sent this one.
    fn defer_write(&mut self, whole_line: bool) -> Result<(), Self::Error>;
    /// Performs the deferred write in memory.
    ///
    /// # Errors
    /// No write is deferred, or it must not be performed in this state.
    fn commit_deferred(&mut self) -> Result<(), Self::Error>;
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
    /// Copy of the line, from the message or from memory. The caller holds it until the row has been applied.
    pub carried_copy: Option<&'t Copy>,
}

/// Applies the acts of a home's row.
///
/// # Errors
/// The first error that the context returns.
#[inline]
pub fn home<A: HomeContext>(
    facts: &ProtocolFacts,
    input: HomeInput<A::Copy>,
    context: &mut A,
) -> Result<(), A::Error> {
    let carries = input.message.map(|m| facts.carries[m.index()]);
    let carries_store = carries.is_some_and(Carries::store);
    let whole_line = carries == Some(Carries::Store);
    // The carried copy, once a deferred store has made it stale.
    let mut stale_copy = None;
    while let Some(act) = context.next_act() {
        let carried_copy = stale_copy.as_ref().or(input.carried_copy);
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                let bytes = match facts.carries[message.index()] {
                    Carries::Nothing => Bytes::None,
                    Carries::Line | Carries::DirtyLine => {
                        // On a memory completion, send the data that was read; otherwise read memory now.
                        let copy = match (carried_copy, input.message) {
                            (Some(read), None) => context.share(read),
                            _ => context.memory(),
                        };
                        if facts.is_single_use[message.index()] {
                            if !context.is_current(&copy) {
                                context.report(RowProblem::StaleSingleUse(message, &copy))?;
                            }
                            if !context.may_read_memory() {
                                context.report(RowProblem::ReadUnderLock)?;
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
            Act::WriteMemory if carries_store => context.store(whole_line)?,
            Act::WriteMemory | Act::StartWrite => {
                let Some(copy) = carried_copy else {
                    context.report(RowProblem::NoLineToWrite)?;
                    continue;
                };
                let copy = context.share(copy);
                match act {
                    Act::StartWrite => context.start(MemoryOp::Write(copy))?,
                    _ => context.set_memory(copy)?,
                }
            }
            Act::DeferStore if carries_store => context.defer_write(whole_line)?,
            Act::DeferStore => context.report(RowProblem::NoStoreToDefer)?,
            Act::CommitDeferred => {
                context.commit_deferred()?;
                // The received copy does not contain the deferred store.
                stale_copy = carried_copy.map(|copy| context.mark_stale(copy));
            }
            Act::StartRead => context.start(MemoryOp::Read)?,
            Act::StartStore { whole } => context.start(MemoryOp::Store { whole })?,
            Act::Acknowledge(local) => context.acknowledge(local)?,
            Act::AcknowledgeUnlock => context.acknowledge_unlock(),
            Act::Done => context.report(RowProblem::HomeCompletes)?,
            Act::BulkTransition { .. } => context.report(RowProblem::HomeBulkTransition)?,
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

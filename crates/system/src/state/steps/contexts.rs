//! Execution contexts of remote and home rows.

use cohkit_protocol::execute::Act;
use cohkit_protocol::protocol::{Permission, StateId};

use super::CompletedAccess;
use crate::agent::{
    self, Bytes, HomeContext, MemoryOp, OutgoingMessage, RemoteContext, RowContext, RowProblem,
    Violation,
};
use crate::data::{Data, Extent};
use crate::state::{DeferredStore, Line, Lock, Operation, Remote, StepError, System, SystemState};
use crate::stores::{self, StoreSend, Ticket};

/// Environment of a remote.
pub(super) struct SystemRemoteContext<'w, 's, 'p, D: Data> {
    /// State before the row, changed while the row is executed.
    pub(super) system_state: &'w mut SystemState<D>,
    /// Fixed part of the system.
    pub(super) system: &'s System<'p>,
    /// Line of the row.
    pub(super) line: u8,
    /// Number of the executing remote.
    pub(super) remote: u8,
    /// Acts of the row.
    pub(super) acts: std::vec::IntoIter<Act>,
    /// Part of the line that the outstanding write covers.
    pub(super) extent: Extent,
    /// Relation of the next message with the remote's store to that store.
    pub(super) send: StoreSend,
    /// True if the current message carries a copy.
    pub(super) carries_copy: bool,
    /// Receives the accesses that the row completes.
    pub(super) completed: &'w mut Vec<CompletedAccess<D>>,
    /// Transitions of all lines of the remote, applied after the row.
    pub(super) bulk_transitions: Vec<(StateId, StateId)>,
}

impl<D: Data> SystemRemoteContext<'_, '_, '_, D> {
    /// State of the executing remote for the line.
    fn remote_state(&mut self) -> &mut Remote<D> {
        &mut self.system_state.line(self.line).remotes[usize::from(self.remote)]
    }

    /// Returns the ticket of a store that is sent.
    fn ticket(&mut self) -> Result<Ticket, StepError> {
        let (facts, capacity) = (&self.system.facts, self.system.channel_capacity);
        let send = self.send.take();
        let stores_of_line = &mut self.remote_state().stores;
        if !facts.stores_pending {
            return Ok(Ticket::VOID);
        }
        if send == StoreSend::Posted {
            let rank = stores_of_line.posted;
            if facts.line_order {
                let ranks = stores::ranks(capacity, true);
                if rank >= ranks {
                    let description = format!("more than {ranks} posted stores are pending");
                    return Err(StepError::Exceeded(description));
                }
                stores_of_line.posted += 1;
            }
            return Ok(Ticket::posted(rank));
        }
        Ok(
            match stores_of_line.performed || send == StoreSend::Repeated {
                true => Ticket::VOID,
                false => Ticket::AWAITED,
            },
        )
    }

    /// Records the completion of the access with the value before it.
    fn complete(&mut self, old_copy: Option<D::Copy>) {
        self.completed.push(CompletedAccess {
            line: self.line,
            remote: self.remote,
            old_copy,
        });
    }
}

impl<D: Data> RowContext for SystemRemoteContext<'_, '_, '_, D> {
    type Copy = D::Copy;
    type Fields = Vec<u16>;
    type Error = StepError;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn is_current(&self, copy: &D::Copy) -> bool {
        self.system_state.data.is_current(self.line, copy)
    }

    fn report(&mut self, problem: RowProblem<D::Copy>) -> Result<(), StepError> {
        Err(problem.violation(self.system.protocol).into())
    }

    fn send(&mut self, outgoing: OutgoingMessage<D::Copy>) -> Result<(), StepError> {
        let store = match outgoing.bytes {
            Bytes::Write => {
                let ticket = self.ticket()?;
                (
                    self.remote_state().write_value.clone().unwrap_or_default(),
                    ticket,
                )
            }
            _ => Default::default(),
        };
        let from = Some(self.remote);
        (self.system_state).send(self.system, self.line, from, store, outgoing)
    }
}

impl<D: Data> RemoteContext for SystemRemoteContext<'_, '_, '_, D> {
    fn write(&mut self, copy: D::Copy) -> Result<D::Copy, StepError> {
        (self.system_state).check_program_order(self.line, self.remote, true)?;
        self.write_in_place(copy)
    }

    fn write_in_place(&mut self, copy: D::Copy) -> Result<D::Copy, StepError> {
        let value = self.remote_state().write_value.take().unwrap_or_default();
        self.complete(Some(copy.clone()));
        Ok(self
            .system_state
            .write(self.system, self.line, &copy, self.extent, &value))
    }

    fn read(&mut self, copy: &D::Copy) -> Result<(), StepError> {
        if !self.carries_copy {
            self.system_state
                .check_program_order(self.line, self.remote, false)?;
        }
        self.complete(Some(copy.clone()));
        Ok(())
    }

    fn complete_sent_write(&mut self, returned_copy: Option<&D::Copy>) -> Result<(), StepError> {
        let facts = &self.system.facts;
        let remote_state = self.remote_state();
        remote_state.write_value = None;
        let old_copy = remote_state.received_copy.take();
        if facts.stores_pending && !std::mem::take(&mut remote_state.stores.performed) {
            let description = "a write completes although the home has not performed it";
            return Err(Violation::new(agent::stores(facts), description).into());
        }
        self.complete(returned_copy.cloned().or(old_copy));
        Ok(())
    }

    // The caller handles the abandoned write after the row.
    fn abandon_write(&mut self) {}

    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Result<(), StepError> {
        self.bulk_transitions.push((from, to));
        Ok(())
    }
}

/// Environment of a home.
pub(super) struct SystemHomeContext<'w, 's, 'p, D: Data> {
    /// State before the row, changed while the row is executed.
    pub(super) system_state: &'w mut SystemState<D>,
    /// Fixed part of the system.
    pub(super) system: &'s System<'p>,
    /// Line of the row.
    pub(super) line: u8,
    /// Acts of the row.
    pub(super) acts: std::vec::IntoIter<Act>,
    /// Number of the remote that sent the current message; `None` if another home sent it, or without a message.
    pub(super) sender: Option<u8>,
    /// Store of the current message; `None` if it carries none, or for an event without a message.
    pub(super) consumed_store: Option<ConsumedStore>,
    /// Ticket of the deferred store that is about to be performed.
    pub(super) deferred: Option<Ticket>,
}

/// A store whose message a home consumes.
#[derive(Clone, Copy)]
pub(super) struct ConsumedStore {
    /// State of the store; void once it has been performed.
    ticket: Ticket,
    /// True if its bytes have been deferred.
    deferred: bool,
}

impl ConsumedStore {
    /// A store that the row has neither deferred nor performed yet.
    pub(super) fn new(ticket: Ticket) -> ConsumedStore {
        ConsumedStore {
            ticket,
            deferred: false,
        }
    }

    /// True if the store is pending, and no agent has its bytes after the row.
    pub(super) fn loses_store(self) -> bool {
        self.ticket.is_posted() && !self.deferred
    }
}

impl<D: Data> SystemHomeContext<'_, '_, '_, D> {
    /// State of the line.
    fn line_state(&mut self) -> &mut Line<D> {
        self.system_state.line(self.line)
    }

    /// Performs a store in memory that the remote `from` has sent.
    fn perform_store(&mut self, from: Option<u8>, whole_line: bool) -> Result<(), StepError> {
        let deferred = self.deferred.take();
        let ticket = deferred.or(self
            .consumed_store
            .map(|consumed_store| consumed_store.ticket));
        if let (true, Some(remote)) = (self.system.facts.stores_pending, from) {
            let ticket = ticket.unwrap_or_default();
            (self.system_state).record_performed_store(self.system, self.line, remote, ticket)?;
            // A store that this row has deferred is recorded at two places until the row ends.
            let is_deferred_by_row = self
                .consumed_store
                .is_some_and(|consumed_store| consumed_store.deferred);
            if let (true, Some(consumed_store)) = (
                is_deferred_by_row || deferred.is_none(),
                &mut self.consumed_store,
            ) {
                consumed_store.ticket = Ticket::VOID;
            }
            if let (true, Some(deferred_store)) =
                (is_deferred_by_row, &mut self.line_state().deferred_store)
            {
                deferred_store.ticket = Ticket::VOID;
            }
        }
        let value = self.line_state().consumed_value.take().unwrap_or_default();
        self.system_state
            .store_to_memory(self.system, self.line, whole_line, &value)
    }
}

impl<D: Data> RowContext for SystemHomeContext<'_, '_, '_, D> {
    type Copy = D::Copy;
    type Fields = Vec<u16>;
    type Error = StepError;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn is_current(&self, copy: &D::Copy) -> bool {
        self.system_state.data.is_current(self.line, copy)
    }

    fn report(&mut self, problem: RowProblem<D::Copy>) -> Result<(), StepError> {
        Err(problem.violation(self.system.protocol).into())
    }

    fn send(&mut self, outgoing: OutgoingMessage<D::Copy>) -> Result<(), StepError> {
        let store = Default::default();
        (self.system_state).send(self.system, self.line, None, store, outgoing)
    }
}

impl<D: Data> HomeContext for SystemHomeContext<'_, '_, '_, D> {
    fn mark_stale(&self, copy: &D::Copy) -> D::Copy {
        match self.system.facts.coherent {
            true => D::mark_stale(copy),
            false => copy.clone(),
        }
    }

    fn memory(&mut self) -> D::Copy {
        self.system_state.lines[usize::from(self.line)]
            .memory
            .clone()
    }

    fn may_read_memory(&self) -> bool {
        let lock = self.system_state.lines[usize::from(self.line)].lock;
        self.system.facts.slot || lock != Lock::Held(Permission::Write)
    }

    fn set_memory(&mut self, copy: D::Copy) -> Result<(), StepError> {
        self.system_state.may_write(self.line)?;
        self.line_state().memory = copy;
        Ok(())
    }

    fn store(&mut self, whole_line: bool) -> Result<(), StepError> {
        self.perform_store(self.sender, whole_line)
    }

    fn defer_write(&mut self, whole_line: bool) -> Result<(), StepError> {
        let violation = |description: &str| {
            Err(Violation::new("one deferred store at a time", description).into())
        };
        let ticket = self.consumed_store.as_mut().map(|consumed_store| {
            consumed_store.deferred = true;
            consumed_store.ticket
        });
        let ticket = ticket.unwrap_or_default();
        let from = self.sender;
        let line_state = self.line_state();
        match (from, &line_state.deferred_store) {
            (Some(from), None) => {
                let value = line_state.consumed_value.take().unwrap_or_default();
                line_state.deferred_store = Some(DeferredStore {
                    from,
                    whole: whole_line,
                    value,
                    ticket,
                });
                Ok(())
            }
            (None, _) => violation("the home defers a store that no remote has sent"),
            (_, Some(_)) => violation("the home defers a store while another store is deferred"),
        }
    }

    fn commit_deferred(&mut self) -> Result<(), StepError> {
        let line_state = self.line_state();
        match line_state.deferred_store.take() {
            Some(DeferredStore {
                from,
                whole: whole_line,
                value,
                ticket,
            }) => {
                line_state.consumed_value = D::KEEPS_VALUES.then_some(value);
                self.deferred = Some(ticket);
                self.perform_store(Some(from), whole_line)
            }
            None => {
                let description = "the home writes a deferred store, but no store is deferred";
                Err(Violation::new("one deferred store at a time", description).into())
            }
        }
    }

    fn start(&mut self, operation: MemoryOp<D::Copy>) -> Result<(), StepError> {
        let line_state = self.line_state();
        if line_state.operation != Operation::Idle {
            return Err(Violation::new(
                "memory operation while the slot is busy",
                "the home starts a memory operation while another one is in progress",
            )
            .into());
        }
        line_state.operation = match operation {
            MemoryOp::Read => Operation::Read,
            MemoryOp::Write(copy) => Operation::Write(copy),
            MemoryOp::Store { whole } => {
                let value = line_state.consumed_value.take().unwrap_or_default();
                Operation::Store { whole, value }
            }
        };
        Ok(())
    }

    fn acknowledge(&mut self, local: u8) -> Result<(), StepError> {
        let local_operation = &self.system.home.locals[usize::from(local)];
        let system = self.system;
        let line_state = self.line_state();
        if line_state.accepted.take() != Some(local) {
            let name = &local_operation.name;
            return Err(Violation::new(
                "one local operation at a time",
                format!("the home acknowledges {name}, which it has not accepted"),
            )
            .into());
        }
        let name = &local_operation.name;
        let permissions = line_state
            .remotes
            .iter()
            .map(|remote| system.permission(&remote.configuration));
        if permissions.max() > Some(local_operation.ensures) {
            let description = format!(
                "a remote still has a permission that it must not have when {name} is acknowledged"
            );
            return Err(Violation::new("single writer", description).into());
        }
        let memory = line_state.memory.clone();
        let locked = line_state.lock != Lock::Unlocked;
        if !self.is_current(&memory) {
            let description = format!("memory is stale when {name} is acknowledged");
            return Err(Violation::data_value(description).into());
        }
        if local_operation.locks {
            if locked {
                let description = "the home locks a line that is locked";
                return Err(Violation::new("lock", description).into());
            }
            self.line_state().lock = Lock::Held(match local_operation.ensures {
                Permission::None => Permission::Write,
                _ => Permission::Read,
            });
        }
        Ok(())
    }

    fn acknowledge_unlock(&mut self) {
        self.line_state().lock = Lock::Unlocked;
    }
}

//! Checks and records of stores and atomic accesses: program order, atomicity, and performed stores.

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::{MessageId, Permission};

use crate::agent::{self, Violation};
use crate::data::Data;
use crate::state::network::{InFlightMessage, Payload};
use crate::state::{StepError, System, SystemState};
use crate::stores::{self, AtomicRead, Ticket};

impl<D: Data> SystemState<D> {
    /// Checks that the remote's earlier stores to the line are performed, before it performs an access in its copy.
    pub(in crate::state) fn check_program_order(
        &self,
        line: u8,
        remote: u8,
        writes: bool,
    ) -> Result<(), StepError> {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        Err(match (remote_state.stores.posted, writes) {
            (0, _) => return Ok(()),
            (_, true) => stores::program_order(stores::STORE_REORDERED),
            (_, false) => stores::program_order(stores::OWN_STORE_MISSED),
        }
        .into())
    }

    /// Checks and records the begin of an access that is outstanding after the row.
    pub(super) fn record_begin(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        access: Access,
    ) -> Result<(), StepError> {
        let facts = &system.facts;
        let posted = self.lines[usize::from(line)].remotes[usize::from(remote)]
            .stores
            .posted;
        let to_remote =
            |flight: &&InFlightMessage<D>| (flight.line, flight.to) == (line, Some(remote));
        let flights = || self.network.flights().filter(to_remote);
        if access.needs() == Permission::Read {
            let response_messages = facts.answers(access);
            let mut responses =
                flights().filter(|flight| response_messages.contains(&flight.message));
            let is_stale = |flight: &InFlightMessage<D>| matches!(&flight.carried, Payload::Line(copy) if !self.data.is_current(line, copy));
            if responses.any(is_stale) {
                return Err(Violation::data_value(agent::STALE_RESPONSE_IN_FLIGHT).into());
            }
            if posted > 0 && flights().any(|flight| response_messages.contains(&flight.message)) {
                return Err(stores::program_order(stores::OWN_STORE_MISSED).into());
            }
        }
        let has_atomic_response = access == Access::Atomic
            && facts.atomics()
            && flights().any(|flight| facts.answers_atomic[flight.message.index()]);
        if has_atomic_response {
            self.line(line).remotes[usize::from(remote)].stores.read = AtomicRead::Last;
        }
        Ok(())
    }

    /// Checks and records that a copy of a line is sent to a remote that may complete an access with it.
    pub(super) fn check_response(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        (message, copy): (MessageId, &D::Copy),
    ) -> Result<(), StepError> {
        let facts = &system.facts;
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        if facts.is_single_use[message.index()] && remote_state.stores.posted > 0 {
            return Err(stores::program_order(stores::OWN_STORE_MISSED).into());
        }
        let atomic = facts.answers_atomic[message.index()]
            && facts.atomic_in[usize::from(remote_state.configuration.state)];
        if atomic {
            if remote_state.stores.performed {
                return Err(stores::atomicity(stores::ATOMIC_READS_OWN_STORE).into());
            }
            if facts.coherent && !self.data.is_current(line, copy) {
                return Err(stores::atomicity(stores::ATOMIC_READS_STALE_COPY).into());
            }
            self.line(line).remotes[usize::from(remote)].stores.read = AtomicRead::Last;
        }
        Ok(())
    }

    /// Checks and records that the home performs a store of a remote.
    pub(super) fn record_performed_store(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        ticket: Ticket,
    ) -> Result<(), StepError> {
        let facts = &system.facts;
        if ticket.is_posted() {
            if !facts.line_order {
                return Ok(());
            }
            if ticket != Ticket::POSTED {
                return Err(stores::program_order(stores::STORE_REORDERED).into());
            }
            let stores = &mut self.line(line).remotes[usize::from(remote)].stores;
            stores.posted -= 1;
            self.change_tickets(line, remote, |ticket| match ticket > Ticket::POSTED {
                true => Ticket(ticket.0 - 1),
                false => ticket,
            });
            return Ok(());
        }
        if ticket == Ticket::VOID {
            return Err(Violation::new(agent::stores(facts), stores::PERFORMED_TWICE).into());
        }
        let remote_state = &mut self.line(line).remotes[usize::from(remote)];
        if remote_state.stores.posted > 0 {
            return Err(stores::program_order(stores::STORE_REORDERED).into());
        }
        if remote_state.stores.read == AtomicRead::Outdated {
            return Err(stores::atomicity(stores::ATOMIC_INTERRUPTED).into());
        }
        remote_state.stores.read = AtomicRead::None;
        remote_state.stores.performed = true;
        self.void_outstanding(line, remote);
        Ok(())
    }

    /// Voids all messages of the store in progress.
    pub(super) fn void_outstanding(&mut self, line: u8, remote: u8) {
        self.change_tickets(line, remote, |ticket| match ticket {
            Ticket::AWAITED => Ticket::VOID,
            other => other,
        });
    }

    /// Changes the tickets of all stores of a remote to a line, in messages and at the home.
    fn change_tickets(&mut self, line: u8, remote: u8, change: impl Fn(Ticket) -> Ticket) {
        self.network.change_tickets(line, remote, &change);
        let deferred = self.lines[usize::from(line)].deferred_store.as_ref();
        let ticket = deferred
            .filter(|deferred| deferred.from == remote)
            .map(|deferred| deferred.ticket);
        if ticket.is_some_and(|ticket| change(ticket) != ticket) {
            if let Some(deferred) = &mut self.line(line).deferred_store {
                deferred.ticket = change(deferred.ticket);
            }
        }
    }
}

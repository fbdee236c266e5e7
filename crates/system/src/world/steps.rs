//! Possible steps of a state, and their successors.

mod contexts;

use cohkit_protocol::controller::{Access, Controller, Effect, Event, Statement};
use cohkit_protocol::execute::{Act, Configuration, Outcome, Receiver, RowError, Trigger};
use cohkit_protocol::protocol::{MessageId, Permission, StateId};
use cohkit_protocol::rows::{event_words, fault_words};

use contexts::{ConsumedStore, WorldHomeContext, WorldRemoteContext};

use super::network::{order_of, Arrival, Endpoint, InFlightMessage, Order, Payload};
use super::{DeferredStore, Line, Lock, Operation, StepError, System, World};
use crate::agent::{
    self, read_under_lock, store_under_lock, Bytes, HomeContext, HomeInput, MemoryOp,
    RemoteContext, Sending, Violation,
};
use crate::data::{Data, Extent};
use crate::plan::{hits, write_hits};
use crate::stores::{self, AtomicRead, StoreSend, Ticket};

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A remote starts an access: line, remote, access.
    Access(u8, u8, Access),
    /// A store that needs no row is performed in a remote's copy: line, remote.
    Hit(u8, u8),
    /// A message arrives.
    Arrives(Arrival),
    /// A message arrives, and its row chooses a member of a set: the one with this index, in ascending order from 0.
    /// Index 0 is that of [`Step::Arrives`].
    Chooses(Arrival, u8),
    /// The first message of an order becomes the head of the input queue of its network, and stalls there.
    Blocks(Order),
    /// Memory performs the requested operation.
    Memory(u8),
    /// The home consumes the data of a memory read: line, and the index of the alternative event that follows.
    Read(u8, u8),
    /// The home consumes the completion of a memory write.
    Written(u8),
    /// The device requests a local operation: line, operation.
    Asks(u8, u8),
    /// The home consumes the requested local operation.
    Local(u8),
    /// The home consumes an unlock.
    Unlock(u8),
    /// The device writes a line that it has locked.
    Writes(u8),
    /// The backing permission rises to this.
    Lends(u8, Permission),
    /// The backing permission falls to this.
    TakesBack(u8, Permission),
    /// Others write a line without backing permission.
    OthersWrite(u8),
}

impl Step {
    /// True if progress must not depend on the step.
    pub fn spontaneous(self) -> bool {
        matches!(
            self,
            Step::Access(..)
                | Step::Hit(..)
                | Step::Asks(..)
                | Step::Writes(_)
                | Step::TakesBack(..)
                | Step::OthersWrite(_)
        )
    }
}

/// A completed access of a remote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompletedAccess<D: Data> {
    /// The line.
    pub line: u8,
    /// The remote.
    pub remote: u8,
    /// The copy before the access: the value of a read, and the old value of a write. `None` if the home has performed
    /// the access, or it has no value.
    pub old_copy: Option<D::Copy>,
}

/// The trigger of an event that is no message.
fn trigger(event: Event, remote: Option<u8>, home: u16) -> Trigger<'static> {
    Trigger {
        home,
        event,
        sender: None,
        executing_remote: remote.map(u16::from),
        fields: &[],
    }
}

/// The agent whose row executes.
#[derive(Clone, Copy)]
enum RowOwner {
    Remote(u8),
    Home,
}

impl RowOwner {
    fn name_and_controller<'s>(self, system: &'s System) -> (&'s str, &'s Controller) {
        match self {
            RowOwner::Remote(number) => {
                let (kind, _) = system.of_each.kind(number.into());
                let name = &system.protocol.kinds[kind.index()].name;
                (name, &system.protocol.remote)
            }
            RowOwner::Home => (&system.home.name, system.home),
        }
    }

    /// The controller has no row for the event.
    fn unexpected(self, system: &System, event: Event) -> StepError {
        let (name, controller) = self.name_and_controller(system);
        let event = event_words(system.protocol, controller, event);
        let description = format!("{name} has no rule for {event}");
        StepError::Violated(Violation::new("no unexpected message", description))
    }

    /// The remote's number, or `None` for the home.
    fn number(self) -> Option<u8> {
        match self {
            RowOwner::Remote(number) => Some(number),
            RowOwner::Home => None,
        }
    }

    /// The row cannot be executed.
    fn row_fault(self, system: &System, interrupted: &RowError) -> StepError {
        let (name, controller) = self.name_and_controller(system);
        let messages = &system.protocol.messages;
        let description = fault_words(name, messages, controller, &interrupted.fault);
        StepError::Violated(Violation::new("no unexpected message", description))
    }
}

impl<D: Data> World<D> {
    /// Candidate steps. Some of them may turn out to be blocked.
    pub fn steps(&self, system: &System) -> Vec<Step> {
        let mut steps = Vec::new();
        for line in 0..system.lines {
            for remote in 0..system.remotes {
                // Accesses about no line begin once.
                let accesses = Access::ALL.into_iter().map(|(access, _)| access);
                let accesses = accesses.filter(|&access| access.about_line() || line == 0);
                steps.extend(accesses.map(|access| Step::Access(line, remote, access)));
                steps.push(Step::Hit(line, remote));
            }
            self.push_home_steps(system, line, &mut steps);
        }
        self.push_arrivals(system, &mut steps);
        steps
    }

    /// Adds the arrivals of messages, and the stalls at the head of input queues.
    fn push_arrivals(&self, system: &System, steps: &mut Vec<Step>) {
        for arrival in self.network.arrivals(system.protocol) {
            steps.push(Step::Arrives(arrival));
            let may_choose =
                |flight: &InFlightMessage<D>| system.chooses[usize::from(flight.to.is_none())];
            if self.network.at(arrival).is_some_and(may_choose) {
                let choices = 1..system.remotes;
                steps.extend(choices.map(|choice| Step::Chooses(arrival, choice)));
            }
        }
        steps.extend(self.network.may_block(system.protocol).map(Step::Blocks));
    }

    /// Like [`World::steps`], without the accesses of remotes.
    pub fn steps_without_remotes(&self, system: &System) -> Vec<Step> {
        let mut steps = Vec::new();
        (0..system.lines).for_each(|line| self.push_home_steps(system, line, &mut steps));
        self.push_arrivals(system, &mut steps);
        steps
    }

    fn push_home_steps(&self, system: &System, number: u8, steps: &mut Vec<Step>) {
        let line = &self.lines[usize::from(number)];
        match line.operation {
            Operation::Idle => {}
            Operation::Sampled(_) => {
                let choices = 0..system.facts.choices;
                steps.extend(choices.map(|choice| Step::Read(number, choice)));
            }
            Operation::Done => steps.push(Step::Written(number)),
            _ => steps.push(Step::Memory(number)),
        }
        let accepts_request =
            line.requested.is_none() && (system.overlaps_requests || line.accepted.is_none());
        match line.requested {
            None if accepts_request => {
                let locals = 0..system.home.locals.len() as u8;
                let locals = locals.filter(|&local| self.may_request(system, number, local));
                steps.extend(locals.map(|local| Step::Asks(number, local)));
            }
            None => {}
            Some(_) => steps.push(Step::Local(number)),
        }
        if system.facts.locks {
            if line.lock != Lock::GivenBack {
                steps.push(Step::Unlock(number));
            }
            if line.lock == Lock::Held(Permission::Write) && system.backing_needs.is_none() {
                steps.push(Step::Writes(number));
            }
        }
        if system.backing_needs.is_some() {
            let (higher, lower) = self.next_backing_permissions(system, number);
            steps.extend(
                higher
                    .into_iter()
                    .map(|permission| Step::Lends(number, permission)),
            );
            steps.extend(
                lower
                    .into_iter()
                    .map(|permission| Step::TakesBack(number, permission)),
            );
            if line.backing_permission == Permission::None {
                steps.push(Step::OthersWrite(number));
            }
        }
    }

    /// Applies a step. Returns false if the step is blocked or a no-op; `self` is then unspecified.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    pub fn take(&mut self, system: &System, step: Step) -> Result<bool, StepError> {
        self.take_recording(system, step, &mut Vec::new())
    }

    /// Applies a step like [`World::take`], and appends the accesses that it completes to `completed`.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    pub fn take_recording(
        &mut self,
        system: &System,
        step: Step,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let count_before = completed.len();
        let result = blocked_without_room(self.apply_step(system, step, completed));
        if result == Ok(false) {
            completed.truncate(count_before);
        }
        result
    }

    fn apply_step(
        &mut self,
        system: &System,
        step: Step,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        match step {
            Step::Access(line, remote, access) => {
                let value = D::Write::default();
                self.access(system, line, remote, access, value, completed)
            }
            Step::Hit(line, remote) => self.hit(system, line, remote),
            Step::Arrives(arrival) => self.receive(system, arrival, 0, completed),
            Step::Chooses(arrival, choice) => {
                self.receive(system, arrival, choice.into(), completed)
            }
            Step::Blocks(order) => {
                let arrival = Arrival::Ordered(order);
                let mut successor = self.clone();
                // A message that can be consumed, or violates a property, stalls nothing.
                if blocked_without_room(successor.receive(system, arrival, 0, &mut Vec::new()))
                    != Ok(false)
                {
                    return Ok(false);
                }
                self.network.block(order);
                Ok(true)
            }
            Step::Memory(line) => self.perform_memory_operation(system, line),
            Step::Read(line, choice) => self.consume_read_data(system, line, choice),
            Step::Written(line) => {
                self.line(line).operation = Operation::Idle;
                self.apply_required_event(system, line, Event::MemoryDone, None)
            }
            Step::Asks(line, local) => {
                self.line(line).requested = Some(local);
                Ok(true)
            }
            Step::Local(line) => self.consume_local_operation(system, line),
            Step::Unlock(line) => self.unlock(system, line),
            Step::Writes(line) => Ok(self.device_writes(system, line)),
            Step::Lends(line, permission) | Step::TakesBack(line, permission) => {
                self.set_backing_permission(system, line, permission);
                Ok(true)
            }
            Step::OthersWrite(line) => Ok(self.record_external_write(system, line)),
        }
    }

    pub(super) fn line(&mut self, line: u8) -> &mut Line<D> {
        &mut self.lines[usize::from(line)]
    }

    /// Begins an access of a remote, or performs it at once. Returns false if the access must be tried again; `self` is
    /// then unspecified. The caller begins no other access of the remote to the line before this one has completed.
    ///
    /// # Errors
    /// The access violates a property or exceeds a capacity.
    pub fn begin(
        &mut self,
        system: &System,
        (line, remote): (u8, u8),
        access: Access,
        value: D::Write,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let permission = system.permission(&remote_state.configuration);
        let state = remote_state.configuration.state;
        let row = system.protocol.remote.rules.iter().any(|rule| {
            rule.event == Event::Access(access)
                && matches!(rule.effect, Effect::Take { .. })
                && rule.state.0 == state
        });
        if row || !access.is_performed_in_place() || permission < access.needs() {
            return blocked_without_room(
                self.access(system, line, remote, access, value, completed),
            );
        }
        let old_copy = remote_state.copy.clone();
        if access.writes() {
            let copy = self.write(system, line, &old_copy, Extent::Part, &value);
            let remote_state = &mut self.line(line).remotes[usize::from(remote)];
            (remote_state.copy, remote_state.write_value) = (copy, None);
        }
        let old_copy = Some(old_copy);
        completed.push(CompletedAccess {
            line,
            remote,
            old_copy,
        });
        Ok(true)
    }

    /// Performs a write in a copy; all other copies become stale.
    pub(super) fn write(
        &mut self,
        system: &System,
        line: u8,
        copy: &D::Copy,
        extent: Extent,
        value: &D::Write,
    ) -> D::Copy {
        let new_copy = self.data.write(line, copy, extent, value);
        self.mark_copies_stale(system, line, true);
        new_copy
    }

    fn access(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        access: Access,
        value: D::Write,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let mut next = remote_state.configuration.clone();
        let trigger = trigger(Event::Access(access), Some(remote), system.home_of(line));
        let mut tables = &system.protocol.remote;
        let owner = RowOwner::Remote(remote);
        let outcome = system
            .remote_machine()
            .step(&mut next, trigger, &mut tables);
        let outcome = outcome.map_err(|i| self.interrupted(system, line, owner, &i))?;
        let Outcome::Taken { rule, acts } = outcome else {
            if access == Access::Load
                && hits(&system.protocol.remote, self.state(line, remote), access)
            {
                self.check_program_order(line, remote, access.writes())?;
            }
            return Ok(false);
        };
        self.check_room(system, line, owner, &acts)?;
        let plan = &system.plans[0][rule];
        let sends = |message| {
            let is_match = |act: &Act| matches!(act, Act::Send { message: m, to: Receiver::Home, .. } if *m == message);
            acts.iter().any(is_match)
        };
        let in_flight = |message| {
            let is_match = |flight: &&InFlightMessage<D>| {
                (flight.line, flight.message) == (line, message)
                    && (flight.from, flight.to) == (Some(remote), None)
            };
            self.network.flights().filter(is_match).count()
        };
        if !system.protocol.bounds.can_start_access(sends, in_flight) {
            return Ok(false);
        }
        if plan.reads || plan.performs {
            self.check_program_order(line, remote, access.writes())?;
        }
        // A hit changes the state only if it makes another copy stale.
        let keeps_values = D::KEEPS_VALUES;
        if plan.idle && !plan.moves && !keeps_values {
            let changes = plan.performs && self.has_other_current_copy(system, line, Some(remote));
            if !changes {
                return Ok(false);
            }
        }
        if let Some(begun) = plan.opens {
            self.record_begin(system, line, remote, begun)?;
        }
        let extent = match access {
            Access::WriteLine => Extent::Whole,
            _ => Extent::Part,
        };
        let (permission_before, permission_after) = (plan.before.permission, plan.after.permission);
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let old_copy = remote_state.copy.clone();
        let changed = remote_state.configuration != next || !acts.is_empty();
        // No response will complete a posted write.
        let is_posted = plan.posts;
        if D::KEEPS_VALUES && access.writes() {
            self.line(line).remotes[usize::from(remote)].write_value = Some(value);
        }
        self.apply_row(
            system,
            line,
            remote,
            (rule, acts, next),
            None,
            extent,
            completed,
        )?;
        let reads = !access.writes() && access.needs() == Permission::Read;
        if reads && permission_before.min(permission_after) >= Permission::Read {
            let old_copy = Some(old_copy);
            completed.push(CompletedAccess {
                line,
                remote,
                old_copy,
            });
        }
        if is_posted && completed.is_empty() {
            self.line(line).remotes[usize::from(remote)].write_value = None;
            let old_copy = None;
            completed.push(CompletedAccess {
                line,
                remote,
                old_copy,
            });
        }
        let has_retry =
            || system.protocol.remote.rules[rule].has_statement(&|s| *s == Statement::Retry);
        if !access.about_line() && !has_retry() {
            let old_copy = None;
            completed.push(CompletedAccess {
                line,
                remote,
                old_copy,
            });
        }
        // A row with `retry` alone changes nothing.
        Ok(changed || !completed.is_empty() || !keeps_values)
    }

    /// State of a remote's line.
    fn state(&self, line: u8, remote: u8) -> usize {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        usize::from(remote_state.configuration.state)
    }

    /// Performs a store or atomic that needs no row, if it makes another copy stale.
    fn hit(&mut self, system: &System, line: u8, remote: u8) -> Result<bool, StepError> {
        if !write_hits(&system.protocol.remote, self.state(line, remote)) {
            return Ok(false);
        }
        self.check_program_order(line, remote, true)?;
        if !self.has_other_current_copy(system, line, Some(remote)) {
            return Ok(false);
        }
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let copy = remote_state.copy.clone();
        let copy = self.write(system, line, &copy, Extent::Part, &D::Write::default());
        self.line(line).remotes[usize::from(remote)].copy = copy;
        Ok(true)
    }

    /// Checks that the remote's earlier stores to the line are performed, before it performs an access in its copy.
    pub(super) fn check_program_order(
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
    fn record_begin(
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
            let is_stale = |flight: &InFlightMessage<D>| matches!(&flight.carried, Payload::Line(copy) if !self.data.current(line, copy));
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
    fn check_response(
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
            if facts.coherent && !self.data.current(line, copy) {
                return Err(stores::atomicity(stores::ATOMIC_READS_STALE_COPY).into());
            }
            self.line(line).remotes[usize::from(remote)].stores.read = AtomicRead::Last;
        }
        Ok(())
    }

    /// Checks and records that the home performs a store of a remote.
    fn record_performed_store(
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
    fn void_outstanding(&mut self, line: u8, remote: u8) {
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
            .map(|a| a.ticket);
        if ticket.is_some_and(|ticket| change(ticket) != ticket) {
            if let Some(deferred) = &mut self.line(line).deferred_store {
                deferred.ticket = change(deferred.ticket);
            }
        }
    }

    fn receive(
        &mut self,
        system: &System,
        arrival: Arrival,
        choice: u16,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let Some(flight) = self.network.at(arrival).cloned() else {
            return Ok(false);
        };
        if flight.to.is_none() && self.waits_for_memory(system, flight.line, flight.message) {
            return Ok(false);
        }
        self.network.take(arrival);
        let event = Event::Message(flight.message);
        let trigger = Trigger {
            home: system.home_of(flight.line),
            event,
            sender: flight.from.map(u16::from),
            executing_remote: flight.to.map(u16::from),
            fields: &flight.fields,
        };
        let carried_copy = match &flight.carried {
            Payload::Line(copy) => Some(copy),
            _ => None,
        };
        let Some(remote) = flight.to else {
            if let (true, Payload::Write(value, _)) = (D::KEEPS_VALUES, &flight.carried) {
                self.line(flight.line).consumed_value = Some(value.clone());
            }
            let input = HomeInput {
                message: Some(flight.message),
                sender: flight.from,
                brought: carried_copy,
            };
            let ticket = match flight.carried {
                Payload::Write(_, ticket) => Some(ticket),
                _ => None,
            };
            return match self.apply_home_event_with(
                system,
                flight.line,
                trigger,
                input,
                (ticket, choice),
            )? {
                Answer::Taken => Ok(true),
                Answer::Waits => Ok(false),
                Answer::Refused | Answer::None => Err(RowOwner::Home.unexpected(system, event)),
            };
        };
        let remote_state = &self.lines[usize::from(flight.line)].remotes[usize::from(remote)];
        let mut next = remote_state.configuration.clone();
        let mut tables = &system.protocol.remote;
        let owner = RowOwner::Remote(remote);
        let machine = system.remote_machine();
        let outcome = machine.step_choosing(&mut next, trigger, &mut tables, choice);
        match outcome.map_err(|i| self.interrupted(system, flight.line, owner, &i))? {
            Outcome::Taken { rule, acts } => {
                self.check_room(system, flight.line, owner, &acts)?;
                if matches!(flight.carried, Payload::Write(_, ticket) if ticket.is_posted()) {
                    return Err(lost_store(system));
                }
                let row = (rule, acts, next);
                // The part of the line is fixed when the store begins; here one part represents all.
                let (line, extent) = (flight.line, Extent::Part);
                self.apply_row(system, line, remote, row, carried_copy, extent, completed)?;
                Ok(true)
            }
            Outcome::Stall => Ok(false),
            Outcome::Refuse | Outcome::Unexpected => {
                Err(RowOwner::Remote(remote).unexpected(system, event))
            }
        }
    }

    /// Applies a row of a remote.
    #[allow(clippy::too_many_arguments)]
    fn apply_row(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        (rule, acts, next): (usize, Vec<Act>, Configuration),
        carried_copy: Option<&D::Copy>,
        extent: Extent,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<(), StepError> {
        let plan = &system.plans[0][rule];
        let old_copy = self.lines[usize::from(line)].remotes[usize::from(remote)]
            .copy
            .clone();
        let mut context = WorldRemoteContext {
            world: self,
            system,
            line,
            remote,
            extent,
            send: StoreSend::first(plan.posts),
            in_place: plan.performs,
            carries_copy: carried_copy.is_some(),
            completed,
            bulk_transitions: Vec::new(),
        };
        let (protocol, facts) = (system.protocol, &system.facts);
        let copy = agent::remote(
            protocol,
            facts,
            plan,
            acts,
            &old_copy,
            carried_copy,
            &mut context,
        )?;
        let bulk_transitions = context.bulk_transitions;
        if plan.gives_up {
            let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
            if remote_state.stores.performed {
                let description = stores::ABANDONED_AFTER_PERFORMED;
                return Err(Violation::new(agent::stores(facts), description).into());
            }
            self.void_outstanding(line, remote);
        }
        let remote_state = &mut self.line(line).remotes[usize::from(remote)];
        if facts.atomics() {
            match (facts.atomic_in[usize::from(next.state)], carried_copy) {
                (false, _) => {
                    (remote_state.received_copy, remote_state.stores.read) =
                        (None, AtomicRead::None)
                }
                (true, Some(copy)) if D::KEEPS_VALUES => {
                    remote_state.received_copy = Some(copy.clone())
                }
                (true, _) => {}
            }
        }
        (remote_state.configuration, remote_state.copy) = (next, copy);
        self.copy_registers(system, line, remote);
        for (from, to) in bulk_transitions {
            self.bulk_transition(system, remote, from, to);
        }
        Ok(())
    }

    /// Moves all lines of a remote in state `from` to state `to`, and drops their copies if `to` holds none.
    fn bulk_transition(&mut self, system: &System, remote: u8, from: StateId, to: StateId) {
        let holds_line = system.protocol.remote.states[to.index()].holds_line;
        for line in &mut self.lines {
            if line.remotes[usize::from(remote)].configuration.state == from.0 {
                let remote_state = &mut line.remotes[usize::from(remote)];
                remote_state.configuration.state = to.0;
                if !holds_line {
                    remote_state.copy = D::Copy::default();
                }
            }
        }
    }

    /// Copies the registers of a remote from one line to all others: the remote has one value for all lines.
    fn copy_registers(&mut self, system: &System, line: u8, remote: u8) {
        let registers = system.remote_machine().registers();
        if registers.is_empty() {
            return;
        }
        let remote = usize::from(remote);
        let values = &self.line(line).remotes[remote].configuration.slots[registers.clone()];
        let values = values.to_vec();
        for line in &mut self.lines {
            if line.remotes[remote].configuration.slots[registers.clone()] != values {
                line.remotes[remote].configuration.slots[registers.clone()]
                    .copy_from_slice(&values);
            }
        }
    }

    /// Copies the registers of a home from one line to all others of the same home.
    fn copy_home_registers(&mut self, system: &System, line: u8) {
        let registers = system.home_machine().registers();
        if registers.is_empty() {
            return;
        }
        let values = self.line(line).home.slots[registers.clone()].to_vec();
        let home = system.home_of(line);
        let lines = (0..).zip(&mut self.lines);
        for (_, line) in lines.filter(|(number, _)| system.home_of(*number) == home) {
            if line.home.slots[registers.clone()] != values {
                line.home.slots[registers.clone()].copy_from_slice(&values);
            }
        }
    }

    /// The result of an interrupted row: blocked if one of its messages finds no room in a network, otherwise a
    /// violation.
    fn interrupted(
        &self,
        system: &System,
        row_line: u8,
        owner: RowOwner,
        error: &RowError,
    ) -> StepError {
        let acts = error.acts.iter().chain(&error.later);
        match self.check_room(system, row_line, owner, acts) {
            Ok(()) => owner.row_fault(system, error),
            Err(no_room) => no_room,
        }
    }

    /// Returns an error if one of the messages that a row sends finds no room in a network. A row waits for all of its
    /// room before it does anything.
    fn check_room<'a>(
        &self,
        system: &System,
        row_line: u8,
        owner: RowOwner,
        acts: impl IntoIterator<Item = &'a Act>,
    ) -> Result<(), StepError> {
        let (protocol, sender) = (system.protocol, owner.number());
        let mut networks = protocol.networks.iter();
        if networks.all(|network| network.capacity.is_none()) {
            return Ok(());
        }
        let mut network = self.network.clone();
        for act in acts {
            let Act::Send { message, to, .. } = *act else {
                continue;
            };
            let Some((to, line)) = receiver_and_line(system, row_line, sender, message, to) else {
                continue;
            };
            let home = sending_home(system, row_line, (sender, to), message);
            let order = order_of(protocol, message, (sender, to), (line, home));
            if order.is_some_and(|order| !network.has_room(protocol, order)) {
                return Err(no_room());
            }
            network.put(
                protocol,
                InFlightMessage {
                    line,
                    message,
                    from: sender,
                    to,
                    home,
                    fields: Vec::new(),
                    early: false,
                    first: false,
                    carried: Payload::Nothing,
                },
            );
        }
        Ok(())
    }

    /// Sends a message, if there is room for it.
    fn send(
        &mut self,
        system: &System,
        line: u8,
        from: Option<u8>,
        (value, ticket): (D::Write, Ticket),
        sending: Sending<D::Copy>,
    ) -> Result<(), StepError> {
        let Sending {
            message,
            to,
            fields,
            bytes,
        } = sending;
        let protocol = system.protocol;
        let row_line = line;
        let Some((to, line)) = receiver_and_line(system, line, from, message, to) else {
            let description = "a message to a home that does not exist";
            return Err(Violation::new("no unexpected message", description).into());
        };
        let home = sending_home(system, row_line, (from, to), message);
        if let (Bytes::Line(copy), Some(to)) = (&bytes, to) {
            self.check_response(system, line, to, (message, copy))?;
        }
        let flight = InFlightMessage {
            line,
            message,
            from,
            to,
            home,
            fields,
            early: false,
            first: false,
            carried: match bytes {
                Bytes::None => Payload::Nothing,
                Bytes::Line(copy) => Payload::Line(copy),
                Bytes::Write => Payload::Write(value, ticket),
            },
        };
        match order_of(protocol, message, (from, to), (line, home)) {
            Some(order) if !self.network.has_room(protocol, order) => return Err(no_room()),
            Some(order) => {
                let lines = match protocol.per_line[order.0] {
                    true => 1,
                    false => system.lines,
                };
                let capacity = usize::from(system.room) * usize::from(lines);
                if self.network.queued(order) >= capacity {
                    return Err(StepError::Exceeded(format!(
                        "more than {} in one ordered channel",
                        cohkit_base::words::counted(capacity as u64, "message")
                    )));
                }
            }
            None => {
                let (capacity, bound_name) = system.capacity_of(message);
                if self.network.alike(&flight) >= usize::from(capacity) {
                    let name = &protocol.message(message).name;
                    let description = format!("more than {capacity} {name} in flight");
                    return Err(match bound_name {
                        Some(bound) => Violation::new(bound, description).into(),
                        None => StepError::Exceeded(description),
                    });
                }
            }
        }
        self.network.put(protocol, flight);
        Ok(())
    }

    /// Performs the requested memory operation.
    fn perform_memory_operation(&mut self, system: &System, line: u8) -> Result<bool, StepError> {
        let line_state = self.line(line);
        let lock = line_state.lock;
        match line_state.operation.clone() {
            Operation::Read => {
                let memory = line_state.memory.clone();
                if lock == Lock::Held(Permission::Write) {
                    return Err(read_under_lock().into());
                }
                if !self.data.current(line, &memory) {
                    return Err(Violation::data_value("memory is read while it is stale").into());
                }
                self.line(line).operation = Operation::Sampled(memory);
            }
            Operation::Write(copy) => {
                self.may_write(line)?;
                let line_state = self.line(line);
                line_state.memory = copy;
                line_state.operation = Operation::Done;
            }
            Operation::Store {
                whole: whole_line,
                value,
            } => {
                self.store_to_memory(system, line, whole_line, &value)?;
                self.line(line).operation = Operation::Done;
            }
            Operation::Idle | Operation::Sampled(_) | Operation::Done => return Ok(false),
        }
        Ok(true)
    }

    /// Performs a remote's write in memory.
    fn store_to_memory(
        &mut self,
        system: &System,
        line: u8,
        whole_line: bool,
        value: &D::Write,
    ) -> Result<(), StepError> {
        self.may_write(line)?;
        let line_state = self.line(line);
        if matches!(line_state.lock, Lock::Held(_)) {
            return Err(store_under_lock().into());
        }
        let memory = line_state.memory.clone();
        let extent = match whole_line {
            true => Extent::Whole,
            false => Extent::Part,
        };
        let new_memory = self.data.write(line, &memory, extent, value);
        self.mark_copies_stale(system, line, whole_line);
        self.line(line).memory = new_memory;
        Ok(())
    }

    fn consume_read_data(
        &mut self,
        system: &System,
        line: u8,
        choice: u8,
    ) -> Result<bool, StepError> {
        let operation = std::mem::replace(&mut self.line(line).operation, Operation::Idle);
        let Operation::Sampled(copy) = operation else {
            return Ok(false);
        };
        let event = Event::MemoryData(choice);
        if choice == 0 {
            return self.apply_required_event(system, line, event, Some(&copy));
        }
        let input = HomeInput {
            message: None,
            sender: None,
            brought: Some(&copy),
        };
        let answer = self.apply_home_event(
            system,
            line,
            trigger(event, None, system.home_of(line)),
            input,
        )?;
        Ok(answer == Answer::Taken)
    }

    /// Applies an event that the home must handle.
    fn apply_required_event(
        &mut self,
        system: &System,
        line: u8,
        event: Event,
        copy: Option<&D::Copy>,
    ) -> Result<bool, StepError> {
        let input = HomeInput {
            message: None,
            sender: None,
            brought: copy,
        };
        match self.apply_home_event(
            system,
            line,
            trigger(event, None, system.home_of(line)),
            input,
        )? {
            Answer::Taken => Ok(true),
            Answer::Waits => Ok(false),
            Answer::Refused | Answer::None => Err(RowOwner::Home.unexpected(system, event)),
        }
    }

    fn consume_local_operation(&mut self, system: &System, line: u8) -> Result<bool, StepError> {
        let line_state = self.line(line);
        let Some(local) = line_state.requested.take() else {
            return Ok(false);
        };
        let busy = line_state.accepted.replace(local);
        let event = trigger(Event::Local(local), None, system.home_of(line));
        let answer = self.apply_home_event(system, line, event, empty_input())?;
        match (answer, busy) {
            (Answer::Taken, Some(_)) => Err(Violation::new(
                "one local operation at a time",
                "the home accepts a local operation while another one is in progress",
            )
            .into()),
            (Answer::Taken, None) => Ok(true),
            (Answer::Refused, _) => {
                self.line(line).accepted = busy;
                Ok(true)
            }
            (Answer::Waits | Answer::None, _) => Ok(false),
        }
    }

    fn unlock(&mut self, system: &System, line: u8) -> Result<bool, StepError> {
        let line_state = self.line(line);
        let was_locked = matches!(line_state.lock, Lock::Held(_));
        if was_locked {
            line_state.lock = Lock::GivenBack;
        }
        let answer = self.apply_home_event(
            system,
            line,
            trigger(Event::Unlock, None, system.home_of(line)),
            empty_input(),
        )?;
        let violation = |description: &str| Err(Violation::new("lock", description).into());
        match (answer, was_locked) {
            (Answer::Taken, true) => Ok(true),
            (Answer::Taken, false) => {
                violation("the home takes an unlock of a line that is not locked")
            }
            (Answer::Refused, true) => {
                violation("the home refuses an unlock of a line that is locked")
            }
            // A home that refuses an unlock of an unlocked line changes nothing.
            (Answer::Refused, false) | (Answer::Waits | Answer::None, _) => Ok(false),
        }
    }

    fn device_writes(&mut self, system: &System, line: u8) -> bool {
        if !self.has_other_current_copy(system, line, None) {
            return false;
        }
        let memory = self.lines[usize::from(line)].memory.clone();
        let memory = self.write(system, line, &memory, Extent::Part, &D::Write::default());
        self.line(line).memory = memory;
        true
    }

    /// Applies an event to the home.
    fn apply_home_event(
        &mut self,
        system: &System,
        line: u8,
        trigger: Trigger,
        input: HomeInput<D::Copy>,
    ) -> Result<Answer, StepError> {
        self.apply_home_event_with(system, line, trigger, input, (None, 0))
    }

    /// Like [`Self::apply_home_event`], with the ticket of the event's store, and the index of the member that a
    /// choosing row takes.
    fn apply_home_event_with(
        &mut self,
        system: &System,
        line: u8,
        trigger: Trigger,
        input: HomeInput<D::Copy>,
        (ticket, choice): (Option<Ticket>, u16),
    ) -> Result<Answer, StepError> {
        let mut next = self.lines[usize::from(line)].home.clone();
        let mut tables = system.home;
        let machine = system.home_machine();
        let outcome = machine.step_choosing(&mut next, trigger, &mut tables, choice);
        let acts = match outcome.map_err(|i| self.interrupted(system, line, RowOwner::Home, &i))? {
            Outcome::Taken { acts, .. } => {
                self.check_room(system, line, RowOwner::Home, &acts)?;
                acts
            }
            Outcome::Stall => return Ok(Answer::Waits),
            Outcome::Refuse => return Ok(Answer::Refused),
            Outcome::Unexpected => return Ok(Answer::None),
        };
        let mut context = WorldHomeContext {
            world: self,
            system,
            line,
            consumed_store: ticket.map(ConsumedStore::new),
            deferred: None,
        };
        agent::home(system.protocol, &system.facts, acts, input, &mut context)?;
        if context
            .consumed_store
            .is_some_and(|consumed_store| consumed_store.loses_store())
        {
            return Err(lost_store(system));
        }
        self.line(line).home = next;
        self.copy_home_registers(system, line);
        Ok(Answer::Taken)
    }
}

/// Returns the receiver of a message and its number in place of a line. For a message about no line this is the number
/// of the home that takes or sends it. `None` if there is no such home.
fn receiver_and_line(
    system: &System,
    line: u8,
    sender: Endpoint,
    message: MessageId,
    receiver: Receiver,
) -> Option<(Endpoint, u8)> {
    let about_line = system.protocol.message(message).about_line;
    Some(match receiver {
        Receiver::HomeAt(home) if home < system.protocol.homes => (None, home as u8),
        Receiver::HomeAt(_) => return None,
        Receiver::Home if !about_line => (None, system.home_of(line) as u8),
        Receiver::Home => (None, line),
        Receiver::Remote(receiver) if about_line => (Some(receiver as u8), line),
        Receiver::Remote(receiver) if sender.is_none() => {
            (Some(receiver as u8), system.home_of(line) as u8)
        }
        Receiver::Remote(receiver) => (Some(receiver as u8), 0),
    })
}

/// Returns the number of the sending home for an ordered message between homes; otherwise 0.
fn sending_home(
    system: &System,
    line: u8,
    endpoints: (Endpoint, Endpoint),
    message: MessageId,
) -> u8 {
    let channel = system.protocol.message(message).channel;
    match (endpoints, system.protocol.order_of(channel)) {
        ((None, None), Some(_)) => system.home_of(line) as u8,
        _ => 0,
    }
}

/// A message finds no room in a network. Within a step this is an excess without a description; no step returns it.
fn no_room() -> StepError {
    StepError::Exceeded(String::new())
}

/// Maps a lack of room in a network to a blocked step, like a message that its receiver stalls.
fn blocked_without_room(result: Result<bool, StepError>) -> Result<bool, StepError> {
    match result {
        Err(error) if error == no_room() => Ok(false),
        other => other,
    }
}

/// Reaction of a home to an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Taken,
    /// The event stalls.
    Waits,
    Refused,
    None,
}

/// Violation: a posted store is lost.
fn lost_store(system: &System) -> StepError {
    Violation::new(agent::stores(&system.facts), stores::POSTED_STORE_DROPPED).into()
}

/// Input of an event that is no message.
fn empty_input<'t, Copy>() -> HomeInput<'t, Copy> {
    HomeInput {
        message: None,
        sender: None,
        brought: None,
    }
}

impl System<'_> {
    /// The capacity for equal unordered messages of a type, and the property that a further message violates, if the
    /// protocol file declares a bound.
    fn capacity_of(&self, message: MessageId) -> (u16, Option<String>) {
        use cohkit_base::words::counted;
        let bounds = &self.protocol.bounds;
        let message_bound = bounds.per_message.iter().find(|(m, _)| *m == message);
        let name = &self.protocol.message(message).name;
        let limits = [
            message_bound.map(|(_, bound)| (bound.limit, format!("{} {name}", bound.limit))),
            (bounds.in_flight).map(|bound| (bound.limit, counted(bound.limit, "message"))),
        ];
        let declared_limits = limits.into_iter().flatten();
        match declared_limits.min_by_key(|(limit, _)| *limit) {
            Some((limit, description)) if limit <= self.room => (
                limit.max(1),
                Some(format!("more than {description} in flight")),
            ),
            _ => (self.room, None),
        }
    }
}

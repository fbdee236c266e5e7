//! The home: serial units that execute the protocol's home controller.
//!
//! Each line belongs to one unit. A unit handles one input at a time, responses before requests, and each occupies it
//! for a while. Up to one memory read, one memory write (or as many as the platform allows) and one coherence
//! transaction of the unit are in flight meanwhile. An input that would start a further one waits for that slot,
//! without occupying the unit. The input that arrived first gets the slot when both slot and unit are free. A request
//! that the controller stalls lets others pass, and is presented again when the state of its line has changed. Both
//! kinds of waiting are bounded: beyond the bound, channels of requests stop and all others continue.

mod clocked;
mod delayed;
mod row;
mod rows;
mod store;

use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::{Class, Permission};
use std::collections::VecDeque;

use super::application::Application;
use super::caches::Caches;

use super::device::Device;
use super::frontend::Frontend;
use super::program::{Act, Answer, ConfigurationId, Input, Transition};
use super::registers::Executor;
use crate::agents::device::Operation;
use crate::attribution::Step;
use crate::data::{Copy, Paged};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::levels::UpperLevel;
use crate::message::{Line, Message, Work, HOME};
use crate::platform;
use crate::simulation::observer::Fact;
use crate::simulation::order_tracker::is_earlier;
use crate::simulation::{Context, Event as KernelEvent, Interconnect, MainMemory, Tables};
use crate::statistics::Stall;
pub(crate) use clocked::Clocked;
use cohkit_system::hierarchy;
pub(crate) use delayed::DelayedMessages;
pub(crate) use row::TakenInput;
use store::Store;

/// A limited resource of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    /// A memory write. Responses wait for it, so it comes first.
    Write,
    /// The coherence transaction.
    Forward,
    /// A memory read.
    Read,
}

impl Slot {
    /// Step of the latency breakdown in which an input waits for the slot.
    fn step(self) -> Step {
        match self {
            Slot::Write => Step::WriteSlot,
            Slot::Forward => Step::ForwardSlot,
            Slot::Read => Step::ReadSlot,
        }
    }
}

/// All slots, in descending order of priority.
const SLOTS: [Slot; 3] = [Slot::Write, Slot::Forward, Slot::Read];

/// A directory controller unit.
#[derive(Default)]
pub struct Unit {
    /// Time from which the unit is free, in picoseconds.
    free_at: Time,
    /// Total time for which the unit has been occupied, in picoseconds.
    pub(crate) occupied: Time,
    /// True if an event is scheduled at which the unit examines its queues.
    is_scheduled: bool,
    /// Inputs that are handled before requests: responses, completions of memory, and unlocks, in order.
    responses: VecDeque<Work>,
    /// Requests and local operations, in order.
    requests: VecDeque<Work>,
    /// True if a request found no room to wait, so that it stops the bounded requests behind it.
    is_request_blocked: bool,
    /// Inputs that the controller stalls until their line changes, in order of arrival.
    stalled: Vec<(Work, Line)>,
    /// Inputs that wait for each slot, in order of arrival.
    waiting_for_slot: [VecDeque<(Work, Line)>; 3],
    /// Bytes of writes that the home has accepted and not performed.
    deferred_stores: Vec<Store>,
    /// Number of memory reads in flight.
    reads_in_flight: u32,
    /// Maximum number of memory reads in flight.
    max_reads: u32,
    /// Number of memory writes in flight.
    writes_in_flight: u32,
    /// Maximum number of memory writes in flight.
    max_writes: u32,
    /// Number of forwards without an answer. Without input queues, all are about one line.
    unanswered_forwards: u32,
    /// Line of the last forward; meaningless if no forward is unanswered.
    forwarded_line: Line,
}

impl Unit {
    /// Creates an idle unit.
    pub fn new(home: &platform::Home) -> Unit {
        Unit {
            max_reads: home
                .max_reads
                .as_ref()
                .map_or(1, |reads| reads.value as u32),
            max_writes: (home.max_writes.as_ref()).map_or(1, |writes| writes.value as u32),
            ..Unit::default()
        }
    }

    /// True if the unit may start another operation that needs this slot.
    fn is_free(&self, slot: Slot) -> bool {
        match slot {
            Slot::Write => self.writes_in_flight < self.max_writes,
            Slot::Forward => self.unanswered_forwards == 0,
            Slot::Read => self.reads_in_flight < self.max_reads,
        }
    }

    /// Returns a free slot for which an input waits.
    #[inline]
    fn ready_slot(&self) -> Option<Slot> {
        let mut slots = SLOTS.into_iter();
        slots.find(|&slot| self.is_free(slot) && !self.waiting_for_slot[slot as usize].is_empty())
    }

    /// True if an input that concerns a line waits outside the queues.
    #[inline(always)]
    fn has_waiting_input(&self, line: Line) -> bool {
        let concerns_line = |&(_, input_line): &(Work, Line)| input_line == line;
        let mut slots = self.waiting_for_slot.iter();
        self.stalled.iter().any(concerns_line)
            || slots.any(|waiting| !waiting.is_empty() && waiting.iter().any(concerns_line))
    }

    /// Iterates over all inputs that wait outside the queues.
    fn waiting_inputs(&self) -> impl Iterator<Item = &(Work, Line)> {
        self.stalled
            .iter()
            .chain(self.waiting_for_slot.iter().flatten())
    }
}

/// The home: its controller, and the units or the clocked home that execute it.
pub(crate) struct Home {
    /// Controller and registers of the homes.
    pub executor: Executor,
    /// Units of all homes: line L belongs to unit L mod their number, which is a power of two.
    pub units: Vec<Unit>,
    /// Clocked home in place of the units, if there is one.
    pub clocked: Option<Box<Clocked>>,
    /// Configuration of each line.
    pub directory: Paged<ConfigurationId>,
    /// View of the cache above, if this is the lower of two levels.
    pub upper_level: Option<Box<UpperLevel>>,
    /// Messages that wait for memory to read their line.
    pub delayed: DelayedMessages,
}

/// Parts of the machine that the home uses in one event.
pub(crate) struct HomeEnvironment<'c> {
    /// State of the run that all components use.
    pub context: Context<'c>,
    /// Paths of the messages that the home sends and takes.
    pub interconnect: &'c mut Interconnect,
    /// Memory of all homes, and its contents.
    pub memory: &'c mut MainMemory,
    /// Caches, for the accesses whose stores the home performs and for checks.
    pub caches: &'c mut Caches,
    /// Cores and threads, for the values of stores that the home performs.
    pub frontend: &'c mut Frontend,
    /// Traffic of the device behind the home.
    pub device: &'c mut Device,
    /// Application behind the home, if there is one.
    pub application: Option<&'c mut Application>,
}

impl Home {
    /// Presents a message, given by its index and value, to the home.
    #[inline(always)]
    pub fn handle_message(&mut self, env: &mut HomeEnvironment, index: u32, message: &Message) {
        if self.clocked.is_some() {
            return self.submit_message(&mut env.context, index);
        }
        let request = env.context.tables.kind_of(message).request;
        self.present(
            env,
            Work::Message(index),
            message.line,
            Some(message),
            request,
        );
    }

    /// Completes a memory read. The unit may start another read at once.
    #[inline(always)]
    pub fn memory_read(&mut self, env: &mut HomeEnvironment, line: Line) {
        if rows::serving_application(&mut env.application, line).is_none() {
            env.memory.end_read(&mut env.context, line);
        }
        if self.clocked.is_some() {
            let copy = env.memory.copy(line);
            return self.submit_memory_result(&mut env.context, (line, copy), Work::Read(line));
        }
        env.context.check_memory_read(line);
        let unit_index = env.context.tables.unit_of(line);
        self.units[unit_index].reads_in_flight -= 1;
        self.present(env, Work::Read(line), line, None, false);
        self.schedule_unit(&mut env.context, unit_index);
    }

    /// Completes a memory write. The unit may start another write at once.
    #[inline]
    pub fn memory_written(&mut self, env: &mut HomeEnvironment, line: Line) {
        if self.clocked.is_some() {
            let copy = env.memory.copy(line);
            return self.submit_memory_result(&mut env.context, (line, copy), Work::Written(line));
        }
        let unit_index = env.context.tables.unit_of(line);
        self.units[unit_index].writes_in_flight -= 1;
        self.present(env, Work::Written(line), line, None, false);
        self.schedule_unit(&mut env.context, unit_index);
    }

    /// Presents an input to a unit: handled at once if the unit is idle, queued otherwise.
    #[inline(always)]
    fn present(
        &mut self,
        env: &mut HomeEnvironment,
        work: Work,
        line: Line,
        message: Option<&Message>,
        is_request: bool,
    ) {
        let (now, unit_index) = (env.context.now(), env.context.tables.unit_of(line));
        let unit = &mut self.units[unit_index];
        if unit.free_at <= now
            && unit.responses.is_empty()
            && (!is_request || unit.requests.is_empty() && unit.ready_slot().is_none())
        {
            return self.handle_next(env, unit_index, work, line, message);
        }
        match is_request {
            true => unit.requests.push_back(work),
            false => unit.responses.push_back(work),
        }
        self.schedule_unit(&mut env.context, unit_index);
    }

    /// Schedules the examination of a unit's queues for when the unit is free, if it has something to do.
    #[inline(always)]
    fn schedule_unit(&mut self, context: &mut Context, unit_index: usize) {
        let unit = &self.units[unit_index];
        if unit.is_scheduled
            || unit.responses.is_empty()
                && unit.ready_slot().is_none()
                && self.next_request(context, unit_index).is_none()
        {
            return;
        }
        let unit = &mut self.units[unit_index];
        unit.is_scheduled = true;
        let time = unit.free_at.max(context.now());
        context.schedule(time, KernelEvent::Unit(unit_index as u32));
    }

    /// Returns the place of the next request in its queue. If bounded requests are stopped, the others pass them.
    #[inline(always)]
    fn next_request(&self, context: &Context, unit_index: usize) -> Option<usize> {
        let unit = &self.units[unit_index];
        match unit.is_request_blocked {
            false => (!unit.requests.is_empty()).then_some(0),
            true => unit
                .requests
                .iter()
                .position(|&work| !self.is_bounded(context, work)),
        }
    }

    /// Handles the inputs of a unit: responses, then inputs that wait for a slot that is free, then requests.
    pub fn run_unit(&mut self, env: &mut HomeEnvironment, unit_index: usize) {
        self.units[unit_index].is_scheduled = false;
        // An input that starts to wait for a slot does not occupy the unit.
        while self.units[unit_index].free_at <= env.context.now() {
            let unit = &mut self.units[unit_index];
            if let Some(work) = unit.responses.pop_front() {
                self.handle_queued(env, unit_index, work);
            } else if let Some(slot) = unit.ready_slot() {
                // Later messages of the same order are still behind it.
                if let Some((work, line)) = unit.waiting_for_slot[slot as usize].pop_front() {
                    let message = self.message(&env.context, work);
                    self.handle(env, unit_index, work, line, message.as_ref());
                }
            } else if let Some(position) = self.next_request(&env.context, unit_index) {
                if let Some(work) = self.units[unit_index].requests.remove(position) {
                    self.handle_queued(env, unit_index, work);
                }
            } else {
                break;
            }
        }
        self.schedule_unit(&mut env.context, unit_index);
    }

    /// Returns the message of an input, if it is one.
    fn message(&self, context: &Context, work: Work) -> Option<Message> {
        match work {
            Work::Message(index) => Some(context.local.messages[index]),
            _ => None,
        }
    }

    /// Handles an input that was queued.
    fn handle_queued(&mut self, env: &mut HomeEnvironment, unit_index: usize, work: Work) {
        let message = self.message(&env.context, work);
        let line = match work {
            Work::Message(index) => env.context.local.messages[index].line,
            Work::Read(line) | Work::Written(line) | Work::Local(line, _) | Work::Unlock(line) => {
                line
            }
        };
        self.handle_next(env, unit_index, work, line, message.as_ref());
    }

    /// Handles an input, unless an earlier one of the same order waits.
    #[inline(always)]
    fn handle_next(
        &mut self,
        env: &mut HomeEnvironment,
        unit_index: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
    ) {
        match message {
            Some(message) if self.overtakes(env, unit_index, message) => {
                self.stall_input(env, unit_index, work, line)
            }
            _ => self.handle(env, unit_index, work, line, message),
        }
    }

    /// Handles an input that has no predecessor to wait for.
    fn handle(
        &mut self,
        env: &mut HomeEnvironment,
        unit_index: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
    ) {
        let input = self.input(&mut env.context, work, message);
        let configuration = self.directory.get(line);
        let upper_level = self.upper_level.as_mut();
        if upper_level.is_some_and(|above| above.must_wait(line, message)) {
            env.context.tally.counters.stall(Stall::Controller);
            return self.stall_input(env, unit_index, work, line);
        }
        let transition = match self.upper_level {
            None => self.step(env.context.tables, line, configuration, &input),
            Some(_) => self.step_below(line, configuration, &input),
        };
        if transition.answer == Answer::Take {
            if let Some(slot) = self.missing_slot(env, unit_index, line, &transition) {
                env.context.tally.counters.stall(Stall::UnitSlot);
                return self.wait_for_slot(env, unit_index, work, line, slot);
            }
        }
        let is_accepted = matches!(transition.answer, Answer::Take | Answer::Fault);
        if is_accepted && self.waits_for_room(env, line, &transition, message) {
            return self.stall_input(env, unit_index, work, line);
        }
        let times = &env.context.tables.times;
        let occupancy = match work {
            Work::Read(_) | Work::Written(_) => times.resume_occupancy,
            _ => times.occupancy,
        };
        let unit = &mut self.units[unit_index];
        unit.free_at = env.context.now() + occupancy;
        unit.occupied += occupancy;
        // An operation of the device also waits where the home has no row for it.
        let from_device = matches!(work, Work::Local(..) | Work::Unlock(_));
        match transition.answer {
            Answer::Take => {}
            Answer::Leave | Answer::Unexpected
                if from_device || transition.answer == Answer::Leave =>
            {
                env.context.tally.counters.stall(Stall::Controller);
                return self.stall_input(env, unit_index, work, line);
            }
            Answer::Refuse
                if matches!(work, Work::Local(..))
                    && env.application.is_none()
                    && self.upper_level.is_none() =>
            {
                return env.device.refuse(&mut env.context);
            }
            _ => return self.report_unexpected_input(env, work, line, &input, &transition),
        }
        let input = TakenInput {
            work,
            line,
            message,
            before: configuration,
            transition: &transition,
        };
        self.apply_transition(env, &input);
    }

    /// Returns the controller's input for an input of a unit. Chooses among the grants that the home may give.
    #[inline(always)]
    fn input(&self, context: &mut Context, work: Work, message: Option<&Message>) -> Input {
        if let Some(message) = message {
            return Input::from_message(message);
        }
        let program = &self.executor.program;
        let event = match work {
            Work::Written(_) => Event::MemoryDone,
            Work::Local(_, operation) => Event::Local(operation),
            Work::Unlock(_) => Event::Unlock,
            Work::Message(_) | Work::Read(_) => Event::MemoryData(match program.choices() {
                0 | 1 => 0,
                choices => context.local.random.below(choices.into()) as u8,
            }),
        };
        program.input(event, HOME)
    }

    /// Returns the transition of a home on an input.
    #[inline(always)]
    pub fn step(
        &mut self,
        tables: &Tables,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        let home = tables.home_of(line);
        self.executor.step(home, home, configuration, input)
    }

    /// Returns the transition of a home on an input, given whether it may write its memory.
    fn step_below(
        &mut self,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        let above = self.upper_level.as_ref();
        let may_write = above.is_some_and(|above| above.permissions.get(line) == Permission::Write);
        let program = &mut self.executor.program;
        let with_backing_permission = program.with_backing_permission(configuration, may_write);
        let mut transition = program.step(with_backing_permission, input);
        if transition.answer == Answer::Take {
            // Normalise the configuration, so that it does not depend on the permission above at this step.
            transition.next = program.with_backing_permission(transition.next, true);
        }
        transition
    }

    /// True if the row of a transition must wait for room in an input queue.
    #[inline(always)]
    fn waits_for_room(
        &mut self,
        env: &mut HomeEnvironment,
        line: Line,
        transition: &Transition,
        consumed: Option<&Message>,
    ) -> bool {
        let queues = &mut env.interconnect.input_queues;
        let program = &self.executor.program;
        queues.waits_for_room(
            &mut env.context,
            program,
            (HOME, line),
            transition,
            consumed,
        )
    }

    /// Formats a configuration of a line.
    pub fn state_text(
        &self,
        tables: &Tables,
        line: Line,
        configuration: ConfigurationId,
    ) -> String {
        (self.executor).state_text(tables, tables.home_of(line), configuration)
    }

    /// Retries the inputs that wait at a home.
    pub fn retry_waiting(&mut self, env: &mut HomeEnvironment, home: usize) {
        for unit in (home..self.units.len()).step_by(env.context.tables.memories) {
            self.return_stalled_inputs(env, unit);
        }
    }

    /// Handles a change of registers of a home.
    pub fn handle_register_change(&mut self, env: &mut HomeEnvironment, home: usize) {
        self.executor.begin_retry(home);
        self.retry_waiting(env, home);
    }

    /// True if an earlier message of the same order waits, or if one that the declared order puts before it is still in
    /// flight.
    #[inline(always)]
    fn overtakes(&self, env: &HomeEnvironment, unit_index: usize, message: &Message) -> bool {
        let kind = env.context.tables.kind_of(message);
        let group = kind.order_group;
        let mut waiting = self.units[unit_index].waiting_inputs();
        group.is_some()
            && (env.interconnect.order_tracker.holds_back(kind, message)
                || waiting.any(|&(work, line)| match work {
                    Work::Message(index) if line == message.line => {
                        let earlier = &env.context.local.messages[index];
                        earlier.sender() == message.sender()
                            && env.context.tables.kinds[earlier.kind.index()].order_group == group
                            && is_earlier(earlier.flight, message.flight)
                    }
                    _ => false,
                }))
    }

    /// Stalls an input until its line changes, if there is room for it outside the queue.
    fn stall_input(
        &mut self,
        env: &mut HomeEnvironment,
        unit_index: usize,
        work: Work,
        line: Line,
    ) {
        let is_full = self.units[unit_index].stalled.len() as u64
            >= env.context.tables.platform.home.stall_entries.value;
        if is_full && self.is_bounded(&env.context, work) {
            return self.block_request(&mut env.context, unit_index, work);
        }
        self.dequeue_to_wait(env, work);
        self.note_deferred_input(&mut env.context, work, Step::LineAtHome);
        self.units[unit_index].stalled.push((work, line));
    }

    /// Makes an input wait for a slot, if there is room for it outside the queue.
    fn wait_for_slot(
        &mut self,
        env: &mut HomeEnvironment,
        unit_index: usize,
        work: Work,
        line: Line,
        slot: Slot,
    ) {
        let max_waiting = env.context.tables.platform.home.queue_entries.value as usize;
        let waiting = &self.units[unit_index].waiting_for_slot;
        // Responses are not counted. The first test is a fast path: requests and responses together are rarely that
        // many.
        let is_full = waiting.iter().map(VecDeque::len).sum::<usize>() >= max_waiting && {
            let inputs = waiting.iter().flatten();
            inputs
                .filter(|(work, _)| self.is_request(&env.context, *work))
                .count()
                >= max_waiting
        };
        if is_full && self.is_bounded(&env.context, work) {
            return self.block_request(&mut env.context, unit_index, work);
        }
        self.dequeue_to_wait(env, work);
        self.note_deferred_input(&mut env.context, work, slot.step());
        self.units[unit_index].waiting_for_slot[slot as usize].push_back((work, line));
    }

    /// Keeps a request, for which there is no room to wait, at the head of its queue; it stops the bounded requests
    /// behind it.
    fn block_request(&mut self, context: &mut Context, unit_index: usize, work: Work) {
        context.tally.counters.stall(Stall::StallEntriesFull);
        let unit = &mut self.units[unit_index];
        unit.requests.push_front(work);
        unit.is_request_blocked = true;
    }

    /// Removes an input from its queue to wait. A message frees its place in the circuit.
    fn dequeue_to_wait(&mut self, env: &mut HomeEnvironment, work: Work) {
        if let Work::Message(index) = work {
            env.interconnect
                .dequeue_from_circuit(&mut env.context, index);
        }
    }

    /// Records the reason for which an input waits from now on.
    fn note_deferred_input(&mut self, context: &mut Context, work: Work, step: Step) {
        if let Work::Message(index) = work {
            context.observe(Fact::Deferred { index, step });
        }
    }

    /// Returns the slot that a transition needs and its unit has not free.
    #[inline]
    fn missing_slot(
        &self,
        env: &HomeEnvironment,
        unit_index: usize,
        line: Line,
        transition: &Transition,
    ) -> Option<Slot> {
        let unit = &self.units[unit_index];
        if transition.reads && !unit.is_free(Slot::Read) {
            Some(Slot::Read)
        } else if transition.writes && !unit.is_free(Slot::Write) {
            Some(Slot::Write)
        } else if transition.forwards
            && unit.unanswered_forwards > 0
            && unit.forwarded_line != line
            // The answer may be behind this message in an input queue.
            && env.interconnect.input_queues.is_empty()
        {
            Some(Slot::Forward)
        } else {
            None
        }
    }

    /// Returns inputs that wait for the line to the heads of the queues.
    #[inline(always)]
    pub fn return_waiting_inputs(
        &mut self,
        env: &mut HomeEnvironment,
        unit_index: usize,
        line: Line,
    ) {
        if self.units[unit_index].has_waiting_input(line) {
            self.return_inputs(env, unit_index, line);
        }
        // A stopped request may find room now, or may concern this line.
        self.units[unit_index].is_request_blocked = false;
        self.schedule_unit(&mut env.context, unit_index);
    }

    /// Returns all stalled inputs of a unit to the heads of the queues.
    pub fn return_stalled_inputs(&mut self, env: &mut HomeEnvironment, unit_index: usize) {
        let mut lines: Vec<Line> = self.units[unit_index]
            .stalled
            .iter()
            .map(|input| input.1)
            .collect();
        lines.dedup();
        for line in lines {
            self.return_waiting_inputs(env, unit_index, line);
        }
    }

    /// Returns all inputs that wait for a line together: none may overtake its predecessors.
    fn return_inputs(&mut self, env: &mut HomeEnvironment, unit_index: usize, line: Line) {
        let unit = &mut self.units[unit_index];
        // In one order, inputs that wait for a slot came before those that were stalled behind them.
        let mut released = Vec::new();
        for waiting in &mut unit.waiting_for_slot {
            released.extend(waiting.iter().filter(|entry| entry.1 == line));
            waiting.retain(|entry| entry.1 != line);
        }
        released.extend(unit.stalled.extract_if(.., |entry| entry.1 == line));
        for &(work, _) in released.iter().rev() {
            self.note_deferred_input(&mut env.context, work, Step::Unit);
            match self.is_request(&env.context, work) {
                true => self.units[unit_index].requests.push_front(work),
                false => self.units[unit_index].responses.push_front(work),
            }
        }
    }

    /// True if an input belongs to the queue of requests.
    #[inline]
    fn is_request(&self, context: &Context, work: Work) -> bool {
        match work {
            Work::Message(index) => {
                context.tables.kinds[context.local.messages[index].kind.index()].request
            }
            work => matches!(work, Work::Local(..)),
        }
    }

    /// True if an input may be stopped. Messages of an order may not: a request may wait for one of their successors.
    fn is_bounded(&self, context: &Context, work: Work) -> bool {
        match work {
            Work::Message(index) => {
                let kind = &context.tables.kinds[context.local.messages[index].kind.index()];
                kind.request && kind.order_group.is_none()
            }
            _ => false,
        }
    }

    /// Fails the run because the controller has no row for an input, or because the row has a fault.
    #[cold]
    fn report_unexpected_input(
        &mut self,
        env: &mut HomeEnvironment,
        work: Work,
        line: Line,
        input: &Input,
        transition: &Transition,
    ) {
        let input_text = match work {
            Work::Message(index) => env
                .context
                .tables
                .message_text(&env.context.local.messages[index]),
            _ => format!("{:?}", self.executor.program.event(input.code)),
        };
        let state_text = self.state_text(env.context.tables, line, self.directory.get(line));
        let name = env.context.agent_name(HOME);
        let text = match transition.answer {
            Answer::Fault => {
                self.executor
                    .program
                    .fault(name, &env.context.tables.protocol_messages, transition)
            }
            _ => format!("{name} has no rule for {input_text} in {state_text}"),
        };
        if let Work::Message(index) = work {
            let message = env.context.local.messages[index];
            env.context.note_receive(&message);
        }
        env.context.fail(FailureKind::UnexpectedMessage, line, text);
    }
}

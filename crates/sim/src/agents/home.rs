//! The home: serial units that execute the protocol's home controller.
//!
//! Each line belongs to one unit. A unit handles one input at a time, responses before requests, and each occupies it
//! for a while. Up to one memory read, one memory write (or as many as the platform allows) and one coherence
//! transaction of the unit are in flight meanwhile. An input that would start a further one waits for that slot,
//! without occupying the unit. The input that arrived first gets the slot when both slot and unit are free. A request
//! that the controller stalls lets others pass, and is presented again when the state of its line has changed. Both
//! kinds of waiting are bounded: beyond the bound, channels of requests stop and all others continue.

mod local;
mod memory;

use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Event, Local};
use cohkit_protocol::protocol::{Class, Right};
use std::collections::VecDeque;

use super::clocked::Clocked;
use super::device::Operation;
use super::program::{number_of, Act, Answer, ConfigurationId, Input, Program, Transition};
use crate::attribution::Step;
use crate::data::{Copy, Paged};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Line, Message, Work, HOME};
use crate::platform::Home;
use crate::simulation::observer::Fact;
use crate::simulation::order_tracker::is_earlier;
use crate::simulation::{Event as KernelEvent, Kind, Pending, Purpose, Simulation};
use crate::statistics::Stall;

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

const SLOTS: [Slot; 3] = [Slot::Write, Slot::Forward, Slot::Read];

/// Bytes of a non-caching write, from the acceptance of its request until memory accepts them.
#[derive(Clone, Copy, Debug)]
struct Store {
    line: Line,
    copy: Copy,
    word: u16,
    words: u16,
    from: Agent,
    /// Flight number of its message.
    flight: u32,
    is_whole_line: bool,
}

impl Store {
    fn from_message(message: &Message, kind: &Kind) -> Store {
        Store {
            line: message.line,
            copy: message.copy,
            word: message.word,
            words: message.words.max(1),
            from: message.from,
            flight: message.flight,
            is_whole_line: kind.carries_whole_line,
        }
    }
}

/// A directory controller unit.
#[derive(Default)]
pub struct Unit {
    free_at: Time,
    /// Total time for which the unit has been occupied.
    pub(crate) occupied: Time,
    /// True if an event is scheduled at which the unit examines its queues.
    is_scheduled: bool,
    responses: VecDeque<Work>,
    requests: VecDeque<Work>,
    /// True if a request found no room to wait, so that it stops the bounded requests behind it.
    is_request_blocked: bool,
    /// Inputs that the controller stalls until their line changes, in order of arrival.
    stalled: Vec<(Work, Line)>,
    /// Inputs that wait for each slot, in order of arrival.
    waiting_for_slot: [VecDeque<(Work, Line)>; 3],
    deferred_stores: Vec<Store>,
    /// Memory reads and writes in flight, and the maximum of each.
    reads_in_flight: u32,
    max_reads: u32,
    writes_in_flight: u32,
    max_writes: u32,
    /// Unanswered forwards, and their line.
    unanswered_forwards: u32,
    forwarded_line: Line,
}

impl Unit {
    /// Creates an idle unit.
    pub fn new(home: &Home) -> Unit {
        Unit {
            max_reads: home.reads.as_ref().map_or(1, |reads| reads.value as u32),
            max_writes: (home.writes.as_ref()).map_or(1, |writes| writes.value as u32),
            ..Unit::default()
        }
    }

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

    /// Iterates over all inputs that wait outside the queues.
    fn waiting_inputs(&self) -> impl Iterator<Item = &(Work, Line)> {
        self.stalled
            .iter()
            .chain(self.waiting_for_slot.iter().flatten())
    }
}

/// Returns the index of the unit that a line belongs to.
#[inline]
pub(crate) fn unit_of(units: &[Unit], line: Line) -> usize {
    // The lowest bits select the slice, those above them its unit.
    line as usize & (units.len() - 1)
}

/// The home: its controller, and the units or the clocked home that execute it.
pub(crate) struct HomeState {
    pub program: Program,
    pub units: Vec<Unit>,
    /// Clocked home in place of the units, if there is one.
    pub clocked: Option<Box<Clocked>>,
    /// Configuration of each line.
    pub directory: Paged<u32>,
}

impl Simulation {
    #[inline]
    pub(crate) fn unit_of(&self, line: Line) -> usize {
        unit_of(&self.home.units, line)
    }

    /// Presents a message to the home.
    #[inline(always)]
    pub(crate) fn arrive_home(&mut self, index: u32, message: &Message) {
        if self.home.clocked.is_some() {
            return self.submit_message(index);
        }
        let unit_index = self.unit_of(message.line);
        let request = self.tables.kinds[message.kind.index()].request;
        let work = Work::Message(index);
        self.present(unit_index, work, message.line, Some(message), request);
    }

    /// Completes a memory read. The unit may start another read at once.
    #[inline(always)]
    pub(crate) fn memory_read(&mut self, line: Line) {
        if self.home.clocked.is_some() {
            return self.submit_memory_result(line, Work::Read(line));
        }
        self.check_memory_read(line);
        let unit_index = self.unit_of(line);
        self.home.units[unit_index].reads_in_flight -= 1;
        self.present(unit_index, Work::Read(line), line, None, false);
        self.schedule_unit(unit_index);
    }

    /// Completes a memory write. The unit may start another write at once.
    #[inline]
    pub(crate) fn memory_written(&mut self, line: Line) {
        if self.home.clocked.is_some() {
            return self.submit_memory_result(line, Work::Written(line));
        }
        let unit_index = self.unit_of(line);
        self.home.units[unit_index].writes_in_flight -= 1;
        self.present(unit_index, Work::Written(line), line, None, false);
        self.schedule_unit(unit_index);
    }

    /// Presents an input to a unit: handled at once if the unit is idle, queued otherwise.
    #[inline(always)]
    fn present(
        &mut self,
        unit_index: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
        is_request: bool,
    ) {
        let now = self.local.now;
        let unit = &mut self.home.units[unit_index];
        if unit.free_at <= now
            && unit.responses.is_empty()
            && (!is_request || unit.requests.is_empty() && unit.ready_slot().is_none())
        {
            return self.handle_next(unit_index, work, line, message);
        }
        match is_request {
            true => unit.requests.push_back(work),
            false => unit.responses.push_back(work),
        }
        self.schedule_unit(unit_index);
    }

    /// Schedules the examination of a unit's queues for when the unit is free, if it has something to do.
    #[inline(always)]
    fn schedule_unit(&mut self, unit_index: usize) {
        let unit = &self.home.units[unit_index];
        if unit.is_scheduled
            || unit.responses.is_empty()
                && unit.ready_slot().is_none()
                && self.next_request(unit_index).is_none()
        {
            return;
        }
        let unit = &mut self.home.units[unit_index];
        unit.is_scheduled = true;
        let time = unit.free_at.max(self.local.now);
        self.local
            .queue
            .push(time, KernelEvent::Unit(unit_index as u32));
    }

    /// Returns the place of the next request in its queue. If bounded requests are stopped, the others pass them.
    #[inline(always)]
    fn next_request(&self, unit_index: usize) -> Option<usize> {
        let unit = &self.home.units[unit_index];
        match unit.is_request_blocked {
            false => (!unit.requests.is_empty()).then_some(0),
            true => unit
                .requests
                .iter()
                .position(|&work| !self.is_bounded(work)),
        }
    }

    /// Handles the inputs of a unit: responses, then inputs that wait for a slot that is free, then requests.
    pub(crate) fn run_unit(&mut self, unit_index: usize) {
        self.home.units[unit_index].is_scheduled = false;
        // An input that starts to wait for a slot does not occupy the unit.
        while self.home.units[unit_index].free_at <= self.local.now {
            let unit = &mut self.home.units[unit_index];
            if let Some(work) = unit.responses.pop_front() {
                self.handle_queued(unit_index, work);
            } else if let Some(slot) = unit.ready_slot() {
                // Later messages of the same order are still behind it.
                if let Some((work, line)) = unit.waiting_for_slot[slot as usize].pop_front() {
                    let message = self.message(work);
                    self.handle(unit_index, work, line, message.as_ref());
                }
            } else if let Some(position) = self.next_request(unit_index) {
                if let Some(work) = self.home.units[unit_index].requests.remove(position) {
                    self.handle_queued(unit_index, work);
                }
            } else {
                break;
            }
        }
        self.schedule_unit(unit_index);
    }

    /// Returns the message of an input, if it is one.
    fn message(&self, work: Work) -> Option<Message> {
        match work {
            Work::Message(index) => Some(self.local.messages[index]),
            _ => None,
        }
    }

    /// Handles an input that was queued.
    fn handle_queued(&mut self, unit_index: usize, work: Work) {
        let message = self.message(work);
        let line = match work {
            Work::Message(index) => self.local.messages[index].line,
            Work::Read(line) | Work::Written(line) | Work::Local(line, _) | Work::Unlock(line) => {
                line
            }
        };
        self.handle_next(unit_index, work, line, message.as_ref());
    }

    /// Handles an input, unless an earlier one of the same order waits.
    #[inline(always)]
    fn handle_next(
        &mut self,
        unit_index: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
    ) {
        match message {
            Some(message) if self.overtakes(unit_index, message) => {
                self.stall_input(unit_index, work, line)
            }
            _ => self.handle(unit_index, work, line, message),
        }
    }

    /// Handles an input that has no predecessor to wait for.
    fn handle(&mut self, unit_index: usize, work: Work, line: Line, message: Option<&Message>) {
        let local_input = |program, event| Self::local_input(program, event, HOME);
        let input = match (work, message) {
            (_, Some(message)) => Self::input(message),
            (Work::Written(_), _) => local_input(&self.home.program, Event::MemoryDone),
            (Work::Local(_, operation), _) => {
                local_input(&self.home.program, Event::Local(operation))
            }
            (Work::Unlock(_), _) => local_input(&self.home.program, Event::Unlock),
            _ => {
                let choice = self.choose_grant();
                local_input(&self.home.program, Event::MemoryData(choice))
            }
        };
        let configuration = self.home.directory.get(line);
        let transition = if self.neighbours.upper_level.is_none() {
            self.home_step(line, configuration, &input)
        } else if self.must_wait_for_above(line, message) {
            self.tally.counters.stall(Stall::Left);
            return self.stall_input(unit_index, work, line);
        } else {
            self.step_below(line, configuration, &input)
        };
        if transition.answer == Answer::Take {
            if let Some(slot) = self.missing_slot(unit_index, line, &transition) {
                self.tally.counters.stall(Stall::UnitSlot);
                return self.wait_for_slot(unit_index, work, line, slot);
            }
        }
        let is_accepted = matches!(transition.answer, Answer::Take | Answer::Fault);
        if is_accepted && self.waits_for_room(HOME, line, &transition, message) {
            return self.stall_input(unit_index, work, line);
        }
        let occupancy = match work {
            Work::Read(_) | Work::Written(_) => self.tables.times.resume_occupancy,
            _ => self.tables.times.occupancy,
        };
        let unit = &mut self.home.units[unit_index];
        unit.free_at = self.local.now + occupancy;
        unit.occupied += occupancy;
        // An operation of the device also waits where the home has no row for it.
        let from_device = matches!(work, Work::Local(..) | Work::Unlock(_));
        match transition.answer {
            Answer::Take => {}
            Answer::Leave | Answer::Unexpected
                if from_device || transition.answer == Answer::Leave =>
            {
                self.tally.counters.stall(Stall::Left);
                return self.stall_input(unit_index, work, line);
            }
            Answer::Refuse
                if matches!(work, Work::Local(..))
                    && self.application.is_none()
                    && self.neighbours.upper_level.is_none() =>
            {
                return self.refuse_local_operation();
            }
            _ => return self.report_unexpected_input(work, line, &input, &transition),
        }
        self.apply_home_transition(unit_index, work, line, message, configuration, &transition);
    }

    /// Chooses among the grants that the home may give.
    fn choose_grant(&mut self) -> u8 {
        match self.home.program.choices() {
            0 | 1 => 0,
            choices => self.local.random.below(choices.into()) as u8,
        }
    }

    /// True if an earlier message of the same order waits, or if one that the declared order puts before it is still in
    /// flight.
    #[inline(always)]
    fn overtakes(&self, unit_index: usize, message: &Message) -> bool {
        let kind = &self.tables.kinds[message.kind.index()];
        let group = kind.order_group;
        let mut waiting = self.home.units[unit_index].waiting_inputs();
        group.is_some()
            && (self.interconnect.order_tracker.holds_back(kind, message)
                || waiting.any(|&(work, line)| match work {
                    Work::Message(index) if line == message.line => {
                        let earlier = &self.local.messages[index];
                        earlier.sender() == message.sender()
                            && self.tables.kinds[earlier.kind.index()].order_group == group
                            && is_earlier(earlier.flight, message.flight)
                    }
                    _ => false,
                }))
    }

    /// Stalls an input until its line changes, if there is room for it outside the queue.
    fn stall_input(&mut self, unit_index: usize, work: Work, line: Line) {
        let is_full = self.home.units[unit_index].stalled.len() as u64
            >= self.tables.platform.home.waiting.value;
        if is_full && self.is_bounded(work) {
            return self.block_request(unit_index, work);
        }
        self.dequeue_to_wait(work);
        self.note_deferred_input(work, Step::LineAtHome);
        self.home.units[unit_index].stalled.push((work, line));
    }

    /// Makes an input wait for a slot, if there is room for it outside the queue.
    fn wait_for_slot(&mut self, unit_index: usize, work: Work, line: Line, slot: Slot) {
        let max_waiting = self.tables.platform.home.pending.value as usize;
        let waiting = &self.home.units[unit_index].waiting_for_slot;
        // Responses are not counted. The first test is a fast path: requests and responses together are rarely that
        // many.
        let is_full = waiting.iter().map(VecDeque::len).sum::<usize>() >= max_waiting && {
            let inputs = waiting.iter().flatten();
            inputs.filter(|(work, _)| self.is_request(*work)).count() >= max_waiting
        };
        if is_full && self.is_bounded(work) {
            return self.block_request(unit_index, work);
        }
        self.dequeue_to_wait(work);
        self.note_deferred_input(work, slot.step());
        self.home.units[unit_index].waiting_for_slot[slot as usize].push_back((work, line));
    }

    /// Keeps a request, for which there is no room to wait, at the head of its queue; it stops the bounded requests
    /// behind it.
    fn block_request(&mut self, unit_index: usize, work: Work) {
        self.tally.counters.stall(Stall::WaitingFull);
        let unit = &mut self.home.units[unit_index];
        unit.requests.push_front(work);
        unit.is_request_blocked = true;
    }

    /// Removes an input from its queue to wait. A message frees its place in the circuit.
    fn dequeue_to_wait(&mut self, work: Work) {
        if let Work::Message(index) = work {
            self.dequeue_from_circuit(index);
        }
    }

    /// Records the reason for which an input waits from now on.
    fn note_deferred_input(&mut self, work: Work, step: Step) {
        if let Work::Message(index) = work {
            self.observe(Fact::Deferred { index, step });
        }
    }

    /// Returns the slot that a transition needs and its unit has not free.
    #[inline]
    fn missing_slot(&self, unit_index: usize, line: Line, transition: &Transition) -> Option<Slot> {
        let unit = &self.home.units[unit_index];
        if transition.reads && !unit.is_free(Slot::Read) {
            Some(Slot::Read)
        } else if transition.writes && !unit.is_free(Slot::Write) {
            Some(Slot::Write)
        } else if transition.forwards
            && unit.unanswered_forwards > 0
            && unit.forwarded_line != line
            // The answer may be behind this message in an input queue.
            && self.input_queues.is_empty()
        {
            Some(Slot::Forward)
        } else {
            None
        }
    }

    /// Applies a transition that a clocked home has taken.
    pub(crate) fn take_step(
        &mut self,
        work: Work,
        line: Line,
        message: Option<&Message>,
        before: ConfigurationId,
        transition: &Transition,
    ) {
        let unit_index = self.unit_of(line);
        self.apply_home_transition(unit_index, work, line, message, before, transition);
    }

    /// Applies a transition.
    #[inline(always)]
    fn apply_home_transition(
        &mut self,
        unit_index: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
        before: ConfigurationId,
        transition: &Transition,
    ) {
        self.commit_registers(HOME, line);
        let mut next_line = None;
        if let (Work::Message(index), Some(message)) = (work, message) {
            next_line = self.take_message(index, message);
        }
        self.observe(Fact::TakenAtHome {
            work,
            line,
            message,
        });
        if let (Work::Local(line, local), None, None) =
            (work, &self.application, &self.neighbours.upper_level)
        {
            if !self.is_directory_eviction(line) {
                self.device.current = Some(Operation {
                    line,
                    local,
                    locked: false,
                });
            }
        }
        // The device no longer uses the line from here on.
        if let (Work::Unlock(line), Some(current)) = (work, &mut self.device.current) {
            current.locked &= current.line != line;
        }
        if let (Work::Unlock(line), Some(above)) = (work, &mut self.neighbours.upper_level) {
            above.begin_unlock(line);
        }
        if let Some(message) = message {
            let kind = &self.tables.kinds[message.kind.index()];
            let unit = &mut self.home.units[unit_index];
            if kind.class == Some(Class::Answer)
                && unit.unanswered_forwards > 0
                && unit.forwarded_line == line
            {
                unit.unanswered_forwards -= 1;
            }
            if kind.store && self.home.program.keeps_store_bytes {
                unit.deferred_stores
                    .push(Store::from_message(message, kind));
            }
        }
        if transition.next != before {
            self.home.directory.set(line, transition.next);
            if self.application.is_some() {
                self.notify_permission_change(line, before, transition.next);
            }
        }
        for act in transition.acts() {
            let act = self.home.program.act(act);
            self.execute_act(unit_index, work, line, message, act, transition);
        }
        if let Some(message) = message {
            let kind = &self.tables.kinds[message.kind.index()];
            let keeps_bytes = |act| {
                let act = self.home.program.act(act);
                matches!(act, Act::WriteMemory | Act::DeferStore)
            };
            let is_dropped = kind.store
                && !self.home.program.keeps_store_bytes
                && !transition.acts().any(keeps_bytes);
            if kind.line || is_dropped {
                self.contents.data.release(message.copy);
            }
            if is_dropped && !self.has_outstanding_store(message.from, line) {
                let name = self.agent_name(message.from);
                let text = format!("a store that {name} has completed is not performed");
                self.fail(self.contents.oracle.store_property(), line, text);
            }
        }
        self.observe(Fact::State {
            agent: HOME,
            line,
            configuration: transition.next,
        });
        self.return_waiting_inputs(unit_index, line);
        if let Some(next_line) = next_line {
            self.return_waiting_inputs(self.unit_of(next_line), next_line);
        }
    }

    /// Returns inputs that wait for the line to the heads of the queues.
    #[inline(always)]
    pub(crate) fn return_waiting_inputs(&mut self, unit_index: usize, line: Line) {
        let concerns_line = |&(_, input_line): &(Work, Line)| input_line == line;
        if self.home.units[unit_index]
            .waiting_inputs()
            .any(concerns_line)
        {
            self.return_inputs(unit_index, line);
        }
        // A stopped request may find room now, or may concern this line.
        self.home.units[unit_index].is_request_blocked = false;
        self.schedule_unit(unit_index);
    }

    /// Returns all stalled inputs of a unit to the heads of the queues.
    pub(crate) fn return_stalled_inputs(&mut self, unit_index: usize) {
        let mut lines: Vec<Line> = self.home.units[unit_index]
            .stalled
            .iter()
            .map(|input| input.1)
            .collect();
        lines.dedup();
        for line in lines {
            self.return_waiting_inputs(unit_index, line);
        }
    }

    /// Returns all inputs that wait for a line together: none may overtake its predecessors.
    fn return_inputs(&mut self, unit_index: usize, line: Line) {
        let unit = &mut self.home.units[unit_index];
        // In one order, inputs that wait for a slot came before those that were stalled behind them.
        let mut released = Vec::new();
        for waiting in &mut unit.waiting_for_slot {
            released.extend(waiting.iter().filter(|entry| entry.1 == line));
            waiting.retain(|entry| entry.1 != line);
        }
        released.extend(unit.stalled.extract_if(.., |entry| entry.1 == line));
        for &(work, _) in released.iter().rev() {
            self.note_deferred_input(work, Step::Unit);
            match self.is_request(work) {
                true => self.home.units[unit_index].requests.push_front(work),
                false => self.home.units[unit_index].responses.push_front(work),
            }
        }
    }

    /// True if an input belongs to the queue of requests.
    #[inline]
    fn is_request(&self, work: Work) -> bool {
        match work {
            Work::Message(index) => {
                self.tables.kinds[self.local.messages[index].kind.index()].request
            }
            work => matches!(work, Work::Local(..)),
        }
    }

    /// True if an input may be stopped. Messages of an order may not: a request may wait for one of their successors.
    fn is_bounded(&self, work: Work) -> bool {
        match work {
            Work::Message(index) => {
                let kind = &self.tables.kinds[self.local.messages[index].kind.index()];
                kind.request && kind.order_group.is_none()
            }
            _ => false,
        }
    }

    /// Executes one act of the home.
    #[inline(always)]
    fn execute_act(
        &mut self,
        unit_index: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
        act: Act,
        transition: &Transition,
    ) {
        let latency = match work {
            Work::Read(_) | Work::Written(_) => self.tables.times.resume,
            _ => self.tables.times.latency,
        };
        let ready = self.local.now + latency;
        match act {
            Act::Send {
                message: kind,
                to,
                fields,
            } => {
                let message_kind = self.tables.kinds[kind.index()];
                let is_forward = message_kind.class == Some(Class::Forward);
                let (mut copy, mut ready) = (Copy::UNTOUCHED, ready);
                if message_kind.line {
                    copy = self.contents.data.memory(line);
                    self.contents.data.share(copy);
                    self.check_single_use(line, kind.index(), copy);
                    if !matches!(work, Work::Read(_)) {
                        if message_kind.is_single_use {
                            self.check_memory_read(line);
                        }
                        // Memory is accessed without a delay in the controller's terms. Its latency is added here.
                        ready = self.operate(ready, line);
                    }
                }
                if is_forward && self.tables.declares_responses {
                    let unit = &mut self.home.units[unit_index];
                    unit.unanswered_forwards += 1;
                    unit.forwarded_line = line;
                }
                let message = Message {
                    line: self.line_of(kind, line, to),
                    copy,
                    kind,
                    from: HOME,
                    to: number_of(to),
                    // The sending home, for messages between homes.
                    word: self.home_of(line) as u16,
                    words: 0,
                    fields,
                    credit: false,
                    flight: 0,
                };
                self.send_or_hold(message, ready);
            }
            Act::StartRead => {
                if !self.defer_memory_read(line, transition) {
                    self.home.units[unit_index].reads_in_flight += 1;
                    self.read_memory(ready, line, transition);
                }
            }
            Act::StartWrite => {
                self.write_back(line, message);
                self.start_write(unit_index, ready, line, transition, None);
            }
            Act::StartStore { whole } => {
                let words = self.commit_store(unit_index, line, Some(whole));
                self.start_write(unit_index, ready, line, transition, words);
            }
            Act::WriteMemory => {
                self.operate(ready, line);
                match message {
                    Some(message) if self.tables.kinds[message.kind.index()].store => {
                        let store =
                            Store::from_message(message, &self.tables.kinds[message.kind.index()]);
                        self.perform_store(store, store.is_whole_line);
                    }
                    _ => self.write_back(line, message),
                }
            }
            Act::DeferStore => self.defer_store(unit_index, line, message),
            Act::CommitDeferred => {
                self.operate(ready, line);
                self.commit_store(unit_index, line, None);
            }
            Act::Acknowledge(_) if self.take_directory_eviction(line) => {}
            Act::Acknowledge(local) => self.complete_local_operation(line, local),
            Act::AcknowledgeUnlock if self.neighbours.upper_level.is_some() => {
                self.handle_unlock_below(line)
            }
            Act::AcknowledgeUnlock if self.application.is_some() => {}
            Act::AcknowledgeUnlock => {
                self.device.current = None;
                self.schedule_next_operation();
            }
            Act::Done | Act::BulkTransition { .. } => {
                self.fail(
                    FailureKind::Meaningless,
                    line,
                    "the home executes an action that only a cache can execute".into(),
                );
            }
        }
    }

    #[cold]
    fn report_unexpected_input(
        &mut self,
        work: Work,
        line: Line,
        input: &Input,
        transition: &Transition,
    ) {
        let input_text = match work {
            Work::Message(index) => self.message_text(&self.local.messages[index]),
            _ => format!("{:?}", self.home.program.event(input.code)),
        };
        let state_text = self.state_text(HOME, line, self.home.directory.get(line));
        let name = self.agent_name(HOME);
        let text = match transition.answer {
            Answer::Fault => {
                self.home
                    .program
                    .fault(&name, &self.tables.protocol_messages, transition)
            }
            _ => format!("{name} has no rule for {input_text} in {state_text}"),
        };
        if let Work::Message(index) = work {
            let message = self.local.messages[index];
            self.note_receive(&message);
        }
        self.fail(FailureKind::UnexpectedMessage, line, text);
    }

    /// Records that the home takes an input, also in the trace.
    #[cold]
    pub(crate) fn note_work(&mut self, work: Work, line: Line, message: Option<&Message>) {
        self.note_taken_at_home(work, line, message);
        if !self.is_traced(line) {
            return;
        }
        let what = match (work, message) {
            (_, Some(message)) => return self.note_receive(message),
            (Work::Read(_), _) => "takes the memory's data".to_string(),
            (Work::Written(_), _) => "hears that memory is done".to_string(),
            (Work::Local(_, local), _) => {
                format!(
                    "takes {}",
                    self.home.program.controller().locals[local as usize].name
                )
            }
            _ => "takes the unlock".to_string(),
        };
        self.note(HOME, line, Action::Does { what });
    }
}

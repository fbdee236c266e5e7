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

use super::device::Operation;
use super::program::{number_of, Act, Answer, ConfigurationId, Input, Transition};
use crate::attribution::Step;
use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Line, Message, HOME};
use crate::platform::Home;
use crate::simulation::order_tracker::is_earlier;
use crate::simulation::{Event as KernelEvent, Kind, Pending, Purpose, Simulation};
use crate::statistics::Stall;

/// Input of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A message, by its index.
    Message(u32),
    /// Memory has read the line.
    Read(Line),
    /// Memory has written the line.
    Written(Line),
    /// A local operation of the device, by its index among the controller's.
    Local(Line, u8),
    /// The device releases its lock.
    Unlock(Line),
}

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
    whole: bool,
}

impl Store {
    fn of(message: &Message, kind: &Kind) -> Store {
        Store {
            line: message.line,
            copy: message.copy,
            word: message.word,
            words: message.words.max(1),
            from: message.from,
            flight: message.flight,
            whole: kind.whole,
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
    awake: bool,
    responses: VecDeque<Work>,
    requests: VecDeque<Work>,
    /// True if a request found no room to wait, so that it stops the bounded requests behind it.
    blocked: bool,
    /// Inputs that the controller stalls until their line changes, in order of arrival.
    left: Vec<(Work, Line)>,
    /// Inputs that wait for each slot, in order of arrival.
    waiting: [VecDeque<(Work, Line)>; 3],
    stores: Vec<Store>,
    /// Memory reads and writes in flight, and the maximum of each.
    reading: u32,
    reads: u32,
    writing: u32,
    writes: u32,
    /// Unanswered forwards, and their line.
    forwards: u32,
    forwarding: Line,
}

impl Unit {
    /// Creates an idle unit.
    pub fn new(home: &Home) -> Unit {
        Unit {
            reads: home.reads.as_ref().map_or(1, |reads| reads.value as u32),
            writes: (home.writes.as_ref()).map_or(1, |writes| writes.value as u32),
            ..Unit::default()
        }
    }

    fn is_free(&self, slot: Slot) -> bool {
        match slot {
            Slot::Write => self.writing < self.writes,
            Slot::Forward => self.forwards == 0,
            Slot::Read => self.reading < self.reads,
        }
    }

    /// Returns a free slot for which an input waits.
    #[inline]
    fn ready(&self) -> Option<Slot> {
        let mut slots = SLOTS.into_iter();
        slots.find(|&slot| self.is_free(slot) && !self.waiting[slot as usize].is_empty())
    }

    /// Iterates over all inputs that wait outside the queues.
    fn set_aside(&self) -> impl Iterator<Item = &(Work, Line)> {
        self.left.iter().chain(self.waiting.iter().flatten())
    }
}

/// Returns the index of the unit that a line belongs to.
#[inline]
pub(crate) fn unit_of(units: &[Unit], line: Line) -> usize {
    // The lowest bits select the slice, those above them its unit.
    line as usize & (units.len() - 1)
}

impl Simulation {
    #[inline]
    pub(crate) fn unit_of(&self, line: Line) -> usize {
        unit_of(&self.units, line)
    }

    /// Presents a message to the home.
    #[inline(always)]
    pub(crate) fn arrive_home(&mut self, index: u32, message: &Message) {
        if self.clocked.is_some() {
            return self.submit_message(index);
        }
        let number = self.unit_of(message.line);
        let request = self.kinds[message.kind.index()].request;
        let work = Work::Message(index);
        self.present(number, work, message.line, Some(message), request);
    }

    /// Completes a memory read. The unit may start another read at once.
    #[inline(always)]
    pub(crate) fn memory_read(&mut self, line: Line) {
        if self.clocked.is_some() {
            return self.submit_memory_result(line, Work::Read(line));
        }
        self.check_memory_read(line);
        let number = self.unit_of(line);
        self.units[number].reading -= 1;
        self.present(number, Work::Read(line), line, None, false);
        self.wake(number);
    }

    /// Completes a memory write. The unit may start another write at once.
    #[inline]
    pub(crate) fn memory_written(&mut self, line: Line) {
        if self.clocked.is_some() {
            return self.submit_memory_result(line, Work::Written(line));
        }
        let number = self.unit_of(line);
        self.units[number].writing -= 1;
        self.present(number, Work::Written(line), line, None, false);
        self.wake(number);
    }

    /// Presents an input to a unit: handled at once if the unit is idle, queued otherwise.
    #[inline(always)]
    fn present(
        &mut self,
        number: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
        request: bool,
    ) {
        let now = self.now;
        let unit = &mut self.units[number];
        if unit.free_at <= now
            && unit.responses.is_empty()
            && (!request || unit.requests.is_empty() && unit.ready().is_none())
        {
            return self.handle_next(number, work, line, message);
        }
        match request {
            true => unit.requests.push_back(work),
            false => unit.responses.push_back(work),
        }
        self.wake(number);
    }

    /// Schedules the examination of a unit's queues for when the unit is free, if it has something to do.
    #[inline(always)]
    fn wake(&mut self, number: usize) {
        let unit = &self.units[number];
        if unit.awake
            || unit.responses.is_empty()
                && unit.ready().is_none()
                && self.next_request(number).is_none()
        {
            return;
        }
        let unit = &mut self.units[number];
        unit.awake = true;
        let at = unit.free_at.max(self.now);
        self.queue.push(at, KernelEvent::Unit(number as u32));
    }

    /// Returns the place of the next request in its queue. If bounded requests are stopped, the others pass them.
    #[inline(always)]
    fn next_request(&self, number: usize) -> Option<usize> {
        let unit = &self.units[number];
        match unit.blocked {
            false => (!unit.requests.is_empty()).then_some(0),
            true => unit
                .requests
                .iter()
                .position(|&work| !self.is_bounded(work)),
        }
    }

    /// Handles the inputs of a unit: responses, then inputs that wait for a slot that is free, then requests.
    pub(crate) fn unit(&mut self, number: usize) {
        self.units[number].awake = false;
        // An input that starts to wait for a slot does not occupy the unit.
        while self.units[number].free_at <= self.now {
            let unit = &mut self.units[number];
            if let Some(work) = unit.responses.pop_front() {
                self.handle_queued(number, work);
            } else if let Some(slot) = unit.ready() {
                // Later messages of the same order are still behind it.
                if let Some((work, line)) = unit.waiting[slot as usize].pop_front() {
                    let message = self.message(work);
                    self.handle(number, work, line, message.as_ref());
                }
            } else if let Some(place) = self.next_request(number) {
                if let Some(work) = self.units[number].requests.remove(place) {
                    self.handle_queued(number, work);
                }
            } else {
                break;
            }
        }
        self.wake(number);
    }

    /// Returns the message of an input, if it is one.
    fn message(&self, work: Work) -> Option<Message> {
        match work {
            Work::Message(index) => Some(self.messages[index]),
            _ => None,
        }
    }

    /// Handles an input that was queued.
    fn handle_queued(&mut self, number: usize, work: Work) {
        let message = self.message(work);
        let line = match work {
            Work::Message(index) => self.messages[index].line,
            Work::Read(line) | Work::Written(line) | Work::Local(line, _) | Work::Unlock(line) => {
                line
            }
        };
        self.handle_next(number, work, line, message.as_ref());
    }

    /// Handles an input, unless an earlier one of the same order waits.
    #[inline(always)]
    fn handle_next(&mut self, number: usize, work: Work, line: Line, message: Option<&Message>) {
        match message {
            Some(message) if self.overtakes(number, message) => {
                self.stall_input(number, work, line)
            }
            _ => self.handle(number, work, line, message),
        }
    }

    /// Handles an input that has no predecessor to wait for.
    fn handle(&mut self, number: usize, work: Work, line: Line, message: Option<&Message>) {
        let local = |program, event| Self::local_input(program, event, HOME);
        let input = match (work, message) {
            (_, Some(message)) => Self::input(message),
            (Work::Written(_), _) => local(&self.home, Event::MemoryDone),
            (Work::Local(_, operation), _) => local(&self.home, Event::Local(operation)),
            (Work::Unlock(_), _) => local(&self.home, Event::Unlock),
            _ => {
                let choice = self.choose();
                local(&self.home, Event::MemoryData(choice))
            }
        };
        let configuration = self.directory.get(line);
        let transition = if self.above.is_none() {
            self.home_step(line, configuration, &input)
        } else if self.must_wait_for_above(line, message) {
            self.counters.stall(Stall::Left);
            return self.stall_input(number, work, line);
        } else {
            self.step_below(line, configuration, &input)
        };
        if transition.answer == Answer::Take {
            if let Some(slot) = self.missing_slot(number, line, &transition) {
                self.counters.stall(Stall::UnitSlot);
                return self.wait_for(number, work, line, slot);
            }
        }
        let taken = matches!(transition.answer, Answer::Take | Answer::Fault);
        if taken && self.waits_for_room(HOME, line, &transition, message) {
            return self.stall_input(number, work, line);
        }
        let occupancy = match work {
            Work::Read(_) | Work::Written(_) => self.times.resume_occupancy,
            _ => self.times.occupancy,
        };
        let unit = &mut self.units[number];
        unit.free_at = self.now + occupancy;
        unit.occupied += occupancy;
        // An operation of the device also waits where the home has no row for it.
        let asked = matches!(work, Work::Local(..) | Work::Unlock(_));
        match transition.answer {
            Answer::Take => {}
            Answer::Leave | Answer::Unexpected if asked || transition.answer == Answer::Leave => {
                self.counters.stall(Stall::Left);
                return self.stall_input(number, work, line);
            }
            Answer::Refuse
                if matches!(work, Work::Local(..))
                    && self.behind.is_none()
                    && self.above.is_none() =>
            {
                return self.refused();
            }
            _ => return self.unexpected(work, line, &input, &transition),
        }
        self.take(number, work, line, message, configuration, &transition);
    }

    /// Chooses among the grants that the home may give.
    fn choose(&mut self) -> u8 {
        match self.home.choices() {
            0 | 1 => 0,
            choices => self.random.below(choices.into()) as u8,
        }
    }

    /// True if an earlier message of the same order waits, or if one that the declared order puts before it is still in
    /// flight.
    #[inline(always)]
    fn overtakes(&self, number: usize, message: &Message) -> bool {
        let kind = &self.kinds[message.kind.index()];
        let group = kind.group;
        let mut waiting = self.units[number].set_aside();
        group.is_some()
            && (self.earlier.holds_back(kind, message)
                || waiting.any(|&(other, line)| match other {
                    Work::Message(other) if line == message.line => {
                        let other = &self.messages[other];
                        other.sender() == message.sender()
                            && self.kinds[other.kind.index()].group == group
                            && is_earlier(other.flight, message.flight)
                    }
                    _ => false,
                }))
    }

    /// Stalls an input until its line changes, if there is room for it outside the queue.
    fn stall_input(&mut self, number: usize, work: Work, line: Line) {
        let full = self.units[number].left.len() as u64 >= self.platform.home.waiting.value;
        if full && self.is_bounded(work) {
            return self.block_request(number, work);
        }
        self.dequeue_to_wait(work);
        self.aside(work, Step::LineAtHome);
        self.units[number].left.push((work, line));
    }

    /// Makes an input wait for a slot, if there is room for it outside the queue.
    fn wait_for(&mut self, number: usize, work: Work, line: Line, slot: Slot) {
        let most = self.platform.home.pending.value as usize;
        let waiting = &self.units[number].waiting;
        // Responses are not counted. The first test is a fast path: requests and responses together are rarely that
        // many.
        let full = waiting.iter().map(VecDeque::len).sum::<usize>() >= most && {
            let all = waiting.iter().flatten();
            all.filter(|(work, _)| self.is_request(*work)).count() >= most
        };
        if full && self.is_bounded(work) {
            return self.block_request(number, work);
        }
        self.dequeue_to_wait(work);
        self.aside(work, slot.step());
        self.units[number].waiting[slot as usize].push_back((work, line));
    }

    /// Keeps a request, for which there is no room to wait, at the head of its queue; it stops the bounded requests
    /// behind it.
    fn block_request(&mut self, number: usize, work: Work) {
        self.counters.stall(Stall::WaitingFull);
        let unit = &mut self.units[number];
        unit.requests.push_front(work);
        unit.blocked = true;
    }

    /// Removes an input from its queue to wait. A message frees its place in the circuit.
    fn dequeue_to_wait(&mut self, work: Work) {
        if let Work::Message(index) = work {
            self.dequeue_from_circuit(index);
        }
    }

    /// Records the reason for which an input waits from now on.
    fn aside(&mut self, work: Work, step: Step) {
        if let (true, Work::Message(index)) = (self.watched, work) {
            self.note_deferred(index, step);
        }
    }

    /// Returns the slot that a transition needs and its unit has not free.
    #[inline]
    fn missing_slot(&self, number: usize, line: Line, transition: &Transition) -> Option<Slot> {
        let unit = &self.units[number];
        if transition.reads && !unit.is_free(Slot::Read) {
            Some(Slot::Read)
        } else if transition.writes && !unit.is_free(Slot::Write) {
            Some(Slot::Write)
        } else if transition.forwards
            && unit.forwards > 0
            && unit.forwarding != line
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
        let number = self.unit_of(line);
        self.take(number, work, line, message, before, transition);
    }

    /// Applies a transition.
    #[inline(always)]
    fn take(
        &mut self,
        number: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
        before: ConfigurationId,
        transition: &Transition,
    ) {
        self.commit_registers(HOME, line);
        let mut next = None;
        if let (Work::Message(index), Some(message)) = (work, message) {
            next = self.take_message(index, message);
        }
        if self.watched {
            self.note_work(work, line, message);
        }
        if let (Work::Local(line, local), None, None) = (work, &self.behind, &self.above) {
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
        if let (Work::Unlock(line), Some(above)) = (work, &mut self.above) {
            above.begin_unlock(line);
        }
        if let Some(message) = message {
            let kind = &self.kinds[message.kind.index()];
            let unit = &mut self.units[number];
            if kind.class == Some(Class::Answer) && unit.forwards > 0 && unit.forwarding == line {
                unit.forwards -= 1;
            }
            if kind.store && self.home.stores_later {
                unit.stores.push(Store::of(message, kind));
            }
        }
        if transition.next != before {
            self.directory.set(line, transition.next);
            if self.behind.is_some() {
                self.changed(line, before, transition.next);
            }
        }
        for act in transition.acts() {
            let act = self.home.act(act);
            self.act(number, work, line, message, act, transition);
        }
        if let Some(message) = message {
            let kind = &self.kinds[message.kind.index()];
            let keeps = |act| {
                let act = self.home.act(act);
                matches!(act, Act::WriteMemory | Act::SetAside)
            };
            let dropped = kind.store && !self.home.stores_later && !transition.acts().any(keeps);
            if kind.line || dropped {
                self.data.release(message.copy);
            }
            if dropped && !self.has_outstanding_store(message.from, line) {
                let name = self.agent_name(message.from);
                let text = format!("a store that {name} has completed is not performed");
                self.fail(self.oracle.store_property(), line, text);
            }
        }
        if self.watched {
            self.note_state(HOME, line, transition.next);
        }
        self.return_waiting_inputs(number, line);
        if let Some(next) = next {
            self.return_waiting_inputs(self.unit_of(next), next);
        }
    }

    /// Returns inputs that wait for the line to the heads of the queues.
    #[inline(always)]
    pub(crate) fn return_waiting_inputs(&mut self, number: usize, line: Line) {
        let of_line = |&(_, its_line): &(Work, Line)| its_line == line;
        if self.units[number].set_aside().any(of_line) {
            self.release(number, line);
        }
        // A stopped request may find room now, or may concern this line.
        self.units[number].blocked = false;
        self.wake(number);
    }

    /// Returns all stalled inputs of a unit to the heads of the queues.
    pub(crate) fn return_stalled_inputs(&mut self, number: usize) {
        let mut lines: Vec<Line> = self.units[number].left.iter().map(|left| left.1).collect();
        lines.dedup();
        for line in lines {
            self.return_waiting_inputs(number, line);
        }
    }

    /// Returns all inputs that wait for a line together: none may overtake its predecessors.
    fn release(&mut self, number: usize, line: Line) {
        let unit = &mut self.units[number];
        // In one order, inputs that wait for a slot came before those that were stalled behind them.
        let mut released = Vec::new();
        for waiting in &mut unit.waiting {
            released.extend(waiting.iter().filter(|entry| entry.1 == line));
            waiting.retain(|entry| entry.1 != line);
        }
        released.extend(unit.left.extract_if(.., |entry| entry.1 == line));
        for &(work, _) in released.iter().rev() {
            self.aside(work, Step::Unit);
            match self.is_request(work) {
                true => self.units[number].requests.push_front(work),
                false => self.units[number].responses.push_front(work),
            }
        }
    }

    /// True if an input belongs to the queue of requests.
    #[inline]
    fn is_request(&self, work: Work) -> bool {
        match work {
            Work::Message(index) => self.kinds[self.messages[index].kind.index()].request,
            work => matches!(work, Work::Local(..)),
        }
    }

    /// True if an input may be stopped. Messages of an order may not: a request may wait for one of their successors.
    fn is_bounded(&self, work: Work) -> bool {
        match work {
            Work::Message(index) => {
                let kind = &self.kinds[self.messages[index].kind.index()];
                kind.request && kind.group.is_none()
            }
            _ => false,
        }
    }

    /// Executes one act of the home.
    #[inline(always)]
    fn act(
        &mut self,
        number: usize,
        work: Work,
        line: Line,
        message: Option<&Message>,
        act: Act,
        transition: &Transition,
    ) {
        let latency = match work {
            Work::Read(_) | Work::Written(_) => self.times.resume,
            _ => self.times.latency,
        };
        let ready = self.now + latency;
        match act {
            Act::Send {
                message: kind,
                to,
                fields,
            } => {
                let about = self.kinds[kind.index()];
                let forward = about.class == Some(Class::Forward);
                let (mut copy, mut ready) = (Copy::UNTOUCHED, ready);
                if about.line {
                    copy = self.data.memory(line);
                    self.data.share(copy);
                    self.check_single_use(line, kind.index(), copy);
                    if !matches!(work, Work::Read(_)) {
                        if about.used_once {
                            self.check_memory_read(line);
                        }
                        // Memory is accessed without a delay in the controller's terms. Its latency is added here.
                        ready = self.operate(ready, line);
                    }
                }
                if forward && self.answers {
                    let unit = &mut self.units[number];
                    unit.forwards += 1;
                    unit.forwarding = line;
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
                    self.units[number].reading += 1;
                    self.read_memory(ready, line, transition);
                }
            }
            Act::StartWrite => {
                self.write_back(line, message);
                self.start_write(number, ready, line, transition, None);
            }
            Act::StartStore { whole } => {
                let words = self.store(number, line, Some(whole));
                self.start_write(number, ready, line, transition, words);
            }
            Act::WriteMemory => {
                self.operate(ready, line);
                match message {
                    Some(message) if self.kinds[message.kind.index()].store => {
                        let store = Store::of(message, &self.kinds[message.kind.index()]);
                        self.perform_store(store, store.whole);
                    }
                    _ => self.write_back(line, message),
                }
            }
            Act::SetAside => self.set_aside(number, line, message),
            Act::WriteAside => {
                self.operate(ready, line);
                self.store(number, line, None);
            }
            Act::Acknowledge(_) if self.take_directory_eviction(line) => {}
            Act::Acknowledge(local) => self.acknowledged(line, local),
            Act::Unlocked if self.above.is_some() => self.handle_unlock_below(line),
            Act::Unlocked if self.behind.is_some() => {}
            Act::Unlocked => {
                self.device.current = None;
                self.schedule_next_operation();
            }
            Act::Done | Act::Every { .. } => {
                self.fail(
                    FailureKind::Meaningless,
                    line,
                    "the home executes an action that only a cache can execute".into(),
                );
            }
        }
    }

    #[cold]
    fn unexpected(&mut self, work: Work, line: Line, input: &Input, transition: &Transition) {
        let what = match work {
            Work::Message(index) => self.message_text(&self.messages[index]),
            _ => format!("{:?}", self.home.event(input.code)),
        };
        let state = self.state_text(HOME, line, self.directory.get(line));
        let name = self.agent_name(HOME);
        let text = match transition.answer {
            Answer::Fault => self.home.fault(&name, &self.protocol_messages, transition),
            _ => format!("{name} has no rule for {what} in {state}"),
        };
        if let Work::Message(index) = work {
            let message = self.messages[index];
            self.note_receive(&message);
        }
        self.fail(FailureKind::UnexpectedMessage, line, text);
    }

    #[cold]
    fn note_work(&mut self, work: Work, line: Line, message: Option<&Message>) {
        self.note_taken_at_home(work, line, message);
        if !self.traced(line) {
            return;
        }
        let what = match (work, message) {
            (_, Some(message)) => return self.note_receive(message),
            (Work::Read(_), _) => "takes the memory's data".to_string(),
            (Work::Written(_), _) => "hears that memory is done".to_string(),
            (Work::Local(_, local), _) => {
                format!(
                    "takes {}",
                    self.home.controller().locals[local as usize].name
                )
            }
            _ => "takes the unlock".to_string(),
        };
        self.note(HOME, line, Action::Does { what });
    }
}

//! The home: serial units that execute the protocol's home controller.
//!
//! A line belongs to one unit. A unit handles one input at a time, responses before requests, and each
//! occupies it for a while. Meanwhile up to one memory read and one memory write (or as many as the platform says) and
//! one coherence transaction of the unit are in flight; an input that would start a further one waits for that slot.
//! To wait so occupies nothing. Who came first gets the slot when it is free and the unit, too.
//! A request that the controller leaves makes way for others, and is presented again when its line has moved on.
//! Both kinds of waiting have a bound, beyond which channels of requests stop; all others go on.

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
use crate::simulation::earlier::is_earlier;
use crate::simulation::{Event as KernelEvent, Kind, Pending, Purpose, Simulation};
use crate::statistics::Stall;

/// Something a unit has to handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A message, by its number.
    Message(u32),
    /// Memory has read the line.
    Read(Line),
    /// Memory has written the line.
    Written(Line),
    /// The device's local operation.
    Local(Line, u8),
    /// The device gives its lock back.
    Unlock(Line),
}

/// What a unit has one of, or few.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    /// Its memory write. Responses wait for it, so it comes first.
    Write,
    /// Its coherence transaction.
    Forward,
    /// Its memory read.
    Read,
}

impl Slot {
    /// To wait for it.
    fn step(self) -> Step {
        match self {
            Slot::Write => Step::WriteSlot,
            Slot::Forward => Step::ForwardSlot,
            Slot::Read => Step::ReadSlot,
        }
    }
}

const SLOTS: [Slot; 3] = [Slot::Write, Slot::Forward, Slot::Read];

/// The bytes of a non-caching write, from its request's being taken until memory takes them.
#[derive(Clone, Copy, Debug)]
struct Store {
    line: Line,
    copy: Copy,
    word: u16,
    words: u16,
    from: Agent,
    /// The number of its message.
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
    /// For how long it has handled inputs.
    pub(crate) occupied: Time,
    /// Whether an event that looks at the queues is on its way.
    awake: bool,
    responses: VecDeque<Work>,
    requests: VecDeque<Work>,
    /// Whether the first request that may be stopped found no room to wait.
    blocked: bool,
    /// What the controller leaves until its line has moved on, in order of arrival.
    left: Vec<(Work, Line)>,
    /// What waits for each slot, in order of arrival.
    waiting: [VecDeque<(Work, Line)>; 3],
    stores: Vec<Store>,
    /// Memory reads and writes in flight, and how many there may be.
    reading: u32,
    reads: u32,
    writing: u32,
    writes: u32,
    /// Forwards without an answer yet, and their line.
    forwards: u32,
    forwarding: Line,
}

impl Unit {
    /// An idle unit.
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

    /// A free slot for which something waits.
    #[inline]
    fn ready(&self) -> Option<Slot> {
        let mut slots = SLOTS.into_iter();
        slots.find(|&slot| self.is_free(slot) && !self.waiting[slot as usize].is_empty())
    }

    /// All that waits.
    fn set_aside(&self) -> impl Iterator<Item = &(Work, Line)> {
        self.left.iter().chain(self.waiting.iter().flatten())
    }
}

/// The unit that a line belongs to.
#[inline]
pub(crate) fn unit_of(units: &[Unit], line: Line) -> usize {
    // The bits that choose the slice, and above them those that choose its unit.
    line as usize & (units.len() - 1)
}

impl Simulation {
    #[inline]
    pub(crate) fn unit_of(&self, line: Line) -> usize {
        unit_of(&self.units, line)
    }

    /// A message reaches the home.
    #[inline(always)]
    pub(crate) fn arrive_home(&mut self, index: u32, message: &Message) {
        if self.clocked.is_some() {
            return self.give_message(index);
        }
        let number = self.unit_of(message.line);
        let request = self.kinds[message.kind.index()].request;
        let work = Work::Message(index);
        self.present(number, work, message.line, Some(message), request);
    }

    /// Memory has read a line. The unit may start another read at once.
    #[inline(always)]
    pub(crate) fn memory_read(&mut self, line: Line) {
        if self.clocked.is_some() {
            return self.give_memory(line, Work::Read(line));
        }
        self.check_reading(line);
        let number = self.unit_of(line);
        self.units[number].reading -= 1;
        self.present(number, Work::Read(line), line, None, false);
        self.wake(number);
    }

    /// Memory has written a line. The unit may start another write at once.
    #[inline]
    pub(crate) fn memory_written(&mut self, line: Line) {
        if self.clocked.is_some() {
            return self.give_memory(line, Work::Written(line));
        }
        let number = self.unit_of(line);
        self.units[number].writing -= 1;
        self.present(number, Work::Written(line), line, None, false);
        self.wake(number);
    }

    /// Work for a unit: handled at once if it is idle, queued otherwise.
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

    /// Sees to it that a unit with something to do looks for it once it is free.
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

    /// The place of the next request in its queue. Where requests that may be stopped are, the others pass them.
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

    /// A unit looks for what it has to do: responses, then what waited for a slot that is free, then requests.
    pub(crate) fn unit(&mut self, number: usize) {
        self.units[number].awake = false;
        // What has to wait for a slot takes no time.
        while self.units[number].free_at <= self.now {
            let unit = &mut self.units[number];
            if let Some(work) = unit.responses.pop_front() {
                self.handle_queued(number, work);
            } else if let Some(slot) = unit.ready() {
                // What is of one order with it came after it.
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

    /// The message that work is about, if it is about one.
    fn message(&self, work: Work) -> Option<Message> {
        match work {
            Work::Message(index) => Some(self.messages[index]),
            _ => None,
        }
    }

    /// A unit handles an input that was in a queue.
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

    /// A unit handles an input, unless an earlier one of the same order waits.
    #[inline(always)]
    fn handle_next(&mut self, number: usize, work: Work, line: Line, message: Option<&Message>) {
        match message {
            Some(message) if self.overtakes(number, message) => self.leave(number, work, line),
            _ => self.handle(number, work, line, message),
        }
    }

    /// A unit handles an input that has to wait for no other.
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
        } else if self.waits_for_above(line, message) {
            self.counters.stall(Stall::Left);
            return self.leave(number, work, line);
        } else {
            self.step_below(line, configuration, &input)
        };
        if transition.answer == Answer::Take {
            if let Some(slot) = self.lacks_slot(number, line, &transition) {
                self.counters.stall(Stall::UnitSlot);
                return self.wait_for(number, work, line, slot);
            }
        }
        let taken = matches!(transition.answer, Answer::Take | Answer::Fault);
        if taken && self.waits_for_room(HOME, line, &transition, message) {
            return self.leave(number, work, line);
        }
        let occupancy = match work {
            Work::Read(_) | Work::Written(_) => self.times.resume_occupancy,
            _ => self.times.occupancy,
        };
        let unit = &mut self.units[number];
        unit.free_at = self.now + occupancy;
        unit.occupied += occupancy;
        // What the device asks for waits where the home has no row for it, too.
        let asked = matches!(work, Work::Local(..) | Work::Unlock(_));
        match transition.answer {
            Answer::Take => {}
            Answer::Leave | Answer::Unexpected if asked || transition.answer == Answer::Leave => {
                self.counters.stall(Stall::Left);
                return self.leave(number, work, line);
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

    /// Which of the grants that the home may choose among.
    fn choose(&mut self) -> u8 {
        match self.home.choices() {
            0 | 1 => 0,
            choices => self.random.below(choices.into()) as u8,
        }
    }

    /// Whether an earlier message of the same order waits, or one that this one stays behind has not come yet.
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

    /// Work waits until its line has moved on, if there is room for it beside the queue.
    fn leave(&mut self, number: usize, work: Work, line: Line) {
        let full = self.units[number].left.len() as u64 >= self.platform.home.waiting.value;
        if full && self.is_bounded(work) {
            return self.stop(number, work);
        }
        self.leaves_queue(work);
        self.aside(work, Step::LineAtHome);
        self.units[number].left.push((work, line));
    }

    /// Work waits for a slot, if there is room for it beside the queue.
    fn wait_for(&mut self, number: usize, work: Work, line: Line, slot: Slot) {
        let most = self.platform.home.pending.value as usize;
        let waiting = &self.units[number].waiting;
        // Responses are no requests, but mostly there are not so many of both.
        let full = waiting.iter().map(VecDeque::len).sum::<usize>() >= most && {
            let all = waiting.iter().flatten();
            all.filter(|(work, _)| self.is_request(*work)).count() >= most
        };
        if full && self.is_bounded(work) {
            return self.stop(number, work);
        }
        self.leaves_queue(work);
        self.aside(work, slot.step());
        self.units[number].waiting[slot as usize].push_back((work, line));
    }

    /// A request finds no room beside its queue, so that it stays at its head and stops those that come after it.
    fn stop(&mut self, number: usize, work: Work) {
        self.counters.stall(Stall::WaitingFull);
        let unit = &mut self.units[number];
        unit.requests.push_front(work);
        unit.blocked = true;
    }

    /// Work leaves its queue and waits; a message gives its place in the circuit to the next.
    fn leaves_queue(&mut self, work: Work) {
        if let Work::Message(index) = work {
            self.leaves_circuit(index);
        }
    }

    /// Work waits for something else from now on.
    fn aside(&mut self, work: Work, step: Step) {
        if let (true, Work::Message(index)) = (self.watched, work) {
            self.note_aside(index, step);
        }
    }

    /// What a transition needs of its unit that is in use.
    #[inline]
    fn lacks_slot(&self, number: usize, line: Line, transition: &Transition) -> Option<Slot> {
        let unit = &self.units[number];
        if transition.reads && !unit.is_free(Slot::Read) {
            Some(Slot::Read)
        } else if transition.writes && !unit.is_free(Slot::Write) {
            Some(Slot::Write)
        } else if transition.forwards
            && unit.forwards > 0
            && unit.forwarding != line
            // The answer may lie behind this message in an input queue.
            && self.input_queues.is_empty()
        {
            Some(Slot::Forward)
        } else {
            None
        }
    }

    /// Carries a transition out that a clocked home has taken.
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

    /// Carries a transition out.
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
        self.takes_registers(HOME, line);
        let mut next = None;
        if let (Work::Message(index), Some(message)) = (work, message) {
            next = self.take_message(index, message);
        }
        if self.watched {
            self.note_work(work, line, message);
        }
        if let (Work::Local(line, local), None, None) = (work, &self.behind, &self.above) {
            if !self.makes_room(line) {
                self.device.current = Some(Operation {
                    line,
                    local,
                    locked: false,
                });
            }
        }
        // From now on the device no longer uses the line.
        if let (Work::Unlock(line), Some(current)) = (work, &mut self.device.current) {
            current.locked &= current.line != line;
        }
        if let (Work::Unlock(line), Some(above)) = (work, &mut self.above) {
            above.gives_back(line);
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
            if dropped && !self.waits_for_its_store(message.from, line) {
                let name = self.agent_name(message.from);
                let text = format!("a store that {name} takes for done is not performed");
                self.fail(self.oracle.of_stores(), line, text);
            }
        }
        if self.watched {
            self.note_state(HOME, line, transition.next);
        }
        self.present_again(number, line);
        if let Some(next) = next {
            self.present_again(self.unit_of(next), next);
        }
    }

    /// What waited for the line goes back to the heads of the queues.
    #[inline(always)]
    pub(crate) fn present_again(&mut self, number: usize, line: Line) {
        let of_line = |&(_, its_line): &(Work, Line)| its_line == line;
        if self.units[number].set_aside().any(of_line) {
            self.release(number, line);
        }
        // Should a request have found no room to wait: there may be some now, or it may be one for this line.
        self.units[number].blocked = false;
        self.wake(number);
    }

    /// What the controller left in a unit goes back to the heads of the queues, whatever its line.
    pub(crate) fn present_all_again(&mut self, number: usize) {
        let mut lines: Vec<Line> = self.units[number].left.iter().map(|left| left.1).collect();
        lines.dedup();
        for line in lines {
            self.present_again(number, line);
        }
    }

    /// All that waits for a line goes back together: nothing may overtake what it came after.
    fn release(&mut self, number: usize, line: Line) {
        let unit = &mut self.units[number];
        // Of one order, what waits for a slot came before what was left behind it.
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

    /// Whether work keeps to the queue of requests.
    #[inline]
    fn is_request(&self, work: Work) -> bool {
        match work {
            Work::Message(index) => self.kinds[self.messages[index].kind.index()].request,
            work => matches!(work, Work::Local(..)),
        }
    }

    /// Whether work may be stopped. Messages of an order may not, as what they follow may be what a request waits for.
    fn is_bounded(&self, work: Work) -> bool {
        match work {
            Work::Message(index) => {
                let kind = &self.kinds[self.messages[index].kind.index()];
                kind.request && kind.group.is_none()
            }
            _ => false,
        }
    }

    /// One act of the home.
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
                    self.check_used_once(line, kind.index(), copy);
                    if !matches!(work, Work::Read(_)) {
                        if about.used_once {
                            self.check_reading(line);
                        }
                        // Memory that acts at once, in the controller's terms: its time passes here.
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
                    // From one home to another.
                    word: self.home_of(line) as u16,
                    words: 0,
                    fields,
                    credit: false,
                    flight: 0,
                };
                self.departs(message, ready);
            }
            Act::StartRead => {
                if !self.reads_later(line, transition) {
                    self.units[number].reading += 1;
                    self.read_memory(ready, line, transition);
                }
            }
            Act::StartWrite => {
                self.write_back(line, message);
                self.start_write(number, ready, line, transition, None);
            }
            Act::StartStore { whole } => {
                let word = self.store(number, line, Some(whole));
                self.start_write(number, ready, line, transition, word);
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
            Act::Acknowledge(_) if self.ends_own_operation(line) => {}
            Act::Acknowledge(local) => self.acknowledged(line, local),
            Act::Unlocked if self.above.is_some() => self.unlocked_below(line),
            Act::Unlocked if self.behind.is_some() => {}
            Act::Unlocked => {
                self.device.current = None;
                self.ask_later();
            }
            Act::Done | Act::Every { .. } => {
                self.fail(
                    FailureKind::Meaningless,
                    line,
                    "the home does what only a cache can".into(),
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

//! The observer of a run: latency breakdown, timeline and trace. It does not affect simulated behaviour.
//!
//! Components report facts through [`Context::observe`]. A run without an observer tests one flag for each fact.

use super::deferred_memory::{Completion, Operation};
use super::*;
use crate::agents::program::ConfigurationId;
use crate::attribution::Chain;
use crate::attribution::{Contended, MessageRecord, Step, Transaction};
use crate::message::Work;
use crate::timeline::Count;
use cohkit_dram::{Controller, UncontendedOp};

/// Recorders of a run, each if requested.
pub(crate) struct Observer {
    /// True if anything is recorded: a single test before all recorders.
    pub enabled: bool,
    /// Latency breakdown, and the timeline.
    pub attribution: Option<Box<Attribution>>,
    /// Steps on the traced line, for a failure or a complete trace.
    pub trace: Option<Trace>,
    /// Line that is traced, or [`Line::MAX`] for none.
    traced_line: Line,
    /// True if all lines are traced.
    traces_all_lines: bool,
}

impl Observer {
    /// Creates the observer of a run that traces a line, if one is given.
    pub fn new(traced_line: Option<Line>) -> Observer {
        Observer {
            enabled: traced_line.is_some(),
            attribution: None,
            trace: traced_line.map(|_| Trace::default()),
            traced_line: traced_line.unwrap_or(Line::MAX),
            traces_all_lines: false,
        }
    }

    /// True if anything is recorded.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Records every event on the traced line, or on all lines.
    pub fn record_full_trace(&mut self, all_lines: bool) {
        self.trace = Some(Trace::new_complete());
        self.traces_all_lines = all_lines;
    }

    /// True if all lines are traced.
    pub fn traces_all_lines(&self) -> bool {
        self.traces_all_lines
    }

    /// Records that a message has received a credit, and is ready at `ready`.
    #[cold]
    pub fn record_credit(&mut self, now: Time, message: &Message, ready: Time) {
        let Some(attribution) = &mut self.attribution else {
            return;
        };
        if let Some(mut record) = attribution.messages.get(message.flight) {
            let kind = Some(message.kind.0);
            record.chain = attribution.extend_chain(record.chain, ready.max(now), Step::Room, kind);
            attribution.messages.insert(message.flight, record);
        }
    }

    /// True if steps of this line are traced.
    #[inline]
    pub fn is_traced(&self, line: Line) -> bool {
        self.traced_line == line || self.traces_all_lines
    }
}

/// Latencies of the links on which a message has arrived at its receiver or at the switch.
#[derive(Clone, Copy)]
pub(crate) struct PathTimes {
    /// True at the receiver, false at the switch.
    pub at_receiver: bool,
    /// True if the machine has a switch.
    pub is_switched: bool,
    /// Serialisation and wire latency without contention, in picoseconds.
    pub uncontended: (Time, Time),
    /// True if delays on the links are random.
    pub is_random: bool,
}

/// A fact about a run. Accesses and messages are given by their index in their pool, or by value after their removal.
pub(crate) enum Fact<'f> {
    /// A message has been sent; it is ready at a time that is not in the past.
    Sent { message: &'f Message, ready: Time },
    /// A message has arrived at its receiver or at the switch.
    Arrived { index: u32, path: PathTimes },
    /// A message waits outside its queue at its receiver, or returns to the queue.
    Deferred { index: u32, step: Step },
    /// The home takes an input.
    TakenAtHome {
        work: Work,
        line: Line,
        message: Option<&'f Message>,
    },
    /// A cache takes a message.
    TakenByCache { message: &'f Message },
    /// State of a line in an agent that has consumed a message or other work.
    State {
        agent: Agent,
        line: Line,
        configuration: ConfigurationId,
        /// True if the text depends on registers besides the configuration.
        has_registers: bool,
        text: &'f dyn Fn() -> String,
    },
    /// An access has reached its cache, for the first time or again.
    Reached { access: u32, is_translated: bool },
    /// An access waits at its core, behind the write buffer.
    WaitsAtCore { access: u32 },
    /// An access has found its set full.
    WaitsForWay { access: u32 },
    /// An access has started a transaction.
    Begun { access: u32, from: ConfigurationId },
    /// An access has been performed in front of its cache.
    CompletedAtCore {
        index: u32,
        access: &'f Pending,
        done: Time,
    },
    /// An access has completed at its cache, or the protocol does not have it.
    Completed {
        index: u32,
        access: &'f Pending,
        hit: bool,
        performed: bool,
    },
    /// The page table does not permit an access.
    Refused { access: &'f Pending },
    /// Memory operates on a line for a unit that was ready at `ready`, until `end`.
    MemoryOperation {
        line: Line,
        ready: Time,
        end: Time,
        uncontended: UncontendedOp,
    },
    /// A unit has started the memory operation, and receives its completion.
    OperationStarted { line: Line, write: bool },
}

impl Context<'_> {
    /// Reports a fact to the observer.
    #[inline(always)]
    pub fn observe(&mut self, fact: Fact) {
        if self.observer.is_enabled() {
            self.record(fact);
        }
    }

    /// Passes a fact to the method that records it.
    #[cold]
    #[inline(never)]
    fn record(&mut self, fact: Fact) {
        match fact {
            Fact::Sent { message, ready } => self.note_send(message, ready),
            Fact::Arrived { index, path } => self.note_arrived(index, path),
            Fact::Deferred { index, step } => self.note_deferred(index, step),
            Fact::TakenAtHome {
                work,
                line,
                message,
            } => self.note_work(work, line, message),
            Fact::TakenByCache { message } => self.note_taken_by_cache(message),
            Fact::State {
                agent,
                line,
                configuration,
                has_registers,
                text,
            } => self.note_state((agent, line), configuration, has_registers, text),
            Fact::Reached {
                access,
                is_translated,
            } => self.note_reached(access, is_translated),
            Fact::WaitsAtCore { access } => self.note_waits_at_core(access),
            Fact::WaitsForWay { access } => self.note_waiting_for_way(access),
            Fact::Begun { access, from } => self.note_begun(access, from),
            Fact::CompletedAtCore {
                index,
                access,
                done,
            } => self.note_done_at_core(index, access, done),
            Fact::Completed {
                index,
                access,
                hit,
                performed,
            } => self.note_finished(index, access, hit, performed),
            Fact::Refused { access } => self.note_refused(access),
            Fact::MemoryOperation {
                line,
                ready,
                end,
                uncontended,
            } => self.note_memory_operation(line, (ready, end), &uncontended),
            Fact::OperationStarted { line, write } => self.note_operation(line, write),
        }
    }

    /// Records the state of a line in an agent after it has consumed a message or other work.
    fn note_state(
        &mut self,
        (agent, line): (Agent, Line),
        configuration: ConfigurationId,
        has_registers: bool,
        text: &dyn Fn() -> String,
    ) {
        let (now, number) = (self.local.now, self.tables.agent_number(agent, line));
        // The description of a configuration is cached. A configuration excludes registers, so descriptions with
        // registers are not.
        let key = (!has_registers).then_some((agent == HOME, configuration));
        let attribution = self.observer.attribution.as_mut();
        if let Some(timeline) = attribution.and_then(|attribution| attribution.timeline.as_mut()) {
            timeline.record_state(number, line, key, text, now);
        }
        if self.is_traced(line) {
            self.note(agent, line, Action::Becomes { state: text() });
        }
    }

    /// Records that an access has reached its cache, for the first time or again.
    fn note_reached(&mut self, index: u32, is_translated: bool) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let access = &self.local.accesses[index];
        let request = self.tables.groups.of_cache(access.cache).request;
        let recorded = attribution.accesses.get(index);
        let mut active = recorded.unwrap_or_else(|| attribution.new_access(access.issued));
        attribution.end_contention(active.contended.take(), now);
        if active.reached {
            let step = match active.begin_configuration {
                Some(_) if active.wait_step == Step::LineAtCache => Step::Again,
                _ => active.wait_step,
            };
            active.chain = attribution.extend_chain(active.chain, now, step, None);
        } else {
            let wait_step = match recorded {
                Some(active) => active.wait_step,
                None if is_translated => Step::Translation,
                None => Step::IssueSlot,
            };
            active.chain =
                attribution.extend_chain(active.chain, now - request.min(now), wait_step, None);
            active.chain = attribution.extend_chain(active.chain, now, Step::ToCache, None);
        }
        active.reached = true;
        active.wait_step = Step::LineAtCache;
        attribution.accesses.insert(index, active);
        attribution.set_cause(event, active.chain, false);
    }

    /// Records that an access waits at its core, behind the write buffer.
    fn note_waits_at_core(&mut self, index: u32) {
        let now = self.local.now;
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        if attribution.accesses.get(index).is_none() {
            let mut active = attribution.new_access(self.local.accesses[index].issued);
            active.chain = attribution.extend_chain(active.chain, now, Step::IssueSlot, None);
            attribution.accesses.insert(index, active);
        }
    }

    /// Records that an access has found its set full.
    fn note_waiting_for_way(&mut self, index: u32) {
        let (now, cache) = (self.local.now, self.local.accesses[index].cache);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let ways = Contended::Ways(cache);
        attribution.begin_contention(ways, now);
        if let Some(active) = attribution.accesses.get_mut(index) {
            (active.wait_step, active.contended) = (Step::Ways, Some(ways));
        }
    }

    /// Records the start of a transaction. A second start in the same configuration means that the first transaction
    /// ended without the permission.
    fn note_begun(&mut self, index: u32, from: ConfigurationId) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let Some(mut active) = attribution.accesses.get(index) else {
            return;
        };
        if active.begin_configuration == Some(from) {
            active.chain = attribution.extend_chain(active.chain, now, Step::Again, None);
            attribution.set_cause(event, active.chain, false);
        }
        active.begin_configuration = Some(from);
        attribution.accesses.insert(index, active);
    }

    /// Records a sent message, which is ready at a time that is not in the past.
    pub fn note_sent(&mut self, message: &Message, ready: Time) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let is_forward = self.tables.kinds[message.kind.index()].class == Some(Class::Forward);
        let unit = self.tables.unit_of(message.line);
        let sender = self
            .tables
            .agent_number(message.from, message.sender_line());
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let (chain, is_response) = attribution.current_cause(event, now);
        let kind = Some(message.kind.0);
        let last_operation = attribution
            .last_operation
            .filter(|(operation_event, _)| *operation_event == event);
        let last_operation = last_operation.filter(|(_, chain)| chain.end == ready && ready > now);
        let chain = match (message.from, last_operation) {
            (HOME, Some((_, last_operation))) => last_operation,
            (HOME, None) => attribution.extend_chain(chain, ready, Step::Handling, kind),
            (_, _) => attribution.extend_chain(chain, ready, Step::ToCache, kind),
        };
        let forward = is_forward || is_response && message.from != HOME;
        let record = MessageRecord {
            chain,
            forward,
            wait_step: None,
            contended: None,
        };
        attribution.messages.insert(message.flight, record);
        if let Some(timeline) = &mut attribution.timeline {
            timeline.record_sent(sender, message, now);
        }
        if is_forward && message.from == HOME {
            let (open_forwards, since) = &mut attribution.forwards[unit];
            if *open_forwards == 0 {
                *since = now;
            }
            *open_forwards += 1;
        }
    }

    /// Records the arrival of a message at its receiver or at the switch.
    fn note_arrived(&mut self, index: u32, path: PathTimes) {
        let (now, message) = (self.local.now, self.local.messages[index]);
        let PathTimes {
            at_receiver,
            is_switched,
            uncontended: (serialisation_time, wire_time),
            is_random,
        } = path;
        let switch_time = self.tables.times.switch;
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let Some(mut record) = attribution.messages.get(message.flight) else {
            return;
        };
        let kind = Some(message.kind.0);
        let (serialise, wire) = match record.forward {
            true => (Step::ForwardSerialise, Step::ForwardWire),
            false => (Step::Serialise, Step::Wire),
        };
        let elapsed = now - record.chain.end.min(now);
        // Random delays count as wire latency.
        let queue_time =
            elapsed.saturating_sub(serialisation_time + wire_time) * u64::from(!is_random);
        let wire_time = match is_random {
            true => elapsed.saturating_sub(serialisation_time),
            false => wire_time.min(elapsed),
        };
        let begin = record.chain.end + queue_time;
        // Links of caches are counted; with a switch there are others.
        let counter = match (message.from, message.to) {
            (HOME, HOME) => None,
            (HOME, _) => at_receiver.then_some(Count::ToCaches),
            _ if is_switched && at_receiver && message.to != HOME => Some(Count::ToCaches),
            _ => (!is_switched || !at_receiver).then_some(Count::FromCaches),
        };
        if let (Some(timeline), Some(counter)) = (&mut attribution.timeline, counter) {
            timeline.add_interval(counter, begin, now - wire_time);
        }
        record.chain = attribution.extend_chain(record.chain, begin, Step::LinkFree, kind);
        record.chain = attribution.extend_chain(record.chain, now - wire_time, serialise, kind);
        record.chain = attribution.extend_chain(record.chain, now, wire, kind);
        if !at_receiver {
            let switch_step = match record.forward {
                true => Step::ForwardWire,
                false => Step::Switch,
            };
            record.chain =
                attribution.extend_chain(record.chain, now + switch_time, switch_step, kind);
        }
        attribution.messages.insert(message.flight, record);
    }

    /// Records that a message waits outside its queue at its receiver, or returns to the queue.
    fn note_deferred(&mut self, index: u32, step: Step) {
        let (now, message) = (self.local.now, self.local.messages[index]);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        if let Some(mut record) = attribution.messages.get(message.flight) {
            let previous_step = record.wait_step.unwrap_or(Step::Unit);
            record.chain =
                attribution.extend_chain(record.chain, now, previous_step, Some(message.kind.0));
            record.wait_step = Some(step);
            attribution.end_contention(record.contended.take(), now);
            if matches!(step, Step::LineAtHome | Step::LineAtCache) {
                let line = Contended::Line(message.line);
                attribution.begin_contention(line, now);
                record.contended = Some(line);
            }
            attribution.messages.insert(message.flight, record);
        }
    }

    /// Records that the home takes an input.
    pub fn note_taken_at_home(&mut self, work: Work, line: Line, message: Option<&Message>) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let unit = self.tables.unit_of(line);
        let home = self.tables.agent_number(HOME, line);
        let default_step = match self.tables.has_clocked_home {
            true => Step::Clocked,
            false => Step::Unit,
        };
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let (chain, kind, step) = match (work, message) {
            (_, Some(message)) => {
                let record = attribution.messages.remove(message.flight);
                if let Some(timeline) = &mut attribution.timeline {
                    timeline.record_taken(home, message, now);
                }
                attribution.end_contention(record.and_then(|record| record.contended), now);
                if self.tables.kinds[message.kind.index()].class == Some(Class::Answer) {
                    let (open_forwards, since) = &mut attribution.forwards[unit];
                    if *open_forwards == 1 {
                        attribution.slots[unit][2] += now - *since;
                    }
                    *open_forwards = open_forwards.saturating_sub(1);
                }
                let step = record
                    .and_then(|record| record.wait_step)
                    .unwrap_or(default_step);
                (
                    record.map(|record| record.chain),
                    Some(message.kind.0),
                    step,
                )
            }
            (Work::Read(_), _) => (attribution.take_operation(line, false), None, default_step),
            (Work::Written(_), _) => (attribution.take_operation(line, true), None, default_step),
            _ => (None, None, default_step),
        };
        let chain = chain.unwrap_or_else(|| attribution.begin(now));
        let chain = attribution.extend_chain(chain, now, step, kind);
        attribution.set_cause(event, chain, false);
    }

    /// Records that a cache takes a message.
    fn note_taken_by_cache(&mut self, message: &Message) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let receiver = self.tables.agent_number(message.to, message.line);
        if let Some(attribution) = &mut self.observer.attribution {
            if let Some(timeline) = &mut attribution.timeline {
                timeline.record_taken(receiver, message, now);
            }
            if let Some(record) = attribution.messages.remove(message.flight) {
                attribution.end_contention(record.contended, now);
                let kind = Some(message.kind.0);
                let chain = attribution.extend_chain(record.chain, now, Step::LineAtCache, kind);
                attribution.set_cause(event, chain, record.forward);
            }
        }
        if self.is_traced(message.line) {
            self.note_receive(message);
        }
    }

    /// Records the components of a memory operation for a unit.
    fn note_memory_operation(
        &mut self,
        line: Line,
        (ready, end): (Time, Time),
        uncontended: &UncontendedOp,
    ) {
        let (to_memory, from_memory) = self.tables.times.path;
        let number = self.tables.home_of(line);
        let (now, event) = (self.local.now, self.tally.counters.events);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let (chain, _) = attribution.current_cause(event, now);
        let chain = attribution.extend_chain(chain, ready, Step::Handling, None);
        let chain = attribution.extend_chain(chain, ready + to_memory, Step::Path, None);
        let queue_time = end.saturating_sub(uncontended.end);
        let chain = attribution.extend_chain(chain, chain.end + queue_time, Step::MemoryBusy, None);
        let chain = attribution.extend_chain(chain, end, Step::Memory, None);
        let chain = attribution.extend_chain(chain, end + from_memory, Step::Path, None);
        attribution.last_operation = Some((event, chain));
        for &(kind, place, time) in uncontended.uses() {
            *attribution.memory.entry((number, kind, place)).or_default() += time;
        }
    }

    /// Returns the steps of the current event's cause until its unit is ready for a memory operation, with latency
    /// breakdown.
    pub fn chain_until(&mut self, ready: Time) -> Option<Chain> {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let attribution = self.observer.attribution.as_mut()?;
        let (chain, _) = attribution.current_cause(event, now);
        Some(attribution.extend_chain(chain, ready, Step::Handling, None))
    }

    /// Extends the steps of a memory operation by its wait for the slice until `ready`, and the path to memory.
    pub fn chain_to_memory(&mut self, chain: Chain, ready: Time, arrival: Time) -> Chain {
        let Some(attribution) = &mut self.observer.attribution else {
            return chain;
        };
        let chain = attribution.extend_chain(chain, ready, Step::ReadSlot, None);
        attribution.extend_chain(chain, arrival, Step::Path, None)
    }

    /// Records the resources that an operation uses in a memory that determines its end at once.
    pub fn note_memory_use(&mut self, line: Line, uncontended: &UncontendedOp) {
        let number = self.tables.home_of(line);
        if let Some(attribution) = &mut self.observer.attribution {
            for &(kind, place, time) in uncontended.uses() {
                *attribution.memory.entry((number, kind, place)).or_default() += time;
            }
        }
    }

    /// Records the resources that an operation uses in a DRAM, whose line is `place`.
    pub fn note_dram_use(&mut self, number: usize, controller: &Controller, place: Line) {
        let (bus, bank) = controller.resources(place);
        let (duration, transfer) = controller.uncontended(place);
        if let Some(attribution) = &mut self.observer.attribution {
            *attribution.memory.entry((number, "bus", bus)).or_default() += transfer;
            let bank_time = duration - controller.latency();
            *attribution
                .memory
                .entry((number, "bank", bank))
                .or_default() += bank_time;
        }
    }

    /// Records the end of a deferred memory operation.
    pub fn note_end_of_operation(&mut self, operation: &Operation, end: Time) {
        let response_latency = self.tables.times.path.1;
        let unit = self.tables.unit_of(operation.line);
        let (Some(chain), Some(attribution)) = (operation.chain, &mut self.observer.attribution)
        else {
            return;
        };
        let (line, write) = (operation.line, operation.write);
        let busy_until = end.saturating_sub(operation.uncontended);
        let cache_end = chain.end + operation.cache_latency;
        let chain = attribution.extend_chain(chain, cache_end, Step::Memory, None);
        let chain = attribution.extend_chain(chain, busy_until, Step::MemoryBusy, None);
        let chain = attribution.extend_chain(chain, end, Step::Memory, None);
        let chain = attribution.extend_chain(chain, end + response_latency, Step::Path, None);
        match operation.completion {
            Completion::Unit(_) => {
                attribution.record_operation(line, write, chain);
                attribution.slots[unit][usize::from(write)] += chain.end - operation.asked;
            }
            Completion::Message(number) => {
                attribution.delayed_messages.insert(number, chain);
            }
            _ => {}
        }
    }

    /// Keeps the cause of a message of the home that waits for an earlier one until it leaves.
    pub fn keep_cause(&mut self, number: u32, ready: Time) {
        let chain = self.chain_until(ready);
        if let (Some(chain), Some(attribution)) = (chain, &mut self.observer.attribution) {
            attribution.delayed_messages.insert(number, chain);
        }
    }

    /// Sets the cause of a delayed message of the home that leaves at `ready`: the read of its line, or the kept cause.
    pub fn resume_message(&mut self, number: u32, ready: Time) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        if let Some(attribution) = &mut self.observer.attribution {
            let Some(chain) = attribution.delayed_messages.remove(&number) else {
                return;
            };
            match chain.end == ready && ready > now {
                true => attribution.last_operation = Some((event, chain)),
                false => attribution.set_cause(event, chain, false),
            }
        }
    }

    /// Records the memory operation that has just started, for the unit that receives its completion.
    fn note_operation(&mut self, line: Line, write: bool) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let unit = self.tables.unit_of(line);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        if let Some((_, chain)) = attribution
            .last_operation
            .filter(|(operation_event, _)| *operation_event == event)
        {
            attribution.record_operation(line, write, chain);
            attribution.slots[unit][usize::from(write)] += chain.end - now;
        }
    }

    /// Records an access that is performed in front of its cache.
    fn note_done_at_core(&mut self, index: u32, access: &Pending, done: Time) {
        let now = self.local.now;
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let chain = match attribution.accesses.remove(index) {
            Some(active) => attribution.extend_chain(active.chain, now, active.wait_step, None),
            None => {
                let chain = attribution.begin(access.issued);
                attribution.extend_chain(chain, now, Step::IssueSlot, None)
            }
        };
        let chain = attribution.extend_chain(chain, done, Step::AtCore, None);
        attribution.record_performed(access.cache, chain, chain, transaction(access, done));
    }

    /// Records an access that has completed at its cache, or that the protocol does not have.
    fn note_finished(&mut self, index: u32, access: &Pending, hit: bool, performed: bool) {
        let (now, event) = (self.local.now, self.tally.counters.events);
        let group = self.tables.groups.of_cache(access.cache);
        let done = now + group.return_latency(access.kind, hit);
        let Some(attribution) = &mut self.observer.attribution else {
            return;
        };
        let Some(active) = attribution.accesses.remove(index) else {
            return;
        };
        attribution.end_contention(active.contended, now);
        let is_counted = matches!(
            access.purpose,
            Purpose::Core | Purpose::Atomic | Purpose::Port
        ) && performed;
        if is_counted {
            let (chain, _) = attribution.current_cause(event, now);
            let end = attribution.extend_chain(chain, done, Step::FromCache, None);
            attribution.record_performed(
                access.cache,
                end,
                active.chain,
                transaction(access, done),
            );
        }
    }
}

/// Creates the record of an access without its segments.
fn transaction(access: &Pending, done: Time) -> Transaction {
    Transaction {
        core: access.core,
        line: access.line,
        access: access.kind,
        issued: access.issued,
        done,
        segments: Vec::new(),
    }
}

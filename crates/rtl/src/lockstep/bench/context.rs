//! State that all parts of a run share: time, random numbers, the lines, and the report.

use super::error::{check_failed, line_failure, Checked};
use super::line::{Bytes, Direction, Line, REMOTE, WORDS};
use super::port_events::{Crossing, PortEvent};
use super::reference::Reference;
use super::run::{Pattern, Report, Run};
use crate::lockstep::model::SLICES;
use crate::lockstep::random::RandomGenerator;
use crate::lockstep::setup::{Check, Setup};
use crate::lockstep::shapes::Endpoint;
use cohkit_base::sequence::{Action, Step};
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::{MessageId, Permission};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of recorded steps of a line's history, unless the complete history is recorded.
const MAX_HISTORY: usize = 60;

/// Time, random numbers, the lines, and the report of a run.
pub(super) struct Context<'a> {
    /// Controllers, ROM and parameters of the home.
    pub reference: Rc<Reference<'a>>,
    /// Parameters of the run.
    pub run: Run,
    /// Random numbers, all derived from the run's seed.
    pub random: RandomGenerator,
    /// Current cycle, counted from the start of the reset.
    pub cycle: u64,
    /// Cycle of the last activity at any port or unit.
    pub last_activity: u64,
    /// Cycle in which a transaction last advanced. Without an advance, messages or operations of the device may
    /// repeat forever while the remote starves.
    pub last_advance: u64,
    /// Lines of the run. Other parts refer to a line by its index here.
    pub lines: Vec<Line>,
    /// Index of each line, by its number at the home's ports.
    by_number: FxHashMap<u64, usize>,
    /// Results so far.
    pub report: Report,
    /// Recorded port events, during measurements.
    pub port_events: Option<Vec<Crossing>>,
    /// Number of messages sent so far, which numbers the next message.
    next_flight: u32,
    /// True if the complete history is recorded, with the values of words.
    pub is_recording_history: bool,
    /// Cancels the run when it is set.
    stop: &'a AtomicBool,
}

impl<'a> Context<'a> {
    /// Creates the state before reset, with random contents of the lines.
    pub fn new(setup: &Setup<'a>, run: Run) -> Context<'a> {
        let reference = Reference::new(setup);
        let mut random = RandomGenerator::new(run.seed);
        let (rom, units) = (reference.rom, reference.units() as u64);
        let mut lines = Vec::new();
        let mut by_number = FxHashMap::default();
        let random_unit = random.below(units);
        while lines.len() < run.lines {
            let number = match run.pattern {
                Pattern::Spread => lines.len() as u64,
                Pattern::OneUnit => lines.len() as u64 * units + random_unit,
                // Every shape has at least 17 bits of set index and tag.
                Pattern::Anywhere => random.below(1 << 17) * units + random.below(units),
            };
            if by_number.contains_key(&number) {
                continue;
            }
            by_number.insert(number, lines.len());
            // The memory of an endpoint starts with zeros.
            let bytes: Bytes = match reference.shape.endpoint {
                Endpoint::None => random.bytes(),
                _ => [0; WORDS],
            };
            let remote = reference.remote_machine.initial();
            let home = reference.home_machine.initial();
            lines.push(Line::new(number, remote, home, bytes));
        }
        Context {
            reference: Rc::new(reference),
            run,
            random,
            cycle: 0,
            last_activity: 0,
            last_advance: 0,
            lines,
            by_number,
            report: Report {
                covered: vec![vec![false; rom.events.len()]; rom.states.len()],
                ..Report::default()
            },
            port_events: None,
            next_flight: 0,
            is_recording_history: false,
            stop: setup.stop,
        }
    }

    /// True if the run was cancelled.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// True while new accesses start, that is, before the run has exchanged its number of messages.
    pub fn starts_accesses(&self) -> bool {
        self.report.messages < self.run.messages
    }

    /// Records activity in this cycle: a transfer at a port, or a step of a unit.
    pub fn record_activity(&mut self) {
        self.last_activity = self.cycle;
    }

    /// Records the end of an operation of the device, which counts as an advance once no new accesses start.
    pub fn record_operation_end(&mut self) {
        if !self.starts_accesses() {
            self.last_advance = self.cycle;
        }
    }

    /// Returns the arrival cycle of something with a latency of 1 to `max_latency` cycles.
    pub fn random_completion_cycle(&mut self, max_latency: u64) -> u64 {
        match self.run.has_fixed_latency {
            true => self.cycle + max_latency - 1,
            false => self.cycle + 1 + self.random.below(max_latency),
        }
    }

    /// Returns 1 in the cycles in which a port is ready, otherwise 0.
    pub fn random_ready(&mut self) -> u64 {
        u64::from(self.random.below(16) < self.run.ready_rate)
    }

    /// Returns the index of a random line.
    pub fn random_line(&mut self) -> usize {
        self.random.below(self.lines.len() as u64) as usize
    }

    /// Returns the index of the line with a number that the home reports. `subject` names the report in the failure.
    pub fn line_of(&self, number: u64, subject: &str) -> Checked<usize> {
        match self.by_number.get(&number) {
            Some(&line_index) => Ok(line_index),
            None => {
                let message = format!("{subject} is about line {number}, which is not used");
                check_failed(Check::Comparison, None, message)
            }
        }
    }

    /// True if a number is that of a line.
    pub fn is_used(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Returns the slice of a line, 0 or 1.
    pub fn slice(&self, line_index: usize) -> usize {
        self.lines[line_index].number as usize % SLICES
    }

    /// Returns the unit of a line, numbered over all slices.
    pub fn unit(&self, line_index: usize) -> usize {
        self.reference.unit(self.lines[line_index].number)
    }

    /// Returns the remote's permission for a line.
    pub fn permission(&self, line_index: usize) -> Permission {
        self.reference.permission(&self.lines[line_index])
    }

    /// True if these bytes are those of the last write to the line.
    pub fn is_current(&self, line_index: usize, bytes: &Bytes) -> bool {
        self.lines[line_index].is_current(bytes, self.reference.words)
    }

    /// Records that a message is in flight until its consumption.
    pub fn count_message_in_flight(&mut self, line_index: usize, message: MessageId) -> Checked {
        let line = &mut self.lines[line_index];
        line.messages.in_flight.push(message);
        match (self.reference.protocol.bounds).exceeded(line.messages.in_flight.len()) {
            Some(limit) => line_failure(line_index, format!("{limit} for line {}", line.number)),
            None => Ok(()),
        }
    }

    /// Records the consumption of a message.
    pub fn consume_message(&mut self, line_index: usize, message: MessageId) {
        let in_flight = &mut self.lines[line_index].messages.in_flight;
        if let Some(position) = in_flight.iter().position(|&other| other == message) {
            in_flight.swap_remove(position);
        }
    }

    /// Records that a message is sent, and returns its number.
    pub fn record_send(
        &mut self,
        line_index: usize,
        direction: Direction,
        message: MessageId,
    ) -> u32 {
        let flight = self.next_flight;
        self.next_flight += 1;
        let message = self.reference.protocol.message(message).name.clone();
        let action = Action::Send {
            message,
            to: direction.receiver(),
            flight,
        };
        self.record_action(line_index, direction.sender(), action);
        flight
    }

    /// Records that a message is received.
    pub fn record_receive(
        &mut self,
        line_index: usize,
        direction: Direction,
        message: MessageId,
        flight: u32,
    ) {
        let action = Action::Receive {
            message: self.reference.protocol.message(message).name.clone(),
            from: direction.sender(),
            flight,
        };
        self.record_action(line_index, direction.receiver(), action);
    }

    /// Appends an action of an agent to the line's history. Without a complete history, only the last steps are
    /// kept.
    pub fn record_action(&mut self, line_index: usize, agent: usize, action: Action) {
        let history = &mut self.lines[line_index].history;
        if history.len() == MAX_HISTORY && !self.is_recording_history {
            history.pop_front();
        }
        history.push_back(Step {
            agent,
            action,
            line: None,
            visible: true,
        });
    }

    /// Records the new state of the remote.
    pub fn record_remote_state(&mut self, line_index: usize) {
        let state = usize::from(self.lines[line_index].remote.state);
        let state = self.reference.protocol.remote.states[state].name.clone();
        self.record_action(line_index, REMOTE, Action::Becomes { state });
    }

    /// Records the value of the accessed word, if the run keeps a complete trace.
    pub fn record_word(&mut self, line_index: usize, access: Access, word: usize, value: u64) {
        if self.is_recording_history {
            let what = format!("performs a {} of word {word}: {value}", access.name());
            self.record_action(line_index, REMOTE, Action::Does { what });
        }
    }

    /// Records a port event, during measurements.
    pub fn record_port_event(&mut self, event: PortEvent) {
        if let Some(port_events) = &mut self.port_events {
            port_events.push(Crossing {
                cycle: self.cycle,
                event,
            });
        }
    }
}

//! Environment of the home in a run: the remote, circuits that delay and reorder messages, the device, and memory.
//!
//! Remote and home follow the controllers that are checked. The RTL reports each step of its units, and the home's
//! controller takes the same step. All later outputs of the RTL must match what the controller sent, with the correct
//! bytes. A false report is detected: a step on an absent event, or a message that no step has announced, is a
//! mismatch.

mod agents;
mod application;
mod directed;
mod endpoints;
mod illegal_traffic;
mod ports;
mod quiescence;
mod registers;
mod stalls;
mod steps;
mod traffic;
mod unit_resources;

pub use application::{DelayedResponse, LINES};
use directed::{CoverageTargets, DirectedLine};
pub use traffic::{PortEvent, Ports, Rate, Traffic};

use super::chance::RandomGenerator;
use super::changes::{Change, Changes};
use super::model::{Inputs, Model, Outputs, CIRCUITS, SLICES};
use super::setup::{Check, Failed, Mismatch, Setup, Waveform};
use super::shapes::{Endpoint, Shape};
use crate::rom::Rom;
use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_protocol::controller::{Access, Controller, Event, Local};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{Carries, ChannelId, Class, MessageId, Protocol, Right};
use cohkit_system::agent::{self, Bytes as Sent, Violation};
use cohkit_system::plan::{Plan, ProtocolFacts};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of 64-bit words per line.
const WORDS: usize = 16;
/// Contents of a line.
type Bytes = [u64; WORDS];

/// Numbering of lines, which determines their units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Consecutive lines, distributed over all units in turn.
    Spread,
    /// Lines that belong to one unit.
    OneUnit,
    /// Random lines of the home's whole range.
    Anywhere,
}

/// Distance in rows between the directed targets of two consecutive seeds.
const TARGET_DISTANCE: u64 = 16;

/// Parameters of a run. All random behaviour is derived from the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Seed of all random behaviour.
    pub seed: u64,
    /// Number of messages after which no new access starts.
    pub messages: u64,
    /// Number of lines.
    pub lines: usize,
    /// Selection of the lines.
    pub pattern: Pattern,
    /// Maximum memory latency, in cycles.
    pub memory: u64,
    /// Maximum latency of most messages, in cycles; without `exact`, one message in eight may take up to six times as
    /// long.
    pub delay: u64,
    /// Number of cycles, of every 16, in which each port is ready.
    pub ready: u64,
    /// Number of cycles, of every 16, in which the device starts an operation.
    pub device: u64,
    /// First target row of directed lines, counted from the last row of the ROM; the preceding rows follow. Requires
    /// [`super::setup::Setup::graph`].
    pub aim: usize,
    /// Number of cycles, of every 256, in which each free port receives illegal traffic that the home must refuse or
    /// drop. Three of eight runs have some. Not used with an endpoint.
    pub illegal_inputs: u64,
    /// Memory and messages take their maximum latency, and memory answers in order: for measurements.
    pub exact: bool,
}

impl Run {
    /// Creates a run with the given number of messages; the seed determines its other parameters too.
    pub fn new(seed: u64, messages: u64) -> Run {
        let mut random = RandomGenerator::new(seed ^ 0x9e37_79b9);
        let pattern = [
            Pattern::Spread,
            Pattern::Spread,
            Pattern::OneUnit,
            Pattern::Anywhere,
        ];
        Run {
            seed,
            messages,
            lines: [1, 2, 3, 6, 12, 24, 32, 32, 64, 256, 4096][random.below(11) as usize],
            pattern: pattern[random.below(4) as usize],
            memory: [1, 4, 30, 100, 100, 1000][random.below(6) as usize],
            delay: [1, 10, 60, 60, 400][random.below(5) as usize],
            ready: [16, 16, 12, 4][random.below(4) as usize],
            device: [0, 1, 2, 4, 8][random.below(5) as usize],
            aim: seed.wrapping_mul(TARGET_DISTANCE) as usize,
            // Drawn last, so that seeds without illegal traffic behave as they did before it was introduced.
            illegal_inputs: [0, 0, 0, 0, 0, 1, 8, 64][random.below(8) as usize],
            exact: false,
        }
    }

    /// Creates a short run of few lines that is directed from its start to a row, counted from the last of
    /// [`ReachabilityGraph::rows`].
    pub fn directed_run(aim: usize, seed: u64) -> Run {
        let mut random = RandomGenerator::new(seed ^ 0x517c_c1b7);
        Run {
            seed,
            messages: 200,
            lines: 1 + random.below(3) as usize,
            pattern: [Pattern::Spread, Pattern::OneUnit][random.below(2) as usize],
            memory: 4,
            delay: 4,
            ready: 16,
            device: 1,
            aim,
            illegal_inputs: 0,
            exact: false,
        }
    }
}

/// Results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Messages that entered or left the home.
    pub messages: u64,
    /// Local operations and unlocks that were answered.
    pub answers: u64,
    /// Lines evicted by the directory.
    pub evictions: u64,
    /// Duration in cycles.
    pub cycles: u64,
    /// Illegal messages, operations and unlocks that the home dropped or refused.
    pub illegal_inputs: u64,
    /// For each state and event of the ROM, true if the row was used.
    pub covered: Vec<Vec<bool>>,
    /// Number of stalled events with a unique possible cause, and of those with several.
    pub stalls: [u64; 2],
    /// Final values of the home's counters, summed over both slices, by position.
    pub counters: Vec<u64>,
}

const REMOTE: usize = 0;
const HOME: usize = 1;
const DEVICE: usize = 2;
/// Maximum number of recorded steps of a line's history.
const HISTORY: usize = 60;

/// A message in flight or expected.
#[derive(Clone, Debug)]
struct Message {
    kind: MessageId,
    bytes: Option<Bytes>,
    mask: u16,
    flight: u32,
}

/// An answer that the home has announced to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    unlock: bool,
    refused: bool,
    operation: u8,
}

/// State of a line's memory operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Memory {
    Idle,
    /// The home has started a read that is not yet visible at the AXI port.
    ReadWanted,
    Reading,
    /// Memory has answered with these bytes.
    Read(Bytes),
    /// The home has started to write these bytes with this word mask.
    WriteWanted(Bytes, u16),
    Writing,
    Written,
}

/// Reference state of a line.
struct Line {
    number: u64,
    remote: Configuration,
    copy: Bytes,
    home: Configuration,
    /// The pending local operation, and true if the directory started it.
    pending_local: Option<(u8, bool)>,
    /// Highest permission of the remote under the lock, if the line is locked.
    lock_permission: Option<Right>,
    memory: Bytes,
    latest: Bytes,
    operation: Memory,
    /// Messages sent and not yet consumed, in both directions.
    in_flight: Vec<MessageId>,
    /// Permission that the remote receives with the read data, or retains after the write.
    permission: Right,
    /// Messages that have entered the home and are not yet consumed.
    arrived_messages: Vec<Message>,
    /// Messages that must leave the home, by circuit.
    expected_departures: [VecDeque<Message>; CIRCUITS],
    /// Local operations that have entered the home and are not yet consumed.
    queued_locals: VecDeque<u8>,
    unlocks: u32,
    answers: Vec<Answer>,
    /// True once the device knows that it holds the lock.
    lock_reported: bool,
    /// Earliest arrival cycle of the next message in ordered circuits, by direction and circuit.
    earliest_arrival: [[u64; CIRCUITS]; 2],
    history: VecDeque<Step>,
    /// Number of messages in flight, and of messages at the home's ports.
    messages_in_flight: usize,
    messages_at_ports: usize,
    /// True while the line is directed to a row; true once it has come to rest, so that messages are held back.
    is_directed: bool,
    is_holding_messages: bool,
    held_messages: Vec<(bool, Message)>,
    /// True while memory withholds its answers; true once it may answer again.
    is_memory_withheld: bool,
    is_memory_resumed: bool,
}

impl Line {
    /// Creates a line in its initial state, with these bytes in memory.
    fn new(number: u64, remote: Configuration, home: Configuration, bytes: Bytes) -> Line {
        Line {
            number,
            remote,
            copy: [0; WORDS],
            home,
            pending_local: None,
            lock_permission: None,
            memory: bytes,
            latest: bytes,
            operation: Memory::Idle,
            in_flight: Vec::new(),
            permission: Right::None,
            arrived_messages: Vec::new(),
            expected_departures: Default::default(),
            queued_locals: VecDeque::new(),
            unlocks: 0,
            answers: Vec::new(),
            lock_reported: false,
            earliest_arrival: [[0; CIRCUITS]; 2],
            history: VecDeque::new(),
            messages_in_flight: 0,
            messages_at_ports: 0,
            is_directed: false,
            is_holding_messages: false,
            held_messages: Vec::new(),
            is_memory_withheld: false,
            is_memory_resumed: false,
        }
    }

    /// Returns the recorded history.
    fn sequence(&self) -> Sequence {
        Sequence {
            agents: vec!["remote".into(), "home".into(), "device".into()],
            steps: self.history.iter().cloned().collect(),
        }
    }

    /// True if these bytes are those of the last write.
    fn is_current(&self, bytes: &Bytes, words: usize) -> bool {
        bytes[..words] == self.latest[..words]
    }
}

/// Static analysis of all rows, and of each row of the remote.
struct Rules {
    facts: ProtocolFacts,
    plans: Vec<Plan>,
}

/// Messages to the home that wait at the port of a circuit.
#[derive(Default)]
struct PortQueue {
    queue: VecDeque<(usize, Message)>,
    valid: bool,
    beat: usize,
    /// For the last beat that entered: true if it was the first one of a message with bytes; true if it was the last
    /// one.
    last_beat: Option<(bool, bool)>,
}

/// A message of which some beats have left the home.
struct DepartingMessage {
    line: usize,
    number: usize,
    bytes: Bytes,
    beat: usize,
}

/// A read or write of a slice's memory.
struct Burst {
    line: usize,
    id: u64,
    completion_cycle: u64,
    beat: usize,
}

#[derive(Default)]
struct Slice {
    port_queues: [PortQueue; CIRCUITS],
    departing: [Option<DepartingMessage>; CIRCUITS],
    local_requests: VecDeque<(usize, u8)>,
    local_request_valid: bool,
    unlocks: VecDeque<usize>,
    unlock_valid: bool,
    reads: Vec<Burst>,
    current_read: Option<usize>,
    write_addresses: VecDeque<(usize, u64)>,
    /// Bytes of writes, and bit masks of the written bits.
    write_data: VecDeque<(Bytes, Bytes)>,
    incoming_write: (Bytes, Bytes, usize),
    writes: Vec<Burst>,
    current_write: Option<usize>,
    illegal_inputs: illegal_traffic::IllegalTraffic,
}

/// A home and its environment.
pub struct Bench<'a> {
    protocol: &'a Protocol,
    rom: &'a Rom,
    home: &'a Controller,
    home_machine: Machine<'a>,
    remote_machine: Machine<'a>,
    rules: Rc<Rules>,
    run: Run,
    random: RandomGenerator,
    /// A separate generator for illegal traffic, so that runs without it are unaffected.
    illegal_random: RandomGenerator,
    stalls: stalls::Stalls,
    model: Model,
    inputs: Inputs,
    outputs: Outputs,
    cycle: u64,
    lines: Vec<Line>,
    by_number: FxHashMap<u64, usize>,
    slices: [Slice; SLICES],
    /// Outstanding requests per unit that the home has not consumed, and their maximum number.
    requests: Vec<usize>,
    max_requests: usize,
    /// Messages in flight, by arrival cycle and sequence number: line, direction (true: to the home) and message.
    messages_in_flight: BTreeMap<(u64, u64), (usize, bool, Message)>,
    sequence: u64,
    flight: u32,
    /// Beats per line, words per beat, and words per line.
    beats: usize,
    words_per_beat: usize,
    words: usize,
    /// Cycle of the last activity, and of the last advance. Without an advance, messages or operations of the device
    /// may repeat forever while the remote starves.
    last_activity: u64,
    last_advance: u64,
    report: Report,
    /// Recorded port crossings, during measurements.
    port_events: Option<Vec<(u64, PortEvent)>>,
    ports: Ports,
    /// Expected counter values of each slice.
    counts: [registers::Counts; SLICES],
    /// Permission changes that each unit must report, including those that may be lost.
    changes: Changes,
    /// Resources in use of each unit, and the number of its unconsumed messages other than requests.
    resources: Vec<unit_resources::UnitResources>,
    responses: Vec<usize>,
    shape: Shape,
    /// Reference model of the endpoint.
    endpoint: endpoints::EndpointModel,
    /// True if the listener accepts permission changes in every cycle.
    is_listening: bool,
    /// Target rows, and the lines directed to one.
    targets: Option<CoverageTargets<'a>>,
    directed_lines: Vec<DirectedLine>,
    /// File of a waveform that could not be opened.
    unopened_waveform: Option<PathBuf>,
    /// True if the complete history is recorded, with the values of words.
    is_recording_history: bool,
    stop: &'a AtomicBool,
}

/// A failure without the line's history.
#[derive(Debug)]
pub(super) struct BenchError {
    check: Check,
    what: String,
    line: Option<usize>,
}

type Checked<T = ()> = Result<T, BenchError>;

impl From<Violation> for BenchError {
    fn from(violation: Violation) -> BenchError {
        BenchError {
            check: Check::Comparison,
            what: violation.what,
            line: None,
        }
    }
}

impl BenchError {
    /// Attributes the failure to a line.
    fn on_line(self, line: usize) -> BenchError {
        BenchError {
            line: Some(line),
            ..self
        }
    }
}

fn line_failure<T>(line: usize, message: String) -> Checked<T> {
    check_failed(Check::Comparison, Some(line), message)
}

fn check_failed<T>(check: Check, line: Option<usize>, message: String) -> Checked<T> {
    Err(BenchError {
        check,
        what: message,
        line,
    })
}

impl<'a> Bench<'a> {
    /// Creates a home before reset, with random contents of the lines.
    pub(super) fn new(setup: &Setup<'a>, model: Model, run: Run) -> Self {
        let Setup {
            protocol,
            home,
            rom,
            shape,
            graph,
            stop,
            ..
        } = *setup;
        let mut random = RandomGenerator::new(run.seed);
        let home_machine = Machine::new(home, 1);
        let remote_machine = Machine::new(&protocol.remote, 1);
        let facts = ProtocolFacts::new(protocol, home);
        let plans = Plan::of(&protocol.remote, Some(&facts.accesses));
        let mut lines = Vec::new();
        let mut by_number = FxHashMap::default();
        let all_units = (SLICES * shape.units) as u64;
        let random_unit = random.below(all_units);
        while lines.len() < run.lines {
            let number = match run.pattern {
                Pattern::Spread => lines.len() as u64,
                Pattern::OneUnit => lines.len() as u64 * all_units + random_unit,
                Pattern::Anywhere => random.below(1 << 17) * all_units + random.below(all_units),
            };
            if by_number.contains_key(&number) {
                continue;
            }
            by_number.insert(number, lines.len());
            // The memory of an endpoint starts with zeros.
            let bytes = match shape.endpoint {
                Endpoint::None => random.bytes(),
                _ => [0; WORDS],
            };
            let (remote, home) = (remote_machine.initial(), home_machine.initial());
            lines.push(Line::new(number, remote, home, bytes));
        }
        let words = protocol.line_bytes as usize / 8;
        // A directory with room for all lines needs no limit on requests. In a smaller one, a line may be resident
        // whose upgrade is in flight. That upgrade must not be behind more requests than a unit can defer.
        let mut sets: FxHashMap<u64, usize> = FxHashMap::default();
        for line in &lines {
            *sets
                .entry(line.number % (all_units << shape.set_bits))
                .or_default() += 1;
        }
        let all_lines_fit = sets.values().all(|&lines| lines <= shape.ways);
        Bench {
            max_requests: if all_lines_fit {
                usize::MAX
            } else {
                shape.waiting
            },
            requests: vec![0; all_units as usize],
            protocol,
            rom,
            home,
            home_machine,
            remote_machine,
            rules: Rc::new(Rules { facts, plans }),
            run,
            random,
            illegal_random: RandomGenerator::new(run.seed ^ 0x5bd1_e995),
            stalls: stalls::Stalls::new(&run),
            model,
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            cycle: 0,
            lines,
            by_number,
            slices: Default::default(),
            messages_in_flight: BTreeMap::new(),
            sequence: 0,
            flight: 0,
            beats: words / (shape.payload / 64),
            words_per_beat: shape.payload / 64,
            words,
            last_activity: 0,
            last_advance: 0,
            report: Report {
                covered: vec![vec![false; rom.events.len()]; rom.states.len()],
                ..Report::default()
            },
            port_events: None,
            ports: Ports::default(),
            counts: Default::default(),
            changes: Changes::new(
                all_units as usize,
                // A listener that is always ready receives all reports.
                (run.ready == 16).then(|| Changes::max_report_delay(shape.units)),
            ),
            resources: (0..all_units)
                .map(|_| unit_resources::UnitResources::default())
                .collect(),
            responses: vec![0; all_units as usize],
            shape,
            is_listening: false,
            endpoint: endpoints::EndpointModel::new(shape.endpoint, run.lines),
            targets: graph.filter(|_| !run.exact).map(|graph| CoverageTargets {
                graph,
                next: run.aim,
                pause: 0,
            }),
            directed_lines: Vec::new(),
            unopened_waveform: None,
            is_recording_history: false,
            stop,
        }
    }

    /// Runs until all messages have been exchanged and the home is quiescent.
    ///
    /// Records the waveform if requested and if the model was built with waveforms.
    ///
    /// # Errors
    /// [`Failed`], with the first mismatch.
    pub(super) fn finish(mut self, waveform: Option<Waveform>) -> Result<Report, Failed> {
        let result = self.run_to_quiescence(waveform);
        self.report.cycles = self.cycle;
        match result {
            Ok(()) => Ok(self.report),
            Err(error) => Err(self.to_failure(error)),
        }
    }

    /// Converts a failure to the error, with the history of the line; returns `Stopped` after a cancellation.
    pub(super) fn to_failure(&self, error: BenchError) -> Failed {
        if self.is_stopped() {
            return Failed::Stopped;
        }
        if let Some(file) = &self.unopened_waveform {
            return Failed::Tool(format!("{}: no waveform can be written", file.display()));
        }
        Failed::Mismatch(Box::new(Mismatch {
            check: error.check,
            description: error.what,
            cycle: self.cycle,
            sequence: error.line.map(|line| self.lines[line].sequence()),
        }))
    }

    /// Runs to quiescence and returns the complete history of each line.
    ///
    /// # Errors
    /// [`Failed`], with the first mismatch.
    pub(super) fn traces(mut self) -> Result<Vec<Sequence>, Failed> {
        self.is_recording_history = true;
        let result = self.run_to_quiescence(None);
        result.map_err(|error| self.to_failure(error))?;
        Ok(self.lines.iter().map(Line::sequence).collect())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn run_to_quiescence(&mut self, waveform: Option<Waveform>) -> Checked {
        self.reset()?;
        let timeout_cycles = 200 * (self.run.memory + self.run.delay) + 20_000;
        loop {
            let starts_accesses = self.starts_accesses();
            match starts_accesses {
                true => {
                    self.attempt_remote_accesses()?;
                    self.advance_directed_lines()?;
                }
                false => self.release_all(),
            }
            self.start_device_operations(starts_accesses)?;
            self.deliver()?;
            if let Some(Waveform { file, .. }) =
                waveform.filter(|waveform| waveform.from == self.cycle)
            {
                if !self.model.trace(file) {
                    self.unopened_waveform = Some(file.to_path_buf());
                    return check_failed(Check::Progress, None, "it has no waveform".into());
                }
            }
            self.drive_inputs();
            self.step_model()?;
            self.observe()?;
            if !starts_accesses && self.is_quiescent() {
                self.check_final_state()?;
                return self.check_registers();
            }
            if self.cycle - self.last_advance > timeout_cycles {
                return self.report_deadlock();
            }
        }
    }

    /// True while new accesses start.
    fn starts_accesses(&self) -> bool {
        self.report.messages < self.run.messages
    }

    /// Records the end of an operation of the device, which counts as an advance once no new accesses start.
    fn record_operation_end(&mut self) {
        if !self.starts_accesses() {
            self.last_advance = self.cycle;
        }
    }

    fn reset(&mut self) -> Checked {
        self.inputs.reset = 1;
        for _ in 0..4 {
            self.step_model()?;
        }
        self.inputs.reset = 0;
        Ok(())
    }

    /// Returns the arrival cycle of something with a latency of 1 to `max_latency` cycles.
    fn random_completion_cycle(&mut self, max_latency: u64) -> u64 {
        match self.run.exact {
            true => self.cycle + max_latency - 1,
            false => self.cycle + 1 + self.random.below(max_latency),
        }
    }

    fn step_model(&mut self) -> Checked {
        if self.is_stopped() {
            return check_failed(Check::Progress, None, "it was told to stop".into());
        }
        self.cycle += 1;
        let assertions = self.model.step(&self.inputs, &mut self.outputs);
        assertions.or_else(
            |assertions| match self.is_caused_by_illegal_traffic(&assertions) {
                true => Ok(()),
                false => check_failed(Check::Assertion, None, assertions),
            },
        )
    }

    fn note(&mut self, line_index: usize, agent: usize, action: Action) {
        let history = &mut self.lines[line_index].history;
        if history.len() == HISTORY && !self.is_recording_history {
            history.pop_front();
        }
        history.push_back(Step {
            agent,
            action,
            line: None,
            visible: true,
        });
    }
}

/// Returns the bits of a word that are covered by a mask of sixteenths of the line.
fn covered(mask: u16, word: usize, words: usize) -> u64 {
    let byte = |byte: usize| u64::from(mask >> ((8 * word + byte) * 16 / (8 * words)) & 1) * 0xff;
    (0..8).fold(0, |bits, place| bits | byte(place) << (8 * place))
}

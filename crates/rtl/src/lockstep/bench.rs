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
    /// [`super::setup::Setup::ways`].
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
        let mut chance = RandomGenerator::new(seed ^ 0x9e37_79b9);
        let pattern = [
            Pattern::Spread,
            Pattern::Spread,
            Pattern::OneUnit,
            Pattern::Anywhere,
        ];
        Run {
            seed,
            messages,
            lines: [1, 2, 3, 6, 12, 24, 32, 32, 64, 256, 4096][chance.below(11) as usize],
            pattern: pattern[chance.below(4) as usize],
            memory: [1, 4, 30, 100, 100, 1000][chance.below(6) as usize],
            delay: [1, 10, 60, 60, 400][chance.below(5) as usize],
            ready: [16, 16, 12, 4][chance.below(4) as usize],
            device: [0, 1, 2, 4, 8][chance.below(5) as usize],
            aim: seed.wrapping_mul(TARGET_DISTANCE) as usize,
            // Drawn last, so that seeds without illegal traffic behave as they did before it was introduced.
            illegal_inputs: [0, 0, 0, 0, 0, 1, 8, 64][chance.below(8) as usize],
            exact: false,
        }
    }

    /// Creates a short run of few lines that is directed from its start to a row, counted from the last of
    /// [`ReachabilityGraph::rows`].
    pub fn directed_run(aim: usize, seed: u64) -> Run {
        let mut chance = RandomGenerator::new(seed ^ 0x517c_c1b7);
        Run {
            seed,
            messages: 200,
            lines: 1 + chance.below(3) as usize,
            pattern: [Pattern::Spread, Pattern::OneUnit][chance.below(2) as usize],
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
    pending: Option<(u8, bool)>,
    /// Highest permission of the remote under the lock, if the line is locked.
    locked: Option<Right>,
    memory: Bytes,
    latest: Bytes,
    operation: Memory,
    /// Messages sent and not yet consumed, in both directions.
    in_flight: Vec<MessageId>,
    /// Permission that the remote receives with the read data, or retains after the write.
    right: Right,
    /// Messages that have entered the home and are not yet consumed.
    arrived: Vec<Message>,
    /// Messages that must leave the home, by circuit.
    expected: [VecDeque<Message>; CIRCUITS],
    /// Local operations that have entered the home and are not yet consumed.
    asked: VecDeque<u8>,
    unlocks: u32,
    answers: Vec<Answer>,
    /// True once the device knows that it holds the lock.
    told: bool,
    /// Earliest arrival cycle of the next message in ordered circuits, by direction and circuit.
    order: [[u64; CIRCUITS]; 2],
    history: VecDeque<Step>,
    /// Number of messages in flight, and of messages at the home's ports.
    messages_in_flight: usize,
    entering: usize,
    /// True while the line is directed to a row; true once it has come to rest, so that messages are held back.
    is_directed: bool,
    is_holding_messages: bool,
    held: Vec<(bool, Message)>,
    /// True while memory withholds its answers; true once it may answer again.
    withheld: bool,
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
            pending: None,
            locked: None,
            memory: bytes,
            latest: bytes,
            operation: Memory::Idle,
            in_flight: Vec::new(),
            right: Right::None,
            arrived: Vec::new(),
            expected: Default::default(),
            asked: VecDeque::new(),
            unlocks: 0,
            answers: Vec::new(),
            told: false,
            order: [[0; CIRCUITS]; 2],
            history: VecDeque::new(),
            messages_in_flight: 0,
            entering: 0,
            is_directed: false,
            is_holding_messages: false,
            held: Vec::new(),
            withheld: false,
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
    before: Option<(bool, bool)>,
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
    at: u64,
    beat: usize,
}

#[derive(Default)]
struct Slice {
    port_queues: [PortQueue; CIRCUITS],
    departing: [Option<DepartingMessage>; CIRCUITS],
    asks: VecDeque<(usize, u8)>,
    ask_valid: bool,
    unlocks: VecDeque<usize>,
    unlock_valid: bool,
    reads: Vec<Burst>,
    reading: Option<usize>,
    addresses: VecDeque<(usize, u64)>,
    /// Bytes of writes, and bit masks of the written bits.
    data: VecDeque<(Bytes, Bytes)>,
    beat: (Bytes, Bytes, usize),
    writes: Vec<Burst>,
    written: Option<usize>,
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
    chance: RandomGenerator,
    /// A separate generator for illegal traffic, so that runs without it are unaffected.
    strange: RandomGenerator,
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
    beat: usize,
    words: usize,
    /// Cycle of the last activity, and of the last advance. Without an advance, messages or operations of the device
    /// may repeat forever while the remote starves.
    progress: u64,
    advance: u64,
    report: Report,
    /// Recorded port crossings, during measurements.
    port_events: Option<Vec<(u64, PortEvent)>>,
    ports: Ports,
    /// Expected counter values of each slice.
    counts: [registers::Counts; SLICES],
    /// Permission changes that each unit must report, including those that may be lost.
    changes: Changes,
    /// Resources in use of each unit, and the number of its unconsumed messages other than requests.
    places: Vec<unit_resources::UnitResources>,
    responses: Vec<usize>,
    shape: Shape,
    /// Reference model of the endpoint.
    behind: endpoints::EndpointModel,
    /// True if the listener accepts permission changes in every cycle.
    listens: bool,
    /// Target rows, and the lines directed to one.
    aims: Option<CoverageTargets<'a>>,
    directed_lines: Vec<DirectedLine>,
    /// File of a waveform that could not be opened.
    unopened_waveform: Option<PathBuf>,
    /// True if the complete history is recorded, with the values of words.
    is_recording_history: bool,
    stop: &'a AtomicBool,
}

/// A failure without the line's history.
#[derive(Debug)]
pub(super) struct Wrong {
    check: Check,
    what: String,
    line: Option<usize>,
}

type Checked<T = ()> = Result<T, Wrong>;

impl From<Violation> for Wrong {
    fn from(violation: Violation) -> Wrong {
        Wrong {
            check: Check::Comparison,
            what: violation.what,
            line: None,
        }
    }
}

impl Wrong {
    /// Attributes the failure to a line.
    fn about(self, line: usize) -> Wrong {
        Wrong {
            line: Some(line),
            ..self
        }
    }
}

fn wrong<T>(line: usize, what: String) -> Checked<T> {
    noticed(Check::Comparison, Some(line), what)
}

fn noticed<T>(check: Check, line: Option<usize>, what: String) -> Checked<T> {
    Err(Wrong { check, what, line })
}

impl<'a> Bench<'a> {
    /// Creates a home before reset, with random contents of the lines.
    pub(super) fn new(setup: &Setup<'a>, model: Model, run: Run) -> Self {
        let Setup {
            protocol,
            home,
            rom,
            shape,
            ways,
            stop,
            ..
        } = *setup;
        let mut chance = RandomGenerator::new(run.seed);
        let home_machine = Machine::new(home, 1);
        let remote_machine = Machine::new(&protocol.remote, 1);
        let facts = ProtocolFacts::new(protocol, home);
        let plans = Plan::of(&protocol.remote, Some(&facts.accesses));
        let mut lines = Vec::new();
        let mut by_number = FxHashMap::default();
        let all_units = (SLICES * shape.units) as u64;
        let own = chance.below(all_units);
        while lines.len() < run.lines {
            let number = match run.pattern {
                Pattern::Spread => lines.len() as u64,
                Pattern::OneUnit => lines.len() as u64 * all_units + own,
                Pattern::Anywhere => chance.below(1 << 17) * all_units + chance.below(all_units),
            };
            if by_number.contains_key(&number) {
                continue;
            }
            by_number.insert(number, lines.len());
            // The memory of an endpoint starts with zeros.
            let bytes = match shape.endpoint {
                Endpoint::None => chance.bytes(),
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
        let fits = sets.values().all(|&lines| lines <= shape.ways);
        Bench {
            max_requests: if fits { usize::MAX } else { shape.waiting },
            requests: vec![0; all_units as usize],
            protocol,
            rom,
            home,
            home_machine,
            remote_machine,
            rules: Rc::new(Rules { facts, plans }),
            run,
            chance,
            strange: RandomGenerator::new(run.seed ^ 0x5bd1_e995),
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
            beat: shape.payload / 64,
            words,
            progress: 0,
            advance: 0,
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
            places: (0..all_units)
                .map(|_| unit_resources::UnitResources::default())
                .collect(),
            responses: vec![0; all_units as usize],
            shape,
            listens: false,
            behind: endpoints::EndpointModel::new(shape.endpoint, run.lines),
            aims: ways.filter(|_| !run.exact).map(|ways| CoverageTargets {
                ways,
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
        let result = self.all_cycles(waveform);
        self.report.cycles = self.cycle;
        match result {
            Ok(()) => Ok(self.report),
            Err(wrong) => Err(self.failed(wrong)),
        }
    }

    /// Converts a failure to the error, with the history of the line; returns `Stopped` after a cancellation.
    pub(super) fn failed(&self, wrong: Wrong) -> Failed {
        if self.is_stopped() {
            return Failed::Stopped;
        }
        if let Some(file) = &self.unopened_waveform {
            return Failed::Tool(format!("{}: no waveform can be written", file.display()));
        }
        Failed::Mismatch(Box::new(Mismatch {
            check: wrong.check,
            what: wrong.what,
            cycle: self.cycle,
            sequence: wrong.line.map(|line| self.lines[line].sequence()),
        }))
    }

    /// Runs to quiescence and returns the complete history of each line.
    ///
    /// # Errors
    /// [`Failed`], with the first mismatch.
    pub(super) fn traces(mut self) -> Result<Vec<Sequence>, Failed> {
        self.is_recording_history = true;
        let result = self.all_cycles(None);
        result.map_err(|wrong| self.failed(wrong))?;
        Ok(self.lines.iter().map(Line::sequence).collect())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn all_cycles(&mut self, waveform: Option<Waveform>) -> Checked {
        self.reset()?;
        let patience = 200 * (self.run.memory + self.run.delay) + 20_000;
        loop {
            let more = self.more();
            match more {
                true => {
                    self.remote_acts()?;
                    self.guide()?;
                }
                false => self.release_all(),
            }
            self.device_acts(more)?;
            self.deliver()?;
            if let Some(Waveform { file, .. }) =
                waveform.filter(|waveform| waveform.from == self.cycle)
            {
                if !self.model.trace(file) {
                    self.unopened_waveform = Some(file.to_path_buf());
                    return noticed(Check::Progress, None, "it has no waveform".into());
                }
            }
            self.drive();
            self.step_model()?;
            self.observe()?;
            if !more && self.at_rest() {
                self.check_final_state()?;
                return self.registers();
            }
            if self.cycle - self.advance > patience {
                return self.stuck();
            }
        }
    }

    /// True while new accesses start.
    fn more(&self) -> bool {
        self.report.messages < self.run.messages
    }

    /// Records the end of an operation of the device, which counts as an advance once no new accesses start.
    fn record_operation_end(&mut self) {
        if !self.more() {
            self.advance = self.cycle;
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

    /// Returns the arrival cycle of something with a latency of 1 to `most` cycles.
    fn after(&mut self, most: u64) -> u64 {
        match self.run.exact {
            true => self.cycle + most - 1,
            false => self.cycle + 1 + self.chance.below(most),
        }
    }

    fn step_model(&mut self) -> Checked {
        if self.is_stopped() {
            return noticed(Check::Progress, None, "it was told to stop".into());
        }
        self.cycle += 1;
        let said = self.model.step(&self.inputs, &mut self.outputs);
        said.or_else(|said| match self.is_caused_by_illegal_traffic(&said) {
            true => Ok(()),
            false => noticed(Check::Assertion, None, said),
        })
    }

    fn note(&mut self, at: usize, agent: usize, action: Action) {
        let history = &mut self.lines[at].history;
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

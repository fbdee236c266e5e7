//! What surrounds the home in a run: the remote, circuits that delay and reorder, the device, and memory.
//!
//! Remote and home are the controllers that are checked. The RTL says what each unit has just done; the same
//! step is taken with the home's controller, and from then on everything that leaves the RTL has to be what the
//! controller sent, with the right bytes. The RTL cannot lie about its steps: an event that is not there, or a message
//! that no step announced, is a mismatch.

mod agents;
mod application;
mod endpoints;
mod guide;
mod places;
mod ports;
mod registers;
mod rest;
mod stalls;
mod steps;
mod strangers;
mod traffic;

pub use application::{Withheld, LINES};
use guide::{Aims, Guide};
pub use traffic::{Crossing, Ports, Rate, Traffic};

use super::chance::Chance;
use super::changes::{Change, Changes};
use super::model::{Inputs, Model, Outputs, CIRCUITS, SLICES};
use super::setup::{Check, Failed, Mismatch, Setup, Waveform};
use super::shapes::{Endpoint, Shape};
use crate::rom::Rom;
use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_protocol::controller::{Access, Controller, Event, Local};
use cohkit_protocol::execute::{Act, Configuration, Machine, Occasion, Outcome, Receiver};
use cohkit_protocol::protocol::{Carries, ChannelId, Class, MessageId, Protocol, Right};
use cohkit_system::agent::{self, Bytes as Sent, Violation};
use cohkit_system::plan::{Facts, Plan};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most words of 64 bits in a line.
const WORDS: usize = 16;
/// A line's bytes.
type Bytes = [u64; WORDS];

/// How lines are numbered, and so to which units they belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// One after the other: all units in turn.
    Spread,
    /// All lines belong to one unit.
    OneUnit,
    /// Anywhere in the home's range.
    Anywhere,
}

/// How many rows a run is meant to be guided to before it comes to those of the next seed.
const AIMS: u64 = 16;

/// One run: everything random follows from the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// What everything random follows from.
    pub seed: u64,
    /// Messages after which nothing new is begun.
    pub messages: u64,
    /// How many lines are used.
    pub lines: usize,
    /// Which.
    pub pattern: Pattern,
    /// Most cycles that memory takes.
    pub memory: u64,
    /// Most cycles that a message is under way.
    pub delay: u64,
    /// Of 16 cycles, in how many each port is ready.
    pub ready: u64,
    /// Of 16 cycles, in how many the device begins something.
    pub device: u64,
    /// The row of the ROM, counted from the last, with which guiding begins; it goes on with those before it.
    /// It needs [`super::setup::Setup::ways`].
    pub aim: usize,
    /// Of 256 cycles, in how many something comes to each port, if it is free, that nobody should send: what the home has to
    /// refuse or drop. In three of eight runs there are some. Not with anything behind the home.
    pub strangers: u64,
    /// Memory and messages take their most, and memory answers in order: for measurements.
    pub exact: bool,
}

impl Run {
    /// A run of this many messages, whose other quantities follow from the seed too.
    pub fn new(seed: u64, messages: u64) -> Run {
        let mut chance = Chance::new(seed ^ 0x9e37_79b9);
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
            aim: seed.wrapping_mul(AIMS) as usize,
            // Drawn last, so that seeds without any are what they were before there were some.
            strangers: [0, 0, 0, 0, 0, 1, 8, 64][chance.below(8) as usize],
            exact: false,
        }
    }

    /// A short run of few lines that is guided to a row, counted from the last of [`Ways::rows`], as soon as it begins.
    pub fn toward(aim: usize, seed: u64) -> Run {
        let mut chance = Chance::new(seed ^ 0x517c_c1b7);
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
            strangers: 0,
            exact: false,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Messages that entered and left the home.
    pub messages: u64,
    /// Local operations and unlocks that were answered.
    pub answers: u64,
    /// Lines that the directory gave up by itself.
    pub evictions: u64,
    /// Cycles.
    pub cycles: u64,
    /// Messages, operations and unlocks that nobody should have sent, and that the home dropped or refused.
    pub strangers: u64,
    /// For each state and event of the ROM whether the row was used.
    pub covered: Vec<Vec<bool>>,
    /// How often a unit did nothing with an event, and it was seen why; and how often not.
    pub stalls: [u64; 2],
    /// What the home's counters said at the end, of both slices together, by place.
    pub counters: Vec<u64>,
}

const REMOTE: usize = 0;
const HOME: usize = 1;
const DEVICE: usize = 2;
/// Steps of a line's history that are kept.
const HISTORY: usize = 60;

/// A message under way or expected.
#[derive(Clone, Debug)]
struct Message {
    kind: MessageId,
    bytes: Option<Bytes>,
    mask: u16,
    flight: u32,
}

/// What the home announced to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    unlock: bool,
    refused: bool,
    operation: u8,
}

/// A line's memory operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Memory {
    Idle,
    /// The home has begun to read, and AXI has not seen it.
    ReadWanted,
    Reading,
    /// Memory has answered with these bytes.
    Read(Bytes),
    /// The home has begun to write these bytes to these words.
    WriteWanted(Bytes, u16),
    Writing,
    Written,
}

/// Everything about one line, but what the RTL knows.
struct Line {
    number: u64,
    remote: Configuration,
    copy: Bytes,
    home: Configuration,
    /// The local operation in hand, and whether the directory began it.
    pending: Option<(u8, bool)>,
    /// The most that the remote may do under the lock, while there is one.
    locked: Option<Right>,
    memory: Bytes,
    latest: Bytes,
    operation: Memory,
    /// Messages that were sent and not yet taken, in both directions.
    in_flight: Vec<MessageId>,
    /// The right that the remote gets with what is read, or keeps after what is written.
    right: Right,
    /// Messages that have entered the home and that it has not yet taken.
    arrived: Vec<Message>,
    /// Messages that have to leave it, by circuit.
    expected: [VecDeque<Message>; CIRCUITS],
    /// Local operations that have entered and were not yet taken.
    asked: VecDeque<u8>,
    unlocks: u32,
    answers: Vec<Answer>,
    /// The device was told that it holds the lock.
    told: bool,
    /// Order of delivery in ordered circuits, by circuit: none may arrive before these cycles.
    order: [[u64; CIRCUITS]; 2],
    history: VecDeque<Step>,
    /// Messages on their way, and those that stand before the home's ports.
    under_way: usize,
    entering: usize,
    /// It is guided to a row; and has come to rest, so that messages are held back.
    guided: bool,
    holds_back: bool,
    held: Vec<(bool, Message)>,
    /// Memory does not answer what it is asked from now on; and was then allowed to.
    withheld: bool,
    memory_goes_on: bool,
}

impl Line {
    /// Nothing has happened; memory holds these bytes.
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
            under_way: 0,
            entering: 0,
            guided: false,
            holds_back: false,
            held: Vec::new(),
            withheld: false,
            memory_goes_on: false,
        }
    }

    /// What has happened, as far as it was kept.
    fn sequence(&self) -> Sequence {
        Sequence {
            agents: vec!["remote".into(), "home".into(), "device".into()],
            steps: self.history.iter().cloned().collect(),
        }
    }

    /// Whether these bytes are those of the last write.
    fn is_current(&self, bytes: &Bytes, words: usize) -> bool {
        bytes[..words] == self.latest[..words]
    }
}

/// What follows from the rows, of the remote each one apart.
struct Rules {
    facts: Facts,
    plans: Vec<Plan>,
}

/// A stream of messages toward the home that are ready to enter it.
#[derive(Default)]
struct Entrance {
    queue: VecDeque<(usize, Message)>,
    valid: bool,
    beat: usize,
    /// Whether the last beat that entered was the first one of a message with bytes, and whether it was the last one.
    before: Option<(bool, bool)>,
}

/// A message that is leaving the home.
struct Leaving {
    line: usize,
    number: usize,
    bytes: Bytes,
    beat: usize,
}

/// A read or write at a slice's memory.
struct Burst {
    line: usize,
    id: u64,
    at: u64,
    beat: usize,
}

#[derive(Default)]
struct Slice {
    entrances: [Entrance; CIRCUITS],
    leaving: [Option<Leaving>; CIRCUITS],
    asks: VecDeque<(usize, u8)>,
    ask_valid: bool,
    unlocks: VecDeque<usize>,
    unlock_valid: bool,
    reads: Vec<Burst>,
    reading: Option<usize>,
    addresses: VecDeque<(usize, u64)>,
    /// Bytes of writes, and which of their bits are written.
    data: VecDeque<(Bytes, Bytes)>,
    beat: (Bytes, Bytes, usize),
    writes: Vec<Burst>,
    written: Option<usize>,
    strangers: strangers::Strangers,
}

/// A home and what surrounds it.
pub struct Bench<'a> {
    protocol: &'a Protocol,
    rom: &'a Rom,
    home: &'a Controller,
    home_machine: Machine<'a>,
    remote_machine: Machine<'a>,
    rules: Rc<Rules>,
    run: Run,
    chance: Chance,
    /// That of strangers is another, so that without them nothing changes.
    strange: Chance,
    stalls: stalls::Stalls,
    model: Model,
    inputs: Inputs,
    outputs: Outputs,
    cycle: u64,
    lines: Vec<Line>,
    by_number: FxHashMap<u64, usize>,
    slices: [Slice; SLICES],
    /// Requests of each unit that the home has not yet taken, and how many there may be.
    requests: Vec<usize>,
    most_requests: usize,
    /// Messages under way, by the cycle in which they arrive: to the remote (false) or to the home (true).
    under_way: BTreeMap<(u64, u64), (usize, bool, Message)>,
    sequence: u64,
    flight: u32,
    /// Beats of a line, words of a beat, and words of a line.
    beats: usize,
    beat: usize,
    words: usize,
    /// The last cycle in which anything moved, and the last in which something came of it: messages may be sent again and
    /// again, and a device may be answered again and again, while the remote waits for ever.
    progress: u64,
    advance: u64,
    report: Report,
    /// What crossed the ports, while measurements keep it.
    crossings: Option<Vec<(u64, Crossing)>>,
    ports: Ports,
    /// What each slice should have counted.
    counts: [registers::Counts; SLICES],
    /// Changes of rights that each unit has to tell, those that were lost included.
    changes: Changes,
    /// What each unit has in hand, and how many messages that are no requests it has not yet taken.
    places: Vec<places::Places>,
    responses: Vec<usize>,
    shape: Shape,
    /// What is foretold of what is behind it.
    behind: endpoints::EndpointModel,
    /// Whoever listens to them does so without pause.
    listens: bool,
    /// Rows to be led to, and the lines that are on their way to one.
    aims: Option<Aims<'a>>,
    guides: Vec<Guide>,
    /// The file of a waveform that could not be opened.
    untraced: Option<PathBuf>,
    /// Whether all that happens is kept, with the values of words.
    tells: bool,
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
    /// The same about this line.
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
    /// A home that has not yet been reset, with lines that hold chance bytes.
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
        let mut chance = Chance::new(run.seed);
        let home_machine = Machine::new(home, 1);
        let remote_machine = Machine::new(&protocol.remote, 1);
        let facts = Facts::new(protocol, home);
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
            // A memory that is behind it begins with zeros.
            let bytes = match shape.endpoint {
                Endpoint::None => chance.bytes(),
                _ => [0; WORDS],
            };
            let (remote, home) = (remote_machine.initial(), home_machine.initial());
            lines.push(Line::new(number, remote, home, bytes));
        }
        let words = protocol.line_bytes as usize / 8;
        // A directory that has room for all lines needs no patience of the remote. In a smaller one a line can stand
        // whose upgrade is under way, and must not be behind more requests than a unit can set aside.
        let mut sets: FxHashMap<u64, usize> = FxHashMap::default();
        for line in &lines {
            *sets
                .entry(line.number % (all_units << shape.set_bits))
                .or_default() += 1;
        }
        let fits = sets.values().all(|&lines| lines <= shape.ways);
        Bench {
            most_requests: if fits { usize::MAX } else { shape.waiting },
            requests: vec![0; all_units as usize],
            protocol,
            rom,
            home,
            home_machine,
            remote_machine,
            rules: Rc::new(Rules { facts, plans }),
            run,
            chance,
            strange: Chance::new(run.seed ^ 0x5bd1_e995),
            stalls: stalls::Stalls::new(&run),
            model,
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            cycle: 0,
            lines,
            by_number,
            slices: Default::default(),
            under_way: BTreeMap::new(),
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
            crossings: None,
            ports: Ports::default(),
            counts: Default::default(),
            changes: Changes::new(
                all_units as usize,
                // Whoever is always ready listens to all.
                (run.ready == 16).then(|| Changes::soon(shape.units)),
            ),
            places: (0..all_units).map(|_| places::Places::default()).collect(),
            responses: vec![0; all_units as usize],
            shape,
            listens: false,
            behind: endpoints::EndpointModel::new(shape.endpoint, run.lines),
            aims: ways.filter(|_| !run.exact).map(|ways| Aims {
                ways,
                next: run.aim,
                pause: 0,
            }),
            guides: Vec::new(),
            untraced: None,
            tells: false,
            stop,
        }
    }

    /// Runs until all messages were exchanged and everything has come to rest.
    ///
    /// Keeps the waveform if asked for, and if the model was built with waveforms.
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

    /// What was wrong, with the history of the line; nothing was if it was told to stop.
    pub(super) fn failed(&self, wrong: Wrong) -> Failed {
        if self.is_stopped() {
            return Failed::Stopped;
        }
        if let Some(file) = &self.untraced {
            return Failed::Tool(format!("{}: no waveform can be written", file.display()));
        }
        Failed::Mismatch(Box::new(Mismatch {
            check: wrong.check,
            what: wrong.what,
            cycle: self.cycle,
            sequence: wrong.line.map(|line| self.lines[line].sequence()),
        }))
    }

    /// The same run, with all that has happened on each line.
    ///
    /// # Errors
    /// [`Failed`], with the first mismatch.
    pub(super) fn traces(mut self) -> Result<Vec<Sequence>, Failed> {
        self.tells = true;
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
                    self.untraced = Some(file.to_path_buf());
                    return noticed(Check::Progress, None, "it has no waveform".into());
                }
            }
            self.drive();
            self.step_model()?;
            self.observe()?;
            if !more && self.at_rest() {
                self.at_the_end()?;
                return self.registers();
            }
            if self.cycle - self.advance > patience {
                return self.stuck();
            }
        }
    }

    /// Whether anything new is begun.
    fn more(&self) -> bool {
        self.report.messages < self.run.messages
    }

    /// What the device asked for is done, which is an advance when it asks for nothing more.
    fn ends_something(&mut self) {
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

    /// The cycle in which something comes that takes as many cycles, or as few as one.
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
        said.or_else(|said| match self.is_of_strangers(&said) {
            true => Ok(()),
            false => noticed(Check::Assertion, None, said),
        })
    }

    fn note(&mut self, at: usize, agent: usize, action: Action) {
        let history = &mut self.lines[at].history;
        if history.len() == HISTORY && !self.tells {
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

/// The bits of a word that a mask of sixteenths of the line covers.
fn covered(mask: u16, word: usize, words: usize) -> u64 {
    let byte = |byte: usize| u64::from(mask >> ((8 * word + byte) * 16 / (8 * words)) & 1) * 0xff;
    (0..8).fold(0, |bits, place| bits | byte(place) << (8 * place))
}

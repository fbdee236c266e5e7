//! The Verilated home in the simulator, in the place of the simulated one: whole messages in and out, a cycle at a time.
//!
//! Between the pins and the simulator lie beats: messages and lines of memory are cut into them, and put together from them.
//! The other side of every port is always ready; what holds traffic up is the home, or what the simulator makes of it.
//! What the home tells of rights is compared here with the steps of its units, which the simulator compares with the controller.
//!
//! With an application in the RTL, too, what passes between it and the home is told, and its own memory is at pins that are
//! like those of the home's.

use crate::lockstep::changes::{Change, Changes};
use crate::lockstep::model::{Inputs, Model, Outputs, BEAT, CIRCUITS, SLICES, UNITS};
use crate::rom::Rom;
use crate::CLOCK;
use cohkit_application::rpc::Calls;
use cohkit_application::shared_table::SharedTable;
use cohkit_protocol::controller::{Controller, Event, Local};
use cohkit_protocol::protocol::{MessageId, Right};
use cohkit_sim::agents::clocked::{Bytes, ClockedHome, Happened, Heard, Took, WORDS};
use cohkit_sim::components::tags::folded;
use cohkit_sim::data::Random;
use cohkit_sim::kernel::Time;
use cohkit_sim::message::Line;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::Path;

/// Bits of a line's number on the pins.
const LINE: u64 = (1 << 36) - 1;
/// Length of a cycle in picoseconds.
pub const PERIOD: Time = (1_000_000 + CLOCK / 2) / CLOCK;
/// Cycles in which nothing moves after which nothing will by itself, if the home says that it is idle.
const REST: u32 = 8;
/// The same where an application takes a few steps by itself.
const REST_OF_APPLICATION: u32 = 64;

/// A home in a library that [`crate::lockstep::build`] has made.
pub struct Verilated {
    model: Model,
    rom: Rom,
    /// The numbers of events by their messages.
    events: Vec<Option<usize>>,
    /// Words in a line, and beats.
    words: usize,
    beats: usize,
    fold: u32,
    inputs: Inputs,
    outputs: Box<Outputs>,
    slices: [Slice; SLICES],
    cycle: u64,
    /// Cycles since anything moved.
    rest: u32,
    application: Option<InRtl>,
}

/// The applications of `hardware/lockstep/applications.sv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Application {
    /// Calls with sides of so many lines. Its layout is that of [`Application::calls`].
    Rpc {
        /// Lines of a side.
        payload: u32,
    },
    /// The engines of a table, one in each slice. Its numbers are those of [`SharedTable`].
    SharedTable {
        /// Number of the local operation that takes a line and locks it.
        operation: u8,
        /// Rows.
        rows: u32,
        /// Of each thousand rows, those that are incremented.
        contended: u32,
        /// Rows in work at a time, of each engine.
        outstanding: u32,
        /// Rows that each engine increments; without end if not given.
        increments: Option<u32>,
    },
    /// The prefetchers of a region, one in each slice. Blocks have 8 KiB, of both slices together.
    Prefetcher {
        /// Lines of the region, an even number.
        lines: u32,
        /// Blocks in use.
        blocks: u32,
    },
}

impl Application {
    /// Contexts that one slice serves.
    pub const CONTEXTS: u32 = 2;
    /// Most lines of a side of a call.
    pub const MOST_PAYLOAD: u32 = 8;

    /// Calls to the application in hardware, which [`Application::Rpc`] serves: contexts are dealt out to slices.
    pub fn calls(contexts: u32, payload: u32, calls: Option<u64>) -> Calls {
        Calls {
            slices: SLICES as u32,
            room: Application::MOST_PAYLOAD,
            ..Calls::new(contexts, payload, calls)
        }
    }

    /// Most blocks of the prefetcher.
    pub const MOST_BLOCKS: u32 = 8;
    /// Most rows that an engine of the shared table has in work.
    pub const MOST_OUTSTANDING: u32 = 4;

    /// The device of a table that has as many engines as there are slices.
    pub fn of_table(table: &SharedTable, home: &Controller) -> Application {
        let takes = |local: &Local| local.ensures == Right::None && local.locks;
        let operation = home.locals.iter().position(takes);
        Application::SharedTable {
            operation: operation.unwrap_or_default() as u8,
            rows: table.rows,
            contended: table.contended,
            outstanding: table.outstanding,
            increments: table.device.map(|device| device as u32),
        }
    }

    /// Whether the home's reads and writes go to it.
    fn between(self) -> bool {
        match self {
            Application::Rpc { .. } | Application::Prefetcher { .. } => true,
            Application::SharedTable { .. } => false,
        }
    }

    /// Its name and numbers as arguments of Verilog.
    fn arguments(self) -> String {
        match self {
            Application::Rpc { payload } => format!("application=1 payload={payload}"),
            Application::Prefetcher { lines, blocks } => {
                format!("application=3 lines={lines} blocks={blocks}")
            }
            Application::SharedTable {
                operation,
                rows,
                contended,
                outstanding,
                increments,
            } => {
                let increments = increments.unwrap_or(u32::MAX);
                format!("application=2 operation={operation} rows={rows} contended={contended} outstanding={outstanding} increments={increments}")
            }
        }
    }
}

/// An application in the RTL, and what is under way between it and its memory.
struct InRtl {
    kind: Application,
    /// What its memory draws from if it answers and listens by chance.
    chance: Option<Random>,
    memories: [OwnMemory; SLICES],
}

/// The memory of an application, at the pins of a slice.
#[derive(Default)]
struct OwnMemory {
    /// By the number of a read: lines to come, and those that are here.
    reads: Vec<(u64, u32, VecDeque<Bytes>)>,
    /// The read whose beats are going, and the beat.
    going: Option<(u64, usize)>,
    addresses: VecDeque<(Line, u64)>,
    data: VecDeque<(Bytes, u16)>,
    coming: (usize, Bytes, u16),
    written: VecDeque<u64>,
}

/// Bits of what passes between home and application in a cycle, as in `hardware/lockstep/lockstep.sv`.
mod passes {
    pub const LAST_READ: u64 = 1;
    pub const WRITTEN: u64 = 1 << 1;
    pub const LOCAL: u64 = 1 << 2;
    pub const UNLOCK: u64 = 1 << 3;
    pub const ANSWER: u64 = 1 << 4;
    pub const READ_ADDRESS: u64 = 1 << 5;
    pub const WRITE_ADDRESS: u64 = 1 << 6;
    pub const WRITE_DATA: u64 = 1 << 7;
}

/// What lies before a slice's ports, and what has come out of them in part.
struct Slice {
    entrances: [Entrance; CIRCUITS],
    leaving: [(usize, Bytes); CIRCUITS],
    locals: VecDeque<u64>,
    unlocks: VecDeque<u64>,
    /// AXI's names of the reads and writes of lines that are under way.
    reads: FxHashMap<Line, u64>,
    writes: FxHashMap<Line, u64>,
    read: VecDeque<(u64, Bytes)>,
    read_beat: usize,
    written: VecDeque<u64>,
    addresses: VecDeque<(Line, u64)>,
    data: VecDeque<(Bytes, u16)>,
    /// The write whose beats are coming.
    coming: (usize, Bytes, u16),
    /// Rights that have changed, to be told.
    changes: Changes,
    /// What an application has answered, as far as its beats have passed.
    passing: (usize, Bytes),
}

impl Default for Slice {
    fn default() -> Slice {
        Slice {
            entrances: Default::default(),
            leaving: Default::default(),
            locals: VecDeque::new(),
            unlocks: VecDeque::new(),
            reads: FxHashMap::default(),
            writes: FxHashMap::default(),
            read: VecDeque::new(),
            read_beat: 0,
            written: VecDeque::new(),
            addresses: VecDeque::new(),
            data: VecDeque::new(),
            coming: (0, [0; WORDS], 0),
            changes: Changes::new(UNITS, Some(Changes::soon(UNITS))),
            passing: (0, [0; WORDS]),
        }
    }
}

/// Messages before a circuit, each with its header.
#[derive(Default)]
struct Entrance {
    queue: VecDeque<(MessageId, u64, bool, Bytes)>,
    beat: usize,
}

impl Verilated {
    /// A home that has just been reset. `image` is the ROM's. Lines get the numbers of [`folded`] at its ports, by so many
    /// bits, so that the directory has the sets of a hashed cache; with 0 they keep their own.
    ///
    /// # Errors
    /// If the library or the image cannot be used, in words.
    pub fn open(
        library: &Path,
        image: &Path,
        rom: Rom,
        line_bytes: u32,
        fold: u32,
    ) -> Result<Verilated, String> {
        Verilated::open_with(library, image, rom, line_bytes, fold, None, "")
    }

    /// The same with an application behind it, in a library that was built with [`Endpoint::Application`].
    /// With a seed other than 0, everything between home, application and its memory takes its time by chance, and that
    /// memory answers in any order. The application sees lines by their numbers at the home's ports.
    /// `further` are more arguments, as of [`Model::open`].
    ///
    /// [`Endpoint::Application`]: crate::lockstep::build::Endpoint::Application
    ///
    /// # Errors
    /// As for [`Verilated::open`].
    pub fn open_with(
        library: &Path,
        image: &Path,
        rom: Rom,
        line_bytes: u32,
        fold: u32,
        application: Option<(Application, u16)>,
        further: &str,
    ) -> Result<Verilated, String> {
        let argument = application.map_or(further.to_string(), |(application, seed)| {
            format!("{} seed={seed} {further}", application.arguments())
        });
        let words = line_bytes as usize / 8;
        let mut events = Vec::new();
        for (number, about) in rom.events.iter().enumerate() {
            if let Event::Message(kind) = about.event {
                events.resize(events.len().max(kind.index() + 1), None);
                events[kind.index()] = Some(number);
            }
        }
        let mut home = Verilated {
            model: Model::open(library, image, &argument)?,
            rom,
            events,
            words,
            beats: words / BEAT,
            fold,
            inputs: Inputs::default(),
            outputs: Box::default(),
            slices: Default::default(),
            cycle: 0,
            rest: 0,
            application: application.map(|(kind, seed)| InRtl {
                kind,
                chance: (seed != 0).then(|| Random::new(seed.into())),
                memories: Default::default(),
            }),
        };
        home.inputs.reset = 1;
        for _ in 0..4 {
            home.model.step(&home.inputs, &mut home.outputs)?;
        }
        home.inputs = Inputs {
            tx_ready: [(1 << CIRCUITS) - 1; SLICES],
            local_rsp_ready: [1; SLICES],
            aw_ready: [1; SLICES],
            w_ready: [1; SLICES],
            ar_ready: [1; SLICES],
            change_ready: [1; SLICES],
            app_aw_ready: [1; SLICES],
            app_w_ready: [1; SLICES],
            app_ar_ready: [1; SLICES],
            ..Inputs::default()
        };
        Ok(home)
    }

    /// A line's number at the ports, and back.
    fn number(&self, line: Line) -> Line {
        match self.fold {
            0 => line,
            bits => folded(line, bits),
        }
    }

    /// What lies before the slice of a line of this number.
    fn slice(&mut self, line: Line) -> &mut Slice {
        self.rest = 0;
        &mut self.slices[line as usize % SLICES]
    }

    /// Puts the next beat of everything on the pins.
    fn drive(&mut self) {
        for (s, slice) in self.slices.iter().enumerate() {
            let inputs = &mut self.inputs;
            inputs.rx_valid[s] = 0;
            for (c, entrance) in slice.entrances.iter().enumerate() {
                if let Some((_, header, _, bytes)) = entrance.queue.front() {
                    inputs.rx_valid[s] |= 1 << c;
                    inputs.rx_header[s][c] = *header;
                    let beat = &bytes[entrance.beat * BEAT..][..BEAT];
                    inputs.rx_data[s][c].copy_from_slice(beat);
                }
            }
            inputs.local_req_valid[s] = u64::from(!slice.locals.is_empty());
            inputs.local_req[s] = slice.locals.front().copied().unwrap_or(0);
            inputs.unlock_valid[s] = u64::from(!slice.unlocks.is_empty());
            inputs.unlock_line[s] = slice.unlocks.front().copied().unwrap_or(0);
            inputs.r_valid[s] = u64::from(!slice.read.is_empty());
            if let Some((id, bytes)) = slice.read.front() {
                inputs.r_id[s] = *id;
                inputs.r_last[s] = u64::from(slice.read_beat + 1 == self.beats);
                inputs.r_data[s].copy_from_slice(&bytes[slice.read_beat * BEAT..][..BEAT]);
            }
            inputs.b_valid[s] = u64::from(!slice.written.is_empty());
            inputs.b_id[s] = slice.written.front().copied().unwrap_or(0);
        }
        if let Some(application) = &mut self.application {
            application.drive(&mut self.inputs, self.beats);
        }
    }

    /// What has entered a slice in this cycle.
    fn enter(&mut self, s: usize, happened: &mut Vec<Happened>) {
        let (inputs, outputs, slice) = (&self.inputs, &self.outputs, &mut self.slices[s]);
        let entered = inputs.rx_valid[s] & outputs.rx_ready[s];
        for (c, entrance) in slice.entrances.iter_mut().enumerate() {
            let Some((kind, header, carries, _)) = entrance.queue.front() else {
                continue;
            };
            if entered >> c & 1 == 0 {
                continue;
            }
            entrance.beat += 1;
            if !carries || entrance.beat == self.beats {
                happened.push(Happened::Entered {
                    kind: *kind,
                    line: (header & LINE) as Line,
                });
                entrance.beat = 0;
                entrance.queue.pop_front();
            }
        }
        if inputs.local_req_valid[s] & outputs.local_req_ready[s] != 0 {
            slice.locals.pop_front();
        }
        if inputs.unlock_valid[s] & outputs.unlock_ready[s] != 0 {
            slice.unlocks.pop_front();
        }
        if inputs.r_valid[s] & outputs.r_ready[s] != 0 {
            slice.read_beat += 1;
            if slice.read_beat == self.beats {
                slice.read_beat = 0;
                slice.read.pop_front();
            }
        }
        if inputs.b_valid[s] & outputs.b_ready[s] != 0 {
            slice.written.pop_front();
        }
    }

    /// What the units of a slice have done.
    fn steps(&mut self, s: usize, happened: &mut Vec<Happened>) -> Result<(), String> {
        let mut units = self.outputs.step_valid[s];
        while units != 0 {
            let unit = units.trailing_zeros() as usize;
            let step = self.outputs.step[s][unit];
            units &= units - 1;
            let field = |low: u32, bits: u32| (step >> low & ((1 << bits) - 1)) as usize;
            // Something was lacking: the event will be tried again.
            if field(61, 1) != 0 {
                continue;
            }
            let number = field(54, 6);
            let Some(about) = self.rom.events.get(number) else {
                return Err(format!("an event has the number {number}"));
            };
            let took = [Took::Impossible, Took::Left, Took::Refused, Took::Taken][field(44, 2)];
            let (state, next) = (field(46, 8), field(36, 8));
            happened.push(Happened::Stepped {
                line: (step & LINE) as Line,
                event: about.event,
                state,
                next,
                took,
                own: field(60, 1) != 0,
            });
            let rights = [state, next].map(|state| self.rom.rights.get(state).copied());
            if let (Took::Taken, [Some(before), Some(after)]) = (took, rights) {
                let line = step & LINE;
                let change = Change {
                    line,
                    before,
                    after,
                };
                if before != after {
                    self.slices[s].changes.learnt(unit, change, self.cycle);
                }
            }
        }
        Ok(())
    }

    /// What whoever listens is told of rights.
    fn told(&mut self, s: usize) -> Result<(), String> {
        if self.outputs.change_valid[s] != 0 {
            self.slices[s].changes.told(self.outputs.change[s])?;
        }
        Ok(())
    }

    /// The home has come to rest, and tells nothing more.
    fn rests(&mut self) -> Result<(), String> {
        for slice in &mut self.slices {
            for unit in 0..UNITS {
                slice.changes.rest(unit)?;
            }
        }
        Ok(())
    }

    /// What has left a slice toward the remote and the device.
    fn leave(&mut self, s: usize, happened: &mut Vec<Happened>) -> Result<(), String> {
        let (outputs, slice) = (&self.outputs, &mut self.slices[s]);
        for c in 0..CIRCUITS {
            if outputs.tx_valid[s] >> c & 1 == 0 {
                continue;
            }
            let header = outputs.tx_header[s][c];
            let number = (header >> 40 & 0xff) as usize;
            let Some(sent) = self.rom.sends.get(number) else {
                return Err(format!("a message to the remote has the number {number}"));
            };
            let (beat, bytes) = &mut slice.leaving[c];
            bytes[*beat * BEAT..][..BEAT].copy_from_slice(&outputs.tx_data[s][c]);
            *beat += 1;
            if !sent.payload || *beat == self.beats {
                *beat = 0;
                happened.push(Happened::Left {
                    kind: sent.message,
                    line: (header & LINE) as Line,
                    bytes: sent.payload.then_some(*bytes),
                });
            }
        }
        let told = match self.application {
            Some(_) => outputs.passes[s] & passes::ANSWER,
            None => outputs.local_rsp_valid[s],
        };
        if told != 0 {
            let answer = outputs.local_rsp[s];
            let unlock = answer >> 40 & 1 != 0;
            happened.push(Happened::Answered {
                line: (answer & LINE) as Line,
                operation: (!unlock).then_some((answer >> 36 & 7) as u8),
                refused: answer >> 39 & 1 != 0,
            });
        }
        Ok(())
    }

    /// What a slice has asked of memory, or of the application in its place.
    fn memory(&mut self, s: usize, happened: &mut Vec<Happened>) -> Result<(), String> {
        let (outputs, slice) = (&self.outputs, &mut self.slices[s]);
        let line_bytes = self.words as u64 * 8;
        let passes = outputs.passes[s];
        if passes & passes::READ_ADDRESS != 0 {
            let line = (outputs.ar_addr[s] / line_bytes) as Line;
            slice.reads.insert(line, outputs.ar_id[s]);
            happened.push(Happened::Reads { line });
        }
        if passes & passes::WRITE_ADDRESS != 0 {
            let line = (outputs.aw_addr[s] / line_bytes) as Line;
            slice.addresses.push_back((line, outputs.aw_id[s]));
        }
        if passes & passes::WRITE_DATA != 0 {
            let (data, strobes) = (&outputs.w_data[s], outputs.w_strb[s]);
            if let Some(whole) = assemble(&mut slice.coming, data, strobes, outputs.w_last[s])? {
                slice.data.push_back(whole);
            }
        }
        if let (Some(&(line, id)), Some(&(bytes, mask))) =
            (slice.addresses.front(), slice.data.front())
        {
            slice.addresses.pop_front();
            slice.data.pop_front();
            slice.writes.insert(line, id);
            happened.push(Happened::Writes { line, bytes, mask });
        }
        Ok(())
    }

    /// What the application of a slice has said to the home, and asked of its own memory.
    fn acts(&mut self, s: usize, happened: &mut Vec<Happened>) -> Result<(), String> {
        let (outputs, inputs, slice) = (&self.outputs, &self.inputs, &mut self.slices[s]);
        let Some(application) = &mut self.application else {
            return Ok(());
        };
        let passes = outputs.passes[s];
        if application.kind.between() {
            if outputs.passes_r[s] != 0 {
                let (beat, bytes) = &mut slice.passing;
                if *beat == self.beats {
                    return Err("an answer of the application has too many beats".into());
                }
                bytes[*beat * BEAT..][..BEAT].copy_from_slice(&outputs.passes_r_data[s]);
                *beat += 1;
            }
            if passes & passes::LAST_READ != 0 {
                let (beats, bytes) = std::mem::take(&mut slice.passing);
                let line = of_number(&mut slice.reads, outputs.passes_r_id[s]);
                let Some(line) = line.filter(|_| beats == self.beats) else {
                    return Err("the application answers what was not read".into());
                };
                happened.push(Happened::Answers { line, bytes });
            }
            if passes & passes::WRITTEN != 0 {
                let Some(line) = of_number(&mut slice.writes, outputs.passes_b_id[s]) else {
                    return Err("the application accepts what was not written".into());
                };
                happened.push(Happened::Accepts { line });
            }
        }
        if passes & passes::LOCAL != 0 {
            let local = outputs.passes_local[s];
            happened.push(Happened::Asks {
                line: (local & LINE) as Line,
                operation: (local >> 36 & 7) as u8,
            });
        }
        if passes & passes::UNLOCK != 0 {
            let line = (outputs.passes_unlock[s] & LINE) as Line;
            happened.push(Happened::Unlocks { line });
        }
        let line_bytes = self.words as u64 * 8;
        let memory = &mut application.memories[s];
        let tag = |id: u64| (id as u32) << 1 | s as u32;
        if inputs.app_r_valid[s] & outputs.app_r_ready[s] != 0 {
            memory.beat_taken(self.beats);
        }
        if inputs.app_b_valid[s] & outputs.app_b_ready[s] != 0 {
            memory.written.pop_front();
        }
        if inputs.app_ar_ready[s] & outputs.app_ar_valid[s] != 0 {
            let (id, lines) = (outputs.app_ar_id[s], outputs.app_ar_lines[s] as u32 + 1);
            memory.reads.push((id, lines, VecDeque::new()));
            happened.push(Happened::Fetches {
                tag: tag(id),
                line: (outputs.app_ar_addr[s] / line_bytes) as Line,
                lines,
                step: SLICES as Line,
            });
        }
        if inputs.app_aw_ready[s] & outputs.app_aw_valid[s] != 0 {
            let line = (outputs.app_aw_addr[s] / line_bytes) as Line;
            memory.addresses.push_back((line, outputs.app_aw_id[s]));
        }
        if inputs.app_w_ready[s] & outputs.app_w_valid[s] != 0 {
            let (data, strobes) = (&outputs.app_w_data[s], outputs.app_w_strb[s]);
            if let Some(whole) = assemble(&mut memory.coming, data, strobes, outputs.app_w_last[s])?
            {
                memory.data.push_back(whole);
            }
        }
        if let (Some(&(line, id)), Some(&(bytes, mask))) =
            (memory.addresses.front(), memory.data.front())
        {
            memory.addresses.pop_front();
            memory.data.pop_front();
            happened.push(Happened::Stores {
                tag: tag(id),
                line,
                bytes,
                mask,
            });
        }
        Ok(())
    }
}

/// The line whose read or write has this number, which is over.
fn of_number(open: &mut FxHashMap<Line, u64>, number: u64) -> Option<Line> {
    let line = open
        .iter()
        .find(|(_, &id)| id == number)
        .map(|(&line, _)| line)?;
    open.remove(&line);
    Some(line)
}

/// A beat that is written; gives the line with its words that are written, if it was the last one.
fn assemble(
    (beat, bytes, mask): &mut (usize, Bytes, u16),
    data: &[u64; BEAT],
    strobes: u64,
    last: u64,
) -> Result<Option<(Bytes, u16)>, String> {
    let Some(place) = bytes.get_mut(*beat * BEAT..(*beat + 1) * BEAT) else {
        return Err("a write has too many beats".into());
    };
    place.copy_from_slice(data);
    for word in 0..BEAT {
        match strobes >> (8 * word) & 0xff {
            0 => {}
            0xff => *mask |= 1 << (*beat * BEAT + word),
            _ => return Err(format!("a write has the strobes {strobes:x}")),
        }
    }
    *beat += 1;
    let whole = (*bytes, *mask);
    Ok((last != 0).then(|| {
        (*beat, *bytes, *mask) = (0, [0; WORDS], 0);
        whole
    }))
}

impl InRtl {
    /// Puts on the pins what the application's memory says.
    fn drive(&mut self, inputs: &mut Inputs, beats: usize) {
        for (s, memory) in self.memories.iter_mut().enumerate() {
            // What is on the pins and was not taken stays there.
            let mut goes = true;
            if let Some(chance) = &mut self.chance {
                let drawn = chance.below(64);
                inputs.app_ar_ready[s] = drawn & 1;
                inputs.app_aw_ready[s] = drawn >> 1 & 1;
                inputs.app_w_ready[s] = drawn >> 2 & 1;
                goes = drawn >> 3 != 0;
            }
            if memory.going.is_none() && goes {
                let here = |read: &&(u64, u32, VecDeque<Bytes>)| !read.2.is_empty();
                let count = memory.reads.iter().filter(here).count();
                let which = match &mut self.chance {
                    Some(chance) if count > 0 => chance.below(count as u64) as usize,
                    _ => 0,
                };
                let read = memory.reads.iter().filter(here).nth(which);
                memory.going = read.map(|read| (read.0, 0));
            }
            inputs.app_r_valid[s] = u64::from(memory.going.is_some());
            if let Some((id, beat)) = memory.going {
                let read = memory.reads.iter().find(|read| read.0 == id);
                if let Some((_, left, lines)) = read {
                    inputs.app_r_id[s] = id;
                    inputs.app_r_last[s] = u64::from(*left == 1 && beat + 1 == beats);
                    inputs.app_r_data[s].copy_from_slice(&lines[0][beat * BEAT..][..BEAT]);
                }
            }
            inputs.app_b_valid[s] = u64::from(!memory.written.is_empty());
            inputs.app_b_id[s] = memory.written.front().copied().unwrap_or(0);
        }
    }
}

impl OwnMemory {
    /// The application has taken a beat.
    fn beat_taken(&mut self, beats: usize) {
        let Some((id, beat)) = &mut self.going else {
            return;
        };
        *beat += 1;
        if *beat < beats {
            return;
        }
        if let Some(place) = self.reads.iter().position(|read| read.0 == *id) {
            let read = &mut self.reads[place];
            read.1 -= 1;
            read.2.pop_front();
            if read.1 == 0 {
                self.reads.remove(place);
            }
        }
        self.going = None;
    }
}

impl ClockedHome for Verilated {
    fn period(&self) -> Time {
        PERIOD
    }

    fn message(&mut self, kind: MessageId, line: Line, bytes: Bytes, mask: u16) {
        let Some(&Some(number)) = self.events.get(kind.index()) else {
            return;
        };
        let event = &self.rom.events[number];
        let (circuit, carries) = (event.circuit, event.payload);
        let line = self.number(line);
        // A header's mask has sixteen bits for a line of any size.
        let sixteenths = (0..16).filter(|bit| mask >> (bit * self.words / 16) & 1 != 0);
        let mask: u64 = sixteenths.map(|bit| 1 << bit).sum();
        let header = mask << 48 | (number as u64) << 40 | u64::from(line);
        let entrance = &mut self.slice(line).entrances[circuit];
        entrance.queue.push_back((kind, header, carries, bytes));
    }

    fn local(&mut self, line: Line, operation: u8) {
        let line = self.number(line);
        let request = u64::from(operation) << 36 | u64::from(line);
        self.slice(line).locals.push_back(request);
    }

    fn unlock(&mut self, line: Line) {
        let line = self.number(line);
        self.slice(line).unlocks.push_back(line.into());
    }

    fn memory_read(&mut self, line: Line, bytes: Bytes) {
        let line = self.number(line);
        let slice = self.slice(line);
        if let Some(id) = slice.reads.remove(&line) {
            slice.read.push_back((id, bytes));
        }
    }

    fn memory_written(&mut self, line: Line) {
        let line = self.number(line);
        let slice = self.slice(line);
        if let Some(id) = slice.writes.remove(&line) {
            slice.written.push_back(id);
        }
    }

    fn cycle(&mut self, happened: &mut Vec<Happened>) -> Result<(), String> {
        self.drive();
        let stepped = self.model.step(&self.inputs, &mut self.outputs);
        stepped.map_err(|said| format!("an assertion failed: {said}"))?;
        let before = happened.len();
        for s in 0..SLICES {
            self.enter(s, happened);
            self.steps(s, happened)?;
            self.leave(s, happened)?;
            self.memory(s, happened)?;
            self.told(s)?;
            self.acts(s, happened)?;
        }
        for happened in &mut happened[before..] {
            let line = happened.line_mut();
            *line = self.number(*line);
        }
        let moves = happened.len() > before
            || self.inputs.rx_valid != [0; SLICES]
            || self.outputs.change_valid != [0; SLICES];
        self.rest = if moves { 0 } else { self.rest + 1 };
        self.cycle += 1;
        match self.rest {
            REST if self.outputs.idle == [1; SLICES] => self.rests(),
            _ => Ok(()),
        }
    }

    fn idle(&self) -> bool {
        let rest = match self.application {
            Some(_) => REST_OF_APPLICATION,
            None => REST,
        };
        let owns = |application: &InRtl| {
            let memories = &mut application.memories.iter();
            memories.any(|memory| {
                memory.going.is_some()
                    || !memory.written.is_empty()
                    || memory.reads.iter().any(|read| !read.2.is_empty())
            })
        };
        self.rest >= rest
            && self.outputs.idle == [1; SLICES]
            && !self.application.as_ref().is_some_and(owns)
    }

    fn has_application(&self) -> bool {
        self.application.is_some()
    }

    fn application(&mut self, heard: Heard) {
        self.rest = 0;
        let Some(application) = &mut self.application else {
            return;
        };
        match heard {
            Heard::Start => self.inputs.start = 1,
            Heard::Stop => self.inputs.stop = 1,
            Heard::Fetched { tag, bytes } => {
                let memory = &mut application.memories[tag as usize % SLICES];
                let mut reads = memory.reads.iter_mut();
                if let Some(read) = reads.find(|read| read.0 == u64::from(tag >> 1)) {
                    read.2.push_back(bytes);
                }
            }
            Heard::Stored { tag } => {
                let memory = &mut application.memories[tag as usize % SLICES];
                memory.written.push_back(u64::from(tag >> 1));
            }
        }
    }
}

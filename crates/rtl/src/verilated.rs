//! The Verilated home as a replacement of the simulated home: whole messages in and out, one cycle at a time.
//!
//! Messages and lines of memory are split into beats for the pins and reassembled from them.
//! All ports are always ready on the other side, so that only the home and the simulator's own model cause
//! back-pressure.
//! Permission changes that the home reports are compared here with the steps of its units; the simulator compares these
//! steps with the controller.
//!
//! With an application in RTL, the traffic between it and the home is observed and reported. The application's own
//! memory has pins like those of the home's memory.

mod application;

use crate::lockstep::changes::{Change, Changes};
use crate::lockstep::model::{Inputs, Model, Outputs, BEAT, CIRCUITS, SLICES, UNITS};
use crate::rom::Rom;
use crate::CLOCK;
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;
use cohkit_sim::agents::clocked::{
    Admission, ApplicationEvent, Bytes, ClockedHome, CycleOutput, WORDS,
};
use cohkit_sim::components::tags::folded;
use cohkit_sim::kernel::Time;
use cohkit_sim::message::Line;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::Path;

pub use application::Application;
use application::RtlApplication;

/// Mask of a line number on the pins.
const LINE: u64 = (1 << 36) - 1;
/// Clock period in picoseconds.
pub const PERIOD: Time = (1_000_000 + CLOCK / 2) / CLOCK;
/// Number of quiet cycles after which an idle home will not act on its own.
const QUIET_CYCLES: u32 = 8;
/// Number of quiet cycles if an application is present, which takes a few cycles on its own.
const APPLICATION_QUIET_CYCLES: u32 = 64;

/// A home in a library built by [`crate::lockstep::build`].
pub struct Verilated {
    model: Model,
    rom: Rom,
    /// Event number of each message type that goes to the home.
    events: Vec<Option<usize>>,
    /// Words per line, and beats per line.
    words: usize,
    beats: usize,
    fold: u32,
    inputs: Inputs,
    outputs: Box<Outputs>,
    slices: [Slice; SLICES],
    cycle: u64,
    /// Cycles since the last activity.
    rest: u32,
    application: Option<RtlApplication>,
}

/// Bits of the traffic between home and application in a cycle, as in `hardware/lockstep/lockstep.sv`.
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

/// Queues in front of a slice's ports, and partially received output.
struct Slice {
    port_queues: [PortQueue; CIRCUITS],
    departing: [(usize, Bytes); CIRCUITS],
    locals: VecDeque<u64>,
    unlocks: VecDeque<u64>,
    /// AXI identifiers of outstanding reads and writes, by line.
    reads: FxHashMap<Line, u64>,
    writes: FxHashMap<Line, u64>,
    read: VecDeque<(u64, Bytes)>,
    read_beat: usize,
    written: VecDeque<u64>,
    addresses: VecDeque<(Line, u64)>,
    data: VecDeque<(Bytes, u16)>,
    /// The write whose beats are arriving.
    incoming_write: (usize, Bytes, u16),
    /// Changes of permissions that the home has yet to report.
    changes: Changes,
    /// The application's answer whose beats are in transit.
    outgoing_answer: (usize, Bytes),
}

impl Default for Slice {
    fn default() -> Slice {
        Slice {
            port_queues: Default::default(),
            departing: Default::default(),
            locals: VecDeque::new(),
            unlocks: VecDeque::new(),
            reads: FxHashMap::default(),
            writes: FxHashMap::default(),
            read: VecDeque::new(),
            read_beat: 0,
            written: VecDeque::new(),
            addresses: VecDeque::new(),
            data: VecDeque::new(),
            incoming_write: (0, [0; WORDS], 0),
            changes: Changes::new(UNITS, Some(Changes::max_report_delay(UNITS))),
            outgoing_answer: (0, [0; WORDS]),
        }
    }
}

/// Messages queued for a circuit, each with its header; the index of the next beat.
#[derive(Default)]
struct PortQueue {
    queue: VecDeque<(MessageId, u64, bool, Bytes)>,
    beat: usize,
}

impl Verilated {
    /// Creates a home after reset. `image` is the file of the ROM's image. With `fold` > 0, the ports use the line
    /// numbers of [`folded`] with that many bits. The directory is then indexed like a hashed cache.
    ///
    /// # Errors
    /// The library or the image cannot be used, with the reason.
    pub fn open(
        library: &Path,
        image: &Path,
        rom: Rom,
        line_bytes: u32,
        fold: u32,
    ) -> Result<Verilated, String> {
        Verilated::open_with(library, image, rom, line_bytes, fold, None, "")
    }

    /// Creates a home with an application behind it, from a library built with [`Endpoint::Application`].
    /// With a seed other than 0, all traffic between home, application and its memory has random delays, and that
    /// memory answers in any order. The application sees lines by their numbers at the home's ports.
    /// `further` are additional arguments for [`Model::open`].
    ///
    /// [`Endpoint::Application`]: crate::lockstep::shapes::Endpoint::Application
    ///
    /// # Errors
    /// As [`Verilated::open`] does.
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
            application: application.map(|(kind, seed)| RtlApplication::new(kind, seed)),
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

    /// Maps a line to its number at the ports, or back; the mapping is its own inverse.
    fn number(&self, line: Line) -> Line {
        match self.fold {
            0 => line,
            bits => folded(line, bits),
        }
    }

    /// Returns the slice of a port's line number and records activity.
    fn slice(&mut self, line: Line) -> &mut Slice {
        self.rest = 0;
        &mut self.slices[line as usize % SLICES]
    }

    /// Drives the next beat of each queue to the pins.
    fn drive(&mut self) {
        for (s, slice) in self.slices.iter().enumerate() {
            let inputs = &mut self.inputs;
            (inputs.rx_valid[s], inputs.rx_last[s]) = (0, 0);
            for (c, entrance) in slice.port_queues.iter().enumerate() {
                if let Some((_, header, carries, bytes)) = entrance.queue.front() {
                    let last = !carries || entrance.beat + 1 == self.beats;
                    inputs.rx_valid[s] |= 1 << c;
                    inputs.rx_last[s] |= u64::from(last) << c;
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

    /// Records the beats that a slice has accepted in this cycle.
    fn enter(&mut self, s: usize, cycle_outputs: &mut Vec<CycleOutput>) {
        let (inputs, outputs, slice) = (&self.inputs, &self.outputs, &mut self.slices[s]);
        let entered = inputs.rx_valid[s] & outputs.rx_ready[s];
        for (c, entrance) in slice.port_queues.iter_mut().enumerate() {
            let Some((kind, header, carries, _)) = entrance.queue.front() else {
                continue;
            };
            if entered >> c & 1 == 0 {
                continue;
            }
            entrance.beat += 1;
            if !carries || entrance.beat == self.beats {
                cycle_outputs.push(CycleOutput::Entered {
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

    /// Records the steps of a slice's units.
    fn steps(&mut self, s: usize, cycle_outputs: &mut Vec<CycleOutput>) -> Result<(), String> {
        let mut units = self.outputs.step_valid[s];
        while units != 0 {
            let unit = units.trailing_zeros() as usize;
            let step = self.outputs.step[s][unit];
            units &= units - 1;
            let field = |low: u32, bits: u32| (step >> low & ((1 << bits) - 1)) as usize;
            // A resource was missing: the unit will retry the event.
            if field(61, 1) != 0 {
                continue;
            }
            let number = field(54, 6);
            let Some(about) = self.rom.events.get(number) else {
                return Err(format!("an event has the number {number}"));
            };
            let took = [
                Admission::Impossible,
                Admission::Left,
                Admission::Refused,
                Admission::Taken,
            ][field(44, 2)];
            let (state, next) = (field(46, 8), field(36, 8));
            cycle_outputs.push(CycleOutput::Stepped {
                line: (step & LINE) as Line,
                event: about.event,
                state,
                next,
                took,
                own: field(60, 1) != 0,
            });
            let rights = [state, next].map(|state| self.rom.rights.get(state).copied());
            if let (Admission::Taken, [Some(before), Some(after)]) = (took, rights) {
                let line = step & LINE;
                let change = Change {
                    line,
                    before,
                    after,
                };
                if before != after {
                    self.slices[s]
                        .changes
                        .record_change(unit, change, self.cycle);
                }
            }
        }
        Ok(())
    }

    /// Checks the permission change that the home reports in this cycle.
    fn told(&mut self, s: usize) -> Result<(), String> {
        if self.outputs.change_valid[s] != 0 {
            self.slices[s].changes.told(self.outputs.change[s])?;
        }
        Ok(())
    }

    /// Checks at rest that no permission change is missing.
    fn rests(&mut self) -> Result<(), String> {
        for slice in &mut self.slices {
            for unit in 0..UNITS {
                slice.changes.rest(unit)?;
            }
        }
        Ok(())
    }

    /// Records the messages to the remote and the answers to the device that have left a slice.
    fn leave(&mut self, s: usize, cycle_outputs: &mut Vec<CycleOutput>) -> Result<(), String> {
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
            let (beat, bytes) = &mut slice.departing[c];
            bytes[*beat * BEAT..][..BEAT].copy_from_slice(&outputs.tx_data[s][c]);
            *beat += 1;
            let last = !sent.payload || *beat == self.beats;
            if last != (outputs.tx_last[s] >> c & 1 != 0) {
                return Err(format!(
                    "beat {beat} of {} has a wrong last-beat flag",
                    sent.name
                ));
            }
            if last {
                *beat = 0;
                cycle_outputs.push(CycleOutput::Left {
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
            cycle_outputs.push(CycleOutput::Answered {
                line: (answer & LINE) as Line,
                operation: (!unlock).then_some((answer >> 36 & 7) as u8),
                refused: answer >> 39 & 1 != 0,
            });
        }
        Ok(())
    }

    /// Records the requests of a slice to memory, or to the application in its place.
    fn memory(&mut self, s: usize, cycle_outputs: &mut Vec<CycleOutput>) -> Result<(), String> {
        let (outputs, slice) = (&self.outputs, &mut self.slices[s]);
        let line_bytes = self.words as u64 * 8;
        let passes = outputs.passes[s];
        if passes & passes::READ_ADDRESS != 0 {
            let line = (outputs.ar_addr[s] / line_bytes) as Line;
            slice.reads.insert(line, outputs.ar_id[s]);
            cycle_outputs.push(CycleOutput::Reads { line });
        }
        if passes & passes::WRITE_ADDRESS != 0 {
            let line = (outputs.aw_addr[s] / line_bytes) as Line;
            slice.addresses.push_back((line, outputs.aw_id[s]));
        }
        if passes & passes::WRITE_DATA != 0 {
            let (data, strobes) = (&outputs.w_data[s], outputs.w_strb[s]);
            if let Some(whole) =
                assemble(&mut slice.incoming_write, data, strobes, outputs.w_last[s])?
            {
                slice.data.push_back(whole);
            }
        }
        if let (Some(&(line, id)), Some(&(bytes, mask))) =
            (slice.addresses.front(), slice.data.front())
        {
            slice.addresses.pop_front();
            slice.data.pop_front();
            slice.writes.insert(line, id);
            cycle_outputs.push(CycleOutput::Writes { line, bytes, mask });
        }
        Ok(())
    }
}

/// Assembles a beat of a write. Returns the line and the mask of its written words after the last beat.
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
        // The header's mask has sixteen bits for a line of any size.
        let sixteenths = (0..16).filter(|bit| mask >> (bit * self.words / 16) & 1 != 0);
        let mask: u64 = sixteenths.map(|bit| 1 << bit).sum();
        let header = mask << 48 | (number as u64) << 40 | u64::from(line);
        let entrance = &mut self.slice(line).port_queues[circuit];
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

    fn cycle(&mut self, cycle_outputs: &mut Vec<CycleOutput>) -> Result<(), String> {
        self.drive();
        let stepped = self.model.step(&self.inputs, &mut self.outputs);
        stepped.map_err(|said| format!("an assertion failed: {said}"))?;
        let before = cycle_outputs.len();
        for s in 0..SLICES {
            self.enter(s, cycle_outputs);
            self.steps(s, cycle_outputs)?;
            self.leave(s, cycle_outputs)?;
            self.memory(s, cycle_outputs)?;
            self.told(s)?;
            self.acts(s, cycle_outputs)?;
        }
        for cycle_outputs in &mut cycle_outputs[before..] {
            let line = cycle_outputs.line_mut();
            *line = self.number(*line);
        }
        let moves = cycle_outputs.len() > before
            || self.inputs.rx_valid != [0; SLICES]
            || self.outputs.change_valid != [0; SLICES];
        self.rest = if moves { 0 } else { self.rest + 1 };
        self.cycle += 1;
        match self.rest {
            QUIET_CYCLES if self.outputs.idle == [1; SLICES] => self.rests(),
            _ => Ok(()),
        }
    }

    fn idle(&self) -> bool {
        let rest = match self.application {
            Some(_) => APPLICATION_QUIET_CYCLES,
            None => QUIET_CYCLES,
        };
        self.rest >= rest
            && self.outputs.idle == [1; SLICES]
            && self
                .application
                .as_ref()
                .is_none_or(RtlApplication::is_idle)
    }

    fn has_application(&self) -> bool {
        self.application.is_some()
    }

    fn application(&mut self, heard: ApplicationEvent) {
        self.rest = 0;
        if let Some(application) = &mut self.application {
            application.handle_event(heard, &mut self.inputs);
        }
    }
}

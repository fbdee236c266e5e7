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
use crate::lockstep::model::{Inputs, Model, Outputs, BEAT_WORDS, CIRCUITS, SLICES, UNITS};
use crate::lockstep::words::{Header, LocalRequest, LocalResponse, ReportedStep};
use crate::rom::{Effect, Rom};
use crate::CLOCK;
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;
use cohkit_sim::agents::clocked::{Admission, ApplicationEvent, Bytes, ClockedHome, CycleOutput};
use cohkit_sim::components::tags::folded;
use cohkit_sim::kernel::Time;
use cohkit_sim::message::Line;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::Path;

pub use application::Application;
use application::RtlApplication;

/// Clock period in picoseconds.
pub const PERIOD: Time = (1_000_000 + CLOCK / 2) / CLOCK;
/// Number of quiet cycles after which an idle home does nothing without input.
const QUIET_CYCLES: u32 = 8;
/// Number of quiet cycles if an application is present, which may work for some cycles without activity at the ports.
const APPLICATION_QUIET_CYCLES: u32 = 64;

/// A home in a library built by [`crate::lockstep::build`].
pub struct Verilated {
    /// The home in RTL.
    model: Model,
    /// ROM that the home executes, for the numbers of events and messages.
    rom: Rom,
    /// Event number of each message type that goes to the home, by message type; `None` for other messages.
    events: Vec<Option<usize>>,
    /// 64-bit words per line.
    words: usize,
    /// Beats per line.
    beats: usize,
    /// Number of bits by which line numbers are folded at the ports; 0 for none.
    fold: u32,
    /// Input pins of the next cycle.
    inputs: Inputs,
    /// Output pins of the last cycle.
    outputs: Box<Outputs>,
    /// Queues and outstanding requests of each slice.
    slices: [Slice; SLICES],
    /// Number of cycles since reset.
    cycle: u64,
    /// Cycles since the last activity.
    quiet_cycles: u32,
    /// Application behind the home, if there is one.
    application: Option<RtlApplication>,
}

/// Bits of the pin `handshakes`: transfers between home and application in a cycle, as in
/// `hardware/lockstep/lockstep.sv`.
mod handshakes {
    /// Last beat of a read.
    pub const LAST_READ: u64 = 1;
    /// Response to a write.
    pub const WRITTEN: u64 = 1 << 1;
    /// Local operation that the application requests.
    pub const LOCAL: u64 = 1 << 2;
    /// Unlock that the application requests.
    pub const UNLOCK: u64 = 1 << 3;
    /// Response to a local operation or to an unlock.
    pub const RESPONSE: u64 = 1 << 4;
    /// Address of a read.
    pub const READ_ADDRESS: u64 = 1 << 5;
    /// Address of a write.
    pub const WRITE_ADDRESS: u64 = 1 << 6;
    /// Beat of a write.
    pub const WRITE_DATA: u64 = 1 << 7;
}

/// Queues in front of a slice's ports, and partially received output.
struct Slice {
    /// Messages to the home, by circuit.
    port_queues: [PortQueue; CIRCUITS],
    /// Message to the remote whose beats are leaving, by circuit.
    departing: [PartialLine; CIRCUITS],
    /// Local operations of the device, as the pins encode them.
    locals: VecDeque<u64>,
    /// Line numbers that the device unlocks.
    unlocks: VecDeque<u64>,
    /// AXI identifiers of outstanding reads, by line.
    reads: FxHashMap<Line, u64>,
    /// AXI identifiers of outstanding writes, by line.
    writes: FxHashMap<Line, u64>,
    /// Read responses of memory: AXI identifier and bytes. The beats of the first one are entering.
    read_responses: VecDeque<(u64, Bytes)>,
    /// Index of the next beat of that response.
    read_beat: usize,
    /// AXI identifiers of completed writes, in the order of their responses.
    write_responses: VecDeque<u64>,
    /// Writes of the home whose address or data are incomplete.
    incoming_writes: IncomingWrites,
    /// Changes of permissions that the home has yet to report.
    changes: Changes,
    /// Read response of the application, whose beats are in transit.
    outgoing_response: PartialLine,
}

/// A line of which some beats have been transferred.
#[derive(Clone, Copy, Default)]
struct PartialLine {
    /// Number of beats so far.
    beats: usize,
    /// Contents of the line, as far as they have been transferred.
    bytes: Bytes,
}

/// Data of a complete write.
#[derive(Clone, Copy)]
struct WriteData {
    /// Contents of the line.
    bytes: Bytes,
    /// Mask of the written words.
    mask: u16,
}

/// A complete write.
struct Write {
    /// Line that is written.
    line: Line,
    /// AXI identifier.
    id: u64,
    /// Its data.
    data: WriteData,
}

/// Writes at an AXI port whose address or data are incomplete. Addresses and data arrive independently, each in order.
#[derive(Default)]
struct IncomingWrites {
    /// Addresses of writes whose data have not arrived, each as line and AXI identifier.
    addresses: VecDeque<(Line, u64)>,
    /// Data of writes whose address has not arrived.
    data: VecDeque<WriteData>,
    /// Write whose beats are arriving.
    current: PartialLine,
    /// Mask of the written words of that write.
    current_mask: u16,
}

impl IncomingWrites {
    /// Adds an address.
    fn add_address(&mut self, line: Line, id: u64) {
        self.addresses.push_back((line, id));
    }

    /// Adds a beat of data, with its byte strobes and the mark of the last beat.
    ///
    /// # Errors
    /// The write has too many beats, or writes a part of a word.
    fn add_beat(
        &mut self,
        data: &[u64; BEAT_WORDS],
        strobes: u64,
        is_last: bool,
    ) -> Result<(), String> {
        let PartialLine { beats, bytes } = &mut self.current;
        let first_word = *beats * BEAT_WORDS;
        let Some(beat_words) = bytes.get_mut(first_word..first_word + BEAT_WORDS) else {
            return Err("a write has too many beats".into());
        };
        beat_words.copy_from_slice(data);
        for word in 0..BEAT_WORDS {
            match strobes >> (8 * word) & 0xff {
                0 => {}
                0xff => self.current_mask |= 1 << (first_word + word),
                _ => return Err(format!("a write has the strobes {strobes:x}")),
            }
        }
        *beats += 1;
        if is_last {
            self.data.push_back(WriteData {
                bytes: std::mem::take(&mut self.current).bytes,
                mask: std::mem::take(&mut self.current_mask),
            });
        }
        Ok(())
    }

    /// Removes and returns the next write whose address and data are complete.
    fn next_complete(&mut self) -> Option<Write> {
        let (&(line, id), &data) = (self.addresses.front()?, self.data.front()?);
        self.addresses.pop_front();
        self.data.pop_front();
        Some(Write { line, id, data })
    }
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
            read_responses: VecDeque::new(),
            read_beat: 0,
            write_responses: VecDeque::new(),
            incoming_writes: IncomingWrites::default(),
            changes: Changes::new(UNITS, Some(Changes::max_report_delay(UNITS))),
            outgoing_response: PartialLine::default(),
        }
    }
}

/// A message that waits at the home's port.
struct QueuedMessage {
    /// Message type.
    kind: MessageId,
    /// Header.
    header: Header,
    /// True if the message has payload.
    has_payload: bool,
    /// Contents of the line, if the message has payload.
    bytes: Bytes,
}

/// Messages queued for a circuit.
#[derive(Default)]
struct PortQueue {
    /// Messages in order of arrival.
    queue: VecDeque<QueuedMessage>,
    /// Index of the next beat of the first message.
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

    /// Creates a home with an application behind it, from a library built with [`Endpoint::Application`]. `application`
    /// has the application and a seed. With a seed other than 0, all traffic between home, application and its memory
    /// has random delays, and that memory answers in any order. The application sees lines by their numbers at the
    /// home's ports. `extra_arguments` are additional arguments for [`Model::open`].
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
        extra_arguments: &str,
    ) -> Result<Verilated, String> {
        let argument = application.map_or(extra_arguments.to_string(), |(application, seed)| {
            format!("{} seed={seed} {extra_arguments}", application.arguments())
        });
        let words = line_bytes as usize / 8;
        let mut events = Vec::new();
        for (number, event) in rom.events.iter().enumerate() {
            if let Event::Message(kind) = event.event {
                events.resize(events.len().max(kind.index() + 1), None);
                events[kind.index()] = Some(number);
            }
        }
        let mut home = Verilated {
            model: Model::open(library, image, &argument)?,
            rom,
            events,
            words,
            beats: words / BEAT_WORDS,
            fold,
            inputs: Inputs::default(),
            outputs: Box::default(),
            slices: Default::default(),
            cycle: 0,
            quiet_cycles: 0,
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

    /// Returns the slice of a line, by its number at the ports, and records activity.
    fn active_slice(&mut self, line: Line) -> &mut Slice {
        self.quiet_cycles = 0;
        &mut self.slices[line as usize % SLICES]
    }

    /// Drives the next beat of each queue to the pins.
    fn drive_inputs(&mut self) {
        for (slice_index, slice) in self.slices.iter().enumerate() {
            let inputs = &mut self.inputs;
            (inputs.rx_valid[slice_index], inputs.rx_last[slice_index]) = (0, 0);
            for (circuit, port_queue) in slice.port_queues.iter().enumerate() {
                if let Some(message) = port_queue.queue.front() {
                    let is_last = !message.has_payload || port_queue.beat + 1 == self.beats;
                    inputs.rx_valid[slice_index] |= 1 << circuit;
                    inputs.rx_last[slice_index] |= u64::from(is_last) << circuit;
                    inputs.rx_header[slice_index][circuit] = message.header.encode();
                    let beat = &message.bytes[port_queue.beat * BEAT_WORDS..][..BEAT_WORDS];
                    inputs.rx_data[slice_index][circuit].copy_from_slice(beat);
                }
            }
            inputs.local_req_valid[slice_index] = u64::from(!slice.locals.is_empty());
            inputs.local_req[slice_index] = slice.locals.front().copied().unwrap_or(0);
            inputs.unlock_valid[slice_index] = u64::from(!slice.unlocks.is_empty());
            inputs.unlock_line[slice_index] = slice.unlocks.front().copied().unwrap_or(0);
            inputs.r_valid[slice_index] = u64::from(!slice.read_responses.is_empty());
            if let Some((id, bytes)) = slice.read_responses.front() {
                inputs.r_id[slice_index] = *id;
                inputs.r_last[slice_index] = u64::from(slice.read_beat + 1 == self.beats);
                inputs.r_data[slice_index]
                    .copy_from_slice(&bytes[slice.read_beat * BEAT_WORDS..][..BEAT_WORDS]);
            }
            inputs.b_valid[slice_index] = u64::from(!slice.write_responses.is_empty());
            inputs.b_id[slice_index] = slice.write_responses.front().copied().unwrap_or(0);
        }
        if let Some(application) = &mut self.application {
            application.drive_inputs(&mut self.inputs, self.beats);
        }
    }

    /// Records the beats that a slice has accepted in this cycle.
    fn record_inputs(&mut self, slice_index: usize, cycle_outputs: &mut Vec<CycleOutput>) {
        let (inputs, outputs, slice) = (&self.inputs, &self.outputs, &mut self.slices[slice_index]);
        let accepted = inputs.rx_valid[slice_index] & outputs.rx_ready[slice_index];
        for (circuit, port_queue) in slice.port_queues.iter_mut().enumerate() {
            let Some(message) = port_queue.queue.front() else {
                continue;
            };
            if accepted >> circuit & 1 == 0 {
                continue;
            }
            port_queue.beat += 1;
            if !message.has_payload || port_queue.beat == self.beats {
                cycle_outputs.push(CycleOutput::Entered {
                    kind: message.kind,
                    line: message.header.line as Line,
                });
                port_queue.beat = 0;
                port_queue.queue.pop_front();
            }
        }
        if inputs.local_req_valid[slice_index] & outputs.local_req_ready[slice_index] != 0 {
            slice.locals.pop_front();
        }
        if inputs.unlock_valid[slice_index] & outputs.unlock_ready[slice_index] != 0 {
            slice.unlocks.pop_front();
        }
        if inputs.r_valid[slice_index] & outputs.r_ready[slice_index] != 0 {
            slice.read_beat += 1;
            if slice.read_beat == self.beats {
                slice.read_beat = 0;
                slice.read_responses.pop_front();
            }
        }
        if inputs.b_valid[slice_index] & outputs.b_ready[slice_index] != 0 {
            slice.write_responses.pop_front();
        }
    }

    /// Records the steps of a slice's units.
    fn record_steps(
        &mut self,
        slice_index: usize,
        cycle_outputs: &mut Vec<CycleOutput>,
    ) -> Result<(), String> {
        let mut units = self.outputs.step_valid[slice_index];
        while units != 0 {
            let unit = units.trailing_zeros() as usize;
            let step = ReportedStep::decode(self.outputs.step[slice_index][unit]);
            units &= units - 1;
            // A resource was missing: the unit will retry the event.
            if step.is_stalled {
                continue;
            }
            let Some(event) = self.rom.events.get(step.event) else {
                return Err(format!("an event has the number {}", step.event));
            };
            let ReportedStep {
                line, state, next, ..
            } = step;
            cycle_outputs.push(CycleOutput::Stepped {
                line: line as Line,
                event: event.event,
                state,
                next,
                admission: match step.effect {
                    Effect::Never => Admission::Impossible,
                    Effect::Stall => Admission::Left,
                    Effect::Refuse => Admission::Refused,
                    Effect::Take => Admission::Taken,
                },
                is_directory_eviction: step.evict,
            });
            let permissions = [state, next].map(|state| self.rom.permissions.get(state).copied());
            if let (Effect::Take, [Some(before), Some(after)]) = (step.effect, permissions) {
                let change = Change {
                    line,
                    before,
                    after,
                };
                if before != after {
                    self.slices[slice_index]
                        .changes
                        .record_change(unit, change, self.cycle);
                }
            }
        }
        Ok(())
    }

    /// Checks the permission change that the home reports in this cycle.
    fn check_permission_change(&mut self, slice_index: usize) -> Result<(), String> {
        if self.outputs.change_valid[slice_index] != 0 {
            self.slices[slice_index]
                .changes
                .check_report(self.outputs.change[slice_index])?;
        }
        Ok(())
    }

    /// Checks at quiescence that no permission change is missing.
    fn check_no_pending_changes(&mut self) -> Result<(), String> {
        for slice in &mut self.slices {
            for unit in 0..UNITS {
                slice.changes.finish(unit)?;
            }
        }
        Ok(())
    }

    /// Records the messages to the remote and the answers to the device that have left a slice.
    fn record_departures(
        &mut self,
        slice_index: usize,
        cycle_outputs: &mut Vec<CycleOutput>,
    ) -> Result<(), String> {
        let (outputs, slice) = (&self.outputs, &mut self.slices[slice_index]);
        for circuit in 0..CIRCUITS {
            if outputs.tx_valid[slice_index] >> circuit & 1 == 0 {
                continue;
            }
            let header = Header::decode(outputs.tx_header[slice_index][circuit]);
            let number = usize::from(header.message);
            let Some(sent) = self.rom.sends.get(number) else {
                return Err(format!("a message to the remote has the number {number}"));
            };
            let PartialLine { beats, bytes } = &mut slice.departing[circuit];
            bytes[*beats * BEAT_WORDS..][..BEAT_WORDS]
                .copy_from_slice(&outputs.tx_data[slice_index][circuit]);
            *beats += 1;
            let is_last = !sent.payload || *beats == self.beats;
            if is_last != (outputs.tx_last[slice_index] >> circuit & 1 != 0) {
                return Err(format!(
                    "beat {beats} of {} has a wrong last-beat flag",
                    sent.name
                ));
            }
            if is_last {
                *beats = 0;
                cycle_outputs.push(CycleOutput::Left {
                    kind: sent.message,
                    line: header.line as Line,
                    bytes: sent.payload.then_some(*bytes),
                });
            }
        }
        let has_response = match self.application {
            Some(_) => outputs.handshakes[slice_index] & handshakes::RESPONSE,
            None => outputs.local_rsp_valid[slice_index],
        };
        if has_response != 0 {
            let response = LocalResponse::decode(outputs.local_rsp[slice_index]);
            cycle_outputs.push(CycleOutput::Answered {
                line: response.line as Line,
                operation: (!response.unlock).then_some(response.operation),
                refused: response.refused,
            });
        }
        Ok(())
    }

    /// Records the requests of a slice to memory, or to the application in its place.
    fn record_memory_requests(
        &mut self,
        slice_index: usize,
        cycle_outputs: &mut Vec<CycleOutput>,
    ) -> Result<(), String> {
        let (outputs, slice) = (&self.outputs, &mut self.slices[slice_index]);
        let line_bytes = self.words as u64 * 8;
        let transfers = outputs.handshakes[slice_index];
        if transfers & handshakes::READ_ADDRESS != 0 {
            let line = (outputs.ar_addr[slice_index] / line_bytes) as Line;
            slice.reads.insert(line, outputs.ar_id[slice_index]);
            cycle_outputs.push(CycleOutput::Reads { line });
        }
        if transfers & handshakes::WRITE_ADDRESS != 0 {
            let line = (outputs.aw_addr[slice_index] / line_bytes) as Line;
            (slice.incoming_writes).add_address(line, outputs.aw_id[slice_index]);
        }
        if transfers & handshakes::WRITE_DATA != 0 {
            let (data, strobes) = (&outputs.w_data[slice_index], outputs.w_strb[slice_index]);
            let is_last = outputs.w_last[slice_index] != 0;
            slice.incoming_writes.add_beat(data, strobes, is_last)?;
        }
        if let Some(Write { line, id, data }) = slice.incoming_writes.next_complete() {
            slice.writes.insert(line, id);
            let WriteData { bytes, mask } = data;
            cycle_outputs.push(CycleOutput::Writes { line, bytes, mask });
        }
        Ok(())
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
        let (circuit, has_payload) = (event.circuit, event.payload);
        let line = self.number(line);
        // The header's mask has sixteen bits for a line of any size.
        let sixteenths = (0..16).filter(|bit| mask >> (bit * self.words / 16) & 1 != 0);
        let header = Header {
            mask: sixteenths.map(|bit| 1 << bit).sum(),
            message: number as u8,
            remote: 0,
            line: line.into(),
        };
        let port_queue = &mut self.active_slice(line).port_queues[circuit];
        port_queue.queue.push_back(QueuedMessage {
            kind,
            header,
            has_payload,
            bytes,
        });
    }

    fn local(&mut self, line: Line, operation: u8) {
        let line = self.number(line);
        let request = LocalRequest {
            operation,
            line: line.into(),
        };
        (self.active_slice(line).locals).push_back(request.encode());
    }

    fn unlock(&mut self, line: Line) {
        let line = self.number(line);
        self.active_slice(line).unlocks.push_back(line.into());
    }

    fn memory_read(&mut self, line: Line, bytes: Bytes) {
        let line = self.number(line);
        let slice = self.active_slice(line);
        if let Some(id) = slice.reads.remove(&line) {
            slice.read_responses.push_back((id, bytes));
        }
    }

    fn memory_written(&mut self, line: Line) {
        let line = self.number(line);
        let slice = self.active_slice(line);
        if let Some(id) = slice.writes.remove(&line) {
            slice.write_responses.push_back(id);
        }
    }

    fn cycle(&mut self, cycle_outputs: &mut Vec<CycleOutput>) -> Result<(), String> {
        self.drive_inputs();
        let stepped = self.model.step(&self.inputs, &mut self.outputs);
        stepped.map_err(|messages| format!("an assertion failed: {messages}"))?;
        let outputs_before = cycle_outputs.len();
        for slice_index in 0..SLICES {
            self.record_inputs(slice_index, cycle_outputs);
            self.record_steps(slice_index, cycle_outputs)?;
            self.record_departures(slice_index, cycle_outputs)?;
            self.record_memory_requests(slice_index, cycle_outputs)?;
            self.check_permission_change(slice_index)?;
            self.record_application_outputs(slice_index, cycle_outputs)?;
        }
        for output in &mut cycle_outputs[outputs_before..] {
            let line = output.line_mut();
            *line = self.number(*line);
        }
        let is_active = cycle_outputs.len() > outputs_before
            || self.inputs.rx_valid != [0; SLICES]
            || self.outputs.change_valid != [0; SLICES];
        self.quiet_cycles = if is_active { 0 } else { self.quiet_cycles + 1 };
        self.cycle += 1;
        match self.quiet_cycles {
            QUIET_CYCLES if self.outputs.idle == [1; SLICES] => self.check_no_pending_changes(),
            _ => Ok(()),
        }
    }

    fn idle(&self) -> bool {
        let quiet_limit = match self.application {
            Some(_) => APPLICATION_QUIET_CYCLES,
            None => QUIET_CYCLES,
        };
        self.quiet_cycles >= quiet_limit
            && self.outputs.idle == [1; SLICES]
            && self
                .application
                .as_ref()
                .is_none_or(RtlApplication::is_idle)
    }

    fn has_application(&self) -> bool {
        self.application.is_some()
    }

    fn application(&mut self, event: ApplicationEvent) {
        self.quiet_cycles = 0;
        if let Some(application) = &mut self.application {
            application.handle_event(event, &mut self.inputs);
        }
    }
}

//! Illegal traffic: messages with invalid numbers or for lines of other slices, and events that can never occur, amid
//! all regular traffic. The home must drop or refuse and count it, without any effect on the regular traffic.

use super::context::Context;
use super::counts::Counts;
use super::device::Device;
use super::link_ports::LinkPorts;
use super::memory_ports::MemoryPorts;
use super::reference::Reference;
use super::run::Run;
use super::units::Units;
use crate::lockstep::model::{Inputs, CIRCUITS, SLICES};
use crate::lockstep::random::RandomGenerator;
use crate::lockstep::shapes::Endpoint;
use crate::registers::counter_position;
use crate::rom::{Effect, MAX_LOCALS};

/// Parts of the assertion messages that illegal traffic causes.
const ILLEGAL_ASSERTIONS: &[&str] = &[
    "does not come by circuit",
    "has a wrong number of beats",
    "dcs: memory answered a read that is not in flight",
    "dcs: memory answered a write that is not in flight",
    "dcs: there is no remote",
    "belongs to the other slice",
    "lies outside the home's range",
    "dcs: there is no local operation",
    "lies outside the range of slice",
    "dcu: the ROM has no row for event",
];

/// Reason for a refusal, with its number in `reject_e` of `home_pkg.sv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IllegalReason {
    /// Message number of another circuit.
    Number = 1,
    /// Message of a non-existent remote.
    Remote,
    /// Message for a line of another slice.
    Line,
    /// Unknown local operation.
    Operation,
    /// Local operation on a line of another slice.
    Local,
    /// Unlock of a line of another slice.
    Unlock,
    /// Message with a wrong number of beats.
    Length,
    /// Read beat of memory without an outstanding read.
    Read,
    /// Write response of memory without an outstanding write.
    Write = 10,
}

/// Order of errors that occur in one cycle, after those of the circuits.
const ORDER: [IllegalReason; 5] = [
    IllegalReason::Read,
    IllegalReason::Write,
    IllegalReason::Operation,
    IllegalReason::Local,
    IllegalReason::Unlock,
];

/// An illegal message.
#[derive(Clone, Debug)]
struct IllegalMessage {
    /// Header (`header_t` of `home_pkg.sv`).
    header: u64,
    /// Reason for which the home drops the message; `None` if it reaches a unit, which has no row for it.
    reason: Option<IllegalReason>,
    /// Number of beats that are sent.
    beats: usize,
    /// Beat at which the error is detected, counted from 1.
    error_beat: usize,
    /// Number of beats that have entered.
    beat: usize,
}

/// Illegal traffic at a slice's ports, and its expected effects.
#[derive(Default)]
struct SliceTraffic {
    /// Illegal message that is entering, by circuit.
    messages: [Option<IllegalMessage>; CIRCUITS],
    /// Illegal request at the port for local operations, with its reason.
    request: Option<(u64, IllegalReason)>,
    /// Line of an illegal unlock at its port.
    unlock: Option<u64>,
    /// IDs of this cycle's memory answers that belong to no outstanding request: to a read, and to a write.
    unsolicited_ids: [Option<u64>; 2],
    /// Refusals that the device must receive, as the home encodes them.
    answers: Vec<u64>,
    /// Impossible events that no unit has dropped yet: line and event number.
    impossible: Vec<(u64, usize)>,
    /// The first refusal: its cycle, its rank within the cycle, and the value of `FirstWrong`.
    first_refusal: Option<(u64, usize, u64)>,
    /// Dropped events, each with its cycle and its value of `FirstImpossible`.
    dropped: Vec<(u64, u64)>,
}

impl SliceTraffic {
    /// True if no illegal traffic is left.
    fn is_empty(&self) -> bool {
        self.messages.iter().all(Option::is_none)
            && self.request.is_none()
            && self.unlock.is_none()
            && self.answers.is_empty()
            && self.impossible.is_empty()
    }

    /// Records a refusal in this cycle.
    fn record_refusal(&mut self, cycle: u64, order: usize, word: u64) {
        let earliest = self.first_refusal.get_or_insert((cycle, order, word));
        if (cycle, order) < (earliest.0, earliest.1) {
            *earliest = (cycle, order, word);
        }
    }
}

/// Beat of an illegal message, as the port treats it: `None` if the message is dropped; otherwise as in
/// [`super::link_ports::PortQueue`].
pub(super) type IllegalBeat = Option<(bool, bool)>;

/// Illegal traffic of both slices.
pub(super) struct IllegalTraffic {
    /// A separate generator, so that runs without illegal traffic are unaffected.
    random: RandomGenerator,
    /// Number of cycles, of every 256, in which a free port receives illegal traffic.
    rate: u64,
    /// Traffic at the ports of each slice.
    slices: [SliceTraffic; SLICES],
}

impl IllegalTraffic {
    /// Creates the illegal traffic of a run, derived from its seed.
    pub fn new(run: &Run) -> IllegalTraffic {
        IllegalTraffic {
            random: RandomGenerator::new(run.seed ^ 0x5bd1_e995),
            rate: run.illegal_inputs,
            slices: Default::default(),
        }
    }

    /// True if no illegal traffic is left at a slice.
    pub fn is_empty(&self, slice: usize) -> bool {
        self.slices[slice].is_empty()
    }

    /// For each circuit, true if an illegal message is entering through it.
    pub fn messages(&self, slice: usize) -> [bool; CIRCUITS] {
        std::array::from_fn(|circuit| self.slices[slice].messages[circuit].is_some())
    }

    /// True if a request is illegal, and true if an unlock is.
    pub fn device_inputs(&self, slice: usize) -> [bool; 2] {
        let traffic = &self.slices[slice];
        [traffic.request.is_some(), traffic.unlock.is_some()]
    }

    /// Puts illegal traffic at free ports and keeps it there.
    pub fn inject(&mut self, context: &Context, ports: &[LinkPorts; SLICES], device: &Device) {
        if !may_inject(context) {
            return;
        }
        for (slice, ports) in ports.iter().enumerate() {
            for circuit in 0..context.reference.rom.rx.len() {
                if ports.queues[circuit].is_free()
                    && self.slices[slice].messages[circuit].is_none()
                    && self.is_injected()
                {
                    let illegal = self.illegal_message(context, slice, circuit);
                    self.slices[slice].messages[circuit] = Some(illegal);
                }
            }
            if !device.has_request(slice)
                && self.slices[slice].request.is_none()
                && self.is_injected()
            {
                let Some(request) = self.illegal_request(context, slice) else {
                    continue;
                };
                self.slices[slice].request = Some(request);
            }
            if !device.has_unlock(slice)
                && self.slices[slice].unlock.is_none()
                && self.is_injected()
            {
                self.slices[slice].unlock = Some(self.illegal_line(context, slice));
            }
        }
    }

    /// Returns a request of an unknown operation, or for a line of another slice. `None` if there is no unknown
    /// operation.
    fn illegal_request(&mut self, context: &Context, slice: usize) -> Option<(u64, IllegalReason)> {
        let min_operation = context.reference.rom.locking.len() as u64;
        let max_operations = MAX_LOCALS as u64;
        let (operation, line) = match self.random.below(2) {
            0 if min_operation == max_operations => return None,
            0 => {
                let unknown = self.random.below(max_operations - min_operation);
                (min_operation + unknown, self.any_line(context))
            }
            _ => (self.random.below(4), self.illegal_line(context, slice)),
        };
        let reason = match operation >= min_operation {
            true => IllegalReason::Operation,
            false => IllegalReason::Local,
        };
        Some((operation << 36 | line, reason))
    }

    /// Draws whether a free port receives illegal traffic in this cycle.
    fn is_injected(&mut self) -> bool {
        self.random.below(256) < self.rate
    }

    /// Returns the number of a random line of the run.
    fn any_line(&mut self, context: &Context) -> u64 {
        let line_index = self.random.below(context.lines.len() as u64) as usize;
        context.lines[line_index].number
    }

    /// Returns the number of a line that does not belong to the slice. It belongs to the other slice, or lies beyond
    /// the range, where it would alias a line of the home if its upper bits were dropped.
    fn illegal_line(&mut self, context: &Context, slice: usize) -> u64 {
        let own_line = self.any_line(context) & !1 | slice as u64;
        let range_bits = range(&context.reference).ilog2();
        let high_bit = range_bits + self.random.below(36 - u64::from(range_bits)) as u32;
        match self.random.below(3) {
            0 => own_line ^ 1,
            _ => own_line | 1 << high_bit,
        }
    }

    /// Returns an illegal message for a circuit of a slice.
    fn illegal_message(
        &mut self,
        context: &Context,
        slice: usize,
        circuit: usize,
    ) -> IllegalMessage {
        let reference = &context.reference;
        let (number, remote, line, reason) = self.illegal_header(context, slice, circuit);
        let event = reference.rom.events.get(number as usize);
        let payload = event.is_some_and(|event| event.payload);
        let correct_beats = if payload { reference.beats } else { 1 };
        let beats = match reason {
            None => correct_beats,
            // A message that is dropped for another reason may have any length.
            Some(reason) => loop {
                let beats = 1 + self.random.below(reference.beats as u64 + 2) as usize;
                if reason != IllegalReason::Length || beats != correct_beats {
                    break beats;
                }
            },
        };
        IllegalMessage {
            header: 0xffff << 48 | number << 40 | remote << 36 | line,
            reason,
            beats,
            error_beat: match reason {
                Some(IllegalReason::Length) => beats.min(correct_beats),
                _ => 1,
            },
            beat: 0,
        }
    }

    /// Returns number, remote and line of an illegal message, and the reason for which it is dropped.
    fn illegal_header(
        &mut self,
        context: &Context,
        slice: usize,
        circuit: usize,
    ) -> (u64, u64, u64, Option<IllegalReason>) {
        let rom = context.reference.rom;
        let arrives_here = |number: u64| {
            let event = rom.events.get(number as usize);
            event.is_some_and(|event| (number as usize) < rom.messages && event.circuit == circuit)
        };
        let numbers: Vec<u64> = (0..rom.messages as u64)
            .filter(|&number| arrives_here(number))
            .collect();
        let any_number = numbers[self.random.below(numbers.len() as u64) as usize];
        let impossible: Vec<u64> = numbers
            .into_iter()
            .filter(|&number| rom.row(0, number as usize).effect == Effect::Never)
            .collect();
        match self.random.below(6) {
            5 => {
                let line = self.any_line(context) & !1 | slice as u64;
                (any_number, 0, line, Some(IllegalReason::Length))
            }
            0 => {
                let remote = 1 + self.random.below(15);
                let line = self.any_line(context);
                (any_number, remote, line, Some(IllegalReason::Remote))
            }
            1 => {
                let line = self.illegal_line(context, slice);
                (any_number, 0, line, Some(IllegalReason::Line))
            }
            2 if !impossible.is_empty() => {
                let choice = self.random.below(impossible.len() as u64);
                let range = range(&context.reference);
                let mut line = self.random.below(range) & !1 | slice as u64;
                while context.is_used(line) {
                    line = (line + 2) % range;
                }
                (impossible[choice as usize], 0, line, None)
            }
            // Try numbers of internal events first, then numbers that alias them if upper bits are dropped.
            kind => loop {
                let number = match kind {
                    3 => self.random.below(64),
                    _ => self.random.below(256),
                };
                if !arrives_here(number) {
                    let line = self.any_line(context);
                    break (number, 0, line, Some(IllegalReason::Number));
                }
            },
        }
    }

    /// Returns an AXI ID of no outstanding request.
    fn unused_id(&mut self, is_used: impl Fn(u64) -> bool) -> u64 {
        loop {
            let id = self.random.below(256);
            if !is_used(id) {
                return id;
            }
        }
    }

    /// Drives illegal traffic to the pins instead of regular traffic.
    pub fn drive(
        &mut self,
        context: &Context,
        inputs: &mut Inputs,
        slice: usize,
        memory: &MemoryPorts,
    ) {
        let may_inject = may_inject(context);
        self.slices[slice].unsolicited_ids = [None; 2];
        if may_inject && inputs.r_valid[slice] == 0 && self.is_injected() {
            let id = self.unused_id(|id| memory.reads_with(id));
            self.slices[slice].unsolicited_ids[0] = Some(id);
            (inputs.r_valid[slice], inputs.r_id[slice]) = (1, id);
            inputs.r_last[slice] = self.random.below(2);
            inputs.r_data[slice].fill(!id);
        }
        if may_inject && inputs.b_valid[slice] == 0 && self.is_injected() {
            let id = self.unused_id(|id| memory.writes_with(id));
            self.slices[slice].unsolicited_ids[1] = Some(id);
            (inputs.b_valid[slice], inputs.b_id[slice]) = (1, id);
        }
        let traffic = &self.slices[slice];
        for (circuit, illegal) in traffic.messages.iter().enumerate() {
            let Some(illegal) = illegal else {
                continue;
            };
            inputs.rx_valid[slice] |= 1 << circuit;
            inputs.rx_header[slice][circuit] = illegal.header;
            inputs.rx_last[slice] |= u64::from(illegal.beat + 1 == illegal.beats) << circuit;
            let word = !illegal.header ^ illegal.beat as u64;
            inputs.rx_data[slice][circuit].fill(word);
        }
        if let Some((request, _)) = traffic.request {
            inputs.local_req_valid[slice] = 1;
            inputs.local_req[slice] = request;
        }
        if let Some(line) = traffic.unlock {
            inputs.unlock_valid[slice] = 1;
            inputs.unlock_line[slice] = line;
        }
    }

    /// Handles a beat that entered through a circuit. `None` if it does not belong to an illegal message.
    pub fn accept_beat(
        &mut self,
        context: &mut Context,
        (units, counts): (&mut Units, &mut Counts),
        slice: usize,
        circuit: usize,
    ) -> Option<IllegalBeat> {
        let reference = context.reference.clone();
        let traffic = &mut self.slices[slice];
        let illegal = traffic.messages[circuit].as_mut()?;
        illegal.beat += 1;
        let is_complete = illegal.beat == illegal.beats;
        let IllegalMessage {
            header,
            reason,
            beat,
            error_beat,
            ..
        } = *illegal;
        let (number, line) = ((header >> 40 & 0xff) as usize, header & ((1 << 36) - 1));
        let event = reference.rom.events.get(number);
        let has_payload = event.is_some_and(|event| event.payload);
        match reason {
            Some(reason) if beat == error_beat => {
                let kind = match reason {
                    IllegalReason::Length => const { counter_position("WrongLengths") },
                    IllegalReason::Line => const { counter_position("WrongLines") },
                    _ => const { counter_position("WrongMessages") },
                };
                counts.add(kind, circuit, 1);
                let word =
                    (reason as u64) << 56 | (circuit as u64) << 48 | header & ((1 << 48) - 1);
                traffic.record_refusal(context.cycle, circuit, word);
            }
            None if is_complete => {
                counts.add(const { counter_position("Events") }, number, 1);
                let is_request = event.is_some_and(|event| event.request);
                units.record_arrival(reference.unit(line), is_request);
                traffic.impossible.push((line, number));
            }
            _ => {}
        }
        if is_complete {
            traffic.messages[circuit] = None;
            context.report.illegal_inputs += 1;
        }
        // A dropped message never waits and blocks no message behind it.
        Some(match reason {
            // Up to the beat that reveals the wrong length, the message is treated as a regular one: its first beat
            // waits for a slot.
            Some(IllegalReason::Length) if beat < error_beat => {
                Some((has_payload && beat == 1, false))
            }
            Some(_) => None,
            None => Some((has_payload && beat == 1, is_complete)),
        })
    }

    /// Handles an accepted local operation. Returns true if it was illegal: an unknown operation, or one on a line of
    /// another slice.
    pub fn accept_operation(
        &mut self,
        context: &mut Context,
        counts: &mut Counts,
        slice: usize,
    ) -> bool {
        let Some((request, reason)) = self.slices[slice].request.take() else {
            return false;
        };
        let (operation, line) = (request >> 36, request & ((1 << 36) - 1));
        let counter = match reason {
            IllegalReason::Operation => const { counter_position("WrongOperations") },
            _ => const { counter_position("WrongDeviceLines") },
        };
        counts.add(counter, 0, 1);
        let answer = 1 << 39 | request;
        self.record_device_refusal(
            context,
            counts,
            slice,
            (reason, answer, operation << 40 | line),
        );
        true
    }

    /// Handles an accepted unlock. Returns true if it was illegal.
    pub fn accept_unlock(
        &mut self,
        context: &mut Context,
        counts: &mut Counts,
        slice: usize,
    ) -> bool {
        let Some(line) = self.slices[slice].unlock.take() else {
            return false;
        };
        counts.add(const { counter_position("WrongDeviceLines") }, 0, 1);
        let answer = 1 << 40 | 1 << 39 | line;
        self.record_device_refusal(
            context,
            counts,
            slice,
            (IllegalReason::Unlock, answer, line),
        );
        true
    }

    /// Records a refusal of an input of the device: its reason, its answer, and its details.
    fn record_device_refusal(
        &mut self,
        context: &mut Context,
        counts: &mut Counts,
        slice: usize,
        (reason, answer, details): (IllegalReason, u64, u64),
    ) {
        counts.add(const { counter_position("Refused") }, 0, 1);
        self.slices[slice].answers.push(answer);
        context.report.illegal_inputs += 1;
        self.record_first_refusal(context.cycle, slice, reason, details);
    }

    /// Accounts for this cycle's unsolicited memory answers, which the home dropped.
    pub fn count_unsolicited_answers(
        &mut self,
        context: &mut Context,
        counts: &mut Counts,
        slice: usize,
    ) {
        let kinds = [
            (
                IllegalReason::Read,
                const { counter_position("WrongReads") },
            ),
            (
                IllegalReason::Write,
                const { counter_position("WrongWrites") },
            ),
        ];
        let unsolicited_ids = self.slices[slice].unsolicited_ids;
        for ((reason, counter), unsolicited) in kinds.into_iter().zip(unsolicited_ids) {
            let Some(id) = unsolicited else {
                continue;
            };
            counts.add(counter, 0, 1);
            context.report.illegal_inputs += 1;
            self.record_first_refusal(context.cycle, slice, reason, id);
        }
    }

    /// Records a refusal in this cycle at another port than the link's.
    fn record_first_refusal(
        &mut self,
        cycle: u64,
        slice: usize,
        reason: IllegalReason,
        details: u64,
    ) {
        let order = ORDER.iter().position(|&other| other == reason);
        let order = CIRCUITS + order.unwrap_or(ORDER.len());
        let word = (reason as u64) << 56 | details;
        self.slices[slice].record_refusal(cycle, order, word);
    }

    /// True if an answer to the device is the refusal of an illegal operation.
    pub fn is_refusal(&mut self, slice: usize, answer: u64) -> bool {
        let answers = &mut self.slices[slice].answers;
        let position = answers
            .iter()
            .position(|&expected| expected == answer & ((1 << 41) - 1));
        position
            .map(|position| answers.swap_remove(position))
            .is_some()
    }

    /// True if a unit's step drops an impossible event.
    pub fn is_drop(
        &mut self,
        context: &mut Context,
        (units, counts): (&mut Units, &mut [Counts; SLICES]),
        (line, number): (u64, usize),
        (state, effect): (usize, usize),
    ) -> bool {
        let slice = line as usize % SLICES;
        let impossible = &mut self.slices[slice].impossible;
        let Some(position) = impossible.iter().position(|&event| event == (line, number)) else {
            return false;
        };
        if effect != 0 || state != 0 {
            return false;
        }
        impossible.swap_remove(position);
        let unit = context.reference.unit(line);
        units.record_drop(unit, context.reference.rom.events[number].request);
        counts[slice].add(const { counter_position("Impossible") }, 0, 1);
        let word = 1 << 63 | (unit as u64 / 2) << 52 | (number as u64) << 36 | line;
        self.slices[slice].dropped.push((context.cycle, word));
        context.record_activity();
        true
    }

    /// True if all assertion messages are those that illegal traffic causes.
    pub fn is_cause_of(&self, assertions: &str) -> bool {
        let mut lines = assertions.lines().filter(|line| !line.trim().is_empty());
        self.rate > 0 && lines.all(|line| ILLEGAL_ASSERTIONS.iter().any(|part| line.contains(part)))
    }

    /// Returns the expected values of the registers for the first refusal and for the first dropped event: one of these
    /// words, or 0.
    pub fn expected_first_errors(&self, slice: usize) -> [Vec<u64>; 2] {
        let traffic = &self.slices[slice];
        let refused = traffic.first_refusal.map_or(0, |(_, _, word)| word);
        // If several units drop an event in one cycle, any of them may be recorded first.
        let first_cycle = traffic.dropped.first().map(|&(cycle, _)| cycle);
        let dropped = traffic.dropped.iter();
        let dropped: Vec<u64> = dropped
            .filter(|&&(cycle, _)| Some(cycle) == first_cycle)
            .map(|&(_, word)| word)
            .collect();
        let dropped = if dropped.is_empty() { vec![0] } else { dropped };
        [vec![refused], dropped]
    }
}

/// True while illegal traffic starts. An endpoint gets none.
fn may_inject(context: &Context) -> bool {
    context.starts_accesses() && context.reference.shape.endpoint == Endpoint::None
}

/// Returns the number of lines of the home, over all slices, units and sets.
fn range(reference: &Reference) -> u64 {
    (reference.units() as u64) << (reference.shape.set_bits + reference.shape.tag_bits)
}

//! Illegal traffic: messages with invalid numbers or for lines of other slices, and events that can never occur, amid
//! all regular traffic. The home must drop or refuse and count it, without any effect on the regular traffic.

mod generator;

use super::context::Context;
use super::counts::Counts;
use super::device::Device;
use super::device::DevicePortFlags;
use super::link_ports::{AcceptedBeat, LinkPorts};
use super::memory_ports::MemoryPorts;
use super::run::Run;
use super::units::Units;
use crate::lockstep::model::{Inputs, CIRCUITS, SLICES};
use crate::lockstep::shapes::Endpoint;
use crate::lockstep::words::{Header, LocalRequest, LocalResponse, ReportedStep};
use crate::registers::counter_position;
use crate::rom::Effect;
use generator::Generator;

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

/// Priority of errors that occur in one cycle, after those of the circuits.
const PRIORITY: [IllegalReason; 5] = [
    IllegalReason::Read,
    IllegalReason::Write,
    IllegalReason::Operation,
    IllegalReason::Local,
    IllegalReason::Unlock,
];

/// An illegal message.
#[derive(Clone, Debug)]
struct IllegalMessage {
    /// Header.
    header: Header,
    /// Reason for which the home drops the message; `None` if it reaches a unit, which has no row for it.
    reason: Option<IllegalReason>,
    /// Number of beats that are sent.
    beats: usize,
    /// Beat at which the error is detected, counted from 1.
    error_beat: usize,
    /// Number of beats that have entered.
    entered_beats: usize,
}

/// An illegal local operation.
#[derive(Clone, Copy, Debug)]
struct IllegalRequest {
    /// The operation.
    request: LocalRequest,
    /// Reason for which the home refuses it.
    reason: IllegalReason,
}

/// An event without a row that has entered the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ImpossibleEvent {
    /// Number of its line.
    line: u64,
    /// Number of the event.
    event: usize,
}

/// A refusal that the register `FirstWrong` may hold.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// Cycle of the refusal.
    cycle: u64,
    /// Priority among the refusals of a cycle; the lowest one is recorded.
    priority: usize,
    /// Value of the register.
    word: u64,
}

/// A dropped event that the register `FirstImpossible` may hold.
#[derive(Clone, Copy, Debug)]
struct DroppedEvent {
    /// Cycle in which the unit dropped the event.
    cycle: u64,
    /// Value of the register.
    word: u64,
}

/// Possible values of the registers of the first errors.
pub(super) struct FirstErrors {
    /// Values of `FirstWrong`.
    pub refusals: Vec<u64>,
    /// Values of `FirstImpossible`.
    pub drops: Vec<u64>,
}

/// Illegal traffic at a slice's ports, and its expected effects.
#[derive(Default)]
struct SliceTraffic {
    /// Illegal message that is entering, by circuit.
    messages: [Option<IllegalMessage>; CIRCUITS],
    /// Illegal request at the port for local operations.
    request: Option<IllegalRequest>,
    /// Line of an illegal unlock at its port.
    unlock: Option<u64>,
    /// AXI ID of this cycle's read beat of memory, if it belongs to no outstanding read.
    unsolicited_read: Option<u64>,
    /// AXI ID of this cycle's write response of memory, if it belongs to no outstanding write.
    unsolicited_write: Option<u64>,
    /// Refusals that the device must receive.
    answers: Vec<LocalResponse>,
    /// Impossible events that no unit has dropped yet.
    impossible: Vec<ImpossibleEvent>,
    /// The first refusal.
    first_refusal: Option<Refusal>,
    /// Dropped events, in order.
    dropped: Vec<DroppedEvent>,
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

    /// Records a refusal.
    fn record_refusal(&mut self, refusal: Refusal) {
        let earliest = self.first_refusal.get_or_insert(refusal);
        if (refusal.cycle, refusal.priority) < (earliest.cycle, earliest.priority) {
            *earliest = refusal;
        }
    }
}

/// Beat of an illegal message, as the port treats it; `None` if the message is dropped.
pub(super) type IllegalBeat = Option<AcceptedBeat>;

/// Illegal traffic of both slices.
pub(super) struct IllegalTraffic {
    /// Generator of the illegal inputs.
    generator: Generator,
    /// Traffic at the ports of each slice.
    slices: [SliceTraffic; SLICES],
}

impl IllegalTraffic {
    /// Creates the illegal traffic of a run, derived from its seed.
    pub fn new(run: &Run) -> IllegalTraffic {
        IllegalTraffic {
            generator: Generator::new(run),
            slices: Default::default(),
        }
    }

    /// True if no illegal traffic is left at a slice.
    pub fn is_empty(&self, slice: usize) -> bool {
        self.slices[slice].is_empty()
    }

    /// Returns for each circuit whether an illegal message is entering through it.
    pub fn entering_messages(&self, slice: usize) -> [bool; CIRCUITS] {
        std::array::from_fn(|circuit| self.slices[slice].messages[circuit].is_some())
    }

    /// Returns for each port of the device whether its input is illegal.
    pub fn device_inputs(&self, slice: usize) -> DevicePortFlags {
        let traffic = &self.slices[slice];
        DevicePortFlags {
            request: traffic.request.is_some(),
            unlock: traffic.unlock.is_some(),
        }
    }

    /// Puts illegal traffic at free ports, where it stays until it is accepted.
    pub fn inject(&mut self, context: &Context, ports: &[LinkPorts; SLICES], device: &Device) {
        if !may_inject(context) {
            return;
        }
        for (slice, ports) in ports.iter().enumerate() {
            for circuit in 0..context.reference.rom.rx.len() {
                if ports.queues[circuit].is_free()
                    && self.slices[slice].messages[circuit].is_none()
                    && self.generator.is_injected()
                {
                    let illegal = self.generator.illegal_message(context, slice, circuit);
                    self.slices[slice].messages[circuit] = Some(illegal);
                }
            }
            if !device.has_request(slice)
                && self.slices[slice].request.is_none()
                && self.generator.is_injected()
            {
                let Some(request) = self.generator.illegal_request(context, slice) else {
                    continue;
                };
                self.slices[slice].request = Some(request);
            }
            if !device.has_unlock(slice)
                && self.slices[slice].unlock.is_none()
                && self.generator.is_injected()
            {
                let line = self.generator.illegal_line(context, slice);
                self.slices[slice].unlock = Some(line);
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
        let traffic = &mut self.slices[slice];
        (traffic.unsolicited_read, traffic.unsolicited_write) = (None, None);
        if may_inject && inputs.r_valid[slice] == 0 && self.generator.is_injected() {
            let id = self.generator.unused_id(|id| memory.has_read_with(id));
            traffic.unsolicited_read = Some(id);
            (inputs.r_valid[slice], inputs.r_id[slice]) = (1, id);
            inputs.r_last[slice] = self.generator.last_mark();
            inputs.r_data[slice].fill(!id);
        }
        if may_inject && inputs.b_valid[slice] == 0 && self.generator.is_injected() {
            let id = self.generator.unused_id(|id| memory.has_write_with(id));
            traffic.unsolicited_write = Some(id);
            (inputs.b_valid[slice], inputs.b_id[slice]) = (1, id);
        }
        for (circuit, illegal) in traffic.messages.iter().enumerate() {
            let Some(illegal) = illegal else {
                continue;
            };
            let header = illegal.header.encode();
            let is_last = illegal.entered_beats + 1 == illegal.beats;
            inputs.rx_valid[slice] |= 1 << circuit;
            inputs.rx_header[slice][circuit] = header;
            inputs.rx_last[slice] |= u64::from(is_last) << circuit;
            let word = !header ^ illegal.entered_beats as u64;
            inputs.rx_data[slice][circuit].fill(word);
        }
        if let Some(illegal) = traffic.request {
            inputs.local_req_valid[slice] = 1;
            inputs.local_req[slice] = illegal.request.encode();
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
        units: &mut Units,
        counts: &mut Counts,
        slice: usize,
        circuit: usize,
    ) -> Option<IllegalBeat> {
        let reference = context.reference.clone();
        let traffic = &mut self.slices[slice];
        let illegal = traffic.messages[circuit].as_mut()?;
        illegal.entered_beats += 1;
        let is_complete = illegal.entered_beats == illegal.beats;
        let IllegalMessage {
            header,
            reason,
            entered_beats: beat,
            error_beat,
            ..
        } = *illegal;
        let number = usize::from(header.message);
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
                let header = Header { mask: 0, ..header }.encode();
                traffic.record_refusal(Refusal {
                    cycle: context.cycle,
                    priority: circuit,
                    word: (reason as u64) << 56 | (circuit as u64) << 48 | header,
                });
            }
            None if is_complete => {
                counts.add(const { counter_position("Events") }, number, 1);
                let is_request = event.is_some_and(|event| event.request);
                units.record_arrival(reference.unit(header.line), is_request);
                traffic.impossible.push(ImpossibleEvent {
                    line: header.line,
                    event: number,
                });
            }
            _ => {}
        }
        if is_complete {
            traffic.messages[circuit] = None;
            context.report.illegal_inputs += 1;
        }
        let starts_payload = has_payload && beat == 1;
        // A dropped message never waits and blocks no message behind it.
        Some(match reason {
            // Up to the beat that reveals the wrong length, the message is treated as a regular one: its first beat
            // waits for a slot.
            Some(IllegalReason::Length) if beat < error_beat => Some(AcceptedBeat {
                starts_payload,
                is_last: false,
            }),
            Some(_) => None,
            None => Some(AcceptedBeat {
                starts_payload,
                is_last: is_complete,
            }),
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
        let Some(IllegalRequest { request, reason }) = self.slices[slice].request.take() else {
            return false;
        };
        let counter = match reason {
            IllegalReason::Operation => const { counter_position("WrongOperations") },
            _ => const { counter_position("WrongDeviceLines") },
        };
        counts.add(counter, 0, 1);
        let answer = LocalResponse {
            unlock: false,
            refused: true,
            operation: request.operation,
            line: request.line,
        };
        let details = u64::from(request.operation) << 40 | request.line;
        self.record_device_refusal(context, counts, slice, answer);
        self.record_first_refusal(context.cycle, slice, reason, details);
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
        let answer = LocalResponse {
            unlock: true,
            refused: true,
            operation: 0,
            line,
        };
        self.record_device_refusal(context, counts, slice, answer);
        self.record_first_refusal(context.cycle, slice, IllegalReason::Unlock, line);
        true
    }

    /// Records a refusal that the device must receive.
    fn record_device_refusal(
        &mut self,
        context: &mut Context,
        counts: &mut Counts,
        slice: usize,
        answer: LocalResponse,
    ) {
        counts.add(const { counter_position("Refused") }, 0, 1);
        self.slices[slice].answers.push(answer);
        context.report.illegal_inputs += 1;
    }

    /// Accounts for this cycle's unsolicited memory answers, which the home dropped.
    pub fn count_unsolicited_answers(
        &mut self,
        context: &mut Context,
        counts: &mut Counts,
        slice: usize,
    ) {
        let traffic = &self.slices[slice];
        let kinds = [
            (
                traffic.unsolicited_read,
                IllegalReason::Read,
                const { counter_position("WrongReads") },
            ),
            (
                traffic.unsolicited_write,
                IllegalReason::Write,
                const { counter_position("WrongWrites") },
            ),
        ];
        for (unsolicited, reason, counter) in kinds {
            let Some(id) = unsolicited else {
                continue;
            };
            counts.add(counter, 0, 1);
            context.report.illegal_inputs += 1;
            self.record_first_refusal(context.cycle, slice, reason, id);
        }
    }

    /// Records a refusal at another port than the link's. `details` are the lower fields of `FirstWrong`.
    fn record_first_refusal(
        &mut self,
        cycle: u64,
        slice: usize,
        reason: IllegalReason,
        details: u64,
    ) {
        let priority = PRIORITY.iter().position(|&other| other == reason);
        self.slices[slice].record_refusal(Refusal {
            cycle,
            priority: CIRCUITS + priority.unwrap_or(PRIORITY.len()),
            word: (reason as u64) << 56 | details,
        });
    }

    /// Accepts an answer to the device if it is the refusal of an illegal operation or unlock. Returns false otherwise.
    pub fn accept_refusal(&mut self, slice: usize, word: u64) -> bool {
        let answer = LocalResponse::decode(word);
        let answers = &mut self.slices[slice].answers;
        let position = answers.iter().position(|&expected| expected == answer);
        position
            .map(|position| answers.swap_remove(position))
            .is_some()
    }

    /// Accepts a unit's step if it drops an impossible event. Returns false otherwise.
    pub fn accept_drop(
        &mut self,
        context: &mut Context,
        units: &mut Units,
        counts: &mut [Counts; SLICES],
        step: &ReportedStep,
    ) -> bool {
        let ReportedStep { line, event, .. } = *step;
        let slice = line as usize % SLICES;
        let impossible = &mut self.slices[slice].impossible;
        let dropped = ImpossibleEvent { line, event };
        let Some(position) = impossible.iter().position(|&other| other == dropped) else {
            return false;
        };
        if step.effect != Effect::Never || step.state != 0 {
            return false;
        }
        impossible.swap_remove(position);
        let unit = context.reference.unit(line);
        units.record_drop(unit, context.reference.rom.events[event].request);
        counts[slice].add(const { counter_position("Impossible") }, 0, 1);
        // Valid bit, unit of the slice, event and line; the state is the initial one, 0.
        let word = 1 << 63 | ((unit / SLICES) as u64) << 52 | (event as u64) << 36 | line;
        self.slices[slice].dropped.push(DroppedEvent {
            cycle: context.cycle,
            word,
        });
        context.record_activity();
        true
    }

    /// True if all assertion messages are those that illegal traffic causes.
    pub fn is_cause_of(&self, assertions: &str) -> bool {
        let mut lines = assertions.lines().filter(|line| !line.trim().is_empty());
        self.generator.is_enabled()
            && lines.all(|line| ILLEGAL_ASSERTIONS.iter().any(|part| line.contains(part)))
    }

    /// Returns the possible values of the registers of the first refusal and of the first dropped event; 0 if there was
    /// none.
    pub fn expected_first_errors(&self, slice: usize) -> FirstErrors {
        let traffic = &self.slices[slice];
        // If several units drop an event in one cycle, any of them may be recorded first.
        let first_cycle = traffic.dropped.first().map(|dropped| dropped.cycle);
        let first_drops = traffic.dropped.iter();
        let drops: Vec<u64> = first_drops
            .filter(|dropped| Some(dropped.cycle) == first_cycle)
            .map(|dropped| dropped.word)
            .collect();
        FirstErrors {
            refusals: vec![traffic.first_refusal.map_or(0, |refusal| refusal.word)],
            drops: if drops.is_empty() { vec![0] } else { drops },
        }
    }
}

/// True while illegal traffic starts. An endpoint gets none.
fn may_inject(context: &Context) -> bool {
    context.starts_accesses() && context.reference.shape.endpoint == Endpoint::None
}

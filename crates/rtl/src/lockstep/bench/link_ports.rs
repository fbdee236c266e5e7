//! Ports of a slice for messages: those to the home wait at the ports, those to the remote leave by them.

use super::context::Context;
use super::error::{line_failure, Checked};
use super::line::{Bytes, Message, WORDS};
use super::port_events::PortEvent;
use super::stalls::Stalls;
use super::units::Units;
use crate::lockstep::model::{Inputs, Outputs, CIRCUITS};
use crate::lockstep::words::Header;
use std::collections::VecDeque;

/// Position of an accepted beat in its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AcceptedBeat {
    /// True for the first beat of a message with payload, which needs a payload slot.
    pub starts_payload: bool,
    /// True for the last beat, with which the message goes to its unit.
    pub is_last: bool,
}

/// Messages to the home that wait at the port of a circuit.
#[derive(Default)]
pub(super) struct PortQueue {
    /// Messages in order of arrival, each with the index of its line.
    pub queue: VecDeque<(usize, Message)>,
    /// True while a beat is offered to the home, which must not be withdrawn.
    valid: bool,
    /// Number of beats of the first message that have entered.
    pub beat: usize,
    /// The beat that entered most recently; `None` if it was that of a dropped message.
    pub previous_beat: Option<AcceptedBeat>,
}

impl PortQueue {
    /// True if no message is entering or offered, so that an illegal one may take its place.
    pub fn is_free(&self) -> bool {
        self.beat == 0 && !self.valid
    }
}

/// A message of which some beats have left the home.
struct DepartingMessage {
    /// Index of the line.
    line: usize,
    /// Number of the message, as an index into the ROM's `sends`.
    number: usize,
    /// Contents of the line, as far as they have left.
    bytes: Bytes,
    /// Number of beats that have left.
    beat: usize,
}

/// Ports of a slice for messages, by circuit.
pub(super) struct LinkPorts {
    /// Number of the slice.
    slice: usize,
    /// Messages to the home, by circuit.
    pub queues: [PortQueue; CIRCUITS],
    /// Messages to the remote, by circuit.
    departing: [Option<DepartingMessage>; CIRCUITS],
}

impl LinkPorts {
    /// Creates the idle ports of a slice.
    pub fn new(slice: usize) -> LinkPorts {
        LinkPorts {
            slice,
            queues: Default::default(),
            departing: Default::default(),
        }
    }

    /// True if no message waits, enters or leaves.
    pub fn is_idle(&self) -> bool {
        self.queues.iter().all(|port| port.queue.is_empty())
            && self.departing.iter().all(Option::is_none)
    }

    /// True if some beats of a message have left by a circuit, and others have not.
    pub fn is_departing(&self, circuit: usize) -> bool {
        self.departing[circuit].is_some()
    }

    /// Queues a message that has arrived at the home's port, in the queue of its circuit.
    pub fn enqueue(&mut self, context: &mut Context, line_index: usize, message: Message) {
        let circuit = context.reference.input_circuit(message.kind);
        context.lines[line_index].messages.at_ports += 1;
        self.queues[circuit].queue.push_back((line_index, message));
    }

    /// Drives the pins, except at ports where an illegal message enters. `stalled` has a bit for each port that is not
    /// ready.
    pub fn drive(
        &mut self,
        context: &mut Context,
        inputs: &mut Inputs,
        has_illegal: [bool; CIRCUITS],
        stalled: u64,
    ) {
        let (slice, reference) = (self.slice, context.reference.clone());
        let (words, beats) = (reference.words_per_beat, reference.beats);
        (inputs.rx_valid[slice], inputs.rx_last[slice]) = (0, 0);
        for (circuit, port_queue) in self.queues.iter_mut().enumerate() {
            let Some((line_index, message)) = port_queue.queue.front() else {
                continue;
            };
            if has_illegal[circuit] {
                continue;
            }
            port_queue.valid = port_queue.valid || context.random_ready() != 0;
            if !port_queue.valid {
                continue;
            }
            inputs.rx_valid[slice] |= 1 << circuit;
            let event = reference.event_number(message.kind);
            let header = Header {
                mask: message.mask,
                message: event.expect("the message goes to the home") as u8,
                remote: 0,
                line: context.lines[*line_index].number,
            };
            inputs.rx_header[slice][circuit] = header.encode();
            let is_last = message.bytes.is_none() || port_queue.beat + 1 == beats;
            inputs.rx_last[slice] |= u64::from(is_last) << circuit;
            if let Some(bytes) = &message.bytes {
                let beat = &bytes[port_queue.beat * words..][..words];
                inputs.rx_data[slice][circuit][..words].copy_from_slice(beat);
            }
        }
        let ready = (0..CIRCUITS).map(|circuit| context.random_ready() << circuit);
        inputs.tx_ready[slice] = ready.sum::<u64>() & !stalled;
    }

    /// Records a beat that enters through a circuit. With the last beat, the message has arrived at its unit.
    pub fn accept_beat(&mut self, context: &mut Context, units: &mut Units, circuit: usize) {
        let port_queue = &mut self.queues[circuit];
        if let (0, Some(&(line_index, _))) = (port_queue.beat, port_queue.queue.front()) {
            context.record_port_event(PortEvent::RxHeader(line_index));
        }
        port_queue.valid = false;
        port_queue.beat += 1;
        let Some((_, message)) = port_queue.queue.front() else {
            return;
        };
        let has_payload = message.bytes.is_some();
        let is_last = !has_payload || port_queue.beat == context.reference.beats;
        port_queue.previous_beat = Some(AcceptedBeat {
            starts_payload: has_payload && port_queue.beat == 1,
            is_last,
        });
        if !is_last {
            return;
        }
        port_queue.beat = 0;
        if let Some((line_index, message)) = port_queue.queue.pop_front() {
            let is_request = context.reference.is_request(message.kind);
            units.record_arrival(context.unit(line_index), is_request);
            let line = &mut context.lines[line_index];
            line.messages.at_ports -= 1;
            line.messages.arrived.push(message);
            context.report.messages += 1;
        }
    }

    /// Checks a beat that leaves by a circuit. Returns the message if this was its last beat.
    pub fn check_departure(
        &mut self,
        context: &mut Context,
        stalls: &mut Stalls,
        outputs: &Outputs,
        circuit: usize,
    ) -> Checked<Option<(usize, Message)>> {
        let slice = self.slice;
        let mut departing = match self.departing[circuit].take() {
            Some(departing) => departing,
            None => begin_departure(context, outputs.tx_header[slice][circuit])?,
        };
        stalls.record_beat(slice, circuit, context.cycle);
        let words = context.reference.words_per_beat;
        let beat = &outputs.tx_data[slice][circuit][..words];
        departing.bytes[departing.beat * words..][..words].copy_from_slice(beat);
        departing.beat += 1;
        let sent = &context.reference.rom.sends[departing.number];
        let is_last = !sent.payload || departing.beat == context.reference.beats;
        if is_last != (outputs.tx_last[slice] >> circuit & 1 != 0) {
            let (name, beat) = (&sent.name, departing.beat);
            let negation = if is_last { "not " } else { "" };
            let message = format!("beat {beat} of {name} is {negation}marked as its last one");
            return line_failure(departing.line, message);
        }
        if !is_last {
            self.departing[circuit] = Some(departing);
            return Ok(None);
        }
        let line_index = departing.line;
        let message = check_departed(context, departing, circuit)?;
        Ok(Some((line_index, message)))
    }
}

/// Checks the header of a message that leaves the home.
fn begin_departure(context: &mut Context, word: u64) -> Checked<DepartingMessage> {
    let header = Header::decode(word);
    let line = context.line_of(header.line, "a message to the remote")?;
    let number = usize::from(header.message);
    if number >= context.reference.rom.sends.len() || header.remote != 0 {
        let message = format!("a message to the remote has the number {number}");
        return line_failure(line, message);
    }
    context.record_port_event(PortEvent::TxHeader(line));
    Ok(DepartingMessage {
        line,
        number,
        bytes: [0; WORDS],
        beat: 0,
    })
}

/// Checks a message that has left the home against the one that the controller sent, which is returned.
fn check_departed(
    context: &mut Context,
    departed: DepartingMessage,
    circuit: usize,
) -> Checked<Message> {
    let line_index = departed.line;
    let sent = &context.reference.rom.sends[departed.number];
    let name = &sent.name;
    let expected = context.lines[line_index].messages.expected[circuit].pop_front();
    let failure = |message: String| line_failure(line_index, message);
    let Some(expected) = expected else {
        let message = format!("{name} leaves the home, but the controller did not send it");
        return failure(message);
    };
    if expected.kind != sent.message {
        let expected = &context.reference.protocol.message(expected.kind).name;
        return failure(format!(
            "{name} leaves the home; the controller sent {expected}"
        ));
    }
    let words = context.reference.words;
    let differs = |bytes: Bytes| bytes[..words] != departed.bytes[..words];
    if expected.bytes.is_some_and(differs) {
        let message =
            format!("{name} leaves the home with data that differ from those read for it");
        return failure(message);
    }
    context.record_port_event(PortEvent::TxLastBeat(line_index));
    context.report.messages += 1;
    Ok(expected)
}

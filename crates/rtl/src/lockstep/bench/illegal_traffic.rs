//! Illegal traffic: messages with invalid numbers or for lines of other slices, and events that can never occur, amid
//! all regular traffic. The home must drop or refuse and count it, without any effect on the regular traffic.

use super::*;
use crate::registers::counter_position;
use crate::rom::Effect;

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

/// Reason for a refusal: `reject_e` of `home_pkg.sv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IllegalReason {
    Number = 1,
    Remote,
    Line,
    Operation,
    Local,
    Unlock,
    Length,
    Read,
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
pub(super) struct IllegalMessage {
    header: u64,
    /// Reason for which the home drops the message; `None` if it reaches a unit, which has no row for it.
    reason: Option<IllegalReason>,
    beats: usize,
    /// The beat at which the error is detected, counted from 1.
    error_beat: usize,
    beat: usize,
}

/// Illegal traffic at a slice's ports, and its expected effects.
#[derive(Default)]
pub(super) struct IllegalTraffic {
    messages: [Option<IllegalMessage>; CIRCUITS],
    request: Option<(u64, IllegalReason)>,
    unlock: Option<u64>,
    /// IDs of this cycle's memory answers to reads and to writes that are not in flight.
    unsolicited_ids: [Option<u64>; 2],
    /// Expected refusals that the device receives.
    answers: Vec<u64>,
    /// Impossible events that no unit has dropped yet: line and event number.
    impossible: Vec<(u64, usize)>,
    /// The first refusal: its cycle, its rank within the cycle, and the value of `FirstWrong`.
    first_refusal: Option<(u64, usize, u64)>,
    /// Dropped events, each with its cycle.
    dropped: Vec<(u64, u64)>,
}

impl IllegalTraffic {
    /// True if no illegal traffic is left.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.iter().all(Option::is_none)
            && self.request.is_none()
            && self.unlock.is_none()
            && self.answers.is_empty()
            && self.impossible.is_empty()
    }

    /// True if an illegal message is entering through this circuit.
    pub(super) fn has_message(&self, circuit: usize) -> bool {
        self.messages[circuit].is_some()
    }

    /// Records a refusal in this cycle.
    fn record_refusal(&mut self, cycle: u64, order: usize, word: u64) {
        let earliest = self.first_refusal.get_or_insert((cycle, order, word));
        if (cycle, order) < (earliest.0, earliest.1) {
            *earliest = (cycle, order, word);
        }
    }

    pub(super) fn has_local_request(&self) -> bool {
        self.request.is_some()
    }

    pub(super) fn has_unlock(&self) -> bool {
        self.unlock.is_some()
    }
}

impl Bench<'_> {
    /// Puts illegal traffic at free ports and keeps it there.
    pub(super) fn inject_illegal_traffic(&mut self) {
        let may_inject = self.starts_accesses() && self.shape.endpoint == Endpoint::None;
        for slice_index in 0..SLICES {
            for circuit in 0..self.rom.rx.len() {
                let port_queue = &self.slices[slice_index].port_queues[circuit];
                let is_free = port_queue.beat == 0 && !port_queue.valid;
                if may_inject
                    && is_free
                    && !self.slices[slice_index].illegal_inputs.has_message(circuit)
                    && self.is_injected()
                {
                    let illegal = self.illegal_message(slice_index, circuit);
                    self.slices[slice_index].illegal_inputs.messages[circuit] = Some(illegal);
                }
            }
            let slice = &self.slices[slice_index];
            if may_inject
                && !slice.local_request_valid
                && !slice.illegal_inputs.has_local_request()
                && self.is_injected()
            {
                let (operation, reason, line) = match self.illegal_random.below(2) {
                    0 => {
                        let min_operation = self.rom.locking.len() as u64;
                        let max_operations = crate::rom::MAX_LOCALS as u64;
                        if min_operation == max_operations {
                            continue;
                        }
                        let operation = min_operation
                            + self.illegal_random.below(max_operations - min_operation);
                        (operation, IllegalReason::Operation, self.any_line())
                    }
                    _ => (
                        self.illegal_random.below(4),
                        IllegalReason::Local,
                        self.wrong_line(slice_index),
                    ),
                };
                let reason = match operation >= self.rom.locking.len() as u64 {
                    true => IllegalReason::Operation,
                    false => reason,
                };
                self.slices[slice_index].illegal_inputs.request =
                    Some((operation << 36 | line, reason));
            }
            let slice = &self.slices[slice_index];
            if may_inject
                && !slice.unlock_valid
                && !slice.illegal_inputs.has_unlock()
                && self.is_injected()
            {
                let line = self.wrong_line(slice_index);
                self.slices[slice_index].illegal_inputs.unlock = Some(line);
            }
        }
    }

    fn is_injected(&mut self) -> bool {
        self.illegal_random.below(256) < self.run.illegal_inputs
    }

    fn any_line(&mut self) -> u64 {
        let line_index = self.illegal_random.below(self.lines.len() as u64) as usize;
        self.lines[line_index].number
    }

    /// Returns the number of lines of the home, over all slices, units and sets.
    fn range(&self) -> u64 {
        (self.requests.len() as u64) << (self.shape.set_bits + self.shape.tag_bits)
    }

    /// Returns the number of a line that does not belong to the slice. It belongs to the other slice, or lies beyond
    /// the range, where it would alias a line of the home if its upper bits were dropped.
    fn wrong_line(&mut self, slice_index: usize) -> u64 {
        let own_line = self.any_line() & !1 | slice_index as u64;
        let high_bit = self.range().ilog2()
            + self
                .illegal_random
                .below(36 - u64::from(self.range().ilog2())) as u32;
        match self.illegal_random.below(3) {
            0 => own_line ^ 1,
            _ => own_line | 1 << high_bit,
        }
    }

    fn illegal_message(&mut self, slice_index: usize, circuit: usize) -> IllegalMessage {
        let rom = self.rom;
        let arrives_here = |number: u64| {
            let event = rom.events.get(number as usize);
            event.is_some_and(|event| (number as usize) < rom.messages && event.circuit == circuit)
        };
        let numbers: Vec<u64> = (0..rom.messages as u64)
            .filter(|&number| arrives_here(number))
            .collect();
        let any_number = numbers[self.illegal_random.below(numbers.len() as u64) as usize];
        let impossible: Vec<u64> = numbers
            .into_iter()
            .filter(|&number| rom.row(0, number as usize).effect == Effect::Never)
            .collect();
        let (number, remote, line, reason) = match self.illegal_random.below(6) {
            5 => (
                any_number,
                0,
                self.any_line() & !1 | slice_index as u64,
                Some(IllegalReason::Length),
            ),
            0 => (
                any_number,
                1 + self.illegal_random.below(15),
                self.any_line(),
                Some(IllegalReason::Remote),
            ),
            1 => (
                any_number,
                0,
                self.wrong_line(slice_index),
                Some(IllegalReason::Line),
            ),
            2 if !impossible.is_empty() => {
                let number =
                    impossible[self.illegal_random.below(impossible.len() as u64) as usize];
                let mut line = self.illegal_random.below(self.range()) & !1 | slice_index as u64;
                while self.by_number.contains_key(&line) {
                    line = (line + 2) % self.range();
                }
                (number, 0, line, None)
            }
            // Try numbers of internal events first, then numbers that alias them if upper bits are dropped.
            kind => loop {
                let number = match kind {
                    3 => self.illegal_random.below(64),
                    _ => self.illegal_random.below(256),
                };
                if !arrives_here(number) {
                    break (number, 0, self.any_line(), Some(IllegalReason::Number));
                }
            },
        };
        let payload = rom
            .events
            .get(number as usize)
            .is_some_and(|event| event.payload);
        let correct_beats = if payload { self.beats } else { 1 };
        let beats = match reason {
            None => correct_beats,
            // A message that is dropped for another reason may have any length.
            Some(reason) => loop {
                let beats = 1 + self.illegal_random.below(self.beats as u64 + 2) as usize;
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

    /// Returns an AXI ID of no outstanding request.
    fn unused_id(&mut self, bursts_of: fn(&Slice) -> &[Burst], slice_index: usize) -> u64 {
        loop {
            let id = self.illegal_random.below(256);
            if bursts_of(&self.slices[slice_index])
                .iter()
                .all(|burst| burst.id != id)
            {
                return id;
            }
        }
    }

    /// Drives illegal traffic to the pins instead of regular traffic.
    pub(super) fn drive_illegal_traffic(&mut self, slice_index: usize) {
        let may_inject = self.starts_accesses() && self.shape.endpoint == Endpoint::None;
        self.slices[slice_index].illegal_inputs.unsolicited_ids = [None; 2];
        if may_inject && self.inputs.r_valid[slice_index] == 0 && self.is_injected() {
            let id = self.unused_id(|slice| &slice.reads, slice_index);
            self.slices[slice_index].illegal_inputs.unsolicited_ids[0] = Some(id);
            (
                self.inputs.r_valid[slice_index],
                self.inputs.r_id[slice_index],
            ) = (1, id);
            self.inputs.r_last[slice_index] = self.illegal_random.below(2);
            self.inputs.r_data[slice_index].fill(!id);
        }
        if may_inject && self.inputs.b_valid[slice_index] == 0 && self.is_injected() {
            let id = self.unused_id(|slice| &slice.writes, slice_index);
            self.slices[slice_index].illegal_inputs.unsolicited_ids[1] = Some(id);
            (
                self.inputs.b_valid[slice_index],
                self.inputs.b_id[slice_index],
            ) = (1, id);
        }
        let (inputs, illegal_inputs) = (&mut self.inputs, &self.slices[slice_index].illegal_inputs);
        for (circuit, illegal) in illegal_inputs.messages.iter().enumerate() {
            let Some(illegal) = illegal else {
                continue;
            };
            inputs.rx_valid[slice_index] |= 1 << circuit;
            inputs.rx_header[slice_index][circuit] = illegal.header;
            inputs.rx_last[slice_index] |= u64::from(illegal.beat + 1 == illegal.beats) << circuit;
            let word = !illegal.header ^ illegal.beat as u64;
            inputs.rx_data[slice_index][circuit].fill(word);
        }
        if let Some((request, _)) = illegal_inputs.request {
            inputs.local_req_valid[slice_index] = 1;
            inputs.local_req[slice_index] = request;
        }
        if let Some(line) = illegal_inputs.unlock {
            inputs.unlock_valid[slice_index] = 1;
            inputs.unlock_line[slice_index] = line;
        }
    }

    /// Handles a beat that entered through a circuit. Returns true if it belongs to an illegal message.
    pub(super) fn accept_illegal_beat(&mut self, slice_index: usize, circuit: usize) -> bool {
        let Some(illegal) = &mut self.slices[slice_index].illegal_inputs.messages[circuit] else {
            return false;
        };
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
        // A dropped message never waits and blocks no message behind it.
        self.slices[slice_index].port_queues[circuit].last_beat = match reason {
            // Up to the beat that reveals the wrong length, the message is treated as a regular one: its first beat
            // waits for a slot.
            Some(IllegalReason::Length) if beat < error_beat => {
                Some((self.rom.events[number].payload && beat == 1, false))
            }
            Some(_) => None,
            None => Some((self.rom.events[number].payload && beat == 1, is_complete)),
        };
        match reason {
            Some(reason) if beat == error_beat => {
                let kind = match reason {
                    IllegalReason::Length => const { counter_position("WrongLengths") },
                    IllegalReason::Line => const { counter_position("WrongLines") },
                    _ => const { counter_position("WrongMessages") },
                };
                self.counts[slice_index].add(kind, circuit, 1);
                let word =
                    (reason as u64) << 56 | (circuit as u64) << 48 | header & ((1 << 48) - 1);
                self.slices[slice_index]
                    .illegal_inputs
                    .record_refusal(self.cycle, circuit, word);
            }
            None if is_complete => {
                self.counts[slice_index].add(const { counter_position("Events") }, number, 1);
                let event = &self.rom.events[number];
                let unit = line as usize % self.requests.len();
                if !event.request {
                    self.responses[unit] += 1;
                }
                self.slices[slice_index]
                    .illegal_inputs
                    .impossible
                    .push((line, number));
            }
            _ => {}
        }
        if is_complete {
            self.slices[slice_index].illegal_inputs.messages[circuit] = None;
            self.report.illegal_inputs += 1;
        }
        true
    }

    /// Handles an accepted local operation. Returns true if it was illegal: an unknown operation, or one on a line of
    /// another slice.
    pub(super) fn accept_illegal_operation(&mut self, slice_index: usize) -> bool {
        let Some((request, reason)) = self.slices[slice_index].illegal_inputs.request.take() else {
            return false;
        };
        let (operation, line) = (request >> 36, request & ((1 << 36) - 1));
        let counter = match reason {
            IllegalReason::Operation => const { counter_position("WrongOperations") },
            _ => const { counter_position("WrongDeviceLines") },
        };
        self.count_refusal(slice_index, counter, 1 << 39 | request);
        self.record_first_refusal(slice_index, reason, operation << 40 | line);
        true
    }

    /// Handles an accepted unlock. Returns true if it was illegal.
    pub(super) fn accept_illegal_unlock(&mut self, slice_index: usize) -> bool {
        let Some(line) = self.slices[slice_index].illegal_inputs.unlock.take() else {
            return false;
        };
        self.count_refusal(
            slice_index,
            const { counter_position("WrongDeviceLines") },
            1 << 40 | 1 << 39 | line,
        );
        self.record_first_refusal(slice_index, IllegalReason::Unlock, line);
        true
    }

    /// Accounts for this cycle's unsolicited memory answers, which the home dropped.
    pub(super) fn count_unsolicited_answers(&mut self, slice_index: usize) {
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
        for ((reason, counter), unsolicited) in kinds
            .into_iter()
            .zip(self.slices[slice_index].illegal_inputs.unsolicited_ids)
        {
            let Some(id) = unsolicited else {
                continue;
            };
            self.counts[slice_index].add(counter, 0, 1);
            self.report.illegal_inputs += 1;
            self.record_first_refusal(slice_index, reason, id);
        }
    }

    /// Records a refusal in this cycle at another port than the link's.
    fn record_first_refusal(&mut self, slice_index: usize, reason: IllegalReason, details: u64) {
        let order = ORDER.iter().position(|&other| other == reason);
        let order = CIRCUITS + order.unwrap_or(ORDER.len());
        let word = (reason as u64) << 56 | details;
        self.slices[slice_index]
            .illegal_inputs
            .record_refusal(self.cycle, order, word);
    }

    fn count_refusal(&mut self, slice_index: usize, counter: usize, answer: u64) {
        self.counts[slice_index].add(counter, 0, 1);
        self.counts[slice_index].add(const { counter_position("Refused") }, 0, 1);
        self.slices[slice_index].illegal_inputs.answers.push(answer);
        self.report.illegal_inputs += 1;
    }

    /// True if an answer to the device is the refusal of an illegal operation.
    pub(super) fn is_refusal_of_illegal_input(&mut self, slice_index: usize, answer: u64) -> bool {
        let answers = &mut self.slices[slice_index].illegal_inputs.answers;
        let position = answers
            .iter()
            .position(|&expected| expected == answer & ((1 << 41) - 1));
        position
            .map(|position| answers.swap_remove(position))
            .is_some()
    }

    /// True if a unit's step drops an impossible event.
    pub(super) fn is_illegal_drop(
        &mut self,
        line: u64,
        state: usize,
        number: usize,
        effect: usize,
    ) -> bool {
        let slice_index = line as usize % SLICES;
        let impossible = &mut self.slices[slice_index].illegal_inputs.impossible;
        let Some(position) = impossible.iter().position(|&event| event == (line, number)) else {
            return false;
        };
        if effect != 0 || state != 0 {
            return false;
        }
        impossible.swap_remove(position);
        let units = self.requests.len();
        let unit = line as usize % units;
        if !self.rom.events[number].request {
            self.responses[unit] -= 1;
        }
        self.counts[slice_index].add(const { counter_position("Impossible") }, 0, 1);
        let word = 1 << 63 | (unit as u64 / 2) << 52 | (number as u64) << 36 | line;
        self.slices[slice_index]
            .illegal_inputs
            .dropped
            .push((self.cycle, word));
        self.last_activity = self.cycle;
        true
    }

    /// True if all assertion messages are those that illegal traffic causes.
    pub(super) fn is_caused_by_illegal_traffic(&self, assertions: &str) -> bool {
        let mut lines = assertions.lines().filter(|line| !line.trim().is_empty());
        self.run.illegal_inputs > 0
            && lines.all(|line| ILLEGAL_ASSERTIONS.iter().any(|part| line.contains(part)))
    }

    /// Returns the expected values of the registers for the first refusal and for the first dropped event: one of these
    /// words, or 0.
    pub(super) fn expected_first_errors(&self, slice_index: usize) -> [Vec<u64>; 2] {
        let illegal_inputs = &self.slices[slice_index].illegal_inputs;
        let refused = illegal_inputs.first_refusal.map_or(0, |(_, _, word)| word);
        // If several units drop an event in one cycle, any of them may be recorded first.
        let first_cycle = illegal_inputs.dropped.first().map(|&(cycle, _)| cycle);
        let dropped = illegal_inputs.dropped.iter();
        let dropped: Vec<u64> = dropped
            .filter(|&&(cycle, _)| Some(cycle) == first_cycle)
            .map(|&(_, word)| word)
            .collect();
        let dropped = if dropped.is_empty() { vec![0] } else { dropped };
        [vec![refused], dropped]
    }
}

//! Illegal traffic: messages with invalid numbers or for lines of other slices, and events that can never occur, amid
//! all regular traffic. The home must drop or refuse and count it, without any effect on the regular traffic.

use super::*;
use crate::registers::place as first;
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

/// Reason for a refusal: `wrong_e` of `home_pkg.sv`.
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
    why: Option<IllegalReason>,
    beats: usize,
    /// The beat at which the error is detected, counted from 1.
    shows: usize,
    beat: usize,
}

/// Illegal traffic at a slice's ports, and its expected effects.
#[derive(Default)]
pub(super) struct IllegalTraffic {
    messages: [Option<IllegalMessage>; CIRCUITS],
    ask: Option<(u64, IllegalReason)>,
    unlock: Option<u64>,
    /// IDs of this cycle's memory answers to reads and to writes that are not in flight.
    answered: [Option<u64>; 2],
    /// Expected refusals that the device receives.
    answers: Vec<u64>,
    /// Impossible events that no unit has dropped yet: line and event number.
    impossible: Vec<(u64, usize)>,
    /// The first refusal: its cycle, its rank within the cycle, and the value of `FirstWrong`.
    wrong: Option<(u64, usize, u64)>,
    /// Dropped events, each with its cycle.
    dropped: Vec<(u64, u64)>,
}

impl IllegalTraffic {
    /// True if no illegal traffic is left.
    pub(super) fn rest(&self) -> bool {
        self.messages.iter().all(Option::is_none)
            && self.ask.is_none()
            && self.unlock.is_none()
            && self.answers.is_empty()
            && self.impossible.is_empty()
    }

    /// True if an illegal message is entering through this circuit.
    pub(super) fn enters(&self, circuit: usize) -> bool {
        self.messages[circuit].is_some()
    }

    /// Records a refusal in this cycle.
    fn note(&mut self, cycle: u64, order: usize, word: u64) {
        let first = self.wrong.get_or_insert((cycle, order, word));
        if (cycle, order) < (first.0, first.1) {
            *first = (cycle, order, word);
        }
    }

    pub(super) fn asks(&self) -> bool {
        self.ask.is_some()
    }

    pub(super) fn unlocks(&self) -> bool {
        self.unlock.is_some()
    }
}

impl Bench<'_> {
    /// Puts illegal traffic at free ports and keeps it there.
    pub(super) fn inject_illegal_traffic(&mut self) {
        let more = self.more() && self.shape.endpoint == Endpoint::None;
        for s in 0..SLICES {
            for c in 0..self.rom.rx.len() {
                let entrance = &self.slices[s].port_queues[c];
                let free = entrance.beat == 0 && !entrance.valid;
                if more && free && !self.slices[s].illegal_inputs.enters(c) && self.is_injected() {
                    let stranger = self.message(s, c);
                    self.slices[s].illegal_inputs.messages[c] = Some(stranger);
                }
            }
            let slice = &self.slices[s];
            if more && !slice.ask_valid && !slice.illegal_inputs.asks() && self.is_injected() {
                let (operation, why, line) = match self.strange.below(2) {
                    0 => {
                        let least = self.rom.locking.len() as u64;
                        let most = crate::rom::MAX_LOCALS as u64;
                        if least == most {
                            continue;
                        }
                        let operation = least + self.strange.below(most - least);
                        (operation, IllegalReason::Operation, self.any_line())
                    }
                    _ => (
                        self.strange.below(4),
                        IllegalReason::Local,
                        self.wrong_line(s),
                    ),
                };
                let why = match operation >= self.rom.locking.len() as u64 {
                    true => IllegalReason::Operation,
                    false => why,
                };
                self.slices[s].illegal_inputs.ask = Some((operation << 36 | line, why));
            }
            let slice = &self.slices[s];
            if more && !slice.unlock_valid && !slice.illegal_inputs.unlocks() && self.is_injected()
            {
                let line = self.wrong_line(s);
                self.slices[s].illegal_inputs.unlock = Some(line);
            }
        }
    }

    fn is_injected(&mut self) -> bool {
        self.strange.below(256) < self.run.illegal_inputs
    }

    fn any_line(&mut self) -> u64 {
        let at = self.strange.below(self.lines.len() as u64) as usize;
        self.lines[at].number
    }

    /// Returns the number of lines of the home, over all slices, units and sets.
    fn range(&self) -> u64 {
        (self.requests.len() as u64) << (self.shape.set_bits + self.shape.tag_bits)
    }

    /// Returns the number of a line that does not belong to the slice. It belongs to the other slice, or lies beyond
    /// the range, where it would alias a line of the home if its upper bits were dropped.
    fn wrong_line(&mut self, s: usize) -> u64 {
        let own = self.any_line() & !1 | s as u64;
        let beyond =
            self.range().ilog2() + self.strange.below(36 - u64::from(self.range().ilog2())) as u32;
        match self.strange.below(3) {
            0 => own ^ 1,
            _ => own | 1 << beyond,
        }
    }

    fn message(&mut self, s: usize, c: usize) -> IllegalMessage {
        let rom = self.rom;
        let own = |number: u64| {
            let about = rom.events.get(number as usize);
            about.is_some_and(|about| (number as usize) < rom.messages && about.circuit == c)
        };
        let known: Vec<u64> = (0..rom.messages as u64)
            .filter(|&number| own(number))
            .collect();
        let some = known[self.strange.below(known.len() as u64) as usize];
        let never: Vec<u64> = known
            .into_iter()
            .filter(|&number| rom.row(0, number as usize).effect == Effect::Never)
            .collect();
        let (number, remote, line, why) = match self.strange.below(6) {
            5 => (
                some,
                0,
                self.any_line() & !1 | s as u64,
                Some(IllegalReason::Length),
            ),
            0 => (
                some,
                1 + self.strange.below(15),
                self.any_line(),
                Some(IllegalReason::Remote),
            ),
            1 => (some, 0, self.wrong_line(s), Some(IllegalReason::Line)),
            2 if !never.is_empty() => {
                let number = never[self.strange.below(never.len() as u64) as usize];
                let mut line = self.strange.below(self.range()) & !1 | s as u64;
                while self.by_number.contains_key(&line) {
                    line = (line + 2) % self.range();
                }
                (number, 0, line, None)
            }
            // Try numbers of internal events first, then numbers that alias them if upper bits are dropped.
            kind => loop {
                let number = match kind {
                    3 => self.strange.below(64),
                    _ => self.strange.below(256),
                };
                if !own(number) {
                    break (number, 0, self.any_line(), Some(IllegalReason::Number));
                }
            },
        };
        let payload = rom
            .events
            .get(number as usize)
            .is_some_and(|about| about.payload);
        let right = if payload { self.beats } else { 1 };
        let beats = match why {
            None => right,
            // A message that is dropped for another reason may have any length.
            Some(why) => loop {
                let beats = 1 + self.strange.below(self.beats as u64 + 2) as usize;
                if why != IllegalReason::Length || beats != right {
                    break beats;
                }
            },
        };
        IllegalMessage {
            header: 0xffff << 48 | number << 40 | remote << 36 | line,
            why,
            beats,
            shows: match why {
                Some(IllegalReason::Length) => beats.min(right),
                _ => 1,
            },
            beat: 0,
        }
    }

    /// Returns an AXI ID of no outstanding request.
    fn unknown(&mut self, known: fn(&Slice) -> &[Burst], s: usize) -> u64 {
        loop {
            let id = self.strange.below(256);
            if known(&self.slices[s]).iter().all(|burst| burst.id != id) {
                return id;
            }
        }
    }

    /// Drives illegal traffic to the pins instead of regular traffic.
    pub(super) fn drive_illegal_traffic(&mut self, s: usize) {
        let more = self.more() && self.shape.endpoint == Endpoint::None;
        self.slices[s].illegal_inputs.answered = [None; 2];
        if more && self.inputs.r_valid[s] == 0 && self.is_injected() {
            let id = self.unknown(|slice| &slice.reads, s);
            self.slices[s].illegal_inputs.answered[0] = Some(id);
            (self.inputs.r_valid[s], self.inputs.r_id[s]) = (1, id);
            self.inputs.r_last[s] = self.strange.below(2);
            self.inputs.r_data[s].fill(!id);
        }
        if more && self.inputs.b_valid[s] == 0 && self.is_injected() {
            let id = self.unknown(|slice| &slice.writes, s);
            self.slices[s].illegal_inputs.answered[1] = Some(id);
            (self.inputs.b_valid[s], self.inputs.b_id[s]) = (1, id);
        }
        let (inputs, illegal_inputs) = (&mut self.inputs, &self.slices[s].illegal_inputs);
        for (c, stranger) in illegal_inputs.messages.iter().enumerate() {
            let Some(stranger) = stranger else {
                continue;
            };
            inputs.rx_valid[s] |= 1 << c;
            inputs.rx_header[s][c] = stranger.header;
            inputs.rx_last[s] |= u64::from(stranger.beat + 1 == stranger.beats) << c;
            let word = !stranger.header ^ stranger.beat as u64;
            inputs.rx_data[s][c].fill(word);
        }
        if let Some((ask, _)) = illegal_inputs.ask {
            inputs.local_req_valid[s] = 1;
            inputs.local_req[s] = ask;
        }
        if let Some(line) = illegal_inputs.unlock {
            inputs.unlock_valid[s] = 1;
            inputs.unlock_line[s] = line;
        }
    }

    /// Handles a beat that entered through a circuit. Returns true if it belongs to an illegal message.
    pub(super) fn accept_illegal_beat(&mut self, s: usize, c: usize) -> bool {
        let Some(stranger) = &mut self.slices[s].illegal_inputs.messages[c] else {
            return false;
        };
        stranger.beat += 1;
        let whole = stranger.beat == stranger.beats;
        let IllegalMessage {
            header,
            why,
            beat,
            shows,
            ..
        } = *stranger;
        let (number, line) = ((header >> 40 & 0xff) as usize, header & ((1 << 36) - 1));
        // A dropped message never waits and blocks no message behind it.
        self.slices[s].port_queues[c].before = match why {
            // Up to the beat that reveals the wrong length, the message is treated as a regular one: its first beat
            // waits for a slot.
            Some(IllegalReason::Length) if beat < shows => {
                Some((self.rom.events[number].payload && beat == 1, false))
            }
            Some(_) => None,
            None => Some((self.rom.events[number].payload && beat == 1, whole)),
        };
        match why {
            Some(why) if beat == shows => {
                let kind = match why {
                    IllegalReason::Length => const { first("WrongLengths") },
                    IllegalReason::Line => const { first("WrongLines") },
                    _ => const { first("WrongMessages") },
                };
                self.counts[s].add(kind, c, 1);
                let word = (why as u64) << 56 | (c as u64) << 48 | header & ((1 << 48) - 1);
                self.slices[s].illegal_inputs.note(self.cycle, c, word);
            }
            None if whole => {
                self.counts[s].add(const { first("Events") }, number, 1);
                let event = &self.rom.events[number];
                let unit = line as usize % self.requests.len();
                if !event.request {
                    self.responses[unit] += 1;
                }
                self.slices[s]
                    .illegal_inputs
                    .impossible
                    .push((line, number));
            }
            _ => {}
        }
        if whole {
            self.slices[s].illegal_inputs.messages[c] = None;
            self.report.illegal_inputs += 1;
        }
        true
    }

    /// Handles an accepted local operation. Returns true if it was illegal: an unknown operation, or one on a line of
    /// another slice.
    pub(super) fn accept_illegal_operation(&mut self, s: usize) -> bool {
        let Some((ask, why)) = self.slices[s].illegal_inputs.ask.take() else {
            return false;
        };
        let (operation, line) = (ask >> 36, ask & ((1 << 36) - 1));
        let place = match why {
            IllegalReason::Operation => const { first("WrongOperations") },
            _ => const { first("WrongDeviceLines") },
        };
        self.refuses(s, place, 1 << 39 | ask);
        self.refused_first(s, why, operation << 40 | line);
        true
    }

    /// Handles an accepted unlock. Returns true if it was illegal.
    pub(super) fn accept_illegal_unlock(&mut self, s: usize) -> bool {
        let Some(line) = self.slices[s].illegal_inputs.unlock.take() else {
            return false;
        };
        self.refuses(
            s,
            const { first("WrongDeviceLines") },
            1 << 40 | 1 << 39 | line,
        );
        self.refused_first(s, IllegalReason::Unlock, line);
        true
    }

    /// Accounts for this cycle's unsolicited memory answers, which the home dropped.
    pub(super) fn count_unsolicited_answers(&mut self, s: usize) {
        let kinds = [
            (IllegalReason::Read, const { first("WrongReads") }),
            (IllegalReason::Write, const { first("WrongWrites") }),
        ];
        for ((why, place), answered) in kinds
            .into_iter()
            .zip(self.slices[s].illegal_inputs.answered)
        {
            let Some(id) = answered else {
                continue;
            };
            self.counts[s].add(place, 0, 1);
            self.report.illegal_inputs += 1;
            self.refused_first(s, why, id);
        }
    }

    /// Records a refusal in this cycle at another port than the link's.
    fn refused_first(&mut self, s: usize, why: IllegalReason, rest: u64) {
        let order = ORDER.iter().position(|&other| other == why);
        let order = CIRCUITS + order.unwrap_or(ORDER.len());
        let word = (why as u64) << 56 | rest;
        self.slices[s].illegal_inputs.note(self.cycle, order, word);
    }

    fn refuses(&mut self, s: usize, place: usize, answer: u64) {
        self.counts[s].add(place, 0, 1);
        self.counts[s].add(const { first("Refused") }, 0, 1);
        self.slices[s].illegal_inputs.answers.push(answer);
        self.report.illegal_inputs += 1;
    }

    /// True if an answer to the device is the refusal of an illegal operation.
    pub(super) fn is_refusal_of_illegal_input(&mut self, s: usize, answer: u64) -> bool {
        let answers = &mut self.slices[s].illegal_inputs.answers;
        let place = answers
            .iter()
            .position(|&expected| expected == answer & ((1 << 41) - 1));
        place.map(|place| answers.swap_remove(place)).is_some()
    }

    /// True if a unit's step drops an impossible event.
    pub(super) fn is_illegal_drop(
        &mut self,
        line: u64,
        state: usize,
        number: usize,
        effect: usize,
    ) -> bool {
        let s = line as usize % SLICES;
        let impossible = &mut self.slices[s].illegal_inputs.impossible;
        let Some(place) = impossible.iter().position(|&event| event == (line, number)) else {
            return false;
        };
        if effect != 0 || state != 0 {
            return false;
        }
        impossible.swap_remove(place);
        let units = self.requests.len();
        let unit = line as usize % units;
        if !self.rom.events[number].request {
            self.responses[unit] -= 1;
        }
        self.counts[s].add(const { first("Impossible") }, 0, 1);
        let word = 1 << 63 | (unit as u64 / 2) << 52 | (number as u64) << 36 | line;
        self.slices[s]
            .illegal_inputs
            .dropped
            .push((self.cycle, word));
        self.progress = self.cycle;
        true
    }

    /// True if all assertion messages are those that illegal traffic causes.
    pub(super) fn is_caused_by_illegal_traffic(&self, said: &str) -> bool {
        let mut lines = said.lines().filter(|line| !line.trim().is_empty());
        self.run.illegal_inputs > 0
            && lines.all(|line| ILLEGAL_ASSERTIONS.iter().any(|what| line.contains(what)))
    }

    /// Returns the expected values of the registers for the first refusal and for the first dropped event: one of these
    /// words, or 0.
    pub(super) fn firsts(&self, s: usize) -> [Vec<u64>; 2] {
        let illegal_inputs = &self.slices[s].illegal_inputs;
        let wrong = illegal_inputs.wrong.map_or(0, |(_, _, word)| word);
        // If several units drop an event in one cycle, any of them may be recorded first.
        let first = illegal_inputs.dropped.first().map(|&(cycle, _)| cycle);
        let dropped = illegal_inputs.dropped.iter();
        let dropped: Vec<u64> = dropped
            .filter(|&&(cycle, _)| Some(cycle) == first)
            .map(|&(_, word)| word)
            .collect();
        let dropped = if dropped.is_empty() { vec![0] } else { dropped };
        [vec![wrong], dropped]
    }
}

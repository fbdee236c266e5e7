//! Random illegal inputs for the home's ports.

use super::{IllegalMessage, IllegalReason, IllegalRequest};
use crate::lockstep::bench::context::Context;
use crate::lockstep::bench::reference::Reference;
use crate::lockstep::bench::run::Run;
use crate::lockstep::random::RandomGenerator;
use crate::lockstep::words::{Header, LocalRequest};
use crate::rom::{Effect, Rom, MAX_EVENTS, MAX_LOCALS};

/// Width of a line number in headers, in bits.
const LINE_BITS: u64 = 36;

/// Generator of illegal inputs.
pub(super) struct Generator {
    /// Random numbers of illegal traffic alone, so that runs without illegal traffic are unaffected.
    random: RandomGenerator,
    /// Number of cycles, of every 256, in which a free port receives illegal traffic.
    rate: u64,
}

impl Generator {
    /// Creates the generator of a run, derived from its seed.
    pub fn new(run: &Run) -> Generator {
        Generator {
            random: RandomGenerator::new(run.seed ^ 0x5bd1_e995),
            rate: run.illegal_rate,
        }
    }

    /// True if the run may have illegal traffic.
    pub fn is_enabled(&self) -> bool {
        self.rate > 0
    }

    /// Draws whether a free port receives illegal traffic in this cycle.
    pub fn is_injected(&mut self) -> bool {
        self.random.below(256) < self.rate
    }

    /// Draws the mark of the last beat.
    pub fn last_mark(&mut self) -> u64 {
        self.random.below(2)
    }

    /// Returns a request of an unknown operation, or for a line of another slice. `None` if there is no unknown
    /// operation.
    pub fn illegal_request(&mut self, context: &Context, slice: usize) -> Option<IllegalRequest> {
        let known_operations = context.reference.rom.locking.len() as u64;
        let max_operations = MAX_LOCALS as u64;
        let (operation, line) = match self.random.below(2) {
            0 if known_operations == max_operations => return None,
            0 => {
                let unknown = self.random.below(max_operations - known_operations);
                (known_operations + unknown, self.any_line(context))
            }
            _ => (self.random.below(4), self.illegal_line(context, slice)),
        };
        Some(IllegalRequest {
            request: LocalRequest {
                operation: operation as u8,
                line,
            },
            reason: match operation >= known_operations {
                true => IllegalReason::Operation,
                false => IllegalReason::Local,
            },
        })
    }

    /// Returns the number of a random line of the run.
    fn any_line(&mut self, context: &Context) -> u64 {
        let line_index = self.random.below(context.lines.len() as u64) as usize;
        context.lines[line_index].number
    }

    /// Returns the number of a line that does not belong to the slice. It belongs to the other slice, or lies beyond
    /// the range, where it would alias a line of the home if its upper bits were dropped.
    pub fn illegal_line(&mut self, context: &Context, slice: usize) -> u64 {
        let own_line = self.any_line(context) & !1 | slice as u64;
        let range_bits = u64::from(line_count(&context.reference).ilog2());
        let high_bit = range_bits + self.random.below(LINE_BITS - range_bits);
        match self.random.below(3) {
            0 => own_line ^ 1,
            _ => own_line | 1 << high_bit,
        }
    }

    /// Returns an illegal message for a circuit of a slice.
    pub fn illegal_message(
        &mut self,
        context: &Context,
        slice: usize,
        circuit: usize,
    ) -> IllegalMessage {
        let reference = &context.reference;
        let (header, reason) = self.illegal_header(context, slice, circuit);
        let event = reference.rom.events.get(usize::from(header.message));
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
            header,
            reason,
            beats,
            error_beat: match reason {
                Some(IllegalReason::Length) => beats.min(correct_beats),
                _ => 1,
            },
            entered_beats: 0,
        }
    }

    /// Returns the header of an illegal message, and the reason for which the home drops the message; `None` if it
    /// reaches a unit, which has no row for it.
    fn illegal_header(
        &mut self,
        context: &Context,
        slice: usize,
        circuit: usize,
    ) -> (Header, Option<IllegalReason>) {
        let rom = context.reference.rom;
        let legal_numbers: Vec<u8> = (0..rom.messages as u8)
            .filter(|&number| arrives_on(rom, circuit, number))
            .collect();
        let any_number = legal_numbers[self.random.below(legal_numbers.len() as u64) as usize];
        let header = |message: u8, remote: u8, line: u64| Header {
            mask: u16::MAX,
            message,
            remote,
            line,
        };
        // Messages without a row in the initial state, which all lines without directory entry have.
        let impossible: Vec<u8> = legal_numbers
            .into_iter()
            .filter(|&number| rom.row(0, usize::from(number)).effect == Effect::Never)
            .collect();
        match self.random.below(6) {
            5 => {
                let line = self.any_line(context) & !1 | slice as u64;
                (header(any_number, 0, line), Some(IllegalReason::Length))
            }
            0 => {
                let remote = 1 + self.random.below(15) as u8;
                let line = self.any_line(context);
                (
                    header(any_number, remote, line),
                    Some(IllegalReason::Remote),
                )
            }
            1 => {
                let line = self.illegal_line(context, slice);
                (header(any_number, 0, line), Some(IllegalReason::Line))
            }
            2 if !impossible.is_empty() => {
                let choice = self.random.below(impossible.len() as u64);
                let line = self.unused_line(context, slice);
                (header(impossible[choice as usize], 0, line), None)
            }
            3 => self.illegal_number(context, circuit, MAX_EVENTS as u64),
            _ => self.illegal_number(context, circuit, 256),
        }
    }

    /// Returns a line of the slice that the run does not use.
    fn unused_line(&mut self, context: &Context, slice: usize) -> u64 {
        let lines = line_count(&context.reference);
        let mut line = self.random.below(lines) & !1 | slice as u64;
        while context.is_used(line) {
            line = (line + 2) % lines;
        }
        line
    }

    /// Returns a header with a message number below `limit` that does not arrive on the circuit. Up to the number of
    /// events, it may be that of an internal event; a larger one may alias an event if its upper bits are dropped.
    fn illegal_number(
        &mut self,
        context: &Context,
        circuit: usize,
        limit: u64,
    ) -> (Header, Option<IllegalReason>) {
        loop {
            let message = self.random.below(limit) as u8;
            if !arrives_on(context.reference.rom, circuit, message) {
                let header = Header {
                    mask: u16::MAX,
                    message,
                    remote: 0,
                    line: self.any_line(context),
                };
                return (header, Some(IllegalReason::Number));
            }
        }
    }

    /// Returns an AXI ID of no outstanding request.
    pub fn unused_id(&mut self, is_used: impl Fn(u64) -> bool) -> u64 {
        loop {
            let id = self.random.below(256);
            if !is_used(id) {
                return id;
            }
        }
    }
}

/// True if a message with this number arrives on the circuit.
fn arrives_on(rom: &Rom, circuit: usize, number: u8) -> bool {
    let number = usize::from(number);
    number < rom.messages && rom.events[number].circuit == circuit
}

/// Returns the number of lines of the home, over all slices, units and sets.
fn line_count(reference: &Reference) -> u64 {
    (reference.units() as u64) << (reference.shape.set_bits + reference.shape.tag_bits)
}

//! Words at the home's ports: the packed structs of `hardware/rtl/home_pkg.sv`, with the same bit layouts.

use crate::rom::Effect;

/// Mask of a line number, which occupies the lowest 36 bits of each word.
const LINE_MASK: u64 = (1 << 36) - 1;

/// Returns the line number of a word.
pub fn line_of(word: u64) -> u64 {
    word & LINE_MASK
}

/// Returns the field of `width` bits whose lowest bit is `low`.
fn field(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}

/// Header of a message (`header_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Mask of the valid sixteenths of the line.
    pub mask: u16,
    /// Number of the event for a message to the home; index into the ROM's `sends` for a message to the remote.
    pub message: u8,
    /// Number of the remote that sends or receives the message, at most 15.
    pub remote: u8,
    /// Line number.
    pub line: u64,
}

impl Header {
    /// Encodes the header.
    pub fn encode(self) -> u64 {
        u64::from(self.mask) << 48
            | u64::from(self.message) << 40
            | u64::from(self.remote) << 36
            | self.line
    }

    /// Decodes a header.
    pub fn decode(word: u64) -> Header {
        Header {
            mask: field(word, 48, 16) as u16,
            message: field(word, 40, 8) as u8,
            remote: field(word, 36, 4) as u8,
            line: line_of(word),
        }
    }
}

/// Local operation of the device (`local_req_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalRequest {
    /// Number of the operation, at most 7.
    pub operation: u8,
    /// Line number.
    pub line: u64,
}

impl LocalRequest {
    /// Encodes the request.
    pub fn encode(self) -> u64 {
        u64::from(self.operation) << 36 | self.line
    }

    /// Decodes a request.
    pub fn decode(word: u64) -> LocalRequest {
        LocalRequest {
            operation: field(word, 36, 3) as u8,
            line: line_of(word),
        }
    }
}

/// Response to a local operation or to an unlock (`local_rsp_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalResponse {
    /// True for the response to an unlock.
    pub unlock: bool,
    /// True if the home refuses the operation or the unlock.
    pub refused: bool,
    /// Number of the local operation.
    pub operation: u8,
    /// Line number.
    pub line: u64,
}

impl LocalResponse {
    /// Encodes the response.
    pub fn encode(self) -> u64 {
        u64::from(self.unlock) << 40
            | u64::from(self.refused) << 39
            | u64::from(self.operation) << 36
            | self.line
    }

    /// Decodes a response.
    pub fn decode(word: u64) -> LocalResponse {
        LocalResponse {
            unlock: field(word, 40, 1) != 0,
            refused: field(word, 39, 1) != 0,
            operation: field(word, 36, 3) as u8,
            line: line_of(word),
        }
    }
}

/// Step of a unit: an event in a state of a line, and its effect (`step_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportedStep {
    /// Line number.
    pub line: u64,
    /// Next state, by its number in the ROM.
    pub next: usize,
    /// Effect of the row.
    pub effect: Effect,
    /// State before the step, as looked up by the unit.
    pub state: usize,
    /// Event, by its number in the ROM.
    pub event: usize,
    /// True if the event is the directory's own recall, which evicts a line.
    pub evict: bool,
    /// True if a resource was missing after the look-up; the unit retries the event.
    pub is_stalled: bool,
}

impl ReportedStep {
    /// Decodes a step.
    pub fn decode(word: u64) -> ReportedStep {
        ReportedStep {
            line: line_of(word),
            next: field(word, 36, 8) as usize,
            effect: Effect::decode(field(word, 44, 2)),
            state: field(word, 46, 8) as usize,
            event: field(word, 54, 6) as usize,
            evict: field(word, 60, 1) != 0,
            is_stalled: field(word, 61, 1) != 0,
        }
    }
}

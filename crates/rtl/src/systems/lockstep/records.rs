//! Records that the test bench prints, one a line.

use crate::systems::operations::Operation;
use std::fmt;

/// A record. Numbers of agents: caches first, then the home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// An agent has executed a row.
    Step(StepRecord),
    /// A cache has performed an access that needs no row.
    Hit {
        /// The cache.
        agent: usize,
        /// Line of the access.
        line: usize,
        /// Data at the processor port.
        result: u64,
        /// Tag of the answer.
        tag: u8,
    },
    /// A fence or a flush ends, or an operation is refused.
    Finish {
        /// The cache.
        agent: usize,
        /// Line of the access.
        line: usize,
        /// Tag of the answer.
        tag: u8,
        /// True if the operation is refused.
        error: bool,
    },
    /// A cache uses a way of a set.
    Use {
        /// The cache.
        agent: usize,
        /// Number of the set.
        set: usize,
        /// Number of the way.
        way: usize,
        /// True if its line is evicted as the victim of the set.
        evicts: bool,
    },
    /// A processor port has taken an access.
    Request {
        /// The cache.
        agent: usize,
        /// The access.
        access: PortAccess,
    },
    /// Memory has answered.
    Memory {
        /// True for a write.
        write: bool,
        /// Line of the access.
        line: usize,
        /// Bytes of a write.
        bytes: Bytes,
        /// Data of a read.
        result: u64,
    },
    /// An agent has no row for a message.
    Unexpected {
        /// The agent.
        agent: usize,
        /// Line of the message.
        line: usize,
        /// Number of the event.
        event: usize,
    },
    /// A message about this line waits for a directory entry, and keeps the next free one of its set.
    Waiting(usize),
    /// The home chooses a line to recall.
    Victim {
        /// Line of the message that waits for an entry.
        line: usize,
        /// Line to recall.
        victim: usize,
    },
    /// An agent signals an unexpected event, or a value without room.
    Failed(usize),
    /// An access makes no progress.
    NoProgress(usize),
    /// Everything is quiescent.
    End {
        /// Duration of the longest access, in cycles.
        longest_access: u64,
    },
}

/// Data with the bytes that count, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bytes {
    /// The data.
    pub data: u64,
    /// Bytes that count; bit 0 is that of the lowest byte.
    pub strobe: u8,
}

impl Bytes {
    /// Returns `base` with these bytes replaced.
    pub fn merge(self, base: u64) -> u64 {
        let bytes = (0..8).filter(|byte| self.strobe >> byte & 1 == 1);
        let mask = bytes.fold(0u64, |mask, byte| mask | 0xff << (8 * byte));
        base & !mask | self.data & mask
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{:x}", self.data)?;
        match self.strobe {
            u8::MAX => Ok(()),
            strobe => write!(formatter, " (byte enables {strobe:08b})"),
        }
    }
}

/// An access at a processor port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortAccess {
    /// Tag, which no other outstanding access of the port has.
    pub tag: u8,
    /// Operation.
    pub operation: Operation,
    /// True for a write.
    pub write: bool,
    /// True if the cache need not keep the line.
    pub uncached: bool,
    /// Number of the line.
    pub line: usize,
    /// Bytes of a write.
    pub bytes: Bytes,
    /// Expected word of a compare-and-swap.
    pub compare: u64,
}

impl PortAccess {
    /// Returns the bytes that the access writes into this copy of the line.
    pub fn written(self, copy: u64) -> Bytes {
        let Bytes { data, strobe } = self.bytes;
        match self.operation {
            Operation::Add => Bytes {
                data: copy.wrapping_add(data),
                strobe,
            },
            Operation::CompareAndSwap if strobe != 0 && copy != self.compare => Bytes::default(),
            _ => self.bytes,
        }
    }
}

/// A row that an agent has executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRecord {
    /// The agent.
    pub agent: usize,
    /// Number of the line.
    pub line: usize,
    /// Number of the event in the printed package.
    pub event: usize,
    /// Sender of the message, encoded as a remote.
    pub sender: u16,
    /// Fields of the message.
    pub fields: Bits,
    /// Data of the message.
    pub bytes: Bytes,
    /// State after the row, as the printed package numbers it.
    pub state: u16,
    /// Variables after the row.
    pub variables: Bits,
    /// Sends of the row, as the step function prints them.
    pub sends: Bits,
    /// Messages of these sends.
    pub messages: Bits,
    /// True if the row performs the outstanding access in the cache's copy.
    pub perform: bool,
    /// True if the row's message completes the outstanding access.
    pub done: bool,
    /// Data at the processor port.
    pub result: u64,
    /// Tag of the answer.
    pub tag: u8,
}

/// Bits of a packed value, read from the lowest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bits {
    /// Bits, from the lowest.
    bits: Vec<bool>,
    /// Number of bits that were read.
    offset: usize,
}

impl Bits {
    /// Reads hexadecimal digits; `None` for other characters.
    fn new(digits: &str) -> Option<Bits> {
        let digits: Option<Vec<u32>> = digits
            .chars()
            .rev()
            .map(|digit| digit.to_digit(16))
            .collect();
        let bits = digits?
            .into_iter()
            .flat_map(|digit| (0..4).map(move |bit| digit >> bit & 1 == 1));
        Some(Bits {
            bits: bits.collect(),
            offset: 0,
        })
    }

    /// Returns the next bits, at most 64, as a number.
    pub fn read(&mut self, width: u32) -> u64 {
        let value = (0..width as usize).fold(0, |value, bit| {
            let is_set = self.bits.get(self.offset + bit).copied().unwrap_or(false);
            value | u64::from(is_set) << bit
        });
        self.offset += width as usize;
        value
    }
}

/// Number of a record, in hexadecimal.
fn number_at(words: &[&str], index: usize) -> Option<u64> {
    u64::from_str_radix(words.get(index)?, 16).ok()
}

/// Bytes of a record, and their strobe.
fn bytes_at(words: &[&str], index: usize) -> Option<Bytes> {
    Some(Bytes {
        data: number_at(words, index)?,
        strobe: number_at(words, index + 1)? as u8,
    })
}

/// Reads the record of a step, without its kind.
fn step(words: &[&str]) -> Option<StepRecord> {
    let number = |index| number_at(words, index);
    let bits = |index: usize| Bits::new(words.get(index)?);
    Some(StepRecord {
        agent: number(0)? as usize,
        line: number(1)? as usize,
        event: number(2)? as usize,
        sender: number(3)? as u16,
        fields: bits(4)?,
        bytes: bytes_at(words, 5)?,
        state: number(7)? as u16,
        variables: bits(8)?,
        sends: bits(9)?,
        messages: bits(10)?,
        perform: number(11)? == 1,
        done: number(12)? == 1,
        result: number(13)?,
        tag: number(14)? as u8,
    })
}

/// Reads a record; `None` if the line is none.
pub fn record(line: &str) -> Option<Record> {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let kind = words.next()?;
    let words: Vec<&str> = words.collect();
    let number = |index| number_at(&words, index);
    let bytes = |index| bytes_at(&words, index);
    Some(match kind {
        "S" => Record::Step(step(&words)?),
        "H" => Record::Hit {
            agent: number(0)? as usize,
            line: number(1)? as usize,
            result: number(2)?,
            tag: number(3)? as u8,
        },
        "N" => Record::Finish {
            agent: number(0)? as usize,
            line: number(1)? as usize,
            tag: number(2)? as u8,
            error: number(3)? == 1,
        },
        "P" => Record::Use {
            agent: number(0)? as usize,
            set: number(1)? as usize,
            way: number(2)? as usize,
            evicts: number(3)? == 1,
        },
        "Q" => Record::Request {
            agent: number(0)? as usize,
            access: PortAccess {
                tag: number(1)? as u8,
                operation: *Operation::ALL.get(number(2)? as usize)?,
                write: number(3)? == 1,
                uncached: number(4)? == 1,
                line: number(5)? as usize,
                bytes: bytes(6)?,
                compare: number(8)?,
            },
        },
        "M" => Record::Memory {
            write: number(0)? == 1,
            line: number(1)? as usize,
            bytes: bytes(2)?,
            result: number(4)?,
        },
        "U" => Record::Unexpected {
            agent: number(0)? as usize,
            line: number(1)? as usize,
            event: number(2)? as usize,
        },
        "W" => Record::Waiting(number(0)? as usize),
        "V" => Record::Victim {
            line: number(0)? as usize,
            victim: number(1)? as usize,
        },
        "F" => Record::Failed(number(0)? as usize),
        "T" => Record::NoProgress(number(0)? as usize),
        "E" => Record::End {
            longest_access: number(0)?,
        },
        _ => return None,
    })
}

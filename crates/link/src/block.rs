//! ECI blocks of 512 bits: seven message words and a control word.

use crate::crc::crc24;
use crate::layer::WireUnit;
use crate::replay::Sync;

/// Message words per block.
pub const SLOTS: usize = 7;
/// Circuit number of a slot without a word.
pub const EMPTY: u8 = 15;

/// A block in flight: seven message words, then the control word. Its checksum is only computed when a bit is flipped,
/// because until then it is correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Message words, then the control word.
    words: [u64; SLOTS + 1],
    /// True if the control word contains the checksum.
    has_checksum: bool,
    /// Minimum time that the receiver takes for a message that ends in this block, in receiver clocks; 0 if none ends
    /// in it. Simulation metadata, not transmitted.
    pub(crate) clocks: u8,
}

/// Circuit number of each slot, 4 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circuits(u32);

impl Circuits {
    /// All slots are empty.
    pub const NONE: Circuits = Circuits((1 << (4 * SLOTS)) - 1);

    /// Circuit number of a slot, [`EMPTY`] for a slot without a word.
    #[inline]
    pub fn circuit_of(self, slot: usize) -> u8 {
        (self.0 >> (4 * slot)) as u8 & 15
    }

    /// Assigns `count` slots from `slot` on to a circuit. They must be [`EMPTY`] before.
    #[inline]
    pub fn fill(&mut self, slot: usize, count: usize, circuit: u8) {
        let ones = 0x0111_1111 & ((1 << (4 * count)) - 1);
        self.0 ^= (ones << (4 * slot)) * u32::from(EMPTY ^ circuit);
    }

    /// Number of consecutive slots from `slot` on with the same circuit.
    #[inline]
    pub fn run_length(self, slot: usize) -> usize {
        let following_slots = self.0 >> (4 * slot);
        // A digit is 0 if its slot has the same circuit as the first one; bits beyond the last slot are set.
        let differing = following_slots ^ (0x0111_1111 * (following_slots & 15))
            | u32::MAX << (4 * (SLOTS - slot));
        differing.trailing_zeros() as usize / 4
    }
}

impl From<[u8; SLOTS]> for Circuits {
    fn from(circuits: [u8; SLOTS]) -> Circuits {
        let digit = |sum, (slot, circuit): (usize, u8)| sum | u32::from(circuit & 15) << (4 * slot);
        Circuits(circuits.into_iter().enumerate().fold(0, digit))
    }
}

/// Contents of a control word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Message words and credits. Blocks of this kind are numbered implicitly, by counting.
    Data {
        /// Acknowledges `BLOCKS_PER_ACK` more blocks.
        ack: bool,
        /// True if `credits` refers to circuits 8 to 12, false for circuits 0 to 7.
        high: bool,
        /// One bit per circuit: grants [`crate::end::WORDS_PER_CREDIT`] more words.
        credits: u8,
        /// Circuit number of each slot.
        circuits: Circuits,
    },
    /// Replay state of both directions. Not numbered.
    Sync(Sync),
    /// Idle block. Not numbered.
    Idle,
}

// Block types, in the upper three bits of the control word.
/// Data block with credits for circuits 8 to 12.
const HIGH_CREDITS: u64 = 5;
/// Data block with credits for circuits 0 to 7.
const LOW_CREDITS: u64 = 4;
/// Sync block.
const SYNC: u64 = 6;
/// Idle block.
const IDLE: u64 = 7;

impl Block {
    /// Bits per block before line coding.
    pub const BITS: u64 = 512;

    /// Creates a block with message words.
    #[inline]
    pub fn new(control: Control, words: [u64; SLOTS]) -> Block {
        let mut block = Block::without_words(control);
        block.words[..SLOTS].copy_from_slice(&words);
        block
    }

    /// Creates a block without message words.
    #[inline]
    pub fn without_words(control: Control) -> Block {
        let mut block = Block::default();
        block.set_control(control);
        block
    }

    /// Writes the control word.
    #[inline]
    pub(crate) fn set_control(&mut self, control: Control) {
        self.words[SLOTS] = match control {
            Control::Data {
                ack,
                high,
                credits,
                circuits,
            } => {
                let kind = if high { HIGH_CREDITS } else { LOW_CREDITS };
                kind << 61
                    | u64::from(ack) << 60
                    | u64::from(credits) << 52
                    | u64::from(circuits.0) << 24
            }
            Control::Sync(sync) => {
                SYNC << 61
                    | u64::from(sync.request) << 53
                    | u64::from(sync.retry) << 52
                    | u64::from(sync.transmit) << 44
                    | u64::from(sync.receive) << 36
            }
            Control::Idle => IDLE << 61,
        };
    }

    /// Message slots, for writing.
    #[inline]
    pub(crate) fn slots_mut(&mut self) -> &mut [u64] {
        &mut self.words[..SLOTS]
    }

    /// Message words. The contents of empty slots are unspecified.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words[..SLOTS]
    }

    /// Decodes the control word; `None` if its checksum or type is invalid.
    #[inline]
    pub fn control(&self) -> Option<Control> {
        let control_word = self.words[SLOTS];
        if self.has_checksum {
            let mut words_without_checksum = self.words;
            words_without_checksum[SLOTS] &= !0x00ff_ffff;
            if u64::from(crc24(&words_without_checksum)) != control_word & 0x00ff_ffff {
                return None;
            }
        }
        Some(match control_word >> 61 {
            kind @ (LOW_CREDITS | HIGH_CREDITS) => Control::Data {
                ack: control_word >> 60 & 1 == 1,
                high: kind == HIGH_CREDITS,
                credits: (control_word >> 52) as u8,
                circuits: Circuits((control_word >> 24) as u32 & Circuits::NONE.0),
            },
            SYNC => Control::Sync(Sync {
                request: control_word >> 53 & 1 == 1,
                retry: control_word >> 52 & 1 == 1,
                transmit: (control_word >> 44) as u8,
                receive: (control_word >> 36) as u8,
            }),
            IDLE => Control::Idle,
            _ => return None,
        })
    }
}

impl WireUnit for Block {
    fn bits(&self) -> u64 {
        Block::BITS
    }

    fn flip(&mut self, bit: u64) {
        if !self.has_checksum {
            self.words[SLOTS] |= u64::from(crc24(&self.words));
            self.has_checksum = true;
        }
        self.words[bit as usize / 64] ^= 1 << (bit % 64);
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.words[SLOTS] >> 61 == IDLE
    }

    #[inline]
    fn completion_clocks(&self) -> Option<u32> {
        (self.clocks > 0).then_some(self.clocks.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Circuits, Control, Sync, WireUnit, EMPTY, SLOTS};

    #[test]
    fn control_word_round_trips() {
        let data = Control::Data {
            ack: true,
            high: true,
            credits: 0x15,
            circuits: [0, 4, 12, 13, EMPTY, 5, 1].into(),
        };
        let sync = Control::Sync(Sync {
            request: true,
            retry: false,
            transmit: 255,
            receive: 128,
        });
        for control in [data, sync, Control::Idle] {
            assert_eq!(Block::new(control, [3; SLOTS]).control(), Some(control));
        }
    }

    #[test]
    fn run_length_counts_consecutive_slots_of_a_circuit() {
        let mut circuits = Circuits::NONE;
        circuits.fill(0, 2, 4);
        circuits.fill(2, 1, 12);
        circuits.fill(3, 2, 4);
        assert_eq!(circuits, [4, 4, 12, 4, 4, EMPTY, EMPTY].into());
        let runs = std::array::from_fn(|slot| circuits.run_length(slot));
        assert_eq!(runs, [2, 1, 1, 2, 1, 2, 1]);
        circuits.fill(5, 2, 0);
        assert_eq!([circuits.run_length(5), circuits.run_length(6)], [2, 1]);
        assert_eq!(Circuits::from([0; SLOTS]).run_length(0), SLOTS);
        assert_eq!(Circuits::NONE.run_length(0), SLOTS);
    }

    #[test]
    fn single_and_double_bit_errors_are_detected() {
        let intact = Block::new(Control::Idle, [0x0123_4567_89ab_cdef; SLOTS]);
        for first in 0..512 {
            let mut block = intact;
            block.flip(first);
            assert_eq!(block.control(), None);
            for second in 0..first {
                let mut block = block;
                block.flip(second);
                assert_eq!(block.control(), None, "bits {first} and {second}");
            }
        }
    }

    #[test]
    fn errors_that_are_a_multiple_of_the_polynomial_are_missed() {
        // This error pattern is a multiple of the polynomial.
        let mut block = Block::without_words(Control::Idle);
        for bit in [24u64, 21, 20, 17, 15, 11, 9, 8, 6, 5, 1, 0] {
            block.flip(64 + bit);
        }
        assert_eq!(block.control(), Some(Control::Idle));
    }
}

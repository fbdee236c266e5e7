//! Checksums: of whole words, and of the error pattern of a unit whose bits are not modelled.
//!
//! PCIe and CXL units carry messages instead of bits. A CRC is linear: the checksum of erroneous bits is the checksum
//! of the correct bits XOR that of the error pattern. [`ErrorPattern`] therefore decides exactly, from the flipped bits
//! alone, whether a receiver detects the error. Units without errors cost nothing.
//!
//! The polynomial of ECI's blocks is not published; Interlaken's burst CRC is assumed. The polynomial of small flits is
//! that of CXL, those of packets are PCIe's. The 8 CRC bytes of large flits are assumed to be a 64-bit CRC with the
//! polynomial of ECMA-182. No source here states how they are computed.

use crc::{Algorithm, Crc, CRC_24_INTERLAKEN};

/// CRC of ECI's blocks.
const WORD_CRC: Crc<u32> = Crc::<u32>::new(&CRC_24_INTERLAKEN);

/// CRC-24 (Interlaken) of words, most significant bit first.
pub fn crc24(words: &[u64]) -> u32 {
    let mut digest = WORD_CRC.digest();
    for word in words {
        digest.update(&word.to_be_bytes());
    }
    digest.finalize()
}

/// CRC without initial value and final XOR, for error patterns.
macro_rules! linear_crc {
    ($word:ty, $width:expr, $poly:expr) => {
        Crc::<$word>::new(&Algorithm {
            width: $width,
            poly: $poly,
            init: 0,
            refin: true,
            refout: true,
            xorout: 0,
            check: 0,
            residue: 0,
        })
    };
}

/// CRC of a PCIe transaction layer packet.
const PACKET_CRC: Crc<u32> = linear_crc!(u32, 32, 0x04c1_1db7);
/// CRC of a PCIe data link layer packet.
const LINK_PACKET_CRC: Crc<u16> = linear_crc!(u16, 16, 0x100b);
/// CRC of a 68-byte CXL flit.
const SMALL_FLIT_CRC: Crc<u16> = linear_crc!(u16, 16, 0xf053);
/// CRC of the assumed polynomial for a 256-byte CXL flit.
const LARGE_FLIT_CRC: Crc<u64> = linear_crc!(u64, 64, 0x42f0_e1eb_a9ea_3693);

/// Checksum of a kind of unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// 32 bits at the end of a PCIe transaction layer packet, over everything except its framing.
    Packet,
    /// 16 bits at the end of a PCIe data link layer packet, over everything except its framing.
    LinkPacket,
    /// 16 bits at the end of a 68-byte flit, over its slots.
    SmallFlit,
    /// 64 bits after the slots and credits of a 256-byte flit, over these and its header.
    LargeFlit,
}

impl Checksum {
    /// Bytes that the checksum does not cover: before the covered bytes, and after the checksum.
    fn uncovered_bytes(self) -> [usize; 2] {
        match self {
            // Framing tokens have their own check, and protocol identifiers differ in several bits.
            Checksum::Packet | Checksum::LinkPacket | Checksum::SmallFlit => [2, 0],
            Checksum::LargeFlit => [0, 6],
        }
    }

    /// True if `bytes`, which end with the checksum, have no detectable error.
    fn is_valid(self, bytes: &[u8]) -> bool {
        // The CRC over data and its checksum is zero.
        match self {
            Checksum::Packet => PACKET_CRC.checksum(bytes) == 0,
            Checksum::LinkPacket => LINK_PACKET_CRC.checksum(bytes) == 0,
            Checksum::SmallFlit => SMALL_FLIT_CRC.checksum(bytes) == 0,
            Checksum::LargeFlit => LARGE_FLIT_CRC.checksum(bytes) == 0,
        }
    }
}

/// Error pattern: the indices of the flipped bits of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPattern(Vec<u64>);

impl ErrorPattern {
    /// Flips a bit; flipping it again restores it.
    pub fn flip(&mut self, bit: u64) {
        match self.0.iter().position(|&flipped| flipped == bit) {
            Some(index) => drop(self.0.swap_remove(index)),
            None => self.0.push(bit),
        }
    }

    /// True if no bit is flipped.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Restores all bits.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Restores all bits for which `is_correctable` returns true.
    pub fn correct(&mut self, is_correctable: impl Fn(u64) -> bool) {
        self.0.retain(|&bit| !is_correctable(bit));
    }

    /// Flipped bits, in no particular order.
    pub fn bits(&self) -> &[u64] {
        &self.0
    }

    /// True if the receiver of a unit of `bytes` bytes detects the error.
    #[inline]
    pub fn is_detected(&self, bytes: u64, checksum: Checksum) -> bool {
        !self.0.is_empty() && self.is_error_detected(bytes as usize, checksum)
    }

    /// Computes the checksum of the error pattern.
    #[cold]
    fn is_error_detected(&self, bytes: usize, checksum: Checksum) -> bool {
        let [uncovered_before, uncovered_after] = checksum.uncovered_bytes();
        let mut error_bytes = vec![0u8; bytes];
        for &bit in &self.0 {
            // Ignore bits beyond the end of the unit.
            if let Some(byte) = error_bytes.get_mut(bit as usize / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
        let has_framing_error = error_bytes[..uncovered_before]
            .iter()
            .any(|&byte| byte != 0);
        has_framing_error
            || !checksum.is_valid(&error_bytes[uncovered_before..bytes - uncovered_after])
    }
}

#[cfg(test)]
mod tests {
    use super::{crc24, Checksum, ErrorPattern, SMALL_FLIT_CRC};
    use cohkit_base::random::SplitMix64;

    const CHECKSUMS: [(Checksum, usize, u32, u64); 4] = [
        (Checksum::Packet, 152, 32, 0x04c1_1db7),
        (Checksum::LinkPacket, 8, 16, 0x100b),
        (Checksum::SmallFlit, 68, 16, 0xf053),
        (Checksum::LargeFlit, 256, 64, 0x42f0_e1eb_a9ea_3693),
    ];

    /// Reference implementation, bit by bit, with an initial register of ones or zeros.
    fn reference_crc(
        bits: impl Iterator<Item = bool>,
        width: u32,
        polynomial: u64,
        has_initial_ones: bool,
    ) -> u64 {
        let mask = u64::MAX >> (64 - width);
        bits.fold(if has_initial_ones { mask } else { 0 }, |register, bit| {
            let top_bit = register >> (width - 1) & 1 == 1;
            let next = register << 1 & mask;
            if top_bit == bit {
                next
            } else {
                next ^ polynomial
            }
        })
    }

    #[test]
    fn word_checksum_matches_its_definition() {
        let mut random = SplitMix64::new(7);
        for _ in 0..100 {
            let words: [u64; 8] = std::array::from_fn(|_| random.next_u64());
            let bits =
                (words.iter()).flat_map(|word| (0..64).rev().map(move |bit| word >> bit & 1 == 1));
            let expected = reference_crc(bits, 24, 0x32_8b63, true) ^ 0xff_ffff;
            assert_eq!(u64::from(crc24(&words)), expected);
        }
    }

    /// Compares with a receiver that has all bits: it computes the checksum of the received bits and compares.
    #[test]
    fn bit_errors_alone_decide_checksum_detection() {
        let mut random = SplitMix64::new(11);
        for (checksum, bytes, width, polynomial) in CHECKSUMS {
            let [uncovered_before, uncovered_after] = checksum.uncovered_bytes();
            let (first, last) = (
                8 * uncovered_before,
                8 * (bytes - uncovered_after) - width as usize,
            );
            let checksum_of = |bits: &[bool]| {
                reference_crc(bits[first..last].iter().copied(), width, polynomial, true)
            };
            let (mut detected, mut missed) = (0, 0);
            for trial in 0..2000 {
                let mut bits: Vec<bool> = (0..8 * bytes).map(|_| random.modulo(2) == 1).collect();
                let crc = checksum_of(&bits);
                for crc_bit in 0..width as usize {
                    bits[last + crc_bit] = crc >> (width as usize - 1 - crc_bit) & 1 == 1;
                }
                let mut errors = ErrorPattern::default();
                let mut flip = |bit: usize| {
                    errors.flip(bit as u64);
                    bits[bit] ^= true;
                };
                let start = first + random.modulo((last - first) as u64 - 1) as usize;
                match trial % 4 {
                    // A multiple of the polynomial, which its CRC cannot detect.
                    0 => (0..=width).for_each(|power| {
                        if power == width || polynomial >> power & 1 == 1 {
                            flip(start + (width - power) as usize);
                        }
                    }),
                    _ => (0..1 + random.modulo(8)).for_each(|_| {
                        flip(
                            first + random.modulo((last + width as usize - first) as u64) as usize,
                        );
                    }),
                }
                let received_crc = checksum_of(&bits);
                let is_detectable = (0..width as usize).any(|crc_bit| {
                    bits[last + crc_bit]
                        != (received_crc >> (width as usize - 1 - crc_bit) & 1 == 1)
                });
                assert_eq!(
                    errors.is_detected(bytes as u64, checksum),
                    is_detectable,
                    "{checksum:?}: {errors:?}"
                );
                *if is_detectable {
                    &mut detected
                } else {
                    &mut missed
                } += 1;
            }
            assert!(detected > 1000 && missed >= 500, "{checksum:?}");
        }
    }

    /// Property of the polynomial stated by the CXL specification.
    #[test]
    fn up_to_three_bit_errors_in_a_small_flit_are_detected() {
        let remainders: Vec<u16> = (0..528)
            .map(|bit| {
                let mut bytes = [0u8; 66];
                bytes[bit / 8] = 1 << (bit % 8);
                SMALL_FLIT_CRC.checksum(&bytes)
            })
            .collect();
        for (bit, first) in remainders.iter().enumerate() {
            assert_ne!(*first, 0);
            for (earlier_bit, second) in remainders[..bit].iter().enumerate() {
                let combined = first ^ second;
                assert_ne!(combined, 0);
                assert!(
                    !remainders[..earlier_bit].contains(&combined),
                    "bits {bit} and {earlier_bit} and a third"
                );
            }
        }
    }

    #[test]
    fn framing_errors_are_detected_without_the_checksum() {
        let mut errors = ErrorPattern::default();
        assert!(!errors.is_detected(68, Checksum::SmallFlit));
        errors.flip(15);
        assert!(errors.is_detected(68, Checksum::SmallFlit));
        errors.flip(15);
        assert!(errors.is_empty());
        // Bytes of error correction are not covered.
        errors.flip(8 * 255);
        assert!(!errors.is_detected(256, Checksum::LargeFlit));
    }
}

//! PCIe: rates by the formulas of pcie-bench's `pcie-model`, endpoints as state machines, and reads with their
//! completions.

pub mod dma;
mod end;
pub mod reads;
mod sequence_numbers;

use crate::lanes::Ratio;

pub use end::{Body, Content, End, Packet, Parameters, COMPLETIONS, NON_POSTED, POSTED};

pub(crate) use end::LINK_PACKET_BYTES;

/// Bytes of a write or read request without data: link and framing 8, common header 4, 64-bit address 12.
pub const REQUEST_BYTES: u64 = 24;
/// Bytes of a completion without data: link and framing 8, common header 4, completion header 8.
pub const COMPLETION_BYTES: u64 = 20;

/// A link of generation 3 to 5, with 128b/130b coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcie {
    /// Number of lanes.
    pub lanes: u32,
    /// Transfer rate per lane in GT/s: 8, 16 or 32.
    pub giga_transfers: u32,
    /// Maximum bytes of data per write or completion.
    pub payload: u64,
    /// Maximum bytes per read request.
    pub request: u64,
    /// Bytes of packets after which an acknowledgement and a credit update are due, of 8 bytes each.
    pub limit: u64,
}

impl Pcie {
    /// Bytes per second after line coding.
    pub fn raw(&self) -> Ratio {
        let bits = u128::from(self.lanes) * u128::from(self.giga_transfers) * 1_000_000_000;
        Ratio::new(bits * 128, 130 * 8)
    }

    /// Bytes per second for packets: raw * (1 - 8 / limit - 8 / limit - 4 / 1538), without acknowledgements, credit
    /// updates, and skips (4 of 1538 bytes).
    pub fn packets(&self) -> Ratio {
        let limit = u128::from(self.limit);
        let (numerator, denominator) = (1538 * limit - 16 * 1538 - 4 * limit, 1538 * limit);
        self.raw().times(numerator, denominator)
    }

    /// Bytes on the wire for a write of `bytes` bytes, split into packets of at most [`Pcie::payload`] bytes of
    /// data.
    pub fn write(&self, bytes: u64) -> u64 {
        bytes + REQUEST_BYTES * bytes.div_ceil(self.payload)
    }

    /// Bytes on the wire for a read of `bytes` bytes: (requests, completions).
    pub fn read(&self, bytes: u64) -> (u64, u64) {
        (
            REQUEST_BYTES * bytes.div_ceil(self.request),
            bytes + COMPLETION_BYTES * bytes.div_ceil(self.payload),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Pcie;

    #[test]
    fn rates_match_the_published_table() {
        // Lanes, GT/s, limit; packet rate in units of 0.1 Gb/s; data rate of large writes and reads in units of 0.01
        // GB/s.
        for (lanes, rate, limit, packets, write, read) in [
            (8, 8, 203, 579, None, None),
            (16, 8, 168, 1137, Some(1299), Some(1318)),
            (16, 16, 168, 2274, Some(2599), Some(2637)),
            (16, 32, 168, 4548, Some(5198), Some(5273)),
        ] {
            let link = Pcie {
                lanes,
                giga_transfers: rate,
                payload: 256,
                request: 512,
                limit,
            };
            let packet_rate = link.packets().value();
            assert_eq!((packet_rate * 8.0 / 1e8).round() as u64, packets);
            let data = |wire: u64| (packet_rate * 65536.0 / wire as f64 / 1e7).round() as u64;
            assert!(write.is_none_or(|w| w == data(link.write(65536))));
            assert!(read.is_none_or(|r| r == data(link.read(65536).1)));
        }
    }
}

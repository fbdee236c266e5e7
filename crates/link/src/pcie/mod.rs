//! PCIe by lanes: what its packets leave of the raw rate, by formula; its ends as state machines; reads and their answers.

pub mod dma;
mod end;
pub mod numbered;
pub mod reads;

use crate::lanes::Ratio;

pub use end::{
    Body, Content, End, Packet, Parameters, COMPLETIONS, DATA_CREDIT, LINK_PACKET, NON_POSTED,
    POSTED,
};

/// Bytes of a write or of a read request beside its data: link and framing 8, common header 4, 64-bit address 12.
pub const REQUEST: u64 = 24;
/// Bytes of a completion beside its data: link and framing 8, common header 4, completion header 8.
pub const COMPLETION: u64 = 20;

/// A link of generation 3 to 5, with 128 of 130 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcie {
    /// Lanes.
    pub lanes: u32,
    /// Transfers per second and lane, in thousands of millions: 8, 16 or 32.
    pub giga_transfers: u32,
    /// Most bytes of data in a write or a completion.
    pub payload: u64,
    /// Most bytes that one read asks for.
    pub request: u64,
    /// Bytes of packets for each acknowledgement, and for each update of credits, of 8 bytes.
    pub limit: u64,
}

impl Pcie {
    /// Bytes per second before packets of the link layer.
    pub fn raw(&self) -> Ratio {
        let bits = u128::from(self.lanes) * u128::from(self.giga_transfers) * 1_000_000_000;
        Ratio::new(bits * 128, 130 * 8)
    }

    /// Bytes per second that are left for packets: without acknowledgements, credits, and 4 of 1538 bytes for skips.
    pub fn packets(&self) -> Ratio {
        let limit = u128::from(self.limit);
        let (over, under) = (1538 * limit - 16 * 1538 - 4 * limit, 1538 * limit);
        self.raw().times(over, under)
    }

    /// Bytes on the way out that a write of `bytes` takes.
    pub fn write(&self, bytes: u64) -> u64 {
        bytes + REQUEST * bytes.div_ceil(self.payload)
    }

    /// Bytes on the way out, and on the way back, that a read of `bytes` takes.
    pub fn read(&self, bytes: u64) -> (u64, u64) {
        (
            REQUEST * bytes.div_ceil(self.request),
            bytes + COMPLETION * bytes.div_ceil(self.payload),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_follows() {
        // Lanes, rate, limit; Gb/s for packets; GB/s of data in large writes and reads, in tenths and hundredths.
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
            let left = link.packets().value();
            assert_eq!((left * 8.0 / 1e8).round() as u64, packets);
            let data = |wire: u64| (left * 65536.0 / wire as f64 / 1e7).round() as u64;
            assert!(write.is_none_or(|w| w == data(link.write(65536))));
            assert!(read.is_none_or(|r| r == data(link.read(65536).1)));
        }
    }
}

//! Parameters of memories.

use crate::jedec::JedecDram;
use cohkit_units::Quantity;

/// DRAM with few parameters and without a scheduler. Operations of a bank begin in the order of their
/// arrival.
#[derive(Clone, Debug)]
pub struct Dram {
    /// Number of channels. A line belongs to channel (line mod channels).
    pub channels: Quantity,
    /// Number of banks per channel, a power of two.
    pub banks: Quantity,
    /// Size of a row, all devices of a channel together, in bytes, a power of two.
    pub row_bytes: Quantity,
    /// Bandwidth of one channel, bytes per second.
    pub bandwidth: Quantity,
    /// Column access time, picoseconds.
    pub t_cl: Quantity,
    /// Row activation time, picoseconds.
    pub t_rcd: Quantity,
    /// Row precharge time, picoseconds.
    pub t_rp: Quantity,
    /// Time after its last use at which an idle row closes, in picoseconds.
    pub row_idle_timeout: Quantity,
    /// Latency of controller and wires, both directions together, in picoseconds.
    pub controller_latency: Quantity,
}

/// On-chip memory.
#[derive(Clone, Debug)]
pub struct Bram {
    /// Number of independent ports. A line belongs to port (line mod ports).
    pub ports: Quantity,
    /// Bandwidth of one port, bytes per second.
    pub bandwidth: Quantity,
    /// Latency from a read's start to its data, in picoseconds.
    pub latency: Quantity,
}

/// Parameters of a memory.
#[derive(Clone, Debug)]
pub enum Memory {
    /// DRAM, with banks and open rows.
    Dram(Box<Dram>),
    /// DRAM with the timing of a JEDEC standard and a scheduler.
    Jedec(Box<JedecDram>),
    /// On-chip.
    Bram(Bram),
}

//! Memory without a scheduler: DRAM with channels, banks and open rows, or BRAM with ports. The operations of a bank or
//! port begin in the order of their arrival, so the end of each is known at once.
//!
//! Each operation reads or writes one line or a part of it. Reads and writes take the same time. All times are in
//! picoseconds.

use crate::parameters::{Dram, Memory};
use crate::Line;
use cohkit_units::{Quantity, Time};
use std::ops::Range;

/// A memory whose operations are served in the order of their arrival.
pub struct InOrderMemory {
    /// Type of memory, with the state of its resources.
    kind: Kind,
    /// Number of operations that found their row open; 0 for BRAM.
    pub row_hits: u64,
    /// Number of operations that had to open a row; 0 for BRAM.
    pub row_misses: u64,
}

/// Type of memory, with its timing and state.
enum Kind {
    /// DRAM, with its channels by number.
    Dram(Timing, Vec<Channel>),
    /// On-chip memory. A line belongs to port (line mod ports).
    Bram {
        /// Minimum time of an operation, in picoseconds.
        latency: Time,
        /// Time for which a whole line occupies its port, in picoseconds.
        line_time: Time,
        /// Bandwidth of one port.
        bandwidth: Quantity,
        /// Time from which each port is free, in picoseconds.
        ports: Vec<Time>,
    },
}

/// Bytes of a DRAM's smallest burst: eight beats of the eight bytes of a channel, as in DDR4.
const BURST: u32 = 64;

/// Quantities of a DRAM, precomputed. Numbers of banks and lines per row are powers of two, and kept as
/// their binary logarithms. Times are in picoseconds.
struct Timing {
    /// Logarithm of the number of channels.
    channel_bits: u32,
    /// Logarithm of the number of banks per channel.
    bank_bits: u32,
    /// Logarithm of the number of lines per row.
    row_bits: u32,
    /// Column access time (tCL).
    column: Time,
    /// Row activation time (tRCD).
    activate: Time,
    /// Row precharge time (tRP).
    precharge: Time,
    /// Time after its last use at which an idle row closes.
    open_for: Time,
    /// Data-bus time of one line.
    line_time: Time,
    /// Data-bus time of one burst, or of a line shorter than a burst.
    burst_time: Time,
    /// Latency of controller and wires: request path, response path.
    controller_latency: (Time, Time),
}

impl Timing {
    /// Precomputes the quantities for lines of `line_bytes` bytes.
    fn new(dram: &Dram, line_bytes: u32) -> Timing {
        let bits = |value: u64| value.max(1).trailing_zeros();
        let controller = dram.controller_latency.value;
        Timing {
            channel_bits: bits(dram.channels.value),
            bank_bits: bits(dram.banks.value),
            row_bits: bits(dram.row_bytes.value / u64::from(line_bytes)),
            column: dram.t_cl.value,
            activate: dram.t_rcd.value,
            precharge: dram.t_rp.value,
            open_for: dram.row_idle_timeout.value,
            line_time: dram.bandwidth.time_of(line_bytes),
            burst_time: dram.bandwidth.time_of(BURST.min(line_bytes)),
            controller_latency: (controller / 2, controller - controller / 2),
        }
    }
}

/// Location of a line in a DRAM.
struct Location {
    /// Channel number.
    channel: usize,
    /// Bank number within the channel.
    bank: usize,
    /// Row number within the bank.
    row: u32,
}

impl Timing {
    /// Returns the channel, bank and row of a line.
    #[inline(always)]
    fn locate(&self, line: Line, channels: &[Channel]) -> Location {
        let (channel, place) = match channels.len().is_power_of_two() {
            true => (
                line as usize & (channels.len() - 1),
                line >> self.channel_bits,
            ),
            false => {
                let count = channels.len() as u32;
                ((line % count) as usize, line / count)
            }
        };
        // Adjacent rows of the address space are in different banks. All upper bits are mixed in, so that no
        // power-of-two stride stays in one bank.
        let chunk = place >> self.row_bits;
        let row = chunk >> self.bank_bits;
        let folded = row ^ (row >> 4) ^ (row >> 8) ^ (row >> 12) ^ (row >> 16);
        Location {
            channel,
            bank: (chunk ^ folded) as usize & (channels[channel].banks.len() - 1),
            row,
        }
    }

    /// Operates a bank, and a data bus that is free from `bus_free_at` on, for `burst` picoseconds. Updates both.
    /// Returns true if the row was open, and the time at which the operation ends.
    #[inline(always)]
    fn operate(
        &self,
        now: Time,
        row: u32,
        bank: &mut Bank,
        bus_free_at: &mut Time,
        burst: Time,
    ) -> (bool, Time) {
        let mut ready = bank.ready.max(now + self.controller_latency.0);
        let closes = bank.ready + self.open_for;
        let hit = bank.row == row && ready <= closes;
        if !hit {
            if bank.row != CLOSED && ready <= closes {
                ready += self.precharge;
            } else if bank.row != CLOSED {
                ready = ready.max(closes + self.precharge);
            }
            ready += self.activate;
            bank.row = row;
        }
        let start = (ready + self.column).max(*bus_free_at);
        *bus_free_at = start + burst;
        // The next column command may be issued while this line is still being transferred.
        bank.ready = (start + burst).saturating_sub(self.column);
        (hit, *bus_free_at + self.controller_latency.1)
    }
}

/// Channel of a DRAM: its data bus and its banks.
struct Channel {
    /// Time from which the data bus is free.
    free_at: Time,
    /// Banks by number.
    banks: Vec<Bank>,
}

/// Bank of a DRAM, with at most one open row.
#[derive(Clone, Copy)]
struct Bank {
    /// Time from which the bank accepts its next column command.
    ready: Time,
    /// Row used last, or [`CLOSED`]. It is closed once it has been idle for `Timing::open_for`.
    row: u32,
}

/// Row of a bank that was never used.
const CLOSED: u32 = u32::MAX;

impl InOrderMemory {
    /// Creates an idle memory with all rows closed. An operation on a whole line transfers `line_bytes`.
    ///
    /// # Panics
    /// The memory is a DRAM with a scheduler: a [`Controller`](crate::Controller) serves its operations.
    pub fn new(memory: &Memory, line_bytes: u32) -> InOrderMemory {
        let kind = match memory {
            Memory::Dram(dram) => {
                let banks = vec![
                    Bank {
                        ready: 0,
                        row: CLOSED
                    };
                    dram.banks.value.max(1) as usize
                ];
                let channels = (0..dram.channels.value.max(1)).map(|_| Channel {
                    free_at: 0,
                    banks: banks.clone(),
                });
                Kind::Dram(Timing::new(dram, line_bytes), channels.collect())
            }
            Memory::Jedec(_) => unreachable!("a DRAM with a scheduler has a controller"),
            Memory::Bram(bram) => Kind::Bram {
                latency: bram.latency.value,
                line_time: bram.bandwidth.time_of(line_bytes),
                bandwidth: bram.bandwidth.clone(),
                ports: vec![0; bram.ports.value.max(1) as usize],
            },
        };
        InOrderMemory {
            kind,
            row_hits: 0,
            row_misses: 0,
        }
    }

    /// Starts an operation on a whole line at `now`. Returns the time at which it ends, in picoseconds.
    #[inline(always)]
    pub fn operate(&mut self, now: Time, line: Line) -> Time {
        match &mut self.kind {
            Kind::Bram {
                latency,
                line_time,
                ports,
                ..
            } => {
                let count = ports.len();
                let port = &mut ports[line as usize % count];
                let start = now.max(*port);
                *port = start + *line_time;
                start + (*line_time).max(*latency)
            }
            Kind::Dram(timing, channels) => {
                let location = timing.locate(line, channels);
                let channel = &mut channels[location.channel];
                let bank = &mut channel.banks[location.bank];
                let (hit, end) = timing.operate(
                    now,
                    location.row,
                    bank,
                    &mut channel.free_at,
                    timing.line_time,
                );
                self.row_hits += u64::from(hit);
                self.row_misses += u64::from(!hit);
                end
            }
        }
    }

    /// Starts an operation on a range of bytes of a line at `now`. Returns the time at which it ends, in
    /// picoseconds. A DRAM transfers the whole bursts that contain the bytes. The operation takes at most as long
    /// as that of the whole line.
    #[inline]
    pub fn operate_on(&mut self, now: Time, line: Line, bytes: Range<u32>) -> Time {
        match &mut self.kind {
            Kind::Bram {
                latency,
                line_time,
                bandwidth,
                ports,
            } => {
                let count = ports.len();
                let port = &mut ports[line as usize % count];
                let duration = bandwidth.time_of(bytes.len() as u32).min(*line_time);
                let start = now.max(*port);
                *port = start + duration;
                start + duration.max(*latency)
            }
            Kind::Dram(timing, channels) => {
                let location = timing.locate(line, channels);
                let channel = &mut channels[location.channel];
                let bank = &mut channel.banks[location.bank];
                let bursts = u64::from(bytes.end.div_ceil(BURST) - bytes.start / BURST);
                let duration = (bursts * timing.burst_time).min(timing.line_time);
                let (hit, end) =
                    timing.operate(now, location.row, bank, &mut channel.free_at, duration);
                self.row_hits += u64::from(hit);
                self.row_misses += u64::from(!hit);
                end
            }
        }
    }

    /// Number of the memory's resources of one kind, `"bus"`, `"bank"` or `"port"`; 0 if the memory has no such
    /// resource.
    pub fn count(&self, resource: &str) -> usize {
        match (&self.kind, resource) {
            (Kind::Bram { ports, .. }, "port") => ports.len(),
            (Kind::Dram(_, channels), "bus") => channels.len(),
            (Kind::Dram(_, channels), "bank") => {
                channels.iter().map(|channel| channel.banks.len()).sum()
            }
            _ => 0,
        }
    }

    /// Returns the times that an operation on a whole line at `now` would have on an otherwise idle memory with the
    /// current open rows. The memory is unchanged.
    #[inline]
    pub fn uncontended_operation(&self, now: Time, line: Line) -> UncontendedOp {
        match &self.kind {
            Kind::Bram {
                latency,
                line_time,
                ports,
                ..
            } => UncontendedOp {
                end: now + (*line_time).max(*latency),
                uses: [("port", line as usize % ports.len(), *line_time); 2],
                uses_both: false,
            },
            Kind::Dram(timing, channels) => {
                let location = timing.locate(line, channels);
                let mut bank = channels[location.channel].banks[location.bank];
                let start = now + timing.controller_latency.0;
                bank.ready = bank.ready.min(start);
                let (_, end) =
                    timing.operate(now, location.row, &mut bank, &mut 0, timing.line_time);
                let number =
                    location.channel * channels[location.channel].banks.len() + location.bank;
                UncontendedOp {
                    end,
                    uses: [
                        ("bus", location.channel, timing.line_time),
                        ("bank", number, bank.ready - start),
                    ],
                    uses_both: true,
                }
            }
        }
    }
}

/// An operation on an otherwise idle memory.
pub struct UncontendedOp {
    /// Time at which it ends, in picoseconds.
    pub end: Time,
    /// Resources in use, see `UncontendedOp::uses`. Both entries are equal for BRAM.
    uses: [(&'static str, usize, Time); 2],
    /// True for DRAM, whose operations use a bus and a bank.
    uses_both: bool,
}

impl UncontendedOp {
    /// Returns the resources that the operation uses: kind (`"bus"`, `"bank"` or `"port"`), index among those of
    /// this kind in the memory, and duration in picoseconds.
    #[inline]
    pub fn uses(&self) -> &[(&'static str, usize, Time)] {
        match self.uses_both {
            true => &self.uses,
            false => &self.uses[..1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two channels of DDR4-2666. Times are in picoseconds.
    fn ddr4() -> Dram {
        let given = |value| Quantity::given(value, "a test");
        Dram {
            channels: given(2),
            banks: given(16),
            row_bytes: given(8 << 10),
            bandwidth: given(21_328_000_000),
            t_cl: given(14_160),
            t_rcd: given(14_160),
            t_rp: given(14_160),
            row_idle_timeout: given(200_000),
            controller_latency: given(40_000),
        }
    }

    /// Part of a line takes the bursts that contain it. An update reads and writes these in sequence.
    #[test]
    fn words_take_whole_bursts() {
        let dram = ddr4();
        let idle_memory = || InOrderMemory::new(&Memory::Dram(Box::new(ddr4())), 128);
        let open_latency = dram.controller_latency.value + dram.t_rcd.value + dram.t_cl.value;
        let burst = dram.bandwidth.time_of(64);
        let mut memory = idle_memory();
        assert_eq!(memory.operate_on(0, 0, 56..64), open_latency + burst);
        let write = memory.operate_on(0, 0, 56..64);
        assert_eq!(write, open_latency + 2 * burst);
        let both_bursts = idle_memory().operate_on(0, 0, 56..72);
        assert_eq!(both_bursts, open_latency + dram.bandwidth.time_of(128));
        assert_eq!(idle_memory().operate(0, 0), both_bursts);
    }

    /// Lines of one row, then another row of the same bank, then an access after a long pause.
    #[test]
    fn rows_open_stay_open_and_close() {
        let dram = ddr4();
        let mut memory = InOrderMemory::new(&Memory::Dram(Box::new(ddr4())), 128);
        let (column, activate) = (dram.t_cl.value, dram.t_rcd.value);
        let fixed = dram.controller_latency.value + dram.bandwidth.time_of(128);
        assert_eq!(memory.operate(0, 0), fixed + activate + column);
        let now = fixed + activate + column;
        assert_eq!(memory.operate(now, 2), now + fixed + column);
        let later = now + 10 * dram.row_idle_timeout.value;
        let closed = memory.operate(later, 4);
        assert_eq!(closed, later + fixed + activate + column);
        assert_eq!((memory.row_hits, memory.row_misses), (1, 2));
    }
}

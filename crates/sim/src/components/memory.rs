//! Memory timing: DRAM with channels, banks and open rows, or BRAM.

use crate::kernel::Time;
use crate::message::Line;
use crate::platform::{self, Dram};
use cohkit_units::Quantity;
use std::ops::Range;

/// A memory behind a home.
pub struct Memory {
    kind: Kind,
    /// Operations that found their row open.
    pub row_hits: u64,
    /// Operations that had to open a row.
    pub row_misses: u64,
}

enum Kind {
    Dram(Timing, Vec<Channel>),
    Bram {
        latency: Time,
        line_time: Time,
        bandwidth: Quantity,
        ports: Vec<Time>,
    },
}

/// Bytes of a DRAM's smallest burst: eight beats of the eight bytes of a channel, as in DDR4.
const BURST: u32 = 64;

/// Quantities of a DRAM, precomputed. Numbers of banks and lines per row are powers of two.
struct Timing {
    channel_bits: u32,
    bank_bits: u32,
    row_bits: u32,
    column: Time,
    activate: Time,
    precharge: Time,
    open_for: Time,
    /// Data-bus time of one line, and of one burst.
    line_time: Time,
    burst_time: Time,
    /// Latency of controller and wires: request path, response path.
    controller_latency: (Time, Time),
}

impl Timing {
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
    channel: usize,
    bank: usize,
    row: u32,
}

impl Timing {
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

    /// Operates a bank, and a data bus that is free from `bus_free_at` on, for `burst`. Returns true if the row was
    /// open, and the end of the operation.
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

struct Channel {
    /// Time from which the data bus is free.
    free_at: Time,
    banks: Vec<Bank>,
}

#[derive(Clone, Copy)]
struct Bank {
    /// Time from which the bank accepts its next column command.
    ready: Time,
    row: u32,
}

const CLOSED: u32 = u32::MAX;

impl Memory {
    /// Creates an idle memory with all rows closed. One operation transfers `line_bytes`.
    pub fn new(memory: &platform::Memory, line_bytes: u32) -> Memory {
        let kind = match memory {
            platform::Memory::Dram(dram) => {
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
            platform::Memory::Jedec(_) => unreachable!("a DRAM with a scheduler has a controller"),
            platform::Memory::Bram(bram) => Kind::Bram {
                latency: bram.latency.value,
                line_time: bram.bandwidth.time_of(line_bytes),
                bandwidth: bram.bandwidth.clone(),
                ports: vec![0; bram.ports.value.max(1) as usize],
            },
        };
        Memory {
            kind,
            row_hits: 0,
            row_misses: 0,
        }
    }

    /// Starts an operation on a line now. Returns when it ends.
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

    /// Starts an operation on some bytes of a line now. Returns when it ends. A DRAM transfers the whole bursts that
    /// contain them.
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

    /// Number of the memory's buses, banks or ports.
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

    /// Returns the same operation on an otherwise idle memory with the current open rows.
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
    /// Time at which it ends.
    pub end: Time,
    uses: [(&'static str, usize, Time); 2],
    uses_both: bool,
}

impl UncontendedOp {
    /// Returns the resources that the operation uses: kind, index and duration.
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
    use crate::platform::Platform;

    /// Part of a line takes the bursts that contain it. An update reads and writes these in sequence.
    #[test]
    fn words_take_whole_bursts() {
        let platform = Platform::shipped("peers-device-memory").unwrap();
        let platform::Memory::Dram(dram) = &platform.memory else {
            panic!("it is DRAM")
        };
        let open_latency = dram.controller_latency.value + dram.t_rcd.value + dram.t_cl.value;
        let burst = dram.bandwidth.time_of(64);
        let mut memory = Memory::new(&platform.memory, 128);
        assert_eq!(memory.operate_on(0, 0, 56..64), open_latency + burst);
        let write = memory.operate_on(0, 0, 56..64);
        assert_eq!(write, open_latency + 2 * burst);
        let mut memory = Memory::new(&platform.memory, 128);
        let both_bursts = memory.operate_on(0, 0, 56..72);
        assert_eq!(both_bursts, open_latency + dram.bandwidth.time_of(128));
        assert_eq!(
            Memory::new(&platform.memory, 128).operate(0, 0),
            both_bursts
        );
    }

    /// Lines of one row, then another row of the same bank, then an access after a long pause.
    #[test]
    fn rows_open_stay_open_and_close() {
        let platform = Platform::shipped("peers-device-memory").unwrap();
        let platform::Memory::Dram(dram) = &platform.memory else {
            panic!("it is DRAM")
        };
        let mut memory = Memory::new(&platform.memory, 128);
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

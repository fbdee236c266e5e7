//! When a memory answers: DRAM with channels, banks and open rows, or BRAM.

use crate::kernel::Time;
use crate::message::Line;
use crate::platform::{self, Dram};

/// A memory behind a home.
pub struct Memory {
    kind: Kind,
    /// Operations that found their row open, and those that had to open one.
    pub row_hits: u64,
    /// See [`Memory::row_hits`].
    pub row_misses: u64,
}

enum Kind {
    Dram(Timing, Vec<Channel>),
    Bram {
        latency: Time,
        per_line: Time,
        ports: Vec<Time>,
    },
}

/// A DRAM's quantities, ready for use. Numbers of channels, banks and lines per row are powers of two.
struct Timing {
    channel_bits: u32,
    bank_bits: u32,
    row_bits: u32,
    column: Time,
    activate: Time,
    precharge: Time,
    open_for: Time,
    /// Of one line on the data bus.
    burst: Time,
    /// Controller and wires, there and back.
    way: (Time, Time),
}

impl Timing {
    fn new(dram: &Dram, line_bytes: u32) -> Timing {
        let bits = |value: u64| value.max(1).trailing_zeros();
        let controller = dram.controller.value;
        Timing {
            channel_bits: bits(dram.channels.value),
            bank_bits: bits(dram.banks.value),
            row_bits: bits(dram.row_bytes.value / u64::from(line_bytes)),
            column: dram.column.value,
            activate: dram.activate.value,
            precharge: dram.precharge.value,
            open_for: dram.open_for.value,
            burst: dram.bandwidth.time_of(line_bytes),
            way: (controller / 2, controller - controller / 2),
        }
    }
}

struct Channel {
    /// When the data bus is free.
    free: Time,
    banks: Vec<Bank>,
}

#[derive(Clone, Copy)]
struct Bank {
    /// When the bank takes its next column command.
    ready: Time,
    row: u32,
}

const CLOSED: u32 = u32::MAX;

impl Memory {
    /// An idle memory, all rows closed. `line_bytes` is what one operation moves.
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
                    free: 0,
                    banks: banks.clone(),
                });
                Kind::Dram(Timing::new(dram, line_bytes), channels.collect())
            }
            platform::Memory::Bram(bram) => Kind::Bram {
                latency: bram.latency.value,
                per_line: bram.bandwidth.time_of(line_bytes),
                ports: vec![0; bram.ports.value.max(1) as usize],
            },
        };
        Memory {
            kind,
            row_hits: 0,
            row_misses: 0,
        }
    }

    /// Begins an operation on a line now; the result is when it ends.
    #[inline(always)]
    pub fn operate(&mut self, now: Time, line: Line) -> Time {
        match &mut self.kind {
            Kind::Bram {
                latency,
                per_line,
                ports,
            } => {
                let count = ports.len();
                let port = &mut ports[line as usize % count];
                let start = now.max(*port);
                *port = start + *per_line;
                start + (*per_line).max(*latency)
            }
            Kind::Dram(timing, channels) => {
                let count = channels.len();
                let channel = &mut channels[line as usize & (count - 1)];
                // Neighbouring rows of the address space lie in different banks; all upper bits
                // are mixed in, so that no power of two as a stride stays in one bank.
                let chunk = line >> timing.channel_bits >> timing.row_bits;
                let row = chunk >> timing.bank_bits;
                let folded = row ^ (row >> 4) ^ (row >> 8) ^ (row >> 12) ^ (row >> 16);
                let banks = channel.banks.len();
                let bank = &mut channel.banks[(chunk ^ folded) as usize & (banks - 1)];
                let mut ready = bank.ready.max(now + timing.way.0);
                let closes = bank.ready + timing.open_for;
                if bank.row == row && ready <= closes {
                    self.row_hits += 1;
                } else {
                    self.row_misses += 1;
                    if bank.row != CLOSED && ready <= closes {
                        ready += timing.precharge;
                    } else if bank.row != CLOSED {
                        ready = ready.max(closes + timing.precharge);
                    }
                    ready += timing.activate;
                    bank.row = row;
                }
                let start = (ready + timing.column).max(channel.free);
                channel.free = start + timing.burst;
                // The next column command may go out while this line is still on its way.
                bank.ready = start + timing.burst - timing.column;
                channel.free + timing.way.1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    /// Lines of one row of one bank, then another row of the bank, then after a long pause.
    #[test]
    fn rows_open_stay_open_and_close() {
        let platform = Platform::shipped("enzian-dc-ddr").unwrap();
        let platform::Memory::Dram(dram) = &platform.memory else {
            panic!("it is DRAM")
        };
        let mut memory = Memory::new(&platform.memory, 128);
        let (column, activate) = (dram.column.value, dram.activate.value);
        let fixed = dram.controller.value + dram.bandwidth.time_of(128);
        assert_eq!(memory.operate(0, 0), fixed + activate + column);
        let now = fixed + activate + column;
        assert_eq!(memory.operate(now, 2), now + fixed + column);
        let later = now + 10 * dram.open_for.value;
        let closed = memory.operate(later, 4);
        assert_eq!(closed, later + fixed + activate + column);
        assert_eq!((memory.row_hits, memory.row_misses), (1, 2));
    }
}

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
    Dram(Box<Dram>, Vec<Channel>),
    Bram {
        latency: Time,
        per_line: Time,
        ports: Vec<Time>,
    },
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
                Kind::Dram(dram.clone(), channels.collect())
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
    pub fn operate(&mut self, now: Time, line: Line, line_bytes: u32) -> Time {
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
            Kind::Dram(dram, channels) => {
                let count = channels.len() as u32;
                let channel = &mut channels[(line % count) as usize];
                let lines_per_row = (dram.row_bytes.value as u32 / line_bytes).max(1);
                let chunk = line / count / lines_per_row;
                let banks = channel.banks.len() as u32;
                // Neighbouring rows of the address space lie in different banks; all upper bits
                // are mixed in, so that no power of two as a stride stays in one bank.
                let row = chunk / banks;
                let folded = row ^ (row >> 4) ^ (row >> 8) ^ (row >> 12) ^ (row >> 16);
                let bank = &mut channel.banks[((chunk ^ folded) % banks) as usize];
                let mut ready = bank.ready.max(now + dram.controller.value / 2);
                if bank.row == row {
                    self.row_hits += 1;
                } else {
                    self.row_misses += 1;
                    if bank.row != CLOSED {
                        ready += dram.precharge.value;
                    }
                    ready += dram.activate.value;
                    bank.row = row;
                }
                let burst = dram.bandwidth.time_of(line_bytes);
                let start = (ready + dram.column.value).max(channel.free);
                channel.free = start + burst;
                bank.ready = start + burst - dram.column.value.min(start);
                start + burst + dram.controller.value - dram.controller.value / 2
            }
        }
    }
}

//! Long stalls of single ports, in every run. A unit that frees a place too soon uses the place again during a stall.

use super::{RandomGenerator, Run, CIRCUITS, SLICES};

/// The port of memory's write data, after those of the circuits to the remote.
pub(super) const MEMORY: usize = CIRCUITS;
const PORTS: usize = CIRCUITS + 1;

/// Mean number of beats between two stalls, and the bounds of a stall's length, in cycles.
const BEATS: u64 = 32;
const SHORTEST: u64 = 20;
const LONGEST: u64 = 64;

/// The stalled ports of both slices.
pub(super) struct Stalls {
    chance: RandomGenerator,
    /// Measurements run without stalls.
    none: bool,
    /// The cycle in which each port is ready again.
    until: [[u64; PORTS]; SLICES],
}

impl Stalls {
    /// Returns the stalls of a run. Their random numbers are their own, so other draws stay the same.
    pub(super) fn new(run: &Run) -> Stalls {
        Stalls {
            chance: RandomGenerator::new(run.seed ^ 0x2545_f491),
            none: run.exact,
            until: [[0; PORTS]; SLICES],
        }
    }

    /// Returns the ports that are stalled in this cycle, one bit per port.
    pub(super) fn stalled(&self, slice: usize, cycle: u64) -> u64 {
        let ports = self.until[slice].iter().enumerate();
        ports
            .map(|(port, &until)| u64::from(cycle < until) << port)
            .sum()
    }

    /// Notes that a port has taken a beat, and may begin a stall: between messages or between two beats of a line.
    pub(super) fn taken(&mut self, slice: usize, port: usize, cycle: u64) {
        if !self.none && self.chance.below(BEATS) == 0 {
            let cycles = SHORTEST + self.chance.below(LONGEST - SHORTEST + 1);
            self.until[slice][port] = cycle + cycles;
        }
    }
}

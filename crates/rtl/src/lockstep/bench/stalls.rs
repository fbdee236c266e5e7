//! Long stalls of single ports, in every run. They reveal an entry that a unit frees too early: the unit reuses the
//! entry during the stall.

use super::run::Run;
use crate::lockstep::model::{CIRCUITS, SLICES};
use crate::lockstep::random::RandomGenerator;

/// Index of the port for memory's write data, after those of the circuits to the remote.
pub(super) const MEMORY: usize = CIRCUITS;
/// Number of ports of a slice that may stall.
const PORTS: usize = CIRCUITS + 1;

/// Mean number of beats between two stalls of a port.
const BEATS: u64 = 32;
/// Minimum length of a stall, in cycles.
const MIN_STALL_CYCLES: u64 = 20;
/// Maximum length of a stall, in cycles.
const MAX_STALL_CYCLES: u64 = 64;

/// The stalled ports of both slices.
pub(super) struct Stalls {
    /// Random numbers of the stalls alone.
    random: RandomGenerator,
    /// True for measurements, which have no stalls.
    is_disabled: bool,
    /// The cycle in which each port is ready again.
    ready_cycle: [[u64; PORTS]; SLICES],
}

impl Stalls {
    /// Creates the stalls of a run. They have a generator of their own, so that they do not change other random draws.
    pub(super) fn new(run: &Run) -> Stalls {
        Stalls {
            random: RandomGenerator::new(run.seed ^ 0x2545_f491),
            is_disabled: run.has_fixed_latency,
            ready_cycle: [[0; PORTS]; SLICES],
        }
    }

    /// Returns the ports that are stalled in this cycle, one bit per port.
    pub(super) fn stalled(&self, slice: usize, cycle: u64) -> u64 {
        let ports = self.ready_cycle[slice].iter().enumerate();
        ports
            .map(|(port, &ready_cycle)| u64::from(cycle < ready_cycle) << port)
            .sum()
    }

    /// Records that a beat has passed a port, which may begin a stall, between messages or between two beats of a line.
    pub(super) fn record_beat(&mut self, slice: usize, port: usize, cycle: u64) {
        if !self.is_disabled && self.random.below(BEATS) == 0 {
            let cycles =
                MIN_STALL_CYCLES + self.random.below(MAX_STALL_CYCLES - MIN_STALL_CYCLES + 1);
            self.ready_cycle[slice][port] = cycle + cycles;
        }
    }
}

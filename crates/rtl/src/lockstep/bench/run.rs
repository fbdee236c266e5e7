//! Parameters and results of a run.

use crate::lockstep::random::RandomGenerator;

/// Numbering of lines, which determines their units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Consecutive lines, distributed over all units in turn.
    Spread,
    /// Lines that belong to one unit.
    OneUnit,
    /// Random lines of the home's whole range.
    Anywhere,
}

/// Distance in rows between the first directed targets of two consecutive seeds.
const TARGET_DISTANCE: u64 = 16;

/// Parameters of a run. All random behaviour is derived from the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Seed of all random behaviour.
    pub seed: u64,
    /// Number of messages after which no new access starts.
    pub messages: u64,
    /// Number of lines.
    pub lines: usize,
    /// Selection of the lines.
    pub pattern: Pattern,
    /// Maximum memory latency, in cycles.
    pub max_memory_latency: u64,
    /// Maximum latency of most messages, in cycles; without `has_fixed_latency`, one message in eight may take up to
    /// six times as long.
    pub max_message_latency: u64,
    /// Number of cycles, of every 16, in which each port is ready.
    pub ready_rate: u64,
    /// Number of cycles, of every 16, in which the device starts an operation.
    pub operation_rate: u64,
    /// First target row of directed lines, counted from the last row of the ROM; the preceding rows follow. Requires
    /// [`crate::lockstep::setup::Setup::graph`].
    pub first_target: usize,
    /// Number of cycles, of every 256, in which each free port receives illegal traffic that the home must refuse or
    /// drop. Not used with an endpoint.
    pub illegal_rate: u64,
    /// True if memory and messages always take their maximum latency, and memory answers in order: for measurements.
    pub has_fixed_latency: bool,
}

impl Run {
    /// Creates a run with the given number of messages; the seed determines its other parameters too.
    pub fn new(seed: u64, messages: u64) -> Run {
        // An arbitrary constant, so that these draws are independent of the run's other generators, which use the same
        // seed.
        let mut random = RandomGenerator::new(seed ^ 0x9e37_79b9);
        let patterns = [
            Pattern::Spread,
            Pattern::Spread,
            Pattern::OneUnit,
            Pattern::Anywhere,
        ];
        // Repeated values have a higher probability. Extreme values are included on purpose: a single line, more lines
        // than the directory holds, memory that responds in the next cycle, and ports that are rarely ready.
        Run {
            seed,
            messages,
            lines: [1, 2, 3, 6, 12, 24, 32, 32, 64, 256, 4096][random.below(11) as usize],
            pattern: patterns[random.below(4) as usize],
            max_memory_latency: [1, 4, 30, 100, 100, 1000][random.below(6) as usize],
            max_message_latency: [1, 10, 60, 60, 400][random.below(5) as usize],
            ready_rate: [16, 16, 12, 4][random.below(4) as usize],
            operation_rate: [0, 1, 2, 4, 8][random.below(5) as usize],
            first_target: seed.wrapping_mul(TARGET_DISTANCE) as usize,
            // Drawn last, so that seeds without illegal traffic behave as they did before it was introduced.
            illegal_rate: [0, 0, 0, 0, 0, 1, 8, 64][random.below(8) as usize],
            has_fixed_latency: false,
        }
    }

    /// Creates a short run of few lines that is directed from its start to a row, counted from the last of
    /// [`crate::lockstep::reachability::ReachabilityGraph::rows`].
    pub fn directed_run(first_target: usize, seed: u64) -> Run {
        let mut random = RandomGenerator::new(seed ^ 0x517c_c1b7);
        Run {
            seed,
            messages: 200,
            lines: 1 + random.below(3) as usize,
            pattern: [Pattern::Spread, Pattern::OneUnit][random.below(2) as usize],
            max_memory_latency: 4,
            max_message_latency: 4,
            ready_rate: 16,
            operation_rate: 1,
            first_target,
            illegal_rate: 0,
            has_fixed_latency: false,
        }
    }
}

/// Results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Messages that entered or left the home.
    pub messages: u64,
    /// Local operations and unlocks that were answered.
    pub answers: u64,
    /// Lines evicted by the directory.
    pub evictions: u64,
    /// Duration in cycles.
    pub cycles: u64,
    /// Illegal messages, operations and unlocks that the home dropped or refused.
    pub illegal_inputs: u64,
    /// For each state and event of the ROM, true if the row was used.
    pub covered: Vec<Vec<bool>>,
    /// Number of stalled events with a unique possible cause.
    pub explained_stalls: u64,
    /// Number of stalled events with several possible causes.
    pub ambiguous_stalls: u64,
    /// Final values of the home's counters, summed over both slices, by position.
    pub counters: Vec<u64>,
}

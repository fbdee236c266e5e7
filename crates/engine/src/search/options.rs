//! Options of a search, its progress, and the reasons to give up.

use super::CheckpointSink;
use crate::compile::MAX_NODES;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Configuration and limits of a search. The default has one thread and no limits.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Number of threads; counts and counterexamples do not depend on it.
    pub threads: usize,
    /// Maximum number of states to store.
    pub max_states: Option<u64>,
    /// Maximum number of steps from a start state.
    pub max_depth: Option<u64>,
    /// Maximum memory for states and their table, in bytes. The small working memory of each thread is not counted, and
    /// states on disk are not.
    pub max_memory: Option<u64>,
    /// True if independent parts are explored separately; see [`crate::components`].
    pub decompose: bool,
    /// True if states that differ only by a permutation of scalarset values are explored once. The search stores one
    /// state of each orbit, and reports numbers of orbits. Models with scalarsets are then not decomposed.
    pub symmetry: bool,
    /// True if only a signature of 64 bits is kept of each expanded state. A state whose signature equals that of
    /// another state is silently omitted; [`omission_bound`] bounds the probability of such omissions.
    /// Violations are as exact as without compaction. Properties that need all states are not judged, and no
    /// checkpoints are written.
    pub hash_compaction: bool,
    /// Engine that fires the rules. All engines give the same report.
    pub engine: Engine,
    /// Maximum size, in nodes, of a rule with separate code for each combination of its parameters' values; a larger
    /// rule has one piece of code for all. Models without undefined values ignore this limit.
    /// The report depends on the limit in one respect: independent parts are recognised only in separate code.
    pub max_nodes: usize,
    /// Flag that another thread sets to stop the search soon.
    pub cancel: Option<&'a AtomicBool>,
    /// Counter of compilation time, in nanoseconds: preparation of the model before the search, and machine code during
    /// it.
    pub compiling: Option<&'a AtomicU64>,
    /// Progress callback, called about ten times a second.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
    /// Storage of checkpoints. The search resumes from a checkpoint, if one is stored. It writes one when one is
    /// due, when the search gives up, and when every state is known.
    /// A resumed search gives the report of an uninterrupted one, on any number of threads.
    /// If a checkpoint already exceeds the limits on states or depth, the search ends with its contents.
    pub checkpoint_sink: Option<&'a dyn CheckpointSink>,
    /// Maximum size of states in memory, in bytes. Earlier states are then read from checkpoints, which are also written
    /// when states leave the memory. Requires a sink, and complete states. The report does not depend on it.
    pub max_resident: Option<u64>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            threads: 1,
            max_states: None,
            max_depth: None,
            max_memory: None,
            decompose: true,
            symmetry: true,
            hash_compaction: false,
            engine: Engine::Adaptive,
            max_nodes: MAX_NODES,
            cancel: None,
            compiling: None,
            progress: None,
            checkpoint_sink: None,
            max_resident: None,
        }
    }
}

impl Options<'_> {
    /// Runs `work` and adds its duration to the compilation time.
    pub(crate) fn compile<T>(&self, work: impl FnOnce() -> T) -> T {
        let start_time = Instant::now();
        let result = work();
        if let Some(compiling) = self.compiling {
            compiling.fetch_add(start_time.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        result
    }
}

/// Engine that fires rules and judges states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The interpreter at first; machine code once the search is large.
    #[default]
    Adaptive,
    /// The interpreter, which starts without delay.
    Interpreter,
    /// Machine code from the start, if the model and the machine allow it.
    Native,
}

/// Progress of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Current activity.
    pub phase: Phase,
    /// States stored.
    pub states: u64,
    /// Rules fired.
    pub transitions: u64,
    /// Steps from a start state to the states being expanded.
    pub depth: u64,
    /// States not expanded yet; in random walks, the remaining steps.
    pub queue: u64,
    /// Estimated number of states still to be expanded, including states not found yet; `None` without a basis for an
    /// estimate.
    /// Exact once all states are known. During exploration, an estimate requires that each of the last three levels
    /// (states at equal distance from the start) was smaller than the one before. It assumes that later levels shrink
    /// at the same average ratio.
    pub ahead: Option<u64>,
    /// Memory of states and table, in bytes.
    pub memory: u64,
    /// States per second since the search began; in random walks, steps per second.
    pub rate: f64,
}

/// Activity of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Exploration of reachable states.
    Explore,
    /// Search for states that cannot drain.
    Drain,
    /// Random walks.
    Walk,
}

/// Reason why a search gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// [`Options::max_states`], or the limit of the store, 2^31.
    MaxStates,
    /// [`Options::max_depth`].
    MaxDepth,
    /// [`Options::max_memory`].
    MaxMemory,
    /// All states were visited, but some properties cannot be judged with [`Options::hash_compaction`].
    HashCompaction,
    /// The requested steps of random walks were taken.
    MaxSteps,
    /// [`Options::cancel`].
    Interrupted,
}

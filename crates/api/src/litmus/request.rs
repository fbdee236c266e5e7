//! Request for a litmus test: cores, memory model, and limits.

use crate::named_value::{named_values, NamedValue};

named_values! {
    /// Cores between threads and caches.
    pub enum CoreModel {
        InOrder = "in-order": "An access begins when the previous one has ended",
        StoreBuffer = "store-buffer":
            "A first-in first-out store buffer, from which loads of the same thread are forwarded",
        Relaxed = "relaxed":
            "A window of outstanding accesses. Those to different locations wait for each other only as the protocol \
             file's `accesses` state; without that block, as acquires, releases and fences require",
    }
}

named_values! {
    /// Memory model.
    pub enum MemoryModel {
        Sc = "sc": "Sequential consistency: one total order of all accesses",
        Tso = "tso": "Total store order: reads may come before earlier writes to other locations",
        Rc = "rc":
            "Release consistency: only the order of fences, acquires, releases and dependences",
        Armv8 = "armv8": "The model of the Armv8 reference manual",
        Riscv = "riscv": "RVWMO, the model of the RISC-V manual",
    }
}

named_values! {
    /// Condition for the outcome `Success`.
    pub enum OutcomeBasis {
        Condition = "condition":
            "Outcomes of which the condition holds: some that satisfy `exists`, none that satisfy `~exists`, all for \
             `forall`",
        File = "file":
            "The expectation of the file (`Result: Never` or the like), or else Never for `~exists` and Always for \
             `forall`. On a protocol, `exists` and Sometimes permit an outcome and do not ask for it",
    }
}

/// Default of [`LitmusRequest::max_spontaneous_evictions`].
pub const DEFAULT_MAX_SPONTANEOUS_EVICTIONS: u8 = 1;

/// Default of [`LitmusRequest::max_states`].
pub const DEFAULT_MAX_STATES: usize = 10_000_000;

/// Options of a test.
#[derive(Clone, Debug)]
pub struct LitmusRequest {
    /// Core model; by default that of the protocol.
    pub cores: Option<CoreModel>,
    /// Memory model to compare outcomes with; by default that of the protocol or of the cores.
    pub model: Option<MemoryModel>,
    /// Maximum number of spontaneous evictions and downgrades in one run, of all caches together.
    pub max_spontaneous_evictions: u8,
    /// Maximum number of states.
    pub max_states: usize,
    /// True to include the shortest path to the deciding outcome.
    pub chart: bool,
    /// First seed and number of runs in the simulator; `None` explores every order of events.
    pub simulate: Option<(u64, u64)>,
    /// Basis of the outcome besides violations.
    pub basis: OutcomeBasis,
}

//! Options of `cohkit check`.

use super::{example, Output};
use clap::{Args, ValueEnum};
use cohkit_api::size;
use cohkit_api::starvation::Fairness;
use cohkit_protocol::protocol::System;
use std::path::PathBuf;

/// Explores every reachable state of the systems of a protocol file, or of a Murphi model.
///
/// Properties: single writer (write permission excludes all other permissions), data value (reads return the last
/// write performed), every store is performed once, program order of accesses of one cache to one line, atomicity (no
/// store between the read and the write of an atomic access), every arriving message is expected, no deadlock, every
/// request can complete, progress (every access and local operation can be performed), and the invariants of the
/// file. With `guarantee none`, single writer, data value and program order are not checked. A home that is written
/// as a policy is constructed first, and a fault of the construction is reported like a violation. A counterexample has
/// a shortest path and is drawn as a message sequence chart; a dot marks a step that the home does not observe.
///
/// Files that end in `.m` are Murphi models, in the dialect of CMurphi or Rumur. Their properties are invariants,
/// assertions, covers, liveness, defined operations and the absence of deadlock. A counterexample lists the rules of
/// the path with their changes, and draws recognised messages.
///
/// `--sweep NAME=VALUES` runs the check at every value of an option or quantity; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit check protocols/msi.coh --system three_caches"))]
pub(crate) struct Check {
    /// Protocol files, names of shipped protocols, or Murphi models (`.m`); `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Murphi dialect: accept only what this checker accepts; by default, what either checker accepts.
    #[arg(long, value_enum, value_name = "NAME")]
    pub dialect: Option<DialectOption>,

    /// Deadlocks of a Murphi model: states without a successor other than themselves (stuttering, the default), states
    /// in which no rule is enabled (stuck), or none (off).
    #[arg(long, value_enum, value_name = "KIND")]
    pub deadlock: Option<DeadlockOption>,

    /// Symmetry reduction over caching agents, or a Murphi model's scalarset values: explore one state per symmetry
    /// class (exact, the default), or every state (off). With exact, states are counted up to symmetry.
    #[arg(long, value_enum, value_name = "KIND")]
    pub symmetry: Option<SymmetryOption>,

    /// Check only the system of this name; may be repeated.
    #[arg(long = "system", value_name = "NAME")]
    pub systems: Vec<String>,

    /// Check a system with this many caching agents instead of the file's systems; 1 if only `--lines` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MAX_REMOTES)))]
    pub remotes: Option<u8>,

    /// Check a system with this many cache lines instead of the file's systems; 1 if only `--remotes` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MAX_LINES)))]
    pub lines: Option<u8>,

    /// Add a verdict for one line and every number of caching agents, by view abstraction: verified, or undecided with
    /// the row, variable or construct that stands in the way. It never reports a violation. It does not cover progress,
    /// reachability of quiescence, and several lines.
    #[arg(long, conflicts_with_all = ["replay", "random_walks", "capacity"])]
    pub any_number: bool,

    /// Add a verdict on each system: does every transaction end, if arrivals of each message type, memory and local
    /// operations are treated fairly? Under weak fairness, what is continuously enabled happens infinitely often; under
    /// strong fairness, what is enabled infinitely often. A path on which a transaction never ends is drawn, with the
    /// part that repeats.
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = ["replay", "random_walks", "capacity"])]
    pub fairness: Option<FairnessOption>,

    /// Channel capacity: the maximum number of equal messages in an unordered channel, and of messages of a line in an
    /// ordered one; 7 by default. If it is exceeded, the verdict is undecided. A larger capacity takes more memory, and
    /// changes no verdict except an undecided one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub capacity: Option<u8>,

    /// Number of search threads, at most and by default the number of processors. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Stop the search of a system, or of a program of a guarantee, after this many states; the verdict is undecided.
    #[arg(long, value_name = "N")]
    pub max_states: Option<u64>,

    /// Maximum depth of the search in steps; with `--random-walks`, maximum steps of one walk (1000 by default).
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u64>,

    /// Hash compaction, for systems that take too much memory: store a 64-bit signature of each expanded state. A state
    /// with the signature of another one is omitted; the verdict gives an upper bound of that probability. Violations
    /// are real, and have their path. Quiescence, covers and liveness are not checked, because they need the states
    /// themselves; checkpoints and `--coverage` are not available.
    #[arg(long, conflicts_with_all = ["replay", "random_walks"])]
    pub hash_compaction: bool,

    /// Take this many steps on random walks from initial states, for systems that are too large to search. Every state
    /// of a walk and all its successors are checked, except for properties that need all states. Without a violation,
    /// the verdict is undecided. The same seed gives the same walks on any number of threads.
    #[arg(long, alias = "simulate", value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["max_states", "max_memory", "symmetry", "checkpoint", "resume", "coverage", "graph", "replay"])]
    pub random_walks: Option<u64>,

    /// Seed of all random choices; 0 by default.
    #[arg(long, value_name = "N", requires = "random_walks")]
    pub seed: Option<u64>,

    /// Stop the search when states take this much memory, such as `500MiB` or `2GB`; by default, three quarters of the
    /// free memory.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub max_memory: Option<u64>,

    /// Write checkpoints for `--resume` into this folder: periodically, at a limit and on Ctrl-C. The folder is created
    /// if needed, must not contain checkpoints, and is kept when the check ends.
    #[arg(long, value_name = "DIR", conflicts_with = "resume", group = "kept")]
    pub checkpoint: Option<PathBuf>,

    /// Resume from the checkpoints of this folder, and write new ones there. Files and options must be those of the
    /// interrupted check, except threads, limits and output. The result is that of an uninterrupted check.
    #[arg(long, value_name = "DIR", group = "kept")]
    pub resume: Option<PathBuf>,

    /// Keep most states in the folder of `--checkpoint` or `--resume` instead of in memory, for systems that take too
    /// much of it. An eighth of `--max-memory` holds states; the table of all states and the check of duplicates take
    /// the rest, about 13 bytes for each state. The result is that of a check in memory, except that progress of single
    /// accesses is always judged in memory. Checkpoints are also written when states move to the disk.
    #[arg(long, requires = "kept", conflicts_with_all = ["hash_compaction", "coverage", "graph"])]
    pub disk: bool,

    /// Seconds between checkpoints.
    #[arg(long, value_name = "N", default_value_t = 30, requires = "kept", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,

    /// Write each checked system or model into this folder as a Murphi model, to confirm the verdict with another
    /// checker; systems of protocols are written for Rumur. Files are named after protocol and system, so protocols
    /// need distinct names.
    #[arg(long, value_name = "DIR")]
    pub export_murphi: Option<PathBuf>,

    /// Write each checked system or model into this folder as a TLA+ module, with a configuration for TLC. Modules are
    /// named after protocol and system, with `_` for characters that TLA+ does not allow.
    #[arg(long, value_name = "DIR")]
    pub export_tla: Option<PathBuf>,

    /// Write the chart of each counterexample, or of an exceeded channel capacity, into this folder as SVG. For Murphi
    /// models, only recognised messages are drawn.
    #[arg(long, value_name = "DIR")]
    pub chart_svg: Option<PathBuf>,

    /// Report how often each rule fired and led to a new state, and the rows of the controllers that never executed.
    /// The counts come from a second pass up to the end of the search, which keeps all states in memory again.
    #[arg(long)]
    pub coverage: bool,

    /// Write the state graph of one small system or model into this file, which ends in `.dot` (Graphviz) or `.json`:
    /// states as differences from the first, rules as edges, the counterexample marked.
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,

    /// Replay a counterexample from this file instead of searching: the output of `--json`, or its `trace` alone. Each
    /// step is compared with the model's, and the last state is checked.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export_murphi", "export_tla", "chart_svg", "coverage", "graph"])]
    pub replay: Option<PathBuf>,

    /// Check again when a file, or one that it uses, changes, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["replay", "checkpoint", "resume"])]
    pub watch: bool,

    #[command(flatten)]
    pub output: Output,
}

/// Murphi dialect of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DialectOption {
    Cmurphi,
    Rumur,
}

/// Treatment of states that differ by a permutation of scalarset values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SymmetryOption {
    Exact,
    Off,
}

/// Assumption on steps that must happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum FairnessOption {
    Weak,
    Strong,
}

impl FairnessOption {
    /// The assumption itself.
    pub fn fairness(self) -> Fairness {
        match self {
            FairnessOption::Weak => Fairness::Weak,
            FairnessOption::Strong => Fairness::Strong,
        }
    }
}

/// States of a model that are deadlocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DeadlockOption {
    Stuttering,
    Stuck,
    Off,
}

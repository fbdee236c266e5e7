//! Options of `cohkit check`.

use super::{example, Output};
use clap::{Args, ValueEnum};
use cohkit_api::size;
use cohkit_protocol::protocol::System;
use std::path::PathBuf;

/// Explores every reachable state of the systems of a protocol file, or of a Murphi model.
///
/// Properties: single writer (write permission excludes all other permissions), data value (reads return the last
/// write performed), every store is performed once, program order of accesses of one cache to one line, atomicity (no
/// store between the read and the write of an atomic access), every arriving message is expected, no deadlock, every
/// request can complete, progress (every access and local operation can be performed), and the invariants of the
/// file. With `guarantee none` there is no single writer, data value or program order. A home that is written as a
/// policy is constructed first, and a fault of the construction is reported like a violation. A counterexample is a
/// shortest one, drawn as a message sequence chart; a dot marks a step that the home does not see.
///
/// Files that end in `.m` are Murphi models, as CMurphi or Rumur reads them. Their properties are their invariants,
/// assertions, covers and liveness, that every operation is defined, and that there is no deadlock. A counterexample
/// lists the rules of the path with their changes, and draws recognised messages.
///
/// `--sweep NAME=VALUES` runs the check at every value of an option or quantity; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit check protocols/msi.coh --system three_caches"))]
pub(crate) struct Check {
    /// Protocol files, names of those that ship, or Murphi models, which end in `.m`; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Murphi dialect: accept what this checker accepts. Without it, accept what either accepts.
    #[arg(long, value_enum, value_name = "NAME")]
    pub dialect: Option<DialectOption>,

    /// Deadlocks of a Murphi model: states that no rule leaves for a different one (stuttering, the default), states
    /// in which no rule is enabled (stuck), or none (off).
    #[arg(long, value_enum, value_name = "KIND")]
    pub deadlock: Option<DeadlockOption>,

    /// Explore states that differ only by a permutation of caching agents, or of a Murphi model's scalarset values,
    /// once (exact, the default) or each by itself (off). With exact, states are counted up to symmetry.
    #[arg(long, value_enum, value_name = "KIND")]
    pub symmetry: Option<SymmetryOption>,

    /// Check only the system of this name; may be repeated.
    #[arg(long = "system", value_name = "NAME")]
    pub systems: Vec<String>,

    /// Check a system with this many caching agents in place of those of the file; 1 if only `--lines` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MAX_REMOTES)))]
    pub remotes: Option<u8>,

    /// Check a system with this many cache lines in place of those of the file; 1 if only `--remotes` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MAX_LINES)))]
    pub lines: Option<u8>,

    /// Most equal messages in an unordered channel, and most messages of a line in an ordered one, beyond which the
    /// verdict is undecided; 7 if not given. More room takes more memory, and changes no verdict but an undecided
    /// one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub capacity: Option<u8>,

    /// Threads that search; as many as there are processors if not given, and never more. The result does not depend
    /// on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Give up a system, or a program of a guarantee, beyond this many states.
    #[arg(long, value_name = "N")]
    pub max_states: Option<u64>,

    /// Give up beyond this many steps from the start; with `--simulate`, most steps of one walk, 1000 if not given.
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u64>,

    /// Store a signature of 64 bits for each expanded state, for systems that take too much memory. A state with the
    /// signature of another one is omitted; the verdict states the largest probability of that. Violations are real
    /// ones, with their path. Drain, covers and liveness are not judged, because they need all states again; neither
    /// checkpoints nor `--coverage` can be used.
    #[arg(long, conflicts_with_all = ["replay", "simulate"])]
    pub hash_compaction: bool,

    /// Take this many steps on random walks from start states, for systems that are too large to search. Every state
    /// on the way and all its successors are judged, except properties that need all states. A run without a
    /// violation decides nothing. The same seed gives the same walks on any number of threads.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["max_states", "max_memory", "symmetry", "checkpoint", "resume", "coverage", "graph", "replay"])]
    pub simulate: Option<u64>,

    /// Seed of everything random; 0 if not given.
    #[arg(long, value_name = "N", requires = "simulate")]
    pub seed: Option<u64>,

    /// Give up beyond this much memory for states, such as `500MiB` or `2GB`; three quarters of the free memory if
    /// not given.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub max_memory: Option<u64>,

    /// Keep the search in this folder for `--resume`: from time to time, at a limit and on Ctrl-C. The folder is
    /// created, must hold no checkpoints yet, and stays when the check ends.
    #[arg(long, value_name = "DIR", conflicts_with = "resume", group = "kept")]
    pub checkpoint: Option<PathBuf>,

    /// Resume from the checkpoints of this folder, and keep new ones there. Files and options are those of the
    /// interrupted check, except threads, limits and output. The result is that of an uninterrupted check.
    #[arg(long, value_name = "DIR", group = "kept")]
    pub resume: Option<PathBuf>,

    /// Seconds between checkpoints.
    #[arg(long, value_name = "N", default_value_t = 30, requires = "kept", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,

    /// Write each checked system or model into this folder as a Murphi model, for another checker to confirm; systems
    /// of protocols are written for Rumur. Files are named after protocol and system, so all protocols need different
    /// names.
    #[arg(long, value_name = "DIR")]
    pub export_murphi: Option<PathBuf>,

    /// Write the chart of each counterexample, or of an exceeded channel capacity, into this folder as SVG. Messages
    /// of Murphi models are drawn where they are recognised.
    #[arg(long, value_name = "DIR")]
    pub chart_svg: Option<PathBuf>,

    /// Report how often each rule fired and led to a new state, and the rows of the protocol's tables that were never
    /// taken. Counted up to the end of the search, in a second pass that keeps all states in memory again.
    #[arg(long)]
    pub coverage: bool,

    /// Write the state graph of one small system or model into this file, which ends in `.dot` (Graphviz) or `.json`:
    /// states as differences from the first, rules as edges, the counterexample marked.
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,

    /// Replay a counterexample from this file in place of a search: the output of `--json`, or its `trace` alone.
    /// Each step is compared with the model's, and the last state is judged.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export_murphi", "chart_svg", "coverage", "graph"])]
    pub replay: Option<PathBuf>,

    /// Check again whenever a file, or one that it uses, has changed, until Ctrl-C.
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

/// States of a model that are deadlocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DeadlockOption {
    Stuttering,
    Stuck,
    Off,
}

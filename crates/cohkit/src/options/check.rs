//! How protocols and models are checked.

use super::{example, Output};
use crate::size;
use clap::{Args, ValueEnum};
use cohkit_protocol::protocol::System;
use std::path::PathBuf;

/// Explores every reachable state of the systems a protocol text asks for, or of a Murphi model.
///
/// The properties are: a right to write excludes all other rights (single writer), reads see the last write
/// that has been performed (data value), every store that is sent is performed once, accesses of one cache to one line
/// keep their order (program order of one line), no store is performed between the read and the write of an atomic
/// access (atomicity), every message that arrives is expected, there is no deadlock, every request can still complete,
/// every access and every local operation that begins can be performed (progress), and the invariants of the text.
/// With `guarantee none` in the text there is no single writer, data value or program order of one line.
/// A home that the text gives as a policy is constructed first; what the construction finds wrong is
/// reported in the same way as a violation.
/// A counterexample is a shortest one, drawn as a message sequence chart; a dot marks what the home cannot see.
///
/// Files that end in `.m` are Murphi models, as CMurphi or Rumur reads them. Their properties are what they say:
/// invariants, assertions, covers and liveness; and that nothing is done that has no meaning, and there is no deadlock.
/// A counterexample lists the rules that lead to the violation, with what each changes, and draws what is recognised
/// as messages.
///
/// With `--sweep NAME=VALUES` it runs at every value of an option or quantity; `cohkit sweep --help` tells more.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit check protocols/msi.coh --system three_caches"))]
pub(crate) struct Check {
    /// Protocol texts, or names of those that ship, and Murphi models, which end in `.m`; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read Murphi models as this checker does, and accept nothing else; what either accepts if not given.
    #[arg(long, value_enum, value_name = "NAME")]
    pub dialect: Option<DialectOption>,

    /// Which states of a Murphi model are deadlocks: those that no rule leaves for a different one (stuttering),
    /// those in which no rule may fire (stuck), or none (off); stuttering if not given.
    #[arg(long, value_enum, value_name = "KIND")]
    pub deadlock: Option<DeadlockOption>,

    /// Whether states that differ only by a permutation of caching agents, or of a Murphi model's scalarset values,
    /// are explored once (exact), so that states are counted up to symmetry, or each on its own (off); exact if not given.
    #[arg(long, value_enum, value_name = "KIND")]
    pub symmetry: Option<SymmetryOption>,

    /// Check only the system of this name; may be repeated.
    #[arg(long = "system", value_name = "NAME")]
    pub systems: Vec<String>,

    /// Check a system with this many caching agents instead of those of the text; 1 if only `--lines` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MOST_REMOTES)))]
    pub remotes: Option<u8>,

    /// Check a system with this many cache lines instead of those of the text; 1 if only `--remotes` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MOST_LINES)))]
    pub lines: Option<u8>,

    /// Leave the verdict open beyond this many equal messages in an unordered channel, or this many for
    /// each line in an ordered one; 7 if not given. More room takes more memory, and changes no verdict but an open one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub capacity: Option<u8>,

    /// Threads that search; the result does not depend on it.
    /// As many as there are processors if not given, and never more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Give up a system, or a program of a guarantee, beyond this many states.
    #[arg(long, value_name = "N")]
    pub max_states: Option<u64>,

    /// Give up beyond this many steps from the start; with `--simulate` the most steps of one walk, 1000 if not given.
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u64>,

    /// Keep of states that were expanded a signature of 64 bits instead of the state, for systems and models that take too
    /// much memory. A state with the signature of another is left out; the verdict says how probable that is at the most.
    /// A violation is a real one, with the way there. Whether requests can complete, covers and liveness are not judged,
    /// for that takes all states again; for the same reason it cannot be used with checkpoints and `--coverage`.
    #[arg(long, conflicts_with_all = ["replay", "simulate"])]
    pub hash_compaction: bool,

    /// Walk at random instead of searching, for systems and models that are too large: so many steps, on walks that begin
    /// in a start state. Every state on the way, and all that one step leads to, is judged, but for what takes all states to
    /// judge. Finding nothing decides nothing. The same seed gives the same walks on any number of threads.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["max_states", "max_memory", "symmetry", "checkpoint", "resume", "coverage", "graph", "replay"])]
    pub simulate: Option<u64>,

    /// What everything random follows from; 0 if not given.
    #[arg(long, value_name = "N", requires = "simulate")]
    pub seed: Option<u64>,

    /// Give up beyond this much memory for states, such as `500MiB` or `2GB`.
    /// Three quarters of what is free if not given.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub max_memory: Option<u64>,

    /// Keep what is found in this folder, from time to time, when a limit is reached and on Ctrl-C, for `--resume`.
    /// The folder is made, and must hold no checkpoints yet; what is in it stays when the check ends.
    #[arg(long, value_name = "DIR", conflicts_with = "resume", group = "kept")]
    pub checkpoint: Option<PathBuf>,

    /// Go on from the checkpoints in this folder, and keep what is found there. Files and options have to be those
    /// that the check was begun with, but for threads, limits and output. The result is that of an undisturbed check.
    #[arg(long, value_name = "DIR", group = "kept")]
    pub resume: Option<PathBuf>,

    /// Seconds between checkpoints.
    #[arg(long, value_name = "N", default_value_t = 30, requires = "kept", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,

    /// Write each system or model that is checked into this folder as a Murphi model, for another checker to confirm;
    /// what a protocol text becomes is for Rumur.
    /// Files are named after protocol and system, so the texts have to be of different protocols.
    #[arg(long, value_name = "DIR")]
    pub export_murphi: Option<PathBuf>,

    /// Write the chart of each counterexample into this folder as SVG,
    /// and that of how a channel's capacity is exceeded. Messages of Murphi models are drawn where they are recognised.
    #[arg(long, value_name = "DIR")]
    pub chart_svg: Option<PathBuf>,

    /// Tell how often each rule fired and how often it led to a new state, and which rows of the protocol's tables
    /// were never taken. Counted up to where the search ended, in a second walk that keeps all states in memory again.
    #[arg(long)]
    pub coverage: bool,

    /// Write the state graph of one small system or model into this file, which ends in `.dot` (for Graphviz) or `.json`:
    /// states with what differs from the first, rules that lead from one to the other, the counterexample marked.
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,

    /// Step a counterexample again instead of searching: what `--json` printed, or its `trace` alone, from this file.
    /// It is compared with what the model does, and the state in which it ends is judged.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export_murphi", "chart_svg", "coverage", "graph"])]
    pub replay: Option<PathBuf>,

    /// Check again whenever a file has changed, or one that it uses, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["replay", "checkpoint", "resume"])]
    pub watch: bool,

    #[command(flatten)]
    pub output: Output,
}

/// Whose Murphi a model is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DialectOption {
    Cmurphi,
    Rumur,
}

/// What becomes of states that differ by a permutation of scalarset values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SymmetryOption {
    Exact,
    Off,
}

/// Which states of a model are deadlocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DeadlockOption {
    Stuttering,
    Stuck,
    Off,
}

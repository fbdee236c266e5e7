//! How litmus tests are run.

use super::{example, Output};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Runs litmus tests: what a few threads may show, on memory that acts at once or on the caches of a protocol.
///
/// Tests are in the format of the herd tools, in assembly (AArch64, Arm, RISC-V, x86, Power) or in C. Every order is tried in which threads go on, messages
/// arrive and caches give lines up; each location is a line of its own. The condition of the file decides: the answer is
/// yes if it holds of all ends together. Beside it stands whether the ends are exactly those of sequential consistency, or
/// of total store order where cores buffer stores, or of release consistency where they have windows.
///
/// The classic shapes need no file: `cohkit litmus SB MP+dmb.sys` runs them by their names.
///
/// With `--sweep NAME=VALUES` it runs at every value of an option; `cohkit sweep --help` tells more.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit litmus SB --protocol protocols/mesi.coh --cores store-buffer"))]
pub(crate) struct Litmus {
    /// The tests: files, or names of classic shapes.
    #[arg(required_unless_present = "shapes", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// All classic shapes, after the tests named.
    #[arg(long)]
    pub shapes: bool,

    /// Print the tests, in the format of the herd tools, and run nothing.
    #[arg(long, conflicts_with_all = ["protocol", "json", "csv", "stats"])]
    pub print: bool,

    /// The protocol text whose caches the threads run on, or the name of one that ships; memory that acts at once, if not given.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// What stands between threads and caches; what a protocol text with `accesses` asks for, and else `in-order`.
    #[arg(long, value_enum)]
    pub cores: Option<Cores>,

    /// By which of the text's accesses each write is made: a letter for each, thread by thread (`t` as the text's cores store,
    /// `b` written back in the core's own copy, `a` acknowledged by the home), or `every` for all mixes, each a test of its
    /// own.
    #[arg(long, value_name = "MIX", requires = "protocol")]
    pub stores: Option<String>,

    /// The kind of remote that each thread runs on, thread by thread: `cpu,device`. Where kinds have rows of their own, every
    /// way of placing threads on them is a test of its own, if not given.
    #[arg(long, value_name = "KINDS", requires = "protocol")]
    pub kinds: Option<String>,

    /// Run with the sizes of this system of the text, in place of those that the text states for all.
    #[arg(long, value_name = "NAME", requires = "protocol")]
    pub system: Option<String>,

    /// Run each test so many times in the simulator, with random times of threads and messages, instead of trying every
    /// order: an end that decides is seen, or nothing is decided.
    #[arg(long, value_name = "N", requires = "protocol", conflicts_with_all = ["gives_up", "max_states"])]
    pub simulate: Option<u64>,

    /// The seed of the first run; each further one has the next.
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 0)]
    pub seed: u64,

    /// Draw a shortest path also where no outcome is forbidden: to one that the condition speaks of.
    #[arg(long, requires = "protocol", conflicts_with_all = ["simulate", "csv", "stats"])]
    pub chart: bool,

    /// What the ends are compared with, and without a protocol whose they are; the text's `guarantee` or that of the cores,
    /// if not given.
    #[arg(long, value_enum)]
    pub model: Option<Model>,

    /// Decides the exit code beside violations: the condition itself, or what the file expects of it.
    #[arg(long, value_enum, default_value_t = Expect::Condition)]
    pub expect: Expect,

    /// How often, in all, caches give up lines or rights that they were not asked for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub gives_up: u8,

    /// States to visit for one test, at most.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub max_states: usize,

    #[command(flatten)]
    pub output: Output,
}

/// What a test has to show for exit code 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Expect {
    /// Outcomes of which the condition holds: some that satisfy `exists`, none that satisfy `~exists`, all for `forall`.
    Condition,
    /// The expectation of the file (`Result: Never` or the like), or else Never for `~exists` and Always for `forall`. On a
    /// protocol, `exists` and Sometimes permit an outcome and do not ask for it.
    File,
}

/// What stands between threads and caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Cores {
    /// Nothing: an access begins when the one before it has ended.
    InOrder,
    /// A buffer of stores, first in and first out, out of which its own thread reads.
    StoreBuffer,
    /// A window, in which accesses of different locations wait for each other only where the protocol text's `accesses` say
    /// so; without such a block, what acquires, releases and fences ask for.
    Relaxed,
}

/// What a memory model allows threads to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Model {
    /// Sequential consistency: one access after the other.
    Sc,
    /// Total store order: reads before earlier writes.
    Tso,
    /// Release consistency: only the order that fences, acquires, releases and dependences ask for.
    Rc,
    /// Armv8's own model: what its barriers, acquires, releases and dependences order, as its reference manual says.
    Armv8,
    /// RISC-V's own model, RVWMO.
    Riscv,
}

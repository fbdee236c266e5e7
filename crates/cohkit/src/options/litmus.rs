//! Options of `cohkit litmus`.

use super::{example, named_value, Output};
use clap::Args;
use cohkit_api::litmus::{CoreModel, MemoryModel, OutcomeBasis};
use cohkit_api::named_value::NamedValue;
use std::path::PathBuf;

/// Runs litmus tests on an idealised memory or on the caches of a protocol.
///
/// Tests are in the format of the herd tools, in assembly (AArch64, Arm, RISC-V, x86, Power) or in C. All orders of
/// threads, messages and evictions are tried; each location is a line of its own. The condition of the file decides:
/// the answer is yes if it holds of all outcomes together. The outcomes are also compared with a memory model:
/// sequential consistency, total store order for cores with store buffers, or release consistency for cores with
/// windows.
///
/// The classic shapes need no file: `cohkit litmus SB MP+dmb.sys` runs them by name.
///
/// `--sweep NAME=VALUES` runs the tests at every value of an option; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit litmus SB --protocol protocols/mesi.coh --cores store-buffer"))]
pub(crate) struct Litmus {
    /// Tests: files, or names of classic shapes.
    #[arg(required_unless_present = "shapes", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Add all classic shapes, behind the tests that are named.
    #[arg(long)]
    pub shapes: bool,

    /// Print the tests in the format of the herd tools, and run nothing.
    #[arg(long, conflicts_with_all = ["protocol", "json", "csv", "stats"])]
    pub print: bool,

    /// Protocol file whose caches the threads run on, or the name of one that ships; without it, sequentially
    /// consistent memory.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Cores between threads and caches; if not given, those of the file's `accesses`, or else `in-order`.
    #[arg(long, value_parser = named_value::<CoreModel>())]
    pub cores: Option<CoreModel>,

    /// Kind of each store, one letter per store, thread by thread: `t` as the file's cores store, `b` written back
    /// from the core's own copy, `a` acknowledged by the home. `every` runs all mixes, each as a test of its own.
    #[arg(long, value_name = "MIX", requires = "protocol")]
    pub stores: Option<String>,

    /// Kind of remote for each thread: `cpu,device`. Without it, where kinds have rows of their own, each placement
    /// of threads on kinds is a test of its own.
    #[arg(long, value_name = "KINDS", requires = "protocol")]
    pub kinds: Option<String>,

    /// Take the sizes of this system of the file.
    #[arg(long, value_name = "NAME", requires = "protocol")]
    pub system: Option<String>,

    /// Run each test this many times in the simulator, with random delays of threads and messages, in place of all
    /// orders. An outcome that decides the condition is met, or nothing is decided.
    #[arg(long, value_name = "N", requires = "protocol", conflicts_with_all = ["gives_up", "max_states"])]
    pub simulate: Option<u64>,

    /// Seed of the first run; each further run has the next one.
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 0)]
    pub seed: u64,

    /// Draw a shortest path to an outcome of the condition, also where no outcome is forbidden.
    #[arg(long, requires = "protocol", conflicts_with_all = ["simulate", "csv", "stats"])]
    pub chart: bool,

    /// Memory model that outcomes are compared with, and that gives the outcomes without a protocol; if not given,
    /// the file's `guarantee`, or the model of the cores.
    #[arg(long, value_parser = named_value::<MemoryModel>())]
    pub model: Option<MemoryModel>,

    /// Basis of the exit code, besides violations: the condition, or the file's expectation of it.
    #[arg(long, value_parser = named_value::<OutcomeBasis>(), default_value = OutcomeBasis::Condition.name())]
    pub expect: OutcomeBasis,

    /// Most evictions and downgrades that caches do by themselves in one run, of all caches together.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub gives_up: u8,

    /// Most states to visit for one test.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub max_states: usize,

    #[command(flatten)]
    pub output: Output,
}

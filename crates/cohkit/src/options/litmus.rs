//! Options of `cohkit litmus`.

use super::{example, named_value, Output};
use clap::Args;
use cohkit_api::litmus::{
    CoreModel, MemoryModel, OutcomeBasis, DEFAULT_MAX_SPONTANEOUS_EVICTIONS, DEFAULT_MAX_STATES,
};
use cohkit_api::named_value::NamedValue;
use std::path::PathBuf;

/// Runs litmus tests on an idealised memory or on the caches of a protocol.
///
/// Tests are in the format of the herd tools, in assembly (AArch64, Arm, RISC-V, x86, Power) or in C. Every order of
/// threads, messages and evictions is explored; each location has its own line. The exit code is 0 if the condition of
/// the file holds for the set of all outcomes. The outcomes are also compared with a memory model: sequential
/// consistency, total store order for cores with store buffers, or release consistency for cores with windows.
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

    /// Add all classic shapes, after the named tests.
    #[arg(long)]
    pub shapes: bool,

    /// Print the tests in the format of the herd tools without running them.
    #[arg(long, conflicts_with_all = ["protocol", "json", "csv", "stats"])]
    pub print: bool,

    /// Protocol file of the caches that the threads run on, or the name of a shipped one; without it, sequentially
    /// consistent memory.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Cores between threads and caches; by default those of the file's `accesses`, or else `in-order`.
    #[arg(long, value_parser = named_value::<CoreModel>())]
    pub cores: Option<CoreModel>,

    /// Variant of each store, one letter per store, thread by thread: `t` as the protocol file defines stores, `b`
    /// written back from the core's own copy, `a` acknowledged by the home. `all` runs each combination as a separate
    /// test.
    #[arg(long, alias = "stores", value_name = "MIX", requires = "protocol")]
    pub store_variants: Option<String>,

    /// Kind of remote for each thread: `cpu,device`; for a composition with several inner protocols, the name of the
    /// inner protocol. By default, if kinds differ in their rows, and for several inner protocols, each placement of
    /// threads is a separate test.
    #[arg(long, value_name = "KINDS", requires = "protocol")]
    pub kinds: Option<String>,

    /// Use the sizes of this system of the protocol file.
    #[arg(long, value_name = "NAME", requires = "protocol")]
    pub system: Option<String>,

    /// Run each test this many times in the simulator, with random delays of threads and messages, instead of exploring
    /// all orders. The verdict is undecided unless an observed outcome decides the condition.
    #[arg(long, alias = "simulate", value_name = "N", requires = "protocol", group = "runs", conflicts_with_all = ["max_spontaneous_evictions", "max_states"])]
    pub simulation_runs: Option<u64>,

    /// Also run each test this many times on the printed hardware of the protocol (`cohkit rtl emit --system`) in
    /// Verilator, with random delays of threads, messages and memory. Each thread drives the processor port of a cache.
    /// An outcome that the exploration does not have is a violation, and outcomes that were not seen are listed.
    #[arg(long, value_name = "N", requires = "protocol", group = "runs", value_parser = clap::value_parser!(u64).range(1..))]
    pub rtl_runs: Option<u64>,

    /// Folder that caches the built hardware of `--rtl-runs`; by default a folder of the current user.
    #[arg(long, value_name = "DIR", requires = "rtl_runs")]
    pub build_cache: Option<PathBuf>,

    /// Seed of the first run; each further run uses the next seed.
    #[arg(long, value_name = "N", requires = "runs", default_value_t = 0)]
    pub seed: u64,

    /// Draw a shortest path to an outcome that satisfies the condition, even if no outcome is forbidden.
    #[arg(long, requires = "protocol", conflicts_with_all = ["simulation_runs", "csv", "stats"])]
    pub chart: bool,

    /// Memory model that outcomes are compared with, and that determines the outcomes without a protocol; by default
    /// the file's `guarantee`, or the model of the cores.
    #[arg(long, value_parser = named_value::<MemoryModel>())]
    pub model: Option<MemoryModel>,

    /// Basis of the exit code, besides violations: the condition, or the file's expectation of it.
    #[arg(long, value_parser = named_value::<OutcomeBasis>(), default_value = OutcomeBasis::Condition.name())]
    pub expect: OutcomeBasis,

    /// Maximum number of spontaneous evictions and downgrades in one run, of all caches together.
    #[arg(long, alias = "gives-up", value_name = "N", default_value_t = DEFAULT_MAX_SPONTANEOUS_EVICTIONS)]
    pub max_spontaneous_evictions: u8,

    /// Maximum number of states of one test.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_STATES)]
    pub max_states: usize,

    #[command(flatten)]
    pub output: Output,
}

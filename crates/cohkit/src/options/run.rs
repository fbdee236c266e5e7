//! Options of `cohkit run`.

use super::{example, Drawn};
use clap::Args;
use std::path::PathBuf;

/// Runs a compiled program on an RV64 core with flat memory, or on a host with cores beside its far memory.
///
/// The program is statically linked. It reaches the outside by semihosting, as picolibc's programs do, or by the few
/// Linux calls that it needs. Its output is the command's. Runs are deterministic: the program's clock counts
/// instructions or cycles, as nanoseconds. If the program ends with a code other than 0, or by an exception, the
/// command ends with 1.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit run --files docs/riscv out/sum.elf numbers.txt"))]
pub(crate) struct Run {
    /// Program: an ELF file for RV64.
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Arguments of the program.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<String>,

    /// Model time on an assumed small core whose memory takes no longer than a load, and report instructions and
    /// cycles.
    #[arg(long)]
    pub timed: bool,

    /// Memory in MiB, from the program's first address on.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,

    /// Most instructions, of all cores together: 10000000000 if not given, and 1000000000 on a machine with cores
    /// beside far memory, whose time is modelled. Either takes some minutes at most.
    #[arg(long, value_name = "N")]
    pub most: Option<u64>,

    /// Folder whose files the program may read and write; none if not given.
    #[arg(long, value_name = "FOLDER")]
    pub files: Option<PathBuf>,

    /// Program that the main program may start by this name on a core beside far memory; may be repeated. The main
    /// program then runs on the host of a machine, with modelled time.
    #[arg(long = "cp", value_name = "NAME=PROGRAM")]
    pub channels: Vec<String>,

    /// Leave out the time of instructions on that machine: programs end sooner, and simulated times mean nothing.
    #[arg(long, conflicts_with_all = ["timed", "races", "timeline"])]
    pub fast: bool,

    /// Machine: a file like `nearmemory/enzian.toml`, which is the default.
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Report at the end, on standard error, the counters of every path of the machine.
    #[arg(long)]
    pub counters: bool,

    /// Leave the verification of the programs of `--cp` to the cores.
    #[arg(long)]
    pub unverified: bool,

    /// Report races in far memory, which has no hardware coherence: loads of stale lines, write-backs over newer
    /// data, and conflicting accesses of a line by two programs without synchronisation. Each has both places in the
    /// programs, and the exit code is then 1.
    #[arg(long)]
    pub races: bool,

    #[command(flatten)]
    pub drawn: Drawn,

    /// Evict a random line from the host's caches, once in this many accesses.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub evict: Option<u64>,

    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl Run {
    /// Returns true for a machine with cores beside far memory.
    pub(crate) fn uses_near_memory(&self) -> bool {
        let machine = self.platform.is_some() || !self.set.is_empty() || self.evict.is_some();
        let reports = self.counters || self.races || self.drawn.timeline.is_some();
        machine || reports || !self.channels.is_empty() || self.unverified
    }
}

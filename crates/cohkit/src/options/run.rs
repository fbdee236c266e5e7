//! How compiled programs are run.

use super::{example, Drawn};
use clap::Args;
use std::path::PathBuf;

/// Runs a compiled program on a plain RV64 core with flat memory, or on a host with cores beside its far memory.
///
/// The program is statically linked, and reaches the outside by semihosting, as picolibc's do, or by the few calls of Linux
/// that it needs. Its output is the command's. The same program does the same each time: its clock counts instructions, or
/// cycles, as nanoseconds. If it ends with another code than 0, or by an exception, the command ends with 1.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit run --files docs/riscv out/sum.elf numbers.txt"))]
pub(crate) struct Run {
    /// The program: an ELF file for RV64.
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Words that the program is called with.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<String>,

    /// Run it in time, on a small core that is assumed, with memory that takes no longer than a load does; and tell how many
    /// instructions and cycles it takes.
    #[arg(long)]
    pub timed: bool,

    /// MiB of memory, from the program's first address on.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,

    /// Most instructions, of all cores together: 10000000000 if not given, and 1000000000 on a machine with cores beside far memory,
    /// whose time is modelled. Either takes some minutes at most.
    #[arg(long, value_name = "N")]
    pub most: Option<u64>,

    /// The folder whose files the program may read and write. It has no files without.
    #[arg(long, value_name = "FOLDER")]
    pub files: Option<PathBuf>,

    /// A program that the program may start by this name on a core beside far memory; may be repeated for others. The program
    /// then runs on the host of a machine, in time, as do these.
    #[arg(long = "cp", value_name = "NAME=PROGRAM")]
    pub channels: Vec<String>,

    /// Leave out the time that instructions take on that machine: what takes how long then means nothing, and programs that
    /// calculate are done sooner.
    #[arg(long, conflicts_with_all = ["timed", "races", "timeline"])]
    pub fast: bool,

    /// The machine: a file like `nearmemory/enzian.toml`, which is the one if none is given.
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated for others.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Tell at the end, on standard error, what was counted on every path of the machine.
    #[arg(long)]
    pub counters: bool,

    /// Leave it to the cores to look through the programs of `--cp`.
    #[arg(long)]
    pub unverified: bool,

    /// Look for races in far memory, which nothing keeps coherent: loads of stale lines, write-backs over newer data, and
    /// conflicting accesses of a line by two programs without synchronisation. Each is reported with both places in the
    /// programs, and the exit code is then 1.
    #[arg(long)]
    pub races: bool,

    #[command(flatten)]
    pub drawn: Drawn,

    /// Evict a line from the host's caches at random, once in so many accesses.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub evict: Option<u64>,

    /// What everything random follows from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl Run {
    /// Whether it is run on a machine with cores beside far memory.
    pub(crate) fn beside(&self) -> bool {
        let machine = self.platform.is_some() || !self.set.is_empty() || self.evict.is_some();
        let told = self.counters || self.races || self.drawn.timeline.is_some();
        machine || told || !self.channels.is_empty() || self.unverified
    }
}

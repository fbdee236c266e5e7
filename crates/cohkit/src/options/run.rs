//! Options of `cohkit run`.

use super::{example, TimelineOptions};
use clap::Args;
use std::path::PathBuf;

/// Runs a compiled program on an RV64 core with flat memory, or on a host with near-memory cores.
///
/// The program must be statically linked. It uses semihosting, as programs built with picolibc do, or a few Linux
/// system calls. Its output becomes the output of the command. Runs are deterministic: the program's clock counts
/// instructions or cycles, as nanoseconds. If the program exits with a code other than 0, or with an exception, the
/// exit code of the command is 1.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit run --guest-folder docs/riscv out/sum.elf numbers.txt"))]
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

    /// Model the time of an assumed small core whose memory adds no latency to a load, and report instructions and
    /// cycles.
    #[arg(long)]
    pub timed: bool,

    /// Size of memory in MiB, from the program's first address.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,

    /// Maximum number of instructions, of all cores together: 10000000000 by default, or 1000000000 on a machine with
    /// near-memory cores, whose time is modelled. Either default takes a few minutes at most.
    #[arg(long, alias = "most", value_name = "N")]
    pub max_instructions: Option<u64>,

    /// Folder whose files the program may read and write; by default it has no access to files.
    #[arg(long, alias = "files", value_name = "FOLDER")]
    pub guest_folder: Option<PathBuf>,

    /// Channel program that the main program may start by this name on a near-memory core; may be repeated. The main
    /// program then runs on the host of a machine, with modelled time.
    #[arg(long = "channel-program", alias = "cp", value_name = "NAME=PROGRAM")]
    pub channel_programs: Vec<String>,

    /// Do not model the time of instructions on that machine: runs are faster, but simulated times are meaningless.
    #[arg(long, conflicts_with_all = ["timed", "races", "timeline"])]
    pub fast: bool,

    /// Machine: a file like `nearmemory/enzian.toml`, which is the default.
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns` or `prefetcher.streams=4`; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// At the end, print the counters of every path of the machine on standard error.
    #[arg(long)]
    pub counters: bool,

    /// Do not verify the programs of `--channel-program` before the run; the cores verify them when they start.
    #[arg(long, alias = "unverified")]
    pub skip_verification: bool,

    /// Report races in far memory, which has no hardware coherence: loads of stale lines, write-backs over newer
    /// data, and conflicting accesses of a line by two programs without synchronisation. A report locates both accesses
    /// in the programs. With any race, the exit code is 1.
    #[arg(long)]
    pub races: bool,

    #[command(flatten)]
    pub timeline_options: TimelineOptions,

    /// Evict a random line from the host's caches every N accesses on average.
    #[arg(long, alias = "evict", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub random_eviction_interval: Option<u64>,

    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl Run {
    /// Returns true if an option selects a machine with near-memory cores.
    pub(crate) fn uses_near_memory(&self) -> bool {
        let evicts = self.random_eviction_interval.is_some();
        let machine = self.platform.is_some() || !self.set.is_empty() || evicts;
        let reports = self.counters || self.races || self.timeline_options.timeline.is_some();
        machine || reports || !self.channel_programs.is_empty() || self.skip_verification
    }
}

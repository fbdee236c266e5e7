//! Accesses per second of processor time of the timed machine: random updates of far memory by the host and by a
//! near-memory core, and a core that polls its scratchpad and registers.
//!
//! Prints one line per program. The count is that of lines read and written by far memory, or of the core's accesses.

use cohkit_testing::processor_time;

use cohkit_nearmemory::machine::{load_program, Machine, RunOutcome};
use cohkit_nearmemory::{Binaries, Platform};
use cohkit_riscv::elf::Image;
use cohkit_riscv::system::{Errno, World};
use processor_time::processor_seconds;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Discards the output of programs.
struct DiscardedOutput;

impl World for DiscardedOutput {
    fn write(&mut self, _file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        Ok(bytes.len())
    }
}

/// Compiles a program with the given flags; `None` if no compiler is available.
fn compile(flags: &str, source: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    let status = Command::new("riscv64-unknown-elf-gcc")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .arg(format!("@nearmemory/{flags}.flags"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .status();
    let status = status.ok()?;
    assert!(status.success(), "the compiler ends with {status}");
    Some(std::fs::read(program).expect("the file can be read"))
}

/// Measures `gups`, which accesses far memory, and `pipes`, in which a core polls.
fn main() {
    let polls = ["mcc 0: scratchpad accesses", "mcc 0: register accesses"];
    for (program, command, unit, counted_names) in [
        (
            "gups",
            "16777216 20000",
            "lines of far memory",
            ["far memory: lines read", "far memory: lines written"],
        ),
        ("pipes", "1 60000", "accesses of a polling core", polls),
    ] {
        let sources = ["-host", ""].map(|end| format!("nearmemory/programs/{program}{end}.c"));
        let programs = (
            compile("host", &sources[0]),
            compile("channel", &sources[1]),
        );
        let (Some(host), Some(channel)) = programs else {
            return println!("not measured: riscv64-unknown-elf-gcc is missing");
        };
        let image = Image::read(&host).expect("a valid ELF program");
        let (main, system) =
            load_program(&image, 64 << 20, command).expect("the program fits in memory");
        let mut binaries = Binaries::default();
        binaries
            .add(program, &channel)
            .expect("a valid channel program");
        let platform = Platform::enzian();
        let mut machine = Machine::new(&platform, main, system, &image, binaries, None);
        let begin = Instant::now();
        let start_seconds = processor_seconds(begin);
        let end = loop {
            if let Some(outcome) = machine.run(1 << 16, &mut DiscardedOutput) {
                break outcome;
            }
        };
        assert_eq!(end, RunOutcome::Exit(0), "{program}");
        let seconds = processor_seconds(begin) - start_seconds;
        let total: u64 = (machine.counters().iter())
            .filter(|(name, _)| counted_names.contains(&name.as_str()))
            .map(|(_, count)| count)
            .sum();
        let (rate, instructions) = (
            total as f64 / seconds / 1e6,
            machine.instructions() as f64 / seconds / 1e6,
        );
        println!("{program:6} {unit:28} {rate:6.2} million per second, {instructions:6.1} million instructions per second");
    }
}

//! Verdicts on the systems that designers check first, by the installed command with two threads.
//!
//! All properties are checked: single writer, data value, no unexpected message, no deadlock, and completion of every
//! request. Each verdict should take at most a minute on two cores; a slower one ends this benchmark with an error.
//! `cargo bench -p cohkit --bench systems -- NAME` measures the systems whose names contain the word.

use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time for a verdict, in seconds.
const LONGEST: f64 = 60.0;

/// A system to check.
struct System {
    /// Name of the shipped protocol.
    protocol: &'static str,
    /// Number of caching agents.
    remotes: u8,
    /// Number of cache lines.
    lines: u8,
}

/// Systems in the order of their measurement.
const SYSTEMS: [System; 7] = [
    system("eci", 1, 2),
    system("eci", 3, 1),
    system("eci", 2, 2),
    system("msi", 4, 1),
    system("mesi", 4, 1),
    system("moesi", 4, 1),
    system("msi-policy", 4, 1),
];

/// Creates a system of `remotes` caching agents and `lines` lines.
const fn system(protocol: &'static str, remotes: u8, lines: u8) -> System {
    System {
        protocol,
        remotes,
        lines,
    }
}

/// Verdict on a system, with its costs.
struct Measurement {
    /// Entry of the JSON output.
    verdict: Value,
    /// Time of the command, in seconds.
    seconds: f64,
    /// Peak memory of the command in bytes; `None` if the system does not report it.
    peak: Option<u64>,
}

fn main() {
    let name_filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    println!(
        "{:28}{:>16}{:>18}{:>10}{:>12}{:>12}",
        "system", "states", "transitions", "seconds", "states MiB", "peak MiB"
    );
    let mut slow = 0;
    for system in SYSTEMS {
        let System {
            protocol,
            remotes,
            lines,
        } = system;
        let name = format!("{protocol} remotes {remotes} lines {lines}");
        if !name_filters.is_empty() && !name_filters.iter().any(|part| name.contains(part.as_str()))
        {
            continue;
        }
        let Measurement {
            verdict,
            seconds,
            peak,
        } = measure(&system);
        assert_eq!(verdict["outcome"], "verified", "{name}");
        let mebibytes = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        println!(
            "{name:28}{:>16}{:>18}{seconds:>10.2}{:>12}{:>12}",
            verdict["states"].to_string(),
            verdict["transitions"].to_string(),
            verdict["run"]["memory_bytes"]
                .as_u64()
                .map_or("-".into(), mebibytes),
            peak.map_or("-".into(), mebibytes),
        );
        slow += i32::from(seconds > LONGEST);
    }
    if slow > 0 {
        eprintln!("{slow} took longer than {LONGEST} seconds");
        std::process::exit(1);
    }
}

/// Checks a system, and polls the memory of the command until it ends.
fn measure(system: &System) -> Measurement {
    let file = format!(
        "{}/../../protocols/{}.coh",
        env!("CARGO_MANIFEST_DIR"),
        system.protocol
    );
    let start = Instant::now();
    let check = Command::new(env!("CARGO_BIN_EXE_cohkit"))
        .args(["check", &file, "--json", "--threads", "2"])
        .args(["--remotes", &system.remotes.to_string()])
        .args(["--lines", &system.lines.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let process = check.id();
    let waiting = std::thread::spawn(move || check.wait_with_output());
    let mut peak = None;
    while !waiting.is_finished() {
        peak = peak_memory(process).or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    let seconds = start.elapsed().as_secs_f64();
    let output = waiting
        .join()
        .expect("waiting ends")
        .expect("the command ends");
    let verdicts: Value = serde_json::from_slice(&output.stdout).expect("the command prints JSON");
    Measurement {
        verdict: verdicts[0].clone(),
        seconds,
        peak,
    }
}

/// Peak memory of a process in bytes, if the system reports it.
fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

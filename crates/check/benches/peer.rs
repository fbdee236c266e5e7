//! The checker beside Rumur, one thread each, in the same run.
//! `cargo bench -p cohkit-check --bench peer -- NAME` measures the models whose names contain the word.
//!
//! Rumur generates C, compiled here with `-O3`. Three tables:
//!
//! - *every state*: no symmetry reduction on either side, the same safety properties; the compilation of
//!   Rumur's C is not timed. Beside it what two threads reach of two independent searches.
//! - *symmetry*: from the start of the search to the verdict, ours exact, theirs as it comes (heuristic).
//! - *file to verdict*: small models as a user would check them, everything included, by default on both sides.
//!
//! Without Rumur our own speed is printed alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cohkit_check::model::{Deadlock, Model};
use cohkit_check::murphi::{print, read, rumur_options, Dialect, Style};
use cohkit_check::report::{check, Outcome, Report};
use cohkit_check::search::Options;
use cohkit_check::system;
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text;

#[path = "../tests/models/mod.rs"]
mod models;

/// The model of a system of a shipped text.
fn shipped(protocol: &str, system: &str) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let text = std::fs::read_to_string(folder.join(format!("{protocol}.coh"))).unwrap();
    let protocol = text::parse(&text).unwrap();
    let system = protocol.systems.iter().find(|s| s.name == system).unwrap();
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(&protocol).ok().unwrap();
            match system.remotes {
                1 => construction.flat(true),
                _ => construction.factored(true),
            }
        }
    };
    let options = system::Options::default();
    system::model(&protocol, &home, system.remotes, system.lines, &options).unwrap()
}

/// A model of the library.
fn library(name: &str) -> Model {
    let text = std::fs::read_to_string(library_file(name)).unwrap();
    let read = read(name, &text, Dialect::Any);
    let mut model = read.unwrap_or_else(|_| panic!("{name} is accepted")).model;
    model.deadlock = Deadlock::Stuttering;
    model
}

fn library_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../models/{name}.m"))
}

/// What Rumur takes.
struct Theirs {
    /// Seconds to generate C and to compile it.
    prepared: f64,
    /// Seconds that the checker runs.
    seconds: f64,
    states: u64,
}

/// Runs Rumur on a text; nothing if it is not there or does not accept the text.
fn rumur(text: &Path, options: &[&str], folder: &Path) -> Option<Theirs> {
    let (c, checker) = (folder.join("m.c"), folder.join("m"));
    let start = Instant::now();
    let mut generate = Command::new("rumur");
    generate.args(options).args(["--threads", "1", "--output"]);
    let generated = generate.arg(&c).arg(text).status().ok()?.success();
    let mut compile = Command::new("cc");
    compile
        .args(["-O3", "-w", "-o"])
        .arg(&checker)
        .arg(&c)
        .arg("-lpthread");
    if !generated || !compile.status().ok()?.success() {
        return None;
    }
    let prepared = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let output = Command::new(&checker).output().ok()?;
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = said.split_whitespace().collect();
    let states = words.windows(2).find(|pair| pair[1] == "states,")?[0]
        .parse()
        .ok()?;
    Some(Theirs {
        prepared,
        seconds,
        states,
    })
}

/// Runs Rumur on what we export of a model, without symmetry reduction.
fn rumur_on_all(model: &Model, folder: &Path) -> Option<Theirs> {
    let text = folder.join("m.m");
    std::fs::write(&text, print(model, Style::Plain).ok()?).ok()?;
    rumur(&text, &rumur_options(model, Style::Plain), folder)
}

/// Seconds a search takes, and what it finds.
fn ours(model: &Model, threads: usize, symmetry: bool) -> (f64, Report) {
    let options = Options {
        threads,
        decompose: false,
        symmetry,
        ..Options::default()
    };
    let start = Instant::now();
    let report = check(model, &options).unwrap();
    (start.elapsed().as_secs_f64(), report)
}

/// Seconds that two searches with one thread each take side by side.
fn side_by_side(model: &Model) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| ours(model, 1, false));
        ours(model, 1, false);
        other.join().unwrap();
    });
    start.elapsed().as_secs_f64()
}

/// Collects ratios.
#[derive(Default)]
struct Ratios(Vec<f64>);

impl Ratios {
    /// How many times as long they take, as text.
    fn add(&mut self, ours: f64, theirs: f64) -> String {
        self.0.push(theirs / ours);
        format!("{:>7.1}", theirs / ours)
    }

    fn tell(&self) {
        if self.0.is_empty() {
            return;
        }
        let sum: f64 = self.0.iter().map(|ratio| ratio.ln()).sum();
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = (sum / self.0.len() as f64).exp();
        println!("times as fast: {mean:.1} by geometric mean, {least:.1} at least\n");
    }
}

/// Which models are measured.
struct Wanted(Vec<String>);

impl Wanted {
    fn is(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Every state of each model.
fn every_state(wanted: &Wanted, folder: &Path) {
    let shipped_models = [
        ("eci", "two_cpus"),
        ("msi", "two_lines"),
        ("mesi", "two_lines"),
        ("moesi", "two_lines"),
    ];
    let library_models = [
        "mcs_lock",
        "mcs_lock_exchange",
        "clh_lock_5",
        "german_4",
        "flash_4",
        "filter_6",
        "paxos",
        "network_slots",
    ];
    let mut models: Vec<(String, Model)> = vec![
        ("Peterson, 6 processes".into(), models::peterson(6)),
        ("five token rings".into(), models::copies(5, false)),
    ];
    models.extend(shipped_models.map(|(p, s)| (format!("{p} {s}"), shipped(p, s))));
    models.extend(library_models.map(|name| (name.to_string(), library(name))));
    println!(
        "{:22}{:>9}{:>8}{:>9}{:>9}{:>9}{:>7}{:>13}",
        "every state", "states", "bytes", "ours", "M/s", "rumur", "ratio", "two threads"
    );
    let mut ratios = Ratios::default();
    for (name, mut model) in models {
        if !wanted.is(&name) {
            continue;
        }
        // The plain export judges safety only; so do we here.
        model.quiescent = None;
        model.deadlock = Deadlock::Off;
        let (seconds, report) = ours(&model, 1, false);
        assert!(matches!(report.outcome, Outcome::Verified));
        let beside = match rumur_on_all(&model, folder) {
            None => format!("{:>9}{:>7}", "-", ""),
            Some(theirs) => {
                let states = u128::from(theirs.states);
                assert_eq!(states, report.states, "both explore the same");
                let ratio = ratios.add(seconds, theirs.seconds);
                format!("{:>7.2} s{ratio}", theirs.seconds)
            }
        };
        // What two threads reach of two independent searches.
        let independent = side_by_side(&model);
        let (together, same) = ours(&model, 2, false);
        assert_eq!(same, report, "any number of threads gives the same report");
        println!(
            "{name:22}{:>9}{:>8.1}{seconds:>7.2} s{:>9.2}{beside}{:>11.0} %",
            report.states,
            report.memory as f64 / report.states as f64,
            report.states as f64 / seconds / 1e6,
            independent / together / 2.0 * 100.0,
        );
    }
    ratios.tell();
}

/// One state of each orbit, as either side does it by default.
fn symmetry(wanted: &Wanted, folder: &Path) {
    println!(
        "{:22}{:>9}{:>10}{:>11}{:>11}{:>9}",
        "symmetry", "orbits", "ours", "theirs", "rumur", "ratio"
    );
    let mut ratios = Ratios::default();
    for name in [
        "filter_5",
        "filter_6",
        "filter_fine_5",
        "mcs_lock",
        "mcs_lock_exchange",
        "german",
        "german_4",
        "flash",
        "flash_4",
        "network_slots",
    ] {
        if !wanted.is(name) {
            continue;
        }
        let model = library(name);
        let (seconds, report) = ours(&model, 1, true);
        assert!(matches!(report.outcome, Outcome::Verified) && report.symmetric);
        let beside = match rumur(&library_file(name), &[], folder) {
            None => format!("{:>11}", "-"),
            Some(Theirs {
                seconds: theirs,
                states,
                ..
            }) => {
                let ratio = ratios.add(seconds, theirs);
                format!("{states:>11}{theirs:>9.3} s{ratio:>9}")
            }
        };
        println!("{name:22}{:>9}{seconds:>8.3} s{beside}", report.states);
    }
    ratios.tell();
}

/// Small models as a user would check them.
fn file_to_verdict(wanted: &Wanted, folder: &Path) {
    println!(
        "{:22}{:>9}{:>10}{:>12}{:>9}",
        "file to verdict", "states", "ours", "rumur", "ratio"
    );
    let mut ratios = Ratios::default();
    for name in [
        "peterson_2",
        "ticket_lock",
        "directory_mesi",
        "ultra",
        "german",
        "bakery",
    ] {
        if !wanted.is(name) {
            continue;
        }
        let start = Instant::now();
        let (_, report) = ours(&library(name), 1, true);
        let seconds = start.elapsed().as_secs_f64();
        let beside = match rumur(&library_file(name), &[], folder) {
            None => format!("{:>12}", "-"),
            Some(theirs) => {
                let all = theirs.prepared + theirs.seconds;
                format!("{all:>10.3} s{:>9}", ratios.add(seconds, all))
            }
        };
        println!("{name:22}{:>9}{seconds:>8.4} s{beside}", report.states);
    }
    ratios.tell();
}

fn main() {
    let arguments = std::env::args().skip(1);
    let wanted = Wanted(
        arguments
            .filter(|argument| !argument.starts_with('-'))
            .collect(),
    );
    let folder = tempfile::tempdir().unwrap();
    every_state(&wanted, folder.path());
    symmetry(&wanted, folder.path());
    file_to_verdict(&wanted, folder.path());
}

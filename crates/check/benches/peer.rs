//! The checker beside Rumur, one thread each, in the same run. `cargo bench -p cohkit-check --bench peer -- WORD`
//! measures the models whose names, written `TABLE/NAME`, contain the word.
//!
//! Rumur generates C, compiled here with `-O3`. Four tables:
//!
//! - *every state*: no symmetry reduction on either side, the same safety properties; the compilation of Rumur's C is
//!   not timed. The table also shows the memory per state, by the search's own account and by the growth of the
//!   process's peak resident set.
//! - *two threads*: speed of two threads on one model, relative to two independent searches with one thread each; the
//!   runs alternate.
//! - *symmetry*: from the start of the search to the verdict, ours exact, theirs in its default (heuristic);
//!   compilation excluded on both sides.
//! - *file to verdict*: small models as a user would check them, everything included, defaults on both sides.
//!
//! Both sides run equally often, and the fastest run counts. Without Rumur only our own speed is printed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use cohkit_check::system;
use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::report::{check, Outcome, Report};
use cohkit_engine::search::Options;
use cohkit_murphi::{print, read, rumur_options, Dialect, Style};
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text;

use cohkit_testing::models;

/// The model of a system of a shipped protocol.
fn shipped(protocol: &str, system: &str) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let text = std::fs::read_to_string(folder.join(format!("{protocol}.coh"))).unwrap();
    let protocol = text::parse(&text).unwrap();
    let system = protocol.systems.iter().find(|s| s.name == system).unwrap();
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(&protocol).ok().unwrap();
            match system.remotes.total() {
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

/// Number of runs of searches that take seconds.
const FEW: usize = 3;
/// Number of runs of searches that take a fraction of a second.
const SEVERAL: usize = 9;

/// The smaller of two measurements, with its data.
fn lesser<T>(a: (f64, T), b: (f64, T)) -> (f64, T) {
    match b.0 < a.0 {
        true => b,
        false => a,
    }
}

/// The smallest of several measurements of each side. The runs alternate.
fn least_of_both<T>(
    runs: usize,
    mut ours: impl FnMut() -> (f64, T),
    theirs: &Option<Checker>,
) -> ((f64, T), Option<(f64, u64)>) {
    let mut turn = || (ours(), theirs.as_ref().and_then(Checker::run));
    let first = turn();
    (1..runs).fold(first, |best, _| {
        let next = turn();
        let theirs = best.1.zip(next.1).map(|(a, b)| lesser(a, b));
        (lesser(best.0, next.0), theirs)
    })
}

/// A checker that Rumur has generated from a model.
struct Checker {
    /// Seconds to generate and to compile the C.
    prepared: f64,
    /// The compiled checker.
    file: PathBuf,
}

impl Checker {
    /// Generates and compiles a checker. `None` if Rumur is missing or rejects the model.
    fn of(text: &Path, options: &[&str], folder: &Path) -> Option<Checker> {
        let (c, file) = (folder.join("m.c"), folder.join("m"));
        let start = Instant::now();
        let mut generate = Command::new("rumur");
        generate.args(options).args(["--threads", "1", "--output"]);
        let generated = generate.arg(&c).arg(text).status().ok()?.success();
        let mut compile = Command::new("cc");
        compile.args(["-O3", "-w", "-o"]);
        compile.arg(&file).arg(&c).arg("-lpthread");
        let compiled = generated && compile.status().ok()?.success();
        compiled.then(|| Checker {
            prepared: start.elapsed().as_secs_f64(),
            file,
        })
    }

    /// A checker of our export of a model, without symmetry reduction.
    fn of_all(model: &Model, folder: &Path) -> Option<Checker> {
        let text = folder.join("m.m");
        std::fs::write(&text, print(model, Style::Plain).ok()?).ok()?;
        Checker::of(&text, &rumur_options(model, Style::Plain), folder)
    }

    /// A checker of a model with one state, which only starts and ends.
    fn of_nothing(folder: &Path) -> Option<Checker> {
        let text = folder.join("nothing.m");
        let nothing = "var x: boolean; startstate begin x := true; end; rule begin x := true; end;";
        std::fs::write(&text, nothing).ok()?;
        Checker::of(&text, &["--deadlock-detection", "off"], folder)
    }

    /// Run time in seconds, and the number of states found.
    fn run(&self) -> Option<(f64, u64)> {
        let start = Instant::now();
        let output = Command::new(&self.file).output().ok()?;
        let seconds = start.elapsed().as_secs_f64();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = output.split_whitespace().collect();
        let states = words.windows(2).find(|pair| pair[1] == "states,")?[0];
        Some((seconds, states.parse().ok()?))
    }
}

/// Run time of our search in seconds, including compilation, and its report.
fn ours(model: &Model, threads: usize, symmetry: bool) -> (f64, Report) {
    let (seconds, (_, report)) = ours_apart(model, threads, symmetry);
    (seconds, report)
}

/// Run time in seconds, the share of compilation, and the report.
fn ours_apart(model: &Model, threads: usize, symmetry: bool) -> (f64, (f64, Report)) {
    let compiling = AtomicU64::new(0);
    let options = Options {
        threads,
        decompose: false,
        symmetry,
        compiling: Some(&compiling),
        ..Options::default()
    };
    let start = Instant::now();
    let report = check(model, &options).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    (seconds, (compiling.into_inner() as f64 / 1e9, report))
}

/// Run time in seconds of two parallel searches with one thread each.
fn side_by_side(model: &Model) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let second_search = scope.spawn(|| ours(model, 1, false));
        ours(model, 1, false);
        second_search.join().unwrap();
    });
    start.elapsed().as_secs_f64()
}

/// Ratios of a table.
#[derive(Default)]
struct Ratios(Vec<f64>);

impl Ratios {
    /// Adds a ratio of run times, theirs to ours. Returns it as text.
    fn add(&mut self, ours: f64, theirs: f64) -> String {
        self.0.push(theirs / ours);
        format!("{:>7.1}", theirs / ours)
    }

    /// Prints the geometric mean and the minimum of the ratios.
    fn print_summary(&self, note: &str) {
        if self.0.is_empty() {
            return;
        }
        println!("{note}");
        let sum: f64 = self.0.iter().map(|ratio| ratio.ln()).sum();
        let minimum = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = (sum / self.0.len() as f64).exp();
        println!("times as fast: {mean:.1} by geometric mean, {minimum:.1} at least\n");
    }
}

/// Selection of the models to measure.
struct Wanted(Vec<String>);

impl Wanted {
    fn selects(&self, table: &str, name: &str) -> bool {
        let path = format!("{table}/{name}");
        self.0.is_empty() || self.0.iter().any(|part| path.contains(part.as_str()))
    }
}

/// Models of the table *every state*.
const EVERY_STATE: [&str; 14] = [
    "Peterson, 6 processes",
    "five token rings",
    "eci two_cpus",
    "msi two_lines",
    "mesi two_lines",
    "moesi two_lines",
    "mcs_lock",
    "mcs_lock_exchange",
    "clh_lock_5",
    "german_4",
    "flash_4",
    "filter_6",
    "paxos",
    "network_slots",
];

/// The model of a name in [`EVERY_STATE`].
fn every_state_of(name: &str) -> Model {
    let mut model = match (name, name.split_once(' ')) {
        ("Peterson, 6 processes", _) => models::peterson(6),
        ("five token rings", _) => models::copies(5, false),
        (_, Some((protocol, system))) => shipped(protocol, system),
        (_, None) => library(name),
    };
    // The plain export checks only safety, so this search does too.
    model.quiescent = None;
    model.deadlock = Deadlock::Off;
    model
}

/// Peak resident set of this process, in bytes; `None` if the operating system does not report it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Prints by how many bytes the search of every state raises the peak, in the process that [`growth`] starts.
fn print_growth(name: &str) {
    let model = every_state_of(name);
    let peak_before = peak();
    ours(&model, 1, false);
    if let (Some(peak_before), Some(peak_after)) = (peak_before, peak()) {
        print!("{}", peak_after - peak_before);
    }
}

/// Growth of a process's peak by the search of every state, in bytes, measured in a process of its own.
fn growth(name: &str) -> Option<f64> {
    let mut child = Command::new(std::env::current_exe().ok()?);
    let output = child.args([GROWTH, name]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.parse().ok()
}

/// Prints the table *every state*.
fn every_state(wanted: &Wanted, folder: &Path) {
    println!(
        "{:22}{:>9}{:>8}{:>8}{:>9}{:>9}{:>9}{:>7}",
        "every state", "states", "bytes", "peak", "ours", "M/s", "rumur", "ratio"
    );
    let mut ratios = Ratios::default();
    for name in EVERY_STATE {
        if !wanted.selects("every state", name) {
            continue;
        }
        let model = every_state_of(name);
        let checker = Checker::of_all(&model, folder);
        let ((seconds, report), theirs) = least_of_both(FEW, || ours(&model, 1, false), &checker);
        assert!(matches!(report.outcome, Outcome::Verified));
        let per_state = |bytes: f64| format!("{:.1}", bytes / report.states as f64);
        let peak = growth(name).map_or("-".into(), per_state);
        let comparison = match theirs {
            None => format!("{:>9}{:>7}", "-", ""),
            Some((theirs, states)) => {
                assert_eq!(u128::from(states), report.states, "both explore the same");
                format!("{theirs:>7.2} s{}", ratios.add(seconds, theirs))
            }
        };
        println!(
            "{name:22}{:>9}{:>8}{peak:>8}{seconds:>7.2} s{:>9.2}{comparison}",
            report.states,
            per_state(report.memory as f64),
            report.states as f64 / seconds / 1e6,
        );
    }
    ratios.print_summary(
        "bytes per state by the search's own account of states and table, and at the peak of a process;\n\
         compilation is left out of Rumur's time alone",
    );
}

/// Prints the table *two threads*.
fn two_threads(wanted: &Wanted) {
    println!(
        "{:22}{:>9}{:>9}{:>13}{:>13}{:>9}",
        "two threads", "states", "one", "two searches", "two threads", "share"
    );
    for name in EVERY_STATE {
        if !wanted.selects("two threads", name) {
            continue;
        }
        let model = every_state_of(name);
        let ((serial, report), (independent, ()), (together, same)) = (0..SEVERAL)
            .map(|_| {
                (
                    ours(&model, 1, false),
                    (side_by_side(&model), ()),
                    ours(&model, 2, false),
                )
            })
            .reduce(|best, next| {
                (
                    lesser(best.0, next.0),
                    lesser(best.1, next.1),
                    lesser(best.2, next.2),
                )
            })
            .unwrap();
        assert_eq!(same, report, "any number of threads gives the same report");
        println!(
            "{name:22}{:>9}{serial:>7.2} s{independent:>11.2} s{together:>11.2} s{:>7.0} %",
            report.states,
            independent / together / 2.0 * 100.0,
        );
    }
    println!();
}

/// Prints the table *symmetry*: one state of each orbit, as either side does it by default.
fn symmetry(wanted: &Wanted, folder: &Path) {
    println!(
        "{:22}{:>9}{:>10}{:>11}{:>11}{:>11}{:>9}",
        "symmetry", "orbits", "ours", "compiling", "theirs", "rumur", "ratio"
    );
    let mut ratios = Ratios::default();
    // The time to start and end a process is not part of the search.
    let overhead = Checker::of_nothing(folder)
        .and_then(|checker| least_of_both(SEVERAL, || (0.0, ()), &Some(checker)).1)
        .map_or(0.0, |(seconds, _)| seconds);
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
        if !wanted.selects("symmetry", name) {
            continue;
        }
        let model = library(name);
        let checker = Checker::of(&library_file(name), &[], folder);
        let search = || {
            let (seconds, (compiling, report)) = ours_apart(&model, 1, true);
            (seconds - compiling, (compiling, report))
        };
        let ((seconds, (compiling, report)), theirs) = least_of_both(SEVERAL, search, &checker);
        assert!(matches!(report.outcome, Outcome::Verified) && report.symmetric);
        let comparison = match theirs {
            None => format!("{:>11}", "-"),
            Some((theirs, states)) => {
                let theirs = theirs - overhead;
                let ratio = ratios.add(seconds, theirs);
                format!("{states:>11}{theirs:>9.4} s{ratio:>9}")
            }
        };
        println!(
            "{name:22}{:>9}{seconds:>8.4} s{compiling:>9.4} s{comparison}",
            report.states
        );
    }
    ratios.print_summary(&format!(
        "compilation is left out on both sides: here what is done once for a model, and machine code; there\n\
         the generation of C and its compilation, and the {overhead:.4} s in which a process begins and ends"
    ));
}

/// Prints the table *file to verdict*.
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
        if !wanted.selects("file to verdict", name) {
            continue;
        }
        let checker = Checker::of(&library_file(name), &[], folder);
        let check = || {
            let start = Instant::now();
            let (_, report) = ours(&library(name), 1, true);
            (start.elapsed().as_secs_f64(), report)
        };
        let ((seconds, report), theirs) = least_of_both(SEVERAL, check, &checker);
        let comparison = match (checker, theirs) {
            (Some(checker), Some((theirs, _))) => {
                let total = checker.prepared + theirs;
                format!("{total:>10.3} s{:>9}", ratios.add(seconds, total))
            }
            _ => format!("{:>12}", "-"),
        };
        println!("{name:22}{:>9}{seconds:>8.4} s{comparison}", report.states);
    }
    ratios.print_summary("compilation is in it on both sides");
}

/// The argument with which [`growth`] starts a process.
const GROWTH: &str = "--growth";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [GROWTH, name] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return print_growth(name);
    }
    let words = arguments.into_iter();
    let wanted = Wanted(words.filter(|word| !word.starts_with('-')).collect());
    let folder = tempfile::tempdir().unwrap();
    every_state(&wanted, folder.path());
    two_threads(&wanted);
    symmetry(&wanted, folder.path());
    file_to_verdict(&wanted, folder.path());
}

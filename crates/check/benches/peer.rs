//! The checker beside Rumur and SPIN, one thread each, in the same run. `cargo bench -p cohkit-check --bench peer -- WORD`
//! measures the models whose names, written `TABLE/NAME`, contain the word.
//!
//! Rumur and SPIN generate C, compiled here with `-O3`. Six tables:
//!
//! - *every state*: no symmetry reduction on either side, the same safety properties; the compilation of Rumur's C is
//!   not timed. The table also shows the memory per state, by the search's own account and by the growth of the
//!   process's peak resident set.
//! - *two threads*: speed of two threads on one model, relative to two independent searches with one thread each; the
//!   runs alternate.
//! - *symmetry*: from the start of the search to the verdict, ours exact, theirs in its default (heuristic);
//!   compilation excluded on both sides.
//! - *styles*: the models of `models/bench`, with symmetry on both sides, in processor time: our time from the file to
//!   the verdict, relative to the same of Rumur and to its search alone. Rumur reads no multisets; those models are
//!   measured for our side only.
//! - *SPIN*: see the module `spin`.
//! - *file to verdict*: small models as a user would check them, everything included, defaults on both sides.
//!
//! Both sides run equally often, and the fastest run counts. Without Rumur or SPIN only our own speed is printed.

#[path = "peer/spin.rs"]
mod spin;

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
    let system = protocol
        .systems
        .iter()
        .find(|declared| declared.name == system)
        .unwrap();
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

/// File of a model of the library.
fn library_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../models/{name}.m"))
}

/// Number of runs of searches that take seconds.
const RUNS_OF_LONG_SEARCHES: usize = 3;
/// Number of runs of searches that take a fraction of a second.
const RUNS_OF_SHORT_SEARCHES: usize = 9;

/// A measurement of a run.
#[derive(Clone, Copy)]
struct Measurement<T> {
    /// Run time, in seconds.
    seconds: f64,
    /// Result of the run.
    result: T,
}

impl<T> Measurement<T> {
    /// The faster one of two measurements.
    fn faster(self, other: Measurement<T>) -> Measurement<T> {
        match other.seconds < self.seconds {
            true => other,
            false => self,
        }
    }
}

/// The fastest run of each side.
struct FastestRuns<T> {
    /// Our search.
    ours: Measurement<T>,
    /// Rumur's checker, with the number of states that it finds. `None` without Rumur.
    theirs: Option<Measurement<u64>>,
}

/// Measures both sides several times, alternately.
fn fastest_of_both<T>(
    runs: usize,
    mut ours: impl FnMut() -> Measurement<T>,
    theirs: &Option<Checker>,
) -> FastestRuns<T> {
    let mut turn = || FastestRuns {
        ours: ours(),
        theirs: theirs.as_ref().and_then(Checker::run),
    };
    let first = turn();
    (1..runs).fold(first, |fastest, _| {
        let next = turn();
        let theirs = fastest.theirs.zip(next.theirs);
        FastestRuns {
            ours: fastest.ours.faster(next.ours),
            theirs: theirs.map(|(theirs, other)| theirs.faster(other)),
        }
    })
}

/// A checker that Rumur has generated from a model.
struct Checker {
    /// Time to generate and to compile the C, in seconds.
    preparation_seconds: f64,
    /// The compiled checker.
    file: PathBuf,
}

impl Checker {
    /// Generates and compiles a checker. `None` if Rumur is missing or rejects the model.
    fn of(text: &Path, options: &[&str], folder: &Path) -> Option<Checker> {
        let (source, file) = (folder.join("m.c"), folder.join("m"));
        let start = Instant::now();
        let mut generate = Command::new("rumur");
        generate.args(options).args(["--threads", "1", "--output"]);
        let generated = generate.arg(&source).arg(text).status().ok()?.success();
        let mut compile = Command::new("cc");
        compile.args(["-O3", "-w", "-o"]);
        compile.arg(&file).arg(&source).arg("-lpthread");
        let compiled = generated && compile.status().ok()?.success();
        compiled.then(|| Checker {
            preparation_seconds: start.elapsed().as_secs_f64(),
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

    /// Runs the checker. Returns the number of states that it finds.
    fn run(&self) -> Option<Measurement<u64>> {
        let start = Instant::now();
        let output = Command::new(&self.file).output().ok()?;
        let seconds = start.elapsed().as_secs_f64();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = output.split_whitespace().collect();
        // Rumur prints `N states, N rules fired in N s`.
        let states = words.windows(2).find(|pair| pair[1] == "states,")?[0];
        let result = states.parse().ok()?;
        Some(Measurement { seconds, result })
    }
}

/// Result of our search.
struct SearchResult {
    /// Part of the run time that compilation to machine code takes, in seconds.
    compilation_seconds: f64,
    /// Report of the search.
    report: Report,
}

/// Searches every state, including compilation.
fn search_every_state(model: &Model, threads: usize) -> Measurement<Report> {
    let search = search(model, threads, false);
    Measurement {
        seconds: search.seconds,
        result: search.result.report,
    }
}

/// Searches with one thread, up to symmetry if the model allows it.
fn search_up_to_symmetry(model: &Model) -> Measurement<SearchResult> {
    search(model, 1, true)
}

/// Searches a model, with or without symmetry reduction.
fn search(model: &Model, threads: usize, symmetry: bool) -> Measurement<SearchResult> {
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
    let result = SearchResult {
        // The engine counts nanoseconds.
        compilation_seconds: compiling.into_inner() as f64 / 1e9,
        report,
    };
    Measurement { seconds, result }
}

/// Run time in seconds of two parallel searches with one thread each.
fn side_by_side(model: &Model) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let second_search = scope.spawn(|| search_every_state(model, 1));
        search_every_state(model, 1);
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

/// Selection of the models to measure: those whose names contain one of these words, or all without words.
struct Selection(Vec<String>);

impl Selection {
    /// True if a model of a table is selected.
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
fn peak_memory() -> Option<u64> {
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
    let peak_before = peak_memory();
    search_every_state(&model, 1);
    if let (Some(peak_before), Some(peak_after)) = (peak_before, peak_memory()) {
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
fn every_state(selection: &Selection, folder: &Path) {
    println!(
        "{:22}{:>9}{:>8}{:>8}{:>9}{:>9}{:>9}{:>7}",
        "every state", "states", "bytes", "peak", "ours", "M/s", "rumur", "ratio"
    );
    let mut ratios = Ratios::default();
    for name in EVERY_STATE {
        if !selection.selects("every state", name) {
            continue;
        }
        let model = every_state_of(name);
        let checker = Checker::of_all(&model, folder);
        let search = || search_every_state(&model, 1);
        let FastestRuns { ours, theirs } = fastest_of_both(RUNS_OF_LONG_SEARCHES, search, &checker);
        let (seconds, report) = (ours.seconds, ours.result);
        assert!(matches!(report.outcome, Outcome::Verified));
        let per_state = |bytes: f64| format!("{:.1}", bytes / report.states as f64);
        let peak = growth(name).map_or("-".into(), per_state);
        let comparison = match theirs {
            None => format!("{:>9}{:>7}", "-", ""),
            Some(theirs) => {
                let states = u128::from(theirs.result);
                assert_eq!(states, report.states, "both explore the same");
                let ratio = ratios.add(seconds, theirs.seconds);
                format!("{:>7.2} s{ratio}", theirs.seconds)
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
fn two_threads(selection: &Selection) {
    println!(
        "{:22}{:>9}{:>9}{:>13}{:>13}{:>9}",
        "two threads", "states", "one", "two searches", "two threads", "share"
    );
    for name in EVERY_STATE {
        if !selection.selects("two threads", name) {
            continue;
        }
        let model = every_state_of(name);
        let turn = || {
            (
                search_every_state(&model, 1),
                side_by_side(&model),
                search_every_state(&model, 2),
            )
        };
        let (mut serial, mut independent, mut together) = turn();
        for _ in 1..RUNS_OF_SHORT_SEARCHES {
            let (other_serial, other_independent, other_together) = turn();
            serial = serial.faster(other_serial);
            independent = independent.min(other_independent);
            together = together.faster(other_together);
        }
        let report = &serial.result;
        assert_eq!(
            together.result, *report,
            "any number of threads gives the same report"
        );
        println!(
            "{name:22}{:>9}{:>7.2} s{independent:>11.2} s{:>11.2} s{:>7.0} %",
            report.states,
            serial.seconds,
            together.seconds,
            independent / together.seconds / 2.0 * 100.0,
        );
    }
    println!();
}

/// Prints the table *symmetry*: one state of each orbit, as either side does it by default.
fn symmetry(selection: &Selection, folder: &Path) {
    println!(
        "{:22}{:>9}{:>10}{:>11}{:>11}{:>11}{:>9}",
        "symmetry", "orbits", "ours", "compiling", "theirs", "rumur", "ratio"
    );
    let mut ratios = Ratios::default();
    // The time to start and end a process is not part of the search.
    let overhead = Checker::of_nothing(folder)
        .and_then(|checker| {
            let runs = (0..RUNS_OF_SHORT_SEARCHES).map(|_| checker.run());
            runs.reduce(|fastest, next| Some(fastest?.faster(next?)))?
        })
        .map_or(0.0, |fastest| fastest.seconds);
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
        if !selection.selects("symmetry", name) {
            continue;
        }
        let model = library(name);
        let checker = Checker::of(&library_file(name), &[], folder);
        let search = || {
            let mut measurement = search_up_to_symmetry(&model);
            measurement.seconds -= measurement.result.compilation_seconds;
            measurement
        };
        let FastestRuns { ours, theirs } =
            fastest_of_both(RUNS_OF_SHORT_SEARCHES, search, &checker);
        let seconds = ours.seconds;
        let SearchResult {
            compilation_seconds,
            report,
        } = ours.result;
        assert!(matches!(report.outcome, Outcome::Verified) && report.symmetric);
        let comparison = match theirs {
            None => format!("{:>11}", "-"),
            Some(theirs) => {
                let search_seconds = theirs.seconds - overhead;
                let ratio = ratios.add(seconds, search_seconds);
                format!("{:>11}{search_seconds:>9.4} s{ratio:>9}", theirs.result)
            }
        };
        println!(
            "{name:22}{:>9}{seconds:>8.4} s{compilation_seconds:>9.4} s{comparison}",
            report.states
        );
    }
    ratios.print_summary(&format!(
        "compilation is left out on both sides: here what is done once for a model, and machine code; there\n\
         the generation of C and its compilation, and the {overhead:.4} s in which a process begins and ends"
    ));
}

/// Prints the table *file to verdict*.
fn file_to_verdict(selection: &Selection, folder: &Path) {
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
        if !selection.selects("file to verdict", name) {
            continue;
        }
        let checker = Checker::of(&library_file(name), &[], folder);
        let check = || {
            let start = Instant::now();
            let report = search_up_to_symmetry(&library(name)).result.report;
            Measurement {
                seconds: start.elapsed().as_secs_f64(),
                result: report,
            }
        };
        let FastestRuns { ours, theirs } = fastest_of_both(RUNS_OF_SHORT_SEARCHES, check, &checker);
        let (seconds, report) = (ours.seconds, ours.result);
        let comparison = match (checker, theirs) {
            (Some(checker), Some(theirs)) => {
                let total = checker.preparation_seconds + theirs.seconds;
                format!("{total:>10.3} s{:>9}", ratios.add(seconds, total))
            }
            _ => format!("{:>12}", "-"),
        };
        println!("{name:22}{:>9}{seconds:>8.4} s{comparison}", report.states);
    }
    ratios.print_summary("compilation is in it on both sides");
}

/// Processor time of this process or of its children that have ended, in seconds.
#[allow(unsafe_code)]
fn processor_seconds(whose: libc::c_int) -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is writable, and all of its fields may be zero.
    let usage = unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Runs `work`, and returns its processor time with its result.
fn in_processor_time<T>(whose: libc::c_int, work: impl FnOnce() -> T) -> Measurement<T> {
    let start = processor_seconds(whose);
    let result = work();
    let seconds = processor_seconds(whose) - start;
    Measurement { seconds, result }
}

/// Processor times of Rumur on one model, in seconds.
struct ProcessorTimes {
    /// From the file to the verdict, compilation included.
    verdict: f64,
    /// Search alone.
    search: f64,
    /// Number of states found.
    states: u128,
}

/// Our processor time on a model of `models/bench`, from the file to the verdict, and the number of states: the least
/// time of several runs.
fn our_time(file: &Path) -> Measurement<u128> {
    let run = |_| {
        in_processor_time(libc::RUSAGE_SELF, || {
            let text = std::fs::read_to_string(file).unwrap();
            let model = read("model", &text, Dialect::Any);
            let model = model.unwrap_or_else(|_| panic!("{file:?}")).model;
            let report = search_up_to_symmetry(&model).result.report;
            assert_eq!(report.outcome, Outcome::Verified, "{file:?}");
            report.states
        })
    };
    let runs = (0..RUNS_OF_SHORT_SEARCHES).map(run);
    runs.reduce(Measurement::faster).unwrap()
}

/// Rumur's processor times on a model; `None` if it is missing or does not read the model.
fn rumur_times(file: &Path, folder: &Path) -> Option<ProcessorTimes> {
    let children = libc::RUSAGE_CHILDREN;
    let preparation = in_processor_time(children, || Checker::of(file, &[], folder));
    let checker = preparation.result?;
    let runs = (0..RUNS_OF_SHORT_SEARCHES).map(|_| in_processor_time(children, || checker.run()));
    let fastest = runs.reduce(Measurement::faster)?;
    Some(ProcessorTimes {
        verdict: preparation.seconds + fastest.seconds,
        search: fastest.seconds,
        states: fastest.result?.result.into(),
    })
}

/// Prints the table *styles*.
fn styles(selection: &Selection, folder: &Path) {
    println!(
        "{:22}{:>9}{:>11}{:>9}{:>11}{:>11}{:>9}{:>9}",
        "styles", "orbits", "verdict", "theirs", "verdict", "search", "ratio", "ratio"
    );
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/bench");
    let files = std::fs::read_dir(models).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "m"))
        .collect();
    files.sort();
    let (mut verdicts, mut searches) = (Ratios::default(), Ratios::default());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if !selection.selects("styles", &name) {
            continue;
        }
        let ours = our_time(&file);
        let comparison = match rumur_times(&file, folder) {
            None => format!("{:>9}", "-"),
            Some(theirs) => format!(
                "{:>9}{:>9.4} s{:>9.4} s{:>9}{:>9}",
                theirs.states,
                theirs.verdict,
                theirs.search,
                verdicts.add(ours.seconds, theirs.verdict),
                searches.add(ours.seconds, theirs.search),
            ),
        };
        println!(
            "{name:22}{:>9}{:>9.4} s{comparison}",
            ours.result, ours.seconds
        );
    }
    verdicts.print_summary("from the file to the verdict, in processor time, compilation included");
    searches.print_summary(
        "the same time of ours, compilation included, relative to Rumur's search without compilation",
    );
}

/// The argument with which [`growth`] starts a process.
const GROWTH: &str = "--growth";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [GROWTH, name] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return print_growth(name);
    }
    let words = arguments.into_iter();
    let selection = Selection(words.filter(|word| !word.starts_with('-')).collect());
    let folder = tempfile::tempdir().unwrap();
    every_state(&selection, folder.path());
    two_threads(&selection);
    symmetry(&selection, folder.path());
    styles(&selection, folder.path());
    spin::print_table(&selection, folder.path());
    file_to_verdict(&selection, folder.path());
}

//! Runs all files of `litmus/shapes` on all protocols of `ordering`. Only `mp` shows outcomes that its guaranteed model
//! forbids, and only on the listed files. The last line of the output is the result as JSON.
//!
//! * `--every-placement` runs every placement of locations at homes, which takes longer; otherwise locations are placed
//!   round robin.
//! * `--small-tables` runs only `cord` and `tso/cord`, with the parameters of their system `two`: one entry per table.
//! * `--mixes` runs every mix of store variants, on the protocols that have variants and keep their guarantee.
//! * `--only TEXT` runs one protocol.
//! * `--threads N` runs programs of at most N threads.

use cohkit_litmus::conformance_batch::{check_outcomes, BatchResult};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{Options, Placement};
use cohkit_litmus::shape_generator::{files, MP_VIOLATIONS, ORDERINGS};
use cohkit_litmus::store_variants;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
use cohkit_protocol::threads::Accesses;
use std::process::ExitCode;
use std::sync::Mutex;

/// Index of an ordering, and programs with the same number of threads and locations.
type Job = (usize, Vec<Program>);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = RunOptions::read(std::env::args().skip(1))?;
    let placement = options.placement;
    let texts = options.texts()?;
    let jobs = Mutex::new(jobs(&texts, &options)?);
    let results = Mutex::new(vec![BatchResult::default(); texts.len()]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> Result<(), String> {
        loop {
            let job = jobs.lock().expect("no worker panicked").pop();
            let Some((ordering, programs)) = job else {
                return Ok(());
            };
            let result = run_programs(&texts[ordering].1, &programs, placement)?;
            let total = &mut results.lock().expect("no worker panicked")[ordering];
            *total = std::mem::take(total).merge(result);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no worker panicked"))
    })?;
    let names: Vec<&str> = texts.iter().map(|(name, _)| *name).collect();
    print_results(
        &names,
        &results.into_inner().expect("no worker panicked"),
        &options,
    )
}

/// Command-line options.
struct RunOptions {
    /// Placement of the locations at the homes.
    placement: Placement,
    /// True to run the protocols with small tables.
    small: bool,
    /// True to run every mix of store variants.
    mixes: bool,
    /// Name of the only protocol to run; `None` runs all.
    only: Option<String>,
    /// Maximum number of threads of a program.
    threads: usize,
}

impl RunOptions {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<RunOptions, String> {
        let mut options = RunOptions {
            placement: Placement::RoundRobin,
            small: false,
            mixes: false,
            only: None,
            threads: usize::MAX,
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--every-placement" => options.placement = Placement::All,
                "--small-tables" => options.small = true,
                "--mixes" => options.mixes = true,
                "--only" => options.only = Some(arguments.next().ok_or("--only takes a text")?),
                "--threads" => {
                    let number = arguments.next().ok_or("--threads takes a number")?;
                    options.threads = number
                        .parse()
                        .map_err(|_| format!("`{number}` is no number"))?;
                }
                other => return Err(format!("there is no option `{other}`")),
            }
        }
        Ok(options)
    }

    /// Returns the protocols to run, with their names.
    fn texts(&self) -> Result<Vec<(&'static str, Protocol)>, String> {
        let mut texts = Vec::new();
        for (name, text) in ORDERINGS {
            let protocol = parse(text).expect("a protocol file");
            let keeps_guarantee = !matches!(name, "mp" | "tso/mp");
            let accesses = Accesses::of(&protocol);
            let has_variants = accesses
                .write_back
                .or(accesses.acknowledged_write)
                .is_some();
            let tables = name.ends_with("cord");
            let is_selected = self.only.as_ref().is_none_or(|only| only == name);
            if !is_selected
                || self.small && !tables
                || self.mixes && !(keeps_guarantee && has_variants)
            {
                continue;
            }
            let protocol = match self.small {
                false => protocol,
                true => {
                    let mut systems = protocol.systems.into_iter();
                    let two_line_system = systems.find(|system| system.name == "two");
                    let sized = two_line_system
                        .and_then(|two_line_system| two_line_system.resized_protocol);
                    Protocol::clone(&sized.expect("a system with small tables"))
                }
            };
            texts.push((name, protocol));
        }
        match texts.is_empty() {
            true => Err("no text is run".into()),
            false => Ok(texts),
        }
    }

    /// Returns the program, or with `--mixes` its variants on a protocol.
    fn programs(&self, protocol: &Protocol, program: Program) -> Vec<Program> {
        if program.threads.len() > self.threads {
            return Vec::new();
        }
        if !self.mixes {
            return vec![program];
        }
        let mixed = |mix: Vec<_>| Program {
            name: format!("{} {}", program.name, store_variants::format_mix(&mix)),
            ..store_variants::with_mix(&program, &mix)
        };
        let kinds = (program.threads.len() as u8).into();
        let mixes = store_variants::all_mixes(protocol, &kinds, &program).into_iter();
        mixes.map(mixed).collect()
    }
}

/// Returns the jobs, smallest first. Workers take them from the end, so the largest run first.
fn jobs(texts: &[(&str, Protocol)], options: &RunOptions) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    for (ordering, (_, protocol)) in texts.iter().enumerate() {
        let read = |file: cohkit_litmus::shape_generator::File| {
            herd::read(&file.text).map_err(|error| error.render(&file.path, &file.text, false))
        };
        let programs = files()?
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, _>>()?;
        let programs = programs.into_iter();
        let programs = programs.flat_map(|program| options.programs(protocol, program));
        let groups = Lines::groups(protocol, programs.collect()).into_iter();
        // Size of a job: all cores get some, and the cached system states fit in memory. Four threads have many.
        let parts = groups.flat_map(|group| {
            let is_small = group[0].threads.len() < 4;
            let parts = group.chunks(if is_small { 1000 } else { 1 });
            parts.map(<[_]>::to_vec).collect::<Vec<_>>()
        });
        jobs.extend(parts.map(|group| (ordering, group)));
    }
    jobs.sort_by_key(|(ordering, group)| {
        (group[0].threads.len(), group[0].locations.len(), *ordering)
    });
    Ok(jobs)
}

/// Runs programs of one size on a protocol, and compares their outcomes with its guaranteed model.
fn run_programs(
    protocol: &Protocol,
    programs: &[Program],
    placement: Placement,
) -> Result<BatchResult, String> {
    let Home::Controller(home) = &protocol.home else {
        return Err(format!("{} has no home of rows", protocol.name));
    };
    let Some(model) = protocol.guarantee.model else {
        return Err(format!("{} guarantees no memory model", protocol.name));
    };
    let options = Options {
        cores: CoreKind::Relaxed(protocol.program_order.unwrap_or_default()),
        max_spontaneous_evictions: 0,
        max_states: 100_000_000,
        placement,
        ..Options::default()
    };
    check_outcomes(protocol, home, programs, model, &options)
}

/// Prints the result. Returns an error if it is not the expected one.
fn print_results(
    names: &[&str],
    found: &[BatchResult],
    options: &RunOptions,
) -> Result<(), String> {
    let mut failures = Vec::new();
    let mut entries = Vec::new();
    for (name, found) in names.iter().zip(found) {
        let mut forbidden: Vec<&str> = found.forbidden.iter().map(String::as_str).collect();
        forbidden.sort_unstable();
        let expected: Vec<&str> = match *name {
            "mp" => MP_VIOLATIONS.lines().collect(),
            _ => Vec::new(),
        };
        let as_expected = match *name {
            // `tso/mp` serves as a bound and does not keep its guarantee. Its forbidden outcomes are only counted.
            "tso/mp" => true,
            _ if options.threads < usize::MAX => {
                forbidden.iter().all(|name| expected.contains(name))
            }
            _ => forbidden == expected,
        };
        if !as_expected {
            failures.push(format!("{name} shows\n{}", forbidden.join("\n")));
        }
        let (programs, states, forbidden) = (found.programs, found.states, forbidden.len());
        entries.push(format!(
            r#""{name}": {{"programs": {programs}, "states": {states}, "forbidden": {forbidden}}}"#
        ));
    }
    println!("{{{}}}", entries.join(", "));
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

//! Runs all files of `litmus/shapes` on all protocols of `ordering`. Only `mp` shows outcomes that its guaranteed model
//! forbids, and only on the listed files. The last line of the output is the result as JSON.
//!
//! * `--every-placement` runs every placement of locations at homes, which takes longer; otherwise locations are placed
//!   round robin.
//! * `--small-tables` runs only `cord` and `tso/cord`, with the parameters of their system `two`: one entry per table.
//! * `--mixes` runs every mix of store variants, on the protocols that have variants and keep their guarantee.
//! * `--only TEXT` runs one protocol.
//! * `--threads N` runs programs of at most N threads.

use cohkit_litmus::conformance_batch::{compared, BatchResult};
use cohkit_litmus::cores::Cores;
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
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let asked = RunOptions::read(std::env::args().skip(1))?;
    let placed = asked.placed;
    let texts = asked.texts()?;
    let jobs = Mutex::new(jobs(&texts, &asked)?);
    let found = Mutex::new(vec![BatchResult::default(); texts.len()]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> Result<(), String> {
        loop {
            let job = jobs.lock().expect("nobody panics").pop();
            let Some((which, programs)) = job else {
                return Ok(());
            };
            let more = on(&texts[which].1, &programs, placed)?;
            let all = &mut found.lock().expect("nobody panics")[which];
            *all = std::mem::take(all).with(more);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    let names: Vec<&str> = texts.iter().map(|(name, _)| *name).collect();
    told(&names, &found.into_inner().expect("nobody panics"), &asked)
}

/// Command-line options.
struct RunOptions {
    placed: Placement,
    small: bool,
    mixes: bool,
    only: Option<String>,
    threads: usize,
}

impl RunOptions {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<RunOptions, String> {
        let mut asked = RunOptions {
            placed: Placement::InTurn,
            small: false,
            mixes: false,
            only: None,
            threads: usize::MAX,
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--every-placement" => asked.placed = Placement::InEveryWay,
                "--small-tables" => asked.small = true,
                "--mixes" => asked.mixes = true,
                "--only" => asked.only = Some(arguments.next().ok_or("--only takes a text")?),
                "--threads" => {
                    let given = arguments.next().ok_or("--threads takes a number")?;
                    asked.threads = given
                        .parse()
                        .map_err(|_| format!("`{given}` is no number"))?;
                }
                other => return Err(format!("there is no option `{other}`")),
            }
        }
        Ok(asked)
    }

    /// Returns the protocols to run, with their names.
    fn texts(&self) -> Result<Vec<(&'static str, Protocol)>, String> {
        let mut texts = Vec::new();
        for (name, text) in ORDERINGS {
            let protocol = parse(text).expect("a protocol file");
            let keeps = !matches!(name, "mp" | "tso/mp");
            let accesses = Accesses::of(&protocol);
            let several = accesses.back.or(accesses.acknowledged).is_some();
            let tables = name.ends_with("cord");
            let named = self.only.as_ref().is_none_or(|only| only == name);
            if !named || self.small && !tables || self.mixes && !(keeps && several) {
                continue;
            }
            let protocol = match self.small {
                false => protocol,
                true => {
                    let mut systems = protocol.systems.into_iter();
                    let two = systems.find(|system| system.name == "two");
                    let sized = two.and_then(|two| two.sized);
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
            name: format!("{} {}", program.name, store_variants::letters(&mix)),
            ..store_variants::mixed(&program, &mix)
        };
        let kinds = (program.threads.len() as u8).into();
        let every = store_variants::every(protocol, &kinds, &program).into_iter();
        every.map(mixed).collect()
    }
}

/// Returns the jobs, smallest first. Workers take them from the end, so the largest run first.
fn jobs(texts: &[(&str, Protocol)], asked: &RunOptions) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    for (which, (_, protocol)) in texts.iter().enumerate() {
        let read = |file: cohkit_litmus::shape_generator::File| {
            herd::read(&file.text).map_err(|error| error.render(&file.path, &file.text, false))
        };
        let programs = files()?
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, _>>()?;
        let programs = programs.into_iter();
        let programs = programs.flat_map(|program| asked.programs(protocol, program));
        let groups = Lines::groups(protocol, programs.collect()).into_iter();
        // Size of a job: all cores get some, and the cached worlds fit in memory. Four threads have many worlds.
        let parts = groups.flat_map(|group| {
            let few = group[0].threads.len() < 4;
            let parts = group.chunks(if few { 1000 } else { 1 });
            parts.map(<[_]>::to_vec).collect::<Vec<_>>()
        });
        jobs.extend(parts.map(|group| (which, group)));
    }
    jobs.sort_by_key(|(which, group)| (group[0].threads.len(), group[0].locations.len(), *which));
    Ok(jobs)
}

fn on(protocol: &Protocol, programs: &[Program], placed: Placement) -> Result<BatchResult, String> {
    let Home::Controller(home) = &protocol.home else {
        return Err(format!("{} has no home of rows", protocol.name));
    };
    let Some(model) = protocol.guarantee.model else {
        return Err(format!("{} guarantees no memory model", protocol.name));
    };
    let options = Options {
        cores: Cores::Relaxed(protocol.kept.unwrap_or_default()),
        gives_up: 0,
        most: 100_000_000,
        placed,
        ..Options::default()
    };
    compared(protocol, home, programs, model, &options)
}

/// Prints the result. Returns an error if it is not the expected one.
fn told(names: &[&str], found: &[BatchResult], asked: &RunOptions) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut shown = Vec::new();
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
            _ if asked.threads < usize::MAX => forbidden.iter().all(|name| expected.contains(name)),
            _ => forbidden == expected,
        };
        if !as_expected {
            wrong.push(format!("{name} shows\n{}", forbidden.join("\n")));
        }
        let (programs, states, forbidden) = (found.programs, found.states, forbidden.len());
        shown.push(format!(
            r#""{name}": {{"programs": {programs}, "states": {states}, "forbidden": {forbidden}}}"#
        ));
    }
    println!("{{{}}}", shown.join(", "));
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

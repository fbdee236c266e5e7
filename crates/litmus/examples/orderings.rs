//! All files of `litmus/shapes` on all orderings: what their texts forbid, by the model that they guarantee, is shown by `mp`
//! alone, and there by the files that are listed. The last line is what was found, as JSON.
//!
//! `--every-placement` puts locations at homes in every way, which takes longer; else they lie at one home after the other.
//! `--small-tables` runs them on `cord` and `tso/cord` alone, with the sizes of their systems `two`: of all tables one entry.
//! `--mixes` makes every write in every way that a text has, on the texts that keep what they guarantee and have several.
//! `--only TEXT` and `--threads N` run one text, and programs of so many threads at most.

use cohkit_litmus::breadth::{files, ORDERINGS, SHOWN_ON_MP};
use cohkit_litmus::compared::{compared, Compared};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::mixes;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{Options, Placed};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
use cohkit_protocol::threads::Accesses;
use std::process::ExitCode;
use std::sync::Mutex;

/// An ordering by its place, and programs of as many threads and locations.
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
    let asked = Asked::read(std::env::args().skip(1))?;
    let placed = asked.placed;
    let texts = asked.texts()?;
    let jobs = Mutex::new(jobs(&texts, &asked)?);
    let found = Mutex::new(vec![Compared::default(); texts.len()]);
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

/// What is run.
struct Asked {
    placed: Placed,
    small: bool,
    mixes: bool,
    only: Option<String>,
    threads: usize,
}

impl Asked {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
        let mut asked = Asked {
            placed: Placed::InTurn,
            small: false,
            mixes: false,
            only: None,
            threads: usize::MAX,
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--every-placement" => asked.placed = Placed::InEveryWay,
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

    /// The texts that are run, with their names.
    fn texts(&self) -> Result<Vec<(&'static str, Protocol)>, String> {
        let mut texts = Vec::new();
        for (name, text) in ORDERINGS {
            let protocol = parse(text).expect("a protocol text");
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

    /// A program, or what its mixes make of it on a text.
    fn programs(&self, protocol: &Protocol, program: Program) -> Vec<Program> {
        if program.threads.len() > self.threads {
            return Vec::new();
        }
        if !self.mixes {
            return vec![program];
        }
        let mixed = |mix: Vec<_>| Program {
            name: format!("{} {}", program.name, mixes::letters(&mix)),
            ..mixes::mixed(&program, &mix)
        };
        let kinds = (program.threads.len() as u8).into();
        let every = mixes::every(protocol, &kinds, &program).into_iter();
        every.map(mixed).collect()
    }
}

/// The last ones are the largest, and are done first.
fn jobs(texts: &[(&str, Protocol)], asked: &Asked) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    for (which, (_, protocol)) in texts.iter().enumerate() {
        let read = |file: cohkit_litmus::breadth::File| {
            herd::read(&file.text).map_err(|error| error.render(&file.path, &file.text, false))
        };
        let programs = files()?
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, _>>()?;
        let programs = programs.into_iter();
        let programs = programs.flat_map(|program| asked.programs(protocol, program));
        let groups = Lines::groups(protocol, programs.collect()).into_iter();
        // So many at a time that all cores have some, and that what is known of worlds has room: of four threads it is much.
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

fn on(protocol: &Protocol, programs: &[Program], placed: Placed) -> Result<Compared, String> {
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

/// Says what was found, and whether it is what was expected.
fn told(names: &[&str], found: &[Compared], asked: &Asked) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut shown = Vec::new();
    for (name, found) in names.iter().zip(found) {
        let mut forbidden: Vec<&str> = found.forbidden.iter().map(String::as_str).collect();
        forbidden.sort_unstable();
        let expected: Vec<&str> = match *name {
            "mp" => SHOWN_ON_MP.lines().collect(),
            _ => Vec::new(),
        };
        let as_expected = match *name {
            // What it shows of total store order is counted: it is a bound, and promises that in vain.
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

//! All files of `litmus/shapes` on all orderings: what their texts forbid, by the model that they guarantee, is shown by `mp`
//! alone, and there by the files that are listed. The last line is what was found, as JSON.
//!
//! `--every-placement` puts locations at homes in every way, which takes longer; else they lie at one home after the other.

use cohkit_litmus::breadth::{files, ORDERINGS, SHOWN_ON_MP};
use cohkit_litmus::compared::{compared, Compared};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{Options, Placed};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
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
    let every = std::env::args().any(|argument| argument == "--every-placement");
    let placed = if every {
        Placed::InEveryWay
    } else {
        Placed::InTurn
    };
    let texts = ORDERINGS.map(|(name, text)| (name, parse(text).expect("a protocol text")));
    let jobs = Mutex::new(jobs(&texts.each_ref().map(|(_, protocol)| protocol))?);
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
    told(
        &texts.map(|(name, _)| name),
        &found.into_inner().expect("nobody panics"),
    )
}

/// The last ones are the largest, and are done first.
fn jobs(texts: &[&Protocol]) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    for (which, protocol) in texts.iter().enumerate() {
        let read = |file: cohkit_litmus::breadth::File| {
            herd::read(&file.text).map_err(|error| error.render(&file.path, &file.text, false))
        };
        let programs = files()?
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, _>>()?;
        let groups = Lines::groups(protocol, programs).into_iter();
        jobs.extend(groups.map(|group| (which, group)));
    }
    jobs.sort_by_key(|(which, group)| (group[0].threads.len(), group[0].locations.len(), *which));
    Ok(jobs)
}

fn on(protocol: &Protocol, programs: &[Program], placed: Placed) -> Result<Compared, String> {
    let Home::Controller(home) = &protocol.home else {
        return Err(format!("{} has no home of rows", protocol.name));
    };
    let Some(model) = protocol.guarantee else {
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
fn told(names: &[&str], found: &[Compared]) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut shown = Vec::new();
    for (name, found) in names.iter().zip(found) {
        let mut forbidden: Vec<&str> = found.forbidden.iter().map(String::as_str).collect();
        forbidden.sort_unstable();
        let expected: Vec<&str> = match *name {
            "mp" => SHOWN_ON_MP.lines().collect(),
            _ => Vec::new(),
        };
        if forbidden != expected {
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

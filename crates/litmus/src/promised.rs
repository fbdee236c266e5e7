//! Whether the classic programs find on a text's caches the memory model that the text promises.

use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::world::Wrong;
use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::axioms::{allowed, Model};
use crate::cores::Cores;
use crate::kinds::Kinds;
use crate::lines::Lines;
use crate::program::Program;
use crate::run::{run_on, Found, Options};
use crate::warm::judging;

/// What programs have found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promised {
    /// The model.
    pub model: Model,
    /// How many programs were run.
    pub programs: usize,
    /// States visited.
    pub states: usize,
    /// Programs that the caches have no way to run: atomic accesses where the home performs stores.
    pub left_out: usize,
    /// Programs that no thread of a kind can run: it has no row for an access that they need.
    pub lacking: usize,
    /// How that ended.
    pub ended: Ended,
}

/// How it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Each program shows only what the model allows.
    Holds,
    /// A program shows what it does not allow, or goes wrong.
    Broken {
        /// Its name.
        program: String,
        /// The kinds of remotes that its threads run on, if the text has several.
        kinds: Option<String>,
        /// What it shows.
        what: String,
    },
    /// Not all could be run to their ends.
    Undecided(String),
    /// It was told to stop.
    Interrupted,
}

/// Runs every classic program of at most so many threads, placed on kinds of remotes in every way, before cores that keep
/// the orders of the text's accesses; without these, before those that have the model of themselves. `home` gives the home of
/// so many caches; `goes_on` is asked now and then. `states` is how many states of each program are visited at most.
pub fn judge<'h>(
    protocol: &Protocol,
    model: Model,
    most: usize,
    states: Option<usize>,
    home: &dyn Fn(u16) -> Cow<'h, Controller>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Promised {
    let cores = match (protocol.kept, model) {
        (Some(orders), _) => Cores::Relaxed(orders),
        (None, Model::Sc) => Cores::InOrder,
        (None, Model::Tso) => Cores::StoreBuffer,
        (None, Model::Rc | Model::Armv8 | Model::RiscV) => Cores::Relaxed(Default::default()),
    };
    let mut found = Promised {
        model,
        programs: 0,
        states: 0,
        left_out: 0,
        lacking: 0,
        ended: Ended::Holds,
    };
    let programs = judging(protocol).into_iter();
    let programs = programs.filter(|program| program.threads.len() <= most);
    for programs in Lines::groups(protocol, programs.collect()) {
        let threads = programs[0].threads.len();
        let home = home(threads as u16);
        let locations = programs.iter().map(|program| program.locations.len());
        let locations = locations.max().unwrap_or(0) as u8;
        for (kinds, programs) in placed(protocol, programs) {
            let usual = Options::default();
            let mut options = Options {
                cores,
                most: states.map_or(usual.most, |states| states.min(usual.most)),
                ..usual
            };
            let room = options.room;
            let mut lines = Lines::new(protocol, &home, kinds.clone(), locations, room);
            for program in programs {
                // What caches give up by themselves makes states, and is there in the plain programs.
                let plain = threads < 3 || !program.name.contains('+');
                options.gives_up = u8::from(plain);
                let run = run_on(&mut lines, &program, &options, goes_on);
                match &run {
                    Found::Cannot(_) => {
                        found.left_out += 1;
                        continue;
                    }
                    Found::Lacks(_) if protocol.several_tables() => {
                        found.lacking += 1;
                        continue;
                    }
                    Found::Ends { states, .. } => found.states += states,
                    _ => {}
                }
                found.programs += 1;
                if let Some(ended) = end(run, &program, (protocol, &kinds), model) {
                    found.ended = ended;
                    return found;
                }
            }
        }
    }
    if found.programs == 0 {
        let none = "its caches have no way to run any of the programs";
        found.ended = Ended::Undecided(none.to_string());
    }
    found
}

/// The programs of each way of placing threads on kinds.
fn placed(protocol: &Protocol, programs: Vec<Program>) -> BTreeMap<Kinds, Vec<Program>> {
    let mut all: BTreeMap<Kinds, Vec<Program>> = BTreeMap::new();
    for program in programs {
        // Three threads have few ways.
        for kinds in Kinds::every(protocol, &program).unwrap_or_default() {
            all.entry(kinds).or_default().push(program.clone());
        }
    }
    all
}

/// What ends the work, if something does.
fn end(
    run: Found,
    program: &Program,
    (protocol, kinds): (&Protocol, &Kinds),
    model: Model,
) -> Option<Ended> {
    let kinds = || kinds.names(protocol).join(",");
    let broken = |what: String| {
        Some(Ended::Broken {
            program: program.name.clone(),
            kinds: protocol.several_tables().then(kinds),
            what,
        })
    };
    match run {
        Found::Ends { ends, .. } => {
            let allowed = match allowed(program, model) {
                Ok(allowed) => allowed,
                Err(what) => return Some(Ended::Undecided(what)),
            };
            let other = ends.iter().find(|end| !allowed.contains(end))?;
            broken(format!("it ends with {}", program.words(other)))
        }
        Found::Wrong(Wrong::Violated(violation)) => {
            broken(format!("{}: {}", violation.property, violation.what))
        }
        Found::Wrong(Wrong::Exceeded(what)) => Some(Ended::Undecided(what)),
        Found::Stuck { .. } => broken("its threads wait for ever".to_string()),
        Found::TooMany => Some(Ended::Undecided(format!(
            "{} has too many states",
            program.name
        ))),
        Found::Interrupted => Some(Ended::Interrupted),
        Found::Lacks(what) => Some(Ended::Undecided(what)),
        // They are left out.
        Found::Cannot(_) => None,
    }
}

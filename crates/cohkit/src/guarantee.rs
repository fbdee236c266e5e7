//! Whether programs find the memory model that a text guarantees.

use crate::outcome::Outcome;
use crate::protocols::Source;
use cohkit_base::words::counted;
use cohkit_engine::report::Status;
use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::cycles::classic;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{run_on, Found, Options};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use serde_json::{json, Value};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads of the programs, at most.
pub(crate) const THREADS: usize = 3;

const NO_ATOMICS: &str = "need atomic accesses, which the home has not";

/// What programs have found.
pub struct Guaranteed {
    model: Model,
    /// How many of the classic programs were run, and on how many states.
    programs: usize,
    states: usize,
    /// Programs that the caches have no way to run: atomic accesses where the home performs stores.
    left_out: usize,
    ended: Ended,
}

enum Ended {
    /// Each shows only what the model allows.
    Holds,
    /// This program shows what it does not allow, or goes wrong.
    Broken(String, String),
    Undecided(String),
    Interrupted,
}

/// Runs every classic program of up to [`THREADS`] threads on the text's caches, before cores that keep the orders of its
/// accesses; without these, before those that have the model of themselves. `home` gives the home of so many caches.
pub(crate) fn judge<'h>(
    protocol: &Protocol,
    model: Model,
    home: &dyn Fn(u16) -> Cow<'h, Controller>,
    cancel: &AtomicBool,
) -> Guaranteed {
    let cores = match (protocol.kept, model) {
        (Some(orders), _) => Cores::Relaxed(orders),
        (None, Model::Sc) => Cores::InOrder,
        (None, Model::Tso) => Cores::StoreBuffer,
        (None, Model::Rc) => Cores::Relaxed(Default::default()),
    };
    let mut found = Guaranteed {
        model,
        programs: 0,
        states: 0,
        left_out: 0,
        ended: Ended::Holds,
    };
    let programs = classic().into_iter();
    let programs = programs.filter(|program| program.threads.len() <= THREADS);
    for programs in Lines::groups(protocol, programs.collect()) {
        let threads = programs[0].threads.len();
        let home = home(threads as u16);
        let mut options = Options {
            cores,
            ..Options::default()
        };
        let locations = programs.iter().map(|program| program.locations.len());
        let locations = locations.max().unwrap_or(0) as u8;
        let room = options.room;
        let mut lines = match Lines::new(protocol, &home, threads as u8, locations, room) {
            Ok(lines) => lines,
            Err(what) => {
                found.ended = Ended::Undecided(what);
                return found;
            }
        };
        for program in programs {
            let mut goes_on = || !cancel.load(Ordering::Relaxed);
            // What caches give up by themselves makes states, and is there in the plain programs.
            let plain = threads < 3 || !program.name.contains('+');
            options.gives_up = u8::from(plain);
            let run = run_on(&mut lines, &program, &options, &mut goes_on);
            match &run {
                Found::Cannot(_) => {
                    found.left_out += 1;
                    continue;
                }
                Found::Ends { states, .. } => found.states += states,
                _ => {}
            }
            found.programs += 1;
            if let Some(ended) = end(run, &program, model) {
                found.ended = ended;
                return found;
            }
        }
    }
    found
}

/// What ends the work, if something does.
fn end(run: Found, program: &Program, model: Model) -> Option<Ended> {
    let broken = |what: String| Some(Ended::Broken(program.name.clone(), what));
    match run {
        Found::Ends { ends, .. } => {
            let allowed = match allowed(program, model) {
                Ok(allowed) => allowed,
                Err(what) => return Some(Ended::Undecided(what)),
            };
            let other = ends.iter().find(|end| !allowed.contains(end))?;
            broken(format!("it ends with {}", program.words(other)))
        }
        Found::Wrong(cohkit_system::world::Wrong::Violated(violation)) => {
            broken(format!("{}: {}", violation.property, violation.what))
        }
        Found::Wrong(cohkit_system::world::Wrong::Exceeded(what)) => Some(Ended::Undecided(what)),
        Found::Stuck { .. } => broken("its threads wait for ever".to_string()),
        Found::TooMany => Some(Ended::Undecided(format!(
            "{} has too many states",
            program.name
        ))),
        Found::Interrupted => Some(Ended::Interrupted),
        // They are left out.
        Found::Cannot(_) => None,
    }
}

impl Guaranteed {
    /// What the verdict means for the exit code.
    pub fn outcome(&self) -> Outcome {
        match self.ended {
            Ended::Holds => Outcome::Yes,
            Ended::Broken(..) => Outcome::No,
            Ended::Undecided(_) => Outcome::Undecided,
            Ended::Interrupted => Outcome::Interrupted,
        }
    }

    /// The verdict for people.
    pub fn text(&self, source: &Source) -> String {
        let (name, model) = (&source.protocol.name, self.model);
        let programs = counted(self.programs as u64, "program");
        match &self.ended {
            Ended::Holds => {
                let states = counted(self.states as u64, "state");
                let left_out = match self.left_out {
                    0 => String::new(),
                    more => format!("; {more} more {NO_ATOMICS}"),
                };
                format!("{name} programs: verified: {model} in {programs} of up to {THREADS} threads, {states}{left_out}\n")
            }
            Ended::Broken(program, what) => format!(
                "{name} programs: violated: {model}\n  by {program}: {what}\n  \
                 to see more: cohkit litmus {program} --protocol {}\n",
                source.path.display()
            ),
            Ended::Undecided(why) => {
                format!("{name} programs: undecided: {model}: {why}, after {programs}\n")
            }
            Ended::Interrupted => {
                format!("{name} programs: undecided: {model}: interrupted after {programs}\n")
            }
        }
    }

    /// The entry that `docs/output.md` describes.
    pub fn json(&self, source: &Source) -> Value {
        let (outcome, status, reason) = match &self.ended {
            Ended::Holds => ("verified", Status::Holds, None),
            Ended::Broken(..) => ("violated", Status::Violated, None),
            Ended::Undecided(why) => ("undecided", Status::Undecided, Some(why.as_str())),
            Ended::Interrupted => ("undecided", Status::Undecided, Some("interrupted")),
        };
        let broken = match &self.ended {
            Ended::Broken(program, what) => json!({
                "kind": "guarantee",
                "name": self.model.name(),
                "message": what,
                "program": program,
                "sequences": [],
                "trace": null,
                "explanation": null,
            }),
            _ => Value::Null,
        };
        let notes: Vec<String> = match self.left_out {
            0 => Vec::new(),
            more => vec![format!("{more} more programs {NO_ATOMICS}")],
        };
        json!({
            "protocol": source.protocol.name,
            "system": "programs",
            "remotes": THREADS,
            "lines": null,
            "outcome": outcome,
            "reason": reason,
            "states": self.states,
            "transitions": null,
            "depth": null,
            "symmetric": null,
            "components": null,
            "properties": [{ "kind": "guarantee", "name": self.model.name(), "status": status }],
            "counterexample": broken,
            "assumptions": [],
            "notes": notes,
            "programs": self.programs,
            "run": {
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

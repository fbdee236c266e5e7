//! Whether programs find the memory model that a text guarantees.

use crate::outcome::Outcome;
use crate::protocols::Source;
use cohkit_base::words::counted;
use cohkit_engine::report::Status;
use cohkit_litmus::axioms::Model;
use cohkit_litmus::promised::{self, Ended, Promised};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use serde_json::{json, Value};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads of the programs, at most.
pub(crate) const THREADS: usize = 3;

const NO_ATOMICS: &str = "need atomic accesses, which the home has not";

const NO_ROW: &str = "need accesses for which a kind of remotes has no row";

/// What programs have found.
pub struct Guaranteed(Promised);

/// Runs every classic program of up to [`THREADS`] threads on the text's caches, each over so many states at most. `home`
/// gives the home of so many caches.
pub(crate) fn judge<'h>(
    protocol: &Protocol,
    model: Model,
    max_states: Option<u64>,
    home: &dyn Fn(u16) -> Cow<'h, Controller>,
    cancel: &AtomicBool,
) -> Guaranteed {
    let mut goes_on = || !cancel.load(Ordering::Relaxed);
    Guaranteed(promised::judge(
        protocol,
        model,
        THREADS,
        max_states.map(|states| states.try_into().unwrap_or(usize::MAX)),
        home,
        &mut goes_on,
    ))
}

impl Guaranteed {
    /// How many programs were not run, and why.
    fn left_out(&self) -> Vec<(usize, &'static str)> {
        let all = [(self.0.left_out, NO_ATOMICS), (self.0.lacking, NO_ROW)];
        all.into_iter().filter(|(more, _)| *more > 0).collect()
    }

    /// What the verdict means for the exit code.
    pub fn outcome(&self) -> Outcome {
        match self.0.ended {
            Ended::Holds => Outcome::Yes,
            Ended::Broken { .. } => Outcome::No,
            Ended::Undecided(_) => Outcome::Undecided,
            Ended::Interrupted => Outcome::Interrupted,
        }
    }

    /// The verdict for people.
    pub fn text(&self, source: &Source) -> String {
        let (name, model) = (&source.protocol.name, self.0.model);
        let programs = counted(self.0.programs as u64, "program");
        match &self.0.ended {
            Ended::Holds => {
                let states = counted(self.0.states as u64, "state");
                let left_out = self.left_out().into_iter();
                let left_out: String = left_out
                    .map(|(more, why)| format!("; {more} more {why}"))
                    .collect();
                format!("{name} programs: verified: {model} in {programs} of up to {THREADS} threads, {states}{left_out}\n")
            }
            Ended::Broken {
                program,
                kinds,
                what,
            } => {
                let on = kinds.as_ref().map(|kinds| format!(" on {kinds}"));
                let kinds = kinds.as_ref().map(|kinds| format!(" --kinds {kinds}"));
                let [on, kinds] = [on, kinds].map(Option::unwrap_or_default);
                format!(
                    "{name} programs: violated: {model}\n  by {program}{on}: {what}\n  \
                     to see more: cohkit litmus {program} --protocol {}{kinds}\n",
                    source.path.display()
                )
            }
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
        let (outcome, status, reason) = match &self.0.ended {
            Ended::Holds => ("verified", Status::Holds, None),
            Ended::Broken { .. } => ("violated", Status::Violated, None),
            Ended::Undecided(why) => ("undecided", Status::Undecided, Some(why.as_str())),
            Ended::Interrupted => ("undecided", Status::Undecided, Some("interrupted")),
        };
        let broken = match &self.0.ended {
            Ended::Broken { program, what, .. } => json!({
                "kind": "guarantee",
                "name": self.0.model.name(),
                "message": what,
                "program": program,
                "sequences": [],
                "trace": null,
                "explanation": null,
            }),
            _ => Value::Null,
        };
        let left_out = self.left_out().into_iter();
        let notes: Vec<String> = left_out
            .map(|(more, why)| format!("{more} more programs {why}"))
            .collect();
        json!({
            "protocol": source.protocol.name,
            "system": "programs",
            "remotes": THREADS,
            "lines": null,
            "outcome": outcome,
            "reason": reason,
            "states": self.0.states,
            "transitions": null,
            "depth": null,
            "symmetric": null,
            "components": null,
            "properties": [{ "kind": "guarantee", "name": self.0.model.name(), "status": status }],
            "counterexample": broken,
            "assumptions": [],
            "notes": notes,
            "programs": self.0.programs,
            "run": {
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

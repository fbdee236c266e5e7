//! Verdict for every number of remotes, as text and as JSON.

use crate::outcome::ExitStatus;
use crate::source::Source;
use cohkit_base::words::counted;
use cohkit_check::system::assumptions;
use cohkit_diagnostics::line_column;
use cohkit_engine::report::Status;
use cohkit_parameterised::{verify, Limits, Obstacle, Verdict};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// Verdict on a protocol for one line and every number of remotes.
pub struct AnyNumberVerdict {
    /// Outcome of the method.
    result: AnyNumberResult,
}

/// Outcome of the method.
enum AnyNumberResult {
    /// Verified, with this number of views and pairs of views.
    Verified {
        /// Number of views.
        views: usize,
        /// Number of pairs whose steps were taken.
        pairs: u64,
    },
    /// Not decided, for this reason.
    Undecided(Obstacle),
    /// Cancelled.
    Interrupted,
}

impl AnyNumberVerdict {
    /// Decides, if the method can, whether the properties hold for every number of remotes. Setting `cancel` interrupts
    /// the search.
    pub(crate) fn of(source: &Source, cancel: &AtomicBool) -> AnyNumberVerdict {
        let mut should_continue = || !cancel.load(Ordering::Relaxed);
        let mut limits = Limits {
            should_continue: Some(&mut should_continue),
            ..Limits::default()
        };
        let result = match verify(&source.protocol, &mut limits) {
            _ if cancel.load(Ordering::Relaxed) => AnyNumberResult::Interrupted,
            Verdict::Verified(proof) => AnyNumberResult::Verified {
                views: proof.views.len(),
                pairs: proof.extensions,
            },
            Verdict::Undecided(obstacle) => AnyNumberResult::Undecided(obstacle),
        };
        AnyNumberVerdict { result }
    }

    /// Outcome that determines the exit code.
    pub fn outcome(&self) -> ExitStatus {
        match self.result {
            AnyNumberResult::Verified { .. } => ExitStatus::Success,
            AnyNumberResult::Undecided(_) => ExitStatus::Undecided,
            AnyNumberResult::Interrupted => ExitStatus::Interrupted,
        }
    }

    /// Reason of an undecided verdict; empty otherwise.
    fn reason(&self) -> &str {
        match &self.result {
            AnyNumberResult::Verified { .. } => "",
            AnyNumberResult::Undecided(obstacle) => &obstacle.reason,
            AnyNumberResult::Interrupted => "interrupted",
        }
    }

    /// Line and column of the obstacle in the protocol file, counted from 1.
    fn position(&self, source: &Source) -> Option<(u32, u32)> {
        match &self.result {
            AnyNumberResult::Undecided(obstacle) => {
                let span = obstacle.span?;
                Some(line_column(&source.text, span.start))
            }
            AnyNumberResult::Verified { .. } | AnyNumberResult::Interrupted => None,
        }
    }

    /// Verdict as text.
    pub fn text(&self, source: &Source) -> String {
        let name = &source.protocol.name;
        match &self.result {
            AnyNumberResult::Verified { views, pairs } => {
                let [views, pairs] = [counted(*views as u64, "view"), counted(*pairs, "pair")];
                let mut text = format!(
                    "{name} any_number: verified for every number of remotes: one line, {views}, {pairs}\n"
                );
                for assumption in assumptions(&source.protocol, false) {
                    text += &format!("  assuming {assumption}\n");
                }
                text + "  not covered: progress of single accesses, reachability of quiescence, several lines, memory models\n"
            }
            AnyNumberResult::Undecided(_) | AnyNumberResult::Interrupted => {
                let place = self.position(source);
                let place = place
                    .map(|(line, column)| format!("{}:{line}:{column}: ", source.path.display()));
                format!(
                    "{name} any_number: undecided for every number of remotes: {}{}\n",
                    place.unwrap_or_default(),
                    self.reason()
                )
            }
        }
    }

    /// JSON entry, described in `docs/output.md`.
    pub fn json(&self, source: &Source) -> Value {
        let (outcome, status, views, pairs) = match self.result {
            AnyNumberResult::Verified { views, pairs } => {
                ("verified", Status::Holds, Some(views), Some(pairs))
            }
            AnyNumberResult::Undecided(_) | AnyNumberResult::Interrupted => {
                ("undecided", Status::Undecided, None, None)
            }
        };
        let reason = Some(self.reason()).filter(|reason| !reason.is_empty());
        let position = self.position(source);
        json!({
            "protocol": source.protocol.name,
            "system": "any_number",
            "remotes": null,
            "lines": 1,
            "outcome": outcome,
            "reason": reason,
            "states": null,
            "transitions": null,
            "depth": null,
            "symmetric": null,
            "components": null,
            "properties": [{
                "kind": "any_number",
                "name": "every number of remotes",
                "status": status,
            }],
            "counterexample": null,
            "assumptions": assumptions(&source.protocol, false),
            "notes": [],
            "views": views,
            "pairs": pairs,
            "position": position.map(|(line, column)| json!({ "line": line, "column": column })),
            "run": {
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

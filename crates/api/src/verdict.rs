//! Verdict on one system, as text and as JSON.

use crate::coverage::SystemCoverage;
use crate::explanation;
use crate::outcome::ExitStatus;
use crate::size;
use cohkit_base::sequence::Sequence;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_check::progress::UndecidedSearch;
use cohkit_check::system::unshared_buffers;
use cohkit_engine::explain::Explanation;
use cohkit_engine::report::{states_in_words, Status};
use cohkit_engine::search::Reason;
use cohkit_engine::trace::Trace;
use cohkit_engine::{Outcome as SearchOutcome, Property, Report};
use cohkit_protocol::construct::fault::Fault;
use cohkit_protocol::protocol::{Protocol, System};
use cohkit_protocol::remotes::KindId;
use serde_json::{json, Value};
use std::fmt::Write;

/// A verdict with its assumptions.
pub struct Verdict<'a> {
    /// Protocol of the system.
    pub protocol: &'a Protocol,
    /// System that was checked.
    pub system: &'a System,
    /// True if the system was added to the declared ones.
    pub added: bool,
    /// Evidence for the verdict.
    pub evidence: Evidence<'a>,
    /// Assumptions of the verdict beyond the protocol's rules.
    pub assumptions: &'a [String],
    /// Notes of the home's construction, and accesses that can never start.
    pub notes: &'a [String],
    /// Reason that no step is possible after the last state of the counterexample; `None` for other properties.
    pub explanation: Option<Explanation>,
    /// Coverage of the search, if requested.
    pub coverage: Option<SystemCoverage>,
    /// Progress question that the search left undecided at a limit, although all other properties hold.
    pub undecided_progress: Option<UndecidedSearch>,
}

/// Evidence for a verdict.
pub enum Evidence<'a> {
    /// A search of the system's states.
    Searched(Box<Report>),
    /// A fault that the construction of the home found; there is nothing to search.
    Construction(&'a Fault),
}

impl Verdict<'_> {
    /// Outcome that determines the exit code.
    pub fn outcome(&self) -> ExitStatus {
        match &self.evidence {
            Evidence::Searched(report) => outcome(report),
            Evidence::Construction(_) => ExitStatus::Violated,
        }
    }

    /// Number of states found; 0 after a fault of the construction.
    pub fn states(&self) -> u128 {
        match &self.evidence {
            Evidence::Searched(report) => report.states,
            Evidence::Construction(_) => 0,
        }
    }

    /// Names of the protocol and of the system.
    pub fn name(&self) -> String {
        format!("{} {}", self.protocol.name, self.system.name)
    }

    /// Message sequences that show a violation, or how the capacity of a channel is exceeded.
    pub fn sequences(&self) -> Vec<&Sequence> {
        match &self.evidence {
            Evidence::Searched(report) => match &report.outcome {
                SearchOutcome::Violated { trace, .. } | SearchOutcome::Exceeded { trace, .. } => {
                    vec![&trace.sequence]
                }
                _ => Vec::new(),
            },
            Evidence::Construction(fault) => fault.explanations.iter().collect(),
        }
    }

    /// Trace of a violation, or of how the capacity of a channel is exceeded.
    pub fn trace(&self) -> Option<&Trace> {
        match &self.evidence {
            Evidence::Searched(report) => match &report.outcome {
                SearchOutcome::Violated { trace, .. } | SearchOutcome::Exceeded { trace, .. } => {
                    Some(trace)
                }
                _ => None,
            },
            Evidence::Construction(_) => None,
        }
    }

    /// Verdict as text, without the charts of a construction fault, which has its own report.
    pub fn text(&self, charts: &Text) -> String {
        let mut text = format!("{}: ", self.name());
        match &self.evidence {
            Evidence::Searched(report) => {
                let counts = search_size(report);
                match &report.outcome {
                    SearchOutcome::Verified => {
                        let (states, rest) = counts.split_once(',').unwrap_or((&counts, ""));
                        let parts = self.parts(report);
                        let _ = writeln!(
                            text,
                            "verified{}: {states}{parts},{rest}",
                            omission_text(report)
                        );
                    }
                    SearchOutcome::Undecided { reason } => {
                        let (reason_text, omission) =
                            (reason_words(*reason), omission_text(report));
                        let _ = match &self.undecided_progress {
                            Some(UndecidedSearch { question, states }) => writeln!(
                                text,
                                "undecided{omission}: {question}: {reason_text} after {}; everything else holds in {counts}",
                                counted(*states, "state")
                            ),
                            None => writeln!(text, "undecided{omission}: {reason_text} after {counts}"),
                        };
                    }
                    SearchOutcome::Exceeded { limit, trace } => {
                        let _ = writeln!(text, "undecided: {limit} after {counts}");
                        let _ = writeln!(text, "  {CHECK_LIMIT_TEXT}; `--capacity N` raises it");
                        let chart = cohkit_chart::text(&trace.sequence, charts);
                        let _ = write!(text, "\n{chart}\n");
                    }
                    SearchOutcome::Violated {
                        property,
                        message,
                        trace,
                    } => {
                        let name = property.to_string();
                        // For an invariant of the protocol, the name is a sufficient description.
                        let _ = match *message == format!("`{name}` does not hold") {
                            true => writeln!(text, "violated: {name}"),
                            false => writeln!(text, "violated: {name}: {message}"),
                        };
                        let _ = writeln!(text, "  after {counts}");
                        let chart = cohkit_chart::text(&trace.sequence, charts);
                        let _ = write!(text, "\n{chart}\n");
                        if let Some(explanation) = &self.explanation {
                            text += &explanation::text(explanation);
                        }
                    }
                }
            }
            Evidence::Construction(fault) => {
                let _ = writeln!(text, "violated: {}: {}", fault.kind.name(), fault.text);
            }
        }
        for assumption in self.assumptions {
            let _ = writeln!(text, "  assuming {assumption}");
        }
        for note in self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        if let Some(coverage) = &self.coverage {
            text += &coverage.text();
        }
        text
    }

    /// Sizes of the independent components whose product is the number of states, if there are several.
    fn parts(&self, report: &Report) -> String {
        let parts = &report.components;
        if parts.len() < 2 {
            return String::new();
        }
        let states: Vec<String> = parts.iter().map(u64::to_string).collect();
        let noun = if parts.len() == usize::from(self.system.lines) {
            "lines"
        } else {
            "parts"
        };
        format!(" ({}, {noun} independent)", states.join(" x "))
    }

    /// JSON entry, described in `docs/output.md`; `run` is the machine-dependent part.
    pub fn json(&self, run: Value) -> Value {
        let mut entry = match &self.evidence {
            Evidence::Searched(report) => {
                search_json(report, ("capacity", CHECK_LIMIT_TEXT), self.sequences())
            }
            Evidence::Construction(fault) => json!({
                "outcome": "violated",
                "reason": null,
                "states": null,
                "transitions": null,
                "depth": null,
                "symmetric": null,
                "components": null,
                "properties": [{
                    "kind": "construction",
                    "name": fault.kind.name(),
                    "status": Status::Violated,
                }],
                "counterexample": counterexample(
                    "construction",
                    fault.kind.name(),
                    &fault.text,
                    self.sequences(),
                    None,
                ),
            }),
        };
        entry["protocol"] = json!(self.protocol.name);
        entry["system"] = json!(self.system.name);
        entry["remotes"] = json!(self.system.remotes.total());
        entry["lines"] = json!(self.system.lines);
        let unshared_buffers = unshared_buffers(self.protocol);
        entry["assumptions"] = json!((self.assumptions.iter())
            .chain(&unshared_buffers)
            .collect::<Vec<_>>());
        entry["notes"] = json!(self.notes);
        if let Some(UndecidedSearch { question, states }) = &self.undecided_progress {
            entry["undecided_progress"] =
                json!({ "question": question, "states": size::json(*states) });
        }
        entry["run"] = run;
        let kinds = &self.protocol.kinds;
        if kinds.len() > 1 {
            let remotes_by_kind = (0..)
                .map(KindId)
                .map(|kind| self.system.remotes.count(kind));
            let remotes_by_kind = kinds
                .iter()
                .map(|kind| kind.name.clone())
                .zip(remotes_by_kind);
            entry["kinds"] = remotes_by_kind
                .map(|(name, count)| (name, json!(count)))
                .collect();
        }
        if let Some(explanation) = &self.explanation {
            entry["counterexample"]["explanation"] = json!(explanation);
        }
        if let Some(coverage) = &self.coverage {
            entry["coverage"] = coverage.json();
        }
        entry
    }
}

/// Outcome of a search for the exit code.
pub fn outcome(report: &Report) -> ExitStatus {
    match &report.outcome {
        SearchOutcome::Verified => ExitStatus::Success,
        SearchOutcome::Violated { .. } => ExitStatus::Violated,
        SearchOutcome::Undecided {
            reason: Reason::Interrupted,
        } => ExitStatus::Interrupted,
        SearchOutcome::Undecided { .. } | SearchOutcome::Exceeded { .. } => ExitStatus::Undecided,
    }
}

/// Results of a search as entries of `docs/output.md`. `limit_kind` names the kind of an exceeded limit in JSON, and
/// `limit_means` explains the limit if it is not empty. `sequences` are the charts of the counterexample.
pub(crate) fn search_json(
    report: &Report,
    (limit_kind, limit_means): (&str, &str),
    sequences: Vec<&Sequence>,
) -> Value {
    let (outcome, reason, example) = match &report.outcome {
        SearchOutcome::Verified => ("verified", Value::Null, Value::Null),
        SearchOutcome::Undecided { reason } => ("undecided", json!(reason), Value::Null),
        SearchOutcome::Exceeded { limit, trace } => {
            let message = match limit_means {
                "" => limit.clone(),
                means => format!("{limit}: {means}"),
            };
            let example = counterexample(limit_kind, limit, &message, sequences, Some(trace));
            ("undecided", json!(limit_kind), example)
        }
        SearchOutcome::Violated {
            property,
            message,
            trace,
        } => {
            let (kind, name) = (kind(property), property.to_string());
            let example = counterexample(kind, &name, message, sequences, Some(trace));
            ("violated", Value::Null, example)
        }
    };
    let properties = report.properties.iter();
    let mut entry = json!({
        "outcome": outcome,
        "reason": reason,
        "states": size::json(report.states),
        "transitions": size::json(report.transitions),
        "depth": report.depth,
        "symmetric": report.symmetric,
        "components": report.components,
        "properties": properties.map(|p| property(&p.property, &p.status)).collect::<Vec<_>>(),
        "counterexample": example,
    });
    if !report.lost_symmetry.is_empty() {
        entry["lost_symmetry"] = json!(report.lost_symmetry);
    }
    if let Some(walks) = &report.walks {
        entry["walks"] = json!(walks);
    }
    if let Some(probability) = report.omission_probability {
        entry["omission_probability"] = json!(probability);
    }
    entry
}

/// Explanation of a full channel: its capacity is a bound of the check.
pub const CHECK_LIMIT_TEXT: &str = "a limit of this check, not of the protocol";

/// Caveat of a verdict found with hash compaction; empty otherwise.
pub(crate) fn omission_text(report: &Report) -> String {
    let probability = report.omission_probability;
    probability.map_or(String::new(), |p| {
        format!(" with omission probability at most {p:.1e}")
    })
}

/// Size of a search as text: the number of states, then after a comma transitions and depth.
pub(crate) fn search_size(report: &Report) -> String {
    let states = states_in_words(report.states, report.symmetric);
    let Some(walks) = &report.walks else {
        let transitions = counted(report.transitions, "transition");
        return format!("{states}, {transitions}, depth {}", report.depth);
    };
    let prefix = if walks.states_counted {
        ""
    } else {
        "more than "
    };
    let mut text = format!(
        "{prefix}{states}, {} on {} of at most {}, {} of {} fired",
        counted(walks.steps, "step"),
        counted(walks.walks, "walk"),
        report.depth,
        walks.rules_fired,
        counted(walks.rules, "rule"),
    );
    if !walks.never_fired.is_empty() {
        let _ = write!(text, "\n  never fired: {}", walks.never_fired.join(", "));
    }
    text
}

/// Reason for which a search ended without a verdict, as text.
pub(crate) fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::MaxStates => "the limit on states was reached",
        Reason::MaxDepth => "the limit on depth was reached",
        Reason::MaxMemory => "the limit on memory was reached",
        Reason::HashCompaction => {
            "every state was visited, but hash compaction cannot check all properties"
        }
        Reason::MaxSteps => "random walks found no violation",
        Reason::Interrupted => "interrupted",
    }
}

/// Kind of a property in JSON.
pub fn kind(property: &Property) -> &'static str {
    match property {
        Property::Invariant(_) => "invariant",
        Property::Assertion(_) => "assertion",
        Property::WellDefined => "well_defined",
        Property::NoDeadlock => "no_deadlock",
        Property::Drain => "quiescence",
        Property::Cover(_) => "cover",
        Property::Liveness(_) => "liveness",
        Property::HigherLayer(property) => property.kind,
    }
}

/// Property and its status as JSON.
fn property(property: &Property, status: &Status) -> Value {
    json!({ "kind": kind(property), "name": property.to_string(), "status": status })
}

/// JSON of a counterexample, described in `docs/output.md`. `kind` and `name` are those of the property, and `message`
/// describes the violation. `trace` has the states and steps, if there are any.
pub fn counterexample(
    kind: &str,
    name: &str,
    message: &str,
    sequences: Vec<&Sequence>,
    trace: Option<&Trace>,
) -> Value {
    let trace = trace.map(|trace| {
        let mut value = json!({
            "start": trace.start,
            "start_index": trace.start_index,
            "initial": trace.initial,
            "steps": trace.steps,
            "fault": trace.fault,
        });
        if trace.loops_checked {
            value["loops_checked"] = json!(true);
        }
        value
    });
    json!({
        "kind": kind,
        "name": name,
        "message": message,
        "sequences": sequences.into_iter().map(cohkit_chart::json).collect::<Vec<_>>(),
        "trace": trace,
        "explanation": null,
    })
}

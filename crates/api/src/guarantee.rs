//! Check of the memory model that a protocol guarantees, by litmus programs.

use crate::outcome::ExitStatus;
use crate::source::Source;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_engine::report::Status;
use cohkit_litmus::axioms::Model;
use cohkit_litmus::conformance_report::{
    self, bursts, classic, ConformanceReport, ConformanceVerdict,
};
use cohkit_litmus::run::ShortestPath;
use cohkit_litmus::store_variants;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use serde_json::{json, Map, Value};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of threads of a program.
const MAX_THREADS: usize = 3;

/// Reason for programs with atomic accesses, printed after their number.
const ATOMICS_UNSUPPORTED: &str = "need atomic accesses, which the home does not support";

/// Reason for placements with an access for which a kind of remotes has no row.
const ROW_MISSING: &str = "need accesses for which a kind of remotes has no row";

/// Parameters of a protocol that a system overrides, and the system's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// Name of the system that declares the parameters.
    pub(crate) system: String,
    /// Overridden parameters, as name and value.
    pub(crate) sizes: Vec<(String, u16)>,
}

/// Verdict on the memory model that a protocol guarantees.
pub struct GuaranteeVerdict {
    /// Programs that were run, their bounds, and the verdict on them.
    report: ConformanceReport,
    /// Store variants that the protocol has and the programs do not use.
    unused_variants: Vec<&'static str>,
    /// Further parameters that bursts of stores ran with, in order. A violation belongs to the last of them, or to the
    /// protocol's own parameters if there are none.
    sizes: Vec<Sizes>,
}

/// Home of a protocol for a number of caches.
pub(crate) type HomeOf<'r, 'h> = &'r dyn Fn(u16) -> Cow<'h, Controller>;

/// Runs every classic program and every burst of stores of up to [`MAX_THREADS`] threads on the protocol's caches,
/// each over at most `max_states` states. `home` returns the home for a number of caches. Setting `cancel` interrupts
/// the run.
pub(crate) fn judge(
    protocol: &Protocol,
    model: Model,
    max_states: Option<u64>,
    home: HomeOf,
    cancel: &AtomicBool,
) -> GuaranteeVerdict {
    let mut programs = classic(protocol, MAX_THREADS);
    programs.extend(bursts(model, MAX_THREADS));
    let states = state_limit(max_states);
    let mut should_continue = || !cancel.load(Ordering::Relaxed);
    GuaranteeVerdict {
        report: conformance_report::check_conformance(
            protocol,
            model,
            programs,
            states,
            home,
            &mut should_continue,
        ),
        unused_variants: store_variants::optional_variants(protocol),
        sizes: Vec::new(),
    }
}

/// Converts a limit on states, which saturates at the width of `usize`.
fn state_limit(states: Option<u64>) -> Option<usize> {
    states.map(|states| states.try_into().unwrap_or(usize::MAX))
}

/// Name of the verdict in place of a system's: that of the part, too, in a composition.
fn system_name(source: &Source) -> String {
    match source.protocol.systems.first() {
        // Only parts of a composition's systems have a dot in their names.
        Some(part) if part.name.contains('.') => format!("{} programs", part.name),
        _ => "programs".to_string(),
    }
}

impl GuaranteeVerdict {
    /// Runs bursts of stores with other parameters, unless a violation was found or the run was interrupted.
    pub(crate) fn judge_with_sizes(
        &mut self,
        protocol: &Protocol,
        sizes: Sizes,
        max_states: Option<u64>,
        home: HomeOf,
        cancel: &AtomicBool,
    ) {
        if matches!(
            self.report.verdict,
            ConformanceVerdict::Violated { .. } | ConformanceVerdict::Interrupted
        ) {
            return;
        }
        let model = self.report.model;
        let (programs, states) = (bursts(model, MAX_THREADS), state_limit(max_states));
        let mut should_continue = || !cancel.load(Ordering::Relaxed);
        let report = conformance_report::check_conformance(
            protocol,
            model,
            programs,
            states,
            home,
            &mut should_continue,
        );
        self.report.extend(report);
        self.sizes.push(sizes);
    }

    /// Numbers of programs that were not run, each with the reason.
    fn omitted_programs(&self) -> Vec<(usize, &'static str)> {
        let omissions = [
            (self.report.unsupported_programs, ATOMICS_UNSUPPORTED),
            (self.report.unsupported_placements, ROW_MISSING),
        ];
        omissions
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .collect()
    }

    /// Outcome that determines the exit code.
    pub fn outcome(&self) -> ExitStatus {
        match self.report.verdict {
            ConformanceVerdict::Holds => ExitStatus::Success,
            ConformanceVerdict::Violated { .. } => ExitStatus::Violated,
            ConformanceVerdict::Undecided(_) => ExitStatus::Undecided,
            ConformanceVerdict::Interrupted => ExitStatus::Interrupted,
        }
    }

    /// Number and bounds of the programs that were run, as text.
    fn programs(&self) -> String {
        let ConformanceReport {
            threads, accesses, ..
        } = self.report;
        let programs = counted(self.report.programs.len() as u64, "program");
        let [threads, homes, placements] = [
            (threads, "thread"),
            (usize::from(self.report.homes), "home"),
            (self.report.placements, "placement"),
        ]
        .map(|(count, noun)| counted(count as u64, noun));
        format!("{programs} of at most {threads} and {accesses} accesses per thread, {homes}, {placements}")
    }

    /// Verdict as text: the programs that were run and their bounds, or the violating program with the chart of a
    /// shortest path. `charts` is the form of the chart.
    pub fn text(&self, source: &Source, charts: &Text) -> String {
        let (name, model) = (&source.protocol.name, self.report.model);
        let programs = counted(self.report.programs.len() as u64, "program");
        let mut text = format!("{name} {}: ", system_name(source));
        let _ = match &self.report.verdict {
            ConformanceVerdict::Holds => {
                let states = counted(self.report.states as u64, "state");
                let _ = write!(text, "verified: {model} in {}, {states}", self.programs());
                for (count, reason) in self.omitted_programs() {
                    let _ = write!(text, "; {count} more {reason}");
                }
                writeln!(text)
            }
            ConformanceVerdict::Violated {
                program,
                kinds,
                description,
                path,
            } => {
                let kinds_note = kinds.as_ref().map(|kinds| format!(" on {kinds}"));
                let kinds = kinds.as_ref().map(|kinds| format!(" --kinds {kinds}"));
                let system = self.sizes.last();
                let system = system.map(|sizes| format!(" --system {}", sizes.system));
                let [kinds_note, kinds, system] =
                    [kinds_note, kinds, system].map(Option::unwrap_or_default);
                let file = source.path.display();
                let _ = writeln!(
                    text,
                    "violated: {model}\n  by {program}{kinds_note}: {description}\n  \
                     to see more: cohkit litmus {program} --protocol {file}{system}{kinds}"
                );
                match path {
                    Some(path) => write!(text, "{}", render_path(path, charts)),
                    None => Ok(()),
                }
            }
            ConformanceVerdict::Undecided(reason) => {
                writeln!(text, "undecided: {model}: {reason}, after {programs}")
            }
            ConformanceVerdict::Interrupted => {
                writeln!(text, "undecided: {model}: interrupted after {programs}")
            }
        };
        for Sizes { system, sizes } in &self.sizes {
            let sizes = sizes.iter().map(|(name, size)| format!("{name} {size}"));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            let _ = writeln!(
                text,
                "  bursts of stores with the sizes of {system}: {sizes}"
            );
        }
        if self.report.verdict == ConformanceVerdict::Holds {
            for limit in self.uncovered_behaviour() {
                let _ = writeln!(text, "  not covered: {limit}");
            }
        }
        text
    }

    /// Behaviour that the programs do not cover, each with the option that covers it.
    fn uncovered_behaviour(&self) -> Vec<String> {
        let evictions_text = counted(self.report.max_spontaneous_evictions, "line");
        let mut limits = vec![format!(
            "more than {evictions_text} evicted spontaneously (`cohkit litmus --max-spontaneous-evictions N`)"
        )];
        if !self.unused_variants.is_empty() {
            let unused_variants = self.unused_variants.join(" or ");
            limits.push(format!(
                "stores that are {unused_variants} (`cohkit litmus --store-variants all`)"
            ));
        }
        limits
    }

    /// JSON entry, described in `docs/output.md`.
    pub fn json(&self, source: &Source) -> Value {
        let (outcome, status, reason) = match &self.report.verdict {
            ConformanceVerdict::Holds => ("verified", Status::Holds, None),
            ConformanceVerdict::Violated { .. } => ("violated", Status::Violated, None),
            ConformanceVerdict::Undecided(reason) => {
                ("undecided", Status::Undecided, Some(reason.as_str()))
            }
            ConformanceVerdict::Interrupted => {
                ("undecided", Status::Undecided, Some("interrupted"))
            }
        };
        let counterexample = match &self.report.verdict {
            ConformanceVerdict::Violated {
                program,
                description,
                path,
                ..
            } => {
                let charts = path.iter().map(|path| cohkit_chart::json(&path.chart));
                json!({
                    "kind": "guarantee",
                    "name": self.report.model.name(),
                    "message": description,
                    "program": program,
                    "sequences": charts.collect::<Vec<_>>(),
                    "trace": null,
                    "explanation": null,
                })
            }
            _ => Value::Null,
        };
        let omitted_programs = self.omitted_programs().into_iter();
        let notes: Vec<String> = omitted_programs
            .map(|(count, reason)| format!("{count} more programs {reason}"))
            .collect();
        let sizes = self.sizes.iter().map(|Sizes { system, sizes }| {
            let sizes = sizes.iter().map(|(name, size)| (name.clone(), json!(size)));
            json!({ "system": system, "sizes": sizes.collect::<Map<_, _>>() })
        });
        json!({
            "protocol": source.protocol.name,
            "system": system_name(source),
            "remotes": self.report.threads,
            "lines": null,
            "outcome": outcome,
            "reason": reason,
            "states": self.report.states,
            "transitions": null,
            "depth": null,
            "symmetric": null,
            "components": null,
            "properties": [{ "kind": "guarantee", "name": self.report.model.name(), "status": status }],
            "counterexample": counterexample,
            "assumptions": [],
            "notes": notes,
            "programs": self.report.programs.len(),
            "bounds": {
                "threads": self.report.threads,
                "accesses": self.report.accesses,
                "homes": self.report.homes,
                "placements": self.report.placements,
                "max_spontaneous_evictions": self.report.max_spontaneous_evictions,
                "omitted_stores": self.unused_variants,
                "sizes": sizes.collect::<Vec<_>>(),
            },
            "run": {
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

/// Shortest path as text: its length and its chart.
pub(crate) fn render_path(path: &ShortestPath, charts: &Text) -> String {
    let steps = counted(path.steps as u64, "step");
    let chart = cohkit_chart::text(&path.chart, charts);
    format!(
        "  the shortest path there has {steps}\n\n{}\n",
        chart.trim_end()
    )
}

//! Conformance of a protocol's caches to its memory model, by the classic programs and bursts of stores.

use cohkit_protocol::controller::Controller;
use cohkit_protocol::orders::Orders;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::state::StepError;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::axioms::{allowed, Model};
use crate::bursts;
use crate::cores::CoreKind;
use crate::kinds::Kinds;
use crate::lines::Lines;
use crate::program::{Outcome, Program};
use crate::run::{run_on, shortest_path, Options, RunResult, ShortestPath};
use crate::warm_caches::conformance_programs;

/// Result of a conformance check.
#[derive(Clone, PartialEq, Debug)]
pub struct ConformanceReport {
    /// Memory model.
    pub model: Model,
    /// Names of the programs that were run, without placements.
    pub programs: BTreeSet<String>,
    /// Maximum number of threads of the programs.
    pub threads: usize,
    /// Maximum number of accesses of a thread.
    pub accesses: usize,
    /// Number of homes.
    pub homes: u16,
    /// Number of runs, over all placements of threads on kinds of remotes and of locations at homes.
    pub placements: usize,
    /// Maximum number of spontaneous evictions and downgrades in one run.
    pub max_spontaneous_evictions: u8,
    /// Number of states visited, in all runs.
    pub states: usize,
    /// Number of programs, per placement on kinds, that the protocol cannot run: atomic accesses where the home
    /// performs stores.
    pub unsupported_programs: usize,
    /// Number of placements in which a kind of remote has no row for an access that its thread needs.
    pub unsupported_placements: usize,
    /// Verdict.
    pub verdict: ConformanceVerdict,
}

/// Verdict of a conformance check.
#[derive(Clone, PartialEq, Debug)]
pub enum ConformanceVerdict {
    /// All outcomes of all programs are allowed by the model.
    Holds,
    /// A program has a forbidden outcome, violates a property, or cannot complete.
    Violated {
        /// Name of the program.
        program: String,
        /// Kinds of remotes of its threads, if the protocol has several.
        kinds: Option<String>,
        /// Description of the violation.
        description: String,
        /// A shortest path to the violation, if one can be drawn.
        path: Option<Box<ShortestPath>>,
    },
    /// Some programs could not be run to completion; the reason.
    Undecided(String),
    /// Cancelled by the caller.
    Interrupted,
}

/// A program to be run, with its limit on spontaneous steps.
#[derive(Clone, PartialEq, Debug)]
pub struct TestRun {
    /// The program.
    pub program: Program,
    /// Maximum number of spontaneous evictions and downgrades.
    pub max_spontaneous_evictions: u8,
}

/// Returns the classic programs of at most `max_threads` threads. Spontaneous evictions add many states, so variations
/// with three or more threads run without them.
pub fn classic(protocol: &Protocol, max_threads: usize) -> Vec<TestRun> {
    let programs = conformance_programs(protocol).into_iter();
    let programs = programs.filter(|program| program.threads.len() <= max_threads);
    let runs = programs.map(|program| TestRun {
        max_spontaneous_evictions: u8::from(
            program.threads.len() < 3 || !program.name.contains('+'),
        ),
        program,
    });
    runs.collect()
}

/// Returns the bursts of stores of at most `max_threads` threads. They run without spontaneous evictions.
pub fn bursts(model: Model, max_threads: usize) -> Vec<TestRun> {
    let programs = bursts::programs(model).into_iter();
    let programs = programs.filter(|program| program.threads.len() <= max_threads);
    let runs = programs.map(|program| TestRun {
        program,
        max_spontaneous_evictions: 0,
    });
    runs.collect()
}

/// Runs programs in every placement of threads on kinds of remotes, and compares their outcomes with the model.
///
/// The cores keep the orders that the protocol declares for its accesses, or else those of the model itself. `home`
/// returns the home for a number of caches. `max_states` limits the states of each program. The runs poll
/// `should_continue` and stop when it returns false.
pub fn check_conformance<'h>(
    protocol: &Protocol,
    model: Model,
    programs: Vec<TestRun>,
    max_states: Option<usize>,
    home: &dyn Fn(u16) -> Cow<'h, Controller>,
    should_continue: &mut dyn FnMut() -> bool,
) -> ConformanceReport {
    let mut report = ConformanceReport::new(model, protocol.homes);
    let mut undecided = None;
    let spontaneous_evictions: BTreeMap<String, u8> = programs
        .iter()
        .map(|run| (run.program.name.clone(), run.max_spontaneous_evictions))
        .collect();
    let programs = programs.into_iter().map(|run| run.program);
    let mut options = Options {
        cores: cores(protocol, model),
        ..Options::default()
    };
    options.max_states = max_states.map_or(options.max_states, |max| max.min(options.max_states));
    for programs in Lines::groups(protocol, programs.collect()) {
        let threads = programs[0].threads.len();
        let home = home(threads as u16);
        let locations = programs.iter().map(|program| program.locations.len());
        let locations = locations.max().unwrap_or(0) as u8;
        for (kinds, programs) in group_by_placement(protocol, programs) {
            let capacity = options.channel_capacity;
            let mut lines = Lines::new(protocol, &home, kinds.clone(), locations, capacity);
            for program in programs {
                options.max_spontaneous_evictions = spontaneous_evictions[&program.name];
                let run = run_on(&mut lines, &program, &options, should_continue);
                let placements = lines.placements(program.locations.len()).len();
                if !report.count_run(&run, protocol, &program, &options, placements) {
                    continue;
                }
                match program_verdict(run, &program, (protocol, &kinds), model) {
                    None => {}
                    // Another program may show a violation, which takes precedence.
                    Some((ConformanceVerdict::Undecided(reason), _)) => {
                        undecided.get_or_insert(reason);
                    }
                    Some((mut verdict, forbidden)) => {
                        if let ConformanceVerdict::Violated { path, .. } = &mut verdict {
                            let is_forbidden =
                                |outcome: Option<&Outcome>| outcome == forbidden.as_ref();
                            let found_path = shortest_path(
                                &mut lines,
                                &program,
                                &options,
                                &is_forbidden,
                                should_continue,
                            );
                            *path = found_path.map(Box::new);
                        }
                        report.verdict = verdict;
                        return report;
                    }
                }
            }
        }
    }
    if report.programs.is_empty() {
        let reason = "its caches cannot run any of the programs";
        undecided = Some(reason.to_string());
    }
    if let Some(reason) = undecided {
        report.verdict = ConformanceVerdict::Undecided(reason);
    }
    report
}

/// Returns cores that keep the program order that the protocol declares, or else that of the model.
fn cores(protocol: &Protocol, model: Model) -> CoreKind {
    match (protocol.program_order, model) {
        (Some(orders), _) => CoreKind::Relaxed(orders),
        (None, Model::Sc) => CoreKind::InOrder,
        (None, Model::Tso) => CoreKind::StoreBuffer,
        (None, Model::Rc | Model::Armv8 | Model::RiscV) => CoreKind::Relaxed(Orders::default()),
    }
}

impl ConformanceReport {
    /// Creates the report of a check that has run no program yet.
    fn new(model: Model, homes: u16) -> ConformanceReport {
        ConformanceReport {
            model,
            programs: BTreeSet::new(),
            threads: 0,
            accesses: 0,
            homes,
            placements: 0,
            max_spontaneous_evictions: 0,
            states: 0,
            unsupported_programs: 0,
            unsupported_placements: 0,
            verdict: ConformanceVerdict::Holds,
        }
    }

    /// Counts the run of a program in this number of placements of its locations. Returns false if the protocol cannot
    /// run the program.
    fn count_run(
        &mut self,
        run: &RunResult,
        protocol: &Protocol,
        program: &Program,
        options: &Options,
        placements: usize,
    ) -> bool {
        match run {
            RunResult::UnsupportedProgram(_) => {
                self.unsupported_programs += 1;
                return false;
            }
            RunResult::UnsupportedPlacement(_) if protocol.several_tables() => {
                self.unsupported_placements += 1;
                return false;
            }
            RunResult::Outcomes { states, .. } => self.states += states,
            _ => {}
        }
        self.max_spontaneous_evictions = self
            .max_spontaneous_evictions
            .max(options.max_spontaneous_evictions);
        let accesses = program.threads.iter().map(|thread| {
            let code = thread.code.iter();
            code.filter(|instruction| instruction.address().is_some())
                .count()
        });
        self.threads = self.threads.max(program.threads.len());
        self.accesses = self.accesses.max(accesses.max().unwrap_or(0));
        self.placements += placements;
        self.programs.insert(program.name.clone());
        true
    }

    /// Adds results of other programs, or of the same programs with other sizes. A violation takes precedence over an
    /// undecided program.
    pub fn extend(&mut self, other: ConformanceReport) {
        self.programs.extend(other.programs);
        self.threads = self.threads.max(other.threads);
        self.accesses = self.accesses.max(other.accesses);
        self.homes = self.homes.max(other.homes);
        self.placements += other.placements;
        self.max_spontaneous_evictions = self
            .max_spontaneous_evictions
            .max(other.max_spontaneous_evictions);
        self.states += other.states;
        self.unsupported_programs += other.unsupported_programs;
        self.unsupported_placements += other.unsupported_placements;
        if !matches!(
            (&self.verdict, &other.verdict),
            (ConformanceVerdict::Undecided(_), ConformanceVerdict::Holds)
        ) {
            self.verdict = other.verdict;
        }
    }
}

/// Groups programs by the placement of their threads on kinds of remotes.
fn group_by_placement(
    protocol: &Protocol,
    programs: Vec<Program>,
) -> BTreeMap<Kinds, Vec<Program>> {
    let mut groups: BTreeMap<Kinds, Vec<Program>> = BTreeMap::new();
    for program in programs {
        // Programs of three threads have few placements.
        for kinds in Kinds::all_placements(protocol, &program).unwrap_or_default() {
            groups.entry(kinds).or_default().push(program.clone());
        }
    }
    groups
}

/// Returns the verdict if the run ends the check, with the forbidden outcome if there is one. `None` means no
/// violation.
fn program_verdict(
    run: RunResult,
    program: &Program,
    (protocol, kinds): (&Protocol, &Kinds),
    model: Model,
) -> Option<(ConformanceVerdict, Option<Outcome>)> {
    let kinds = || kinds.names(protocol).join(",");
    let violated = |description: String, forbidden: Option<Outcome>| {
        let verdict = ConformanceVerdict::Violated {
            program: program.name.clone(),
            kinds: protocol.several_tables().then(kinds),
            description,
            path: None,
        };
        Some((verdict, forbidden))
    };
    let undecided = |description| Some((ConformanceVerdict::Undecided(description), None));
    match run {
        RunResult::Outcomes { outcomes, .. } => {
            let allowed = match allowed(program, model) {
                Ok(allowed) => allowed,
                Err(description) => return undecided(description),
            };
            let forbidden_outcome = outcomes
                .into_iter()
                .find(|outcome| !allowed.contains(outcome))?;
            violated(
                format!(
                    "its outcome is {}",
                    program.format_outcome(&forbidden_outcome)
                ),
                Some(forbidden_outcome),
            )
        }
        RunResult::Error(StepError::Violated(violation)) => violated(
            format!("{}: {}", violation.property, violation.description),
            None,
        ),
        RunResult::Error(StepError::Exceeded(description)) => undecided(description),
        RunResult::Stuck { livelock, .. } => {
            let description = match livelock {
                false => "deadlock: its threads wait forever",
                true => "livelock: its threads run forever, and no outcome is reachable",
            };
            violated(description.to_string(), None)
        }
        RunResult::LimitReached => undecided(format!("{} has too many states", program.name)),
        RunResult::Interrupted => Some((ConformanceVerdict::Interrupted, None)),
        RunResult::UnsupportedPlacement(description) => undecided(description),
        // The caller counts these programs as unsupported.
        RunResult::UnsupportedProgram(_) => None,
    }
}

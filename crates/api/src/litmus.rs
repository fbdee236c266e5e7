//! Litmus tests: outcomes of small programs that a memory model allows, and outcomes on a protocol.

mod port_runs;
mod request;
mod timed;

use crate::composition::LowerLevel;
use crate::guarantee::render_path;
use crate::outcome::{ExitStatus, Failure};
use crate::source::{diagnostic_json, Source};
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_diagnostics::suggestion;
use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::{CoreKind, MemoryRequest};
use cohkit_litmus::cycles::classic;
use cohkit_litmus::expectation::Observation;
use cohkit_litmus::kinds::Kinds;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::print::print;
use cohkit_litmus::program::{Claim, Outcome, Program, Quantifier, StoreVariant};
use cohkit_litmus::run::{
    run_on_clusters, run_on_kinds as explore, shortest_path, ClusterKind, RunResult, ShortestPath,
};
use cohkit_litmus::warm_caches::named;
use cohkit_litmus::{herd, run as protocols, store_variants};
use cohkit_protocol::construct::{self, ConstructionError};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::KindId;
use cohkit_system::state::StepError;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub use port_runs::{run_test_on_ports, PortSystems};
pub use request::{
    CoreModel, LitmusRequest, MemoryModel, OutcomeBasis, DEFAULT_MAX_SPONTANEOUS_EVICTIONS,
    DEFAULT_MAX_STATES,
};

/// A litmus test, and its file if it has one.
#[derive(Clone, Debug)]
pub struct Test {
    /// Name or path of the test's file, as given; `None` for a classic shape.
    file: Option<String>,
    /// Threads, initial values and final condition.
    program: Program,
    /// The expectation that the file states.
    expected: Option<Observation>,
    /// Kinds of remotes that the threads run on, if the protocol distinguishes kinds or they were given; kinds of
    /// clusters with several lower levels.
    kinds: Option<Kinds>,
    /// One letter for the variant of each write, if variants were selected.
    store_variants: Option<String>,
}

impl Test {
    /// Returns the classic shape of this name.
    ///
    /// # Errors
    /// No shape has this name; the text suggests a similar name to the user.
    pub fn shape(name: &str) -> Result<Test, String> {
        if let Some(program) = named(name) {
            return Ok(Test::new(program));
        }
        let shapes = classic();
        Err(suggestion(
            name,
            "shape",
            shapes.iter().map(|shape| shape.name.as_str()),
        ))
    }

    /// Parses a test. `file` is the name to show in errors and results.
    ///
    /// # Errors
    /// The error of the test as JSON, with the keys of errors of protocol files.
    pub fn parse(file: &str, text: &str) -> Result<Test, Value> {
        Test::read(file, text).map_err(|error| {
            let notes: Vec<_> = error.help.iter().map(|help| (None, help.clone())).collect();
            let rendered = error.render(file, text, false);
            let (message, label) = (&error.message, &error.label);
            let entry = diagnostic_json(
                "litmus", message, text, error.span, label, &notes, &rendered,
            );
            json!([entry])
        })
    }

    /// Reads a test. `file` is the name to show in results.
    ///
    /// # Errors
    /// The first error of the text.
    pub fn read(file: &str, text: &str) -> Result<Test, herd::Diagnostic> {
        let program = herd::read(text)?;
        Ok(Test {
            file: Some(file.to_string()),
            expected: Observation::expected(text),
            ..Test::new(program)
        })
    }

    /// Returns all classic shapes.
    pub fn shapes() -> Vec<Test> {
        classic().into_iter().map(Test::new).collect()
    }

    /// Test in the format of the herd tools.
    ///
    /// # Errors
    /// The format cannot express the test.
    pub fn print(&self) -> Result<String, String> {
        print(&self.program)
    }

    fn new(program: Program) -> Test {
        Test {
            file: None,
            program,
            expected: None,
            kinds: None,
            store_variants: None,
        }
    }

    /// Returns the test on caches of these kinds, one per thread, separated by commas. Without `kinds`, returns one
    /// test per placement if kinds differ in their rows.
    ///
    /// # Errors
    /// The kinds are invalid.
    pub fn with_kinds(
        self,
        kinds: Option<&str>,
        protocol: &Protocol,
    ) -> Result<Vec<Test>, Failure> {
        let placements = match kinds {
            Some(kinds) => Kinds::parse(kinds, protocol, &self.program).map(|kinds| vec![kinds]),
            None if protocol.several_tables() => Kinds::all_placements(protocol, &self.program),
            None => return Ok(vec![self]),
        };
        let kinds_error =
            |reason| Failure::new(ExitStatus::BadInput, format!("error: --kinds: {reason}"));
        let with_kinds = |kinds| Test {
            kinds: Some(kinds),
            ..self.clone()
        };
        Ok(placements
            .map_err(kinds_error)?
            .into_iter()
            .map(with_kinds)
            .collect())
    }

    /// Returns the test with each thread in a cluster of these lower levels, separated by commas. Without `names`,
    /// returns one test per placement of threads on lower levels.
    ///
    /// # Errors
    /// The names are invalid.
    pub fn with_clusters(
        self,
        names: Option<&str>,
        lower: &[LowerLevel],
    ) -> Result<Vec<Test>, Failure> {
        let known_names: Vec<&str> = lower.iter().map(|level| level.name.as_str()).collect();
        let placements = match names {
            Some(names) => {
                let missing = "the composition has no inner protocol";
                Kinds::parse_names(names, (&known_names, missing), &self.program)
                    .map(|kinds| vec![kinds])
            }
            None => {
                let kinds: Vec<KindId> = (0..lower.len() as u8).map(KindId).collect();
                Kinds::placements(&kinds, &self.program)
            }
        };
        let placements = placements.map_err(|reason| {
            Failure::new(ExitStatus::BadInput, format!("error: --kinds: {reason}"))
        })?;
        let with_kinds = |kinds| Test {
            kinds: Some(kinds),
            ..self.clone()
        };
        Ok(placements.into_iter().map(with_kinds).collect())
    }

    /// Kinds of remotes that the threads run on, by default the first kind.
    fn kinds(&self) -> Kinds {
        let first_kind = || Kinds::from(self.program.threads.len() as u8);
        self.kinds.clone().unwrap_or_else(first_kind)
    }

    /// Names of these kinds, if the test has a placement.
    fn kind_names(&self, memory_system: MemorySystem) -> Option<Vec<String>> {
        let kinds = self.kinds.as_ref()?;
        if !memory_system.lower.is_empty() {
            let name = |kind: usize| memory_system.lower[kind].name.clone();
            return Some(kinds.indices().map(name).collect());
        }
        let names = kinds.names(&memory_system.source?.protocol);
        Some(names.into_iter().map(String::from).collect())
    }

    /// Returns the test with these store variants for its writes, or one test per combination of variants. The letters
    /// of the variants become part of the name.
    ///
    /// # Errors
    /// The letters are invalid.
    pub fn with_store_variants(
        self,
        store_variants: &str,
        protocol: &Protocol,
    ) -> Result<Vec<Test>, Failure> {
        let mixes = match store_variants {
            // The former spelling `every` stays valid until 0.3.0.
            "all" | "every" => store_variants::all_mixes(protocol, &self.kinds(), &self.program),
            letters => {
                let mix =
                    store_variants::parse_mix(letters, protocol, &self.kinds(), &self.program);
                let stores_error = |reason| {
                    Failure::new(
                        ExitStatus::BadInput,
                        format!("error: --store-variants: {reason}"),
                    )
                };
                vec![mix.map_err(stores_error)?]
            }
        };
        let with_mix = |mix: Vec<StoreVariant>| {
            let letters = store_variants::format_mix(&mix);
            let mut program = store_variants::with_mix(&self.program, &mix);
            program.name = format!("{} {letters}", program.name);
            Test {
                program,
                store_variants: Some(letters),
                ..self.clone()
            }
        };
        Ok(mixes.into_iter().map(with_mix).collect())
    }
}

/// Reason why a test has no verdict.
pub enum TestError {
    /// No home can be constructed for the protocol.
    NoHome(Box<Source>, ConstructionError),
    /// Any other failure.
    Failure(Failure),
}

impl From<Failure> for TestError {
    fn from(failure: Failure) -> TestError {
        TestError::Failure(failure)
    }
}

/// Memory system under the threads: one protocol, or two levels; without a protocol, the memory model alone decides.
#[derive(Clone, Copy)]
pub struct MemorySystem<'s> {
    /// Protocol; of two levels, the upper one.
    pub source: Option<&'s Source>,
    /// Protocols of the level below it; empty with one level.
    pub lower: &'s [LowerLevel],
    /// Protocol file as given: a composition if there are two levels.
    pub file: Option<&'s Path>,
}

/// Cores between threads and the caches of a protocol, and the memory model of these threads.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ThreadModel {
    /// Core model between threads and caches.
    cores: CoreKind,
    /// Memory model to compare outcomes with.
    model: Model,
    /// True if the protocol guarantees this model, so that every other outcome is a violation.
    guaranteed: bool,
}

/// Options of a run, with defaults applied.
#[derive(Clone)]
struct LitmusOptions {
    /// Core model between threads and caches; that of the first thread if `threads` has several.
    cores: CoreKind,
    /// Memory model to compare outcomes with; that of the first thread if `threads` has several.
    model: Model,
    /// True if the protocol, or that of each thread, guarantees this model, so that every other outcome is a violation.
    guaranteed: bool,
    /// Cores and model of each thread; empty unless threads run on clusters of several kinds.
    threads: Vec<ThreadModel>,
    /// Maximum number of spontaneous evictions and downgrades in one run, of all caches together.
    max_spontaneous_evictions: u8,
    /// Maximum number of states that are explored for the test.
    max_states: usize,
    /// Condition for [`ExitStatus::Success`], besides violations.
    basis: OutcomeBasis,
}

impl MemorySystem<'_> {
    /// Name of the protocol; of two levels, that of the upper one.
    fn name(&self) -> Option<&str> {
        self.source.map(|source| source.protocol.name.as_str())
    }

    /// Fills in the protocol's defaults for options that were not given.
    fn litmus_options(&self, request: &LitmusRequest, test: &Test) -> LitmusOptions {
        // Cores are connected to the caches of the lower level.
        let lower = |kind: usize| self.lower.get(kind).map(|level| &level.source);
        let of_kind = |kind| {
            let source = lower(kind).or(self.source);
            thread_model(source.map(|source| &source.protocol), request)
        };
        let threads: Vec<ThreadModel> = match self.lower.len() {
            0 | 1 => Vec::new(),
            _ => test.kinds().indices().map(of_kind).collect(),
        };
        let first = threads.first().copied().unwrap_or_else(|| of_kind(0));
        LitmusOptions {
            cores: first.cores,
            model: first.model,
            guaranteed: first.guaranteed && threads.iter().all(|thread| thread.guaranteed),
            threads,
            max_spontaneous_evictions: request.max_spontaneous_evictions,
            max_states: request.max_states,
            basis: request.basis,
        }
    }
}

/// Cores and memory model of threads on the caches of a protocol, with its defaults for options that were not given.
fn thread_model(protocol: Option<&Protocol>, request: &LitmusRequest) -> ThreadModel {
    let cores = request.cores;
    let core_windows = protocol.and_then(|protocol| protocol.program_order);
    let core_model = match (cores, core_windows) {
        (Some(CoreModel::InOrder), _) | (None, None) => CoreKind::InOrder,
        (Some(CoreModel::StoreBuffer), _) => CoreKind::StoreBuffer,
        (Some(CoreModel::Relaxed), core_windows) => {
            CoreKind::Relaxed(core_windows.unwrap_or_default())
        }
        (None, Some(core_windows)) => CoreKind::Relaxed(core_windows),
    };
    let guaranteed_cores = core_windows.map_or(CoreKind::InOrder, CoreKind::Relaxed);
    let guaranteed = protocol.and_then(|protocol| protocol.guarantee.model);
    let default_model = match (guaranteed, core_model) {
        (Some(model), _) if cores.is_none() => model,
        (_, CoreKind::InOrder) => Model::Sc,
        (_, CoreKind::StoreBuffer) => Model::Tso,
        (_, CoreKind::Relaxed(_)) => Model::Rc,
    };
    let model = match request.model {
        Some(MemoryModel::Sc) => Model::Sc,
        Some(MemoryModel::Tso) => Model::Tso,
        Some(MemoryModel::Rc) => Model::Rc,
        Some(MemoryModel::Armv8) => Model::Armv8,
        Some(MemoryModel::Riscv) => Model::RiscV,
        None => default_model,
    };
    ThreadModel {
        cores: core_model,
        model,
        guaranteed: core_model == guaranteed_cores && guaranteed == Some(model),
    }
}

impl LitmusOptions {
    /// JSON value: true if the file's expectation is met, and null if undecided; `None` if it does not determine the
    /// exit code.
    fn expectation_json(&self, outcome: ExitStatus) -> Option<Value> {
        let is_met = match outcome {
            ExitStatus::Success => json!(true),
            ExitStatus::Violated => json!(false),
            _ => Value::Null,
        };
        (self.basis == OutcomeBasis::File).then_some(is_met)
    }

    /// Options of the exhaustive run on a protocol.
    fn options(&self) -> protocols::Options {
        protocols::Options {
            cores: self.cores,
            max_spontaneous_evictions: self.max_spontaneous_evictions,
            max_states: self.max_states,
            ..protocols::Options::default()
        }
    }

    /// Cores of a thread, if threads run on clusters of several kinds.
    fn cores_of(&self, thread: Option<usize>) -> Option<CoreKind> {
        Some(self.threads.get(thread?)?.cores)
    }

    /// True if threads have different cores.
    fn has_mixed_cores(&self) -> bool {
        self.threads.iter().any(|thread| thread.cores != self.cores)
    }

    /// True if threads have different memory models.
    fn has_mixed_models(&self) -> bool {
        self.threads.iter().any(|thread| thread.model != self.model)
    }

    /// Name of the memory model, or the names of those of the threads.
    fn model_name(&self) -> String {
        if !self.has_mixed_models() {
            return self.model.to_string();
        }
        let threads = self.threads.iter().enumerate();
        let names = threads.map(|(number, thread)| format!("{} (P{number})", thread.model));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the outcomes that the model allows.
    fn allowed(&self, program: &Program) -> Result<BTreeSet<Outcome>, Failure> {
        let models: Vec<Model> = match self.threads.is_empty() {
            true => vec![self.model; program.threads.len()],
            false => self.threads.iter().map(|thread| thread.model).collect(),
        };
        axioms::allowed_by_thread(program, &models)
            .map_err(|reason| Failure::new(ExitStatus::Undecided, format!("undecided: {reason}")))
    }
}

/// Result of a test, in each form of output.
pub struct Report {
    /// Outcome of the test.
    pub outcome: ExitStatus,
    /// Result as text, with a chart of the path to the deciding outcome if there is one.
    pub text: String,
    /// JSON value of one test, described in `docs/output.md`.
    pub json: Value,
}

/// Result of a test whose orders of events were all explored.
struct ExploredTest {
    /// File of the test; `None` for a shape.
    file: Option<String>,
    /// Program that was explored, with its store variants.
    program: Program,
    /// Names of the kinds of remotes that threads run on, if the test has a placement.
    kinds: Option<Vec<String>>,
    /// Result of the exploration; without a protocol, the outcomes that the model allows, with 0 states.
    found: RunResult,
    /// Options of the run.
    options: LitmusOptions,
    /// Outcomes required for exit code 0.
    expected: Expected,
    /// Outcomes that the model allows.
    allowed: BTreeSet<Outcome>,
    /// Shortest path to the deciding outcome, if it is to be drawn and exists.
    path: Option<ShortestPath>,
}

/// Returns the JSON of `cohkit litmus --json` for one test, on a protocol or by the memory model alone. Another thread
/// ends the run by setting `cancel`.
///
/// # Errors
/// The errors of [`run_test`].
pub fn run_test_json(
    test: &Test,
    memory_system: MemorySystem,
    request: &LitmusRequest,
    cancel: &AtomicBool,
) -> Result<Value, TestError> {
    let mut should_continue = || !cancel.load(Ordering::SeqCst);
    let charts = Text::default();
    let report = run_test(test, memory_system, request, &charts, &mut should_continue)?;
    Ok(report.json)
}

/// Runs one test: on a protocol in every order of events, on threads of the simulator, or by the memory model alone.
/// `charts` is the form of the charts in the text. The run polls `should_continue` and ends soon after it returns
/// false.
///
/// # Errors
/// The test cannot run on the protocol, no home can be constructed, the model's outcomes cannot be computed, a chart
/// of two levels is requested, or the run was interrupted.
pub fn run_test(
    test: &Test,
    memory_system: MemorySystem,
    request: &LitmusRequest,
    charts: &Text,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Report, TestError> {
    let litmus_options = memory_system.litmus_options(request, test);
    match (memory_system.source, request.simulate) {
        (Some(_), Some(_)) if !is_simulated(memory_system) => {
            let message = "error: the simulator needs one inner protocol, without `guarantee none`";
            Err(Failure::new(ExitStatus::BadInput, message).into())
        }
        (Some(source), Some(seeds)) => {
            let system = (source, memory_system);
            timed::run(system, test, &litmus_options, seeds, should_continue)
        }
        (None, Some(_)) => {
            let message = "error: runs in the simulator need a protocol, but none is given";
            Err(Failure::new(ExitStatus::BadInput, message).into())
        }
        (_, None) => {
            let verdict = judge(
                test,
                memory_system,
                &litmus_options,
                request.chart,
                should_continue,
            )?;
            Ok(Report {
                outcome: verdict.outcome(),
                text: verdict.text(memory_system.name()) + &verdict.path_text(charts),
                json: verdict.json(memory_system.name()),
            })
        }
    }
}

/// True if the simulator runs threads on this memory system.
fn is_simulated(memory_system: MemorySystem) -> bool {
    match memory_system.lower {
        [] => true,
        [lower] => lower.source.protocol.guarantee.coherent,
        _ => false,
    }
}

/// Explores one test, in every order of events on a protocol or by the memory model alone. A shortest path is searched
/// if `chart`, and on one level of caches also if an outcome is forbidden or the threads are stuck.
fn judge(
    test: &Test,
    memory_system: MemorySystem,
    litmus_options: &LitmusOptions,
    chart: bool,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<ExploredTest, TestError> {
    let program = &test.program;
    let allowed = litmus_options.allowed(program)?;
    let (result, path) = match memory_system.source {
        None => {
            let (outcomes, states) = (allowed.clone(), 0);
            (RunResult::Outcomes { outcomes, states }, None)
        }
        Some(source) => {
            let levels = (source, memory_system.lower);
            let result = explore_on_protocol(levels, test, litmus_options, should_continue)?;
            let forbidden = match &result {
                RunResult::Outcomes { outcomes, .. } => {
                    outcomes.iter().any(|outcome| !allowed.contains(outcome))
                }
                RunResult::Stuck { .. } => true,
                _ => false,
            };
            let path = match chart || forbidden && memory_system.lower.is_empty() {
                true => deciding_path(
                    levels,
                    test,
                    &result,
                    (litmus_options, &allowed),
                    should_continue,
                )?,
                false => None,
            };
            (result, path)
        }
    };
    if matches!(result, RunResult::Interrupted) {
        return Err(Failure::new(ExitStatus::Interrupted, "interrupted").into());
    }
    Ok(ExploredTest {
        file: test.file.clone(),
        program: program.clone(),
        kinds: test.kind_names(memory_system),
        found: result,
        options: litmus_options.clone(),
        expected: Expected::of(test, litmus_options, memory_system.source.is_some()),
        allowed,
        path,
    })
}

/// Constructs the home for this number of caches.
fn home(source: &Source, caches: u16) -> Result<Controller, TestError> {
    construct::home(&source.protocol, caches)
        .map_err(|error| TestError::NoHome(Box::new(source.clone()), error))
}

/// Shortest path to the deciding outcome: one that the model forbids, or else one that decides the condition. For a
/// deadlock or livelock, the path leads to a stuck state.
fn deciding_path(
    (source, lower): (&Source, &[LowerLevel]),
    test: &Test,
    result: &RunResult,
    (litmus_options, allowed): (&LitmusOptions, &BTreeSet<Outcome>),
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Option<ShortestPath>, TestError> {
    if !lower.is_empty() {
        let message = "error: charts show one level of caches, but the specification has two";
        return Err(Failure::new(ExitStatus::BadInput, message).into());
    }
    let program = &test.program;
    let is_forbidden = |outcome: &Outcome| !allowed.contains(outcome);
    let is_deciding_outcome =
        |outcome: &Outcome| program.holds(outcome) == (program.quantifier != Quantifier::Forall);
    let is_deciding: &dyn Fn(Option<&Outcome>) -> bool = match result {
        RunResult::Outcomes { outcomes, .. } if outcomes.iter().any(is_forbidden) => {
            &|outcome| outcome.is_some_and(is_forbidden)
        }
        RunResult::Outcomes { outcomes, .. } if outcomes.iter().any(is_deciding_outcome) => {
            &|outcome| outcome.is_some_and(is_deciding_outcome)
        }
        RunResult::Stuck { .. } => &|outcome| outcome.is_none(),
        _ => return Ok(None),
    };
    let threads = program.threads.len();
    let home = home(source, threads as u16)?;
    let run_options = litmus_options.options();
    let locations = program.locations.len() as u8;
    let mut lines = Lines::new(
        &source.protocol,
        &home,
        test.kinds(),
        locations,
        run_options.channel_capacity,
    );
    Ok(shortest_path(
        &mut lines,
        program,
        &run_options,
        is_deciding,
        should_continue,
    ))
}

/// Explores all outcomes of a test on one or two levels of caches. A test that the caches cannot run is an error,
/// unless remotes differ in their rows: the same test may run in another placement.
fn explore_on_protocol(
    (source, lower): (&Source, &[LowerLevel]),
    test: &Test,
    litmus_options: &LitmusOptions,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<RunResult, TestError> {
    let program = &test.program;
    let home = |source| home(source, program.threads.len() as u16);
    let upper_home = home(source)?;
    let run_options = litmus_options.options();
    let result = match lower.is_empty() {
        true => {
            let system = (&source.protocol, &upper_home);
            explore(
                system,
                &test.kinds(),
                program,
                &run_options,
                should_continue,
            )
        }
        false => {
            let homes = lower.iter().map(|level| home(&level.source));
            let homes: Vec<Controller> = homes.collect::<Result<_, _>>()?;
            let kind_of_thread: Vec<usize> = test.kinds().indices().collect();
            let kinds = lower.iter().zip(&homes).enumerate();
            let kinds: Vec<ClusterKind> = kinds
                .map(|(kind, (level, home))| ClusterKind {
                    protocol: &level.source.protocol,
                    home,
                    // With one lower level, threads have as many clusters as they need.
                    max_clusters: (lower.len() > 1).then_some(level.clusters as u8),
                    cores: litmus_options.cores_of(kind_of_thread.iter().position(|k| *k == kind)),
                })
                .collect();
            run_on_clusters(
                (&source.protocol, &upper_home),
                (&kinds, &kind_of_thread),
                std::slice::from_ref(program),
                &run_options,
                should_continue,
            )
            .remove(0)
        }
    };
    match result {
        // The threads may run when placed on other kinds.
        RunResult::UnsupportedPlacement(_) | RunResult::UnsupportedProgram(_)
            if source.protocol.several_tables() =>
        {
            Ok(result)
        }
        RunResult::UnsupportedPlacement(reason) | RunResult::UnsupportedProgram(reason) => {
            Err(unsupported_test(source, program, &reason).into())
        }
        result => Ok(result),
    }
}

/// Failure for a test that cannot run on this protocol.
fn unsupported_test(source: &Source, program: &Program, reason: &str) -> Failure {
    let (path, test) = (source.path.display(), &program.name);
    let message = format!("error: {path}: cannot run {test}: {reason}");
    Failure::new(ExitStatus::BadInput, message)
}

/// Kinds of remotes that threads run on, as text.
fn kinds_text(kinds: Option<&[String]>) -> String {
    let names = kinds.map(|kinds| format!(" ({})", kinds.join(", ")));
    names.unwrap_or_default()
}

/// Core model as text.
fn cores_text(cores: CoreKind) -> &'static str {
    match cores {
        CoreKind::InOrder => "in order",
        CoreKind::StoreBuffer => "with store buffers",
        CoreKind::Relaxed(_) => "with windows",
    }
}

/// Compares the outcomes with those that the model allows, as text.
fn comparison<'e>(
    outcomes: impl Iterator<Item = &'e Outcome>,
    litmus_options: &LitmusOptions,
    allowed: &BTreeSet<Outcome>,
) -> String {
    let (model, mut count, mut forbidden_count) = (litmus_options.model_name(), 0, 0);
    for outcome in outcomes {
        count += 1;
        forbidden_count += usize::from(!allowed.contains(outcome));
    }
    let allowed_count = allowed.len();
    let guarantee_note = match litmus_options.guaranteed {
        true => ", which the protocol guarantees",
        false => "",
    };
    match forbidden_count {
        0 if count == allowed_count => format!("exactly the outcomes of {model}"),
        0 => format!("{count} of the {allowed_count} outcomes of {model}, and no other"),
        1 => format!("1 outcome is forbidden by {model}{guarantee_note}"),
        _ => format!("{forbidden_count} outcomes are forbidden by {model}{guarantee_note}"),
    }
}

/// Observation of the condition with its counts, in herd's words; without a condition, only the number of outcomes.
fn observation_text<'e>(
    program: &Program,
    outcomes: impl Iterator<Item = &'e Outcome> + Clone,
) -> String {
    let count = outcomes.clone().count();
    let outcome_count = counted(count as u64, "outcome");
    if program.claim == Claim::True {
        return format!("{outcome_count}, no condition");
    }
    let satisfying = outcomes
        .clone()
        .filter(|outcome| program.holds(outcome))
        .count();
    let verdict = match program.is_satisfied(outcomes) {
        true => "holds",
        false => "does not hold",
    };
    let (observation, quantifier) = (Observation::of(satisfying, count), program.quantifier);
    format!("{observation}, {satisfying} of {outcome_count}: `{quantifier}` {verdict}")
}

/// Observation of the condition for JSON; `None` if there is no outcome.
fn observation<'e>(
    program: &Program,
    outcomes: impl Iterator<Item = &'e Outcome> + Clone,
) -> Option<String> {
    let count = outcomes.clone().count();
    let satisfying = outcomes.filter(|outcome| program.holds(outcome)).count();
    let observation = (count > 0).then(|| Observation::of(satisfying, count));
    observation.map(|observation| observation.to_string().to_lowercase())
}

/// List of outcomes, which marks those that satisfy the condition, and those that the model forbids.
fn outcome_list<'e>(
    program: &Program,
    outcomes: impl Iterator<Item = (&'e Outcome, String)>,
    litmus_options: &LitmusOptions,
    allowed: &BTreeSet<Outcome>,
) -> String {
    let line = |(outcome, suffix): (&Outcome, String)| {
        let satisfies = program.claim != Claim::True && program.holds(outcome);
        let mark = if satisfies { '*' } else { ' ' };
        let forbidden = match allowed.contains(outcome) {
            true => String::new(),
            false => format!(" (forbidden by {})", litmus_options.model_name()),
        };
        format!(
            "  {mark} {}{suffix}{forbidden}\n",
            program.format_outcome(outcome)
        )
    };
    outcomes.map(line).collect()
}

/// Outcomes that a test must show for exit code 0, if nothing is violated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    /// Outcomes that satisfy the condition with its quantifier.
    Condition,
    /// Outcomes with this observation.
    Exactly(Observation),
    /// Any outcomes that the model allows.
    Allowed,
}

impl Expected {
    /// Returns the outcomes required of a test. `on_protocol` is false if the memory model alone decides.
    fn of(test: &Test, litmus_options: &LitmusOptions, on_protocol: bool) -> Expected {
        if litmus_options.basis == OutcomeBasis::Condition {
            return Expected::Condition;
        }
        let expected = test.expected.or(match test.program.quantifier {
            Quantifier::Exists => None,
            Quantifier::NotExists => Some(Observation::Never),
            Quantifier::Forall => Some(Observation::Always),
        });
        match expected {
            // A protocol may be stronger than the test permits.
            None | Some(Observation::Sometimes) if on_protocol => Expected::Allowed,
            Some(observation) => Expected::Exactly(observation),
            None => Expected::Condition,
        }
    }

    /// Returns true if the observed outcomes are as required. Violations of the memory model are judged separately.
    fn is_met<'e>(
        self,
        program: &Program,
        outcomes: impl Iterator<Item = &'e Outcome> + Clone,
    ) -> bool {
        match self {
            Expected::Condition => program.is_satisfied(outcomes),
            Expected::Exactly(observation) => {
                let satisfying = outcomes
                    .clone()
                    .filter(|outcome| program.holds(outcome))
                    .count();
                observation == Observation::of(satisfying, outcomes.count())
            }
            Expected::Allowed => true,
        }
    }
}

/// Description of a deadlock or livelock.
fn stuck_text(livelock: bool) -> &'static str {
    match livelock {
        false => "deadlock: no step is possible, but some threads have not ended",
        true => "livelock: no outcome is reachable from a reachable state",
    }
}

/// Quantifier of the condition, for JSON.
fn quantifier_key(program: &Program) -> &'static str {
    match program.quantifier {
        Quantifier::Exists => "exists",
        Quantifier::NotExists => "not_exists",
        Quantifier::Forall => "forall",
    }
}

impl LitmusOptions {
    /// Core model, for JSON.
    fn cores_key(&self) -> &'static str {
        match self.has_mixed_cores() {
            true => "of_each_cluster",
            false => cores_key(self.cores),
        }
    }

    /// Memory model, for JSON.
    fn model_key(&self) -> &'static str {
        match self.has_mixed_models() {
            true => "compound",
            false => self.model.name(),
        }
    }
}

/// Core model, for JSON.
fn cores_key(cores: CoreKind) -> &'static str {
    match cores {
        CoreKind::InOrder => "in_order",
        CoreKind::StoreBuffer => "store_buffer",
        CoreKind::Relaxed(_) => "relaxed",
    }
}

/// Values of an outcome, for JSON.
fn outcome_values(program: &Program, outcome: &Outcome) -> Value {
    let values = outcome.0.iter();
    let values = values.map(|(observable, value)| (program.name_of(observable), json!(value)));
    Value::Object(values.collect())
}

impl ExploredTest {
    /// Returns true if an outcome violates the guaranteed memory model.
    fn breaks_guarantee(&self) -> bool {
        match &self.found {
            RunResult::Outcomes { outcomes, .. } => {
                self.options.guaranteed && !outcomes.is_subset(&self.allowed)
            }
            _ => false,
        }
    }

    /// Outcome of the test for the exit code.
    fn outcome(&self) -> ExitStatus {
        match &self.found {
            RunResult::Outcomes { .. } if self.breaks_guarantee() => ExitStatus::Violated,
            RunResult::Outcomes { outcomes, .. }
                if self.expected.is_met(&self.program, outcomes.iter()) =>
            {
                ExitStatus::Success
            }
            RunResult::Outcomes { .. }
            | RunResult::Error(StepError::Violated(_))
            | RunResult::Stuck { .. } => ExitStatus::Violated,
            RunResult::Error(StepError::Exceeded(_)) | RunResult::LimitReached => {
                ExitStatus::Undecided
            }
            RunResult::Interrupted => ExitStatus::Interrupted,
            RunResult::UnsupportedPlacement(_) | RunResult::UnsupportedProgram(_) => {
                ExitStatus::Undecided
            }
        }
    }

    /// Shortest path with its chart; empty if there is none.
    fn path_text(&self, charts: &Text) -> String {
        let shortest = self.path.as_ref();
        shortest
            .map(|shortest| render_path(shortest, charts))
            .unwrap_or_default()
    }

    /// Result as text. `protocol` is the protocol's name; without it, the text names the memory model.
    fn text(&self, protocol: Option<&str>) -> String {
        let program = &self.program;
        let name = &program.name;
        let cores = match self.options.has_mixed_cores() {
            true => "of each cluster",
            false => cores_text(self.options.cores),
        };
        let kinds = kinds_text(self.kinds.as_deref());
        let model = self.options.model;
        let mut text = match (protocol, model) {
            (Some(protocol), _) => format!("{name} on {protocol}{kinds}, cores {cores}: "),
            (None, Model::Rc | Model::Armv8 | Model::RiscV) => {
                format!("{name} under {}: ", model)
            }
            (None, Model::Sc) => {
                format!("{name} on sequentially consistent memory, cores in order: ")
            }
            (None, Model::Tso) => {
                format!("{name} on sequentially consistent memory, cores with store buffers: ")
            }
        };
        let _ = match &self.found {
            RunResult::Outcomes { outcomes, states } => {
                if self.breaks_guarantee() {
                    text.push_str("violated: ");
                }
                let _ = writeln!(text, "{}", observation_text(program, outcomes.iter()));
                let rows = outcomes.iter().map(|outcome| (outcome, String::new()));
                text.push_str(&outcome_list(program, rows, &self.options, &self.allowed));
                match protocol {
                    Some(_) => {
                        let states = counted(*states as u64, "state");
                        let comparison = comparison(outcomes.iter(), &self.options, &self.allowed);
                        writeln!(text, "  {comparison}, in {states}")
                    }
                    None => writeln!(text, "  the outcomes of {model}"),
                }
            }
            RunResult::Error(StepError::Violated(violation)) => {
                writeln!(
                    text,
                    "violated: {}: {}",
                    violation.property, violation.description
                )
            }
            RunResult::Error(StepError::Exceeded(reason)) => writeln!(text, "undecided: {reason}"),
            RunResult::Stuck { waiting, livelock } => {
                let _ = writeln!(text, "violated: {}", stuck_text(*livelock));
                for (thread, request) in waiting.iter().enumerate() {
                    if let Some(request) = request {
                        let place = &program.locations[usize::from(request.location())];
                        let operation = match request {
                            MemoryRequest::Read(..) => "read",
                            MemoryRequest::Write(..) => "write",
                            MemoryRequest::Update(..) => "read and write",
                        };
                        let _ = writeln!(text, "  P{thread} waits to {operation} {place}");
                    }
                }
                Ok(())
            }
            RunResult::LimitReached => {
                writeln!(
                    text,
                    "undecided: state limit reached; raise it with `--max-states N`"
                )
            }
            RunResult::UnsupportedPlacement(reason) | RunResult::UnsupportedProgram(reason) => {
                writeln!(text, "undecided: {reason}")
            }
            RunResult::Interrupted => writeln!(text, "not run"),
        };
        text
    }

    /// Result as JSON, described in `docs/output.md`; `protocol` is the protocol's name, null without one.
    fn json(&self, protocol: Option<&str>) -> Value {
        let program = &self.program;
        let (outcome, reason) = match &self.found {
            RunResult::Outcomes { .. } if self.breaks_guarantee() => {
                let model = self.options.model_name();
                ("violated", Some(format!("guarantee: {model}")))
            }
            RunResult::Outcomes { outcomes, .. } if program.is_satisfied(outcomes) => {
                ("satisfied", None)
            }
            RunResult::Outcomes { .. } => ("not_satisfied", None),
            RunResult::Error(StepError::Violated(violation)) => {
                let reason = format!("{}: {}", violation.property, violation.description);
                ("violated", Some(reason))
            }
            RunResult::Stuck { livelock, .. } => {
                ("violated", Some(stuck_text(*livelock).to_string()))
            }
            RunResult::Error(StepError::Exceeded(reason)) => ("undecided", Some(reason.clone())),
            RunResult::UnsupportedPlacement(reason) | RunResult::UnsupportedProgram(reason) => {
                ("undecided", Some(reason.clone()))
            }
            RunResult::LimitReached => ("undecided", Some("max_states".to_string())),
            RunResult::Interrupted => ("undecided", Some("interrupted".to_string())),
        };
        let outcome_json = |outcome: &Outcome| {
            json!({
                "values": outcome_values(program, outcome),
                "satisfies": program.holds(outcome),
                "allowed": self.allowed.contains(outcome),
            })
        };
        let (outcomes, states) = match &self.found {
            RunResult::Outcomes { outcomes, states } => {
                (outcomes.iter().map(outcome_json).collect(), *states)
            }
            _ => (Vec::new(), 0),
        };
        let observation = match &self.found {
            RunResult::Outcomes { outcomes, .. } => observation(program, outcomes.iter()),
            _ => None,
        };
        let mut value = json!({
            "test": program.name,
            "protocol": protocol,
            "cores": self.options.cores_key(),
            "model": self.options.model_key(),
            "condition": quantifier_key(program),
            "observation": observation,
            "outcome": outcome,
            "reason": reason,
            "outcomes": outcomes,
            "allowed": self.allowed.len(),
            "states": states,
            "run": { "file": self.file, "version": env!("CARGO_PKG_VERSION") },
        });
        if let Some(kinds) = &self.kinds {
            value["kinds"] = json!(kinds);
        }
        if let Some(expected) = self.options.expectation_json(self.outcome()) {
            value["expected"] = expected;
        }
        if let Some(path) = &self.path {
            value["steps"] = json!(path.steps);
            value["sequence"] = cohkit_chart::json(&path.chart);
        }
        value
    }
}

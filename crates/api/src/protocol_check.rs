//! Verdicts on the systems of a protocol.

use crate::any_number::AnyNumberVerdict;
use crate::checkpoints::Checkpoints;
use crate::concurrent_runs::threads;
use crate::coverage::SystemCoverage;
use crate::guarantee::{self, GuaranteeVerdict, Sizes};
use crate::outcome::Failure;
use crate::size;
use crate::source::{InputError, Source};
use crate::starvation::{Fairness, StarvationVerdict};
use crate::verdict::{Evidence, Verdict};
use cohkit_base::words::counted;
use cohkit_check::progress::{progress, UndecidedSearch, PROGRESS};
use cohkit_check::system::{self, assumptions, SystemModel};
use cohkit_diagnostics::suggestion;
use cohkit_engine::coverage::{coverage, Coverage};
use cohkit_engine::explain::explain;
use cohkit_engine::model::Model;
use cohkit_engine::report::{PropertyResult, Status};
use cohkit_engine::search::{self, CheckpointSink, Progress};
use cohkit_engine::simulate::{simulate, Simulation};
use cohkit_engine::{check, CheckError, Outcome, Report};
use cohkit_protocol::construct::fault::Fault;
use cohkit_protocol::construct::{construct_until, Construction, ConstructionError, Extent};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol, System};

use serde_json::{json, Value};
use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Selection of the systems to check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Systems {
    /// All declared systems.
    Declared,
    /// Declared systems with these names, in this order.
    Named(Vec<String>),
    /// One system of this size instead of the declared ones.
    Sized {
        /// Number of caching agents.
        remotes: u16,
        /// Number of cache lines.
        lines: u8,
    },
}

impl Systems {
    /// Returns the selected systems of this source, in order.
    ///
    /// # Errors
    /// A name is unknown, or the source declares no system and none is given by size.
    pub(crate) fn of(&self, source: &Source) -> Result<Vec<System>, InputError> {
        let declared = &source.protocol.systems;
        if let &Systems::Sized { remotes, lines } = self {
            let name = format!("remotes_{remotes}_lines_{lines}");
            return Ok(vec![System::new(name, remotes, lines)]);
        }
        if declared.is_empty() {
            return Err(InputError::input(
                "the specification has no system to check",
                "add `system small { remotes 2; lines 1 }` to it, or use `--remotes` and `--lines`",
            ));
        }
        let widened = widened_system(&source.protocol);
        let systems = declared.iter().chain(&widened);
        let Systems::Named(names) = self else {
            return Ok(systems.cloned().collect());
        };
        let find = |name: &String| {
            let system = systems.clone().find(|system| system.name == *name);
            system.cloned().ok_or_else(|| {
                let known_names = declared.iter().map(|system| system.name.as_str());
                InputError::input(
                    format!("no system is named `{name}`"),
                    suggestion(name, "system", known_names),
                )
            })
        };
        names.iter().map(find).collect()
    }
}

/// Returns the system that is added if rows join lines and no declared system has two lines for each home. Progress and
/// quiescence of a single line do not show that another line can block it.
fn widened_system(protocol: &Protocol) -> Option<System> {
    let lines_needed = |system: &System| system::progress::lines(sized_protocol(protocol, system));
    let systems = &protocol.systems;
    if systems
        .iter()
        .any(|system| system.lines >= lines_needed(system))
    {
        return None;
    }
    let first_system = systems.first()?;
    Some(with_lines(first_system, lines_needed(first_system)))
}

/// Returns further systems, in which two remotes meet on two lines for each home, each with the name of the system
/// that it extends. One is added for each set of parameters without a declared system that has both the remotes and
/// the lines, if lines can block each other ([`Protocol::blocks_across_lines`]). A fault of rows that join lines may
/// need both.
fn crossed_systems(protocol: &Protocol) -> Vec<(String, System)> {
    let mut added = Vec::new();
    let mut seen_sizes: Vec<&[(String, u16)]> = Vec::new();
    for system in &protocol.systems {
        if seen_sizes.contains(&system.sizes.as_slice()) {
            continue;
        }
        seen_sizes.push(&system.sizes);
        let sized = sized_protocol(protocol, system);
        let lines_needed = 2 * sized.homes as u8;
        let same_sizes = protocol.systems.iter();
        let same_sizes: Vec<&System> = same_sizes
            .filter(|other| other.sizes == system.sizes)
            .collect();
        let Some(base) = smallest_system(same_sizes.iter().copied()) else {
            continue;
        };
        let remotes = base.remotes.total().min(2);
        let covers =
            |system: &&System| system.remotes.total() >= remotes && system.lines >= lines_needed;
        let is_covered = sized.blocks_across_lines().is_none() || same_sizes.iter().any(covers);
        if !is_covered && lines_needed <= System::MAX_LINES {
            added.push((base.name.clone(), with_lines(base, lines_needed)));
        }
    }
    added
}

/// Returns the first system with the fewest remotes among those with at least two, or else the first system.
fn smallest_system<'s>(
    mut systems: impl Iterator<Item = &'s System> + Clone,
) -> Option<&'s System> {
    let larger = systems.clone().filter(|system| system.remotes.total() > 1);
    let smallest = larger.min_by_key(|system| system.remotes.total());
    smallest.or_else(|| systems.next())
}

/// Returns a copy of a system with more lines, which is named after it.
fn with_lines(base: &System, lines: u8) -> System {
    System {
        name: format!("{}_widened", base.name),
        lines,
        ..base.clone()
    }
}

/// Returns the protocol with the parameters of one of its systems.
fn sized_protocol<'p>(protocol: &'p Protocol, system: &'p System) -> &'p Protocol {
    system.resized_protocol.as_deref().unwrap_or(protocol)
}

/// Systems to check, and the limits of the check.
#[derive(Clone)]
pub struct Request<'a> {
    /// Selection of the systems.
    pub systems: Systems,
    /// Maximum number of messages in a channel ([`system::Options::capacity`]); `None` selects the default of the
    /// check.
    pub capacity: Option<u8>,
    /// True to explore states that differ only by a permutation of caching agents once.
    pub symmetry: bool,
    /// True to keep only signatures of states ([`search::Options::hash_compaction`]).
    pub hash_compaction: bool,
    /// True to keep most states in the folder of checkpoints ([`search::Options::max_resident`]).
    pub disk: bool,
    /// Number of search threads, at most the number of processors, which is the default. Verdicts do not depend on it.
    pub threads: Option<usize>,
    /// Maximum number of states of a system; at the limit, its verdict is undecided.
    pub max_states: Option<u64>,
    /// Maximum number of steps from the start.
    pub max_depth: Option<u64>,
    /// Maximum memory for states, in bytes; by default three quarters of free memory, and less under an address limit.
    pub max_memory: Option<u64>,
    /// Random walks instead of an exhaustive search.
    pub simulation: Option<Simulation>,
    /// True to record coverage, which takes a second pass over all states, by the interpreter.
    pub coverage: bool,
    /// True to add a verdict for every number of remotes.
    pub any_number: bool,
    /// Fairness under which a verdict on transactions that never end is added, if any.
    pub fairness: Option<Fairness>,
    /// Flag that cancels the check: the current system is then undecided, and later systems are not started.
    pub cancel: &'a AtomicBool,
}

/// Receiver of results while systems are checked. An error ends the check.
pub trait Listener {
    /// Receives a verdict. `run` is the machine-dependent part of its JSON.
    ///
    /// # Errors
    /// The listener cannot process the verdict.
    fn verdict(&mut self, verdict: &Verdict, run: Value) -> Result<(), Failure>;

    /// Receives the result of the programs that check the guaranteed memory model.
    ///
    /// # Errors
    /// The listener cannot process the result.
    fn guaranteed(&mut self, verdict: &GuaranteeVerdict, source: &Source) -> Result<(), Failure>;

    /// Receives the verdict for every number of remotes, if it was requested.
    ///
    /// # Errors
    /// The listener cannot process the verdict.
    fn any_number(&mut self, verdict: &AnyNumberVerdict, source: &Source) -> Result<(), Failure>;

    /// Receives the verdict on transactions that never end, if it was requested.
    ///
    /// # Errors
    /// The listener cannot process the verdict.
    fn starvation(&mut self, verdict: &StarvationVerdict, source: &Source) -> Result<(), Failure>;

    /// Receives the model of a system before its search.
    ///
    /// # Errors
    /// The listener cannot process the model.
    fn model(&mut self, _source: &Source, _system: &System, _model: &Model) -> Result<(), Failure> {
        Ok(())
    }

    /// Receives the model and its verdict after [`Listener::verdict`].
    ///
    /// # Errors
    /// The listener cannot process them.
    fn searched(&mut self, _model: &Model, _verdict: &Verdict) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns a callback for one search, which the search calls about ten times a second.
    fn progress(&self, _source: &Source, _system: &System) -> Box<dyn Fn(&Progress) + Sync> {
        Box::new(|_| ())
    }

    /// Checkpoints to write searches to, and to resume them from.
    fn checkpoints(&self) -> Option<&Checkpoints> {
        None
    }

    /// Receives the fault of the construction that all verdicts so far rest on.
    fn fault(&mut self, _source: &Source, _fault: &Fault) {}
}

/// Controller of a home, written or constructed.
enum Homes<'a> {
    /// Controller of the protocol file, for any number of remotes.
    Written(&'a Controller),
    /// Construction from a policy, which yields the controller for a number of remotes.
    Constructed(Box<Construction<'a>>),
}

impl Homes<'_> {
    /// Returns the controller for systems with this number of remotes.
    fn controller(&self, remotes: u16) -> Cow<'_, Controller> {
        match self {
            Homes::Written(home) => Cow::Borrowed(home),
            Homes::Constructed(construction) => Cow::Owned(construction.controller(remotes)),
        }
    }
}

impl<'a> Homes<'a> {
    /// Returns the home of a protocol if its construction finds no fault; `None` if cancelled.
    fn of(
        protocol: &'a Protocol,
        cancel: &AtomicBool,
    ) -> Result<Option<Homes<'a>>, ConstructionError> {
        let construction = match &protocol.home {
            Home::Controller(home) => return Ok(Some(Homes::Written(home))),
            Home::Policy(_) => construct_until(protocol, Extent::default(), cancel)?,
        };
        let Some(construction) = construction else {
            return Ok(None);
        };
        Ok(Some(Homes::Constructed(Box::new(construction.sound()?))))
    }
}

/// Checks the selected systems, in their order.
///
/// # Errors
/// The request is invalid, no home can be constructed from this form of protocol, or the listener fails.
pub fn judge(
    mut source: Source,
    request: &Request,
    listener: &mut dyn Listener,
) -> Result<(), InputError> {
    let widened_name = widened_system(&source.protocol).map(|system| system.name);
    // The construction covers as many remotes as the largest selected system has.
    source.protocol.systems = request.systems.of(&source)?;
    let cancelled = || request.cancel.load(Ordering::SeqCst);
    let added = AddedSystems {
        widened: widened_name,
        // Random walks visit only a sample of the states, whatever the size of a system.
        crossed: match (&request.systems, &request.simulation) {
            (Systems::Declared, None) => crossed_systems(&source.protocol),
            _ => Vec::new(),
        },
    };
    for source in source.by_sizes() {
        if !judge_systems(&source, request, &added, listener)? || cancelled() {
            return Ok(());
        }
    }
    if let (Some(model), Systems::Declared) = (source.protocol.guarantee.model, &request.systems) {
        judge_guarantee(&source, model, request, listener)?;
    }
    if let Some(fairness) = request.fairness {
        for system in &source.protocol.systems {
            if cancelled() {
                return Ok(());
            }
            let (states, cancel) = (request.max_states, request.cancel);
            let verdict = StarvationVerdict::of(&source, system, fairness, states, cancel);
            listener.starvation(&verdict, &source)?;
        }
    }
    if request.any_number && !cancelled() {
        let verdict = AnyNumberVerdict::of(&source, request.cancel);
        listener.any_number(&verdict, &source)?;
    }
    Ok(())
}

/// Checks a memory model by programs, with the protocol's own parameters and with those of its systems.
fn judge_guarantee(
    source: &Source,
    model: cohkit_litmus::axioms::Model,
    request: &Request,
    listener: &mut dyn Listener,
) -> Result<(), InputError> {
    let (states, cancel) = (request.max_states, request.cancel);
    let Ok(Some(homes)) = Homes::of(&source.protocol, cancel) else {
        return Ok(());
    };
    let home = |threads| homes.controller(threads);
    let mut verdict = guarantee::judge(&source.protocol, model, states, &home, cancel);
    let mut checked_sizes = vec![Vec::new()];
    for system in &source.protocol.systems {
        let Some(protocol) = &system.resized_protocol else {
            continue;
        };
        if checked_sizes.contains(&system.sizes) {
            continue;
        }
        checked_sizes.push(system.sizes.clone());
        if let Ok(Some(homes)) = Homes::of(protocol, cancel) {
            let home = |threads| homes.controller(threads);
            let sizes = Sizes {
                system: system.name.clone(),
                sizes: system.sizes.clone(),
            };
            verdict.judge_with_sizes(protocol, sizes, states, &home, cancel);
        }
    }
    listener.guaranteed(&verdict, source)?;
    Ok(())
}

/// Checks systems with equal parameters. Returns false if there is no home for them.
fn judge_systems(
    source: &Source,
    request: &Request,
    added: &AddedSystems,
    listener: &mut dyn Listener,
) -> Result<bool, InputError> {
    let protocol = &source.protocol;
    let homes = match Homes::of(protocol, request.cancel) {
        Ok(Some(homes)) => homes,
        Ok(None) => return Ok(false),
        Err(ConstructionError::Refused(refusal)) => return Err(InputError::Refused(refusal)),
        Err(ConstructionError::Fault(construction_fault)) => {
            report_fault(source, &construction_fault, listener)?;
            return Ok(false);
        }
    };
    let mut notes: Vec<String> = Vec::new();
    if let Homes::Constructed(construction) = &homes {
        notes = crate::controller_table::notes(construction);
    }
    let added_note = |reason: &str| {
        let joined = protocol.blocks_across_lines().unwrap_or("rows");
        format!("added to the systems of the specification: {joined} join lines, and {reason}")
    };
    for system in &protocol.systems {
        let mut system_result = SystemResult::new(source, system, &homes, request, listener)?;
        system_result.notes.clone_from(&notes);
        if added.widened.as_ref() == Some(&system.name) {
            system_result.mark_added(&added_note("no system has two lines for each home"));
        }
        let mut crossed = added.crossed.iter();
        let crossed = crossed.find(|(base, _)| *base == system.name);
        // If the smaller system is violated or too large, the larger one adds nothing.
        let crossed =
            crossed.filter(|_| system_result.search_result.report.outcome == Outcome::Verified);
        let mut crossed_result = None;
        if let Some((_, system)) = crossed {
            let mut result =
                SystemResult::new(source, system, &homes, &request.limited(), listener)?;
            if result.is_decided() {
                result.notes.clone_from(&notes);
                result.mark_added(&added_note(
                    "no system of these sizes has both two remotes and two lines for each home",
                ));
                crossed_result = Some(result);
            } else {
                system_result.notes.push(format!(
                    "{} and {} together were not judged: the search reached its limit; declare a system of this size to search it completely",
                    counted(system.remotes.total(), "remote"),
                    counted(system.lines, "line"),
                ));
            }
        }
        for system_result in std::iter::once(system_result).chain(crossed_result) {
            system_result.report(source, request, listener)?;
        }
        if request.cancel.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(true)
}

impl<'a> Request<'a> {
    /// Returns the request for a system of [`crossed_systems`], limited to [`MAX_CROSSED_STATES`] states.
    fn limited(&self) -> Request<'a> {
        Request {
            max_states: Some(self.max_states.map_or(MAX_CROSSED_STATES, |max_states| {
                max_states.min(MAX_CROSSED_STATES)
            })),
            ..self.clone()
        }
    }
}

/// Systems that are checked in addition to the declared ones.
struct AddedSystems {
    /// Name of the system of [`widened_system`].
    widened: Option<String>,
    /// Systems of [`crossed_systems`].
    crossed: Vec<(String, System)>,
}

/// Maximum number of states of a system of [`crossed_systems`]: it is only an addition, and some are too large.
const MAX_CROSSED_STATES: u64 = 300_000;

/// A system with its result.
struct SystemResult<'a> {
    /// System that was searched.
    system: &'a System,
    /// Home for the system's number of remotes.
    home: Cow<'a, Controller>,
    /// True if the system was added to the declared ones.
    added: bool,
    /// Result of the search and of the check of progress.
    search_result: SearchResult,
    /// Notes of the construction, and the reason for an added system.
    notes: Vec<String>,
    /// Wall-clock time of the search, in seconds.
    seconds: f64,
}

impl<'a> SystemResult<'a> {
    /// Searches a system, and measures the time.
    fn new(
        source: &Source,
        system: &'a System,
        homes: &'a Homes,
        request: &Request,
        listener: &mut dyn Listener,
    ) -> Result<SystemResult<'a>, InputError> {
        let start = Instant::now();
        let home = homes.controller(system.remotes.total());
        let search_result = search_with_trials(source, system, &home, request, listener)?;
        Ok(SystemResult {
            system,
            home,
            added: false,
            search_result,
            notes: Vec::new(),
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Marks the system as added, with a note of the reason.
    fn mark_added(&mut self, reason: &str) {
        self.added = true;
        self.notes.push(reason.to_string());
    }

    /// Returns true if the search ended with a verdict: verified or violated.
    fn is_decided(&self) -> bool {
        matches!(
            self.search_result.report.outcome,
            Outcome::Verified | Outcome::Violated { .. }
        )
    }

    /// Reports the verdict to the listener.
    fn report(
        self,
        source: &Source,
        request: &Request,
        listener: &mut dyn Listener,
    ) -> Result<(), InputError> {
        let protocol = &source.protocol;
        let SearchResult {
            system_model,
            report,
            coverage,
            trace_model,
            never_started,
            missing_accesses,
            notes: other_notes,
            undecided_progress,
        } = self.search_result;
        let coverage =
            coverage.map(|c| SystemCoverage::of_system(c, &system_model, protocol, &self.home));
        let system_model = trace_model.unwrap_or(system_model);
        let mut notes = self.notes;
        if !never_started.is_empty() {
            let (agent, never_started) = (&protocol.remote.name, never_started.join(", "));
            notes.push(format!(
                "never performed, as no {agent} ever starts it: {never_started}"
            ));
        }
        if !missing_accesses.is_empty() {
            let missing_accesses = missing_accesses.join(", ");
            notes.push(format!(
                "never performed, as the specification has no row for it: {missing_accesses}"
            ));
        }
        notes.extend(other_notes);
        let run = run_json(&source.path, request, &report, self.seconds);
        let explanation = match &report.outcome {
            Outcome::Violated {
                property, trace, ..
            } => explain(
                &system_model.model,
                &system_model.remarks,
                property,
                trace,
                &cohkit_murphi::expression,
            ),
            _ => None,
        };
        let verdict = Verdict {
            protocol,
            system: self.system,
            added: self.added,
            evidence: Evidence::Searched(Box::new(report)),
            explanation,
            assumptions: &assumptions(protocol, self.system.parent_any),
            notes: &notes,
            coverage,
            undecided_progress,
        };
        listener.verdict(&verdict, run)?;
        Ok(listener.searched(&system_model.model, &verdict)?)
    }
}

/// Returns random walks of `steps` steps together, each at most `length` steps long (by default 1,000).
pub fn simulation(steps: u64, seed: u64, length: Option<u64>) -> Simulation {
    /// Enough steps to reach all behaviour of most protocols.
    const DEFAULT_WALK_STEPS: u64 = 1000;
    Simulation {
        seed,
        steps,
        length: length.unwrap_or(DEFAULT_WALK_STEPS).min(steps),
    }
}

/// Machine-dependent metadata of a verdict. `seconds` is the wall-clock time of the search.
pub(crate) fn run_json(file: &Path, request: &Request, report: &Report, seconds: f64) -> Value {
    json!({
        "file": file.display().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "threads": threads(request.threads),
        "memory_bytes": report.memory,
        "seconds": seconds,
        "states_per_second": (report.states as f64 / seconds.max(1e-9)).round(),
    })
}

/// Search options of a request. The search calls `progress` about ten times a second, and writes checkpoints to
/// `checkpoint_sink` if there is one.
pub(crate) fn search_options<'a>(
    request: &Request<'a>,
    progress: &'a (dyn Fn(&Progress) + Sync),
    checkpoint_sink: Option<&'a dyn CheckpointSink>,
) -> search::Options<'a> {
    let max_memory = request.max_memory.or_else(size::memory_for_states);
    search::Options {
        threads: threads(request.threads),
        max_states: request.max_states,
        max_depth: request.max_depth,
        max_memory,
        symmetry: request.symmetry,
        hash_compaction: request.hash_compaction,
        cancel: Some(request.cancel),
        progress: Some(progress),
        checkpoint_sink,
        max_resident: (request.disk)
            .then(|| max_memory.unwrap_or(DEFAULT_MEMORY) / MEMORY_PER_RESIDENT_STATES),
        ..search::Options::default()
    }
}

/// Memory of a check with states on disk if the operating system does not report the free memory, in bytes.
const DEFAULT_MEMORY: u64 = 1 << 30;
/// Ratio of the memory of a check to that for states, if most states are on disk. Assumptions about states take as much
/// as states, and the rest is for the table.
const MEMORY_PER_RESIDENT_STATES: u64 = 8;

/// Applies a function to each of the selected systems, in their order; returns an empty list if cancelled.
///
/// # Errors
/// The request is invalid, no home can be constructed from this form of protocol, the construction finds a fault, or
/// the function fails.
pub fn for_each_system<T>(
    mut source: Source,
    systems: &Systems,
    cancel: &AtomicBool,
    function: impl Fn(&Protocol, &System, &Controller) -> Result<T, InputError>,
) -> Result<Vec<(System, T)>, ModelError> {
    source.protocol.systems = systems.of(&source).map_err(ModelError::Input)?;
    let mut results = Vec::new();
    for source in source.by_sizes() {
        let homes = Homes::of(&source.protocol, cancel).map_err(|error| match error {
            ConstructionError::Refused(refusal) => ModelError::Input(InputError::Refused(refusal)),
            ConstructionError::Fault(fault) => ModelError::Fault(fault),
        })?;
        let Some(homes) = homes else {
            return Ok(Vec::new());
        };
        for system in &source.protocol.systems {
            let home = homes.controller(system.remotes.total());
            let models = function(&source.protocol, system, &home).map_err(ModelError::Input)?;
            results.push((system.clone(), models));
        }
    }
    Ok(results)
}

/// Reason why there are no models.
pub enum ModelError {
    /// The request is invalid, or no home can be constructed from this form of protocol.
    Input(InputError),
    /// The construction of the home finds a fault.
    Fault(Box<Fault>),
}

/// Lowers a system to a finite model. `home` is the controller for the system's number of remotes, and `capacity` and
/// `trial` are those of [`lowering_options`].
///
/// # Errors
/// The system cannot be modelled.
pub fn model(
    protocol: &Protocol,
    system: &System,
    home: &Controller,
    capacity: Option<u8>,
    trial: Option<u16>,
) -> Result<SystemModel, InputError> {
    let lowering = lowering_options(system, capacity, trial);
    let model = system::system_model(protocol, home, system.remotes, system.lines, &lowering);
    model.map_err(|error| {
        let name = &system.name;
        InputError::plain(format!("system `{name}` cannot be modelled: {error}"))
    })
}

/// Options of the lowering. `capacity` is the channel capacity in messages, by default that of [`system::Options`].
/// `trial` is a smaller capacity to search with first. Whether memory is backed by an outer level comes from the
/// system.
pub fn lowering_options(
    system: &System,
    capacity: Option<u8>,
    trial: Option<u16>,
) -> system::Options {
    let default = system::Options::default();
    system::Options {
        capacity: capacity.map_or(default.capacity, u16::from),
        trial,
        parent_any: system.parent_any,
        ..default
    }
}

/// Channel capacities that are tried before the full one: the counts that one bit and two bits can hold. Most protocols
/// need no more, and their states are several times smaller. A protocol that needs more exceeds the trial early.
const TRIAL_CAPACITIES: [u16; 2] = [1, 3];

/// Searches a system with the smallest channel capacity of the trials that suffices, or else with the full one.
fn search_with_trials(
    source: &Source,
    system: &System,
    home: &Controller,
    request: &Request,
    listener: &mut dyn Listener,
) -> Result<SearchResult, InputError> {
    let model = |trial| model(&source.protocol, system, home, request.capacity, trial);
    let full_model = model(None)?;
    listener.model(source, system, &full_model.model)?;
    let full_capacity = request
        .capacity
        .map_or(system::Options::default().capacity, u16::from);
    for trial in TRIAL_CAPACITIES
        .into_iter()
        .filter(|&trial| trial < full_capacity)
    {
        let model = model(Some(trial))?;
        let (report, coverage) = search(source, system, &model.model, request, listener)?;
        if !matches!(report.outcome, Outcome::Exceeded { .. }) {
            let search_result = SearchResult::new(model, report, coverage);
            return check_progress(
                search_result,
                source,
                system,
                home,
                request,
                Some(trial),
                listener,
            );
        }
    }
    let (report, coverage) = search(source, system, &full_model.model, request, listener)?;
    let search_result = SearchResult::new(full_model, report, coverage);
    check_progress(search_result, source, system, home, request, None, listener)
}

/// Result of a system.
struct SearchResult {
    /// Model that was searched.
    system_model: SystemModel,
    /// Result of the search.
    report: Report,
    /// Coverage of the search, if requested.
    coverage: Option<Coverage>,
    /// Model to which the trace of the report belongs, if it is not `system_model`.
    trace_model: Option<SystemModel>,
    /// Accesses that no remote ever starts.
    never_started: Vec<&'static str>,
    /// Accesses for which the protocol has no row.
    missing_accesses: Vec<&'static str>,
    /// Further notes on progress.
    notes: Vec<String>,
    /// Search for progress that a limit ended.
    undecided_progress: Option<UndecidedSearch>,
}

impl SearchResult {
    /// Creates a result for which progress has not been checked.
    fn new(system_model: SystemModel, report: Report, coverage: Option<Coverage>) -> SearchResult {
        SearchResult {
            system_model,
            report,
            coverage,
            trace_model: None,
            never_started: Vec::new(),
            missing_accesses: Vec::new(),
            notes: Vec::new(),
            undecided_progress: None,
        }
    }
}

/// Checks progress if all other properties are verified.
fn check_progress(
    mut search_result: SearchResult,
    source: &Source,
    system: &System,
    home: &Controller,
    request: &Request,
    trial: Option<u16>,
    listener: &dyn Listener,
) -> Result<SearchResult, InputError> {
    let mut status = Status::Undecided;
    if search_result.report.outcome == Outcome::Verified {
        let listener_progress = listener.progress(source, system);
        let options = search_options(request, &*listener_progress, None);
        let lowering = lowering_options(system, request.capacity, trial);
        let result = progress(
            &source.protocol,
            home,
            (system.remotes, system.lines),
            &lowering,
            &options,
        );
        let result = result.map_err(|error| {
            let name = &system.name;
            InputError::plain(format!("system `{name}` cannot be checked: {error}"))
        })?;
        status = match result.outcome {
            Outcome::Verified => Status::Holds,
            Outcome::Violated { .. } => Status::Violated,
            _ => Status::Undecided,
        };
        search_result.report.outcome = result.outcome;
        search_result.trace_model = result.system_model;
        search_result.never_started = result.never_started;
        search_result.missing_accesses = result.missing_accesses;
        search_result.notes = result.notes;
        search_result.undecided_progress = result.undecided_search;
    }
    search_result.report.properties.push(PropertyResult {
        property: PROGRESS,
        status,
    });
    Ok(search_result)
}

/// Searches the states of a model, or takes random walks if requested, with the listener's progress and checkpoints.
///
/// # Errors
/// The model cannot be checked, or the checkpoints are unusable.
fn search(
    source: &Source,
    system: &System,
    model: &Model,
    request: &Request,
    listener: &mut dyn Listener,
) -> Result<(Report, Option<Coverage>), InputError> {
    let progress = listener.progress(source, system);
    let checkpoint = listener.checkpoints().map(Checkpoints::start_search);
    let checkpoint_sink = checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint as &dyn CheckpointSink);
    let options = search_options(request, &*progress, checkpoint_sink);
    let report = match &request.simulation {
        Some(simulation) => simulate(model, simulation, &options),
        None => check(model, &options),
    };
    let report = report.map_err(|error| match (error, &checkpoint) {
        (CheckError::Checkpoint(error), Some(checkpoint)) => checkpoint.failure(&error).into(),
        (error, _) => InputError::plain(format!(
            "system `{}` cannot be checked: {error}",
            system.name
        )),
    })?;
    let coverage = match request.coverage {
        true => coverage(model, &report, &options),
        false => None,
    };
    Ok((report, coverage))
}

/// Reports a fault of the construction as the verdict on every system.
fn report_fault(
    source: &Source,
    fault: &Fault,
    listener: &mut dyn Listener,
) -> Result<(), InputError> {
    for system in &source.protocol.systems {
        let verdict = Verdict {
            protocol: &source.protocol,
            system,
            added: false,
            evidence: Evidence::Construction(fault),
            assumptions: &assumptions(&source.protocol, system.parent_any),
            notes: &[],
            explanation: None,
            coverage: None,
            undecided_progress: None,
        };
        let run = json!({
            "file": source.path.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        });
        listener.verdict(&verdict, run)?;
    }
    listener.fault(source, fault);
    Ok(())
}

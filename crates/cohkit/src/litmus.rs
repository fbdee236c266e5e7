//! `cohkit litmus`: outcomes of small programs that a memory model allows, and outcomes on a protocol.

mod timed;

use crate::console::Console;
use crate::guarantee::drawn;
use crate::options::{Cores as Between, Expect, Litmus as Options, Model as Compared};
use crate::outcome::{ExitStatus, Failure};
use crate::protocols::{entry, Source};
use crate::sim::levels;
use crate::{deliver, files};
use clap::ValueEnum;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::{Cores, MemoryRequest};
use cohkit_litmus::cycles::classic;
use cohkit_litmus::expectation::Observation;
use cohkit_litmus::kinds::Kinds;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::print::print;
use cohkit_litmus::program::{Claim, Outcome, Program, Quantifier, StoreVariant};
use cohkit_litmus::run::{
    run_below as explore_below, run_placed as explore, shortest, Found, Shortest,
};
use cohkit_litmus::warm_caches::named;
use cohkit_litmus::{herd, run as protocols, store_variants};
use cohkit_protocol::construct::{self, ConstructionError};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::suggestion;
use cohkit_system::world::Wrong;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A litmus test, and its file if it has one.
#[derive(Clone, Debug)]
pub struct Test {
    file: Option<String>,
    program: Program,
    /// The expectation that the file states.
    expected: Option<Observation>,
    /// Kinds of remotes that the threads run on, if the protocol distinguishes kinds or they were given.
    kinds: Option<Kinds>,
    /// One letter for the variant of each write, if variants were selected.
    stores: Option<String>,
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
        let all = classic();
        Err(suggestion(
            name,
            "shape",
            all.iter().map(|shape| shape.name.as_str()),
        ))
    }

    /// Parses a test from a file of this name.
    ///
    /// # Errors
    /// The error of the test as JSON, with the keys of errors of protocol files.
    pub fn parse(file: &str, text: &str) -> Result<Test, Value> {
        let program = herd::read(text).map_err(|error| {
            let notes: Vec<_> = error.help.iter().map(|help| (None, help.clone())).collect();
            let rendered = error.render(file, text, false);
            let (message, label) = (&error.message, &error.label);
            let entry = entry(
                "litmus", message, text, error.span, label, &notes, &rendered,
            );
            json!([entry])
        })?;
        Ok(Test::from_file(file, text, program))
    }

    fn from_file(file: &str, text: &str, program: Program) -> Test {
        Test {
            file: Some(file.to_string()),
            expected: Observation::expected(text),
            ..Test::new(program)
        }
    }

    fn new(program: Program) -> Test {
        Test {
            file: None,
            program,
            expected: None,
            kinds: None,
            stores: None,
        }
    }

    /// Returns the test on caches of these kinds. Without `kinds`, returns every placement if kinds have rows of their
    /// own.
    ///
    /// # Errors
    /// The kinds are invalid.
    pub fn placed(self, kinds: Option<&str>, protocol: &Protocol) -> Result<Vec<Test>, Failure> {
        let placed = match kinds {
            Some(kinds) => Kinds::read(kinds, protocol, &self.program).map(|kinds| vec![kinds]),
            None if protocol.several_tables() => Kinds::every(protocol, &self.program),
            None => return Ok(vec![self]),
        };
        let wrong = |what| Failure::new(ExitStatus::BadInput, format!("error: --kinds: {what}"));
        let of = |kinds| Test {
            kinds: Some(kinds),
            ..self.clone()
        };
        Ok(placed.map_err(wrong)?.into_iter().map(of).collect())
    }

    /// Kinds of remotes that the threads run on, by default the first kind.
    fn kinds(&self) -> Kinds {
        let first = || Kinds::from(self.program.threads.len() as u8);
        self.kinds.clone().unwrap_or_else(first)
    }

    /// Names of these kinds, if the test has a placement.
    fn on(&self, source: Option<&Source>) -> Option<Vec<String>> {
        let names = self.kinds.as_ref()?.names(&source?.protocol);
        Some(names.into_iter().map(String::from).collect())
    }

    /// Returns the test with its writes made by these store variants of the protocol, or by all mixes of them. The mix
    /// becomes part of the name.
    ///
    /// # Errors
    /// The letters are invalid.
    pub fn mixes(self, stores: &str, protocol: &Protocol) -> Result<Vec<Test>, Failure> {
        let mixes = match stores {
            "every" => store_variants::every(protocol, &self.kinds(), &self.program),
            letters => {
                let mix = store_variants::read(letters, protocol, &self.kinds(), &self.program);
                let wrong =
                    |what| Failure::new(ExitStatus::BadInput, format!("error: --stores: {what}"));
                vec![mix.map_err(wrong)?]
            }
        };
        let of = |mix: Vec<StoreVariant>| {
            let letters = store_variants::letters(&mix);
            let mut program = store_variants::mixed(&self.program, &mix);
            program.name = format!("{} {letters}", program.name);
            Test {
                program,
                stores: Some(letters),
                ..self.clone()
            }
        };
        Ok(mixes.into_iter().map(of).collect())
    }
}

/// Options of a test.
#[derive(Clone, Debug)]
pub struct LitmusRequest {
    /// Core model by the name of its option; by default that of the protocol.
    pub cores: Option<String>,
    /// Memory model to compare outcomes with, by the name of its option; by default that of the protocol or of the
    /// cores.
    pub model: Option<String>,
    /// Maximum number of lines or permissions that caches give up on their own, in total.
    pub gives_up: u8,
    /// Maximum number of states.
    pub max_states: usize,
    /// True to include the shortest path to the deciding outcome.
    pub chart: bool,
    /// First seed and number of runs in the simulator; `None` explores every order of events.
    pub simulate: Option<(u64, u64)>,
    /// Basis of the outcome besides violations, by the name of its option: the file's expectation, or by default the
    /// condition.
    pub expect: Option<String>,
}

/// Reason why a test has no verdict.
pub enum NotJudged {
    /// No home can be constructed for the protocol.
    NoHome(Box<Source>, ConstructionError),
    /// Any other failure.
    Failure(Failure),
}

impl From<Failure> for NotJudged {
    fn from(failure: Failure) -> NotJudged {
        NotJudged::Failure(failure)
    }
}

/// Returns the JSON of `cohkit litmus --json` for one test, on a protocol or by the memory model alone.
///
/// # Errors
/// The test has no verdict.
pub fn answer(
    test: &Test,
    on: On,
    asked: &LitmusRequest,
    cancel: &AtomicBool,
) -> Result<Value, NotJudged> {
    let cores = asked.cores.as_deref().map(chosen).transpose()?;
    let model = asked.model.as_deref().map(chosen).transpose()?;
    let expect = asked.expect.as_deref().map(chosen).transpose()?;
    let how = on.how(
        (cores, model),
        (asked.gives_up, asked.max_states),
        expect.unwrap_or(Expect::Condition),
    );
    let mut goes_on = || !cancel.load(Ordering::SeqCst);
    match (on.source, asked.simulate) {
        (Some(source), Some(seeds)) => {
            let report = timed::run((source, on), test, &how, seeds, &mut goes_on)?;
            Ok(report.json)
        }
        (None, Some(_)) => {
            let said = "error: runs in the simulator need a protocol, but none is given";
            Err(Failure::new(ExitStatus::BadInput, said).into())
        }
        (_, None) => {
            let judged = judged(test, on, &how, asked.chart, &mut goes_on)?;
            Ok(judged.json(on.name()))
        }
    }
}

/// Parses the value of an option by its name, in which Python writes `_` for `-`.
fn chosen<T: ValueEnum>(name: &str) -> Result<T, Failure> {
    T::from_str(&name.replace('_', "-"), false).map_err(|_| {
        let all = T::value_variants().iter().filter_map(T::to_possible_value);
        let all: Vec<String> = all
            .map(|value| value.get_name().replace('-', "_"))
            .collect();
        let said = format!("error: `{name}` is not one of {}", all.join(", "));
        Failure::new(ExitStatus::BadInput, said)
    })
}

/// Memory system under the threads: one protocol, or two levels; without a protocol, the memory model alone decides.
#[derive(Clone, Copy)]
pub struct On<'s> {
    /// Protocol; of two levels, the upper one.
    pub source: Option<&'s Source>,
    /// Protocol of the level below it.
    pub lower: Option<&'s Source>,
    /// Protocol file as given: a composition if there are two levels.
    pub file: Option<&'s Path>,
}

/// Options of a run, with defaults applied.
#[derive(Clone, Copy)]
struct LitmusOptions {
    cores: Cores,
    /// Memory model to compare outcomes with.
    model: Model,
    /// True if the protocol guarantees this model, so that every other outcome is a violation.
    guaranteed: bool,
    gives_up: u8,
    max_states: usize,
    expect: Expect,
}

impl On<'_> {
    fn name(&self) -> Option<&str> {
        self.source.map(|source| source.protocol.name.as_str())
    }

    /// Fills in the protocol's defaults for options that were not given.
    fn how(
        &self,
        (cores, model): (Option<Between>, Option<Compared>),
        (gives_up, max_states): (u8, usize),
        expect: Expect,
    ) -> LitmusOptions {
        // Cores are connected to the caches of the lower level.
        let protocol = self.lower.or(self.source).map(|source| &source.protocol);
        let kept = protocol.and_then(|protocol| protocol.kept);
        let between = match (cores, kept) {
            (Some(Between::InOrder), _) | (None, None) => Cores::InOrder,
            (Some(Between::StoreBuffer), _) => Cores::StoreBuffer,
            (Some(Between::Relaxed), kept) => Cores::Relaxed(kept.unwrap_or_default()),
            (None, Some(kept)) => Cores::Relaxed(kept),
        };
        let own_cores = kept.map_or(Cores::InOrder, Cores::Relaxed);
        let guaranteed = protocol.and_then(|protocol| protocol.guarantee.model);
        let own = match (guaranteed, between) {
            (Some(model), _) if cores.is_none() => model,
            (_, Cores::InOrder) => Model::Sc,
            (_, Cores::StoreBuffer) => Model::Tso,
            (_, Cores::Relaxed(_)) => Model::Rc,
        };
        let model = match model {
            Some(Compared::Sc) => Model::Sc,
            Some(Compared::Tso) => Model::Tso,
            Some(Compared::Rc) => Model::Rc,
            Some(Compared::Armv8) => Model::Armv8,
            Some(Compared::Riscv) => Model::RiscV,
            None => own,
        };
        LitmusOptions {
            cores: between,
            model,
            guaranteed: between == own_cores && guaranteed == Some(model),
            gives_up,
            max_states,
            expect,
        }
    }
}

impl LitmusOptions {
    /// JSON value: true if the file's expectation is met, and null if undecided; `None` if it does not determine the
    /// exit code.
    fn as_expected(&self, outcome: ExitStatus) -> Option<Value> {
        let met = match outcome {
            ExitStatus::Success => json!(true),
            ExitStatus::Violated => json!(false),
            _ => Value::Null,
        };
        (self.expect == Expect::File).then_some(met)
    }

    fn options(&self) -> protocols::Options {
        protocols::Options {
            cores: self.cores,
            gives_up: self.gives_up,
            most: self.max_states,
            ..protocols::Options::default()
        }
    }

    /// Returns the outcomes that the model allows.
    fn allowed(&self, program: &Program) -> Result<BTreeSet<Outcome>, Failure> {
        axioms::allowed(program, self.model)
            .map_err(|what| Failure::new(ExitStatus::Undecided, format!("undecided: {what}")))
    }
}

/// Result of a test, in each form of output.
struct Report {
    outcome: ExitStatus,
    text: String,
    json: Value,
}

/// Result of one test that was explored in every order of events.
struct Judged {
    /// File of the test; `None` for a shape.
    file: Option<String>,
    program: Program,
    /// Names of the kinds of remotes that threads run on, if the test has a placement.
    kinds: Option<Vec<String>>,
    found: Found,
    how: LitmusOptions,
    /// Outcomes required for exit code 0.
    expected: Expected,
    /// Outcomes that the model allows.
    allowed: BTreeSet<Outcome>,
    /// Shortest path to the deciding outcome, if it is to be drawn and exists.
    way: Option<Shortest>,
}

pub(crate) fn run(options: &Options, console: &mut Console) -> Result<ExitStatus, Failure> {
    if let Some(file) = &options.output.out {
        files::try_file(file)?;
    }
    let (source, lower) = match &options.protocol {
        Some(path) => {
            let (source, lower) = levels(path, console)?;
            match (&options.system, &lower) {
                (None, _) => (Some(source), lower),
                (Some(name), None) => (Some(source.with_sizes_of(name)?), None),
                (Some(name), Some(_)) => {
                    let said = format!(
                        "error: --system {name}: two-level systems have no sizes of their own"
                    );
                    return Err(Failure::new(ExitStatus::BadInput, said));
                }
            }
        }
        None => (None, None),
    };
    let on = On {
        source: source.as_ref(),
        lower: lower.as_ref(),
        file: options.protocol.as_deref(),
    };
    let (gives_up, max_states) = (options.gives_up, options.max_states);
    let how = on.how(
        (options.cores, options.model),
        (gives_up, max_states),
        options.expect,
    );
    // Read all tests before the first run: an error in the last one must not appear after hours.
    let mut outcome = ExitStatus::Success;
    let mut tests = Vec::new();
    for file in &options.files {
        match test(file, console) {
            Ok(test) => tests.push(test),
            Err(failure) => outcome = outcome.max(said(&failure, console)),
        }
    }
    if !(tests.is_empty() || tests.len() == options.files.len()) {
        let (refused, all) = (options.files.len() - tests.len(), options.files.len());
        console.say(&format!(
            "{refused} of {all} tests are undecided: they could not be read"
        ));
    }
    if options.shapes {
        tests.extend(classic().into_iter().map(Test::new));
    }
    if options.print {
        let all = tests.iter().map(|test| print(&test.program));
        let all: Result<Vec<String>, String> = all.collect();
        let all =
            all.map_err(|what| Failure::new(ExitStatus::BadInput, format!("error: {what}")))?;
        deliver(&all.join("\n"), &options.output, console)?;
        return Ok(outcome);
    }
    if let (Some(kinds), Some(lower)) = (&options.kinds, &lower) {
        let (kind, text) = (&lower.protocol.kinds[0].name, &lower.protocol.name);
        let said = format!(
            "error: --kinds {kinds}: threads on a two-level protocol run on `{kind}` of {text}"
        );
        return Err(Failure::new(ExitStatus::BadInput, said));
    }
    if let Some(source) = lower.as_ref().or(source.as_ref()) {
        let placed = |test: Test| match lower {
            Some(_) => Ok(vec![test]),
            None => test.placed(options.kinds.as_deref(), &source.protocol),
        };
        tests = expand_tests(tests, &placed, (&mut outcome, console));
    }
    if let (Some(stores), Some(source)) = (&options.stores, lower.as_ref().or(source.as_ref())) {
        let mixes = |test: Test| test.mixes(stores, &source.protocol);
        tests = expand_tests(tests, &mixes, (&mut outcome, console));
    }
    let mut reports = Vec::new();
    for test in &tests {
        match reported(test, on, &how, options, console) {
            Ok(report) => reports.push(report),
            Err(failure) if failure.outcome == ExitStatus::Interrupted => return Err(failure),
            Err(failure) => outcome = outcome.max(said(&failure, console)),
        }
    }
    let outcome = reports.iter().map(|r| r.outcome).fold(outcome, Ord::max);
    let text = if options.output.form.json {
        let all: Vec<Value> = reports.into_iter().map(|r| r.json).collect();
        options.output.form.told(Value::from(all), console)
    } else {
        reports.into_iter().map(|r| r.text).collect()
    };
    deliver(&text, &options.output, console)?;
    Ok(outcome)
}

/// Expands each test into several; reports the errors of single tests.
fn expand_tests(
    tests: Vec<Test>,
    becomes: &dyn Fn(Test) -> Result<Vec<Test>, Failure>,
    (outcome, console): (&mut ExitStatus, &mut Console),
) -> Vec<Test> {
    let mut all = Vec::new();
    for test in tests {
        match becomes(test) {
            Ok(several) => all.extend(several),
            Err(failure) => *outcome = (*outcome).max(said(&failure, console)),
        }
    }
    all
}

/// Runs one test: on a protocol in every order of events, on threads of the simulator, or by the memory model alone.
fn reported(
    test: &Test,
    on: On,
    how: &LitmusOptions,
    options: &Options,
    console: &Console,
) -> Result<Report, Failure> {
    let charts = options.output.charts(console.terminal);
    let mut goes_on = || !console.is_interrupted();
    let report = match (on.source, options.simulate) {
        (Some(source), Some(runs)) => {
            let seeds = (options.seed, runs);
            timed::run((source, on), test, how, seeds, &mut goes_on)
        }
        _ => judged(test, on, how, options.chart, &mut goes_on).map(|judged| Report {
            outcome: judged.outcome(),
            text: judged.text(on.name()) + &judged.drawn(&charts),
            json: judged.json(on.name()),
        }),
    };
    report.map_err(|why| match why {
        NotJudged::NoHome(source, error) => {
            source.no_home(&error, &charts, console.terminal.colour)
        }
        NotJudged::Failure(failure) => failure,
    })
}

/// Result of one test, in every order of events on a protocol or by the memory model alone.
fn judged(
    test: &Test,
    on: On,
    how: &LitmusOptions,
    chart: bool,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Judged, NotJudged> {
    let program = &test.program;
    let allowed = how.allowed(program)?;
    let (found, way) = match on.source {
        None => {
            let (ends, states) = (allowed.clone(), 0);
            (Found::Ends { ends, states }, None)
        }
        Some(source) => {
            let levels = (source, on.lower);
            let found = on_protocol(levels, test, how, goes_on)?;
            let forbidden = match &found {
                Found::Ends { ends, .. } => ends.iter().any(|end| !allowed.contains(end)),
                Found::Stuck { .. } => true,
                _ => false,
            };
            let way = match chart || forbidden && on.lower.is_none() {
                true => way(levels, test, &found, (how, &allowed), goes_on)?,
                false => None,
            };
            (found, way)
        }
    };
    if matches!(found, Found::Interrupted) {
        return Err(Failure::new(ExitStatus::Interrupted, "interrupted").into());
    }
    Ok(Judged {
        file: test.file.clone(),
        program: program.clone(),
        kinds: test.on(on.source),
        found,
        how: *how,
        expected: Expected::of(test, how, on.source.is_some()),
        allowed,
        way,
    })
}

/// Reports the failure of one test; the other tests still run.
fn said(failure: &Failure, console: &mut Console) -> ExitStatus {
    console.say(&failure.message);
    failure.outcome
}

/// Reads a test. A plain name without the extension `.litmus` is the name of a shape, unless such a file exists.
fn test(file: &Path, console: &Console) -> Result<Test, Failure> {
    let name = file.display().to_string();
    let file = files::named(file);
    if !file.exists() && file.extension() != Some("litmus".as_ref()) && !name.contains('/') {
        return Test::shape(&name).map_err(|help| {
            let said = format!(
                "error: {name}: no such file or classic shape\n  help: {help}; `cohkit litmus --shapes --print` prints all"
            );
            Failure::new(ExitStatus::BadInput, said)
        });
    }
    let text = files::read(file)?;
    let program = herd::read(&text).map_err(|error| {
        let said = error.render(&name, &text, console.terminal.colour);
        Failure::new(ExitStatus::BadInput, said)
    })?;
    Ok(Test::from_file(&name, &text, program))
}

/// Constructs the home for this number of caches.
fn home(source: &Source, caches: u16) -> Result<Controller, NotJudged> {
    construct::home(&source.protocol, caches)
        .map_err(|error| NotJudged::NoHome(Box::new(source.clone()), error))
}

/// Shortest path to the deciding outcome: one that the model forbids, or else one that decides the condition. For a
/// deadlock or livelock, the path leads to a stuck state.
fn way(
    (source, lower): (&Source, Option<&Source>),
    test: &Test,
    found: &Found,
    (how, allowed): (&LitmusOptions, &BTreeSet<Outcome>),
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Shortest>, NotJudged> {
    if lower.is_some() {
        let said = "error: charts show one level of caches, but the specification has two";
        return Err(Failure::new(ExitStatus::BadInput, said).into());
    }
    let program = &test.program;
    let forbidden = |end: &Outcome| !allowed.contains(end);
    let decides = |end: &Outcome| program.holds(end) == (program.quantifier != Quantifier::Forall);
    let wanted: &dyn Fn(Option<&Outcome>) -> bool = match found {
        Found::Ends { ends, .. } if ends.iter().any(forbidden) => &|end| end.is_some_and(forbidden),
        Found::Ends { ends, .. } if ends.iter().any(decides) => &|end| end.is_some_and(decides),
        Found::Stuck { .. } => &|end| end.is_none(),
        _ => return Ok(None),
    };
    let threads = program.threads.len();
    let home = home(source, threads as u16)?;
    let how = how.options();
    let locations = program.locations.len() as u8;
    let mut lines = Lines::new(&source.protocol, &home, test.kinds(), locations, how.room);
    Ok(shortest(&mut lines, program, &how, wanted, goes_on))
}

fn on_protocol(
    (source, lower): (&Source, Option<&Source>),
    test: &Test,
    how: &LitmusOptions,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Found, NotJudged> {
    let program = &test.program;
    let home = |source| home(source, program.threads.len() as u16);
    let own = home(source)?;
    let how = how.options();
    let found = match lower {
        None => {
            let on = (&source.protocol, &own);
            explore(on, &test.kinds(), program, &how, goes_on)
        }
        Some(lower) => {
            let levels = [(&source.protocol, &own), (&lower.protocol, &home(lower)?)];
            let programs = std::slice::from_ref(program);
            explore_below(levels, programs, &how, goes_on).remove(0)
        }
    };
    match found {
        // The threads may run when placed on other kinds.
        Found::Lacks(_) | Found::Cannot(_) if source.protocol.several_tables() => Ok(found),
        Found::Lacks(what) | Found::Cannot(what) => Err(cannot(source, program, &what).into()),
        found => Ok(found),
    }
}

/// Error: the test cannot run on this protocol.
fn cannot(source: &Source, program: &Program, what: &str) -> Failure {
    let (path, test) = (source.path.display(), &program.name);
    let said = format!("error: {path}: cannot run {test}: {what}");
    Failure::new(ExitStatus::BadInput, said)
}

/// Kinds of remotes that threads run on, as text.
fn placed(kinds: Option<&[String]>) -> String {
    let all = kinds.map(|kinds| format!(" ({})", kinds.join(", ")));
    all.unwrap_or_default()
}

/// Core model as text.
fn between(cores: Cores) -> &'static str {
    match cores {
        Cores::InOrder => "in order",
        Cores::StoreBuffer => "with store buffers",
        Cores::Relaxed(_) => "with windows",
    }
}

/// Comparison of outcomes with those that the model allows, as text.
fn relation<'e>(
    ends: impl Iterator<Item = &'e Outcome>,
    how: &LitmusOptions,
    allowed: &BTreeSet<Outcome>,
) -> String {
    let (model, mut count, mut more) = (how.model, 0, 0);
    for end in ends {
        count += 1;
        more += usize::from(!allowed.contains(end));
    }
    let all = allowed.len();
    let which = match how.guaranteed {
        true => ", which the protocol guarantees",
        false => "",
    };
    match more {
        0 if count == all => format!("exactly the outcomes of {model}"),
        0 => format!("{count} of the {all} outcomes of {model}, and no other"),
        1 => format!("1 outcome is forbidden by {model}{which}"),
        _ => format!("{more} outcomes are forbidden by {model}{which}"),
    }
}

/// Observation of the condition with its counts, in herd's words; without a condition, only the number of outcomes.
fn observed<'e>(program: &Program, ends: impl Iterator<Item = &'e Outcome> + Clone) -> String {
    let count = ends.clone().count();
    let all = counted(count as u64, "outcome");
    if program.claim == Claim::True {
        return format!("{all}, no condition");
    }
    let satisfying = ends.clone().filter(|end| program.holds(end)).count();
    let holds = match program.is_satisfied(ends) {
        true => "holds",
        false => "does not hold",
    };
    let (observation, quantifier) = (Observation::of(satisfying, count), program.quantifier);
    format!("{observation}, {satisfying} of {all}: `{quantifier}` {holds}")
}

/// Observation of the condition for JSON; `None` if there is no outcome.
fn observation<'e>(
    program: &Program,
    ends: impl Iterator<Item = &'e Outcome> + Clone,
) -> Option<String> {
    let count = ends.clone().count();
    let satisfying = ends.filter(|end| program.holds(end)).count();
    let observation = (count > 0).then(|| Observation::of(satisfying, count));
    observation.map(|observation| observation.to_string().to_lowercase())
}

/// List of outcomes, which marks those that satisfy the condition, and those that the model forbids.
fn listed<'e>(
    program: &Program,
    ends: impl Iterator<Item = (&'e Outcome, String)>,
    how: &LitmusOptions,
    allowed: &BTreeSet<Outcome>,
) -> String {
    let line = |(end, more): (&Outcome, String)| {
        let satisfies = program.claim != Claim::True && program.holds(end);
        let mark = if satisfies { '*' } else { ' ' };
        let forbidden = match allowed.contains(end) {
            true => String::new(),
            false => format!(" (forbidden by {})", how.model),
        };
        format!("  {mark} {}{more}{forbidden}\n", program.words(end))
    };
    ends.map(line).collect()
}

/// Outcomes that a test must show for exit code 0, if nothing is violated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    /// Outcomes that fulfil the condition with its quantifier.
    Condition,
    /// Outcomes with this observation.
    Exactly(Observation),
    /// Any outcomes that the model allows.
    Allowed,
}

impl Expected {
    fn of(test: &Test, how: &LitmusOptions, on_protocol: bool) -> Expected {
        if how.expect == Expect::Condition {
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

    fn is_met<'e>(
        self,
        program: &Program,
        ends: impl Iterator<Item = &'e Outcome> + Clone,
    ) -> bool {
        match self {
            Expected::Condition => program.is_satisfied(ends),
            Expected::Exactly(observation) => {
                let satisfying = ends.clone().filter(|end| program.holds(end)).count();
                observation == Observation::of(satisfying, ends.count())
            }
            Expected::Allowed => true,
        }
    }
}

/// Description of a deadlock or livelock.
fn stuck(livelock: bool) -> &'static str {
    match livelock {
        false => "deadlock: no step is possible, but some threads have not ended",
        true => "livelock: no outcome is reachable from a reachable state",
    }
}

/// Quantifier of the condition, for JSON.
fn asked(program: &Program) -> &'static str {
    match program.quantifier {
        Quantifier::Exists => "exists",
        Quantifier::NotExists => "not_exists",
        Quantifier::Forall => "forall",
    }
}

/// Core model, for JSON.
fn key(cores: Cores) -> &'static str {
    match cores {
        Cores::InOrder => "in_order",
        Cores::StoreBuffer => "store_buffer",
        Cores::Relaxed(_) => "relaxed",
    }
}

/// Values of an outcome, for JSON.
fn values(program: &Program, end: &Outcome) -> Value {
    let values = end.0.iter();
    let values = values.map(|(o, v)| (program.name_of(o), json!(v)));
    Value::Object(values.collect())
}

impl Judged {
    /// Returns true if an outcome violates the guaranteed memory model.
    fn breaks_guarantee(&self) -> bool {
        match &self.found {
            Found::Ends { ends, .. } => self.how.guaranteed && !ends.is_subset(&self.allowed),
            _ => false,
        }
    }

    fn outcome(&self) -> ExitStatus {
        match &self.found {
            Found::Ends { .. } if self.breaks_guarantee() => ExitStatus::Violated,
            Found::Ends { ends, .. } if self.expected.is_met(&self.program, ends.iter()) => {
                ExitStatus::Success
            }
            Found::Ends { .. } | Found::Wrong(Wrong::Violated(_)) | Found::Stuck { .. } => {
                ExitStatus::Violated
            }
            Found::Wrong(Wrong::Exceeded(_)) | Found::TooMany => ExitStatus::Undecided,
            Found::Interrupted => ExitStatus::Interrupted,
            Found::Lacks(_) | Found::Cannot(_) => ExitStatus::Undecided,
        }
    }

    /// Shortest path with its chart; empty if there is none.
    fn drawn(&self, charts: &Text) -> String {
        let path = self.way.as_ref();
        path.map(|path| drawn(path, charts)).unwrap_or_default()
    }

    fn text(&self, protocol: Option<&str>) -> String {
        let program = &self.program;
        let (name, between) = (&program.name, between(self.how.cores));
        let kinds = placed(self.kinds.as_deref());
        let model = self.how.model;
        let mut text = match (protocol, model) {
            (Some(on), _) => format!("{name} on {on}{kinds}, cores {between}: "),
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
            Found::Ends { ends, states } => {
                if self.breaks_guarantee() {
                    text.push_str("violated: ");
                }
                let _ = writeln!(text, "{}", observed(program, ends.iter()));
                let all = ends.iter().map(|end| (end, String::new()));
                text.push_str(&listed(program, all, &self.how, &self.allowed));
                match protocol {
                    Some(_) => {
                        let states = counted(*states as u64, "state");
                        let relation = relation(ends.iter(), &self.how, &self.allowed);
                        writeln!(text, "  {relation}, in {states}")
                    }
                    None => writeln!(text, "  the outcomes of {model}"),
                }
            }
            Found::Wrong(Wrong::Violated(violation)) => {
                writeln!(text, "violated: {}: {}", violation.property, violation.what)
            }
            Found::Wrong(Wrong::Exceeded(what)) => writeln!(text, "undecided: {what}"),
            Found::Stuck { waiting, livelock } => {
                let _ = writeln!(text, "violated: {}", stuck(*livelock));
                for (thread, wish) in waiting.iter().enumerate() {
                    if let Some(wish) = wish {
                        let place = &program.locations[usize::from(wish.location())];
                        let what = match wish {
                            MemoryRequest::Read(..) => "read",
                            MemoryRequest::Write(..) => "write",
                            MemoryRequest::Update(..) => "read and write",
                        };
                        let _ = writeln!(text, "  P{thread} waits to {what} {place}");
                    }
                }
                Ok(())
            }
            Found::TooMany => {
                writeln!(
                    text,
                    "undecided: state limit reached; raise it with `--max-states N`"
                )
            }
            Found::Lacks(what) | Found::Cannot(what) => writeln!(text, "undecided: {what}"),
            Found::Interrupted => writeln!(text, "not run"),
        };
        text
    }

    fn json(&self, protocol: Option<&str>) -> Value {
        let program = &self.program;
        let (outcome, reason) = match &self.found {
            Found::Ends { .. } if self.breaks_guarantee() => {
                let model = self.how.model;
                ("violated", Some(format!("guarantee: {model}")))
            }
            Found::Ends { ends, .. } if program.is_satisfied(ends) => ("yes", None),
            Found::Ends { .. } => ("no", None),
            Found::Wrong(Wrong::Violated(violation)) => {
                let reason = format!("{}: {}", violation.property, violation.what);
                ("violated", Some(reason))
            }
            Found::Stuck { livelock, .. } => ("violated", Some(stuck(*livelock).to_string())),
            Found::Wrong(Wrong::Exceeded(what)) => ("undecided", Some(what.clone())),
            Found::Lacks(what) | Found::Cannot(what) => ("undecided", Some(what.clone())),
            Found::TooMany => ("undecided", Some("max_states".to_string())),
            Found::Interrupted => ("undecided", Some("interrupted".to_string())),
        };
        let shown = |end: &Outcome| {
            json!({
                "values": values(program, end),
                "fulfils": program.holds(end),
                "allowed": self.allowed.contains(end),
            })
        };
        let (ends, states) = match &self.found {
            Found::Ends { ends, states } => (ends.iter().map(shown).collect(), *states),
            _ => (Vec::new(), 0),
        };
        let observation = match &self.found {
            Found::Ends { ends, .. } => observation(program, ends.iter()),
            _ => None,
        };
        let mut told = json!({
            "test": program.name,
            "protocol": protocol,
            "cores": key(self.how.cores),
            "model": self.how.model.name(),
            "condition": asked(program),
            "observation": observation,
            "outcome": outcome,
            "reason": reason,
            "ends": ends,
            "allowed": self.allowed.len(),
            "states": states,
            "run": { "file": self.file, "version": env!("CARGO_PKG_VERSION") },
        });
        if let Some(kinds) = &self.kinds {
            told["kinds"] = json!(kinds);
        }
        if let Some(expected) = self.how.as_expected(self.outcome()) {
            told["expected"] = expected;
        }
        if let Some(way) = &self.way {
            told["steps"] = json!(way.steps);
            told["sequence"] = cohkit_chart::json(&way.told);
        }
        told
    }
}

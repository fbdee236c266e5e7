//! Runs of device applications behind a home, in the simulator. [`Play::new`] validates a request, [`Play::run`]
//! executes it, and [`Play::json`] is the result as `docs/output.md` describes it.

use crate::concurrent_runs::{self, run_each};
use crate::files;
use crate::latency_breakdown;
use crate::outcome::{ExitStatus, Failure};
use crate::simulation::{add_host, failure_json, warnings, StartError};
use crate::source::Source;
use cohkit_application::interface::{Scenario, Thread};
use cohkit_application::matrix_market::{self, Edges};
use cohkit_application::shipped::{
    visit_with_graph, Parameter, Visitor, GENERATED_GRAPH_PARAMETERS, SCENARIOS,
};
use cohkit_sim::combined_scenario::CombinedScenario;
use cohkit_sim::explain;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::rate_sampler::{Quarter, RateSampler};
use cohkit_sim::scenario::{Performance, Playable, Tally};
use cohkit_sim::simulation::{
    play_watched, play_while, HostSpace, NoScenario, RunError, Setup, Simulation,
};
use cohkit_sim::spaces::Spaces;
use cohkit_sim::statistics::Histogram;
use cohkit_timeline::Filter;
use cohkit_units::{self as units, Unit};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// Request to run an application.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the application.
    pub application: String,
    /// Parameters of the application, as `name=value`.
    pub parameters: Vec<String>,
    /// Simulated time, with its unit, after which no work is started.
    pub time: Option<String>,
    /// Simulated time, with its unit, before which nothing is counted.
    pub warm_up: String,
    /// Quantities that were set on the platform, as `name=value`.
    pub settings: Vec<String>,
    /// Parameters with which the protocol is read, as `name=value`.
    pub sizes: Vec<String>,
    /// Seed of all random choices.
    pub seed: u64,
    /// True to compare loads with the last write, and to check permissions.
    pub oracle: bool,
    /// True to return tables of the threads' inputs and results, for checks by other programs.
    pub tables: bool,
}

/// Measurements and counts, or the failure of the run.
pub type PlayResult = Result<Performance, Box<explain::Failure>>;

/// An application that is ready to run.
pub struct Play {
    /// Protocol of the home.
    pub source: Source,
    /// Request that this was made from.
    pub request: Request,
    /// All parameters of the application, with their defaults.
    pub parameter_values: Vec<(String, u64)>,
    /// Setup of the simulator.
    pub setup: Setup,
    /// True to record the latency breakdown of accesses.
    pub explain: bool,
    /// Selection of the timeline's events, if a timeline is recorded.
    pub timeline: Option<Filter>,
}

/// Visitor that returns the scenario behind a pointer.
struct PlayableVisitor;

impl Visitor for PlayableVisitor {
    type Output = Arc<dyn Playable>;

    fn visit<S>(self, scenario: S) -> Arc<dyn Playable>
    where
        S: Scenario + Clone + Send + Sync + 'static,
        S::Application: Clone + Eq + Hash,
        S::Thread: Thread + Clone + Eq + Hash,
    {
        Arc::new(scenario)
    }
}

/// Error of an invalid request, without a remedy.
fn input_error(message: String) -> StartError {
    StartError::Input {
        message,
        help: None,
    }
}

/// Hint for an endless application: the options that bound it.
fn end_hint(request: &Request) -> String {
    let options = bounding_options(&request.application, &request.parameters, 1000);
    match options.is_empty() {
        true => "`--stop-after 1ms` ends it".into(),
        false => format!("`--stop-after 1ms` ends it, or `{options}`"),
    }
}

/// Returns the options that bound an endless application to `count` repetitions, without those that are set already.
/// `application` may combine several names with `+`; `given_parameters` are `name=value` each. Empty if the
/// application has no such parameter.
pub fn bounding_options(application: &str, given_parameters: &[String], count: u64) -> String {
    let is_given = |name: &str| {
        let mut settings = given_parameters
            .iter()
            .filter_map(|setting| setting.split_once('='));
        settings.any(|(given_name, number)| given_name.trim() == name && number.trim() != "0")
    };
    let is_combined = application.contains('+');
    let mut options = Vec::new();
    for (part, _) in application.split('+').map(split_graph_file) {
        let shipped = SCENARIOS.iter().filter(|s| s.name == part);
        let parameters = shipped.flat_map(|shipped| shipped.parameters);
        for parameter in parameters.filter(|p| p.text.ends_with("0: unlimited")) {
            let number = match is_combined {
                true => format!("{part}.{}", parameter.name),
                false => parameter.name.to_string(),
            };
            if !is_given(&number) {
                options.push(format!("--param {number}={count}"));
            }
        }
    }
    options.join(" ")
}

/// Parses the parameters of an application, `name=value` each.
///
/// # Errors
/// A parameter has no number, or is set twice.
pub fn parse_parameters(parameters: &[String]) -> Result<BTreeMap<String, u64>, StartError> {
    let mut values = BTreeMap::new();
    for parameter in parameters {
        let Some((name, value)) = parameter.split_once('=') else {
            let message = format!("`{parameter}` has no `=`");
            return Err(StartError::input(message, "write it like `threads=8`"));
        };
        let number = value.trim().parse::<u64>();
        let number =
            number.map_err(|_| input_error(format!("`{parameter}`: `{value}` is no number")))?;
        let name = name.trim();
        if let Some(previous) = values.insert(name.to_string(), number) {
            return Err(input_error(format!(
                "`{parameter}`: `{name}` is {previous} already"
            )));
        }
    }
    Ok(values)
}

/// Splits an application from the file of its graph, as in `sssp:FILE`.
fn split_graph_file(part: &str) -> (&str, Option<&str>) {
    match part.split_once(':') {
        Some((name, file)) => (name, Some(file)),
        None => (part, None),
    }
}

/// Error message for a protocol with two levels of caches.
pub const TWO_LEVELS: &str =
    "applications are supported only for one level of caches, but the specification has two";

/// Reads the graph of an application.
fn read_graph(name: &str, file: &str) -> Result<Arc<Edges>, StartError> {
    // An unknown application is reported later, whatever the file.
    if !SCENARIOS.iter().any(|shipped| shipped.name == name) {
        return Ok(Arc::default());
    }
    if file.is_empty() {
        let reason = format!("`{name}:` names no file");
        let help = format!("give a graph, as in `{name}:FILE`");
        return Err(StartError::input(reason, help));
    }
    let (path, folder_help) = (Path::new(file), "name one of the graphs in it");
    let missing_help = "a graph is a file in Matrix Market's coordinate format";
    let bytes = files::read_bytes(path, missing_help, folder_help).map_err(StartError::Failure)?;
    let text = files::text(path, bytes).map_err(StartError::Failure)?;
    let result = matrix_market::read(&text);
    result.map(Arc::new).map_err(
        |matrix_market::SyntaxError {
             line,
             message: reason,
         }| {
            let help = "a graph is a file in Matrix Market's coordinate format";
            StartError::input(format!("{file}:{line}: {reason}"), help)
        },
    )
}

/// A scenario with all its parameters.
type ScenarioAndParameters = (Arc<dyn Playable>, Vec<(String, u64)>);

/// Returns the requested scenario; several applications are combined into one.
fn requested_scenario(request: &Request) -> Result<ScenarioAndParameters, StartError> {
    let values = parse_parameters(&request.parameters)?;
    let parts = request.application.split('+').map(split_graph_file);
    let (names, graph_files): (Vec<&str>, Vec<Option<&str>>) = parts.unzip();
    let is_combined = names.len() > 1;
    if is_combined {
        reject_unassigned_parameters(&values, &names)?;
    }
    let (mut scenarios, mut all_parameters) = (Vec::new(), Vec::new());
    for (name, file) in names.iter().zip(graph_files) {
        let prefix = match is_combined {
            true => format!("{name}."),
            false => String::new(),
        };
        let given: BTreeMap<String, u64> = (values.iter())
            .filter_map(|(full_name, value)| {
                Some((full_name.strip_prefix(&prefix)?.to_string(), *value))
            })
            .collect();
        let graph = file.map(|file| read_graph(name, file)).transpose()?;
        let scenario = visit_with_graph(name, &given, graph.clone(), PlayableVisitor);
        scenarios.push(scenario.map_err(input_error)?);
        for (parameter, value) in all_values(name, &given, graph.as_deref()) {
            all_parameters.push((format!("{prefix}{parameter}"), value));
        }
    }
    let scenario = match is_combined {
        false => scenarios.remove(0),
        true => Arc::new(CombinedScenario::new(scenarios).map_err(input_error)?),
    };
    Ok((scenario, all_parameters))
}

/// Rejects a parameter of combined applications that does not begin with the name of one of them and a dot.
fn reject_unassigned_parameters(
    values: &BTreeMap<String, u64>,
    applications: &[&str],
) -> Result<(), StartError> {
    let is_unassigned = |name: &&String| {
        let application = name
            .split_once('.')
            .map_or("", |(application, _)| application);
        !applications.contains(&application)
    };
    match values.keys().find(is_unassigned) {
        Some(name) => Err(StartError::input(
            format!("`{name}` does not name its application"),
            format!("write it like `{}.NUMBER`", applications[0]),
        )),
        None => Ok(()),
    }
}

/// Parameters of an application that apply, with their given or default values. With a graph, its number of vertices
/// replaces the parameters of a generated one.
fn all_values(
    application: &str,
    given: &BTreeMap<String, u64>,
    graph: Option<&Edges>,
) -> Vec<(&'static str, u64)> {
    let mut shipped = SCENARIOS.iter();
    let shipped = shipped.find(|shipped| shipped.name == application);
    let parameters = shipped.map_or(&[][..], |shipped| shipped.parameters);
    let value = |parameter: &Parameter| match graph {
        Some(graph) if parameter.name == "vertices" => Some(graph.vertices.into()),
        Some(_) if GENERATED_GRAPH_PARAMETERS.contains(&parameter.name) => None,
        _ => Some(
            given
                .get(parameter.name)
                .copied()
                .unwrap_or(parameter.default),
        ),
    };
    let values = parameters.iter();
    values
        .filter_map(|parameter| Some((parameter.name, value(parameter)?)))
        .collect()
}

/// Parses a time with its unit, and returns it in picoseconds. `name` is that of the option, for messages.
fn parse_time(name: &str, text: &str) -> Result<u64, StartError> {
    units::parse(text, Unit::Picoseconds)
        .map_err(|reason| input_error(format!("the {name} `{text}` {reason}")))
}

impl Play {
    /// Sets up an application on a platform on which the settings of the request are set. `host` is the protocol of the
    /// host's memory, if it has its own address space.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn new(
        source: Source,
        host: Option<Source>,
        platform: Platform,
        request: Request,
    ) -> Result<Play, StartError> {
        let (scenario, parameter_values) = requested_scenario(&request)?;
        let play = Play::with_scenario(source, host, platform, request, scenario)?;
        Ok(Play {
            parameter_values,
            ..play
        })
    }

    /// Sets up a custom scenario on a platform on which the settings of the request are set. Ignores the name and
    /// parameters in the request.
    ///
    /// # Errors
    /// The rest of the request is invalid.
    pub fn with_scenario(
        source: Source,
        host: Option<Source>,
        platform: Platform,
        request: Request,
        scenario: Arc<dyn Playable>,
    ) -> Result<Play, StartError> {
        let source = source.sized(&request.sizes).map_err(input_error)?;
        let protocol = source.protocol.clone();
        let unsupported =
            |reason: String| input_error(format!("cannot simulate this application: {reason}"));
        let host = host.map(|host| HostSpace::new(host.protocol, &platform));
        let host = host.transpose().map_err(unsupported)?;
        let setup = Setup::with_scenario(protocol, platform, scenario);
        let mut setup = match setup {
            Ok(setup) => setup,
            Err(NoScenario::Home(error)) => {
                return Err(StartError::NoHome(Box::new(source), error))
            }
            Err(error) => return Err(unsupported(error.to_string())),
        };
        if let Some(play) = &mut setup.play {
            let end_time = request.time.as_deref();
            play.until = end_time.map(|text| parse_time("time", text)).transpose()?;
            play.warm_up = parse_time("warm-up", &request.warm_up)?;
            play.tables = request.tables;
        }
        setup.host = host.map(Box::new);
        setup.seed = request.seed;
        if !request.oracle {
            setup.oracle = Level::Off;
        }
        // Reject invalid setups before anything runs.
        let never_ends =
            |play: &cohkit_sim::scenario::Play| play.until.is_none() && !play.scenario.has_end();
        let is_endless = setup.play.as_ref().is_some_and(never_ends);
        let check = match setup.host {
            None => Simulation::new(&setup, None).map(|_| ()),
            Some(_) => Spaces::new(&setup, None).map(|_| ()),
        };
        check.map_err(|reason| match is_endless {
            true => StartError::input(
                format!("cannot simulate this application: {reason}"),
                end_hint(&request),
            ),
            false => unsupported(reason),
        })?;
        Ok(Play {
            source,
            request,
            parameter_values: Vec::new(),
            setup,
            explain: false,
            timeline: None,
        })
    }

    /// Runs the application while `should_continue` returns true. The callback is called periodically.
    ///
    /// # Errors
    /// The run was interrupted, or its setup is invalid.
    pub fn run(&self, should_continue: &mut dyn FnMut() -> bool) -> Result<PlayResult, StartError> {
        let mut should_continue = |_| should_continue();
        let played = match (&self.timeline, self.explain) {
            (None, false) => play_while(&self.setup, &mut should_continue),
            (filter, explain) => {
                let played = play_watched(&self.setup, filter.as_ref(), &mut should_continue);
                played.map(|mut played| {
                    let explanation = played.statistics.explanation.take();
                    played.statistics.explanation = explanation.filter(|_| explain);
                    played
                })
            }
        };
        match played {
            Ok(performance) => Ok(Ok(performance)),
            Err(RunError::Failure(failure)) => Ok(Err(failure)),
            Err(RunError::Stopped) => Err(StartError::Failure(Failure::new(
                ExitStatus::Interrupted,
                "interrupted",
            ))),
            Err(RunError::Setup(reason)) => Err(input_error(reason)),
        }
    }

    /// JSON value, described in `docs/output.md`. `seconds` is the wall-clock time of the run, for its
    /// machine-dependent part.
    pub fn json(&self, played: &PlayResult, seconds: f64) -> Value {
        let performance = played.as_ref().ok();
        let parameters = self.parameter_values.iter();
        let parameters: Map<String, Value> = parameters
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let tally = |f: fn(&Tally) -> Value| performance.map(|played| f(&played.tally));
        let mut value = json!({
            "protocol": self.setup.protocol.name,
            "home": if self.setup.clocked.is_some() { "rtl" } else { "model" },
            "platform": self.setup.platform.name,
            "settings": self.request.settings,
            "sizes": self.request.sizes,
            "application": self.request.application,
            "parameters": parameters,
            "seed": self.setup.seed,
            "oracle": self.setup.oracle != Level::Off,
            "window_ns": tally(|tally| json!(tally.window as f64 / 1000.0)),
            "counts": tally(|tally| json!(tally.counts)),
            "rates_per_s": tally(|tally| {
                let rates = tally.counts.keys().map(|&counter| (counter.into(), json!(tally.rate(counter))));
                Value::Object(rates.collect())
            }),
            "quarters_by_counter": performance.map(|played| {
                let rate_samplers = played.tally.rate_samplers.iter();
                let begin = self.setup.play.as_ref().map_or(0, |play| play.warm_up);
                let rate_samplers = rate_samplers.map(|(&counter, sampler)| (counter.into(), quarters_json(sampler, begin)));
                Value::Object(rate_samplers.collect())
            }),
            "durations_ns": tally(|tally| {
                let times = tally.times.iter().map(|(&counter, times)| (counter.into(), times_json(times)));
                Value::Object(times.collect())
            }),
            "links": performance.map(|played| {
                let kinds = self.setup.protocol.kinds.iter().zip(&played.tally.traffic);
                let kinds = kinds.map(|(kind, traffic)| {
                    let value = json!({ "messages": traffic.messages, "bytes": traffic.bytes });
                    (kind.name.clone(), value)
                });
                Value::Object(kinds.collect())
            }),
            "tables": performance.filter(|_| self.request.tables).map(|played| {
                let tables = played.tables.iter();
                let tables = tables.map(|table| (table.name.to_string(), json!(table.rows)));
                tables.collect::<Map<String, Value>>()
            }),
            "end_ns": performance.map(|played| json!(played.end as f64 / 1000.0)),
            "statistics": performance.map(|played| {
                let values = played.statistics.values.iter();
                let values = values.map(|(definition, value)| (definition.name.to_string(), json!(value)));
                values.collect::<Map<String, Value>>()
            }),
            "messages": performance.map(|played| {
                let messages = played.statistics.messages.iter();
                let messages = messages.map(|(name, count)| (name.clone(), json!(count)));
                messages.collect::<Map<String, Value>>()
            }),
            "traffic": performance.filter(|played| !played.statistics.traffic.is_empty()).map(|played| {
                let traffic = played.statistics.traffic.iter();
                let traffic = traffic.map(|(name, totals)| (name.clone(), json!(totals)));
                traffic.collect::<Map<String, Value>>()
            }),
            "quarters": performance.map(|played| json!(played.statistics.quarters)),
            "failure": played.as_ref().err().map(|failure| failure_json(failure)),
            "warnings": warnings(&self.setup),
            "run": {
                "file": self.source.path.display().to_string(),
                "seconds": seconds,
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        if let Some(played) = performance {
            latency_breakdown::add(&mut value, &played.statistics, &self.setup.protocol);
            add_host(&mut value, &self.setup, Some(&played.statistics));
        }
        value
    }
}

/// Runs applications concurrently on at most `threads` threads, and returns their values in their order.
/// `completed_runs` counts completed runs; running applications poll `cancel`.
///
/// # Errors
/// The runs were interrupted.
pub fn play_all(
    plays: &[&Play],
    threads: Option<usize>,
    cancel: &AtomicBool,
    completed_runs: &AtomicU64,
) -> Result<Vec<Value>, StartError> {
    run_each(plays, concurrent_runs::threads(threads), |play| {
        let start = Instant::now();
        let played = play.run(&mut || !cancel.load(Ordering::Relaxed))?;
        completed_runs.fetch_add(1, Ordering::Relaxed);
        Ok(play.json(&played, start.elapsed().as_secs_f64()))
    })
}

/// Quarters of the events counted since `begin`: the number in each, and its duration in nanoseconds.
fn quarters_json(sampler: &RateSampler, begin: u64) -> Value {
    let quarters = sampler.quarters(begin);
    let quarter_json = |quarter: &Quarter| json!({ "count": quarter.count, "ns": quarter.ns });
    json!(quarters.map(|quarters| quarters.iter().map(quarter_json).collect::<Vec<_>>()))
}

/// Distribution of durations as JSON, in nanoseconds.
fn times_json(times: &Histogram) -> Value {
    let nanoseconds = |time: u64| time as f64 / 1000.0;
    let distribution = times.distribution().into_iter();
    json!({
        "count": times.count(),
        "mean": times.mean() / 1000.0,
        "p50": nanoseconds(times.percentile(0.5)),
        "p99": nanoseconds(times.percentile(0.99)),
        "max": nanoseconds(times.max()),
        "distribution": distribution
            .map(|(time, count)| json!([nanoseconds(time), count]))
            .collect::<Vec<_>>(),
    })
}

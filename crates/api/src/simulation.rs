//! Simulations of workloads on platforms.

use crate::composition::MachineProtocols;
use crate::concurrent_runs::{self, run_each};
use crate::latency_breakdown;
use crate::named_value::NamedValue;
use crate::outcome::{ExitStatus, Failure};
use crate::source::Source;
pub use crate::start_error::StartError;
use crate::workload::{Kind, Trace, Work};
use crate::{shipped, size};
use cohkit_base::words::{counted, did_you_mean};
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::explain;
use cohkit_sim::levels::Levels;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{current_name, text, Cores, Platform};
use cohkit_sim::simulation::{
    self, draw_while, explain_while, run_while, HostSpace, LowerLevelSetup, RunError, Setup,
};
use cohkit_sim::spaces::Spaces;
use cohkit_sim::statistics::Statistics;
use cohkit_timeline::Filter;
use cohkit_units::{self as units, Quantity, Unit};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Default size of the accessed memory.
const REGION: &str = "16MiB";

/// Name of the workload of agents that do nothing.
const IDLE: &str = "idle";

/// Upper bound of the simulator's memory per byte of simulated data written, in bytes.
const MEMORY_PER_WRITTEN_BYTE: f64 = 1.3;

/// Returns the shipped platform of this name.
///
/// # Errors
/// No platform has this name; the message lists all names.
pub fn shipped_platform(name: &str) -> Result<Platform, StartError> {
    Platform::shipped(name).ok_or_else(|| {
        let names: Vec<&str> = Platform::shipped_names().collect();
        let suggestion = did_you_mean(name, names.iter().copied());
        let names = names.join(", ");
        StartError::input(
            format!("no platform is named `{name}`"),
            format!(
                "{suggestion}the shipped platforms are {names}; the name of a file ends in `.toml`"
            ),
        )
    })
}

/// Parses a platform file. `file` is the name to show, and `platform` the contents.
///
/// # Errors
/// All errors of the file.
pub fn read_platform(file: &str, platform: &str) -> Result<Platform, StartError> {
    text::read(platform).map_err(|errors| match cohkit_nearmemory::Platform::read(platform) {
        Ok(_) => StartError::input(
            format!("{file}: this is a machine with cores beside far memory, without a protocol"),
            "use `cohkit run --platform FILE` for it",
        ),
        Err(_) => StartError::Platform {
            file: file.to_string(),
            text: platform.to_string(),
            errors,
        },
    })
}

/// Sets quantities of a platform, `name=value` each, and each at most once.
///
/// # Errors
/// The first setting that is invalid.
pub fn set(platform: &mut Platform, settings: &[String]) -> Result<(), StartError> {
    set_each(settings, |name, value| platform.set(name, value))
}

/// Sets quantities of any object by the function `set`, `name=value` each, and each at most once.
///
/// # Errors
/// The first setting that is invalid.
pub fn set_each(
    settings: &[String],
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), StartError> {
    let mut previous_values = BTreeMap::new();
    for setting in settings {
        let Some((name, value)) = setting.split_once('=') else {
            let reason = format!("the setting `{setting}` has no `=`");
            return Err(StartError::input(
                reason,
                "write it like `link.latency=120ns`",
            ));
        };
        let (name, value) = (name.trim(), value.trim());
        let setting_error =
            |reason| StartError::plain(format!("the setting `{setting}`: {reason}"));
        set(name, value).map_err(setting_error)?;
        if let Some(previous_value) = previous_values.insert(current_name(name), value) {
            return Err(setting_error(format!(
                "`{name}` is set to {previous_value} already"
            )));
        }
    }
    Ok(())
}

/// Platform as JSON: its quantities with their units, ranges and origins.
pub fn platform_json(platform: &Platform) -> Value {
    let quantities = platform.all_quantities().into_iter();
    let quantities = quantities.map(|(name, unit, quantity)| {
        let assumed = quantity.range.0 < quantity.range.1;
        json!({
            "name": name,
            "value": quantity.value,
            "unit": match unit {
                Unit::Picoseconds => "ps",
                Unit::BytesPerSecond => "B/s",
                Unit::Bytes => "B",
                Unit::Count => "count",
            },
            "low": assumed.then_some(quantity.range.0),
            "high": assumed.then_some(quantity.range.1),
            "origin": quantity.origin,
        })
    });
    let quantities: Vec<Value> = quantities.collect();
    let mut value = json!({
        "name": platform.name,
        "protocol": shipped::default_protocol(platform),
        "remotes": platform.remotes,
        "lines": platform.lines,
        "quantities": quantities,
    });
    if !platform.agents.is_empty() {
        let remotes_by_kind = platform.agents.iter();
        let remotes_by_kind =
            remotes_by_kind.map(|agents| (agents.kind.clone(), agents.remotes.into()));
        value["agents"] = remotes_by_kind.collect::<Map<String, Value>>().into();
    }
    if let Some(below) = &platform.below {
        value["lower_level_caches"] = below.remotes.into();
    }
    value
}

/// Request for a simulation.
#[derive(Clone, Debug)]
pub struct Request {
    /// Workload of the cores.
    pub work: Work,
    /// Size of the accessed memory with its unit; by default 16 MiB, or that of a trace.
    pub region: Option<String>,
    /// Number of accesses; by default the number of lines of the region.
    pub accesses: Option<u64>,
    /// Number of cores; by default the platform's `cores.count`.
    pub cores: Option<u32>,
    /// Maximum outstanding accesses per core; by default the platform's `cores.max_outstanding`.
    pub outstanding: Option<u32>,
    /// Prefetch distance of reads, in accesses; by default the platform's `cores.prefetch_distance`.
    pub prefetch: Option<u32>,
    /// Workloads of further kinds of agents, as `KIND=WORKLOAD` or `KIND=idle`; a kind without an entry runs `work`.
    pub kind_workloads: Vec<String>,
    /// Quantities to set on the platform, as `name=value`.
    pub settings: Vec<String>,
    /// Seed of all random choices.
    pub seed: u64,
    /// True to compare loads with the last write, and to check permissions.
    pub oracle: bool,
    /// True to record the latency breakdown of accesses.
    pub explain: bool,
}

/// Statistics of a run, or its failure.
pub type RunResult = Result<Statistics, Box<explain::Failure>>;

/// Second protocol of a machine: on the lower level of caches, or in the host's memory.
pub enum SecondProtocol {
    /// Lower level of caches, with its home.
    LowerLevel(Source, Controller),
    /// Address space of the host's memory.
    HostMemory(Source),
}

impl MachineProtocols {
    /// Returns the first protocol, and the second one if the machine has two. All quantities of the platform must be
    /// [`set`].
    ///
    /// # Errors
    /// The platform does not have two levels, or the lower level has no home.
    pub fn on_platform(
        self,
        platform: &Platform,
    ) -> Result<(Source, Option<SecondProtocol>), StartError> {
        match self {
            MachineProtocols::Single(source) => Ok((source, None)),
            MachineProtocols::Directions(device, host) => {
                Ok((device, Some(SecondProtocol::HostMemory(host))))
            }
            MachineProtocols::Levels(upper, lower) => {
                let Some(below) = &platform.below else {
                    return Err(StartError::input(
                        format!(
                            "{} has one level of caches, but the specification has two",
                            platform.name
                        ),
                        "name a platform with caches `below` its caches",
                    ));
                };
                match simulation::home(&lower.protocol, below.remotes) {
                    Ok(home) => Ok((upper, Some(SecondProtocol::LowerLevel(lower, home)))),
                    Err(error) => Err(StartError::NoHome(Box::new(lower), error)),
                }
            }
        }
    }
}

impl SecondProtocol {
    /// Returns the setup of the lower level, or of the host's address space.
    fn into_setup(
        self,
        platform: &Platform,
    ) -> Result<(Option<LowerLevelSetup>, Option<HostSpace>), StartError> {
        match self {
            SecondProtocol::LowerLevel(source, home) => {
                let lower = platform.lower().map(|platform| LowerLevelSetup {
                    protocol: source.protocol,
                    home,
                    platform,
                });
                Ok((lower, None))
            }
            SecondProtocol::HostMemory(source) => {
                let host = HostSpace::new(source.protocol, platform).map_err(simulation_error)?;
                Ok((None, Some(host)))
            }
        }
    }
}

/// A valid simulation, ready to run.
pub struct Simulation {
    /// Protocol; of two levels, the upper one.
    pub source: Source,
    /// Request that this was made from.
    pub request: Request,
    /// Setup of the simulator.
    pub setup: Setup,
    /// Selection of the timeline's events, if a timeline is recorded.
    pub timeline: Option<Filter>,
}

impl Simulation {
    /// Creates a simulation on a platform on which the settings of the request are [`set`]. `home` is that of the
    /// protocol for the platform's number of remotes. `second` runs on the lower level of caches, or in
    /// the host's memory.
    ///
    /// # Errors
    /// The request is invalid, or the second protocol does not fit the platform.
    pub fn new(
        source: Source,
        home: Controller,
        second: Option<SecondProtocol>,
        platform: Platform,
        request: Request,
    ) -> Result<Simulation, StartError> {
        let (lower, mut host) = match second {
            None => (None, None),
            Some(second) => second.into_setup(&platform)?,
        };
        let (workload, other_workloads) = match &mut host {
            None => workloads(&request, &platform, &source.protocol)?,
            Some(host) => (
                host_and_device_workloads(&request, &platform, &source.protocol, host)?,
                Vec::new(),
            ),
        };
        let setup = Setup {
            home,
            protocol: source.protocol.clone(),
            workload,
            others: other_workloads,
            platform,
            device: DeviceWorkload::default(),
            clocked: None,
            play: None,
            below: lower.map(Box::new),
            host: host.map(Box::new),
            seed: request.seed,
            oracle: match request.oracle {
                true => Level::Versions,
                false => Level::Off,
            },
        };
        reject_unsupported_access(&setup, &request)?;
        // Reject invalid setups before anything runs.
        match (&setup.below, &setup.host) {
            (Some(_), _) => Levels::new(&setup, None).map(|_| ()),
            (_, Some(_)) => Spaces::new(&setup, None).map(|_| ()),
            (None, None) => simulation::Simulation::new(&setup, None).map(|_| ()),
        }
        .map_err(simulation_error)?;
        Ok(Simulation {
            source,
            request,
            setup,
            timeline: None,
        })
    }

    /// Runs the simulation while `should_continue` returns true. The callback is called periodically with the number of
    /// accesses performed so far.
    ///
    /// # Errors
    /// The run was interrupted, or its setup is invalid.
    pub fn run(
        &self,
        should_continue: &mut dyn FnMut(u64) -> bool,
    ) -> Result<RunResult, StartError> {
        let result = match (&self.timeline, self.request.explain) {
            (Some(filter), explain) => {
                draw_while(&self.setup, filter, should_continue).map(|mut result| {
                    result.explanation = result.explanation.filter(|_| explain);
                    result
                })
            }
            (None, true) => explain_while(&self.setup, false, should_continue),
            (None, false) => run_while(&self.setup, should_continue),
        };
        match result {
            Ok(statistics) => Ok(Ok(statistics)),
            Err(RunError::Failure(failure)) => Ok(Err(failure)),
            Err(RunError::Stopped) => Err(StartError::Failure(Failure::new(
                ExitStatus::Interrupted,
                "interrupted",
            ))),
            Err(RunError::Setup(reason)) => Err(simulation_error(reason)),
        }
    }

    /// Upper bound of the memory for the simulated data, in bytes.
    fn max_memory_bytes(&self) -> u64 {
        (self.max_written_bytes() as f64 * MEMORY_PER_WRITTEN_BYTE) as u64
    }

    /// Upper bound of the simulated data written, in bytes.
    fn max_written_bytes(&self) -> u64 {
        let has_writes = |workload: &&Workload| {
            let mut accesses = Access::ALL.iter();
            accesses.any(|&(access, _)| access.writes() && workload.has(access))
        };
        let lines = self.workloads().filter(has_writes);
        let lines = lines.map(|workload| u64::from(workload.lines).min(workload.accesses));
        let line = u64::from(self.setup.protocol.line_bytes);
        lines.fold(0, |sum: u64, lines| {
            sum.saturating_add(lines.saturating_mul(line))
        })
    }

    /// Workloads of all kinds of cores, those on the host's memory included.
    fn workloads(&self) -> impl Iterator<Item = &Workload> {
        let host = self.setup.host.iter().flat_map(|host| &host.workloads);
        std::iter::once(&self.setup.workload)
            .chain(&self.setup.others)
            .chain(host)
    }

    /// Describes the cores and caches of the machine in one line: `64 cores, 8 share each of 8 caches`.
    pub fn describe_machine(&self) -> String {
        let Setup {
            platform, protocol, ..
        } = &self.setup;
        let other_kinds = platform.agents.iter().map(|agents| agents.remotes);
        let caches = std::iter::once(platform.remotes).chain(other_kinds);
        let kinds = protocol.kinds.iter().zip(caches).zip(self.workloads());
        let prefix_kinds = protocol.kinds.len() > 1 && !platform.agents.is_empty();
        let descriptions = kinds.filter(|((_, caches), _)| *caches > 0);
        let descriptions = descriptions.map(|((kind, caches), workload)| {
            let below = platform.below.as_ref().map_or(1, |below| below.remotes);
            let description =
                cores_and_caches(workload.cores, u32::from(caches) * u32::from(below));
            match prefix_kinds {
                true => format!("{}: {description}", kind.name),
                false => description,
            }
        });
        let text = descriptions.collect::<Vec<_>>().join("; ");
        match &platform.below {
            Some(_) => format!("{text}, below {}", counted(platform.remotes, "cache")),
            None => text,
        }
    }

    /// Number of accesses in total, over all kinds of cores that have any; saturating.
    pub fn accesses(&self) -> u64 {
        let workloads = self.workloads().filter(|workload| workload.cores > 0);
        workloads.fold(0, |sum, workload| sum.saturating_add(workload.accesses))
    }

    /// JSON value, described in `docs/output.md`. `seconds` is the wall-clock time of the run, for its
    /// machine-dependent part.
    pub fn json(&self, result: &RunResult, seconds: f64) -> Value {
        let failure = result.as_ref().err().map(|failure| failure_json(failure));
        let statistics = result.as_ref().ok();
        let mut value = json!({
            "protocol": self.setup.protocol.name,
            "platform": self.setup.platform.name,
            "settings": self.request.settings,
            "home": if self.setup.clocked.is_some() { "rtl" } else { "model" },
            "workload": workload_json(&self.setup.workload, &self.request.work),
            "seed": self.setup.seed,
            "oracle": self.setup.oracle != Level::Off,
            "statistics": statistics.map(values_json),
            "quarters": statistics.map(|statistics| json!(statistics.quarters)),
            "messages": statistics.map(messages_json),
            "failure": failure,
            "warnings": warnings(&self.setup),
            "bouncing_lines": statistics.map(|statistics| json!(statistics.bouncing)),
            "run": {
                "file": self.source.path.display().to_string(),
                "seconds": seconds,
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        if !self.setup.others.is_empty() {
            let kinds = self.setup.protocol.kinds.iter().zip(self.workloads());
            let workloads = kinds.map(|(kind, workload)| {
                let kind_work = workloads_by_kind(&self.request.kind_workloads)
                    .find(|(name, _)| *name == kind.name);
                let name = kind_work.map_or(Some(self.request.work.clone()), |(_, name)| name);
                (
                    kind.name.clone(),
                    name.map(|name| workload_json(workload, &name)).into(),
                )
            });
            value["agents"] = workloads.collect::<Map<String, Value>>().into();
        }
        if let Some(statistics) = statistics {
            latency_breakdown::add(&mut value, statistics, &self.setup.protocol);
        }
        if let Some(upper) = statistics.and_then(|statistics| statistics.upper_level.as_deref()) {
            value["upper_level"] = json!({
                "statistics": values_json(upper),
                "messages": messages_json(upper),
            });
        }
        add_host(&mut value, &self.setup, statistics);
        value
    }
}

/// Rejects a workload with an access for which the protocol of the cores' caches has no row.
fn reject_unsupported_access(setup: &Setup, request: &Request) -> Result<(), StartError> {
    let Some(access) = setup.first_unsupported_access() else {
        return Ok(());
    };
    let lower = setup.below.as_ref();
    let protocol = lower.map_or(&setup.protocol, |lower| &lower.protocol);
    let other_works = workloads_by_kind(&request.kind_workloads).filter_map(|(_, work)| work);
    let mut works = std::iter::once(request.work.clone()).chain(other_works);
    let unsupported_work = works.find(|work| work.may_contain(access));
    let unsupported_work = unsupported_work.unwrap_or_else(|| request.work.clone());
    let message = format!(
        "the {} of `{}` has no row for `{}`, which {} needs",
        protocol.remote.name,
        protocol.name,
        access.name(),
        unsupported_work.name()
    );
    Err(StartError::input(
        message,
        "add such rows, or choose another workload",
    ))
}

/// Reasons to doubt that a run shows the intended behaviour, one sentence each.
pub fn warnings(setup: &Setup) -> Vec<String> {
    let Setup {
        protocol, platform, ..
    } = setup;
    let systems = protocol.systems.iter();
    let fewest_remotes = systems.map(|system| system.remotes.total()).min();
    let single_cache_warning = (platform.all_remotes() == 1 && fewest_remotes > Some(1)).then(|| {
        format!(
            "{} has one cache, shared by all cores, but {} is for several caches: the run does not reach rows for copies in other caches",
            platform.name, protocol.name
        )
    });
    let implausible = platform.implausible.iter().cloned();
    single_cache_warning
        .into_iter()
        .chain(implausible)
        .collect()
}

/// Description of cores and caches: `64 cores, 8 share each of 8 caches`.
fn cores_and_caches(cores: u32, caches: u32) -> String {
    let (cores_text, caches_text) = (counted(cores, "core"), counted(caches, "cache"));
    match (cores, caches) {
        (0, _) => format!("{caches_text}, without cores in use"),
        (1, 1) => "1 core and 1 cache".to_string(),
        (_, 1) => format!("{cores_text} share 1 cache"),
        _ if cores == caches => format!("{cores_text}, each with a cache of its own"),
        _ if cores < caches => format!("{cores_text}, one on each of {cores} of {caches_text}"),
        _ if cores.is_multiple_of(caches) => {
            format!(
                "{cores_text}, {} share each of {caches_text}",
                cores / caches
            )
        }
        _ => format!("{cores_text} share {caches_text}"),
    }
}

/// Adds the measurements of the host's memory, if it has its own address space.
pub(crate) fn add_host(value: &mut Value, setup: &Setup, statistics: Option<&Statistics>) {
    let host = statistics.and_then(|statistics| statistics.host.as_deref());
    let (Some(host), Some(space)) = (host, &setup.host) else {
        return;
    };
    value["host"] = json!({
        "statistics": values_json(host),
        "messages": messages_json(host),
    });
    latency_breakdown::add(&mut value["host"], host, &space.protocol);
}

/// Workload of one kind of cores as JSON; `work` is the request's name for it.
fn workload_json(workload: &Workload, work: &Work) -> Value {
    json!({
        "name": work.name(),
        "region_lines": workload.lines,
        "accesses": workload.accesses,
        "cores": workload.cores,
        "partitioned": workload.pattern == Pattern::Chunked,
        "outstanding": workload.outstanding,
        "prefetch": workload.prefetch,
    })
}

/// Statistics as JSON, value by name.
fn values_json(statistics: &Statistics) -> Map<String, Value> {
    let values = statistics.values.iter();
    let values = values.map(|(definition, value)| (definition.name.to_string(), json!(value)));
    values.collect()
}

/// Number of messages as JSON, by name of the message.
fn messages_json(statistics: &Statistics) -> Map<String, Value> {
    let messages = statistics.messages.iter();
    let messages = messages.map(|(name, count)| (name.clone(), json!(count)));
    messages.collect()
}

/// Error for a simulation that the machine or the protocol does not support.
fn simulation_error(reason: String) -> StartError {
    StartError::plain(format!("cannot simulate: {reason}"))
}

/// Workloads by kind of agents, `None` for idle ones. Entries without `=` are skipped.
fn workloads_by_kind(kind_workloads: &[String]) -> impl Iterator<Item = (&str, Option<Work>)> {
    let entries = kind_workloads
        .iter()
        .filter_map(|entry| entry.split_once('='));
    entries.map(|(kind, work)| (kind.trim(), Work::named(work.trim()).ok()))
}

/// Workloads of the first kind of cores, and of all other kinds that the machine distinguishes.
fn workloads(
    request: &Request,
    platform: &Platform,
    protocol: &Protocol,
) -> Result<(Workload, Vec<Workload>), StartError> {
    let remotes = platform.kinds(protocol).map_err(simulation_error)?;
    let kinds: Vec<&str> = kinds_of(protocol, remotes.kinds()).collect();
    check_workloads_by_kind(request, &kinds)?;
    let (first_workload, other_workloads) =
        workloads_of_kinds(request, platform, protocol, remotes.kinds())?;
    reject_idle_machine(std::iter::once(&first_workload).chain(&other_workloads))?;
    Ok((first_workload, other_workloads))
}

/// Names of the first `kinds` kinds of a protocol.
fn kinds_of(protocol: &Protocol, kinds: usize) -> impl Iterator<Item = &str> {
    protocol.kinds[..kinds]
        .iter()
        .map(|kind| kind.name.as_str())
}

/// Returns the workload of the host's cores on the device's lines. Sets the workloads of these cores and of the device
/// on the host's memory.
///
/// The host's cores are idle on the host's memory unless the request names them: they are the same cores, busy with the
/// device's lines.
fn host_and_device_workloads(
    request: &Request,
    platform: &Platform,
    protocol: &Protocol,
    host: &mut HostSpace,
) -> Result<Workload, StartError> {
    let host_kinds = host
        .platform
        .kinds(&host.protocol)
        .map_err(simulation_error)?
        .kinds();
    let names = kinds_of(protocol, 1).chain(kinds_of(&host.protocol, host_kinds));
    check_workloads_by_kind(request, &names.collect::<Vec<_>>())?;
    let (first_workload, _) = workloads_of_kinds(request, platform, protocol, 1)?;
    let mut idle = request.clone();
    let host_kind = host.protocol.kinds[0].name.clone();
    if workloads_by_kind(&request.kind_workloads).all(|(kind, _)| kind != host_kind) {
        idle.kind_workloads.push(format!("{host_kind}={IDLE}"));
    }
    // Options for cores apply to their accesses to the device's lines.
    (idle.cores, idle.outstanding, idle.prefetch) = (None, None, None);
    let (cpu_workload, other_workloads) =
        workloads_of_kinds(&idle, &host.platform, &host.protocol, host_kinds)?;
    let device = other_workloads
        .into_iter()
        .next()
        .unwrap_or(Workload::idle());
    reject_idle_machine([&first_workload, &cpu_workload, &device])?;
    host.workloads = [cpu_workload, device];
    Ok(first_workload)
}

/// Rejects workloads for agents that the machine does not have.
fn check_workloads_by_kind(request: &Request, kinds: &[&str]) -> Result<(), StartError> {
    for entry in &request.kind_workloads {
        let Some((kind_name, workload_name)) = entry.split_once('=') else {
            let reason = format!("`--kind-workload {entry}` has no `=`");
            return Err(StartError::input(
                reason,
                "write it like `device=random-write`",
            ));
        };
        if kinds.iter().all(|kind| *kind != kind_name.trim()) {
            let reason = format!("the machine has no caching agents `{}`", kind_name.trim());
            let help = format!(
                "there are {}; `--set agents.KIND.remotes=N` gives it more kinds",
                kinds.join(", ")
            );
            return Err(StartError::input(reason, help));
        }
        if workload_name.trim() != IDLE {
            Work::named(workload_name.trim())?;
        }
    }
    Ok(())
}

/// Rejects a machine in which all cores are idle.
fn reject_idle_machine<'w>(
    workloads: impl IntoIterator<Item = &'w Workload>,
) -> Result<(), StartError> {
    if workloads.into_iter().all(|workload| workload.cores == 0) {
        return Err(StartError::input(
            "all agents are idle",
            "remove one `idle`",
        ));
    }
    Ok(())
}

/// Workloads of the cores of the first `kinds` kinds.
fn workloads_of_kinds(
    request: &Request,
    platform: &Platform,
    protocol: &Protocol,
    kinds: usize,
) -> Result<(Workload, Vec<Workload>), StartError> {
    let kinds = &protocol.kinds[..kinds];
    let work_of_kind = |kind_name: &str| match workloads_by_kind(&request.kind_workloads)
        .find(|(name, _)| *name == kind_name)
    {
        Some((_, work)) => work,
        None => Some(request.work.clone()),
    };
    let first_kind_workload = |work| {
        workload(
            request,
            work,
            &platform.cores,
            platform,
            protocol.line_bytes,
        )
    };
    let idle = Workload::idle;
    let first_workload = work_of_kind(&kinds[0].name).map_or(Ok(idle()), first_kind_workload)?;
    // Options for cores apply to those of the first kind.
    let other_request = Request {
        cores: None,
        outstanding: None,
        prefetch: None,
        ..request.clone()
    };
    let other_workloads = kinds[1..].iter().map(|kind| {
        let agents = platform
            .agents
            .iter()
            .find(|agents| agents.kind == kind.name);
        match (work_of_kind(&kind.name), agents) {
            (Some(work), Some(agents)) if agents.remotes > 0 => workload(
                &other_request,
                work,
                &agents.cores,
                platform,
                protocol.line_bytes,
            ),
            _ => Ok(idle()),
        }
    });
    let other_workloads: Vec<Workload> = other_workloads.collect::<Result<_, _>>()?;
    Ok((first_workload, other_workloads))
}

/// Workload of cores, with the platform's quantities as defaults.
fn workload(
    request: &Request,
    work: Work,
    machine: &Cores,
    platform: &Platform,
    line_bytes: u32,
) -> Result<Workload, StartError> {
    let kind = match work {
        Work::Kind(kind) => kind,
        Work::Trace(trace) => {
            return recorded_workload(request, &trace, machine, platform, line_bytes)
        }
    };
    let (pattern, access) = kind.pattern_and_access();
    let name = kind.name();
    let lines = region_lines(request, platform, line_bytes)?;
    if access != Access::Load && request.prefetch.is_some_and(|ahead| ahead > 0) {
        let reason = format!("`--prefetch` does not apply to {name}");
        return Err(StartError::input(reason, "only reads are prefetched"));
    }
    // All counts are at most 4096.
    let value_or =
        |option: Option<u32>, quantity: &Quantity| option.unwrap_or(quantity.value as u32);
    let pattern = match pattern {
        Pattern::Chunked if machine.partitioned.value == 0 => Pattern::Sequential,
        pattern => pattern,
    };
    let cores = value_or(request.cores, &machine.count);
    let outstanding = value_or(request.outstanding, &machine.max_outstanding);
    let mut workload = Workload::pass(pattern, access, lines, cores, outstanding);
    workload.accesses = request.accesses.unwrap_or(u64::from(lines));
    if kind == Kind::RandomMixed {
        workload.mix.push((Access::Load, 1));
    }
    if access == Access::Load {
        workload.prefetch = value_or(request.prefetch, &machine.prefetch_distance);
    }
    Ok(workload)
}

/// Number of lines of the region that the request names, at most that of the platform.
fn region_lines(
    request: &Request,
    platform: &Platform,
    line_bytes: u32,
) -> Result<u32, StartError> {
    let region_text = request.region.as_deref().unwrap_or(REGION);
    let region = units::parse(region_text, Unit::Bytes)
        .map_err(|reason| StartError::plain(format!("the region `{region_text}` {reason}")))?;
    let line_size = u64::from(line_bytes);
    let memory = u64::from(platform.lines) * line_size;
    if region == 0 || region % line_size != 0 {
        let reason = format!("a region of {region_text} is not a whole number of lines");
        return Err(StartError::input(
            reason,
            format!("a line has {line_size} bytes"),
        ));
    }
    if region > memory {
        let reason = format!(
            "a region of {region_text} is larger than the memory of {}, {}",
            platform.name,
            units::show(memory, Unit::Bytes)
        );
        return Err(StartError::input(
            reason,
            "choose a smaller region, or raise `lines` of the platform",
        ));
    }
    Ok(u32::try_from(region / line_size).unwrap_or(platform.lines))
}

/// Workload that replays a trace: each core issues the accesses recorded for it.
fn recorded_workload(
    request: &Request,
    trace: &Trace,
    machine: &Cores,
    platform: &Platform,
    line_bytes: u32,
) -> Result<Workload, StartError> {
    if let Some(region) = &request.region {
        let message = format!(
            "`--region {region}` cannot be combined with the workload {}",
            trace.name
        );
        return Err(StartError::input(
            message,
            "`--region` does not apply to a trace, which lists its own addresses; remove the option",
        ));
    }
    let max_accesses = request.accesses.unwrap_or(u64::MAX);
    let recorded = trace.read(line_bytes, platform.lines, max_accesses)?;
    if let Some(cores) = request.cores.filter(|&cores| cores < recorded.cores()) {
        let message = format!(
            "{} has accesses of {}, and there are {cores}",
            trace.name,
            counted(recorded.cores(), "core")
        );
        return Err(StartError::input(
            message,
            "remove `--cores`, or raise it: a trace sets its number of cores",
        ));
    }
    let outstanding = (request.outstanding).unwrap_or(machine.max_outstanding.value as u32);
    let mut workload = Workload::recorded(recorded, request.cores.unwrap_or(1), outstanding);
    // A trace is replayed without further prefetches, unless the request asks for them.
    workload.prefetch = request.prefetch.unwrap_or(0);
    Ok(workload)
}

/// Number of simulations that may run concurrently: at most `threads`, at most the number of processors, and as many as
/// fit into memory in any selection.
///
/// # Errors
/// A single simulation does not fit into memory.
pub fn max_concurrent_runs(
    simulations: &[&Simulation],
    threads: Option<usize>,
) -> Result<usize, StartError> {
    let max_threads = concurrent_runs::threads(threads);
    let mut memory_needs: Vec<u64> = simulations
        .iter()
        .map(|simulation| simulation.max_memory_bytes())
        .collect();
    memory_needs.sort_unstable_by(|left, right| right.cmp(left));
    let free = size::free_memory().unwrap_or(u64::MAX);
    let mut available = Some(free);
    let fitting_count = memory_needs.iter().take_while(|need| {
        available = available.and_then(|available| available.checked_sub(**need));
        available.is_some()
    });
    let fitting_count = fitting_count.count();
    if fitting_count == 0 && !memory_needs.is_empty() {
        let max_written = simulations
            .iter()
            .map(|simulation| simulation.max_written_bytes())
            .max();
        let size_text = units::show(max_written.unwrap_or(0), Unit::Bytes);
        return Err(StartError::Failure(Failure::new(
            ExitStatus::CouldNotRun,
            format!("error: the data written, {size_text}, does not fit into the free memory of this machine\n  help: choose a smaller region, or fewer accesses"),
        )));
    }
    Ok(max_threads.min(fitting_count.max(1)))
}

/// Runs simulations concurrently, and returns their values in their order; the values do not depend on the number of
/// threads. `performed` counts the accesses of all runs; each run checks `cancel` every 65,536 events.
///
/// # Errors
/// The runs were interrupted, or do not fit into memory.
pub fn run_all(
    simulations: &[&Simulation],
    threads: Option<usize>,
    cancel: &AtomicBool,
    performed: &AtomicU64,
) -> Result<Vec<Value>, StartError> {
    let threads = max_concurrent_runs(simulations, threads)?;
    run_each(simulations, threads, |simulation| {
        let start = Instant::now();
        let mut counted = 0;
        let result = simulation.run(&mut |performed_now| {
            // A run that failed is repeated, and counts its accesses from zero again.
            performed.fetch_add(performed_now.saturating_sub(counted), Ordering::Relaxed);
            counted = counted.max(performed_now);
            !cancel.load(Ordering::Relaxed)
        })?;
        let total = simulation.accesses();
        performed.fetch_add(total.saturating_sub(counted), Ordering::Relaxed);
        Ok(simulation.json(&result, start.elapsed().as_secs_f64()))
    })
}

/// Failure of a run as JSON.
pub(crate) fn failure_json(failure: &explain::Failure) -> Value {
    json!({
        "kind": failure.kind.to_string(),
        "message": failure.text,
        "line": failure.line,
        "time_ps": failure.time,
        "wait_for": failure.wait_for,
        "sequence": cohkit_chart::json(&failure.sequence),
    })
}

//! Configuration of a run, and its validation.

use super::*;
use cohkit_protocol::controller::Event as Cause;
use cohkit_protocol::protocol::Home;

use cohkit_protocol::construct::construction_cache::constructed;
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::pending_access::Accesses;
use cohkit_protocol::remotes::KindId;

/// Factory of clocked homes after reset; returns the reason if none can be created.
pub type ClockedHomeFactory = Arc<dyn Fn() -> Result<Box<dyn ClockedHome>, String> + Send + Sync>;

/// Complete configuration of a run.
#[derive(Clone)]
pub struct Setup {
    /// The protocol; the caches execute its remote controller.
    pub protocol: Protocol,
    /// The home's controller.
    pub home: Controller,
    /// The machine.
    pub platform: Platform,
    /// Workload of the cores of the first kind. With `play`, only its number of cores matters.
    pub workload: Workload,
    /// Workloads of the cores of the further kinds, in order; kinds without one are idle.
    pub others: Vec<Workload>,
    /// Workload of the device behind the home.
    pub device: DeviceWorkload,
    /// Factory of a clocked home, which replaces the platform's units.
    pub clocked: Option<ClockedHomeFactory>,
    /// An application and threads, which replace the accesses of `workload`, and `device`.
    pub play: Option<Play>,
    /// Lower level of caches, one for each cache, if there are two levels. Cores are then in front of the lower caches.
    pub below: Option<Box<LowerLevelSetup>>,
    /// The host's memory, if it is a separate space besides the device's lines.
    pub host: Option<Box<HostSpace>>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Checks performed during the run.
    pub oracle: Level,
}

/// Workload of cores without one.
static IDLE: Workload = Workload::idle();

/// The lower of two levels of caches. Each cache of the upper level has its own.
#[derive(Clone)]
pub struct LowerLevelSetup {
    /// Protocol of the lower caches.
    pub protocol: Protocol,
    /// Controller of the home in front of each cache of the upper level.
    pub home: Controller,
    /// The machine between cores and upper level.
    pub platform: Platform,
}

/// The space of the host's memory, whose lines both host and device cache.
#[derive(Clone)]
pub struct HostSpace {
    /// The protocol: the host's caches are its first kind of remotes, the device's the second.
    pub protocol: Protocol,
    /// Controller of its home.
    pub home: Controller,
    /// Its machine, [as part of a platform with both spaces](Platform::host).
    pub platform: Platform,
    /// Workloads of the host's and of the device's cores in this space, in the order of the kinds.
    pub workloads: [Workload; 2],
}

impl Setup {
    /// Creates a setup with the protocol's own home, or the one constructed from its policy. Its seed is 0, versions
    /// are checked, and the device is idle.
    ///
    /// # Errors
    /// A sentence, if no home can be constructed.
    pub fn new(
        protocol: Protocol,
        platform: Platform,
        workload: Workload,
    ) -> Result<Setup, String> {
        let home = home(&protocol, platform.all_remotes() as u16).map_err(sentence)?;
        Ok(Setup {
            protocol,
            home,
            platform,
            workload,
            others: Vec::new(),
            device: DeviceWorkload::default(),
            clocked: None,
            play: None,
            below: None,
            host: None,
            seed: 0,
            oracle: Level::Versions,
        })
    }
}

/// Reason for which a scenario cannot run with a protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum NoScenario {
    /// The home of the protocol with this name is hand-written.
    Written(String),
    /// No home can be constructed.
    Home(ConstructionError),
    /// The protocol with this name has only one kind of caching agents: a device has no caches for its engines.
    NoDevice(String),
}

impl std::fmt::Display for NoScenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoScenario::Written(name) => write!(
                f,
                "the home of `{name}` is hand-written; this application observes the CPU's permissions, so it needs a home constructed from a policy"
            ),
            NoScenario::Home(error) => f.write_str(&sentence(error.clone())),
            NoScenario::NoDevice(name) => write!(
                f,
                "engines of a device need caches, but in `{name}` only the CPU has caches"
            ),
        }
    }
}

impl std::error::Error for NoScenario {}

impl Setup {
    /// Iterates over the workloads of all possible kinds; those beyond the given ones are idle.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Workload> {
        std::iter::once(&self.workload)
            .chain(&self.others)
            .chain(std::iter::repeat(&IDLE))
    }

    /// Creates a setup in which a scenario replaces workload and device, without an end time and without warm-up.
    ///
    /// # Errors
    /// The scenario's application observes permissions, and the home is hand-written and thus does not track them. Or
    /// no home can be constructed, or only one with a fault. Or the scenario has engines, and no device of the protocol
    /// has caches.
    pub fn with_scenario(
        protocol: Protocol,
        platform: Platform,
        scenario: Arc<dyn Playable>,
    ) -> Result<Setup, NoScenario> {
        if scenario.engines() > 0 && protocol.kinds.len() < 2 {
            return Err(NoScenario::NoDevice(protocol.name));
        }
        if scenario.threads_only() {
            let home = home(&protocol, platform.all_remotes() as u16).map_err(NoScenario::Home)?;
            return Ok(Setup::with_threads(protocol, home, platform, scenario));
        }
        if let Home::Controller(home) = &protocol.home {
            if scenario.observes_changes() {
                return Err(NoScenario::Written(protocol.name));
            }
            let home = home.clone();
            return Ok(Setup::with_threads(protocol, home, platform, scenario));
        }
        let remotes = platform.all_remotes() as u16;
        let constructed = constructed(&protocol, remotes).map_err(NoScenario::Home)?;
        let (home, permissions) = (*constructed).clone();
        Ok(Setup::from_parts(
            protocol,
            home,
            platform,
            scenario,
            Some(permissions),
        ))
    }

    /// Creates a setup in which threads replace the workload. Their scenario's application observes no changes, so any
    /// home of the protocol serves.
    pub fn with_threads(
        protocol: Protocol,
        home: Controller,
        platform: Platform,
        scenario: Arc<dyn Playable>,
    ) -> Setup {
        Setup::from_parts(protocol, home, platform, scenario, None)
    }

    /// Creates a setup in which the threads of a scenario replace the workload. The seed is 0, versions are
    /// checked, and nothing limits the run. Engines run on cores of the second kind.
    fn from_parts(
        protocol: Protocol,
        home: Controller,
        platform: Platform,
        scenario: Arc<dyn Playable>,
        permissions: Option<KnownPermissions>,
    ) -> Setup {
        // These cores have the components that loads and stores need.
        let workload_of = |cores: u32| {
            let mut workload = Workload::pass(Pattern::Sequential, Access::Load, 1, cores, 1);
            workload.mix.push((Access::Store, 1));
            workload
        };
        let engines = scenario.engines();
        let threads = scenario.begin().threads() as u32 - engines;
        let (workload, others) = match engines {
            0 => (workload_of(threads.max(1)), Vec::new()),
            engines => (workload_of(threads), vec![workload_of(engines)]),
        };
        Setup {
            home,
            platform,
            workload,
            others,
            device: DeviceWorkload::default(),
            clocked: None,
            play: Some(Play {
                scenario,
                permissions,
                until: None,
                warm_up: 0,
                tables: false,
            }),
            below: None,
            host: None,
            seed: 0,
            oracle: Level::Versions,
            protocol,
        }
    }

    /// Returns the first kind of access in the workload for which the caching agent has no row in any state.
    pub fn first_unsupported_access(&self) -> Option<Access> {
        let protocol = self
            .below
            .as_ref()
            .map_or(&self.protocol, |below| &below.protocol);
        let find_missing = |protocol: &Protocol, workloads: &[&Workload]| {
            let has_row = |access| {
                let mut rules = protocol.remote.rules.iter();
                rules.any(|rule| rule.event == Cause::Access(access))
            };
            let is_requested = |access| {
                let mut workloads = workloads.iter();
                workloads.any(|workload| workload.cores > 0 && workload.has(access))
            };
            let mut accesses = Access::ALL.iter().map(|&(access, _)| access);
            accesses.find(|&access| is_requested(access) && !has_row(access))
        };
        let own_workloads: Vec<&Workload> = std::iter::once(&self.workload)
            .chain(&self.others)
            .collect();
        find_missing(protocol, &own_workloads).or_else(|| {
            let host = self.host.as_ref()?;
            find_missing(&host.protocol, &host.workloads.each_ref())
        })
    }
}

/// Describes an error of the construction of a home in a sentence.
pub(crate) fn sentence(error: ConstructionError) -> String {
    match error {
        ConstructionError::Refused(refusal) => refusal.obstacle,
        ConstructionError::Fault(fault) => format!("{}: {}", fault.kind.name(), fault.text),
    }
}

/// Rejects a value outside `low..=high`, in a sentence that begins with `name`.
fn check_range(name: &str, value: u64, low: u64, high: u64) -> Result<(), String> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(format!("{name} must be {low} to {high}, not {value}")),
    }
}

/// Checks a workload of cores in front of `remotes` caching agents. `lines` is the number of lines of memory.
fn check_workload(workload: &Workload, remotes: u16, lines: Line) -> Result<(), String> {
    if workload.cores == 0 {
        return Ok(());
    }
    let region = workload.lines.into();
    check_range("lines of the region", region, 1, lines.into())?;
    check_range(
        "cores",
        workload.cores.into(),
        1,
        Platform::MAX_AGENTS.into(),
    )?;
    if remotes == 0 {
        return Err(
            "cores are given for a kind of caching agents that the machine does not have".into(),
        );
    }
    check_range("outstanding accesses", workload.outstanding.into(), 1, 4096)?;
    if !Access::ALL.iter().any(|&(access, _)| workload.has(access)) {
        return Err("a workload needs at least one access with a weight".into());
    }
    Ok(())
}

/// Checks the setup of a protocol whose lines are not independent. `coupling` describes the state that lines share.
fn check_joined(setup: &Setup, coupling: &str) -> Result<(), String> {
    let (name, machine) = (&setup.protocol.name, &setup.platform.name);
    let (homes, machine_homes) = (setup.protocol.homes, setup.platform.homes());
    if u64::from(homes) != machine_homes {
        return Err(format!(
            "{name} has {coupling} and is of {homes} homes, and {machine} has {machine_homes}: set `home.count`"
        ));
    }
    let unsupported = match (&setup.clocked, &setup.play, &setup.below) {
        (Some(_), ..) => Some("a home in hardware"),
        (_, Some(play), _) if !play.scenario.threads_only() => Some("a device application"),
        (_, _, Some(_)) => Some("two levels of caches"),
        _ => None,
    };
    if let Some(unsupported) = unsupported {
        return Err(format!(
            "{name} has {coupling}; with {unsupported} that is not simulated yet"
        ));
    }
    // An order between accesses holds only if cores make one access after the other.
    // An L1 changes none: it loses a line together with its cache.
    let is_plain = |cores: &platform::Cores| cores.write_buffer.value == 0;
    let platform = &setup.platform;
    let all_plain =
        is_plain(&platform.cores) && platform.agents.iter().all(|agents| is_plain(&agents.cores));
    let mut workloads = std::iter::once(&setup.workload).chain(&setup.others);
    if !all_plain
        || workloads.any(|workload| {
            workload.outstanding > 1 || workload.prefetch > 0 || workload.write_prefetches > 0
        })
    {
        return Err(format!(
            "{name} has {coupling}; it supports only cores with one outstanding access, no prefetches, and `cores.write_buffer` of 0B"
        ));
    }
    Ok(())
}

/// Rejects write buffers in front of caches that post stores. The contents of a buffer reach memory when the home
/// performs the store, and by then the core no longer has them.
fn check_posted(setup: &Setup) -> Result<(), String> {
    let Protocol {
        remote, messages, ..
    } = &setup.protocol;
    let accesses = Accesses::new(remote, messages);
    let mut stores = (remote.rules.iter()).filter(|row| row.event == Cause::Access(Access::Store));
    let platform = &setup.platform;
    let other_cores = platform.agents.iter().map(|agents| &agents.cores);
    let mut cores = std::iter::once(&platform.cores).chain(other_cores);
    if cores.any(|cores| cores.write_buffer.value > 0)
        && stores.any(|row| accesses.posts(remote, row))
    {
        return Err(format!(
            "the caches of {} post stores, which complete when they are sent; write buffers are not simulated with them (set `cores.write_buffer` to 0B)",
            setup.protocol.name
        ));
    }
    Ok(())
}

/// Rejects virtual addresses in configurations that do not support them.
fn check_translations(setup: &Setup) -> Result<(), String> {
    let platform = &setup.platform;
    let other_kinds = platform
        .agents
        .iter()
        .map(|agents| (&agents.cache, &agents.cores));
    let mut kinds = std::iter::once((&platform.cache, &platform.cores)).chain(other_kinds);
    let is_translated = |cache: &platform::Cache| {
        (cache.translation.as_ref()).is_some_and(|translation| translation.enabled.value == 1)
    };
    let Some((_, cores)) = kinds.find(|(cache, _)| is_translated(cache)) else {
        return Ok(());
    };
    let (feature, reason) = match setup {
        Setup { below: Some(_), .. } => (
            "two levels of caches",
            "page invalidations would have to reach the caches of both levels",
        ),
        Setup {
            clocked: Some(_), ..
        } => (
            "a home in hardware",
            "page walks read tables from memory, which the hardware owns",
        ),
        _ if cores.write_buffer.value > 0 => (
            "write buffers",
            "a buffered store could fault after its core has continued (set `cores.write_buffer` to 0B)",
        ),
        _ if cores.l1_size.value > 0 => (
            "L1s",
            "translation happens between L1 and cache (set `cores.l1_size` to 0B)",
        ),
        _ => return Ok(()),
    };
    let machine = &platform.name;
    Err(format!(
        "{machine} translates addresses (`translation.enabled`); with {feature} that is not simulated: {reason}"
    ))
}

/// Rejects platforms and protocols that do not agree on the number of spaces, and scenarios without the space they
/// need.
fn check_spaces(setup: &Setup) -> Result<(), String> {
    let (machine, protocol) = (&setup.platform.name, &setup.protocol.name);
    match (&setup.platform.host, &setup.host) {
        (Some(_), None) => Err(format!(
            "{machine} has a second address space for the host's memory, but `{protocol}` does not specify it: use a specification that composes both directions"
        )),
        (None, Some(_)) => Err(format!(
            "`{protocol}` has two address spaces, but {machine} has one: join two machines, as in `enzian-dc-ddr+enzian-cpu-home`"
        )),
        (None, None) => match &setup.play {
            Some(play) if play.scenario.host_words() > 0 => Err(format!(
                "{} accesses the host's memory coherently, which is not an address space of {machine} with `{protocol}`: `enzian-dc-ddr+enzian-cpu-home` with a specification that composes both directions has one",
                play.scenario.begin().application().name()
            )),
            _ => Ok(()),
        },
        (Some(_), Some(_)) => Ok(()),
    }
}

/// Rejects several homes, or several remotes, where the setup supports only one.
fn check_single_home(setup: &Setup) -> Result<(), String> {
    let platform = &setup.platform;
    let single_home_feature = match (&setup.clocked, &setup.play) {
        (Some(_), _) => Some("a home in hardware"),
        (_, Some(play)) if !play.scenario.threads_only() => Some("a device application"),
        _ => None,
    };
    if let (Some(feature), homes @ 2..) = (single_home_feature, platform.homes()) {
        return Err(format!(
            "{feature} needs a machine with one home, not {homes}"
        ));
    }
    if setup.clocked.is_some() && platform.all_remotes() != 1 {
        let remotes = platform.all_remotes();
        return Err(format!(
            "a home in hardware serves one remote, not {remotes}"
        ));
    }
    Ok(())
}

/// Validates a setup with one level of caches.
///
/// # Errors
/// A sentence about the first part that is inconsistent or not supported.
pub(super) fn check(setup: &Setup) -> Result<(), String> {
    let platform = &setup.platform;
    if let Some(coupling) = setup.protocol.joins_lines() {
        check_joined(setup, coupling)?;
    }
    check_posted(setup)?;
    let device = (setup.play.as_ref()).is_some_and(|play| !play.scenario.threads_only());
    if device && !setup.protocol.guarantee.coherent {
        return Err(format!(
            "{} has `guarantee none`, but a device application relies on single writer and data value",
            setup.protocol.name
        ));
    }
    check_translations(setup)?;
    let other_links = platform.agents.iter().map(|agents| &agents.link);
    let mut links = std::iter::once(&platform.link).chain(other_links);
    if platform.hosts.is_some() && links.any(|link| link.layer.is_some()) {
        return Err(format!(
            "{} has hosts with meshes, whose links are shared pipes: set `link.layer` to none",
            platform.name
        ));
    }
    if platform.below.is_some() {
        let clause = "has two levels of caches, but";
        let (machine, text) = (&platform.name, &setup.protocol.name);
        return Err(format!("{machine} {clause} `{text}` specifies one"));
    }
    check_range(
        "remotes",
        platform.remotes.into(),
        1,
        Platform::MAX_AGENTS.into(),
    )?;
    let remotes = platform.kinds(&setup.protocol)?;
    let kinds = (0..remotes.kinds() as u8).map(|kind| remotes.count(KindId(kind)));
    if setup.others.is_empty() && setup.host.is_none() {
        let max_cores = Platform::MAX_AGENTS.into();
        check_range("cores", setup.workload.cores.into(), 1, max_cores)?;
    }
    for (remote_count, workload) in kinds.zip(setup.workloads()) {
        check_workload(workload, remote_count, platform.lines)?;
    }
    check_spaces(setup)?;
    check_single_home(setup)?;
    platform.check()?;
    check_range(
        "lines of memory",
        platform.lines.into(),
        1,
        Platform::MAX_LINES,
    )?;
    let line_bytes = setup.protocol.line_bytes;
    platform.cores.check("", line_bytes)?;
    for agents in &platform.agents {
        let kind = format!("agents.{}.", agents.kind);
        agents.cores.check(&kind, line_bytes)?;
    }
    check_memory(platform, line_bytes)
}

/// Rejects a memory that does not fit lines of this size, and aliasing of lines between several homes.
fn check_memory(platform: &Platform, line_bytes: u32) -> Result<(), String> {
    let row_bytes = match &platform.memory {
        Memory::Dram(dram) => Some(dram.row_bytes.value),
        Memory::Jedec(dram) => Some(dram.row_bytes.value),
        Memory::Bram(_) => None,
    };
    if let Some(row) = row_bytes.filter(|&row| row < line_bytes.into()) {
        return Err(format!(
            "dram.row_bytes must be at least a line of {line_bytes}B, not {row}B"
        ));
    }
    if let Memory::Jedec(dram) = &platform.memory {
        let (line, burst) = (u64::from(line_bytes), dram.burst_bytes.value);
        if burst > line {
            return Err(format!(
                "dram.burst_bytes must be at most a line of {line}B, not {burst}B"
            ));
        }
        let channels = dram.channels.value;
        if dram.channel_hash.value != 0 && !channels.is_power_of_two() {
            return Err(format!(
                "dram.channels must be a power of two with dram.channel_hash, not {channels}"
            ));
        }
    }
    let homes = platform.homes();
    if platform.aliases_lines() && homes > 1 {
        return Err(format!(
            "home.address_aliasing applies to machines with one home, not {homes}"
        ));
    }
    Ok(())
}

//! Machines as values: every quantity has a name, a unit, a plausible range and an origin.
//!
//! A [`Platform`] is plain data, so any front end can fill or override it. One [`table`] lists every quantity by name.
//! [`text`] reads platforms from TOML. The platforms that ship with the simulator are such files, too.

mod shipped;
mod table;
pub mod text;
mod translation;

use crate::kernel::{NANOSECOND, SECOND};
use cohkit_base::words::did_you_mean;
use cohkit_platform::{former_name_warning, LOWER};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_units::{self as units, Quantity, Unit};
use std::borrow::Cow;

pub use cohkit_dram::{Bram, Dram, JedecDram, JedecTiming, Memory, Scheduler, Standard};
pub use cohkit_platform::{current_name, FORMER_NAMES};
pub use table::{Row, TABLE};
pub use translation::Translation;

/// Prefix of quantities of the host's memory, where it is a space of its own.
const HOST: &str = "host.";

/// Prefix of further kinds of caching agents and of their quantities.
const AGENTS: &str = "agents.";

/// True if a quantity belongs to the whole machine, not to one of two levels.
fn is_machine_wide(name: &str) -> bool {
    name.starts_with("cores.") || matches!(name, "watchdog_timeout" | "lines")
}

/// True if a quantity in the host's space belongs to the whole machine: links of the device, progress timeout, and bus.
fn is_machine_wide_in_host(name: &str) -> bool {
    let agents_name = name
        .strip_prefix(AGENTS)
        .and_then(|name| name.split_once('.'));
    let is_link = agents_name.is_some_and(|(_, name)| name.starts_with("link."));
    is_link || name == "watchdog_timeout" || name.starts_with("bus.")
}

/// Cores of a benchmark, with one thread each.
///
/// A [`Workload`](crate::components::traffic::Workload) has its own values. Front ends use these as defaults.
#[derive(Clone, Debug)]
pub struct Cores {
    /// Number of cores in use, spread over the caches.
    pub count: Quantity,
    /// 1: each core accesses a contiguous part of the region. 0: all cores take turns.
    pub partitioned: Quantity,
    /// Maximum number of outstanding accesses of one core, without prefetches.
    pub max_outstanding: Quantity,
    /// Prefetch distance: number of accesses by which the prefetch of a line precedes its read; 0 for no prefetches.
    pub prefetch_distance: Quantity,
    /// Delay from the completion of an access at its core to the issue of the next, in picoseconds.
    pub compute_time: Quantity,
    /// Size of a core's write buffer, whole lines, in bytes; 0 for none, so that a core waits for its stores.
    pub write_buffer: Quantity,
    /// Size of a core's own cache, which writes through, in bytes; 0 for none.
    pub l1_size: Quantity,
    /// Associativity of that cache, 1 to 16 ways.
    pub l1_ways: Quantity,
    /// Latency of a load that hits in the L1 or the write buffer, in picoseconds.
    pub l1_hit_latency: Quantity,
    /// Time that a core waits for an access before the run fails, in picoseconds.
    pub timeout: Quantity,
    /// Minimum interval between two accesses that leave a core, in picoseconds; 0 if not given.
    pub issue_interval: Option<Quantity>,
    /// Maximum number of outstanding posted stores of a thread. If not given, a thread waits for each store.
    pub max_posted_stores: Option<Quantity>,
}

impl Cores {
    /// Number of sets of a core's L1 for lines of this size; 0 without an L1.
    pub(crate) fn l1_sets(&self, line_bytes: u32) -> u64 {
        self.l1_size.value / (self.l1_ways.value.max(1) * u64::from(line_bytes))
    }

    /// Rejects sizes that do not fit lines of this size. `kind` precedes the names of quantities in errors.
    pub(crate) fn check(&self, kind: &str, line_bytes: u32) -> Result<(), String> {
        let line = u64::from(line_bytes);
        let size = |value| units::show(value, Unit::Bytes);
        if !self.write_buffer.value.is_multiple_of(line) {
            let (line, value) = (size(line), size(self.write_buffer.value));
            return Err(format!(
                "{kind}cores.write_buffer must be a multiple of a line of {line}, not {value}"
            ));
        }
        let sets = self.l1_sets(line_bytes);
        let is_whole_sets = sets * self.l1_ways.value * line == self.l1_size.value;
        if self.l1_size.value > 0 && !(is_whole_sets && sets.is_power_of_two()) {
            let (set, value) = (size(self.l1_ways.value * line), size(self.l1_size.value));
            return Err(format!(
                "{kind}cores.l1_size must be 0B or a power of two times {set}, not {value}"
            ));
        }
        Ok(())
    }
}

/// A shared cache, and its connection to its cores.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Number of sets, a power of two.
    pub sets: Quantity,
    /// Associativity, 1 to 16 ways.
    pub ways: Quantity,
    /// 1 if upper address bits are folded into the set number, 0 if not.
    pub index_hash: Quantity,
    /// Latency from a core's access to the cache's decision, in picoseconds.
    pub request_latency: Quantity,
    /// Latency from a decision to perform the access immediately to the core, in picoseconds.
    pub hit_latency: Quantity,
    /// The same for an access that writes, if it differs.
    pub store_hit_latency: Option<Quantity>,
    /// Latency from the arrival of a response at the cache to the core, in picoseconds.
    pub fill_latency: Quantity,
    /// Address translation between cores and cache; `None` if all addresses are physical.
    pub translation: Option<Translation>,
}

/// Framing of the messages of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Blocks of ECI, with virtual circuits for lines of each parity, on lanes of 10.3125 Gb/s.
    Eci,
    /// Packets of CCIX over PCIe of generation 4, with the optimised header.
    Ccix,
    /// Flits of 68 bytes of CXL.mem over PCIe of generation 5.
    Cxl68,
    /// Flits of 256 bytes of CXL.mem over PCIe of generation 5.
    Cxl256,
    /// Flits of 68 bytes of CXL.cache over PCIe of generation 5: the home is the host.
    CxlCache68,
}

impl Framing {
    /// All framings, by name.
    pub const ALL: [(&'static str, Framing); 5] = [
        ("eci", Framing::Eci),
        ("ccix", Framing::Ccix),
        ("cxl-68", Framing::Cxl68),
        ("cxl-256", Framing::Cxl256),
        ("cxl-cache-68", Framing::CxlCache68),
    ];

    /// Name in platform files.
    pub fn name(self) -> &'static str {
        let entry = Framing::ALL.iter().find(|(_, framing)| *framing == self);
        entry.map_or("", |(name, _)| name)
    }

    /// Returns the framing of a name.
    ///
    /// # Errors
    /// A sentence with the known names.
    pub fn named(name: &str) -> Result<Framing, String> {
        let entry = Framing::ALL.iter().find(|(known, _)| *known == name);
        entry.map(|(_, framing)| *framing).ok_or_else(|| {
            let names: Vec<&str> = Framing::ALL.iter().map(|(name, _)| *name).collect();
            format!("`link.layer` is {} or none, not `{name}`", names.join(", "))
        })
    }

    /// Number of lanes of one link.
    fn lanes(self) -> u64 {
        match self {
            Framing::Eci => 12,
            _ => 16,
        }
    }

    /// Rate of one lane before line coding, in bytes per second.
    fn lane_rate(self) -> u64 {
        match self {
            Framing::Eci => 10_312_500_000 / 8,
            Framing::Ccix => 16_000_000_000 / 8,
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => 32_000_000_000 / 8,
        }
    }
}

/// A framed link: framing, credits and replay are simulated, in place of a pipe with a bandwidth.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Framing of messages on the lanes.
    pub framing: Framing,
    /// Number of lanes of one link.
    pub lanes: Quantity,
    /// Rate of one lane before line coding, in bytes per second.
    pub lane_rate: Quantity,
    /// Bit errors per 10^15 bits.
    pub bit_errors_per_1e15: Quantity,
    /// Mean time between two failures of a link, in picoseconds; 0 for never. Times are drawn from nearly 0 to twice
    /// the mean.
    pub mean_uptime: Quantity,
    /// Time until a failed link has trained its lanes again, in picoseconds. Messages in flight are lost and sent
    /// again.
    pub retrain_time: Quantity,
    /// Number of lanes after every other failure. After the next failure, the link has all lanes again.
    pub degraded_lanes: Quantity,
    /// Latency from the end of one of several links to the home, which joins the messages of a line, in picoseconds.
    pub merge_latency: Quantity,
    /// Latency from the end of one of several links to the caching agent, in picoseconds.
    pub merge_latency_back: Quantity,
}

impl Layer {
    /// Creates a layer with the usual number of lanes, without errors, failures or latency of joining.
    pub fn new(framing: Framing) -> Layer {
        let set = |value| Quantity::given(value, "set for this run");
        Layer {
            framing,
            lanes: set(framing.lanes()),
            lane_rate: set(framing.lane_rate()),
            bit_errors_per_1e15: set(0),
            mean_uptime: set(0),
            retrain_time: set(0),
            degraded_lanes: set(framing.lanes()),
            merge_latency: set(0),
            merge_latency_back: set(0),
        }
    }
}

/// Links between caches and home, alike in both directions.
#[derive(Clone, Debug)]
pub struct Link {
    /// Number of links. Each message uses one of them.
    pub count: Quantity,
    /// Bandwidth of one link and direction, bytes per second.
    pub bandwidth: Quantity,
    /// Latency from the last byte sent to the receipt of the message, in picoseconds.
    pub latency: Quantity,
    /// Bytes of a message in addition to its payload.
    pub header_bytes: Quantity,
    /// Maximum number of messages of one virtual circuit on one cache's links, in one direction, that the receiver has
    /// not taken; 0 for no limit. A virtual circuit is a channel, or several channels that share an order.
    pub credits: Quantity,
    /// Maximum random delay of each message, in picoseconds; for torture tests. One message in eight is delayed by up
    /// to 16 times this value.
    pub jitter: Quantity,
    /// Link layer of framed links. With a layer, `bandwidth`, `header_bytes` and `jitter` have no effect on times. Then
    /// `credits` are buffer places behind the layer, which has credits of its own.
    pub layer: Option<Layer>,
}

impl Link {
    /// Sets the framing by name; `none` removes it. All quantities of the new layer have their usual values.
    ///
    /// # Errors
    /// A sentence with the known names.
    fn set_layer(&mut self, name: &str) -> Result<(), String> {
        self.layer = match name {
            "none" => None,
            name => Some(Layer::new(Framing::named(name)?)),
        };
        Ok(())
    }
}

/// Structure and timing of homes.
#[derive(Clone, Debug)]
pub struct Home {
    /// Number of slices, a power of two. A line belongs to slice (line mod slices).
    pub slices: Quantity,
    /// Number of serial units per slice, a power of two.
    pub units: Quantity,
    /// Time for which one event occupies a unit, in picoseconds. If the event has to wait for the unit's memory
    /// operation or coherence transaction, the time starts at the end of the wait.
    pub occupancy: Quantity,
    /// Latency from an event's start at its unit to the messages it sends, in picoseconds.
    pub latency: Quantity,
    /// Maximum number of requests per unit that its controller has stalled, one entry each. Beyond it, request channels
    /// stop.
    pub stall_entries: Quantity,
    /// Maximum number of requests per unit that wait for its memory operations or its coherence transaction. Beyond it,
    /// request channels stop, too.
    pub queue_entries: Quantity,
    /// Round trip between a unit and memory, without the memory itself, in picoseconds.
    pub memory_round_trip: Quantity,
    /// Round trip between the application or device and a unit, in picoseconds. It applies to local operations and to
    /// notifications of lines.
    pub device_round_trip: Quantity,
    /// Minimum interval between two local operations that a slice takes from the device, and between two unlocks, in
    /// picoseconds. No operation passes an earlier unlock of its slice.
    pub local_issue_interval: Quantity,
    /// Latency from a memory completion's start at its unit to the messages that the unit sends, in picoseconds.
    /// `latency` if not given.
    pub completion_latency: Option<Quantity>,
    /// Time for which a memory completion occupies a unit, in picoseconds; `occupancy` if not given.
    pub completion_occupancy: Option<Quantity>,
    /// Number of homes, a power of two, each with slices, units and memory of its own. A line belongs to home (line mod
    /// count). One if not given.
    pub count: Option<Quantity>,
    /// Minimum interval between two local operations that leave the device, across slices, in picoseconds; 0 if not
    /// given.
    pub issue_interval: Option<Quantity>,
    /// Maximum number of memory reads of one unit in progress; one if not given.
    pub max_reads: Option<Quantity>,
    /// Maximum number of memory writes of one unit in progress; one if not given.
    pub max_writes: Option<Quantity>,
    /// Maximum number of memory reads of one slice in flight between its units and memory; 0, or not given, for no
    /// limit. Reads that an application answers do not count.
    pub memory_in_flight: Option<Quantity>,
    /// Last-level cache in front of the memory of each home, if there is one.
    pub llc: Option<HomeCache>,
    /// 1 if the units and memory see aliased line numbers, as ECI's directory does; 0, or not given, if they see those
    /// of the program.
    pub address_aliasing: Option<Quantity>,
}

/// Last-level cache in front of the memory of a home.
#[derive(Clone, Debug)]
pub struct HomeCache {
    /// Number of sets, a power of two.
    pub sets: Quantity,
    /// Associativity.
    pub ways: Quantity,
    /// Latency from the arrival of an operation to the end of a hit, or to the access to memory, in picoseconds.
    pub latency: Quantity,
}

impl HomeCache {
    /// Creates a cache with placeholders for all quantities.
    fn unset() -> HomeCache {
        let unset = || Quantity::given(1, "");
        HomeCache {
            sets: unset(),
            ways: unset(),
            latency: unset(),
        }
    }
}

/// Kind of a platform's memory, as its file states it.
#[derive(Clone, Copy)]
enum MemoryKind {
    Bram,
    Dram,
    Jedec(Standard),
}

/// Bus between the CPU and the device, such as PCIe, in addition to the links.
#[derive(Clone, Debug)]
pub struct Bus {
    /// Bandwidth of one direction, bytes per second.
    pub bandwidth: Quantity,
    /// Latency from the last byte sent to the receipt of the packet, in picoseconds.
    pub latency: Quantity,
    /// Bytes of a packet in addition to its payload.
    pub header_bytes: Quantity,
    /// Maximum payload of a packet, in bytes.
    pub payload_bytes: Quantity,
    /// Latency from the arrival of a read at the CPU's own memory until its words leave, in picoseconds.
    pub memory_latency: Quantity,
    /// Latency from an interrupt's arrival at the CPU until the waiting thread continues, in picoseconds.
    pub interrupt_latency: Quantity,
}

impl Bus {
    /// Creates a bus of a small machine that makes races likely.
    fn torture() -> Bus {
        let test = |value| Quantity::given(value, "chosen to make races likely");
        Bus {
            bandwidth: test(0),
            latency: test(60 * NANOSECOND),
            header_bytes: test(8),
            payload_bytes: test(16),
            memory_latency: test(5 * NANOSECOND),
            interrupt_latency: test(20 * NANOSECOND),
        }
    }
}

/// A switch between the caching agents and the homes. Each of them has a port at the switch, and the links to it.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Latency from a message's arrival at its port until it is ready at another port, in picoseconds.
    pub latency: Quantity,
}

/// Hosts. Messages between caching agents and homes of one host stay on its mesh. All other messages pass through the
/// host's port at the switch, by the links of the platform.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Number of hosts, a power of two. Caching agent A belongs to host (A mod count), and home H to host (H mod
    /// count).
    pub count: Quantity,
    /// Number of columns of a host's mesh. The port is at the first tile. The caching agents of a host, and the slices
    /// of its homes, are at consecutive tiles.
    pub columns: Quantity,
    /// Number of rows of a host's mesh.
    pub rows: Quantity,
    /// Latency from a tile to its neighbour, in picoseconds.
    pub hop_latency: Quantity,
    /// Size of a flit on the mesh, in bytes. A message is a whole number of flits.
    pub flit_bytes: Quantity,
    /// Time for which a flit occupies the injection port of a tile, in picoseconds.
    pub flit_interval: Quantity,
    /// Bits of fields that fit into a message's header.
    pub free_bits: Quantity,
    /// Bits of a counter field with a bound above 255; 0 for the width that the protocol's own bound needs.
    pub counter_bits: Quantity,
    /// Bits of a field with a wrapping counter; 0 for the width that its values need.
    pub number_bits: Quantity,
    /// Extra latency of messages from host `extra_latency_from` to host `extra_latency_to`, in picoseconds, to provoke
    /// a race.
    pub extra_latency: Quantity,
    /// Number of the sending host of late messages.
    pub extra_latency_from: Quantity,
    /// Number of the receiving host of late messages.
    pub extra_latency_to: Quantity,
}

impl Hosts {
    /// Creates hosts with placeholders for all quantities.
    fn unset() -> Hosts {
        let unset = || Quantity::given(1, "");
        Hosts {
            count: unset(),
            columns: unset(),
            rows: unset(),
            hop_latency: unset(),
            flit_bytes: unset(),
            flit_interval: unset(),
            free_bits: unset(),
            counter_bits: unset(),
            number_bits: unset(),
            extra_latency: unset(),
            extra_latency_from: unset(),
            extra_latency_to: unset(),
        }
    }
}

/// Links between switches of two levels. Each switch of the first level has the ports of some hosts, and links to the
/// switch above. A message takes the latency of each switch on its path.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// Number of hosts at each switch of the first level, a power of two. Host H is at switch (H / hosts).
    pub hosts: Quantity,
    /// Number of links from such a switch to the one above, and as many back.
    pub links: Quantity,
    /// Bandwidth of each link and direction, in bytes per second.
    pub bandwidth: Quantity,
    /// Latency of each link, in picoseconds.
    pub latency: Quantity,
}

/// Caching agents of a further kind, with their cores and links.
#[derive(Clone, Debug)]
pub struct Agents {
    /// Name of the kind in protocol files.
    pub kind: String,
    /// Number of agents of this kind, at most [`Platform::MAX_AGENTS`]; may be 0.
    pub remotes: u16,
    /// Their cores. The lines accessed and the timeout of accesses are those of the whole machine.
    pub cores: Cores,
    /// Cache of each agent.
    pub cache: Cache,
    /// Links between each agent and the home.
    pub link: Link,
}

/// A machine: caches, homes, the links between them and the memory behind each home.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Name, as in results and messages.
    pub name: String,
    /// Name of the shipped protocol that the machine runs by default, if its file names one.
    pub protocol: Option<String>,
    /// Warnings about quantities with former names, or set outside their plausible ranges, one sentence each.
    pub implausible: Vec<String>,
    /// Number of caching agents of the first kind, 1 to [`Platform::MAX_AGENTS`].
    pub remotes: u16,
    /// Cores of the first kind of caching agents.
    pub cores: Cores,
    /// Cache of each caching agent of the first kind.
    pub cache: Cache,
    /// Links between each caching agent and the home, and among caching agents.
    pub link: Link,
    /// Caching agents of further kinds, in the order of the platform file.
    pub agents: Vec<Agents>,
    /// Structure and timing of the homes.
    pub home: Home,
    /// Memory of each home.
    pub memory: Memory,
    /// Bus between the CPU and the device, if the machine has one.
    pub bus: Option<Bus>,
    /// Switch between the caching agents and the homes, in the middle of the links, if the machine has one.
    pub switch: Option<Switch>,
    /// Hosts to which caching agents and homes belong, if there are any. Hosts require a switch.
    pub hosts: Option<Hosts>,
    /// Links between switches of two levels, if there are two. Most machines with hosts have one switch.
    pub uplink: Option<Uplink>,
    /// Machine below each caching agent, if there are two levels: caches of its cores, a home, and links. Its memory is
    /// the copies of the caching agent. Cores, lines and progress timeout are those of the whole machine.
    pub below: Option<Box<Platform>>,
    /// Machine of the host's memory, where that is a space of its own: its home, the host's caches and, as further
    /// kinds of agents, those of the device. The device's messages use the links of the outer machine, which also has
    /// the progress timeout.
    pub host: Option<Box<Platform>>,
    /// Number of lines for which the homes have memory, all homes together, 1 to [`Platform::MAX_LINES`].
    pub lines: u32,
    /// Progress timeout: simulated time without a performed access after which a run fails, in picoseconds.
    pub watchdog_timeout: Quantity,
}

impl Platform {
    /// Maximum number of caching agents of each kind, and of cores of a workload, homes and hosts.
    pub const MAX_AGENTS: u16 = 4096;

    /// Maximum number of lines for which homes can have memory.
    pub const MAX_LINES: u64 = (1 << 31) - 1;

    /// Sets one quantity, `remotes` or `lines`, by name, as on the command line: `home.units`, `32`. Range and origin
    /// then state that it was set.
    ///
    /// `agents.KIND.remotes` with a new kind adds that many agents, which are like those of the first kind.
    ///
    /// # Errors
    /// A sentence: the name is unknown, with the known names, or the value is invalid.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let current = current_name(name);
        if let Cow::Owned(current) = &current {
            let warning = former_name_warning(name, current);
            self.implausible.push(warning);
        }
        let name = &*current;
        if let Some(prefix) = name.strip_suffix("dram.page_policy") {
            let current = format!("{prefix}dram.closed_page");
            let warning = former_name_warning(name, &current);
            self.implausible.push(warning);
        }
        if let (Some(name), Some(below)) = (name.strip_prefix(LOWER), &mut self.below) {
            return match is_machine_wide(name) {
                true => Err(format!(
                    "`{name}` applies to both levels: set it without `{LOWER}`"
                )),
                false => below.set(name, value),
            };
        }
        if let (Some(host_name), Some(host)) = (name.strip_prefix(HOST), &mut self.host) {
            return match is_machine_wide_in_host(host_name) {
                true => Err(format!(
                    "`{name}` applies to the whole machine: set it without `{HOST}`"
                )),
                false => host.set(host_name, value),
            };
        }
        let parse_count = |low: u64, high: u64| {
            let number =
                units::parse(value, Unit::Count).map_err(|error| format!("`{name}` {error}"))?;
            match (low..=high).contains(&number) {
                true => Ok(number),
                false => Err(format!("{name} must be {low} to {high}, not {number}")),
            }
        };
        match name {
            "lines" => self.lines = parse_count(1, Platform::MAX_LINES)? as u32,
            "remotes" => self.remotes = parse_count(1, Platform::MAX_AGENTS.into())? as u16,
            "link.layer" => self.link.set_layer(value)?,
            "dram.standard" | "dram.scheduler" | "dram.page_policy" => match &mut self.memory {
                Memory::Jedec(dram) => dram.set_choice(name, value, "set for this run")?,
                _ => return Err(format!("`{name}` needs a DRAM with a `dram.standard`")),
            },
            _ => match name
                .strip_prefix(AGENTS)
                .and_then(|name| name.split_once('.'))
            {
                Some((kind, "remotes")) if !kind.is_empty() => {
                    let remotes = parse_count(0, Platform::MAX_AGENTS.into())? as u16;
                    self.agents_of_kind_mut(kind).remotes = remotes;
                }
                None if name == "translation.enabled" => {
                    self.cache.translation.get_or_insert_default();
                    return self.set_quantity(name, value);
                }
                Some((kind, "translation.enabled"))
                    if self.agents.iter().any(|agents| agents.kind == kind) =>
                {
                    self.agents_of_kind_mut(kind)
                        .cache
                        .translation
                        .get_or_insert_default();
                    return self.set_quantity(name, value);
                }
                Some((kind, "link.layer"))
                    if self.agents.iter().any(|agents| agents.kind == kind) =>
                {
                    self.agents_of_kind_mut(kind).link.set_layer(value)?;
                }
                _ => return self.set_quantity(name, value),
            },
        }
        Ok(())
    }

    /// Returns the agents of a further kind. A new kind has no agents; its quantities are those of the first kind.
    fn agents_of_kind_mut(&mut self, kind: &str) -> &mut Agents {
        let index = self.agents.iter().position(|agents| agents.kind == kind);
        let index = index.unwrap_or_else(|| {
            self.agents.push(Agents {
                kind: kind.to_string(),
                remotes: 0,
                cores: self.cores.clone(),
                cache: self.cache.clone(),
                link: self.link.clone(),
            });
            self.agents.len() - 1
        });
        &mut self.agents[index]
    }

    /// Sets a quantity of the table by its full name. A value outside the plausible range is a warning, not an
    /// error.
    ///
    /// # Errors
    /// As for [`Platform::set`].
    fn set_quantity(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some((row, quantity)) = self.quantity(name) else {
            if let Some(needed) = Row::layer_requirement(name) {
                return Err(format!("`{name}` {needed}"));
            }
            let names = self.all_quantities().into_iter();
            let names: Vec<String> = names.map(|(known, ..)| known).collect();
            let other_names = ["remotes", "lines"];
            let suggestion =
                did_you_mean(name, names.iter().map(String::as_str).chain(other_names));
            let names = names.join(", ");
            return Err(format!(
                "there is no `{name}` in this platform; {suggestion}there are {names}, remotes, lines"
            ));
        };
        let value = units::parse(value, row.unit).map_err(|error| format!("`{name}` {error}"))?;
        row.check(name, value)?;
        let (low, high) = quantity.range;
        let implausible = (low < high && !(low..=high).contains(&value)).then(|| {
            let [value, low, high] = [value, low, high].map(|number| units::show(number, row.unit));
            format!("`{name}` is set to {value}, outside its plausible range of {low} to {high}")
        });
        *quantity = Quantity::given(value, "set for this run");
        self.implausible.extend(implausible);
        Ok(())
    }

    /// Returns a quantity by its full name, with its row of the table. Other levels and spaces are not searched.
    pub fn quantity(&mut self, name: &str) -> Option<(&'static Row, &mut Quantity)> {
        let kind_and_name = name
            .strip_prefix(AGENTS)
            .and_then(|name| name.split_once('.'));
        let row = Row::named(kind_and_name.map_or(name, |(_, name)| name))?;
        let quantity = match kind_and_name {
            None => row.quantity_of(self)?,
            Some((kind, _)) => row.of_agents(self.agents.iter_mut().find(|a| a.kind == kind)?)?,
        };
        Some((row, quantity))
    }

    /// Rejects quantities outside their limits, in a sentence with the name. A bandwidth of 0 stands for an
    /// unlimited one.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, row, quantity) in self.rows() {
            if row.unit != Unit::BytesPerSecond || quantity.value != 0 {
                row.check(&name, quantity.value)?;
            }
        }
        match &self.memory {
            Memory::Jedec(dram) => dram.check(),
            _ => Ok(()),
        }
    }

    /// Returns the machine below each cache, with the cores, lines and progress timeout of the whole machine, if there
    /// are two levels.
    pub fn lower(&self) -> Option<Platform> {
        let below = self.below.as_deref()?.clone();
        Some(Platform {
            name: self.name.clone(),
            cores: self.cores.clone(),
            lines: self.lines,
            watchdog_timeout: self.watchdog_timeout.clone(),
            ..below
        })
    }

    /// Combines two machines into one with two spaces: this one for lines whose home is the device, and `host` for
    /// lines of the host's memory.
    ///
    /// # Errors
    /// A sentence: the reason why the machines cannot be combined.
    pub fn with_host(self, host: Platform) -> Result<Platform, String> {
        let unsupported_feature = |platform: &Platform| match platform {
            Platform { host: Some(_), .. } => Some("two spaces already"),
            Platform { below: Some(_), .. } => Some("two levels of caches"),
            Platform {
                switch: Some(_), ..
            } => Some("a switch"),
            _ => None,
        };
        for platform in [&self, &host] {
            if let Some(feature) = unsupported_feature(platform) {
                let name = &platform.name;
                return Err(format!(
                    "{name} has {feature}, so it cannot be part of a machine with two address spaces"
                ));
            }
        }
        if !self.agents.is_empty() {
            let reason =
                "has caching agents of further kinds, but only the host caches the device's lines";
            return Err(format!("{} {reason}", self.name));
        }
        if host.agents.is_empty() {
            let reason = "has caching agents of one kind, but both host and device cache lines of the host's memory";
            return Err(format!("{} {reason}", host.name));
        }
        Ok(Platform {
            name: format!("{}+{}", self.name, host.name),
            protocol: None,
            implausible: [&self.implausible[..], &host.implausible].concat(),
            host: Some(Box::new(host)),
            ..self
        })
    }

    /// Returns the machine of the host's memory, if that is a space of its own. The device's agents in it have the
    /// links of this machine, and the progress timeout is that of this machine, too.
    pub fn host(&self) -> Option<Platform> {
        let mut host = self.host.as_deref()?.clone();
        host.watchdog_timeout = self.watchdog_timeout.clone();
        for agents in &mut host.agents {
            agents.link = self.link.clone();
        }
        Some(host)
    }

    /// All quantities of all kinds, levels and spaces by full name, in a fixed order.
    pub fn all_quantities(&self) -> Vec<(String, Unit, Quantity)> {
        let rows = self.rows().into_iter();
        rows.map(|(name, row, quantity)| (name, row.unit, quantity))
            .collect()
    }

    /// Returns all quantities with their rows of the table, by full name. Quantities that an inner level or space
    /// shares with the whole machine occur once.
    fn rows(&self) -> Vec<(String, &'static Row, Quantity)> {
        let mut rows = Vec::new();
        let mut platform = self.clone();
        for row in TABLE {
            let quantity = row.quantity_of(&mut platform);
            rows.extend(quantity.map(|quantity| (row.name.to_string(), row, quantity.clone())));
        }
        for agents in &mut platform.agents {
            let prefix = format!("{AGENTS}{}.", agents.kind);
            for row in TABLE {
                let quantity = row.of_agents(agents);
                let name = format!("{prefix}{}", row.name);
                rows.extend(quantity.map(|quantity| (name, row, quantity.clone())));
            }
        }
        if let Some(host) = &platform.host {
            let inner_rows = host.rows().into_iter();
            let inner_rows = inner_rows.filter(|(name, ..)| !is_machine_wide_in_host(name));
            rows.extend(
                inner_rows.map(|(name, row, quantity)| (format!("{HOST}{name}"), row, quantity)),
            );
        }
        if let Some(below) = &platform.below {
            let inner_rows = below.rows().into_iter();
            let inner_rows = inner_rows.filter(|(name, ..)| !is_machine_wide(name));
            rows.extend(
                inner_rows.map(|(name, row, quantity)| (format!("{LOWER}{name}"), row, quantity)),
            );
        }
        rows
    }

    /// Number of caching agents of all kinds, within the limits that [`Platform::kinds`] checks.
    pub fn all_remotes(&self) -> u32 {
        let other_counts = self.agents.iter().map(|agents| u32::from(agents.remotes));
        u32::from(self.remotes) + other_counts.sum::<u32>()
    }

    /// Returns the number of agents of each kind of a protocol. A machine without further kinds has only remotes. These
    /// count as one kind if all kinds of the protocol have the same table.
    ///
    /// # Errors
    /// A sentence: the kinds of machine and protocol do not match.
    pub fn kinds(&self, protocol: &Protocol) -> Result<Remotes, String> {
        let kinds = &protocol.kinds[..];
        if self.agents.is_empty() && !protocol.several_tables() {
            return Ok(self.remotes.into());
        }
        let names = || {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            format!("{} has {}", protocol.name, names.join(", "))
        };
        let further = kinds.get(1..).unwrap_or(&[]);
        let unknown = |agents: &&Agents| further.iter().all(|kind| kind.name != agents.kind);
        if let Some(agents) = self.agents.iter().find(unknown) {
            let (machine, kind) = (&self.name, &agents.kind);
            let clause = "has agents of a further kind";
            return Err(format!("{machine} {clause}, `{kind}`, and {}", names()));
        }
        let agents_of_kind = |name: &str| self.agents.iter().find(|agents| agents.kind == name);
        let mut counts = vec![self.remotes];
        for kind in further {
            let Some(agents) = agents_of_kind(&kind.name) else {
                let (machine, missing_kind) = (&self.name, &kind.name);
                let help = format!("`{AGENTS}{missing_kind}.remotes` sets their number");
                return Err(format!(
                    "{machine} does not declare agents `{missing_kind}`, and {}: {help}",
                    names()
                ));
            };
            counts.push(agents.remotes);
        }
        Remotes::new(&counts).ok_or_else(|| format!("{} and too many kinds", names()))
    }

    /// True if the units and memory see aliased line numbers.
    pub fn aliases_lines(&self) -> bool {
        let aliasing = self.home.address_aliasing.as_ref();
        aliasing.is_some_and(|aliasing| aliasing.value != 0)
    }

    /// Number of homes.
    pub fn homes(&self) -> u64 {
        self.home.count.as_ref().map_or(1, |count| count.value)
    }

    /// Creates a platform with placeholders for all values. The flags say which optional parts it has.
    fn placeholder(memory: MemoryKind, [bus, switch, hosts, uplink]: [bool; 4]) -> Platform {
        let unset = || Quantity::given(0, "");
        let mut blank = Platform::torture(1);
        blank.bus = blank.bus.filter(|_| bus);
        blank.home.completion_latency = Some(unset());
        blank.home.completion_occupancy = Some(unset());
        blank.switch = switch.then(|| Switch { latency: unset() });
        blank.hosts = hosts.then(Hosts::unset);
        blank.uplink = uplink.then(|| Uplink {
            hosts: unset(),
            links: unset(),
            bandwidth: unset(),
            latency: unset(),
        });
        blank.home.count = Some(unset());
        blank.home.issue_interval = Some(unset());
        blank.cores.issue_interval = Some(unset());
        blank.cores.max_posted_stores = Some(unset());
        blank.cache.store_hit_latency = Some(unset());
        blank.home.max_reads = Some(unset());
        blank.home.max_writes = Some(unset());
        blank.home.memory_in_flight = Some(unset());
        blank.home.address_aliasing = Some(unset());
        match memory {
            MemoryKind::Bram => {}
            MemoryKind::Dram => {
                blank.memory = Memory::Dram(Box::new(Dram {
                    channels: unset(),
                    banks: unset(),
                    row_bytes: unset(),
                    bandwidth: unset(),
                    t_cl: unset(),
                    t_rcd: unset(),
                    t_rp: unset(),
                    row_idle_timeout: unset(),
                    controller_latency: unset(),
                }));
            }
            MemoryKind::Jedec(standard) => {
                blank.memory = Memory::Jedec(Box::new(JedecDram::new(standard)));
            }
        }
        blank
    }

    /// Creates a small machine that makes races likely: tiny caches, few units, random delays.
    pub fn torture(remotes: u16) -> Platform {
        let test = |value| Quantity::given(value, "chosen to make races likely");
        Platform {
            name: "torture".into(),
            protocol: None,
            implausible: Vec::new(),
            remotes,
            cores: Cores {
                count: test(2 * u64::from(remotes)),
                partitioned: test(0),
                max_outstanding: test(3),
                prefetch_distance: test(0),
                compute_time: test(0),
                write_buffer: test(0),
                l1_size: test(0),
                l1_ways: test(2),
                l1_hit_latency: test(NANOSECOND),
                timeout: test(SECOND),
                issue_interval: None,
                max_posted_stores: None,
            },
            cache: Cache {
                sets: test(2),
                ways: test(2),
                index_hash: test(0),
                request_latency: test(NANOSECOND),
                hit_latency: test(NANOSECOND),
                store_hit_latency: None,
                fill_latency: test(NANOSECOND),
                translation: None,
            },
            link: Link {
                count: test(2),
                bandwidth: test(0),
                latency: test(NANOSECOND),
                header_bytes: test(8),
                credits: test(3),
                jitter: test(100 * NANOSECOND),
                layer: None,
            },
            home: Home {
                slices: test(2),
                units: test(2),
                occupancy: test(3 * NANOSECOND),
                latency: test(3 * NANOSECOND),
                stall_entries: test(2),
                queue_entries: test(2),
                memory_round_trip: test(NANOSECOND),
                device_round_trip: test(NANOSECOND),
                local_issue_interval: test(NANOSECOND),
                completion_latency: None,
                completion_occupancy: None,
                count: None,
                issue_interval: None,
                max_reads: None,
                max_writes: None,
                memory_in_flight: None,
                llc: None,
                address_aliasing: None,
            },
            memory: Memory::Bram(Bram {
                ports: test(1),
                bandwidth: test(0),
                latency: test(40 * NANOSECOND),
            }),
            bus: Some(Bus::torture()),
            switch: None,
            hosts: None,
            uplink: None,
            agents: Vec::new(),
            below: None,
            host: None,
            lines: 1 << 20,
            watchdog_timeout: test(200_000 * NANOSECOND),
        }
    }
}

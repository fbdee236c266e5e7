//! Machines as values: every quantity has a name, a unit, a plausible range and an origin.
//!
//! A [`Platform`] is plain data, so any front end can fill or override it;
//! one [`table`] lists every quantity by name. [`text`] reads platforms from TOML;
//! those that ship with the simulator are such texts, too.

mod shipped;
mod table;
pub mod text;
mod translation;
pub mod units;

use crate::kernel::{Time, NANOSECOND, SECOND};
use cohkit_base::words::did_you_mean;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;

pub use table::{Row, TABLE};
pub use translation::Translation;

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Picoseconds.
    Picoseconds,
    /// Bytes per second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
}

/// Before the names of what is below each cache of the upper of two levels.
const BELOW: &str = "below.";

/// Before the names of what is beside, where the host's memory is a space of its own.
const HOST: &str = "host.";

/// Before the names of kinds of caching agents beside the first, and of their quantities.
const AGENTS: &str = "agents.";

/// Whether a quantity is of the whole machine, and so not of one level.
fn of_both_levels(name: &str) -> bool {
    name.starts_with("cores.") || matches!(name, "patience" | "lines")
}

/// Whether a quantity of the host's memory is of the whole machine.
fn of_the_machine(name: &str) -> bool {
    let of_device = name.strip_prefix(AGENTS).and_then(|of| of.split_once('.'));
    let link = of_device.is_some_and(|(_, name)| name.starts_with("link."));
    link || name == "patience" || name.starts_with("bus.")
}

/// One quantity of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// The value in use.
    pub value: u64,
    /// The lowest and highest plausible value; equal to the value where a source gives it.
    pub range: (u64, u64),
    /// Where the value comes from.
    pub origin: String,
}

impl Quantity {
    /// A value that a source gives.
    pub fn given(value: u64, origin: &str) -> Quantity {
        Quantity {
            value,
            range: (value, value),
            origin: origin.into(),
        }
    }

    /// A value that no source gives, with its plausible range.
    pub fn assumed(value: u64, range: (u64, u64), origin: &str) -> Quantity {
        Quantity {
            value,
            range,
            origin: origin.into(),
        }
    }

    /// For a quantity in bytes per second: the time that so many bytes take, rounded up; 0 if it is 0,
    /// which stands for a bandwidth without bound.
    pub fn time_of(&self, bytes: u32) -> Time {
        match self.value {
            0 => 0,
            rate => (u128::from(bytes) * u128::from(SECOND)).div_ceil(u128::from(rate)) as Time,
        }
    }
}

/// What the cores of a benchmark do, one thread on each.
///
/// A [`Workload`](crate::components::traffic::Workload) decides for itself; front ends take from here what they are not told.
#[derive(Clone, Debug)]
pub struct Cores {
    /// Cores in use, spread over the caches.
    pub used: Quantity,
    /// Whether each core goes through a contiguous part of the region (1) or all take turns (0).
    pub chunked: Quantity,
    /// Most accesses of one core in flight, hints not counted.
    pub outstanding: Quantity,
    /// How many accesses before it is read a line is asked for by a hint; 0 for no hints.
    pub prefetch: Quantity,
    /// From an access's being done at its core to the issue of the next, picoseconds.
    pub work: Quantity,
    /// Lines that a core's write buffer holds, in bytes; 0 for none, so that a core waits for its stores.
    pub write_buffer: Quantity,
    /// Size of a core's own cache, which writes through; 0 for none.
    pub l1: Quantity,
    /// Its ways, 1 to 16.
    pub l1_ways: Quantity,
    /// From a core's load to its data in the L1 or the write buffer, picoseconds.
    pub l1_hit: Quantity,
    /// For which a core waits for an access before it gives up, picoseconds.
    pub timeout: Quantity,
    /// Between two accesses that leave a core, picoseconds; no time if not given.
    pub issue: Option<Quantity>,
    /// Stores of a thread that may be under way while it goes on; it waits for each if not given.
    pub posted: Option<Quantity>,
}

impl Cores {
    /// Sets of a core's L1 for lines of this size; 0 without one.
    pub(crate) fn l1_sets(&self, line_bytes: u32) -> u64 {
        self.l1.value / (self.l1_ways.value.max(1) * u64::from(line_bytes))
    }

    /// Refuses sizes that fit no lines of this size; what is before the name says of which kind they are.
    pub(crate) fn check(&self, kind: &str, line_bytes: u32) -> Result<(), String> {
        let line = u64::from(line_bytes);
        let size = |value| units::show(value, Unit::Bytes);
        if !self.write_buffer.value.is_multiple_of(line) {
            let (line, value) = (size(line), size(self.write_buffer.value));
            return Err(format!(
                "{kind}cores.write_buffer must be whole lines of {line}, not {value}"
            ));
        }
        let sets = self.l1_sets(line_bytes);
        let whole = sets * self.l1_ways.value * line == self.l1.value;
        if self.l1.value > 0 && !(whole && sets.is_power_of_two()) {
            let (set, value) = (size(self.l1_ways.value * line), size(self.l1.value));
            return Err(format!(
                "{kind}cores.l1 must be 0B or a power of two times {set}, not {value}"
            ));
        }
        Ok(())
    }
}

/// A shared cache and the way between it and its cores.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Sets, a power of two.
    pub sets: Quantity,
    /// Ways, 1 to 16.
    pub ways: Quantity,
    /// Whether upper address bits are folded into the set number (1) or not (0).
    pub hashed: Quantity,
    /// From a core's access to the cache's decision, picoseconds.
    pub request: Quantity,
    /// From the decision of the cache that it can perform an access at once to the core, picoseconds.
    pub hit: Quantity,
    /// From the arrival at the cache of what an access waited for to the core, picoseconds.
    pub fill: Quantity,
    /// Between cores and cache, where cores have virtual addresses that are translated for each access.
    pub translation: Option<Translation>,
}

/// What travels on the lanes of a link.
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
    /// All of them, by name.
    pub const ALL: [(&'static str, Framing); 5] = [
        ("eci", Framing::Eci),
        ("ccix", Framing::Ccix),
        ("cxl-68", Framing::Cxl68),
        ("cxl-256", Framing::Cxl256),
        ("cxl-cache-68", Framing::CxlCache68),
    ];

    /// Its name in texts of platforms.
    pub fn name(self) -> &'static str {
        let found = Framing::ALL.iter().find(|(_, framing)| *framing == self);
        found.map_or("", |(name, _)| name)
    }

    /// The framing of this name.
    ///
    /// # Errors
    /// A sentence with the names there are.
    pub fn named(name: &str) -> Result<Framing, String> {
        let found = Framing::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, framing)| *framing).ok_or_else(|| {
            let names: Vec<&str> = Framing::ALL.iter().map(|(name, _)| *name).collect();
            format!("`link.layer` is {} or none, not `{name}`", names.join(", "))
        })
    }

    /// The lanes of one of its links.
    fn lanes(self) -> u64 {
        match self {
            Framing::Eci => 12,
            _ => 16,
        }
    }

    /// What one of its lanes carries, bytes per second before their coding.
    fn lane_rate(self) -> u64 {
        match self {
            Framing::Eci => 10_312_500_000 / 8,
            Framing::Ccix => 16_000_000_000 / 8,
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => 32_000_000_000 / 8,
        }
    }
}

/// A link whose messages are framed, credited and replayed as they are, in place of a pipe with a bandwidth.
#[derive(Clone, Debug)]
pub struct Layer {
    /// What travels on its lanes.
    pub framing: Framing,
    /// Lanes of one link.
    pub lanes: Quantity,
    /// Of one lane, before its coding, bytes per second.
    pub lane_rate: Quantity,
    /// Of 10^15 bits, how many go wrong.
    pub errors: Quantity,
    /// Between two times at which a link goes down, which are drawn: from nearly nothing to twice this, picoseconds; 0 for never.
    pub faults: Quantity,
    /// For how long it is down then, until its lanes are trained again, picoseconds. What is under way is lost, and sent again.
    pub down: Quantity,
    /// Lanes with which it comes up after every other of these times; after the next it has all of them again.
    pub lanes_left: Quantity,
    /// From a message's coming out of its link to its receiver, where messages of one line come on any of several links:
    /// at the home, and at the caching agent.
    pub join: Quantity,
    /// The same at the caching agent.
    pub join_back: Quantity,
}

impl Layer {
    /// A link of so many lanes as it has, without errors or joining.
    pub fn new(framing: Framing) -> Layer {
        let set = |value| Quantity::given(value, "set for this run");
        Layer {
            framing,
            lanes: set(framing.lanes()),
            lane_rate: set(framing.lane_rate()),
            errors: set(0),
            faults: set(0),
            down: set(0),
            lanes_left: set(framing.lanes()),
            join: set(0),
            join_back: set(0),
        }
    }
}

/// Both directions of the links between caches and home, alike.
#[derive(Clone, Debug)]
pub struct Link {
    /// Number of links; a message takes one of them.
    pub links: Quantity,
    /// Bandwidth of one link and direction, bytes per second.
    pub bandwidth: Quantity,
    /// From the last byte sent to the message's being received, picoseconds.
    pub latency: Quantity,
    /// Bytes of a message besides its payload.
    pub header_bytes: Quantity,
    /// Messages of one virtual circuit (a channel, or channels that share an order) that one cache's
    /// links may carry in one direction before the receiver has taken them; 0 for no limit.
    pub credits: Quantity,
    /// Random extra delay of each message, up to this, of one in eight up to 16 times this,
    /// picoseconds; for torture tests.
    pub jitter: Quantity,
    /// Lanes and what travels on them, if that is told. Then `bandwidth`, `header_bytes` and `jitter` have no part in times,
    /// and `credits` are places behind the link layer, which has credits of its own.
    pub layer: Option<Layer>,
}

impl Link {
    fn set_layer(&mut self, name: &str) -> Result<(), String> {
        self.layer = match name {
            "none" => None,
            name => Some(Layer::new(Framing::named(name)?)),
        };
        Ok(())
    }
}

/// The home's units.
#[derive(Clone, Debug)]
pub struct Home {
    /// Slices, a power of two; a line belongs to slice (line mod slices).
    pub slices: Quantity,
    /// Serial units per slice, a power of two.
    pub units: Quantity,
    /// Time for which one event occupies a unit, picoseconds; an event that has to wait for the unit's memory
    /// operation or coherence transaction occupies it when that is free.
    pub occupancy: Quantity,
    /// From an event's start at its unit to what it sends, picoseconds.
    pub latency: Quantity,
    /// Requests that one unit keeps waiting because the controller leaves them, one entry per request;
    /// beyond it channels of requests stop.
    pub waiting: Quantity,
    /// Requests that one unit keeps waiting for its memory operations or its coherence transaction;
    /// beyond it channels of requests stop, too.
    pub pending: Quantity,
    /// From a unit to memory and back, beside the memory itself, picoseconds.
    pub memory_path: Quantity,
    /// From what is behind the home to a unit and back, for local operations and what is told of lines, picoseconds.
    pub local_path: Quantity,
    /// Between two local operations that a slice takes from the device, and between two unlocks, picoseconds.
    /// No operation passes an unlock that was asked of its slice before it.
    pub local_interval: Quantity,
    /// From the start of what memory has done at its unit to what the unit then sends, picoseconds.
    /// A unit for which it is not given needs `latency` for this, as for all else.
    pub resume: Option<Quantity>,
    /// Time for which what memory has done occupies a unit, picoseconds; `occupancy` if not given.
    pub resume_occupancy: Option<Quantity>,
    /// Homes, a power of two, each with slices, units and memory of its own; a line belongs to home (line mod count).
    /// One if not given.
    pub count: Option<Quantity>,
    /// Between two local operations that leave the device, whatever their slices, picoseconds; no time if not given.
    pub issue: Option<Quantity>,
    /// Memory reads of one unit in flight; one if not given.
    pub reads: Option<Quantity>,
    /// Memory writes of one unit in flight; one if not given.
    pub writes: Option<Quantity>,
}

/// DRAM behind a home.
#[derive(Clone, Debug)]
pub struct Dram {
    /// Channels, a power of two; a line belongs to channel (line mod channels).
    pub channels: Quantity,
    /// Banks per channel, a power of two.
    pub banks: Quantity,
    /// Bytes of a row, all devices of a channel together, a power of two.
    pub row_bytes: Quantity,
    /// Bandwidth of one channel, bytes per second.
    pub bandwidth: Quantity,
    /// Column access time, picoseconds.
    pub column: Quantity,
    /// Row activation time, picoseconds.
    pub activate: Quantity,
    /// Row precharge time, picoseconds.
    pub precharge: Quantity,
    /// Time after its last use at which an idle row is closed, picoseconds.
    pub open_for: Quantity,
    /// Controller and wires, both ways together, picoseconds.
    pub controller: Quantity,
}

/// On-chip memory behind a home.
#[derive(Clone, Debug)]
pub struct Bram {
    /// Independent ports; a line belongs to port (line mod ports).
    pub ports: Quantity,
    /// Bandwidth of one port, bytes per second.
    pub bandwidth: Quantity,
    /// From a read's start to its data, picoseconds.
    pub latency: Quantity,
}

/// What lies behind a home.
#[derive(Clone, Debug)]
pub enum Memory {
    /// Off-chip, with banks and open rows.
    Dram(Box<Dram>),
    /// On-chip.
    Bram(Bram),
}

/// The bus of devices between the CPU and the device, such as PCIe, beside the links.
#[derive(Clone, Debug)]
pub struct Bus {
    /// Bandwidth of one direction, bytes per second.
    pub bandwidth: Quantity,
    /// From the last byte sent to the packet's being received, picoseconds.
    pub latency: Quantity,
    /// Bytes of a packet besides its payload.
    pub header_bytes: Quantity,
    /// Most bytes of a packet's payload.
    pub payload_bytes: Quantity,
    /// From the arrival of a read at the CPU's own memory until its words leave, picoseconds.
    pub memory: Quantity,
    /// From an interrupt's arrival at the CPU until a thread that waits for it goes on, picoseconds.
    pub interrupt: Quantity,
}

/// A switch between the caching agents and the homes, each of which has a port there with links like all others.
#[derive(Clone, Debug)]
pub struct Switch {
    /// From a message's arrival at its port to its being ready at another, picoseconds.
    pub latency: Quantity,
}

/// Hosts: what caching agents and homes of one of them say to each other stays on its mesh, and all else goes by the host's
/// port at the switch, whose links are the platform's.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// How many there are, a power of two. Caching agent A is of host A mod this one's, and so is home H.
    pub count: Quantity,
    /// Tiles of a host's mesh in a row, and rows. The port is at the first tile; the caching agents of a host, and the
    /// slices of its homes, are at one after the other.
    pub columns: Quantity,
    /// See [`Hosts::columns`].
    pub rows: Quantity,
    /// From a tile to a neighbour, picoseconds.
    pub hop: Quantity,
    /// Bytes of a flit on the mesh, where a message is whole flits.
    pub flit: Quantity,
    /// For which a flit occupies the way of a tile into the mesh, picoseconds.
    pub flit_time: Quantity,
    /// Bits of a message's fields for which there is room in its header.
    pub free_bits: Quantity,
    /// Bits of a field that counts further than 255, whatever the text's own bound; as many as that needs if 0.
    pub counter_bits: Quantity,
    /// Bits of a field with a number that is counted round; as many as there are numbers if 0.
    pub number_bits: Quantity,
    /// What goes from one host to another one takes so much longer, picoseconds.
    pub late: Quantity,
    /// Which hosts these are, by number.
    pub late_from: Quantity,
    /// See [`Hosts::late_from`].
    pub late_to: Quantity,
}

impl Hosts {
    /// Hosts of which nothing is known yet.
    fn unset() -> Hosts {
        let unset = || Quantity::given(1, "");
        Hosts {
            count: unset(),
            columns: unset(),
            rows: unset(),
            hop: unset(),
            flit: unset(),
            flit_time: unset(),
            free_bits: unset(),
            counter_bits: unset(),
            number_bits: unset(),
            late: unset(),
            late_from: unset(),
            late_to: unset(),
        }
    }
}

/// Links between switches of two levels: those of the first have the ports of some hosts each, and links to the one above.
/// A message takes the latency of a switch in each that it passes.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// Hosts at each switch of the first level, a power of two: host H is at switch H divided by this one.
    pub hosts: Quantity,
    /// Links from such a switch to the one above, and as many back.
    pub links: Quantity,
    /// Of each link in each direction.
    pub bandwidth: Quantity,
    /// Time on the way, picoseconds.
    pub latency: Quantity,
}

/// Caching agents of a further kind, and what is before and behind them.
#[derive(Clone, Debug)]
pub struct Agents {
    /// The kind, as protocol texts name it.
    pub kind: String,
    /// How many there are.
    pub remotes: u16,
    /// Before them; what accesses go through and how long a core waits is of the whole machine.
    pub cores: Cores,
    /// Each of them.
    pub cache: Cache,
    /// Between each of them and the home.
    pub link: Link,
}

/// A machine: caches, homes, the links between them and the memory behind each home.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// Name of the shipped protocol that it runs unless another one is asked for, if its text says so.
    pub protocol: Option<String>,
    /// Quantities that were set beyond their plausible ranges, one sentence each.
    pub implausible: Vec<String>,
    /// Number of caching agents of the first kind, 1 to [`Platform::MOST_AGENTS`].
    pub remotes: u16,
    /// Before the caching agents.
    pub cores: Cores,
    /// Each caching agent.
    pub cache: Cache,
    /// Between each caching agent and the home, and among caching agents.
    pub link: Link,
    /// Caching agents of further kinds, in the order of the text.
    pub agents: Vec<Agents>,
    /// The home.
    pub home: Home,
    /// Behind the home.
    pub memory: Memory,
    /// Between the CPU and what is behind the home, beside the links; not every machine has one.
    pub bus: Option<Bus>,
    /// Between the caching agents and the homes, in the middle of the links; not every machine has one.
    pub switch: Option<Switch>,
    /// Hosts that the caching agents and homes are parts of, if there are any; then there is a switch.
    pub hosts: Option<Hosts>,
    /// Between switches of two levels; most machines of hosts have one switch.
    pub uplink: Option<Uplink>,
    /// What is below each caching agent where there are two levels: caches of its cores, a home over the caching agent,
    /// links between them, and as memory the copies of the caching agent. Cores, lines and patience are those of the
    /// whole machine.
    pub below: Option<Box<Platform>>,
    /// The host's memory where that is a space of its own, with its home, the host's caches of it and, as the agents of
    /// further kinds, those of the device. What the device's messages there travel are the links of this machine, and so is
    /// its patience.
    pub host: Option<Box<Platform>>,
    /// Lines the homes have memory for.
    pub lines: u32,
    /// Simulated time without a performed access after which a run is given up, picoseconds.
    pub patience: Quantity,
}

impl Platform {
    /// Most caching agents of each kind, and most of whatever else a machine counts: cores of a workload, homes, hosts.
    pub const MOST_AGENTS: u16 = 4096;

    /// Most lines that a home can have memory for.
    pub const MOST_LINES: u64 = (1 << 31) - 1;

    /// Sets one quantity, `remotes` or `lines`, by name, as a command line does: `home.units`, `32`.
    /// Its range and origin say that it was set so. `agents.KIND.remotes` of a kind that the platform has not gives it that
    /// many agents, which are like those of the first kind.
    ///
    /// # Errors
    /// A sentence: an unknown name, with the names there are, or what is wrong with the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let (Some(name), Some(below)) = (name.strip_prefix(BELOW), &mut self.below) {
            return match of_both_levels(name) {
                true => Err(format!(
                    "`{name}` is of both levels: set it without `{BELOW}`"
                )),
                false => below.set(name, value),
            };
        }
        if let (Some(of), Some(host)) = (name.strip_prefix(HOST), &mut self.host) {
            return match of_the_machine(of) {
                true => Err(format!(
                    "`{name}` is of the whole machine: set it without `{HOST}`"
                )),
                false => host.set(of, value),
            };
        }
        let whole = |low: u64, most: u64| {
            let number =
                units::parse(value, Unit::Count).map_err(|what| format!("`{name}` {what}"))?;
            match (low..=most).contains(&number) {
                true => Ok(number),
                false => Err(format!("{name} must be {low} to {most}, not {number}")),
            }
        };
        match name {
            "lines" => self.lines = whole(1, Platform::MOST_LINES)? as u32,
            "remotes" => self.remotes = whole(1, Platform::MOST_AGENTS.into())? as u16,
            "link.layer" => self.link.set_layer(value)?,
            _ => match name.strip_prefix(AGENTS).and_then(|of| of.split_once('.')) {
                Some((kind, "remotes")) if !kind.is_empty() => {
                    let remotes = whole(0, Platform::MOST_AGENTS.into())? as u16;
                    self.agents_of(kind).remotes = remotes;
                }
                None if name == "translation.used" => {
                    self.cache.translation.get_or_insert_default();
                    return self.set_quantity(name, value);
                }
                Some((kind, "translation.used"))
                    if self.agents.iter().any(|of| of.kind == kind) =>
                {
                    self.agents_of(kind)
                        .cache
                        .translation
                        .get_or_insert_default();
                    return self.set_quantity(name, value);
                }
                Some((kind, "link.layer")) if self.agents.iter().any(|of| of.kind == kind) => {
                    self.agents_of(kind).link.set_layer(value)?;
                }
                _ => return self.set_quantity(name, value),
            },
        }
        Ok(())
    }

    /// The agents of a further kind; like those of the first if there were none.
    fn agents_of(&mut self, kind: &str) -> &mut Agents {
        let place = self.agents.iter().position(|agents| agents.kind == kind);
        let place = place.unwrap_or_else(|| {
            self.agents.push(Agents {
                kind: kind.to_string(),
                remotes: 0,
                cores: self.cores.clone(),
                cache: self.cache.clone(),
                link: self.link.clone(),
            });
            self.agents.len() - 1
        });
        &mut self.agents[place]
    }

    fn set_quantity(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some((row, quantity)) = self.quantity(name) else {
            if let Some(needed) = Row::needs_layer(name) {
                return Err(format!("`{name}` {needed}"));
            }
            let names = self.all_quantities().into_iter();
            let names: Vec<String> = names.map(|(known, ..)| known).collect();
            let beside = ["remotes", "lines"];
            let near = did_you_mean(name, names.iter().map(String::as_str).chain(beside));
            let names = names.join(", ");
            return Err(format!(
                "there is no `{name}` in this platform; {near}there are {names}, remotes, lines"
            ));
        };
        let value = units::parse(value, row.unit).map_err(|what| format!("`{name}` {what}"))?;
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

    /// A quantity by its full name, but for what is below, with what is true of it in all machines.
    pub fn quantity(&mut self, name: &str) -> Option<(&'static Row, &mut Quantity)> {
        let of_kind = name.strip_prefix(AGENTS).and_then(|of| of.split_once('.'));
        let row = Row::named(of_kind.map_or(name, |(_, name)| name))?;
        let quantity = match of_kind {
            None => row.of(self)?,
            Some((kind, _)) => row.of_agents(self.agents.iter_mut().find(|a| a.kind == kind)?)?,
        };
        Some((row, quantity))
    }

    /// Refuses quantities that make no sense. A bandwidth of 0 stands for one without bound.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, row, quantity) in self.rows() {
            if row.unit != Unit::BytesPerSecond || quantity.value != 0 {
                row.check(&name, quantity.value)?;
            }
        }
        Ok(())
    }

    /// The machine with two levels, if it has, and then with its cores, lines and patience at the lower one, too.
    pub fn lower(&self) -> Option<Platform> {
        let below = self.below.as_deref()?.clone();
        Some(Platform {
            name: self.name.clone(),
            cores: self.cores.clone(),
            lines: self.lines,
            patience: self.patience.clone(),
            ..below
        })
    }

    /// Two machines as one: this one is what the device and the host have to do with lines whose home is the device, and the
    /// other one with lines of the host's memory.
    ///
    /// # Errors
    /// A sentence: what of them cannot be in one machine.
    pub fn beside(self, host: Platform) -> Result<Platform, String> {
        let with = |platform: &Platform| match platform {
            Platform { host: Some(_), .. } => Some("two spaces already"),
            Platform { below: Some(_), .. } => Some("two levels of caches"),
            Platform {
                switch: Some(_), ..
            } => Some("a switch"),
            _ => None,
        };
        for platform in [&self, &host] {
            if let Some(with) = with(platform) {
                let name = &platform.name;
                return Err(format!(
                    "{name} has {with}, and is no part of a machine of two spaces"
                ));
            }
        }
        if !self.agents.is_empty() {
            let what = "has caching agents of further kinds, and of the device's lines the host alone has copies";
            return Err(format!("{} {what}", self.name));
        }
        if host.agents.is_empty() {
            let what = "has caching agents of one kind, and both host and device cache lines of the host's memory";
            return Err(format!("{} {what}", host.name));
        }
        Ok(Platform {
            name: format!("{}+{}", self.name, host.name),
            protocol: None,
            implausible: [&self.implausible[..], &host.implausible].concat(),
            host: Some(Box::new(host)),
            ..self
        })
    }

    /// The host's memory, where it is a space of its own, as a machine with the links and the patience of this one.
    pub fn host(&self) -> Option<Platform> {
        let mut host = self.host.as_deref()?.clone();
        host.patience = self.patience.clone();
        for agents in &mut host.agents {
            agents.link = self.link.clone();
        }
        Some(host)
    }

    /// Every quantity of all kinds and levels by its full name, in a fixed order.
    pub fn all_quantities(&self) -> Vec<(String, Unit, Quantity)> {
        let rows = self.rows().into_iter();
        rows.map(|(name, row, quantity)| (name, row.unit, quantity))
            .collect()
    }

    fn rows(&self) -> Vec<(String, &'static Row, Quantity)> {
        let mut all = Vec::new();
        let mut platform = self.clone();
        for row in TABLE {
            let quantity = row.of(&mut platform);
            all.extend(quantity.map(|quantity| (row.name.to_string(), row, quantity.clone())));
        }
        for agents in &mut platform.agents {
            let before = format!("{AGENTS}{}.", agents.kind);
            for row in TABLE {
                let quantity = row.of_agents(agents);
                let name = format!("{before}{}", row.name);
                all.extend(quantity.map(|quantity| (name, row, quantity.clone())));
            }
        }
        if let Some(host) = &platform.host {
            let its = host.rows().into_iter();
            let its = its.filter(|(name, ..)| !of_the_machine(name));
            all.extend(its.map(|(name, row, quantity)| (format!("{HOST}{name}"), row, quantity)));
        }
        if let Some(below) = &platform.below {
            let its = below.rows().into_iter();
            let its = its.filter(|(name, ..)| !of_both_levels(name));
            all.extend(its.map(|(name, row, quantity)| (format!("{BELOW}{name}"), row, quantity)));
        }
        all
    }

    /// Number of caching agents of all kinds, which [`Platform::kinds`] has checked.
    pub fn all_remotes(&self) -> u32 {
        let others = self.agents.iter().map(|agents| u32::from(agents.remotes));
        u32::from(self.remotes) + others.sum::<u32>()
    }

    /// How many agents of each kind of a protocol the machine has. A machine that says nothing of kinds has only remotes,
    /// which are as good as of one kind where all have the same table.
    ///
    /// # Errors
    /// A sentence: the kinds of machine and text do not fit.
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
            let what = "has agents of a further kind";
            return Err(format!("{machine} {what}, `{kind}`, and {}", names()));
        }
        let of_kind = |name: &str| self.agents.iter().find(|agents| agents.kind == name);
        let mut counts = vec![self.remotes];
        for kind in further {
            let Some(agents) = of_kind(&kind.name) else {
                let (machine, lacks) = (&self.name, &kind.name);
                let help = format!("`{AGENTS}{lacks}.remotes` says how many");
                return Err(format!(
                    "{machine} says nothing of agents `{lacks}`, and {}: {help}",
                    names()
                ));
            };
            counts.push(agents.remotes);
        }
        Remotes::new(&counts).ok_or_else(|| format!("{} and too many kinds", names()))
    }

    /// Number of homes.
    pub fn homes(&self) -> u64 {
        self.home.count.as_ref().map_or(1, |count| count.value)
    }

    /// A platform of which every value is still to be filled in.
    fn blank(dram: bool, [bus, switch, hosts, uplink]: [bool; 4]) -> Platform {
        let unset = || Quantity::given(0, "");
        let mut blank = Platform::torture(1);
        blank.bus = blank.bus.filter(|_| bus);
        blank.home.resume = Some(unset());
        blank.home.resume_occupancy = Some(unset());
        blank.switch = switch.then(|| Switch { latency: unset() });
        blank.hosts = hosts.then(Hosts::unset);
        blank.uplink = uplink.then(|| Uplink {
            hosts: unset(),
            links: unset(),
            bandwidth: unset(),
            latency: unset(),
        });
        blank.home.count = Some(unset());
        blank.home.issue = Some(unset());
        blank.cores.issue = Some(unset());
        blank.cores.posted = Some(unset());
        blank.home.reads = Some(unset());
        blank.home.writes = Some(unset());
        if dram {
            blank.memory = Memory::Dram(Box::new(Dram {
                channels: unset(),
                banks: unset(),
                row_bytes: unset(),
                bandwidth: unset(),
                column: unset(),
                activate: unset(),
                precharge: unset(),
                open_for: unset(),
                controller: unset(),
            }));
        }
        blank
    }

    /// A small machine that makes races likely: tiny caches, few units, random delays.
    pub fn torture(remotes: u16) -> Platform {
        let test = |value| Quantity::given(value, "chosen to make races likely");
        Platform {
            name: "torture".into(),
            protocol: None,
            implausible: Vec::new(),
            remotes,
            cores: Cores {
                used: test(2 * u64::from(remotes)),
                chunked: test(0),
                outstanding: test(3),
                prefetch: test(0),
                work: test(0),
                write_buffer: test(0),
                l1: test(0),
                l1_ways: test(2),
                l1_hit: test(NANOSECOND),
                timeout: test(SECOND),
                issue: None,
                posted: None,
            },
            cache: Cache {
                sets: test(2),
                ways: test(2),
                hashed: test(0),
                request: test(NANOSECOND),
                hit: test(NANOSECOND),
                fill: test(NANOSECOND),
                translation: None,
            },
            link: Link {
                links: test(2),
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
                waiting: test(2),
                pending: test(2),
                memory_path: test(NANOSECOND),
                local_path: test(NANOSECOND),
                local_interval: test(NANOSECOND),
                resume: None,
                resume_occupancy: None,
                count: None,
                issue: None,
                reads: None,
                writes: None,
            },
            memory: Memory::Bram(Bram {
                ports: test(1),
                bandwidth: test(0),
                latency: test(40 * NANOSECOND),
            }),
            bus: Some(Bus {
                bandwidth: test(0),
                latency: test(60 * NANOSECOND),
                header_bytes: test(8),
                payload_bytes: test(16),
                memory: test(5 * NANOSECOND),
                interrupt: test(20 * NANOSECOND),
            }),
            switch: None,
            hosts: None,
            uplink: None,
            agents: Vec::new(),
            below: None,
            host: None,
            lines: 1 << 20,
            patience: test(200_000 * NANOSECOND),
        }
    }
}

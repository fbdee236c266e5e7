//! Hosts: the mesh inside each, and its port at the switch.
//!
//! A message between two agents of one host takes the port of its sender's tile into the mesh, then one hop after the
//! other. Between hosts, it takes the hops to the port of its sender's host and that host's links to the switch. From
//! there it takes the links to the other host, and the hops inside it. With switches of two levels, each switch of the
//! first level serves some of the hosts. A message to a host at another one takes the uplink of its switch to the top,
//! and the downlink to the other switch. The port of a tile accepts one flit at a time. Between tiles nothing waits,
//! and buffers are unbounded.

use super::link::{Direction, Sent, Size};
use crate::data::Random;
use crate::kernel::Time;
use crate::message::{Agent, Line, Message, Order, HOME};
use crate::platform::{self, Platform, Quantity};
use crate::simulation::Kind;
use serde::Serialize;
use std::rc::Rc;

/// Traffic of one kind of message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct TrafficTotals {
    /// Messages between hosts.
    pub between: u64,
    /// Bytes of these on the links of hosts, headers included; each message counts once.
    pub between_bytes: u64,
    /// Bytes of all messages in meshes, in whole flits; once in each host on the path of a message.
    pub mesh_bytes: u64,
}

/// Position of a message on its path through the switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SwitchHop {
    /// The switch of the sender's host.
    First,
    /// The top switch.
    Above,
    /// The switch of the receiver's host, coming from the top.
    Last,
}

/// A tile of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tile {
    host: usize,
    number: u64,
}

/// Links between the switches of the first level and the top switch.
struct Uplinks {
    /// Number of hosts at each switch of the first level.
    hosts: usize,
    /// Links from each switch to the top, and back.
    up: Vec<Direction>,
    down: Vec<Direction>,
}

/// All hosts of a machine.
pub(crate) struct Hosts {
    count: u64,
    /// Number of homes, and of slices of each home; powers of two.
    homes: u64,
    slices: u64,
    columns: u64,
    tiles: u64,
    hop: Time,
    /// Extra latency from one host to another: (sending host, receiving host, picoseconds).
    late: (usize, usize, Time),
    flit: u32,
    header: u32,
    /// Payload bytes by kind of message.
    payloads: Vec<u32>,
    /// Port of each tile into its mesh.
    into: Vec<Direction>,
    /// Links from each host to the switch, and back.
    pub to_switch: Vec<Direction>,
    pub from_switch: Vec<Direction>,
    /// Links between switches of two levels; `None` with a single switch.
    uplinks: Option<Uplinks>,
    /// Traffic by kind of message.
    pub taken: Vec<TrafficTotals>,
    /// Bytes sent by caching agents and by homes, on meshes or between hosts, headers included.
    pub bytes_by_caches: u64,
    pub bytes_by_homes: u64,
}

impl Hosts {
    /// Creates idle hosts. Returns `None` if the platform has none.
    pub fn new(platform: &Platform, kinds: &[Kind]) -> Option<Hosts> {
        let hosts = platform.hosts.as_ref()?;
        let link = &platform.link;
        let payloads: Vec<u32> = kinds.iter().map(|kind| kind.payload).collect();
        let flit = hosts.flit.value.max(1) as u32;
        let header = link.header_bytes.value as u32;
        let sizes: Rc<[Size]> = payloads
            .iter()
            .map(|&bytes| Size::new(link, bytes))
            .collect();
        // On a mesh, a message occupies whole flits.
        let mut mesh = link.clone();
        mesh.bandwidth = rate(u64::from(flit), &hosts.flit_time);
        (
            mesh.latency.value,
            mesh.header_bytes.value,
            mesh.links.value,
        ) = (0, 0, 1);
        let whole = |bytes: u32| (header + bytes).next_multiple_of(flit);
        let flits = payloads.iter().map(|&bytes| Size::new(&mesh, whole(bytes)));
        let flits: Rc<[Size]> = flits.collect();
        let (count, tiles) = (hosts.count.value, hosts.columns.value * hosts.rows.value);
        let port = || Direction::new(link, &sizes, 0);
        let uplinks = platform.uplink.as_ref().map(|uplink| {
            let mut between = link.clone();
            between.links = uplink.links.clone();
            between.bandwidth = uplink.bandwidth.clone();
            between.latency = uplink.latency.clone();
            let sizes = payloads.iter().map(|&bytes| Size::new(&between, bytes));
            let sizes: Rc<[Size]> = sizes.collect();
            let ways = || {
                let switches = 0..count.div_ceil(uplink.hosts.value);
                let way = |_| Direction::new(&between, &sizes, 0);
                switches.map(way).collect()
            };
            Uplinks {
                hosts: uplink.hosts.value as usize,
                up: ways(),
                down: ways(),
            }
        });
        Some(Hosts {
            count,
            homes: platform.homes(),
            slices: platform.home.slices.value,
            columns: hosts.columns.value,
            tiles,
            hop: hosts.hop.value,
            late: (
                hosts.late_from.value as usize,
                hosts.late_to.value as usize,
                hosts.late.value,
            ),
            flit,
            header,
            taken: vec![TrafficTotals::default(); payloads.len()],
            payloads,
            into: (0..count * tiles)
                .map(|_| Direction::new(&mesh, &flits, 0))
                .collect(),
            to_switch: (0..count).map(|_| port()).collect(),
            from_switch: (0..count).map(|_| port()).collect(),
            uplinks,
            bytes_by_caches: 0,
            bytes_by_homes: 0,
        })
    }

    fn tile(&self, one: u64, place: u64) -> Tile {
        Tile {
            host: (one & (self.count - 1)) as usize,
            number: place % self.tiles,
        }
    }

    fn of_cache(&self, cache: Agent) -> Tile {
        self.tile(cache.0.into(), u64::from(cache.0) / self.count)
    }

    /// Returns the tile at which a home serves a line: that of the line's slice.
    fn of_home(&self, line: Line) -> Tile {
        let line = u64::from(line);
        let (home, slice) = (line & (self.homes - 1), line / self.homes % self.slices);
        self.tile(home, home / self.count * self.slices + slice)
    }

    /// Returns the tiles of a message's sender and receiver.
    fn ends(&self, message: &Message) -> [Tile; 2] {
        let from = match (message.from, message.to) {
            // A message from home to home is about no line, and carries the number of its sender.
            (HOME, HOME) => self.of_home(message.word.into()),
            (HOME, _) => self.of_home(message.line),
            (cache, _) => self.of_cache(cache),
        };
        let to = match message.to {
            HOME => self.of_home(message.line),
            cache => self.of_cache(cache),
        };
        [from, to]
    }

    /// Latency from one tile to another of the same host.
    fn hops(&self, from: u64, to: u64) -> Time {
        let along = (from % self.columns).abs_diff(to % self.columns);
        let across = (from / self.columns).abs_diff(to / self.columns);
        (along + across) * self.hop
    }

    /// Prefetches the state that the next message of a caching agent, or the answer to a message, needs.
    pub fn prefetch(&self, from: Agent, line: Line) {
        let tile = match from {
            HOME => self.of_home(line),
            cache => self.of_cache(cache),
        };
        self.into[tile.host * self.tiles as usize + tile.number as usize].prefetch_links();
    }

    /// Sends a message into the mesh of its host. Returns when it arrives, and true if it arrives at the switch, not at
    /// its receiver.
    pub fn send(
        &mut self,
        sent: Sent,
        message: &Message,
        random: &mut Random,
        order: Option<Order>,
    ) -> (Time, bool) {
        let [from, to] = self.ends(message);
        let kind = message.kind.index();
        let bytes = self.header + self.payloads[kind] + more(message);
        let flits = u64::from(bytes.next_multiple_of(self.flit));
        match message.from {
            HOME => self.bytes_by_homes += u64::from(bytes),
            _ => self.bytes_by_caches += u64::from(bytes),
        }
        let what = (message.kind, more(message));
        let into = &mut self.into[from.host * self.tiles as usize + from.number as usize];
        let entered = into.send(sent, what, random, order);
        let taken = &mut self.taken[kind];
        if from.host == to.host {
            taken.mesh_bytes += flits;
            return (entered + self.hops(from.number, to.number), false);
        }
        taken.between += 1;
        taken.between_bytes += u64::from(bytes);
        taken.mesh_bytes += 2 * flits;
        let at_port = entered + self.hops(from.number, 0);
        let port = &mut self.to_switch[from.host];
        let sent = Sent {
            ready: at_port,
            ..sent
        };
        (port.send(sent, what, random, order), true)
    }

    /// Total time that messages waited for links between switches.
    pub fn uplink_wait(&self) -> Time {
        let ways = self
            .uplinks
            .iter()
            .flat_map(|of| of.up.iter().chain(&of.down));
        ways.map(|way| way.waited).sum()
    }

    /// Sends a message from a switch. Returns when it arrives, and the next switch; `None` for its receiver.
    pub fn send_from_switch(
        &mut self,
        at: SwitchHop,
        sent: Sent,
        message: &Message,
        random: &mut Random,
        order: Option<Order>,
    ) -> (Time, Option<SwitchHop>) {
        let [from, to] = self.ends(message);
        let what = (message.kind, more(message));
        if let Some(uplinks) = &mut self.uplinks {
            let [first, last] = [from, to].map(|tile| tile.host / uplinks.hosts);
            let next = match at {
                SwitchHop::First if first != last => {
                    Some((&mut uplinks.up[first], SwitchHop::Above))
                }
                SwitchHop::Above => Some((&mut uplinks.down[last], SwitchHop::Last)),
                SwitchHop::First | SwitchHop::Last => None,
            };
            if let Some((way, next)) = next {
                return (way.send(sent, what, random, order), Some(next));
            }
        }
        let late = match self.late {
            (one, other, late) if (one, other) == (from.host, to.host) => late,
            _ => 0,
        };
        let port = &mut self.from_switch[to.host];
        let at_port = port.send(sent, what, random, order);
        (at_port + self.hops(0, to.number) + late, None)
    }
}

/// Bytes of a message beyond those of its kind, which include one word.
#[inline(always)]
pub(crate) fn more(message: &Message) -> u32 {
    8 * u32::from(message.words.saturating_sub(1))
}

/// Returns the rate of `bytes` in `time`; a time of 0 means an unlimited rate, encoded as 0.
fn rate(bytes: u64, time: &Quantity) -> Quantity {
    let picoseconds = u128::from(crate::kernel::SECOND);
    let rate = match u128::from(time.value) {
        0 => 0,
        time => u128::from(bytes) * picoseconds / time,
    };
    Quantity::given(rate as u64, &time.origin)
}

/// Number of bytes for fields of `bits` bits, less those that fit into the header.
pub(crate) fn field_bytes(bits: u64, hosts: &platform::Hosts) -> u32 {
    bits.saturating_sub(hosts.free_bits.value).div_ceil(8) as u32
}

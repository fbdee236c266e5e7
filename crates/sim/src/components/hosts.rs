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
use crate::platform::{self, Platform};
use crate::simulation::Kind;
use cohkit_units::Quantity;
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
    /// Host number.
    host: usize,
    /// Number in the host, row by row. Tile 0 is next to the port at the switch.
    number: u64,
}

/// Links between the switches of the first level and the top switch.
struct Uplinks {
    /// Number of hosts at each switch of the first level.
    hosts_per_switch: usize,
    /// Links from each switch of the first level to the top.
    up: Vec<Direction>,
    /// Links from the top to each switch of the first level.
    down: Vec<Direction>,
}

/// All hosts of a machine.
pub(crate) struct Hosts {
    /// Number of hosts, a power of two.
    count: u64,
    /// Number of homes, a power of two.
    homes: u64,
    /// Number of slices of each home, a power of two.
    slices: u64,
    /// Number of columns of a mesh.
    columns: u64,
    /// Number of tiles of a mesh.
    tiles: u64,
    /// Latency from a tile to its neighbour, in picoseconds.
    hop_latency: Time,
    /// Extra latency from one host to another: (sending host, receiving host, picoseconds).
    extra_latency: (usize, usize, Time),
    /// Bytes of a flit on a mesh.
    flit_bytes: u32,
    /// Bytes of a message in addition to its payload.
    header_bytes: u32,
    /// Payload bytes by kind of message.
    payloads: Vec<u32>,
    /// Port of each tile into its mesh: tile T of host H is at H * tiles + T.
    tile_ports: Vec<Direction>,
    /// Links from each host to its switch, by host number.
    pub to_switch: Vec<Direction>,
    /// Links to each host from its switch, by host number.
    pub from_switch: Vec<Direction>,
    /// Links between switches of two levels; `None` with a single switch.
    uplinks: Option<Uplinks>,
    /// Traffic by kind of message.
    pub totals_by_kind: Vec<TrafficTotals>,
    /// Bytes sent by caching agents, on meshes or between hosts, headers included.
    pub bytes_by_caches: u64,
    /// Bytes sent by homes, on meshes or between hosts, headers included.
    pub bytes_by_homes: u64,
}

impl Hosts {
    /// Creates idle hosts. `kinds` has an entry for each message kind of the protocol. Returns `None` if the
    /// platform has no hosts.
    pub fn new(platform: &Platform, kinds: &[Kind]) -> Option<Hosts> {
        let hosts = platform.hosts.as_ref()?;
        let link = &platform.link;
        let payloads: Vec<u32> = kinds.iter().map(|kind| kind.payload).collect();
        let flit_bytes = hosts.flit_bytes.value.max(1) as u32;
        let header_bytes = link.header_bytes.value as u32;
        let sizes: Rc<[Size]> = payloads
            .iter()
            .map(|&bytes| Size::new(link, bytes))
            .collect();
        // On a mesh, a message occupies whole flits.
        let mut mesh = link.clone();
        mesh.bandwidth = rate(u64::from(flit_bytes), &hosts.flit_interval);
        (
            mesh.latency.value,
            mesh.header_bytes.value,
            mesh.count.value,
        ) = (0, 0, 1);
        let mesh_bytes = |bytes: u32| (header_bytes + bytes).next_multiple_of(flit_bytes);
        let flits = payloads
            .iter()
            .map(|&bytes| Size::new(&mesh, mesh_bytes(bytes)));
        let flits: Rc<[Size]> = flits.collect();
        let (count, tiles) = (hosts.count.value, hosts.columns.value * hosts.rows.value);
        let port = || Direction::new(link, &sizes, 0);
        let uplinks = platform.uplink.as_ref().map(|uplink| {
            let mut uplink_link = link.clone();
            uplink_link.count = uplink.links.clone();
            uplink_link.bandwidth = uplink.bandwidth.clone();
            uplink_link.latency = uplink.latency.clone();
            let sizes = payloads.iter().map(|&bytes| Size::new(&uplink_link, bytes));
            let sizes: Rc<[Size]> = sizes.collect();
            let new_directions = || {
                let switches = 0..count.div_ceil(uplink.hosts.value);
                let new_direction = |_| Direction::new(&uplink_link, &sizes, 0);
                switches.map(new_direction).collect()
            };
            Uplinks {
                hosts_per_switch: uplink.hosts.value as usize,
                up: new_directions(),
                down: new_directions(),
            }
        });
        Some(Hosts {
            count,
            homes: platform.homes(),
            slices: platform.home.slices.value,
            columns: hosts.columns.value,
            tiles,
            hop_latency: hosts.hop_latency.value,
            extra_latency: (
                hosts.extra_latency_from.value as usize,
                hosts.extra_latency_to.value as usize,
                hosts.extra_latency.value,
            ),
            flit_bytes,
            header_bytes,
            totals_by_kind: vec![TrafficTotals::default(); payloads.len()],
            payloads,
            tile_ports: (0..count * tiles)
                .map(|_| Direction::new(&mesh, &flits, 0))
                .collect(),
            to_switch: (0..count).map(|_| port()).collect(),
            from_switch: (0..count).map(|_| port()).collect(),
            uplinks,
            bytes_by_caches: 0,
            bytes_by_homes: 0,
        })
    }

    /// Returns the tile of the agent or home `index`, at the position `tile_index` in its host. Positions beyond
    /// the last tile wrap around.
    fn tile(&self, index: u64, tile_index: u64) -> Tile {
        Tile {
            host: (index & (self.count - 1)) as usize,
            number: tile_index % self.tiles,
        }
    }

    /// Returns the tile of a caching agent.
    fn cache_tile(&self, cache: Agent) -> Tile {
        self.tile(cache.0.into(), u64::from(cache.0) / self.count)
    }

    /// Returns the tile at which a home serves a line: that of the line's slice.
    fn home_tile(&self, line: Line) -> Tile {
        let line = u64::from(line);
        let (home, slice) = (line & (self.homes - 1), line / self.homes % self.slices);
        self.tile(home, home / self.count * self.slices + slice)
    }

    /// Returns the tiles of a message's sender and receiver.
    fn endpoint_tiles(&self, message: &Message) -> [Tile; 2] {
        let from = match (message.from, message.to) {
            // A message from home to home is about no line, and carries the number of its sender.
            (HOME, HOME) => self.home_tile(message.word.into()),
            (HOME, _) => self.home_tile(message.line),
            (cache, _) => self.cache_tile(cache),
        };
        let to = match message.to {
            HOME => self.home_tile(message.line),
            cache => self.cache_tile(cache),
        };
        [from, to]
    }

    /// Latency from one tile to another of the same host, in picoseconds: that of the hops along both axes.
    fn mesh_latency(&self, from: u64, to: u64) -> Time {
        let column_distance = (from % self.columns).abs_diff(to % self.columns);
        let row_distance = (from / self.columns).abs_diff(to / self.columns);
        (column_distance + row_distance) * self.hop_latency
    }

    /// Prefetches the state that the next message of a caching agent, or the answer to a message, needs.
    pub fn prefetch(&self, from: Agent, line: Line) {
        let tile = match from {
            HOME => self.home_tile(line),
            cache => self.cache_tile(cache),
        };
        self.tile_ports[tile.host * self.tiles as usize + tile.number as usize].prefetch_links();
    }

    /// Sends a message into the mesh of its host, and counts its traffic. Returns the arrival time in picoseconds,
    /// and true if the message arrives at the switch, not at its receiver.
    pub fn send(
        &mut self,
        sent: Sent,
        message: &Message,
        random: &mut Random,
        order: Option<Order>,
    ) -> (Time, bool) {
        let [from, to] = self.endpoint_tiles(message);
        let kind = message.kind.index();
        let bytes = self.header_bytes + self.payloads[kind] + extra_bytes(message);
        let flits = u64::from(bytes.next_multiple_of(self.flit_bytes));
        match message.from {
            HOME => self.bytes_by_homes += u64::from(bytes),
            _ => self.bytes_by_caches += u64::from(bytes),
        }
        let kind_and_extra = (message.kind, extra_bytes(message));
        let tile_port =
            &mut self.tile_ports[from.host * self.tiles as usize + from.number as usize];
        let entered = tile_port.send(sent, kind_and_extra, random, order);
        let totals = &mut self.totals_by_kind[kind];
        if from.host == to.host {
            totals.mesh_bytes += flits;
            return (entered + self.mesh_latency(from.number, to.number), false);
        }
        totals.between += 1;
        totals.between_bytes += u64::from(bytes);
        totals.mesh_bytes += 2 * flits;
        let at_port = entered + self.mesh_latency(from.number, 0);
        let port = &mut self.to_switch[from.host];
        let sent = Sent {
            ready: at_port,
            ..sent
        };
        (port.send(sent, kind_and_extra, random, order), true)
    }

    /// Total time that messages waited for links between switches, in picoseconds.
    pub fn uplink_wait(&self) -> Time {
        let directions = self
            .uplinks
            .iter()
            .flat_map(|uplinks| uplinks.up.iter().chain(&uplinks.down));
        directions.map(|direction| direction.waited).sum()
    }

    /// Sends a message from a switch. Returns the arrival time in picoseconds, and the next switch; `None` for its
    /// receiver.
    pub fn send_from_switch(
        &mut self,
        hop: SwitchHop,
        sent: Sent,
        message: &Message,
        random: &mut Random,
        order: Option<Order>,
    ) -> (Time, Option<SwitchHop>) {
        let [from, to] = self.endpoint_tiles(message);
        let kind_and_extra = (message.kind, extra_bytes(message));
        if let Some(uplinks) = &mut self.uplinks {
            let [first, last] = [from, to].map(|tile| tile.host / uplinks.hosts_per_switch);
            let next = match hop {
                SwitchHop::First if first != last => {
                    Some((&mut uplinks.up[first], SwitchHop::Above))
                }
                SwitchHop::Above => Some((&mut uplinks.down[last], SwitchHop::Last)),
                SwitchHop::First | SwitchHop::Last => None,
            };
            if let Some((link, next)) = next {
                return (link.send(sent, kind_and_extra, random, order), Some(next));
            }
        }
        let extra_latency = match self.extra_latency {
            (from_host, to_host, latency) if (from_host, to_host) == (from.host, to.host) => {
                latency
            }
            _ => 0,
        };
        let port = &mut self.from_switch[to.host];
        let at_port = port.send(sent, kind_and_extra, random, order);
        (
            at_port + self.mesh_latency(0, to.number) + extra_latency,
            None,
        )
    }
}

/// Bytes of a message beyond those of its kind, which include one word.
#[inline(always)]
pub(crate) fn extra_bytes(message: &Message) -> u32 {
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

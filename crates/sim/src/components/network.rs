//! Paths of messages: links of the caching agents, and a switch between these and the homes.
//!
//! Without a switch, a message takes the links of its sender, or those of its receiver if a home sends it. With a
//! switch, every caching agent and every home has a port there. A message takes its sender's links to the switch, and
//! continues on its receiver's links when there is room behind them. Only then is its place at the switch free again.

use super::layer::{self, Port};
use super::link::{Direction, Size};
use crate::data::mix;
use crate::message::{Line, Message, HOME};
use crate::platform::{self, Platform};
use crate::simulation::groups::{Group, Groups, KindQuantities};
use crate::simulation::Kind;
use cohkit_protocol::protocol::Protocol;
use std::rc::Rc;

/// All links of a machine.
pub struct Network {
    /// Links from each caching agent, by agent number.
    pub up: Vec<Direction>,
    /// Links to each caching agent, by agent number.
    pub down: Vec<Direction>,
    /// Links from each home to the switch and back, by home number; empty without a switch. The number of homes is
    /// a power of two.
    homes: Vec<[Direction; 2]>,
    /// Framed links of each caching agent and, with a switch, of each home after these; empty if none are framed. Side
    /// 0 of each port is the agent's or home's own.
    pub(crate) ports: Vec<Option<Port>>,
    /// Indices into `ports` at which a message for another space has arrived.
    pub(crate) ports_with_foreign_messages: Vec<u32>,
}

impl Network {
    /// Creates idle links. `kind_quantities` has an entry for each group of caching agents, `kinds` one for each
    /// message kind of the protocol. `seed` determines the bit errors and failures of framed links.
    ///
    /// # Errors
    /// A sentence, if the protocol's messages do not fit the framing of a link.
    pub(crate) fn new(
        platform: &Platform,
        groups: &Groups,
        kind_quantities: &[KindQuantities],
        protocol: &Protocol,
        kinds: &[Kind],
        seed: u64,
    ) -> Result<Network, String> {
        let circuits = protocol.orders.len() + protocol.channels.len();
        let sizes = |link: &platform::Link| -> Rc<[Size]> {
            kinds
                .iter()
                .map(|kind| Size::new(link, kind.payload))
                .collect()
        };
        let sizes_by_kind: Vec<Rc<[Size]>> = kind_quantities
            .iter()
            .map(|quantities| sizes(quantities.link))
            .collect();
        let cache_directions = || {
            let kinds = groups
                .groups
                .iter()
                .zip(kind_quantities)
                .zip(&sizes_by_kind);
            let group_directions =
                |((group, quantities), sizes): ((&Group, &KindQuantities), &Rc<[Size]>)| {
                    let new_direction = |_| Direction::new(quantities.link, sizes, circuits);
                    group.caches.iter().map(new_direction).collect::<Vec<_>>()
                };
            kinds.flat_map(group_directions).collect()
        };
        // A home's port has the links of the first kind of caching agents.
        let direction = || Direction::new(&platform.link, &sizes_by_kind[0], circuits);
        let ports = match platform.switch {
            Some(_) => platform.homes(),
            None => 0,
        };
        let payloads: Vec<u32> = kinds.iter().map(|kind| kind.payload).collect();
        let mut framed_ports = Vec::new();
        for (group, quantities) in groups.groups.iter().zip(kind_quantities) {
            let Some(layer) = &quantities.link.layer else {
                framed_ports.extend(group.caches.iter().map(|_| None));
                continue;
            };
            let timings = layer::kind_timings(protocol, layer.framing, &payloads)?;
            layer::check(layer)?;
            let port = |number: u64| {
                Some(Port::new(
                    quantities.link,
                    layer,
                    &timings,
                    mix(seed ^ number),
                    false,
                ))
            };
            framed_ports.extend(group.caches.iter().map(|cache| port(cache.0.into())));
        }
        for home in 0..ports {
            let port = |layer: &platform::Layer| -> Result<Port, String> {
                let timings = layer::kind_timings(protocol, layer.framing, &payloads)?;
                layer::check(layer)?;
                let seed = mix(seed ^ (u64::from(HOME.0) + home));
                Ok(Port::new(&platform.link, layer, &timings, seed, true))
            };
            framed_ports.push(platform.link.layer.as_ref().map(port).transpose()?);
        }
        if framed_ports.iter().all(Option::is_none) {
            framed_ports.clear();
        }
        Ok(Network {
            up: cache_directions(),
            down: cache_directions(),
            homes: (0..ports).map(|_| [direction(), direction()]).collect(),
            ports: framed_ports,
            ports_with_foreign_messages: Vec::new(),
        })
    }

    /// Lets the agents of another space, from its agent `first` on, use the framed links of this space's agents in
    /// reverse. Ports that are not framed in both spaces stay separate.
    pub(crate) fn share_links(&self, other: &mut Network, first: usize) {
        let other_ports = other.ports.iter_mut().skip(first);
        for (port, other_port) in self.ports.iter().zip(other_ports) {
            if let (Some(port), Some(replaced)) = (port, &other_port) {
                *other_port = Some(port.reversed(replaced));
            }
        }
    }

    /// Completes the outstanding acknowledgements and credits of the links at the end of a run.
    pub(crate) fn settle_links(&mut self) {
        self.ports.iter_mut().flatten().for_each(Port::settle);
    }

    /// Returns the framed links that a message takes first or last: their index in `ports`, the side at which it
    /// enters (0 or 1), and the port. Returns `None` if these links are not framed.
    #[inline(always)]
    pub(crate) fn framed_links(
        &mut self,
        message: &Message,
        last: bool,
    ) -> Option<(usize, usize, &mut Port)> {
        if self.ports.is_empty() {
            return None;
        }
        let switched = self.is_switched();
        let line = match message.from {
            HOME if !last => message.sender_line(),
            _ => message.line,
        };
        let home = self.up.len() + (line as usize & self.homes.len().saturating_sub(1));
        let (port_index, side) = match (message.from, message.to) {
            (HOME, _) if switched && !last => (home, 0),
            (_, HOME) if switched && last => (home, 1),
            (_, to) if switched && last => (to.index(), 1),
            (HOME, to) => (to.index(), 1),
            (from, _) => (from.index(), 0),
        };
        let port = self.ports[port_index].as_mut()?;
        Some((port_index, side, port))
    }

    /// True if messages pass a switch.
    #[inline]
    pub fn is_switched(&self) -> bool {
        !self.homes.is_empty()
    }

    /// Returns the links of each home at a switch: side 0 to the switch, side 1 from it.
    pub(crate) fn of_homes(&self, side: usize) -> Vec<&Direction> {
        self.homes.iter().map(|sides| &sides[side]).collect()
    }

    /// Returns the links of the home of a line. Only with a switch.
    fn port(&mut self, line: Line) -> &mut [Direction; 2] {
        let homes = self.homes.len();
        &mut self.homes[line as usize & (homes - 1)]
    }

    /// Returns the links that a message takes first, and those that it takes last; both are the same without a
    /// switch.
    #[inline(always)]
    pub fn links_of(&self, message: &Message) -> [&Direction; 2] {
        let port =
            |line: Line, side: usize| &self.homes[line as usize & (self.homes.len() - 1)][side];
        let first = match message.from {
            HOME if self.is_switched() => port(message.sender_line(), 0),
            HOME => &self.down[message.to.index()],
            from => &self.up[from.index()],
        };
        let last = match message.to {
            _ if !self.is_switched() => first,
            HOME => port(message.line, 1),
            to => &self.down[to.index()],
        };
        [first, last]
    }

    /// Returns the links that a message takes first.
    #[inline(always)]
    pub fn links_from_sender(&mut self, message: &Message) -> &mut Direction {
        match message.from {
            HOME if self.is_switched() => &mut self.port(message.sender_line())[0],
            HOME => &mut self.down[message.to.index()],
            from => &mut self.up[from.index()],
        }
    }

    /// Returns the links that a message takes last.
    #[inline(always)]
    pub fn links_to_receiver(&mut self, message: &Message) -> &mut Direction {
        match message.to {
            _ if !self.is_switched() => self.links_from_sender(message),
            HOME => &mut self.port(message.line)[1],
            to => &mut self.down[to.index()],
        }
    }
}

//! Texts that compose protocols: several spaces of addresses in one machine.
//!
//! Each used text is a protocol over a space of its own, and two spaces share nothing: no line, no channel, no memory.
//! So whatever they do together is what each does alone, and their states are the product of those of the parts.
//! But where a home stands [over](Over) a cache of another text, its memory is that cache's copy: two levels.

use crate::protocol::{Protocol, System};
use crate::remotes::KindId;

/// A text that composes protocols.
#[derive(Clone, Debug)]
pub struct Composition {
    /// Name after the keyword `protocol`.
    pub name: String,
    /// The quoted title, or empty.
    pub title: String,
    /// The texts used, in the order of this one.
    pub spaces: Vec<Space>,
    /// Which of them are below others.
    pub levels: Vec<Over>,
    /// What is at one place. Nodes add no rule, and their order is that of the text.
    pub nodes: Vec<Node>,
    /// What is checked.
    pub systems: Vec<Joint>,
}

/// What is at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The parts there.
    pub parts: Vec<Place>,
}

/// A part of a text used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Remotes of a kind, of a space among [`Composition::spaces`].
    Remotes(usize, KindId),
    /// The home of a space.
    Home(usize),
}

/// Both directions between a host and a device: two spaces, of which either has its home at one of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directions {
    /// The space whose home is at the device, and whose lines only the host caches.
    pub device: usize,
    /// The space whose home is at the host, and whose lines both cache: the host by the first kind of remotes, the device by
    /// the second.
    pub host: usize,
}

impl Composition {
    /// Which space is the device's and which the host's, if the text has these two at two nodes and nothing else.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub fn directions(&self) -> Result<Directions, String> {
        let name = &self.name;
        if self.spaces.len() != 2 || !self.levels.is_empty() || self.nodes.len() != 2 {
            return Err(format!(
                "`{name}` is not two spaces at two nodes, a host and a device"
            ));
        }
        let home = |space: usize| {
            let of = |node: &Node| node.parts.contains(&Place::Home(space));
            self.nodes.iter().position(of)
        };
        let kinds = |space: usize, node: usize| -> Vec<u8> {
            let parts = self.nodes[node].parts.iter();
            let of = parts.filter_map(|part| match part {
                Place::Remotes(of, kind) if *of == space => Some(kind.0),
                _ => None,
            });
            of.collect()
        };
        for (device, host) in [(0, 1), (1, 0)] {
            let (Some(card), Some(socket)) = (home(device), home(host)) else {
                continue;
            };
            let cpu = kinds(device, card).is_empty() && kinds(device, socket) == [0];
            if card != socket && cpu && kinds(host, socket) == [0] && kinds(host, card) == [1] {
                return Ok(Directions { device, host });
            }
        }
        Err(format!(
            "the nodes of `{name}` are not a host and a device: one with a home and the first remotes of both spaces, and one with the other home and the second remotes of the first"
        ))
    }
}

/// A home of one text stands over the caches of another: its memory is the copy that the cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// The text whose home it is, among [`Composition::spaces`].
    pub inner: usize,
    /// The text whose caches they are.
    pub outer: usize,
}

/// A text used.
#[derive(Clone, Debug)]
pub struct Space {
    /// The name that it has here.
    pub name: String,
    /// The file as the text names it.
    pub file: String,
    /// What it says.
    pub protocol: Protocol,
}

/// A system of all spaces.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Name after the keyword `system`.
    pub name: String,
    /// What of it is in each space, named `SYSTEM.SPACE`; of a space that is below another, what is below each cache.
    pub parts: Vec<System>,
}

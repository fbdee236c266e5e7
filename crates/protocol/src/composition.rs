//! Files that compose protocols: several address spaces in one machine.
//!
//! Each used file is a protocol over a space of its own. Two spaces share nothing: no line, no channel, no memory.
//! Their joint behaviour is therefore the product of the parts, and so is the state space. The exception is a home that
//! is backed by a cache of another protocol ([`LevelBinding`]): its memory is that cache's copy, which makes two
//! levels. Homes of several protocols may be over the caches of one outer protocol.

use crate::protocol::{Protocol, System};
use crate::remotes::KindId;

/// A file that composes protocols.
#[derive(Clone, Debug)]
pub struct Composition {
    /// Name after the keyword `protocol`.
    pub name: String,
    /// The quoted title, or empty.
    pub title: String,
    /// Used files, in the order of this one.
    pub spaces: Vec<Space>,
    /// Links between spaces of an inner and an outer level.
    pub levels: Vec<LevelBinding>,
    /// Nodes, in the order of the file. They group agents and add no rule.
    pub nodes: Vec<Node>,
    /// Systems to check, each over all spaces.
    pub systems: Vec<JointSystem>,
}

/// Agents at one location of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Agents at this location.
    pub parts: Vec<Place>,
}

/// A group of agents of a used file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Remotes of one kind, in a space given by its index into [`Composition::spaces`].
    Remotes(usize, KindId),
    /// Home of a space.
    Home(usize),
}

/// Spaces of a host and a device that cache each other's memory: one space has its home at the device, the other at
/// the host. Both fields are indices into [`Composition::spaces`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directions {
    /// Space whose home is at the device, and whose lines only the host caches.
    pub device: usize,
    /// Space whose home is at the host, and whose lines both cache: the host by the first kind of remotes, the device
    /// by the second.
    pub host: usize,
}

impl Composition {
    /// Levels that share lines, one group for each outer level.
    pub fn joined_levels(&self) -> Vec<JoinedLevels> {
        let mut groups: Vec<JoinedLevels> = Vec::new();
        for level in &self.levels {
            match groups.iter_mut().find(|group| group.outer == level.outer) {
                Some(group) => group.inner.push(level.inner),
                None => groups.push(JoinedLevels {
                    outer: level.outer,
                    inner: vec![level.inner],
                }),
            }
        }
        groups
    }

    /// Finds the device's and the host's space, if the file has exactly these two spaces at two nodes.
    ///
    /// # Errors
    /// A sentence that names the missing part.
    pub fn directions(&self) -> Result<Directions, String> {
        let name = &self.name;
        if self.spaces.len() != 2 || !self.levels.is_empty() || self.nodes.len() != 2 {
            return Err(format!(
                "`{name}` is not two spaces at two nodes, a host and a device"
            ));
        }
        let home = |space: usize| {
            let has_home = |node: &Node| node.parts.contains(&Place::Home(space));
            self.nodes.iter().position(has_home)
        };
        let kinds = |space: usize, node: usize| -> Vec<u8> {
            let parts = self.nodes[node].parts.iter();
            let kinds = parts.filter_map(|part| match part {
                Place::Remotes(part_space, kind) if *part_space == space => Some(kind.0),
                _ => None,
            });
            kinds.collect()
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

/// Link of two levels: the memory of an inner home is the copy that an outer cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelBinding {
    /// Space of the inner level's home, among [`Composition::spaces`].
    pub inner: usize,
    /// Space of the outer level's caches, among [`Composition::spaces`].
    pub outer: usize,
}

/// An outer level with all inner levels below its caches. The fields are indices into [`Composition::spaces`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinedLevels {
    /// Space of the outer level.
    pub outer: usize,
    /// Spaces of the inner levels, in the order of the nodes.
    pub inner: Vec<usize>,
}

/// A used file, with its name in the composition.
#[derive(Clone, Debug)]
pub struct Space {
    /// Name of the space in the composition.
    pub name: String,
    /// File name as written in the composition.
    pub file: String,
    /// Protocol of the file.
    pub protocol: Protocol,
}

/// A system over all spaces.
#[derive(Clone, Debug)]
pub struct JointSystem {
    /// Name after the keyword `system`.
    pub name: String,
    /// Part of each space, named `SYSTEM.SPACE`. In an inner space, the part below each outer cache.
    pub parts: Vec<System>,
    /// Number of homes of each space: in an inner space, the number of outer caches that hold their memory; 1 in any
    /// other.
    pub homes: Vec<u16>,
}

//! Upper bounds that a constructed home knows for its remotes' permissions.

use super::program::KNOWN;
use super::Construction;
use crate::controller::Controller;
use crate::execute::{Configuration, Machine};
use crate::protocol::Right;

/// Highest permission of remotes that a home's knowledge allows, including grants in flight, for each configuration of
/// the home's controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownRights {
    /// For each state of a flat home, or each knowledge class of a factored one.
    rights: Vec<Right>,
    factored: bool,
}

impl KnownRights {
    /// Highest permission that any of this many remotes may have for the line.
    pub fn most(&self, controller: &Controller, remotes: u16, home: &Configuration) -> Right {
        let of = |index: u16| self.rights[usize::from(index)];
        if !self.factored {
            return of(home.state);
        }
        let first = Machine::new(controller, remotes).slot(KNOWN.0);
        let known = &home.slots[first..first + usize::from(remotes)];
        known
            .iter()
            .map(|&known| of(known))
            .max()
            .unwrap_or(Right::None)
    }
}

impl Construction<'_> {
    /// Permissions known to the home of [`Construction::controller`].
    pub fn rights(&self, remotes: u16) -> KnownRights {
        match remotes {
            1 => self.flat_rights(true),
            _ => self.factored_rights(true),
        }
    }

    /// Permissions known to the home of [`Construction::flat`].
    pub fn flat_rights(&self, merge: bool) -> KnownRights {
        let facts = |&member: &u32| self.knowledge.facts(self.graph.known(member, 0)).rights;
        let states = self.table(merge).states;
        let rights = states
            .iter()
            .map(|state| state.members.iter().map(facts).max());
        KnownRights {
            rights: rights.map(|most| most.unwrap_or(Right::None)).collect(),
            factored: false,
        }
    }

    /// Permissions known to the home of [`Construction::factored`].
    pub fn factored_rights(&self, merge: bool) -> KnownRights {
        let count = self.knowledge.count();
        let mut rights = Vec::new();
        for set in 0..count {
            let class = if merge {
                self.class_of[set] as usize
            } else {
                set
            };
            let its = self.knowledge.facts(super::KnowledgeId(set as u16)).rights;
            match rights.get_mut(class) {
                Some(most) => *most = its.max(*most),
                None => rights.push(its),
            }
        }
        KnownRights {
            rights,
            factored: true,
        }
    }
}

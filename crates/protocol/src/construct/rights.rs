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
    pub fn highest(&self, controller: &Controller, remotes: u16, home: &Configuration) -> Right {
        let right_of = |index: u16| self.rights[usize::from(index)];
        if !self.factored {
            return right_of(home.state);
        }
        let first = Machine::new(controller, remotes).slot(KNOWN.0);
        let known_sets = &home.slots[first..first + usize::from(remotes)];
        known_sets
            .iter()
            .map(|&set| right_of(set))
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
        let facts = |&member: &u32| self.knowledge.facts(self.graph.knowledge(member, 0)).rights;
        let states = self.table(merge).states;
        let rights = states
            .iter()
            .map(|state| state.members.iter().map(facts).max());
        KnownRights {
            rights: rights
                .map(|permission| permission.unwrap_or(Right::None))
                .collect(),
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
            let permission = self.knowledge.facts(super::KnowledgeId(set as u16)).rights;
            match rights.get_mut(class) {
                Some(highest) => *highest = permission.max(*highest),
                None => rights.push(permission),
            }
        }
        KnownRights {
            rights,
            factored: true,
        }
    }
}

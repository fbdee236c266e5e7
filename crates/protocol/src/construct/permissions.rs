//! Upper bounds that a constructed home knows for its remotes' permissions.

use super::program::KNOWN;
use super::Construction;
use crate::controller::Controller;
use crate::execute::{Configuration, Machine};
use crate::protocol::Permission;

/// Highest permission of remotes that a home's knowledge allows, including grants in flight, for each configuration of
/// the home's controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPermissions {
    /// For each state of a flat home, or each knowledge class of a factored one.
    permissions: Vec<Permission>,
    /// True for a factored home: one entry per knowledge class. False for a flat one: one entry per state.
    factored: bool,
}

impl KnownPermissions {
    /// Highest permission that any of this many remotes may have for the line.
    pub fn highest(
        &self,
        controller: &Controller,
        remotes: u16,
        home: &Configuration,
    ) -> Permission {
        let permission_of = |index: u16| self.permissions[usize::from(index)];
        if !self.factored {
            return permission_of(home.state);
        }
        let first = Machine::new(controller, remotes).slot(KNOWN.0);
        let known_sets = &home.slots[first..first + usize::from(remotes)];
        known_sets
            .iter()
            .map(|&set| permission_of(set))
            .max()
            .unwrap_or(Permission::None)
    }
}

impl Construction<'_> {
    /// Permissions known to the home of [`Construction::controller`].
    pub fn permissions(&self, remotes: u16) -> KnownPermissions {
        match remotes {
            1 => self.flat_permissions(true),
            _ => self.factored_permissions(true),
        }
    }

    /// Permissions known to the home of [`Construction::flat`].
    pub fn flat_permissions(&self, merge: bool) -> KnownPermissions {
        let facts = |&member: &u32| {
            self.knowledge
                .facts(self.graph.knowledge(member, 0))
                .permissions
        };
        let states = self.table(merge).states;
        let permissions = states
            .iter()
            .map(|state| state.members.iter().map(facts).max());
        KnownPermissions {
            permissions: permissions
                .map(|permission| permission.unwrap_or(Permission::None))
                .collect(),
            factored: false,
        }
    }

    /// Permissions known to the home of [`Construction::factored`].
    pub fn factored_permissions(&self, merge: bool) -> KnownPermissions {
        let count = self.knowledge.count();
        let mut permissions = Vec::new();
        for set in 0..count {
            let class = if merge {
                self.class_of[set] as usize
            } else {
                set
            };
            let permission = self
                .knowledge
                .facts(super::KnowledgeId(set as u16))
                .permissions;
            match permissions.get_mut(class) {
                Some(highest) => *highest = permission.max(*highest),
                None => permissions.push(permission),
            }
        }
        KnownPermissions {
            permissions,
            factored: true,
        }
    }
}

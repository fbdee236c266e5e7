//! The searched part of a program.

use crate::model::Deadlock;
use crate::program::{Cell, Claim, Packing, Program};
use crate::symmetry::{Scratch, Symmetry};
use std::sync::Arc;

/// The part of a program that is searched: the whole or one component.
#[derive(Clone)]
pub(crate) struct View {
    /// Layout of the packed states: the slots of the component.
    pub packing: Packing,
    /// Rule instances that can fire, ordered by priority, then as in the program.
    pub rules: Vec<u32>,
    /// Conjuncts of invariants that the component can violate.
    pub invariants: Vec<Claim>,
    /// Conjuncts of the quiescent condition; `None` if drain is not checked.
    pub quiescent: Option<Vec<u32>>,
    /// True if a deadlock ends the search; false if it is only recorded.
    pub stop_at_deadlock: bool,
    /// States that count as deadlocks.
    pub deadlock: Deadlock,
    /// Symmetry of the view. If given, only one state of each orbit is stored.
    pub symmetry: Option<Arc<Symmetry>>,
}

impl View {
    /// All of a program.
    pub fn whole(program: &Program, deadlock: Deadlock) -> View {
        let mut rules: Vec<u32> = (0..program.rules.len() as u32)
            .filter(|&r| program.rules[r as usize].guard.is_some())
            .collect();
        // Rules of the smallest priority are tried first.
        rules.sort_by_key(|&r| program.rules[r as usize].priority);
        View {
            packing: Packing::new(program, 0..program.slots.len() as Cell),
            rules,
            invariants: program.properties.invariants.clone(),
            quiescent: program.properties.quiescent.clone(),
            stop_at_deadlock: true,
            deadlock,
            symmetry: None,
        }
    }

    /// Replaces a packed state by the representative of its orbit.
    #[inline(always)]
    pub fn canonicalise(&self, state: &mut [u64], scratch: &mut Scratch) {
        if let Some(symmetry) = &self.symmetry {
            symmetry.canonicalise(state, scratch);
        }
    }
}

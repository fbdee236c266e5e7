//! What of a program is searched.

use crate::model::Deadlock;
use crate::program::{Cell, Claim, Packing, Program};
use crate::symmetry::{Scratch, Symmetry};
use std::sync::Arc;

/// The part of a program that is searched: all of it or one component.
#[derive(Clone)]
pub(crate) struct View {
    pub packing: Packing,
    /// Rule instances that can fire, in order; those of a smaller priority first.
    pub rules: Vec<u32>,
    pub invariants: Vec<Claim>,
    /// Conjuncts of the quiescent condition; `None` if drain is not asked for.
    pub quiescent: Option<Vec<u32>>,
    /// Whether a deadlock ends the search, or is only noted.
    pub stop_at_deadlock: bool,
    pub deadlock: Deadlock,
    /// If given, one state of each orbit is stored for all.
    pub symmetry: Option<Arc<Symmetry>>,
}

impl View {
    /// All of a program.
    pub fn whole(program: &Program, deadlock: Deadlock) -> View {
        let mut rules: Vec<u32> = (0..program.rules.len() as u32)
            .filter(|&r| program.rules[r as usize].guard.is_some())
            .collect();
        // So that those of the smallest priority are tried first.
        rules.sort_by_key(|&r| program.rules[r as usize].priority);
        View {
            packing: Packing::new(program, 0..program.slots.len() as Cell),
            rules,
            invariants: program.invariants.clone(),
            quiescent: program.quiescent.clone(),
            stop_at_deadlock: true,
            deadlock,
            symmetry: None,
        }
    }

    /// Replaces a packed state by the one that is stored for it.
    #[inline(always)]
    pub fn canonicalise(&self, state: &mut [u64], scratch: &mut Scratch) {
        if let Some(symmetry) = &self.symmetry {
            symmetry.canonicalise(state, scratch);
        }
    }
}

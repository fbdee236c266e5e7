//! Freedom from deadlock, from the extensions in which no forced step may be possible.
//!
//! In a deadlocked configuration each pair of remotes is such an extension. So each remote that the home refers to
//! occurs beside each other remote in one of them. Extensions whose references lead to no such remote are removed until
//! none is left to remove. Those that remain and are not quiescent may belong to a deadlock.

use cohkit_system::state::System;

use crate::representatives::CELLS;
use crate::view::{pointer_to, Form, Layout, State};

/// References of a home to one remote, as one bit for each pointer, each set, the deferred store, and each block of
/// knowledge.
type References = u64;

/// An extension in which no forced step may be possible.
pub(crate) struct DeadlockCandidate {
    /// Numbers of the views of its cells.
    views: [u32; 2],
    /// References of the home to each cell, and to remotes outside.
    references: [References; 3],
    /// The extension.
    state: State,
}

impl DeadlockCandidate {
    /// Creates an entry.
    pub(crate) fn new(layout: &Layout, views: [u32; 2], state: State) -> DeadlockCandidate {
        let references = [0, 1, CELLS].map(|remote| references(layout, &state, remote));
        DeadlockCandidate {
            views,
            references,
            state,
        }
    }
}

/// References of the home of an extension to one of its remotes.
fn references(layout: &Layout, state: &State, remote: u8) -> References {
    let line = &state.lines[0];
    let parts = layout.parts(line, Form::Summarised);
    let slots = &parts.scalars;
    let pointers = layout.pointers.iter();
    let pointers = pointers.map(|&slot| match remote {
        CELLS => slots[slot] >= pointer_to(CELLS),
        _ => slots[slot] == pointer_to(remote),
    });
    let sets = layout.sets.iter();
    let sets = sets.map(|&slot| slots[slot] >> remote & 1 != 0);
    let deferred = line.deferred_store.as_ref();
    let deferred = deferred.is_some_and(|deferred| deferred.from == remote);
    let bits = pointers.chain(sets).chain([deferred]);
    let bits: Vec<bool> = bits.collect();
    let blocks = match parts.knowledge.get(usize::from(remote)) {
        Some(&index) => layout.block(index),
        None => parts.outside,
    };
    let numbered = bits.iter().enumerate();
    numbered.fold(blocks << bits.len(), |all, (index, &bit)| {
        all | References::from(bit) << index
    })
}

/// Returns an extension that may belong to a deadlock, if there is one. `views` is the number of all views.
pub(crate) fn deadlock(
    system: &System,
    mut blocked: Vec<DeadlockCandidate>,
    views: usize,
) -> Option<State> {
    loop {
        // References that the other cells of a view's extensions have, and that the view has to remotes beside its
        // cell.
        let mut found: Vec<References> = vec![0; views];
        let mut needed: Vec<References> = vec![0; views];
        for entry in &blocked {
            let [first, second] = entry.views.map(|view| view as usize);
            let [of_first, of_second, outside] = entry.references;
            found[first] |= of_second;
            found[second] |= of_first;
            needed[first] |= of_second | outside;
            needed[second] |= of_first | outside;
        }
        let is_supported = |view: u32| {
            let view = view as usize;
            needed[view] & !found[view] == 0
        };
        let count = blocked.len();
        blocked.retain(|entry| entry.views.into_iter().all(is_supported));
        if blocked.len() == count {
            break;
        }
    }
    let mut states = blocked.into_iter().map(|entry| entry.state);
    states.find(|state| !state.quiescent(system))
}

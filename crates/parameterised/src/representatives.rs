//! Remotes outside an extension, as far as a row of the home can distinguish them.
//!
//! A row sees other remotes through the home's variables alone: by their memberships in the sets, and as the targets of
//! pointers. So a row has the same effect on the cells and on the rest bits if it runs with few *representatives*: one
//! for each remote that a pointer names, and for each combination of memberships as many as the row can count.
//! [`Representatives::all`] lists every way to choose them that agrees with the rest bits.

use cohkit_protocol::execute::Configuration;
use cohkit_system::data::Current;
use cohkit_system::state::{CopyOnWrite, SystemState};
use cohkit_system::stores::Ticket;

use crate::blocks::Blocks;
use crate::lift::LiftedHome;
use crate::obstacle::Obstacle;
use crate::view::{pointer_to, with_home, Form, Projection, State};

/// Number of cells of an extension. Its remote with this number stands for all others.
pub(crate) const CELLS: u8 = 2;

/// Maximum number of remotes of a state: each set has 16 bits.
pub(crate) const MAX_REMOTES: usize = 16;

/// Representatives of the remotes outside an extension.
#[derive(Clone, Debug, Default)]
struct Representatives {
    /// Memberships of each representative: bit `i` for the set `i` of the layout.
    memberships: Vec<u16>,
    /// For each pointer that leads outside, the index of the representative that it names.
    targets: Vec<usize>,
}

/// Upper bound of the number of representatives, for a home with this many sets and pointers.
pub(crate) fn max_representatives(sets: usize, pointers: usize, home: &LiftedHome) -> usize {
    let combinations = (1usize << sets.min(MAX_REMOTES)) - usize::from(!home.uses_all);
    combinations * home.saturation + pointers
}

impl Representatives {
    /// All choices for `pointers` pointers that lead outside, and for sets of which those in `rest` have members there.
    /// At most `saturation` representatives without a pointer have the same memberships. `uses_all` is true if remotes
    /// in no set matter too.
    fn all(pointers: usize, rest: u16, saturation: usize, uses_all: bool) -> Vec<Representatives> {
        let subsets: Vec<u16> = (0..=rest).filter(|set| set & !rest == 0).collect();
        let mut partial = vec![Representatives::default()];
        for _ in 0..pointers {
            let extend = |chosen: &Representatives| {
                let mut next = Vec::new();
                for target in 0..chosen.memberships.len() {
                    let mut same = chosen.clone();
                    same.targets.push(target);
                    next.push(same);
                }
                for &membership in &subsets {
                    let mut further = chosen.clone();
                    further.targets.push(further.memberships.len());
                    further.memberships.push(membership);
                    next.push(further);
                }
                next
            };
            partial = partial.iter().flat_map(extend).collect();
        }
        for &membership in subsets.iter().filter(|&&set| set != 0 || uses_all) {
            let extend = |chosen: &Representatives| -> Vec<Representatives> {
                let more = |count| {
                    let mut more = chosen.clone();
                    let memberships = std::iter::repeat_n(membership, count);
                    more.memberships.extend(memberships);
                    more
                };
                (0..=saturation).map(more).collect()
            };
            partial = partial.iter().flat_map(extend).collect();
        }
        let covers = |chosen: &Representatives| {
            chosen.memberships.iter().fold(0, |all, set| all | set) == rest
        };
        partial.retain(covers);
        partial
    }
}

/// All states in which representatives take the place of the remote that stands for the others.
///
/// # Errors
/// There are too many representatives.
pub(crate) fn resolutions(
    projection: &Projection,
    extension: &State,
    home: &LiftedHome,
) -> Result<Vec<State>, Obstacle> {
    match &projection.layout.blocks {
        Some(blocks) => resolutions_by_blocks(projection, blocks, extension, home),
        None => Ok(resolutions_by_sets(projection, extension, home)),
    }
}

/// As [`resolutions`], for a constructed home: one representative for each block that occurs outside. The remote that a
/// pointer names outside may be the only one of its block, or one of several.
///
/// # Errors
/// There are too many representatives.
fn resolutions_by_blocks(
    projection: &Projection,
    blocks: &Blocks,
    extension: &State,
    home: &LiftedHome,
) -> Result<Vec<State>, Obstacle> {
    let (layout, line) = (&projection.layout, &extension.lines[0]);
    let parts = layout.parts(line, Form::Summarised);
    let occurs = |&block: &usize| parts.outside >> block & 1 != 0;
    let outside: Vec<usize> = (0..blocks.first.len()).filter(occurs).collect();
    // A pointer to a remote outside has the block of this remote.
    let mut pointers = layout.pointers.iter().copied();
    let outside_pointer = pointers.find(|&slot| parts.scalars[slot] >= pointer_to(CELLS));
    let target = outside_pointer.map(|slot| usize::from(parts.scalars[slot] - pointer_to(CELLS)));
    let choices = match target {
        None => vec![outside],
        Some(target) => {
            let others = outside.iter().copied().filter(|&other| other != target);
            let alone: Vec<usize> = [target].into_iter().chain(others).collect();
            let with_others = alone.iter().copied().chain([target]).collect();
            vec![alone, with_others]
        }
    };
    if choices
        .iter()
        .any(|chosen| usize::from(CELLS) + chosen.len() > MAX_REMOTES)
    {
        let reason = "remotes outside a pair have too many kinds of knowledge at once";
        return Err(Obstacle::at(home.controller.span, reason));
    }
    let resolve = |chosen: &Vec<usize>| {
        let mut scalars = parts.scalars.clone();
        if let Some(slot) = outside_pointer {
            scalars[slot] = pointer_to(CELLS);
        }
        let mut slots = parts.knowledge.clone();
        slots.extend(chosen.iter().map(|&block| blocks.first[block]));
        slots.extend(scalars);
        let home = Configuration {
            state: line.home.state,
            slots,
        };
        let mut remotes = line.remotes[..usize::from(CELLS)].to_vec();
        remotes.extend(chosen.iter().map(|_| projection.idle.clone()));
        let line = with_home(line, home, line.deferred_store.clone(), remotes);
        SystemState {
            data: Current,
            lines: vec![CopyOnWrite::new(line)],
            network: extension.network.clone(),
        }
    };
    Ok(choices.iter().map(resolve).collect())
}

/// As [`resolutions`], for a home written as rows.
fn resolutions_by_sets(
    projection: &Projection,
    extension: &State,
    home: &LiftedHome,
) -> Vec<State> {
    let (layout, line) = (&projection.layout, &extension.lines[0]);
    let slots = &line.home.slots;
    // No guard reads the requester, so that a remote of its own in no set serves, unless such remotes matter.
    let ghost = layout.requester.filter(|_| !home.uses_all);
    let outside_pointers = layout.pointers.iter().copied();
    let outside_pointers: Vec<usize> = outside_pointers
        .filter(|&slot| slots[slot] == pointer_to(CELLS) && Some(slot) != ghost)
        .collect();
    let deferred = line.deferred_store.as_ref();
    let deferred = deferred.filter(|deferred| deferred.from == CELLS);
    let pointers = outside_pointers.len() + usize::from(deferred.is_some());
    let rest = layout.sets.iter().enumerate();
    let rest = rest.filter(|(_, &slot)| slots[slot] >> CELLS & 1 != 0);
    let rest = rest.fold(0, |rest, (index, _)| rest | 1 << index);
    let choices = Representatives::all(pointers, rest, home.saturation, home.uses_all);
    let resolve = |chosen: &Representatives| {
        let (mut home, mut deferred_store) = (line.home.clone(), line.deferred_store.clone());
        let mut remotes = line.remotes[..usize::from(CELLS)].to_vec();
        remotes.extend(chosen.memberships.iter().map(|_| projection.idle.clone()));
        for (index, &slot) in layout.sets.iter().enumerate() {
            let mut set = home.slots[slot] & ((1 << CELLS) - 1);
            for (number, membership) in (CELLS..).zip(&chosen.memberships) {
                set |= (membership >> index & 1) << number;
            }
            home.slots[slot] = set;
        }
        for (&slot, &target) in outside_pointers.iter().zip(&chosen.targets) {
            home.slots[slot] = pointer_to(CELLS + target as u8);
        }
        if let (Some(deferred), true, Some(&target)) = (
            &mut deferred_store,
            deferred.is_some(),
            chosen.targets.last(),
        ) {
            deferred.from = CELLS + target as u8;
            // Its remote counts the deferred store among the pending ones.
            remotes[usize::from(deferred.from)].stores.posted =
                u8::from(deferred.ticket >= Ticket::POSTED);
        }
        if let Some(slot) = ghost.filter(|&slot| slots[slot] == pointer_to(CELLS)) {
            home.slots[slot] = pointer_to(remotes.len() as u8);
            remotes.push(projection.idle.clone());
        }
        let line = with_home(line, home, deferred_store, remotes);
        SystemState {
            data: Current,
            lines: vec![CopyOnWrite::new(line)],
            network: extension.network.clone(),
        }
    };
    choices.iter().map(resolve).collect()
}

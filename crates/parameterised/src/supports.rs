//! Support of extensions of constructed homes: a remote outside must have a view of its own.
//!
//! The blocks outside an extension say that remotes with such knowledge exist. In a configuration each of these remotes
//! has a view, with the same home and the same other blocks. An extension whose remotes outside lack a view waits until
//! the view is found. Without this rule a block would never disappear: of several remotes in one block, some may remain
//! after any number of them has left.

use cohkit_system::state::Line;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::representatives::CELLS;
use crate::view::{pointer_to, Form, Layout, State};
use cohkit_system::data::Current;

/// A kind of views: equal homes except for references, equal blocks of cells and of other remotes, and equal pointers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ViewKind {
    /// Number of the home without references.
    home: u32,
    /// Block of the cell.
    block: u64,
    /// Value of the home's pointer in the view; 0 if it has none.
    pointer: u16,
    /// Blocks of the other remotes.
    others: u64,
}

impl ViewKind {
    /// Kind of a view.
    pub(crate) fn of(layout: &Layout, home: u32, line: &Line<Current>) -> ViewKind {
        let parts = layout.parts(line, Form::Summarised);
        let pointer = layout.pointers.first();
        ViewKind {
            home,
            block: layout.block(parts.knowledge[0]),
            pointer: pointer.map_or(0, |&slot| parts.scalars[slot]),
            others: parts.outside,
        }
    }
}

/// An extension with representatives of the remotes outside.
pub(crate) struct Resolved {
    /// Numbers of the views of its cells.
    pub(crate) views: [u32; 2],
    /// Number of the home without references.
    pub(crate) home: u32,
    /// The extension.
    pub(crate) extension: State,
    /// The extension with representatives.
    pub(crate) state: State,
}

impl Resolved {
    /// Kinds of views of which each remote outside needs one.
    fn needs(&self, layout: &Layout) -> Vec<Vec<ViewKind>> {
        let line = &self.state.lines[0];
        let parts = layout.parts(line, Form::Explicit);
        let blocks: Vec<u64> = parts
            .knowledge
            .iter()
            .map(|&index| layout.block(index))
            .collect();
        let pointer = layout.pointers.first();
        let pointer = pointer.map_or(0, |&slot| parts.scalars[slot]);
        let need = |remote: usize| {
            let numbered = blocks.iter().enumerate();
            let others = numbered.filter(|&(other, _)| other != remote);
            let others = others.fold(0, |all, (_, block)| all | block);
            let is_target = pointer == pointer_to(remote as u8);
            let kind = |others| ViewKind {
                home: self.home,
                block: blocks[remote],
                pointer: match pointer.checked_sub(1) {
                    None => 0,
                    Some(_) if is_target => pointer_to(0),
                    Some(target) => {
                        let index = parts.knowledge[usize::from(target)];
                        pointer_to(1) + layout.block_number(index)
                    }
                },
                others,
            };
            // A representative that no pointer names stands for one remote or several.
            let mut kinds = vec![kind(others)];
            let with_others = others | blocks[remote];
            if !is_target && with_others != others {
                kinds.push(kind(with_others));
            }
            kinds
        };
        (usize::from(CELLS)..blocks.len()).map(need).collect()
    }
}

/// Kinds of the views found so far, and extensions that wait for others.
#[derive(Default)]
pub(crate) struct Supports {
    /// Kinds of the views found so far.
    found: FxHashSet<ViewKind>,
    /// Extensions that wait, or have waited.
    waiting: Vec<Option<Resolved>>,
    /// For each kind that is not found yet, the extensions that wait for it, as indices of `waiting`.
    waiting_for: FxHashMap<ViewKind, Vec<usize>>,
    /// Extensions that wait no longer.
    ready: Vec<Resolved>,
}

impl Supports {
    /// Adds an extension, which becomes ready once its remotes outside have views.
    pub(crate) fn add(&mut self, layout: &Layout, resolved: Resolved) {
        let mut needs = resolved.needs(layout).into_iter();
        let is_missing =
            |kinds: &Vec<ViewKind>| kinds.iter().all(|kind| !self.found.contains(kind));
        match needs.find(is_missing) {
            None => self.ready.push(resolved),
            Some(kinds) => {
                for kind in kinds {
                    self.waiting_for
                        .entry(kind)
                        .or_default()
                        .push(self.waiting.len());
                }
                self.waiting.push(Some(resolved));
            }
        }
    }

    /// Records a kind of views, and adds the extensions that waited for it again.
    pub(crate) fn add_found(&mut self, layout: &Layout, kind: ViewKind) {
        let waiting = self.waiting_for.remove(&kind).unwrap_or_default();
        self.found.insert(kind);
        for index in waiting {
            if let Some(resolved) = self.waiting[index].take() {
                self.add(layout, resolved);
            }
        }
    }

    /// Takes an extension whose remotes outside have views.
    pub(crate) fn next_ready(&mut self) -> Option<Resolved> {
        self.ready.pop()
    }
}

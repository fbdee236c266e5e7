//! Symmetry: states that differ only by a permutation of scalarset values are explored once.
//!
//! Names of scalarset values mean nothing to a model: it can compare them, keep them and index with them.
//! So permuting them takes runs to runs, and one state of each *orbit* stands for all.
//! [`Symmetry::of`] finds from a model's types which slots hold scalarset values, and which are indexed by them;
//! [`canonical`] chooses the state that stands for an orbit, always the same one.

mod canonical;
mod packed;
#[cfg(test)]
mod tests;

use crate::model::{Model, Role, Type, TypeId};
use crate::program::{Cell, Packing, Program};
use canonical::{fold, Content, Layout, Leaf, Property};
use packed::{Packed, Said};

/// How permutations of scalarset values act on a program's states.
pub(crate) struct Symmetry {
    layout: Layout,
    packed: Option<Packed>,
}

/// Room for one thread's work.
#[derive(Default)]
pub(crate) struct Scratch {
    frame: Vec<i32>,
    canonical: canonical::Scratch,
    packed: packed::Room,
}

impl Symmetry {
    /// The symmetry of a model; `None` if no permutation changes any state.
    pub fn of(model: &Model, program: &Program, packing: &Packing) -> Option<Symmetry> {
        let mut walk = Walk::new(model);
        let mut slot = 0;
        for (number, variable) in model.variables.iter().enumerate() {
            if variable.role == Role::State {
                walk.part(variable.ty, slot, fold(0, number as u64), false);
                slot += walk.sizes[variable.ty.index()];
            }
        }
        debug_assert_eq!(slot as usize, program.slots.len());
        let layout = walk.finish(program);
        (!layout.leaves.is_empty()).then(|| Symmetry {
            packed: Packed::new(&layout, packing),
            layout,
        })
    }

    /// Replaces a packed state, whose multisets are sorted, by the one that stands for its orbit.
    #[inline]
    pub fn canonicalise(
        &self,
        program: &Program,
        packing: &Packing,
        words: &mut [u64],
        s: &mut Scratch,
    ) {
        if let Some(packed) = &self.packed {
            if packed.canonicalise(words, &mut s.packed) != Said::Nothing {
                return;
            }
        }
        s.frame.resize(program.slots.len(), 0);
        packing.unpack(words, &mut s.frame);
        if self
            .layout
            .canonicalise(program, &mut s.frame, &mut s.canonical)
        {
            packing.pack(&s.frame, words);
        }
    }
}

/// Collects the slots that permutations move or change.
struct Walk<'a> {
    model: &'a Model,
    /// Slots of each type.
    sizes: Vec<u32>,
    /// First element of each scalarset that has several.
    elements: Vec<Option<u32>>,
    layout: Layout,
    /// Elements that index the part at hand, with the distance in slots to the next element's.
    around: Vec<(u32, u32)>,
    /// The slot that says whether there is an element in the multiset's place at hand.
    present: Option<Cell>,
}

impl<'a> Walk<'a> {
    fn new(model: &'a Model) -> Self {
        let mut layout = Layout::default();
        let mut elements = vec![None; model.types.len()];
        let mut first = 0;
        for (number, named) in model.types.iter().enumerate() {
            if let Type::Scalarset(size @ 2..) = named.ty {
                elements[number] = Some(first);
                layout.sets.push(first..first + size);
                first += size;
            }
        }
        Walk {
            model,
            sizes: crate::compile::sizes(model),
            elements,
            layout,
            around: Vec::new(),
            present: None,
        }
    }

    fn size(&self, ty: TypeId) -> u32 {
        self.sizes[ty.index()]
    }

    /// A part of the state that begins at a slot. Equal seeds mean that permutations take one to the other.
    /// `together` says whether it lies in a multiset, whose slots are told apart as one.
    fn part(&mut self, ty: TypeId, slot: Cell, seed: u64, together: bool) {
        let model = self.model;
        match model.ty(ty) {
            Type::Array { index, element } => self.array(*index, *element, slot, seed, together),
            Type::Record(fields) => {
                let mut at = slot;
                for (number, &(_, field)) in fields.iter().enumerate() {
                    self.part(field, at, fold(seed, number as u64), together);
                    at += self.size(field);
                }
            }
            Type::Multiset { capacity, element } => {
                let stride = 1 + self.size(*element);
                for place in 0..*capacity {
                    let first = self.layout.leaves.len();
                    let at = slot + place * stride;
                    self.leaf(Content::Plain, at, fold(seed, 0), true);
                    let outer = self.present.replace(at);
                    self.part(*element, at + 1, fold(seed, 1), true);
                    self.present = outer;
                    if !together {
                        self.join(first);
                    }
                }
            }
            Type::Scalarset(_) => {
                let content = match self.elements[ty.index()] {
                    Some(first) => Content::Element(first),
                    None => Content::Plain,
                };
                self.leaf(content, slot, seed, together);
            }
            Type::Union(members) => {
                let first = self.layout.members.len() as u32;
                let mut value = 0;
                for &member in members {
                    let count = model.bounds(member).map_or(0, |bounds| bounds.1 + 1);
                    if let Some(element) = self.elements[member.index()] {
                        self.layout.members.push((value, count as u32, element));
                    }
                    value += count;
                }
                let end = self.layout.members.len() as u32;
                let content = match first == end {
                    true => Content::Plain,
                    false => Content::Union(first..end),
                };
                self.leaf(content, slot, seed, together);
            }
            Type::Bool | Type::Enum(_) | Type::Range { .. } => {
                self.leaf(Content::Plain, slot, seed, together);
            }
        }
    }

    fn array(&mut self, index: TypeId, element: TypeId, slot: Cell, seed: u64, together: bool) {
        let members = match self.model.ty(index) {
            Type::Union(members) => members.clone(),
            _ => vec![index],
        };
        let stride = self.size(element);
        let mut at = slot;
        for (number, &member) in members.iter().enumerate() {
            let (lo, hi) = self.model.bounds(member).unwrap_or((0, -1));
            let seed = fold(seed, number as u64);
            for value in 0..(i64::from(hi) - i64::from(lo) + 1) as u32 {
                match self.elements[member.index()] {
                    Some(first) => {
                        self.around.push((first + value, stride));
                        self.part(element, at, seed, together);
                        self.around.pop();
                    }
                    None => self.part(element, at, fold(seed, u64::from(value)), together),
                }
                at += stride;
            }
        }
    }

    fn leaf(&mut self, content: Content, slot: Cell, seed: u64, together: bool) {
        let plain = matches!(content, Content::Plain);
        if plain && self.around.is_empty() && !together {
            return;
        }
        let layout = &mut self.layout;
        let first = layout.moves.len() as u32;
        layout.moves.extend_from_slice(&self.around);
        layout.leaves.push(Leaf {
            slot,
            seed,
            moves: first..layout.moves.len() as u32,
            content,
            present: self.present,
        });
        layout.bags |= together;
        if !together {
            self.join(self.layout.leaves.len() - 1);
        }
    }

    /// The leaves from `first` on are told apart as one, or left out if permutations do nothing to them.
    fn join(&mut self, first: usize) {
        let layout = &mut self.layout;
        let still = |leaf: &Leaf| leaf.moves.is_empty() && matches!(leaf.content, Content::Plain);
        match layout.leaves[first..].iter().all(still) {
            true => layout.leaves.truncate(first),
            false => {
                let range = first as u32..layout.leaves.len() as u32;
                layout.relations.push(range);
            }
        }
    }

    /// Leaves that involve one element alone become its properties.
    fn finish(self, program: &Program) -> Layout {
        let mut layout = self.layout;
        // Properties with equal seeds are the same one of different elements.
        let mut shifts: Vec<(u64, u32)> = Vec::new();
        let mut shift = 0;
        let relations = std::mem::take(&mut layout.relations);
        for relation in relations {
            let leaf = &layout.leaves[relation.start as usize];
            let moves = &layout.moves[leaf.moves.start as usize..leaf.moves.end as usize];
            let slot = &program.slots[leaf.slot as usize];
            let values = i64::from(slot.hi) - i64::from(slot.lo) + 1 + i64::from(slot.undefined);
            let property = match (moves, &leaf.content) {
                (&[(element, _)], Content::Plain) if relation.len() == 1 => {
                    let width = i64::BITS - (values - 1).leading_zeros();
                    let known = shifts.iter().find(|known| known.0 == leaf.seed);
                    let here = known.map_or(shift, |known| known.1);
                    if known.is_none() {
                        shifts.push((leaf.seed, shift));
                        shift += width;
                    }
                    Property::Indexed {
                        slot: leaf.slot,
                        element,
                        base: slot.lo.wrapping_sub(i32::from(slot.undefined)),
                        shift: here,
                    }
                }
                ([], Content::Element(_) | Content::Union(_)) if relation.len() == 1 => {
                    shift += 1;
                    Property::Holds {
                        leaf: relation.start,
                        shift: shift - 1,
                        base: slot.lo.wrapping_sub(i32::from(slot.undefined)),
                    }
                }
                _ => {
                    layout.relations.push(relation);
                    continue;
                }
            };
            layout.properties.push(property);
        }
        layout.exact = shift <= u64::BITS;
        layout
    }
}

//! Symmetry: states that differ only by a permutation of scalarset values are explored once.
//!
//! Names of scalarset values have no meaning: a model can only compare them, store them and index with them.
//! Permutations therefore map runs to runs, and one state of each *orbit* represents the orbit.
//! Scalarsets with asymmetric uses ([`crate::symmetry_check`]) are not permuted.
//! Ranges that a model declares interchangeable ([`Model::interchangeable`]) are treated like scalarsets.
//! [`Symmetry::of`] derives from a model's types the slots that hold scalarset values or are indexed by them;
//! [`canonical`] computes the representative of an orbit.

mod canonical;
#[cfg(test)]
mod tests;

use crate::interpret::Machine;
use crate::model::{Model, Number, Role, Type, TypeId};
use crate::program::{Cell, Packing, Program};
pub(crate) use canonical::Scratch;
use canonical::{
    fold, Arrow, Bits, Holder, Layout, Leaf, Member, MultisetLeaves, Part, RelationLookup,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Action of permutations of scalarset values on a program's packed states.
pub(crate) struct Symmetry {
    /// The slots that permutations move or change.
    layout: Layout,
}

impl Symmetry {
    /// Symmetry of a model; `None` if no permutation changes any state.
    pub fn of(model: &Model, program: &Program, packing: &Packing) -> Option<Symmetry> {
        SlotCollector::of_state(model, program).into_symmetry(program, packing)
    }

    /// Symmetry of each independent part. The slots of a part are those in its packing; all other slots keep their
    /// values of the first start state.
    ///
    /// # Errors
    /// Permutations map slots of one part to another.
    pub fn of_parts<'a>(
        model: &Model,
        program: &Program,
        parts: impl Iterator<Item = &'a Packing>,
    ) -> Result<Vec<Option<Symmetry>>, ComponentSymmetry> {
        let mut machine = Machine::new(program);
        let _ = machine.start(0);
        let all_slots = SlotCollector::of_state(model, program);
        let packings: Vec<&Packing> = parts.collect();
        let packed = |packing: &Packing, slot| packing.field(slot).mask != 0;
        // Per class of slots that permutations exchange: the part that contains them, or their constant value.
        let mut classes: FxHashMap<u64, (Option<usize>, Number)> = FxHashMap::default();
        for affected in &all_slots.affected_slots {
            let part = (packings.iter()).position(|packing| packed(packing, affected.slot));
            let value = machine.frame[affected.slot as usize];
            let is_element = |members: &ElementValues| members.contains(value);
            let constant = match part {
                Some(_) => 0,
                None if affected.members.iter().any(is_element) => return Err(ComponentSymmetry),
                None => value,
            };
            if *classes.entry(affected.seed).or_insert((part, constant)) != (part, constant) {
                return Err(ComponentSymmetry);
            }
        }
        let symmetry = |packing: &&Packing| {
            let mut collector = all_slots.clone();
            collector
                .affected_slots
                .retain(|affected| packed(packing, affected.slot));
            collector.relations = (0..collector.affected_slots.len())
                .map(|i| i..i + 1)
                .collect();
            collector.into_symmetry(program, packing)
        };
        Ok(packings.iter().map(symmetry).collect())
    }

    /// Replaces a packed state, whose multisets are sorted, by the representative of its orbit.
    #[inline]
    pub fn canonicalise(&self, words: &mut [u64], scratch: &mut Scratch) {
        self.layout.canonicalise(words, scratch);
    }
}

/// Error: permutations map slots of one independent part to another.
#[derive(Debug)]
pub(crate) struct ComponentSymmetry;

/// An element that indexes an array around a slot.
#[derive(Clone, Copy)]
struct IndexElement {
    /// The element.
    element: u32,
    /// Distance in slots to the same slot of the next element.
    stride: u32,
}

/// Consecutive values of a slot that are elements.
#[derive(Clone, Copy)]
struct ElementValues {
    /// First of the values.
    first_value: Number,
    /// Number of values.
    count: u32,
    /// Element of the first value; further elements follow in the order of the values.
    first_element: u32,
}

impl ElementValues {
    /// True if a value is one of these.
    fn contains(&self, value: Number) -> bool {
        let end = self.first_value + Number::from(self.count);
        (self.first_value..end).contains(&value)
    }
}

/// A slot that permutations move or change, or that belongs to the same multiset position as such a slot.
#[derive(Clone)]
struct AffectedSlot {
    /// The slot.
    slot: Cell,
    /// Equal for slots that a permutation may exchange.
    seed: u64,
    /// Elements that index it, outermost first.
    index_elements: Vec<IndexElement>,
    /// Its values that are elements.
    members: Vec<ElementValues>,
    /// Slot that is 1 if the enclosing position of a multiset holds an element.
    present: Option<Cell>,
}

/// Collector of the slots that permutations move or change.
#[derive(Clone)]
struct SlotCollector<'a> {
    /// Model whose state is visited.
    model: &'a Model,
    /// Number of slots of each type.
    sizes: Vec<u32>,
    /// First element of each permuted type: scalarsets with several values, and interchangeable ranges.
    elements: Vec<Option<u32>>,
    /// Elements of each permuted type.
    sets: Vec<Range<u32>>,
    /// Slots found so far.
    affected_slots: Vec<AffectedSlot>,
    /// Ranges of `affected_slots`: single slots, or all slots of one element of a multiset.
    relations: Vec<Range<usize>>,
    /// Elements that index the current part, outermost first.
    index_elements: Vec<IndexElement>,
    /// Slot that is 1 if the current position of the multiset holds an element; `None` outside multisets.
    present: Option<Cell>,
}

impl<'a> SlotCollector<'a> {
    fn new(model: &'a Model) -> Self {
        let mut sets = Vec::new();
        let mut elements = vec![None; model.types.len()];
        let mut first = 0;
        let asymmetric_sets = crate::symmetry_check::asymmetric_sets(model);
        for (number, named) in model.types.iter().enumerate() {
            if asymmetric_sets.contains(&TypeId(number as u32)) {
                continue;
            }
            let is_interchangeable = (model.interchangeable.as_ref())
                .is_some_and(|interchangeable| interchangeable.names.index() == number);
            let size = match named.ty {
                Type::Scalarset(size) => size,
                Type::Range { lo: 0, hi } if is_interchangeable => hi as u32 + 1,
                _ => continue,
            };
            if size > 1 {
                elements[number] = Some(first);
                sets.push(first..first + size);
                first += size;
            }
        }
        SlotCollector {
            model,
            sizes: model.sizes(),
            elements,
            sets,
            affected_slots: Vec::new(),
            relations: Vec::new(),
            index_elements: Vec::new(),
            present: None,
        }
    }

    /// Visits the whole state of a model.
    fn of_state(model: &'a Model, program: &Program) -> Self {
        let mut collector = SlotCollector::new(model);
        let mut slot = 0;
        for (number, variable) in model.variables.iter().enumerate() {
            if variable.role == Role::State {
                collector.visit_part(variable.ty, slot, fold(0, number as u64), false);
                slot += collector.sizes[variable.ty.index()];
            }
        }
        debug_assert_eq!(slot as usize, program.slots.len());
        collector
    }

    /// Symmetry of the visited slots; `None` if no permutation changes any packed state.
    fn into_symmetry(self, program: &Program, packing: &Packing) -> Option<Symmetry> {
        // A slot with a single value takes no bits. If all affected slots are such, permutations have no effect.
        let packed = |affected: &AffectedSlot| packing.field(affected.slot).mask != 0;
        self.affected_slots.iter().any(packed).then(|| Symmetry {
            layout: self.into_layout(program, packing),
        })
    }

    /// Number of slots of a type.
    fn size(&self, ty: TypeId) -> u32 {
        self.sizes[ty.index()]
    }

    /// Consecutive values of a simple type: their count, and the first element if they are elements.
    fn value_groups(&self, ty: TypeId) -> Vec<(u32, Option<u32>)> {
        let model = self.model;
        let count = |ty: TypeId| {
            // Types with more values are neither elements nor indices.
            u32::try_from(model.count(ty)).unwrap_or(u32::MAX)
        };
        if let Type::Union(members) = model.ty(ty) {
            let member = |&member: &TypeId| (count(member), self.elements[member.index()]);
            return members.iter().map(member).collect();
        }
        match &model.interchangeable {
            Some(interchangeable) if interchangeable.optional.contains(&ty) => {
                let first = self.elements[interchangeable.names.index()];
                vec![(1, None), (count(ty) - 1, first)]
            }
            _ => vec![(count(ty), self.elements[ty.index()])],
        }
    }

    /// Visits a part of the state that begins at `slot`. Parts with equal seeds are exchanged by permutations.
    /// `in_multiset` is true inside a multiset, whose elements are compared as a whole.
    fn visit_part(&mut self, ty: TypeId, slot: Cell, seed: u64, in_multiset: bool) {
        let model = self.model;
        match model.ty(ty) {
            Type::Array { index, element } => {
                self.visit_array(*index, *element, slot, seed, in_multiset)
            }
            Type::Record(fields) => {
                let mut part_slot = slot;
                for (number, &(_, field)) in fields.iter().enumerate() {
                    self.visit_part(field, part_slot, fold(seed, number as u64), in_multiset);
                    part_slot += self.size(field);
                }
            }
            Type::Multiset { capacity, element } => {
                let stride = 1 + self.size(*element);
                for position in 0..*capacity {
                    let first = self.affected_slots.len();
                    let part_slot = slot + position * stride;
                    self.add_slot(Vec::new(), part_slot, fold(seed, 0), true);
                    let outer = self.present.replace(part_slot);
                    self.visit_part(*element, part_slot + 1, fold(seed, 1), true);
                    self.present = outer;
                    if !in_multiset {
                        self.add_relation(first);
                    }
                }
            }
            Type::Bool
            | Type::Enum(_)
            | Type::Range { .. }
            | Type::Scalarset(_)
            | Type::Union(_) => {
                let mut members = Vec::new();
                let mut value: Number = 0;
                for (count, first) in self.value_groups(ty) {
                    members.extend(first.map(|first_element| ElementValues {
                        first_value: value,
                        count,
                        first_element,
                    }));
                    value = value.wrapping_add(Number::from(count));
                }
                self.add_slot(members, slot, seed, in_multiset);
            }
        }
    }

    /// Visits the elements of an array; see [`SlotCollector::visit_part`].
    fn visit_array(
        &mut self,
        index: TypeId,
        element: TypeId,
        slot: Cell,
        seed: u64,
        in_multiset: bool,
    ) {
        let stride = self.size(element);
        let mut element_slot = slot;
        for (number, (count, first)) in self.value_groups(index).into_iter().enumerate() {
            let seed = fold(seed, number as u64);
            for value in 0..count {
                match first {
                    Some(first) => {
                        self.index_elements.push(IndexElement {
                            element: first + value,
                            stride,
                        });
                        self.visit_part(element, element_slot, seed, in_multiset);
                        self.index_elements.pop();
                    }
                    None => self.visit_part(
                        element,
                        element_slot,
                        fold(seed, u64::from(value)),
                        in_multiset,
                    ),
                }
                element_slot += stride;
            }
        }
    }

    /// Adds a slot, and the relation that consists of it, unless no permutation affects it.
    fn add_slot(&mut self, members: Vec<ElementValues>, slot: Cell, seed: u64, in_multiset: bool) {
        if members.is_empty() && self.index_elements.is_empty() && !in_multiset {
            return;
        }
        self.affected_slots.push(AffectedSlot {
            slot,
            seed,
            index_elements: self.index_elements.clone(),
            members,
            present: self.present,
        });
        if !in_multiset {
            self.add_relation(self.affected_slots.len() - 1);
        }
    }

    /// Groups the slots from `first` on as one relation, or drops them if no permutation affects them.
    fn add_relation(&mut self, first: usize) {
        let is_unaffected = |affected: &AffectedSlot| {
            affected.index_elements.is_empty() && affected.members.is_empty()
        };
        match self.affected_slots[first..].iter().all(is_unaffected) {
            true => self.affected_slots.truncate(first),
            false => self.relations.push(first..self.affected_slots.len()),
        }
    }

    /// Builds the layout. Slots that involve only one element go into the keys, as long as the 64 bits of a key suffice;
    /// all others become leaves.
    fn into_layout(self, program: &Program, packing: &Packing) -> Layout {
        let mut layout = Layout {
            sets: self.sets,
            ..Layout::default()
        };
        let mut key_bits = KeyBits::default();
        let mut leaf_of_slot: FxHashMap<Cell, u32> = FxHashMap::default();
        let mut related: Vec<&AffectedSlot> = Vec::new();
        for relation in self.relations {
            let slots = &self.affected_slots[relation];
            let shift = match slots {
                [slot] => key_bits.allocate(slot, bits(packing, slot.slot)),
                _ => None,
            };
            match shift {
                Some(shift) => add_to_key(&mut layout, packing, &slots[0], shift),
                None => {
                    let start = related.len();
                    for affected in slots {
                        leaf_of_slot.insert(affected.slot, related.len() as u32);
                        related.push(affected);
                    }
                    layout.relations.push(start..related.len());
                }
            }
        }
        for (number, affected) in (0..).zip(&related) {
            add_leaf(&mut layout, packing, &leaf_of_slot, number, affected);
        }
        for multiset in &program.multisets {
            if let Some(&first) = leaf_of_slot.get(&multiset.first) {
                let (first, stride) = (first as usize, multiset.stride as usize);
                layout.multisets.push(MultisetLeaves {
                    leaves: first..first + multiset.capacity as usize * stride,
                    stride,
                });
            }
        }
        let in_multiset = |affected: &AffectedSlot| affected.present.is_some();
        // The parts of an empty position have their first values.
        let default = |affected: &&AffectedSlot| {
            u64::from(in_multiset(affected) && packing.field(affected.slot).undefined)
        };
        layout.defaults = related.iter().map(default).collect();
        layout.arrows = arrows(&layout).unwrap_or_default();
        layout.lookup = RelationLookup::new(&layout);
        layout.finish();
        layout
    }
}

/// Position of a slot in a packed state.
fn bits(packing: &Packing, slot: Cell) -> Bits {
    let field = packing.field(slot);
    // A slot with a single value takes no bits, and may lie beyond the last word.
    Bits {
        word: if field.mask == 0 { 0 } else { field.word },
        shift: field.shift,
        mask: field.mask,
    }
}

/// Packed form of a slot's values that are elements.
fn member(packing: &Packing, slot: Cell, values: &ElementValues) -> Member {
    let field = packing.field(slot);
    let low = values.first_value.wrapping_sub(field.lo) + Number::from(field.undefined);
    Member {
        low: low as u64,
        count: values.count,
        element: values.first_element,
    }
}

/// Allocation of the 64 bits of the elements' keys.
#[derive(Default)]
struct KeyBits {
    /// Positions in the keys by seed: slots of different elements with equal seeds share one. `None` if the bits do not
    /// suffice.
    shifts: FxHashMap<u64, Option<u32>>,
    /// End of the bits in use.
    end: u32,
}

impl KeyBits {
    /// Position of a single slot in the key of its element; `None` if it is no part of a key.
    fn allocate(&mut self, affected: &AffectedSlot, bits: Bits) -> Option<u32> {
        let width = match (&affected.index_elements[..], &affected.members[..]) {
            // One element indexes the slot: the key holds the value.
            ([_], []) => u64::BITS - bits.mask.leading_zeros(),
            // The slot holds an element: one bit marks it in that element's key.
            ([], [_, ..]) => 1,
            _ => return None,
        };
        let end = &mut self.end;
        *self.shifts.entry(affected.seed).or_insert_with(|| {
            let shift = (*end + width <= u64::BITS).then_some(*end);
            *end += shift.map_or(0, |_| width);
            shift
        })
    }
}

/// Adds a slot to the key of the element that indexes it or that it holds, at bit position `shift`.
fn add_to_key(layout: &mut Layout, packing: &Packing, affected: &AffectedSlot, shift: u32) {
    let bits = bits(packing, affected.slot);
    match &affected.index_elements[..] {
        // A slot with a single value distinguishes no elements.
        _ if bits.mask == 0 => {}
        &[IndexElement { element, .. }] => layout.parts.push(Part {
            word: bits.word,
            mask: bits.mask << bits.shift,
            element,
            shift,
        }),
        _ => {
            let members = affected.members.iter();
            layout.holders.extend(members.map(|values| Holder {
                bits,
                member: member(packing, affected.slot, values),
                shift,
            }));
        }
    }
}

/// Adds the leaf with this number.
fn add_leaf(
    layout: &mut Layout,
    packing: &Packing,
    leaf_of_slot: &FxHashMap<Cell, u32>,
    number: u32,
    affected: &AffectedSlot,
) {
    let moves = layout.moves.len();
    for &IndexElement { element, stride } in &affected.index_elements {
        // Distance in leaves, computed from the next element or, for the last, the previous one.
        let is_last = layout.sets.iter().any(|set| set.end == element + 1);
        let leaf_stride = match is_last {
            true => number - leaf_of_slot[&(affected.slot - stride)],
            false => leaf_of_slot[&(affected.slot + stride)] - number,
        };
        layout.moves.push((element, leaf_stride));
    }
    let members = layout.members.len();
    let values = affected.members.iter();
    (layout.members).extend(values.map(|values| member(packing, affected.slot, values)));
    layout.leaves.push(Leaf {
        bits: bits(packing, affected.slot),
        seed: affected.seed,
        moves: moves..layout.moves.len(),
        members: members..layout.members.len(),
        present: affected.present.map(|slot| leaf_of_slot[&slot]),
    });
}

/// The leaves as arrows, if all have that form and the 64 bits of a signature suffice; else `None`.
fn arrows(layout: &Layout) -> Option<Vec<Arrow>> {
    // Positions in signatures by seed.
    let mut shifts: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    let mut end = 0;
    let arrow = |leaf: &Leaf| {
        let [(element, stride)] = layout.moves[leaf.moves.clone()] else {
            return None;
        };
        let member = match layout.members[leaf.members.clone()] {
            [] => Member {
                low: 0,
                count: 0,
                element: 0,
            },
            [member] => member,
            _ => return None,
        };
        let set = layout.sets.iter().find(|set| set.contains(&element))?;
        let (value_shift, rank_shift) = *shifts.entry(leaf.seed).or_insert_with(|| {
            let (value_shift, rank_shift) = (end, end + leaf.bits.mask.count_ones());
            end = rank_shift + set.len() as u32;
            (value_shift, rank_shift)
        });
        (end <= u64::BITS && leaf.present.is_none()).then(|| Arrow {
            bits: leaf.bits,
            element,
            stride,
            member,
            value_shift,
            rank_shift: rank_shift.wrapping_sub(set.start),
        })
    };
    // Multisets are sorted, so their leaves do not stay at fixed positions as those of arrows do.
    let has_no_multisets = layout.multisets.is_empty();
    has_no_multisets.then(|| layout.leaves.iter().map(arrow).collect())?
}

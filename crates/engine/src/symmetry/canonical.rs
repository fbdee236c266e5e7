//! Exact canonical forms: one packed state per orbit under permutations of scalarset elements.
//!
//! A state is a structure over the *elements* of all scalarsets. Each slot relates the elements that index it, the
//! element that it holds, and its plain value. The algorithm finds an order of the elements that does not depend on
//! their names; the canonical state has the elements in this order.
//!
//! First each element gets a *key*: the packed contents of the slots that involve only this element, which are most.
//! Elements with equal keys are tied; they differ at most in their relations to others. Passes of *colour refinement*
//! then split ties by these relations, until a pass splits no further tie.
//! For each remaining tie, the algorithm tests whether exchanging two elements leaves the state unchanged. If so,
//! either order gives the same image. If not, each element is singled out in turn, and the smallest image wins.
//! No result depends on hashes: elements that are tied by a collision are compared by exchange.

use std::ops::Range;

/// A state's packed slots as relations between elements of scalarsets.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// Elements of each scalarset. Elements of all sets are numbered consecutively.
    pub sets: Vec<Range<u32>>,
    /// Parts of the keys, sorted by element.
    pub parts: Vec<Part>,
    /// For each element, the end of its parts.
    pub ends: Vec<usize>,
    /// The same parts, sorted by word.
    pub by_word: Vec<Part>,
    /// Slots that hold an element and are not indexed by any; they contribute to the key of the held element.
    pub holders: Vec<Holder>,
    /// All other slots that permutations move or change, and those in the same positions of multisets.
    pub leaves: Vec<Leaf>,
    /// Leaves that relate elements: single ones, or all of one position of a multiset.
    pub relations: Vec<Range<usize>>,
    /// Targets of [`Leaf::moves`]: an element that indexes the slot, and the distance in leaves to the next element's.
    pub moves: Vec<(u32, u32)>,
    /// Targets of [`Leaf::members`].
    pub members: Vec<Member>,
    /// Multisets among the leaves, inner ones first.
    pub multisets: Vec<MultisetLeaves>,
    /// One per leaf, if all leaves have this form; else empty.
    pub arrows: Vec<Arrow>,
    /// Value of each leaf that carries no information: the leaf is undefined or zero, or belongs to an empty position of
    /// a multiset.
    pub defaults: Vec<u64>,
    /// Lookup of the relations whose leaves have other values.
    pub lookup: RelationLookup,
    /// True if the processor has the BMI2 instructions for [`gather`] and [`scatter`].
    pub bmi2: bool,
}

/// A single leaf that one element indexes, and whose values are elements of at most one set. Used if all such leaves
/// fit into the 64 bits of a signature; signatures are then exact, not hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    /// Bits of the leaf.
    pub bits: Bits,
    /// Element that indexes the leaf.
    pub element: u32,
    /// Distance in leaves to the next element's.
    pub stride: u32,
    /// Values that are elements; its count is 0 if there are none.
    pub member: Member,
    /// Bit position of the value in the signature of the indexing element.
    pub value_shift: u32,
    /// Bit position of the indexing element's rank in the signature of the held element, less the least rank.
    pub rank_shift: u32,
}

/// Bits of a packed state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits {
    /// Index of the word.
    pub word: u32,
    /// Position of the lowest bit in the word.
    pub shift: u32,
    /// Mask of the unshifted value.
    pub mask: u64,
}

/// A part of an element's key: adjacent bits after extraction from one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Index of the word.
    pub word: u32,
    /// Bits of the word that belong to the key.
    pub mask: u64,
    /// Element whose key contains the bits.
    pub element: u32,
    /// Bit position in the key.
    pub shift: u32,
}

/// Packed values of a slot that are elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Packed value of the first element.
    pub low: u64,
    /// Number of values that are elements.
    pub count: u32,
    /// Element of the value `low`; further elements follow in the order of the values.
    pub element: u32,
}

/// A slot that holds an element.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    /// Bits of the slot.
    pub bits: Bits,
    /// Values that are elements.
    pub member: Member,
    /// Bit position in the key of the held element.
    pub shift: u32,
}

/// A slot that is not part of a key.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Bits of the slot.
    pub bits: Bits,
    /// Equal for slots that a permutation may exchange.
    pub seed: u64,
    /// Range in [`Layout::moves`].
    pub moves: Range<usize>,
    /// Values that are elements: range in [`Layout::members`].
    pub members: Range<usize>,
    /// In a multiset: the leaf that is 1 if the position holds an element. In an empty position, the other leaves have
    /// no meaning.
    pub present: Option<u32>,
}

/// Finds the relations with leaves that carry information, which are few in most states.
#[derive(Clone, Debug, Default)]
pub(super) struct RelationLookup {
    /// Words that contain first leaves of relations, each with the mask of the bits of these leaves.
    masks: Vec<(u32, u64)>,
    /// Per bit of the words in `masks`: index of the relation; 64 for each word.
    relation_of_bit: Vec<u32>,
    /// Relations that always carry information: zero is an element.
    always: Vec<u32>,
}

impl RelationLookup {
    /// Creates the lookup of a layout's relations.
    pub fn new(layout: &Layout) -> RelationLookup {
        let mut lookup = RelationLookup::default();
        for (number, relation) in (0..).zip(&layout.relations) {
            // The first leaf of a position of a multiset is zero if the position is empty.
            let first = &layout.leaves[relation.start];
            let holds_zero = |member: &Member| member.held_element(0).is_some();
            if layout.members[first.members.clone()].iter().any(holds_zero) {
                lookup.always.push(number);
                continue;
            }
            let Bits { word, shift, mask } = first.bits;
            let known = lookup.masks.iter().position(|entry| entry.0 == word);
            let position = known.unwrap_or_else(|| {
                lookup.masks.push((word, 0));
                lookup.relation_of_bit.extend([0; 64]);
                lookup.masks.len() - 1
            });
            lookup.masks[position].1 |= mask << shift;
            for bit in (0..64).filter(|bit| mask << shift >> bit & 1 == 1) {
                lookup.relation_of_bit[position * 64 + bit] = number;
            }
        }
        lookup
    }

    /// Calls `f` with the index of each relation that carries information in a state.
    #[inline(always)]
    fn for_each(&self, words: &[u64], leaves: impl Fn(u32) -> Bits, mut f: impl FnMut(u32)) {
        self.always.iter().for_each(|&relation| f(relation));
        for (&(word, mask), relations) in self.masks.iter().zip(self.relation_of_bit.chunks(64)) {
            let mut bits = words[word as usize] & mask;
            while bits != 0 {
                let relation = relations[bits.trailing_zeros() as usize];
                f(relation);
                let Bits { shift, mask, .. } = leaves(relation);
                bits &= !(mask << shift);
            }
        }
    }
}

/// A multiset. Its leaves are consecutive; those of each position begin with the one that is 1 if the position holds an
/// element.
#[derive(Clone, Debug)]
pub(super) struct MultisetLeaves {
    /// Range in [`Layout::leaves`].
    pub leaves: Range<usize>,
    /// Leaves per position.
    pub stride: usize,
}

/// Working memory of one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Key of each element.
    keys: Vec<u64>,
    /// Orders of elements, one per nested choice of an element among tied ones.
    levels: Vec<Order>,
    /// Hashes or exact codes of each element's relations, in a pass of colour refinement.
    signatures: Vec<u64>,
    /// Code of each leaf.
    codes: Vec<u64>,
    /// Relations that carry information in the current state; all relations with arrows.
    active_relations: Vec<Range<usize>>,
    /// Packed value of each leaf.
    values: Vec<u64>,
    /// Element that each leaf holds, or `NONE`.
    held_elements: Vec<u32>,
    /// New position of each element.
    positions: Vec<u32>,
    /// Values of the leaves in the order that is being tried.
    image: Vec<u64>,
    /// Values of the leaves after an exchange of two elements.
    exchanged_image: Vec<u64>,
    /// Smallest image so far.
    best_image: Vec<u64>,
    /// Order that gives the smallest image: the element at each position.
    order: Vec<u32>,
    /// True if `best_image` and `order` are valid.
    has_best_image: bool,
}

/// Marks the absence of an element.
const NONE: u32 = u32::MAX;

/// Elements in an order with ties.
#[derive(Clone, Default)]
struct Order {
    /// Elements of each set, in order.
    elements: Vec<u32>,
    /// Per element: position of the first in `elements` that it is tied with.
    ranks: Vec<u32>,
    /// Bit mask of the elements that are tied; elements beyond 64 share bits.
    tied: u64,
    /// One representative of each class of tied elements that can be exchanged.
    representatives: Vec<u32>,
}

/// Hash of two numbers; not symmetric.
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

/// Extracts the bits that a mask selects, and packs them together.
#[inline(always)]
#[allow(unsafe_code)]
fn gather<const BMI2: bool>(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if BMI2 {
        // SAFETY: only code compiled for BMI2 passes true.
        return unsafe { std::arch::x86_64::_pext_u64(word, mask) };
    }
    let (mut gathered, mut end) = (0, 0);
    for (shift, ones) in runs(mask) {
        gathered |= (word >> shift & ones) << end;
        end += ones.count_ones();
    }
    gathered
}

/// Distributes packed bits to the positions that a mask selects; inverse of [`gather`].
#[inline(always)]
#[allow(unsafe_code)]
fn scatter<const BMI2: bool>(bits: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if BMI2 {
        // SAFETY: as in `gather`.
        return unsafe { std::arch::x86_64::_pdep_u64(bits, mask) };
    }
    let (mut remaining, mut scattered) = (bits, 0);
    for (shift, ones) in runs(mask) {
        scattered |= (remaining & ones) << shift;
        remaining = remaining.unbounded_shr(ones.count_ones());
    }
    scattered
}

/// Runs of ones in a mask: position, and the run shifted to position 0.
#[inline(always)]
fn runs(mut mask: u64) -> impl Iterator<Item = (u32, u64)> {
    std::iter::from_fn(move || {
        let shift = mask.trailing_zeros();
        let run = mask.checked_shr(shift)?.trailing_ones();
        let ones = u64::MAX >> (u64::BITS - run);
        mask &= !(ones << shift);
        Some((shift, ones))
    })
}

/// Mixes the bits of a number.
#[inline(always)]
fn mix_bits(code: u64) -> u64 {
    (code ^ code >> 29).wrapping_mul(HASH_MULTIPLIER)
}

/// Odd factor of [`mix_bits`].
const HASH_MULTIPLIER: u64 = 0xa076_1d64_78bd_642f;

impl Bits {
    /// Value of these bits in a packed state.
    #[inline(always)]
    pub fn get(self, words: &[u64]) -> u64 {
        words[self.word as usize] >> self.shift & self.mask
    }

    /// Replaces these bits in a packed state by `value`, which must fit.
    #[inline(always)]
    fn set(self, words: &mut [u64], value: u64) {
        let word = &mut words[self.word as usize];
        *word = *word & !(self.mask << self.shift) | value << self.shift;
    }
}

impl Member {
    /// Element of a packed value, if it is one.
    #[inline(always)]
    fn held_element(self, value: u64) -> Option<u32> {
        let offset = value.wrapping_sub(self.low);
        (offset < self.count.into()).then(|| self.element + offset as u32)
    }
}

/// Packed value of an element, moved by a number of elements.
#[inline(always)]
fn moved_by(value: u64, step: u32) -> u64 {
    value.wrapping_add_signed((step as i32).into())
}

/// Bit of an element in [`Order::tied`].
#[inline(always)]
fn bit(element: u32) -> u64 {
    1 << (element % 64)
}

/// Sorts elements by their keys (stable insertion sort).
#[inline(always)]
fn insertion_sort(elements: &mut [u32], key: impl Fn(u32) -> u64) {
    for end in 1..elements.len() {
        let element = elements[end];
        let element_key = key(element);
        let mut position = end;
        while position > 0 && key(elements[position - 1]) > element_key {
            elements[position] = elements[position - 1];
            position -= 1;
        }
        elements[position] = element;
    }
}

impl Order {
    /// Sorts the elements in a range of positions by `key`, and updates their ranks.
    /// Returns true unless all are tied.
    #[inline]
    fn sort(&mut self, range: Range<usize>, key: impl Fn(u32) -> u64) -> bool {
        let elements = &mut self.elements[range.clone()];
        insertion_sort(elements, &key);
        let mut rank = range.start;
        let (mut previous, mut last_key) = (NONE, 0);
        for (position, &element) in (range.start..).zip(&*elements) {
            let element_key = key(element);
            if previous == NONE || element_key != last_key {
                rank = position;
                self.tied &= !bit(element);
            } else {
                self.tied |= bit(previous) | bit(element);
            }
            self.ranks[element as usize] = rank as u32;
            (previous, last_key) = (element, element_key);
        }
        rank > range.start
    }

    /// Next range of tied positions from `from` on.
    fn next_tie(&self, from: usize) -> Option<Range<usize>> {
        let mut position = from;
        while position < self.elements.len() {
            let end = self.end_of_tie(position);
            if end > position + 1 {
                return Some(position..end);
            }
            position = end;
        }
        None
    }

    /// End of the range of tied positions that begins at `position`.
    fn end_of_tie(&self, position: usize) -> usize {
        let rank = self.ranks[self.elements[position] as usize];
        let later_elements = &self.elements[position + 1..];
        let tied = later_elements
            .iter()
            .take_while(|&&e| self.ranks[e as usize] == rank);
        position + 1 + tied.count()
    }
}

impl Layout {
    /// Sorts the parts of keys, and merges adjacent parts of one word.
    pub fn finish(&mut self) {
        let elements = self.sets.last().map_or(0, |set| set.end);
        self.parts.sort_by_key(|part| (part.element, part.shift));
        self.parts.dedup_by(|next, part| {
            let end = part.shift + part.mask.count_ones();
            let is_adjacent = (part.element, part.word, end)
                == (next.element, next.word, next.shift)
                && part.mask < next.mask;
            if is_adjacent {
                part.mask |= next.mask;
            }
            is_adjacent
        });
        let end = |element| self.parts.partition_point(|part| part.element <= element);
        self.ends = (0..elements).map(end).collect();
        self.by_word.clone_from(&self.parts);
        self.by_word.sort_by_key(|part| part.word);
        #[cfg(target_arch = "x86_64")]
        {
            self.bmi2 = std::arch::is_x86_feature_detected!("bmi2");
        }
    }

    /// Allocates working memory for states of this layout.
    #[cold]
    fn allocate_scratch(&self, scratch: &mut Scratch) {
        let elements = self.ends.len();
        scratch.keys = vec![0; elements];
        scratch.signatures = vec![0; elements];
        scratch.positions = vec![0; elements];
        scratch.order = vec![0; elements];
        scratch.codes = vec![0; self.leaves.len()];
        scratch.values = vec![0; self.leaves.len()];
        scratch.held_elements = vec![NONE; self.leaves.len()];
        scratch.image = vec![0; self.leaves.len()];
        scratch.best_image = vec![0; self.leaves.len()];
        scratch.exchanged_image = vec![0; self.leaves.len()];
        // Arrows are read and compared as a whole.
        scratch.active_relations.clone_from(&self.relations);
        scratch.levels.push(Order {
            elements: vec![0; elements],
            ranks: vec![0; elements],
            ..Order::default()
        });
    }

    /// Replaces a packed state, whose multisets are sorted, by its canonical form.
    #[inline]
    #[allow(unsafe_code)]
    pub fn canonicalise(&self, words: &mut [u64], scratch: &mut Scratch) {
        match self.bmi2 {
            // SAFETY: the processor was tested for these instructions.
            #[cfg(target_arch = "x86_64")]
            true => unsafe { self.canonicalise_with_bmi2(words, scratch) },
            _ => self.canonicalise_with::<false>(words, scratch),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2")]
    fn canonicalise_with_bmi2(&self, words: &mut [u64], scratch: &mut Scratch) {
        self.canonicalise_with::<true>(words, scratch);
    }

    /// Canonicalises a state; `BMI2` selects the implementation of [`gather`] and [`scatter`].
    #[inline(always)]
    fn canonicalise_with<const BMI2: bool>(&self, words: &mut [u64], scratch: &mut Scratch) {
        if scratch.levels.is_empty() {
            self.allocate_scratch(scratch);
        }
        self.compute_keys::<BMI2>(words, &mut scratch.keys);
        let (mut sorted, mut tied) = (true, false);
        for set in &self.sets {
            let keys = &scratch.keys[set.start as usize..set.end as usize];
            for pair in keys.windows(2) {
                sorted &= pair[0] <= pair[1];
                tied |= pair[0] == pair[1];
            }
        }
        // Tied elements without relations are equal.
        if !sorted || tied && !self.leaves.is_empty() {
            self.rearrange::<BMI2>(words, scratch, sorted);
        }
    }

    /// Computes the keys of all elements.
    #[inline(always)]
    fn compute_keys<const BMI2: bool>(&self, words: &[u64], keys: &mut [u64]) {
        let mut first = 0;
        for (key, &end) in keys.iter_mut().zip(&self.ends) {
            let parts = self.parts[first..end].iter();
            *key = parts.fold(0, |key, part| {
                key | gather::<BMI2>(words[part.word as usize], part.mask) << part.shift
            });
            first = end;
        }
        for holder in &self.holders {
            let value = holder.bits.get(words);
            if let Some(element) = holder.member.held_element(value) {
                keys[element as usize] |= 1 << holder.shift;
            }
        }
    }

    /// Computes the order of the elements, and rearranges the state.
    #[inline(always)]
    fn rearrange<const BMI2: bool>(&self, words: &mut [u64], scratch: &mut Scratch, sorted: bool) {
        if self.leaves.is_empty() {
            for (position, element) in scratch.order.iter_mut().enumerate() {
                *element = position as u32;
            }
            for set in &self.sets {
                let elements = &mut scratch.order[set.start as usize..set.end as usize];
                insertion_sort(elements, |e| scratch.keys[e as usize]);
            }
        } else {
            let order = &mut scratch.levels[0];
            for (position, element) in order.elements.iter_mut().enumerate() {
                *element = position as u32;
            }
            for set in &self.sets {
                order.sort(set.start as usize..set.end as usize, |e| {
                    scratch.keys[e as usize]
                });
            }
            self.read_leaves(words, scratch);
            scratch.has_best_image = false;
            match self.arrows.is_empty() && self.all_ties_exchangeable(scratch) {
                // Any order of tied elements gives the same image, so the current order is canonical if keys are
                // sorted.
                true if sorted => return,
                true => self.apply_order(scratch, 0),
                false => self.search(scratch, 0),
            }
        }
        let mut moved = false;
        for (position, &element) in scratch.order.iter().enumerate() {
            scratch.positions[element as usize] = position as u32;
            moved |= position as u32 != element;
        }
        if !self.leaves.is_empty() && scratch.best_image != scratch.values {
            self.write_leaves(words, scratch);
        }
        if moved {
            self.move_keys::<BMI2>(words, scratch);
        }
    }

    /// Moves the parts of keys, and the elements that holders hold, to their new positions.
    #[inline(always)]
    fn move_keys<const BMI2: bool>(&self, words: &mut [u64], scratch: &Scratch) {
        for parts in self.by_word.chunk_by(|a, b| a.word == b.word) {
            let (mut kept_mask, mut moved) = (u64::MAX, 0);
            for part in parts {
                let from = scratch.order[part.element as usize] as usize;
                kept_mask &= !part.mask;
                moved |= scatter::<BMI2>(scratch.keys[from] >> part.shift, part.mask);
            }
            let word = &mut words[parts[0].word as usize];
            *word = *word & kept_mask | moved;
        }
        for holder in &self.holders {
            let value = holder.bits.get(words);
            if let Some(element) = holder.member.held_element(value) {
                let step = scratch.positions[element as usize].wrapping_sub(element);
                holder.bits.set(words, moved_by(value, step));
            }
        }
    }

    /// Reads the packed value of each leaf, and the element that it holds.
    #[inline]
    fn read_leaves(&self, words: &[u64], scratch: &mut Scratch) {
        if !self.arrows.is_empty() {
            let targets = scratch.values.iter_mut().zip(&mut scratch.held_elements);
            for (arrow, (value, held)) in self.arrows.iter().zip(targets) {
                *value = arrow.bits.get(words);
                *held = arrow.member.held_element(*value).unwrap_or(NONE);
            }
            return;
        }
        scratch.values.copy_from_slice(&self.defaults);
        scratch.active_relations.clear();
        let first_leaf = |relation: u32| self.leaves[self.relations[relation as usize].start].bits;
        self.lookup.for_each(words, first_leaf, |relation| {
            let relation = self.relations[relation as usize].clone();
            scratch.active_relations.push(relation.clone());
            for leaf_index in relation {
                let leaf = &self.leaves[leaf_index];
                let value = leaf.bits.get(words);
                scratch.values[leaf_index] = value;
                let absent = |present| scratch.values[present as usize] == 0;
                let members = match leaf.present.is_some_and(absent) {
                    true => &[][..],
                    false => &self.members[leaf.members.clone()],
                };
                let held = members.iter().find_map(|member| member.held_element(value));
                scratch.held_elements[leaf_index] = held.unwrap_or(NONE);
            }
        });
    }

    /// Writes the best image to a state that has the values of the leaves. The positions are those of the best order.
    #[inline]
    fn write_leaves(&self, words: &mut [u64], scratch: &Scratch) {
        if !self.arrows.is_empty() {
            for (leaf, &value) in self.leaves.iter().zip(&scratch.best_image) {
                leaf.bits.set(words, value);
            }
            return;
        }
        for leaf_index in scratch.active_relations.iter().cloned().flatten() {
            let position = |element| scratch.positions[element as usize];
            let (to, _) = self.move_leaf(leaf_index, scratch, position);
            for changed in [leaf_index, to] {
                self.leaves[changed]
                    .bits
                    .set(words, scratch.best_image[changed]);
            }
        }
    }

    /// Tries all orders that extend the order of a level.
    fn search(&self, scratch: &mut Scratch, level: usize) {
        self.refine(scratch, level);
        if !self.arrows.is_empty() {
            // If no tied element is held, exact signatures describe tied elements completely.
            let tied = scratch.levels[level].tied;
            let holds = |&held: &u32| held != NONE && tied & bit(held) != 0;
            if !scratch.held_elements.iter().any(holds) {
                return self.apply_order(scratch, level);
            }
        }
        let mut from = 0;
        while let Some(tie) = scratch.levels[level].next_tie(from) {
            scratch.levels[level].representatives.clear();
            for position in tie.clone() {
                let element = scratch.levels[level].elements[position];
                let mut known_representatives = 0..scratch.levels[level].representatives.len();
                if !known_representatives.any(|i| {
                    self.is_exchangeable(scratch, scratch.levels[level].representatives[i], element)
                }) {
                    scratch.levels[level].representatives.push(element);
                }
            }
            if scratch.levels[level].representatives.len() == 1 {
                // The elements are indistinguishable, so any order gives the same image.
                from = tie.end;
                continue;
            }
            if scratch.levels.len() == level + 1 {
                scratch.levels.push(Order::default());
            }
            for i in 0..scratch.levels[level].representatives.len() {
                let (upper, lower) = scratch.levels.split_at_mut(level + 1);
                let element = upper[level].representatives[i];
                lower[0].clone_from(&upper[level]);
                lower[0].sort(tie.clone(), |other| u64::from(other != element));
                self.search(scratch, level + 1);
            }
            return;
        }
        self.apply_order(scratch, level);
    }

    /// True if any two tied elements can be exchanged.
    fn all_ties_exchangeable(&self, scratch: &mut Scratch) -> bool {
        (1..scratch.levels[0].elements.len()).all(|position| {
            let order = &scratch.levels[0];
            let [first, second] = [order.elements[position - 1], order.elements[position]];
            let tied = order.ranks[first as usize] == order.ranks[second as usize];
            !tied || self.is_exchangeable(scratch, first, second)
        })
    }

    /// Makes a level's order the best one, unless an earlier one gives a smaller image.
    fn apply_order(&self, scratch: &mut Scratch, level: usize) {
        let order = &scratch.levels[level].elements;
        for (position, &element) in order.iter().enumerate() {
            scratch.positions[element as usize] = position as u32;
        }
        let mut image = std::mem::take(&mut scratch.image);
        self.apply_permutation(scratch, &scratch.positions, &mut image);
        scratch.image = image;
        let order = &scratch.levels[level].elements;
        if !scratch.has_best_image || scratch.image < scratch.best_image {
            scratch.has_best_image = true;
            scratch.order.copy_from_slice(order);
            std::mem::swap(&mut scratch.best_image, &mut scratch.image);
        }
    }

    /// Splits ties by relations until a pass splits no further tie.
    fn refine(&self, scratch: &mut Scratch, level: usize) {
        while scratch.levels[level].tied != 0 {
            match self.arrows.is_empty() {
                true => self.compute_signatures(scratch, level),
                false => self.compute_exact_signatures(scratch, level),
            }
            let order = &mut scratch.levels[level];
            let mut from = 0;
            let mut has_split = false;
            while let Some(tie) = order.next_tie(from) {
                from = tie.end;
                has_split |= order.sort(tie, |element| scratch.signatures[element as usize]);
            }
            if !has_split {
                return;
            }
        }
    }

    /// Exact signatures: numbers that are equal only for elements with equal relations, given the ranks of all.
    #[inline]
    fn compute_exact_signatures(&self, scratch: &mut Scratch, level: usize) {
        let ranks = &scratch.levels[level].ranks;
        scratch.signatures.fill(0);
        for (arrow, (&value, &held)) in self
            .arrows
            .iter()
            .zip(scratch.values.iter().zip(&scratch.held_elements))
        {
            let mut value = value;
            if held != NONE {
                value = moved_by(value, ranks[held as usize].wrapping_sub(held));
                let from = arrow.rank_shift.wrapping_add(ranks[arrow.element as usize]);
                scratch.signatures[held as usize] |= 1 << from;
            }
            scratch.signatures[arrow.element as usize] |= value << arrow.value_shift;
        }
    }

    /// Hashed signatures of the relations of each element, given the ranks of all.
    fn compute_signatures(&self, scratch: &mut Scratch, level: usize) {
        let ranks = &scratch.levels[level].ranks;
        scratch.signatures.fill(0);
        for relation in &scratch.active_relations {
            let mut relation_code = 0u64;
            for leaf_index in relation.clone() {
                let code = self.leaf_code(
                    leaf_index,
                    scratch.values[leaf_index],
                    scratch.held_elements[leaf_index],
                    ranks,
                );
                scratch.codes[leaf_index] = code;
                relation_code = relation_code.wrapping_add(mix_bits(code));
            }
            for leaf_index in relation.clone() {
                let leaf = &self.leaves[leaf_index];
                let code = scratch.codes[leaf_index] ^ relation_code;
                let mut role = 1;
                for &(element, _) in &self.moves[leaf.moves.clone()] {
                    role += 2;
                    let signature = &mut scratch.signatures[element as usize];
                    *signature = signature.wrapping_add(mix_bits(code.wrapping_mul(role)));
                }
                if scratch.held_elements[leaf_index] != NONE {
                    let signature =
                        &mut scratch.signatures[scratch.held_elements[leaf_index] as usize];
                    *signature = signature.wrapping_add(mix_bits(code));
                }
            }
        }
    }

    /// Code of a leaf, with the ranks of its elements.
    #[inline(always)]
    fn leaf_code(&self, leaf_index: usize, value: u64, held: u32, ranks: &[u32]) -> u64 {
        let leaf = &self.leaves[leaf_index];
        let held = match held {
            NONE => value ^ 1 << 32,
            element => u64::from(ranks[element as usize]),
        };
        let mut code = leaf.seed.wrapping_add(held.wrapping_mul(HASH_MULTIPLIER));
        let mut weight = HASH_MULTIPLIER;
        for &(element, _) in &self.moves[leaf.moves.clone()] {
            weight = weight.wrapping_mul(HASH_MULTIPLIER);
            code = code.wrapping_add(u64::from(ranks[element as usize]).wrapping_mul(weight));
        }
        code
    }

    /// New position and value of a leaf if elements move to the given positions.
    #[inline(always)]
    fn move_leaf(
        &self,
        leaf_index: usize,
        scratch: &Scratch,
        new_position: impl Fn(u32) -> u32,
    ) -> (usize, u64) {
        let (leaf, value) = (&self.leaves[leaf_index], scratch.values[leaf_index]);
        let mut to = leaf_index as u32;
        for &(element, stride) in &self.moves[leaf.moves.clone()] {
            to = to.wrapping_add(
                new_position(element)
                    .wrapping_sub(element)
                    .wrapping_mul(stride),
            );
        }
        // Packed values of a set's elements are consecutive.
        let value = match scratch.held_elements[leaf_index] {
            NONE => value,
            element => moved_by(value, new_position(element).wrapping_sub(element)),
        };
        (to as usize, value)
    }

    /// Applies a permutation of the elements to the leaves.
    fn apply_permutation(&self, scratch: &Scratch, positions: &[u32], image: &mut [u64]) {
        let step = |element: u32| positions[element as usize].wrapping_sub(element);
        let values = scratch.values.iter().zip(&scratch.held_elements);
        for (leaf_index, (arrow, (&value, &held))) in (0..).zip(self.arrows.iter().zip(values)) {
            let to = step(arrow.element)
                .wrapping_mul(arrow.stride)
                .wrapping_add(leaf_index);
            image[to as usize] = match held {
                NONE => value,
                held => moved_by(value, step(held)),
            };
        }
        if !self.arrows.is_empty() {
            return;
        }
        image.copy_from_slice(&self.defaults);
        for leaf_index in scratch.active_relations.iter().cloned().flatten() {
            let (to, value) =
                self.move_leaf(leaf_index, scratch, |element| positions[element as usize]);
            image[to] = value;
        }
        self.sort_multisets(image);
    }

    /// Sorts multisets as in every stored state: elements before empty positions, the smallest first.
    fn sort_multisets(&self, image: &mut [u64]) {
        for multiset in &self.multisets {
            let order = |a: &[u64], b: &[u64]| b[0].cmp(&a[0]).then_with(|| a.cmp(b));
            let second = multiset.leaves.start + multiset.stride;
            if second >= multiset.leaves.end || image[second] == 0 {
                // Elements come before empty positions, also in an image.
                continue;
            }
            let slots = || image[multiset.leaves.clone()].chunks_exact(multiset.stride);
            if !slots().is_sorted_by(|a, b| order(a, b).is_le()) {
                let mut sorted: Vec<&[u64]> = slots().collect();
                sorted.sort_by(|a, b| order(a, b));
                let sorted = sorted.concat();
                image[multiset.leaves.clone()].copy_from_slice(&sorted);
            }
        }
    }

    /// True if exchanging two elements of a set leaves all leaves unchanged.
    fn is_exchangeable(&self, scratch: &mut Scratch, first: u32, second: u32) -> bool {
        let exchanged = |element: u32| match element {
            _ if element == first => second,
            _ if element == second => first,
            _ => element,
        };
        if self.multisets.is_empty() {
            // Distinct leaves move to distinct leaves, so all others keep their values too.
            let mut leaves = scratch.active_relations.iter().cloned().flatten();
            return leaves.all(|leaf_index| {
                let (to, value) = self.move_leaf(leaf_index, scratch, exchanged);
                scratch.values[to] == value
            });
        }
        let positions: Vec<u32> = (0..self.ends.len() as u32).map(exchanged).collect();
        let mut image = std::mem::take(&mut scratch.exchanged_image);
        self.apply_permutation(scratch, &positions, &mut image);
        let is_unchanged = image == scratch.values;
        scratch.exchanged_image = image;
        is_unchanged
    }
}

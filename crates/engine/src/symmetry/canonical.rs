//! Exact canonical forms: one packed state per orbit under permutations of scalarset elements.
//!
//! A state is a structure over the *elements* of all scalarsets. Each slot relates the elements that index it, the
//! element that it holds, and its plain value. The algorithm finds an order of the elements that does not depend on
//! their names; the canonical state has the elements in this order.
//!
//! First each element gets a *key*: the packed contents of the slots that involve only this element, which are most.
//! Elements with equal keys are tied; they differ at most in their relations to others. Rounds of *colour refinement*
//! then split ties by these relations, until a round splits no further tie.
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
    /// All other slots that permutations move or change, and those in the same places of multisets.
    pub leaves: Vec<Leaf>,
    /// Leaves that relate elements: single ones, or all of one place of a multiset.
    pub relations: Vec<Range<usize>>,
    /// Targets of [`Leaf::moves`]: an element that indexes the slot, and the distance in leaves to the next element's.
    pub moves: Vec<(u32, u32)>,
    /// Targets of [`Leaf::members`].
    pub members: Vec<Member>,
    /// Multisets among the leaves, inner ones first.
    pub bags: Vec<Bag>,
    /// One per leaf, if all leaves have this form; else empty.
    pub arrows: Vec<Arrow>,
    /// True if the processor has the BMI2 instructions for [`gather`] and [`scatter`].
    pub bmi2: bool,
}

/// A single leaf that one element indexes, and whose values are elements of at most one set. Used if signatures have
/// room for all such leaves; they are then exact, not hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub bits: Bits,
    pub element: u32,
    /// Distance in leaves to the next element's.
    pub stride: u32,
    /// Values that are elements; its count is 0 if there are none.
    pub member: Member,
    /// Bit position of the value in the signature of the indexing element.
    pub out: u32,
    /// Bit position of the indexing element's rank in the signature of the held element, less the least rank.
    pub into: u32,
}

/// Bits of a packed state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits {
    pub word: u32,
    pub shift: u32,
    pub mask: u64,
}

/// A part of an element's key: adjacent bits after extraction from one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub word: u32,
    pub mask: u64,
    pub element: u32,
    /// Bit position in the key.
    pub shift: u32,
}

/// Packed values of a slot that are elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Packed value of the first element.
    pub low: u64,
    pub count: u32,
    pub element: u32,
}

/// A slot that holds an element.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub bits: Bits,
    pub member: Member,
    /// Bit position in the key of the held element.
    pub shift: u32,
}

/// A slot that is not part of a key.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub bits: Bits,
    /// Equal for slots that a permutation may exchange.
    pub seed: u64,
    /// Range in [`Layout::moves`].
    pub moves: Range<usize>,
    /// Values that are elements: range in [`Layout::members`].
    pub members: Range<usize>,
    /// In a multiset: the leaf that is 1 if the place holds an element. In an empty place, the other leaves have no
    /// meaning.
    pub present: Option<u32>,
}

/// A multiset. Its leaves are consecutive; those of each place begin with the one that is 1 if the place holds an
/// element.
#[derive(Clone, Debug)]
pub(super) struct Bag {
    pub leaves: Range<usize>,
    /// Leaves per place.
    pub stride: usize,
}

/// Working memory of one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    keys: Vec<u64>,
    /// Orders of elements, one per level of singling out.
    levels: Vec<Order>,
    signatures: Vec<u64>,
    codes: Vec<u64>,
    /// Packed value of each leaf.
    values: Vec<u64>,
    /// Element that each leaf holds, or `NONE`.
    held: Vec<u32>,
    /// New position of each element.
    places: Vec<u32>,
    image: Vec<u64>,
    /// Smallest image so far, and the order that gives it.
    best: Vec<u64>,
    order: Vec<u32>,
    found: bool,
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
    different: Vec<u32>,
}

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
    let (mut rest, mut scattered) = (bits, 0);
    for (shift, ones) in runs(mask) {
        scattered |= (rest & ones) << shift;
        rest = rest.unbounded_shr(ones.count_ones());
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

const HASH_MULTIPLIER: u64 = 0xa076_1d64_78bd_642f;

impl Bits {
    #[inline(always)]
    pub fn get(self, words: &[u64]) -> u64 {
        words[self.word as usize] >> self.shift & self.mask
    }

    #[inline(always)]
    fn set(self, words: &mut [u64], value: u64) {
        let word = &mut words[self.word as usize];
        *word = *word & !(self.mask << self.shift) | value << self.shift;
    }
}

impl Member {
    /// Element of a packed value, if it is one.
    #[inline(always)]
    fn held(self, value: u64) -> Option<u32> {
        let held = value.wrapping_sub(self.low);
        (held < self.count.into()).then(|| self.element + held as u32)
    }
}

/// Packed value of an element, moved by a number of elements.
#[inline(always)]
fn moved_by(value: u64, step: u32) -> u64 {
    value.wrapping_add_signed((step as i32).into())
}

#[inline(always)]
fn bit(element: u32) -> u64 {
    1 << (element % 64)
}

/// Sorts elements by their keys (stable insertion sort).
#[inline(always)]
fn arrange(elements: &mut [u32], key: impl Fn(u32) -> u64) {
    for end in 1..elements.len() {
        let element = elements[end];
        let its = key(element);
        let mut at = end;
        while at > 0 && key(elements[at - 1]) > its {
            elements[at] = elements[at - 1];
            at -= 1;
        }
        elements[at] = element;
    }
}

impl Order {
    /// Sorts the elements in a range of positions by `key`, and updates their ranks.
    /// Returns true unless all are tied.
    #[inline]
    fn sort(&mut self, places: Range<usize>, key: impl Fn(u32) -> u64) -> bool {
        let elements = &mut self.elements[places.clone()];
        arrange(elements, &key);
        let mut rank = places.start;
        let (mut before, mut last) = (NONE, 0);
        for (at, &element) in (places.start..).zip(&*elements) {
            let its = key(element);
            if before == NONE || its != last {
                rank = at;
                self.tied &= !bit(element);
            } else {
                self.tied |= bit(before) | bit(element);
            }
            self.ranks[element as usize] = rank as u32;
            (before, last) = (element, its);
        }
        rank > places.start
    }

    /// Next range of tied positions from `from` on.
    fn next_tie(&self, from: usize) -> Option<Range<usize>> {
        let mut at = from;
        while at < self.elements.len() {
            let end = self.end_of_tie(at);
            if end > at + 1 {
                return Some(at..end);
            }
            at = end;
        }
        None
    }

    fn end_of_tie(&self, at: usize) -> usize {
        let rank = self.ranks[self.elements[at] as usize];
        let rest = &self.elements[at + 1..];
        let tied = rest.iter().take_while(|&&e| self.ranks[e as usize] == rank);
        at + 1 + tied.count()
    }
}

impl Layout {
    /// Sorts the parts of keys, and merges adjacent parts of one word.
    pub fn finish(&mut self) {
        let elements = self.sets.last().map_or(0, |set| set.end);
        self.parts.sort_by_key(|part| (part.element, part.shift));
        self.parts.dedup_by(|next, part| {
            let end = part.shift + part.mask.count_ones();
            let together = (part.element, part.word, end) == (next.element, next.word, next.shift)
                && part.mask < next.mask;
            if together {
                part.mask |= next.mask;
            }
            together
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
    fn prepare(&self, s: &mut Scratch) {
        let elements = self.ends.len();
        s.keys = vec![0; elements];
        s.signatures = vec![0; elements];
        s.places = vec![0; elements];
        s.order = vec![0; elements];
        s.codes = vec![0; self.leaves.len()];
        s.values = vec![0; self.leaves.len()];
        s.held = vec![NONE; self.leaves.len()];
        s.image = vec![0; self.leaves.len()];
        s.best = vec![0; self.leaves.len()];
        s.levels.push(Order {
            elements: vec![0; elements],
            ranks: vec![0; elements],
            ..Order::default()
        });
    }

    /// Replaces a packed state, whose multisets are sorted, by its canonical form.
    #[inline]
    #[allow(unsafe_code)]
    pub fn canonicalise(&self, words: &mut [u64], s: &mut Scratch) {
        match self.bmi2 {
            // SAFETY: the processor was tested for these instructions.
            #[cfg(target_arch = "x86_64")]
            true => unsafe { self.with_bmi2(words, s) },
            _ => self.with::<false>(words, s),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2")]
    fn with_bmi2(&self, words: &mut [u64], s: &mut Scratch) {
        self.with::<true>(words, s);
    }

    #[inline(always)]
    fn with<const BMI2: bool>(&self, words: &mut [u64], s: &mut Scratch) {
        if s.levels.is_empty() {
            self.prepare(s);
        }
        self.keys::<BMI2>(words, &mut s.keys);
        let (mut sorted, mut tied) = (true, false);
        for set in &self.sets {
            let keys = &s.keys[set.start as usize..set.end as usize];
            for pair in keys.windows(2) {
                sorted &= pair[0] <= pair[1];
                tied |= pair[0] == pair[1];
            }
        }
        // Tied elements without relations are equal.
        if !sorted || tied && !self.leaves.is_empty() {
            self.rearrange::<BMI2>(words, s, sorted);
        }
    }

    /// Computes the keys of all elements.
    #[inline(always)]
    fn keys<const BMI2: bool>(&self, words: &[u64], keys: &mut [u64]) {
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
            if let Some(element) = holder.member.held(value) {
                keys[element as usize] |= 1 << holder.shift;
            }
        }
    }

    /// Computes the order of the elements, and rearranges the state.
    #[inline(always)]
    fn rearrange<const BMI2: bool>(&self, words: &mut [u64], s: &mut Scratch, sorted: bool) {
        if self.leaves.is_empty() {
            for (place, element) in s.order.iter_mut().enumerate() {
                *element = place as u32;
            }
            for set in &self.sets {
                let elements = &mut s.order[set.start as usize..set.end as usize];
                arrange(elements, |e| s.keys[e as usize]);
            }
        } else {
            let order = &mut s.levels[0];
            for (place, element) in order.elements.iter_mut().enumerate() {
                *element = place as u32;
            }
            for set in &self.sets {
                order.sort(set.start as usize..set.end as usize, |e| s.keys[e as usize]);
            }
            self.read(words, s);
            s.found = false;
            match self.arrows.is_empty() && self.all_ties_exchangeable(s) {
                // Any order of tied elements gives the same image, so the current order is canonical if keys are
                // sorted.
                true if sorted => return,
                true => self.take(s, 0),
                false => self.search(s, 0),
            }
            if s.best != s.values {
                for (leaf, &value) in self.leaves.iter().zip(&s.best) {
                    leaf.bits.set(words, value);
                }
            }
        }
        let mut moved = false;
        for (place, &element) in s.order.iter().enumerate() {
            s.places[element as usize] = place as u32;
            moved |= place as u32 != element;
        }
        if !moved {
            return;
        }
        for parts in self.by_word.chunk_by(|a, b| a.word == b.word) {
            let (mut kept, mut moved) = (u64::MAX, 0);
            for part in parts {
                let from = s.order[part.element as usize] as usize;
                kept &= !part.mask;
                moved |= scatter::<BMI2>(s.keys[from] >> part.shift, part.mask);
            }
            let word = &mut words[parts[0].word as usize];
            *word = *word & kept | moved;
        }
        for holder in &self.holders {
            let value = holder.bits.get(words);
            if let Some(element) = holder.member.held(value) {
                let step = s.places[element as usize].wrapping_sub(element);
                holder.bits.set(words, moved_by(value, step));
            }
        }
    }

    /// Reads all leaves.
    #[inline]
    fn read(&self, words: &[u64], s: &mut Scratch) {
        if !self.arrows.is_empty() {
            let room = s.values.iter_mut().zip(&mut s.held);
            for (arrow, (value, held)) in self.arrows.iter().zip(room) {
                *value = arrow.bits.get(words);
                *held = arrow.member.held(*value).unwrap_or(NONE);
            }
            return;
        }
        for (value, leaf) in s.values.iter_mut().zip(&self.leaves) {
            *value = leaf.bits.get(words);
        }
        for (at, leaf) in self.leaves.iter().enumerate() {
            let absent = |present| s.values[present as usize] == 0;
            let members = match leaf.present.is_some_and(absent) {
                true => &[][..],
                false => &self.members[leaf.members.clone()],
            };
            let held = members.iter().find_map(|member| member.held(s.values[at]));
            s.held[at] = held.unwrap_or(NONE);
        }
    }

    /// Tries all orders that extend the order of a level.
    fn search(&self, s: &mut Scratch, level: usize) {
        self.refine(s, level);
        if !self.arrows.is_empty() {
            // If no tied element is held, exact signatures describe tied elements completely.
            let tied = s.levels[level].tied;
            let holds = |&held: &u32| held != NONE && tied & bit(held) != 0;
            if !s.held.iter().any(holds) {
                return self.take(s, level);
            }
        }
        let mut from = 0;
        while let Some(tie) = s.levels[level].next_tie(from) {
            s.levels[level].different.clear();
            for place in tie.clone() {
                let element = s.levels[level].elements[place];
                let mut known = 0..s.levels[level].different.len();
                if !known.any(|i| self.is_exchangeable(s, s.levels[level].different[i], element)) {
                    s.levels[level].different.push(element);
                }
            }
            if s.levels[level].different.len() == 1 {
                // The elements are indistinguishable, so any order gives the same image.
                from = tie.end;
                continue;
            }
            if s.levels.len() == level + 1 {
                s.levels.push(Order::default());
            }
            for i in 0..s.levels[level].different.len() {
                let (upper, lower) = s.levels.split_at_mut(level + 1);
                let element = upper[level].different[i];
                lower[0].clone_from(&upper[level]);
                lower[0].sort(tie.clone(), |other| u64::from(other != element));
                self.search(s, level + 1);
            }
            return;
        }
        self.take(s, level);
    }

    /// True if any two tied elements can be exchanged.
    fn all_ties_exchangeable(&self, s: &Scratch) -> bool {
        let order = &s.levels[0];
        let mut pairs = order.elements.windows(2);
        pairs.all(|pair| {
            let [one, other] = [pair[0], pair[1]];
            let tied = order.ranks[one as usize] == order.ranks[other as usize];
            !tied || self.is_exchangeable(s, one, other)
        })
    }

    /// Takes a level's order, unless an earlier one gives a smaller image.
    fn take(&self, s: &mut Scratch, level: usize) {
        let order = &s.levels[level].elements;
        for (place, &element) in order.iter().enumerate() {
            s.places[element as usize] = place as u32;
        }
        let mut image = std::mem::take(&mut s.image);
        self.apply(s, &s.places, &mut image);
        s.image = image;
        let order = &s.levels[level].elements;
        if !s.found || s.image < s.best {
            s.found = true;
            s.order.copy_from_slice(order);
            std::mem::swap(&mut s.best, &mut s.image);
        }
    }

    /// Splits ties by relations until a round splits no further tie.
    fn refine(&self, s: &mut Scratch, level: usize) {
        while s.levels[level].tied != 0 {
            match self.arrows.is_empty() {
                true => self.signatures(s, level),
                false => self.exact_signatures(s, level),
            }
            let order = &mut s.levels[level];
            let mut from = 0;
            let mut new = false;
            while let Some(tie) = order.next_tie(from) {
                from = tie.end;
                new |= order.sort(tie, |element| s.signatures[element as usize]);
            }
            if !new {
                return;
            }
        }
    }

    /// Exact signatures: numbers that are equal only for elements with equal relations, given the ranks of all.
    #[inline]
    fn exact_signatures(&self, s: &mut Scratch, level: usize) {
        let ranks = &s.levels[level].ranks;
        s.signatures.fill(0);
        for (arrow, (&value, &held)) in self.arrows.iter().zip(s.values.iter().zip(&s.held)) {
            let mut value = value;
            if held != NONE {
                value = moved_by(value, ranks[held as usize].wrapping_sub(held));
                let from = arrow.into.wrapping_add(ranks[arrow.element as usize]);
                s.signatures[held as usize] |= 1 << from;
            }
            s.signatures[arrow.element as usize] |= value << arrow.out;
        }
    }

    /// Hashed signatures of the relations of each element, given the ranks of all.
    fn signatures(&self, s: &mut Scratch, level: usize) {
        let ranks = &s.levels[level].ranks;
        s.signatures.fill(0);
        for relation in &self.relations {
            let mut whole = 0u64;
            for at in relation.clone() {
                let code = self.code(at, s.values[at], s.held[at], ranks);
                s.codes[at] = code;
                whole = whole.wrapping_add(mix_bits(code));
            }
            for at in relation.clone() {
                let leaf = &self.leaves[at];
                let code = s.codes[at] ^ whole;
                let mut role = 1;
                for &(element, _) in &self.moves[leaf.moves.clone()] {
                    role += 2;
                    let signature = &mut s.signatures[element as usize];
                    *signature = signature.wrapping_add(mix_bits(code.wrapping_mul(role)));
                }
                if s.held[at] != NONE {
                    let signature = &mut s.signatures[s.held[at] as usize];
                    *signature = signature.wrapping_add(mix_bits(code));
                }
            }
        }
    }

    /// Code of a leaf, with the ranks of its elements.
    #[inline(always)]
    fn code(&self, at: usize, value: u64, held: u32, ranks: &[u32]) -> u64 {
        let leaf = &self.leaves[at];
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

    /// New position and value of a leaf if elements move to the given places.
    #[inline(always)]
    fn moved(&self, at: usize, s: &Scratch, place: impl Fn(u32) -> u32) -> (usize, u64) {
        let (leaf, value) = (&self.leaves[at], s.values[at]);
        let mut to = at as u32;
        for &(element, stride) in &self.moves[leaf.moves.clone()] {
            to = to.wrapping_add(place(element).wrapping_sub(element).wrapping_mul(stride));
        }
        // Packed values of a set's elements are consecutive.
        let value = match s.held[at] {
            NONE => value,
            element => moved_by(value, place(element).wrapping_sub(element)),
        };
        (to as usize, value)
    }

    /// Applies a permutation of the elements to the leaves.
    fn apply(&self, s: &Scratch, places: &[u32], image: &mut [u64]) {
        let step = |element: u32| places[element as usize].wrapping_sub(element);
        let values = s.values.iter().zip(&s.held);
        for (at, (arrow, (&value, &held))) in (0..).zip(self.arrows.iter().zip(values)) {
            let to = step(arrow.element)
                .wrapping_mul(arrow.stride)
                .wrapping_add(at);
            image[to as usize] = match held {
                NONE => value,
                held => moved_by(value, step(held)),
            };
        }
        if !self.arrows.is_empty() {
            return;
        }
        for at in 0..self.leaves.len() {
            let (to, value) = self.moved(at, s, |element| places[element as usize]);
            image[to] = value;
        }
        self.settle(image);
    }

    /// Sorts multisets as in every stored state: elements before empty places, the smallest first.
    fn settle(&self, image: &mut [u64]) {
        for bag in &self.bags {
            let order = |a: &[u64], b: &[u64]| b[0].cmp(&a[0]).then_with(|| a.cmp(b));
            let places = || image[bag.leaves.clone()].chunks_exact(bag.stride);
            if !places().is_sorted_by(|a, b| order(a, b).is_le()) {
                let mut sorted: Vec<&[u64]> = places().collect();
                sorted.sort_by(|a, b| order(a, b));
                let sorted = sorted.concat();
                image[bag.leaves.clone()].copy_from_slice(&sorted);
            }
        }
    }

    /// True if exchanging two elements of a set leaves all leaves unchanged.
    fn is_exchangeable(&self, s: &Scratch, one: u32, other: u32) -> bool {
        let exchanged = |element: u32| match element {
            _ if element == one => other,
            _ if element == other => one,
            _ => element,
        };
        if self.bags.is_empty() {
            return (0..s.values.len()).all(|at| {
                let (to, value) = self.moved(at, s, exchanged);
                s.values[to] == value
            });
        }
        let mut image = vec![0; s.values.len()];
        let places: Vec<u32> = (0..self.ends.len() as u32).map(exchanged).collect();
        self.apply(s, &places, &mut image);
        image == s.values
    }
}

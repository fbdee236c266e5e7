//! Exact canonical forms: one packed state out of all that permutations of scalarset elements make of it.
//!
//! A state is seen as a structure over the *elements* of all scalarsets. Each slot relates the elements that index it,
//! the element that it holds and the plain value that it holds. Elements are brought into an order that
//! does not depend on their names, and the state in which they stand in this order is the canonical one.
//!
//! First each element gets a *key*: what is packed of the slots that involve it alone, which are most. So elements with
//! equal keys differ at most in their relations to others, by which those that are still tied are told apart
//! in rounds, until no round tells more apart (*colour refinement*).
//! Where some are tied even so, it is tried whether exchanging two of them leaves the state as it is: then either order
//! gives one image. If not, each is singled out in turn, and the smallest image wins.
//! No result rests on hashes: elements that are tied by accident are compared by exchange.

use std::ops::Range;

/// A state's packed slots as relations between elements of scalarsets.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The elements of each scalarset. Elements are numbered through.
    pub sets: Vec<Range<u32>>,
    /// What the keys are made of, by elements.
    pub parts: Vec<Part>,
    /// For each element, where its parts end.
    pub ends: Vec<usize>,
    /// The same parts, by words.
    pub by_word: Vec<Part>,
    /// Slots that hold an element and are not indexed by any, which count in that element's key.
    pub holders: Vec<Holder>,
    /// All other slots that permutations move or change, and those that stand beside them in multisets.
    pub leaves: Vec<Leaf>,
    /// Leaves that relate elements: alone, or those of one place of a multiset together.
    pub relations: Vec<Range<usize>>,
    /// For [`Leaf::moves`]: an element that indexes the slot, and the leaves from it to the next element's.
    pub moves: Vec<(u32, u32)>,
    /// For [`Leaf::members`].
    pub members: Vec<Member>,
    /// The multisets among the leaves, those inside others first.
    pub bags: Vec<Bag>,
    /// For each leaf, if all are such; else nothing.
    pub arrows: Vec<Arrow>,
    /// Whether the machine has instructions for [`gather`] and [`scatter`].
    pub bmi2: bool,
}

/// A leaf alone that one element indexes and whose values are elements of one set at most,
/// with its place in signatures that have room for all such leaves: then these are no hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub bits: Bits,
    pub element: u32,
    /// Leaves to the next element's.
    pub stride: u32,
    /// Nothing if it counts none.
    pub member: Member,
    /// Where the value counts in the signature of the element.
    pub out: u32,
    /// Where the element's rank counts, as a bit, in the signature of the element that is held; less the least rank.
    pub into: u32,
}

/// Bits of a packed state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits {
    pub word: u32,
    pub shift: u32,
    pub mask: u64,
}

/// A part of an element's key: some bits of a word, side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub word: u32,
    pub mask: u64,
    pub element: u32,
    /// Where it lies in the key.
    pub shift: u32,
}

/// Packed values of a slot that are elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The packed value that stands for the first element.
    pub low: u64,
    pub count: u32,
    pub element: u32,
}

/// A slot that holds an element.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub bits: Bits,
    pub member: Member,
    /// The bit in the element's key.
    pub shift: u32,
}

/// One slot.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub bits: Bits,
    /// Equal for slots that a permutation may take to each other.
    pub seed: u64,
    /// Into [`Layout::moves`].
    pub moves: Range<usize>,
    /// The values that are elements, into [`Layout::members`].
    pub members: Range<usize>,
    /// In a multiset: the leaf that says whether there is an element at all; the parts of none are no values.
    pub present: Option<u32>,
}

/// A multiset: its leaves lie one behind the other, those of each place beginning with the one that says
/// whether there is an element.
#[derive(Clone, Debug)]
pub(super) struct Bag {
    pub leaves: Range<usize>,
    /// Leaves of a place.
    pub stride: usize,
}

/// Room for one thread's work.
#[derive(Default)]
pub(crate) struct Scratch {
    keys: Vec<u64>,
    /// Orders to go on from, one for each level of singling out.
    levels: Vec<Order>,
    signatures: Vec<u64>,
    codes: Vec<u64>,
    /// What is packed of each leaf.
    values: Vec<u64>,
    /// The element that each leaf holds.
    held: Vec<u32>,
    /// For each element, where it goes.
    places: Vec<u32>,
    image: Vec<u64>,
    /// The smallest image so far and the order that gives it.
    best: Vec<u64>,
    order: Vec<u32>,
    found: bool,
}

/// In place of an element where there is none.
const NONE: u32 = u32::MAX;

/// Elements in an order with ties.
#[derive(Clone, Default)]
struct Order {
    /// The elements of each set, in order.
    elements: Vec<u32>,
    /// Of each element: the place of the first in `elements` that it is tied with.
    ranks: Vec<u32>,
    /// The elements that are tied with others, as bits; those beyond 64 share them.
    tied: u64,
    /// One of each class of tied elements that can be exchanged.
    different: Vec<u32>,
}

pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

/// The bits of a word that a mask names, side by side.
#[inline(always)]
#[allow(unsafe_code)]
fn gather<const BMI2: bool>(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if BMI2 {
        // SAFETY: only functions that have the instruction ask for it.
        return unsafe { std::arch::x86_64::_pext_u64(word, mask) };
    }
    let (mut gathered, mut end) = (0, 0);
    for (shift, ones) in runs(mask) {
        gathered |= (word >> shift & ones) << end;
        end += ones.count_ones();
    }
    gathered
}

/// Puts bits that stand side by side where a mask names them.
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

/// The runs of ones in a mask: where each begins, and as many ones.
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

/// A number whose bits all depend on those of another.
#[inline(always)]
fn stir(code: u64) -> u64 {
    (code ^ code >> 29).wrapping_mul(ODD)
}

const ODD: u64 = 0xa076_1d64_78bd_642f;

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
    /// The element that a packed value is.
    #[inline(always)]
    fn held(self, value: u64) -> Option<u32> {
        let held = value.wrapping_sub(self.low);
        (held < self.count.into()).then(|| self.element + held as u32)
    }
}

/// The packed value of the element that lies so far from another's, forward or back.
#[inline(always)]
fn moved_by(value: u64, step: u32) -> u64 {
    value.wrapping_add_signed((step as i32).into())
}

#[inline(always)]
fn bit(element: u32) -> u64 {
    1 << (element % 64)
}

/// Sorts elements by their keys.
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
    /// Sorts the elements from one place to another by what `key` says, and gives them their ranks.
    /// Whether they are not all tied.
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

    /// The first places from one on that are tied.
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
    /// Brings the parts of keys into order; those of one word that follow each other become one.
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

    /// Makes room for work on states of this layout.
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
            // SAFETY: the machine has been asked whether it has these instructions.
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
        // Elements that are tied and have no relations have nothing that differs.
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

    /// Brings the elements into their order.
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
            match self.arrows.is_empty() && self.alike(s) {
                // Any order of what is tied gives the same image, and the one at hand is one of them.
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

    /// Tries all that is left to be tried from one level's order on.
    fn search(&self, s: &mut Scratch, level: usize) {
        self.refine(s, level);
        if !self.arrows.is_empty() {
            // Where tied elements are held by none, their signatures say all about them.
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
                if !known.any(|i| self.exchangeable(s, s.levels[level].different[i], element)) {
                    s.levels[level].different.push(element);
                }
            }
            if s.levels[level].different.len() == 1 {
                // Nothing tells them apart, now or later, so any order does.
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

    /// Whether any two tied elements can be exchanged.
    fn alike(&self, s: &Scratch) -> bool {
        let order = &s.levels[0];
        let mut pairs = order.elements.windows(2);
        pairs.all(|pair| {
            let [one, other] = [pair[0], pair[1]];
            let tied = order.ranks[one as usize] == order.ranks[other as usize];
            !tied || self.exchangeable(s, one, other)
        })
    }

    /// Takes a level's order unless an earlier one gives a smaller image.
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

    /// Tells tied elements apart by their relations until that gives nothing new.
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

    /// What the relations of each element are, given the ranks of all, as numbers that are equal only for equal ones.
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

    /// What the relations of each element are, given the ranks of all, as hashes.
    fn signatures(&self, s: &mut Scratch, level: usize) {
        let ranks = &s.levels[level].ranks;
        s.signatures.fill(0);
        for relation in &self.relations {
            let mut whole = 0u64;
            for at in relation.clone() {
                let code = self.code(at, s.values[at], s.held[at], ranks);
                s.codes[at] = code;
                whole = whole.wrapping_add(stir(code));
            }
            for at in relation.clone() {
                let leaf = &self.leaves[at];
                let code = s.codes[at] ^ whole;
                let mut role = 1;
                for &(element, _) in &self.moves[leaf.moves.clone()] {
                    role += 2;
                    let signature = &mut s.signatures[element as usize];
                    *signature = signature.wrapping_add(stir(code.wrapping_mul(role)));
                }
                if s.held[at] != NONE {
                    let signature = &mut s.signatures[s.held[at] as usize];
                    *signature = signature.wrapping_add(stir(code));
                }
            }
        }
    }

    /// A leaf with the ranks of its elements, as a number.
    #[inline(always)]
    fn code(&self, at: usize, value: u64, held: u32, ranks: &[u32]) -> u64 {
        let leaf = &self.leaves[at];
        let held = match held {
            NONE => value ^ 1 << 32,
            element => u64::from(ranks[element as usize]),
        };
        let mut code = leaf.seed.wrapping_add(held.wrapping_mul(ODD));
        let mut weight = ODD;
        for &(element, _) in &self.moves[leaf.moves.clone()] {
            weight = weight.wrapping_mul(ODD);
            code = code.wrapping_add(u64::from(ranks[element as usize]).wrapping_mul(weight));
        }
        code
    }

    /// Where a leaf and its value go if elements go to these places.
    #[inline(always)]
    fn moved(&self, at: usize, s: &Scratch, place: impl Fn(u32) -> u32) -> (usize, u64) {
        let (leaf, value) = (&self.leaves[at], s.values[at]);
        let mut to = at as u32;
        for &(element, stride) in &self.moves[leaf.moves.clone()] {
            to = to.wrapping_add(place(element).wrapping_sub(element).wrapping_mul(stride));
        }
        // A set's elements keep their distance from the value that stands for them.
        let value = match s.held[at] {
            NONE => value,
            element => moved_by(value, place(element).wrapping_sub(element)),
        };
        (to as usize, value)
    }

    /// What a permutation of the elements makes of the leaves.
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

    /// Sorts multisets: elements first, the smallest in front, as in every stored state.
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

    /// Whether exchanging two elements of a set leaves all leaves as they are.
    fn exchangeable(&self, s: &Scratch, one: u32, other: u32) -> bool {
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

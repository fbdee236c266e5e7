//! Exact canonical forms: one frame out of all that permutations of scalarset elements make of it.
//!
//! A frame is seen as a structure over the *elements* of all scalarsets. Each slot relates the elements that index it,
//! the element that it holds and the plain value that it holds. Elements are brought into an order that
//! does not depend on their names, and the frame in which they stand in this order is the canonical one.
//!
//! First each element gets a *key* from the slots that involve it alone, which are most. Elements that are still tied are
//! told apart by their relations to others, in rounds, until no round tells more apart (*colour refinement*).
//! Where some are tied even so, it is tried whether exchanging two of them leaves the frame as it is: then either order
//! gives one image. If not, each is singled out in turn, and the smallest image wins.
//! No result rests on hashes: elements that are tied by accident are compared by exchange.

use crate::program::{Program, UNDEFINED};
use std::ops::Range;

/// A program's slots as relations between elements of scalarsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The elements of each scalarset. Elements are numbered through.
    pub sets: Vec<Range<u32>>,
    /// Slots that involve one element each.
    pub properties: Vec<Property>,
    /// Whether keys say all about [`Layout::properties`].
    pub exact: bool,
    /// All slots that permutations move or change, and those that stand beside them in multisets.
    pub leaves: Vec<Leaf>,
    /// Leaves that relate several elements: alone, or those of one place of a multiset together.
    pub relations: Vec<Range<u32>>,
    /// For [`Leaf::moves`]: an element that indexes the slot, and the slots from it to the next element's.
    pub moves: Vec<(u32, u32)>,
    /// For [`Content::Union`]: where the values of a scalarset begin, how many there are, and the first element.
    pub members: Vec<(i32, u32, u32)>,
    /// Whether leaves lie in multisets.
    pub bags: bool,
}

/// One slot.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub slot: u32,
    /// Equal for slots that a permutation may take to each other.
    pub seed: u64,
    /// Into [`Layout::moves`].
    pub moves: Range<u32>,
    pub content: Content,
    /// In a multiset: the slot that says whether there is an element at all; the parts of none are no values.
    pub present: Option<u32>,
}

/// What the values of a slot are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Values that permutations leave alone.
    Plain,
    /// Elements: the first, which stands as 0.
    Element(u32),
    /// Some values are elements: into [`Layout::members`].
    Union(Range<u32>),
}

/// A slot that involves one element, and where in the element's key it counts.
#[derive(Clone, Debug)]
pub(crate) enum Property {
    /// An element indexes it: its value, less this base, is shifted into the element's key.
    Indexed {
        slot: u32,
        element: u32,
        base: i32,
        shift: u32,
    },
    /// It holds an element, whose key gets this bit: a leaf, the shift, and the value that is packed as 0.
    Holds { leaf: u32, shift: u32, base: i32 },
}

/// Room for one thread's work.
#[derive(Default)]
pub(crate) struct Scratch {
    keys: Vec<u64>,
    /// Orders to go on from, one for each level of singling out.
    levels: Vec<Order>,
    signatures: Vec<u64>,
    hashes: Vec<u64>,
    permutation: Vec<u32>,
    image: Vec<i32>,
    best: Vec<i32>,
    found: bool,
}

/// Elements in an order with ties.
#[derive(Clone, Default)]
struct Order {
    /// The elements of each set, in order.
    elements: Vec<u32>,
    /// Of each element: the place of the first in `elements` that it is tied with.
    ranks: Vec<u32>,
    /// Whether any are tied.
    tied: bool,
}

pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

impl Order {
    /// Sorts the elements from one place to another by what `key` says, and gives them their ranks.
    /// Whether they are not all tied.
    #[inline]
    fn sort(&mut self, places: Range<usize>, key: impl Fn(u32) -> u64) -> bool {
        let elements = &mut self.elements[places.clone()];
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
        let mut rank = places.start;
        for at in 0..elements.len() {
            if at > 0 {
                match key(elements[at - 1]) == key(elements[at]) {
                    true => self.tied = true,
                    false => rank = places.start + at,
                }
            }
            self.ranks[elements[at] as usize] = rank as u32;
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

    /// Whether all stand where they are numbered.
    fn is_identity(&self) -> bool {
        self.elements
            .iter()
            .enumerate()
            .all(|(place, &element)| place as u32 == element)
    }
}

impl Layout {
    fn elements(&self) -> usize {
        self.sets.last().map_or(0, |set| set.end as usize)
    }

    /// Replaces the slots of a frame, whose multisets are sorted, by those of its canonical form.
    /// False if it is that already.
    pub fn canonicalise(&self, program: &Program, frame: &mut [i32], s: &mut Scratch) -> bool {
        let frame = &mut frame[..program.slots.len()];
        if s.levels.is_empty() {
            let elements = self.elements();
            s.keys = vec![0; elements];
            s.signatures = vec![0; elements];
            s.hashes = vec![0; self.leaves.len()];
            s.permutation = vec![0; elements];
            s.levels.push(Order {
                elements: vec![0; elements],
                ranks: vec![0; elements],
                tied: false,
            });
        }
        self.by_keys(frame, s);
        let order = &s.levels[0];
        if self.relations.is_empty() && self.exact || !order.tied {
            // Tied elements have nothing that differs.
            if order.is_identity() {
                return false;
            }
            self.image(program, frame, s, 0);
            frame.copy_from_slice(&s.image);
            return true;
        }
        s.found = false;
        self.search(program, frame, s, 0);
        if s.best == *frame {
            return false;
        }
        frame.copy_from_slice(&s.best);
        true
    }

    /// Brings the elements into the order of their keys.
    #[inline]
    fn by_keys(&self, frame: &[i32], s: &mut Scratch) {
        s.keys.fill(0);
        for property in &self.properties {
            match *property {
                Property::Indexed {
                    slot,
                    element,
                    base,
                    shift,
                } => {
                    let value = frame[slot as usize];
                    let raw = match value {
                        UNDEFINED => 0,
                        value => value.wrapping_sub(base) as u32,
                    };
                    let key = &mut s.keys[element as usize];
                    *key = match self.exact {
                        true => *key | u64::from(raw) << shift,
                        false => fold(*key, u64::from(raw) << 32 | u64::from(shift)),
                    };
                }
                Property::Holds { leaf, shift, .. } => {
                    if let Some(element) = self.held(&self.leaves[leaf as usize], frame) {
                        let key = &mut s.keys[element as usize];
                        *key = match self.exact {
                            true => *key | 1 << shift,
                            false => fold(*key, u64::from(shift) | 1 << 63),
                        };
                    }
                }
            }
        }
        let order = &mut s.levels[0];
        order.tied = false;
        for (place, element) in order.elements.iter_mut().enumerate() {
            *element = place as u32;
        }
        for set in &self.sets {
            order.sort(set.start as usize..set.end as usize, |e| s.keys[e as usize]);
        }
    }

    /// Tries all that is left to be tried from one level's order on.
    fn search(&self, program: &Program, frame: &[i32], s: &mut Scratch, level: usize) {
        self.refine(frame, s, level);
        let mut from = 0;
        while let Some(tie) = s.levels[level].next_tie(from) {
            let tied = s.levels[level].elements[tie.clone()].to_vec();
            // One of each class of elements that can be exchanged.
            let mut different: Vec<u32> = Vec::new();
            for &element in &tied {
                let same = |&other: &u32| self.exchangeable(program, frame, s, element, other);
                if !different.iter().any(same) {
                    different.push(element);
                }
            }
            if different.len() == 1 {
                // Nothing tells them apart, now or later, so any order does.
                from = tie.end;
                continue;
            }
            if s.levels.len() == level + 1 {
                s.levels.push(Order::default());
            }
            for element in different {
                let (upper, lower) = s.levels.split_at_mut(level + 1);
                let order = &mut lower[0];
                order.clone_from(&upper[level]);
                order.sort(tie.clone(), |other| u64::from(other != element));
                self.search(program, frame, s, level + 1);
            }
            return;
        }
        self.image(program, frame, s, level);
        if !s.found || s.image < s.best {
            s.found = true;
            std::mem::swap(&mut s.best, &mut s.image);
        }
    }

    /// Tells tied elements apart by their relations until that gives nothing new.
    fn refine(&self, frame: &[i32], s: &mut Scratch, level: usize) {
        if self.relations.is_empty() {
            return;
        }
        loop {
            self.signatures(frame, s, level);
            let order = &mut s.levels[level];
            let mut from = 0;
            let mut new = false;
            order.tied = false;
            while let Some(tie) = order.next_tie(from) {
                from = tie.end;
                new |= order.sort(tie, |element| s.signatures[element as usize]);
            }
            if !new || !order.tied {
                return;
            }
        }
    }

    /// The element that a leaf's slot holds.
    #[inline]
    fn held(&self, leaf: &Leaf, frame: &[i32]) -> Option<u32> {
        let value = frame[leaf.slot as usize];
        if matches!(leaf.content, Content::Plain) || value == UNDEFINED {
            return None;
        }
        if leaf.present.is_some_and(|slot| frame[slot as usize] == 0) {
            return None;
        }
        match &leaf.content {
            Content::Plain => None,
            Content::Element(first) => Some(first + value as u32),
            Content::Union(members) => self.members[members.start as usize..members.end as usize]
                .iter()
                .find(|&&(lo, size, _)| value >= lo && value < lo + size as i32)
                .map(|&(lo, _, first)| first + (value - lo) as u32),
        }
    }

    fn moves(&self, leaf: &Leaf) -> &[(u32, u32)] {
        &self.moves[leaf.moves.start as usize..leaf.moves.end as usize]
    }

    /// What the relations of each element are, given the ranks of all.
    fn signatures(&self, frame: &[i32], s: &mut Scratch, level: usize) {
        let ranks = &s.levels[level].ranks;
        let rank = |element: u32| u64::from(ranks[element as usize]);
        s.signatures.fill(0);
        for relation in &self.relations {
            let range = relation.start as usize..relation.end as usize;
            let mut whole = 0u64;
            for (leaf, hash) in self.leaves[range.clone()]
                .iter()
                .zip(&mut s.hashes[range.clone()])
            {
                let mut h = match self.held(leaf, frame) {
                    Some(element) => fold(leaf.seed, rank(element)),
                    None => fold(
                        leaf.seed,
                        u64::from(frame[leaf.slot as usize] as u32) | 1 << 32,
                    ),
                };
                for &(element, _) in self.moves(leaf) {
                    h = fold(h, rank(element));
                }
                *hash = h;
                whole = whole.wrapping_add(fold(h, 0));
            }
            for (leaf, &hash) in self.leaves[range.clone()].iter().zip(&s.hashes[range]) {
                let h = fold(whole, hash);
                for (place, &(element, _)) in self.moves(leaf).iter().enumerate() {
                    let signature = &mut s.signatures[element as usize];
                    *signature = signature.wrapping_add(fold(h, place as u64 + 1));
                }
                if let Some(element) = self.held(leaf, frame) {
                    let signature = &mut s.signatures[element as usize];
                    *signature = signature.wrapping_add(fold(h, u64::MAX));
                }
            }
        }
    }

    /// What the frame looks like when each element stands in its place.
    fn image(&self, program: &Program, frame: &[i32], s: &mut Scratch, level: usize) {
        for (place, &element) in s.levels[level].elements.iter().enumerate() {
            s.permutation[element as usize] = place as u32;
        }
        self.apply(program, frame, &s.permutation, &mut s.image);
    }

    /// What a permutation of the elements makes of a frame.
    fn apply(&self, program: &Program, frame: &[i32], permutation: &[u32], image: &mut Vec<i32>) {
        image.clear();
        image.extend_from_slice(frame);
        for leaf in &self.leaves {
            let mut slot = leaf.slot;
            for &(element, stride) in self.moves(leaf) {
                let step = permutation[element as usize].wrapping_sub(element);
                slot = slot.wrapping_add(step.wrapping_mul(stride));
            }
            let value = frame[leaf.slot as usize];
            // A set's elements keep their distance from the value that stands for them.
            image[slot as usize] = match self.held(leaf, frame) {
                Some(element) => value + (permutation[element as usize] as i32 - element as i32),
                None => value,
            };
        }
        if self.bags {
            program.settle(image, |_, _| {});
        }
    }

    /// Whether exchanging two elements of a set leaves the frame as it is.
    fn exchangeable(
        &self,
        program: &Program,
        frame: &[i32],
        s: &mut Scratch,
        one: u32,
        other: u32,
    ) -> bool {
        if self.bags {
            for (element, image) in s.permutation.iter_mut().enumerate() {
                *image = element as u32;
            }
            s.permutation.swap(one as usize, other as usize);
            self.apply(program, frame, &s.permutation, &mut s.image);
            return s.image == frame;
        }
        let exchanged = |element: u32| match element {
            _ if element == one => other,
            _ if element == other => one,
            _ => element,
        };
        self.leaves.iter().all(|leaf| {
            let mut slot = leaf.slot;
            for &(element, stride) in self.moves(leaf) {
                let step = exchanged(element).wrapping_sub(element);
                slot = slot.wrapping_add(step.wrapping_mul(stride));
            }
            let value = frame[leaf.slot as usize];
            let value = match self.held(leaf, frame) {
                Some(element) => value + (exchanged(element) as i32 - element as i32),
                None => value,
            };
            frame[slot as usize] == value
        })
    }
}

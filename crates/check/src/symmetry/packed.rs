//! Canonical forms of packed states whose elements' keys say it all, without unpacking them.
//!
//! Keys and their order are those of [`super::canonical`]; what they do not decide is left to it.

use super::canonical::{Content, Layout, Property};
use crate::program::Packing;
use std::ops::Range;

/// Where the properties of elements lie in packed states.
pub(super) struct Packed {
    indexed: Vec<Indexed>,
    holders: Vec<Holder>,
    sets: Vec<Range<usize>>,
    elements: usize,
    /// Whether keys are all that there is.
    complete: bool,
}

/// Bits of a packed state.
#[derive(Clone, Copy)]
struct Bits {
    word: u32,
    shift: u32,
    mask: u64,
}

/// A part of an element's key.
struct Indexed {
    bits: Bits,
    element: u32,
    /// Where it lies in the key.
    shift: u32,
}

/// A slot whose values are elements from one on.
struct Holder {
    bits: Bits,
    /// The packed value that stands for the first element.
    low: u64,
    count: u64,
    element: u32,
    /// The bit in the element's key.
    shift: u32,
}

/// What keys say of a packed state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// It is canonical.
    Canonical,
    /// It is canonical by now.
    Changed,
    /// They do not decide.
    Nothing,
}

/// Room for one thread's work.
#[derive(Default)]
pub(super) struct Room {
    keys: Vec<u64>,
    order: Vec<u32>,
    places: Vec<u32>,
}

impl Bits {
    #[inline(always)]
    fn get(self, words: &[u64]) -> u64 {
        words[self.word as usize] >> self.shift & self.mask
    }

    #[inline(always)]
    fn set(self, words: &mut [u64], value: u64) {
        let word = &mut words[self.word as usize];
        *word = *word & !(self.mask << self.shift) | value << self.shift;
    }
}

impl Packed {
    /// Nothing if keys are not exact.
    pub fn new(layout: &Layout, packing: &Packing) -> Option<Packed> {
        if !layout.exact {
            return None;
        }
        let bits = |slot: u32| {
            let field = packing.field(slot);
            Bits {
                word: field.word,
                shift: field.shift,
                mask: field.mask,
            }
        };
        let mut packed = Packed {
            indexed: Vec::new(),
            holders: Vec::new(),
            sets: Vec::new(),
            elements: 0,
            complete: layout.relations.is_empty(),
        };
        for set in &layout.sets {
            packed.sets.push(set.start as usize..set.end as usize);
            packed.elements = set.end as usize;
        }
        for property in &layout.properties {
            match *property {
                Property::Indexed {
                    slot,
                    element,
                    shift,
                    ..
                } => {
                    // What has one value takes no bits, and may lie behind the last word.
                    if packing.field(slot).mask != 0 {
                        packed.indexed.push(Indexed {
                            bits: bits(slot),
                            element,
                            shift,
                        });
                    }
                }
                Property::Holds { leaf, shift, base } => {
                    let leaf = &layout.leaves[leaf as usize];
                    if packing.field(leaf.slot).mask == 0 {
                        return None;
                    }
                    let mut holds = |value: i32, count: u32, element: u32| {
                        packed.holders.push(Holder {
                            bits: bits(leaf.slot),
                            low: value.wrapping_sub(base) as u64,
                            count: count.into(),
                            element,
                            shift,
                        });
                    };
                    match &leaf.content {
                        Content::Plain => {}
                        Content::Element(first) => {
                            let set = layout.sets.iter().find(|set| set.start == *first)?;
                            holds(0, set.len() as u32, *first);
                        }
                        Content::Union(members) => {
                            let members = members.start as usize..members.end as usize;
                            for &(value, count, element) in &layout.members[members] {
                                holds(value, count, element);
                            }
                        }
                    }
                }
            }
        }
        Some(packed)
    }

    /// Makes a packed state canonical as far as keys say how.
    #[inline]
    pub fn canonicalise(&self, words: &mut [u64], room: &mut Room) -> Said {
        let keys = &mut room.keys;
        keys.clear();
        keys.resize(self.elements, 0);
        for part in &self.indexed {
            keys[part.element as usize] |= part.bits.get(words) << part.shift;
        }
        for holder in &self.holders {
            let held = holder.bits.get(words).wrapping_sub(holder.low);
            if held < holder.count {
                keys[holder.element as usize + held as usize] |= 1 << holder.shift;
            }
        }
        let (mut sorted, mut tied) = (true, false);
        for set in &self.sets {
            for pair in keys[set.clone()].windows(2) {
                sorted &= pair[0] <= pair[1];
                tied |= pair[0] == pair[1];
            }
        }
        if sorted {
            return match self.complete || !tied {
                true => Said::Canonical,
                false => Said::Nothing,
            };
        }
        if !self.complete {
            return Said::Nothing;
        }
        self.sort(room);
        for part in &self.indexed {
            let from = room.order[part.element as usize] as usize;
            part.bits
                .set(words, room.keys[from] >> part.shift & part.bits.mask);
        }
        for holder in &self.holders {
            let held = holder.bits.get(words).wrapping_sub(holder.low);
            if held < holder.count {
                let place = room.places[holder.element as usize + held as usize];
                let raw = u64::from(place - holder.element) + holder.low;
                holder.bits.set(words, raw);
            }
        }
        Said::Changed
    }

    /// Brings the elements into the order of their keys.
    #[inline]
    fn sort(&self, room: &mut Room) {
        let Room {
            keys,
            order,
            places,
        } = room;
        order.clear();
        order.extend(0..self.elements as u32);
        for set in &self.sets {
            for end in set.start + 1..set.end {
                let element = order[end];
                let key = keys[element as usize];
                let mut at = end;
                while at > set.start && keys[order[at - 1] as usize] > key {
                    order[at] = order[at - 1];
                    at -= 1;
                }
                order[at] = element;
            }
        }
        places.resize(self.elements, 0);
        for (place, &element) in order.iter().enumerate() {
            places[element as usize] = place as u32;
        }
    }
}

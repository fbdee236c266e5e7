//! Sorting of the multisets of a packed state after the body of a rule, as [`Program::sort_multisets`] does in frames.

use crate::program::{Packing, Program};
use std::cmp::Ordering;

/// Multisets of a packed state, inner ones first.
pub(super) struct Multisets(Vec<PackedMultiset>);

/// A multiset of a packed state.
struct PackedMultiset {
    /// Packed cells of all positions. The first cell of a position is 1 if the position holds an element.
    cells: Vec<PackedCell>,
    /// Number of packed cells of a position.
    stride: usize,
    /// Words that contain the cells, each with the mask of their bits.
    masks: Vec<(usize, u64)>,
}

/// Bits of a cell in a packed state.
#[derive(Clone, Copy)]
struct PackedCell {
    /// Index of the word.
    word: usize,
    /// Position of the lowest bit in the word.
    shift: u32,
    /// Mask of the unshifted value.
    mask: u64,
}

impl Multisets {
    /// Multisets whose cells are packed.
    pub fn new(program: &Program, packing: &Packing) -> Multisets {
        let multisets = program.multisets.iter().filter_map(|multiset| {
            let cells: Vec<Vec<PackedCell>> = (0..multiset.capacity)
                .map(|position| {
                    let first = multiset.first + position * multiset.stride;
                    let fields = (first..first + multiset.stride).map(|slot| packing.field(slot));
                    // A cell with a single value has no bits.
                    let packed = fields.filter(|field| field.mask != 0);
                    let cell = packed.map(|field| PackedCell {
                        word: field.word as usize,
                        shift: field.shift,
                        mask: field.mask,
                    });
                    cell.collect()
                })
                .collect();
            let stride = cells.first().map_or(0, Vec::len);
            let cells = cells.concat();
            let mut masks: Vec<(usize, u64)> = Vec::new();
            for cell in &cells {
                let bits = cell.mask << cell.shift;
                match masks.iter_mut().find(|mask| mask.0 == cell.word) {
                    Some(mask) => mask.1 |= bits,
                    None => masks.push((cell.word, bits)),
                }
            }
            (stride > 0).then_some(PackedMultiset {
                cells,
                stride,
                masks,
            })
        });
        Multisets(multisets.collect())
    }

    /// Sorts the multisets of a successor. Those of `parent` are sorted.
    #[inline]
    pub fn sort(&self, parent: &[u64], child: &mut [u64]) {
        for multiset in &self.0 {
            let differs = |&(word, mask): &(usize, u64)| (parent[word] ^ child[word]) & mask != 0;
            if multiset.masks.iter().any(differs) {
                multiset.sort(child);
            }
        }
    }
}

impl PackedMultiset {
    /// Sorts the positions: elements before empty positions, the smallest first.
    fn sort(&self, words: &mut [u64]) {
        for end in 1..self.cells.len() / self.stride {
            let mut position = end;
            while position > 0 && self.compare(words, position - 1, position).is_gt() {
                self.swap(words, position - 1, position);
                position -= 1;
            }
        }
    }

    /// Cells of a position.
    fn position(&self, position: usize) -> &[PackedCell] {
        &self.cells[position * self.stride..][..self.stride]
    }

    /// Order of two positions.
    fn compare(&self, words: &[u64], first: usize, second: usize) -> Ordering {
        let value = |cell: &PackedCell| words[cell.word] >> cell.shift & cell.mask;
        let (first, second) = (self.position(first), self.position(second));
        let present_first = value(&second[0]).cmp(&value(&first[0]));
        present_first.then_with(|| {
            let (first, second) = (first[1..].iter().map(value), second[1..].iter().map(value));
            first.cmp(second)
        })
    }

    /// Exchanges two positions.
    fn swap(&self, words: &mut [u64], first: usize, second: usize) {
        for (a, b) in self.position(first).iter().zip(self.position(second)) {
            let value =
                |cell: &PackedCell, words: &[u64]| words[cell.word] >> cell.shift & cell.mask;
            let difference = value(a, words) ^ value(b, words);
            words[a.word] ^= difference << a.shift;
            words[b.word] ^= difference << b.shift;
        }
    }
}

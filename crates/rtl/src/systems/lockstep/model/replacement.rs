//! Reference of the replacement policies.

use crate::systems::sizes::Replacement;
use std::collections::BTreeMap;

/// Bits of a set's number in each cache of the test bench, by default.
const SET_WIDTH: u32 = 1;
/// Ways of its sets, by default.
const WAYS: u32 = 2;
/// Value of the random register after a reset.
const RANDOM: u16 = 0x5eed;

/// Replacement policy of one cache.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// The policy.
    kind: Replacement,
    /// Bits of a set's number.
    pub(super) set_width: u32,
    /// Ways of a set.
    pub(super) ways: usize,
    /// Next victim of each set, for round robin.
    next: BTreeMap<usize, usize>,
    /// Halves that were used last, by set and by the ways of both halves; true for the upper half.
    recent: BTreeMap<(usize, usize, usize), bool>,
    /// Register of random victims.
    random: u16,
}

impl Policy {
    /// Creates the policy after a reset, of a cache with this size of the test bench.
    pub(super) fn new(kind: Replacement, (set_width, ways): (Option<u32>, Option<u32>)) -> Policy {
        Policy {
            kind,
            set_width: set_width.unwrap_or(SET_WIDTH),
            ways: ways.unwrap_or(WAYS) as usize,
            next: BTreeMap::new(),
            recent: BTreeMap::new(),
            random: RANDOM,
        }
    }

    /// Returns the victim of a set.
    pub(super) fn victim(&self, set: usize) -> usize {
        match self.kind {
            Replacement::RoundRobin => self.next.get(&set).copied().unwrap_or(0),
            Replacement::Random => (usize::from(self.random) * self.ways) >> 16,
            Replacement::PseudoLru => {
                let (mut low, mut high) = (0, self.ways.next_power_of_two());
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    // A half that was never used counts as one that was used after the lower half.
                    let is_upper_recent = self.recent.get(&(set, low, high));
                    let is_upper_recent = is_upper_recent.copied().unwrap_or(true);
                    match !is_upper_recent && middle < self.ways {
                        true => low = middle,
                        false => high = middle,
                    }
                }
                low
            }
        }
    }

    /// A way is used. With `evicts`, it is the victim of its set.
    pub(super) fn touch(&mut self, set: usize, way: usize, evicts: bool) {
        if evicts {
            self.next.insert(set, (way + 1) % self.ways);
            let bit = |number: u16| self.random >> number & 1;
            self.random = self.random << 1 | bit(15) ^ bit(13) ^ bit(12) ^ bit(10);
        }
        let (mut low, mut high) = (0, self.ways.next_power_of_two());
        while high - low > 1 {
            let middle = (low + high) / 2;
            self.recent.insert((set, low, high), way >= middle);
            match way >= middle {
                true => low = middle,
                false => high = middle,
            }
        }
    }
}

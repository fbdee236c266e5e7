//! Pseudo-random numbers of the generators.

use cohkit_base::random::SplitMix64;

/// Pseudo-random numbers of a seed.
pub struct Random(SplitMix64);

impl Random {
    /// Creates a generator whose sequence depends on the seed alone.
    pub fn new(seed: u64) -> Random {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
        Random(SplitMix64::new(seed))
    }

    /// Returns a number below `n`, which must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.modulo(n as u64) as usize
    }

    /// Returns true once in `n` calls on average.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns a copy of a random item of the list, which must not be empty.
    pub fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

//! Pseudo-random numbers, derived from a seed.

use cohkit_base::random::SplitMix64;

/// Pseudo-random numbers of a seed.
pub struct RandomGenerator(SplitMix64);

impl RandomGenerator {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> RandomGenerator {
        RandomGenerator(SplitMix64::new(seed))
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// Returns random words for a line.
    pub fn bytes<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.bits())
    }
}

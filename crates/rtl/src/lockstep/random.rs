//! Deterministic pseudo-random numbers, derived from a seed.

/// A pseudo-random generator (SplitMix64).
pub struct RandomGenerator(u64);

impl RandomGenerator {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> RandomGenerator {
        RandomGenerator(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns random words for a line.
    pub fn bytes<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.bits())
    }
}

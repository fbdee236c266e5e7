//! Pseudo-random numbers that depend on a seed alone, the same on every machine.

/// Increment of the state of [`SplitMix64`].
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Pseudo-random generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns the next 64 bits of the sequence.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`, or 0 if the bound is 0. Numbers are equally likely up to a bias of `bound` in
    /// 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns the remainder of the next number modulo `bound`, which must not be 0.
    #[inline]
    pub fn modulo(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}

/// Returns the first number of the sequence of a seed. This is a bijection, which serves as a hash function.
#[inline]
pub fn mix(seed: u64) -> u64 {
    SplitMix64::new(seed).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published sequence of the seed 1234567 (reference implementation by Vigna, splitmix64.c).
    #[test]
    fn numbers_are_the_published_sequence() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn numbers_are_below_their_bound() {
        let mut random = SplitMix64::new(1);
        assert!((0..1000).all(|_| random.below(3) < 3 && random.modulo(3) < 3));
        assert_eq!(random.below(0), 0);
    }
}

//! Seeded random numbers and bit errors.

use crate::layer::WireUnit;

/// Pseudo-random number generator (SplitMix64).
pub struct RandomGenerator(u64);

impl RandomGenerator {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> RandomGenerator {
        RandomGenerator(seed)
    }

    /// Next 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Random number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}

/// Independent bit errors on a stream of units. The distance to the next error is drawn once per error, so a unit
/// without errors costs one comparison.
pub struct Noise {
    /// Random numbers of the distances.
    random: RandomGenerator,
    /// Error rate per bit.
    rate: f64,
    /// True if the error rate is 0.
    is_error_free: bool,
    /// Bits before the next error.
    bits_before_error: u64,
}

impl Noise {
    /// Creates errors at `rate` per bit; 0 disables them.
    pub fn new(rate: f64, seed: u64) -> Noise {
        let mut noise = Noise {
            random: RandomGenerator::new(seed),
            rate,
            is_error_free: rate <= 0.0,
            bits_before_error: 0,
        };
        noise.bits_before_error = noise.draw_distance();
        noise
    }

    /// Draws the number of intact bits before the next error, which is geometrically distributed.
    fn draw_distance(&mut self) -> u64 {
        if self.rate <= 0.0 {
            return u64::MAX;
        }
        // Range (0, 1], since the logarithm of 0 is infinite.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (uniform.ln() / (-self.rate).ln_1p()) as u64
    }

    /// True if the error rate is 0.
    #[inline]
    pub(crate) fn is_error_free(&self) -> bool {
        self.is_error_free
    }

    /// Flips the erroneous bits of the next unit. Returns their number.
    #[inline]
    pub fn apply_errors(&mut self, unit: &mut impl WireUnit) -> u32 {
        let (mut position, bits) = (0, unit.bits());
        let mut flipped = 0;
        while self.bits_before_error < bits - position {
            position += self.bits_before_error;
            unit.flip(position);
            flipped += 1;
            position += 1;
            self.bits_before_error = self.draw_distance();
        }
        self.bits_before_error = self.bits_before_error.saturating_sub(bits - position);
        flipped
    }
}

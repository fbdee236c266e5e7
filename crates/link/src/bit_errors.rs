//! Bit errors.

use cohkit_base::random::SplitMix64;

use crate::layer::WireUnit;

/// Independent bit errors on a stream of units. The distance to the next error is drawn once per error, so a unit
/// without errors costs one comparison.
pub struct Noise {
    /// Random numbers of the distances.
    random: SplitMix64,
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
            random: SplitMix64::new(seed),
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

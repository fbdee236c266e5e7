//! IEEE 754 arithmetic on bit patterns, with all rounding modes and exact flags.
//!
//! No library is suitable. `rustc_apfloat` has no square root. It also reports no overflow if the result is the largest
//! number, and no underflow if it is the smallest normal one; the tests compare against it elsewhere. Berkeley
//! SoftFloat needs a C compiler, and `simple-soft-float` computes with fractions of big integers.
//!
//! With 128-bit integers the code is short. Every operation computes an exact number, or one whose lowest bit is sticky
//! (it represents all lower bits). One function rounds this number to the result.

use std::cmp::Ordering;

/// Rounding mode. Values are those of the `rm` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rounding {
    /// To the nearest, ties to even.
    NearestEven = 0,
    /// Towards zero.
    Zero = 1,
    /// Towards minus infinity.
    Down = 2,
    /// Towards plus infinity.
    Up = 3,
    /// To the nearest, ties away from zero.
    NearestAway = 4,
}

impl Rounding {
    /// Returns the rounding mode with this value of `rm`; `None` if it is reserved.
    pub fn new(number: u8) -> Option<Rounding> {
        use Rounding::*;
        [NearestEven, Zero, Down, Up, NearestAway]
            .get(usize::from(number))
            .copied()
    }

    /// True if a magnitude is rounded away from zero. Of `low_bits`, bit 2 is the last bit that is kept, bit 1 the
    /// first one that is not (half a unit), and bit 0 the OR of all lower bits.
    fn rounds_up(self, negative: bool, low_bits: u128) -> bool {
        let [odd, half, sticky] = [4, 2, 1].map(|bit| low_bits & bit != 0);
        match self {
            Rounding::NearestEven => half && (sticky || odd),
            Rounding::Zero => false,
            Rounding::Down => negative && (half || sticky),
            Rounding::Up => !negative && (half || sticky),
            Rounding::NearestAway => half,
        }
    }
}

/// Flag NX: the result is inexact.
pub const INEXACT: u8 = 1;
/// Flag UF: the result is tiny after rounding, and inexact.
pub const UNDERFLOW: u8 = 2;
/// Flag OF: the result is too large.
pub const OVERFLOW: u8 = 4;
/// Flag DZ: a finite number is divided by zero.
const DIVIDE_BY_ZERO: u8 = 8;
/// Flag NV: the operation is invalid.
pub const INVALID: u8 = 16;

/// A binary format, by its field widths. Numbers are in the low bits of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Stored bits of the significand.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
}

/// Single precision.
pub const SINGLE: Format = Format {
    fraction: 23,
    exponent: 8,
};
/// Double precision.
pub const DOUBLE: Format = Format {
    fraction: 52,
    exponent: 11,
};

/// A finite, non-zero number: its magnitude is `digits` times two to the power of `exponent`. The lowest bit is sticky:
/// it is set if any lower bit of the exact number is.
#[derive(Clone, Copy)]
struct Number {
    /// True for a negative number.
    negative: bool,
    /// Binary exponent of the lowest bit of `digits`.
    exponent: i32,
    /// Magnitude as an integer; never 0.
    digits: u128,
}

/// Decoded number.
enum Value {
    /// A NaN, quiet or signalling.
    Nan { signalling: bool },
    /// An infinity, true if negative.
    Infinite(bool),
    /// A zero, true if negative.
    Zero(bool),
    /// Any other number.
    Finite(Number),
}

/// Shifts right; the lowest bit of the result is sticky.
fn shift_right_sticky(digits: u128, shift: u32) -> u128 {
    match shift {
        0 => digits,
        1..=127 => digits >> shift | u128::from(digits << (128 - shift) != 0),
        _ => u128::from(digits != 0),
    }
}

impl Number {
    /// Normalises the number so that its highest bit is bit `top`, at or above its current position.
    fn with_top_at(self, top: u32) -> Number {
        let shift = top + self.digits.leading_zeros() - 127;
        Number {
            exponent: self.exponent - shift as i32,
            digits: self.digits << shift,
            ..self
        }
    }

    /// Sum of two numbers, exact or sticky at least 15 bits below the last bit of both; `None` if it is zero.
    fn plus(self, other: Number) -> Option<Number> {
        let (a, b) = (self.with_top_at(124), other.with_top_at(124));
        let (larger, smaller) = if (a.exponent, a.digits) >= (b.exponent, b.digits) {
            (a, b)
        } else {
            (b, a)
        };
        let aligned =
            shift_right_sticky(smaller.digits, (larger.exponent - smaller.exponent) as u32);
        let digits = if larger.negative == smaller.negative {
            larger.digits + aligned
        } else {
            larger.digits - aligned
        };
        (digits != 0).then_some(Number { digits, ..larger })
    }

    /// Product of two numbers whose digits have at most 128 bits together.
    fn times(self, other: Number) -> Number {
        Number {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            digits: self.digits * other.digits,
        }
    }
}

impl Format {
    /// Mask of the sign bit.
    fn sign(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    /// Encoding of positive infinity.
    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The canonical NaN.
    pub fn nan(self) -> u64 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    /// Exponent of the last place of subnormal numbers.
    fn last_place(self) -> i32 {
        2 - (1 << (self.exponent - 1)) - self.fraction as i32
    }

    /// Encoding of a sign and a magnitude.
    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        if negative {
            self.sign() | magnitude
        } else {
            magnitude
        }
    }

    /// Decodes a number.
    fn value(self, word: u64) -> Value {
        let negative = word & self.sign() != 0;
        let magnitude = word & (self.sign() - 1);
        let fraction = word & ((1 << self.fraction) - 1);
        let exponent = (magnitude >> self.fraction) as i32;
        if magnitude > self.infinity() {
            return Value::Nan {
                signalling: magnitude & 1 << (self.fraction - 1) == 0,
            };
        }
        if magnitude == self.infinity() {
            return Value::Infinite(negative);
        }
        if magnitude == 0 {
            return Value::Zero(negative);
        }
        let hidden = u64::from(exponent != 0) << self.fraction;
        Value::Finite(Number {
            negative,
            exponent: self.last_place() + exponent.max(1) - 1,
            digits: u128::from(hidden | fraction),
        })
    }

    /// Rounds a number to this format. If its lowest bit is sticky, at least three bits must lie below the last place.
    fn round(self, number: Number, mode: Rounding, flags: &mut u8) -> u64 {
        let Number {
            negative,
            exponent,
            digits,
        } = number;
        // Rounds to a last place. Returns the rounded digits, and whether the result is inexact.
        let round_to_place = |place: i32| {
            let shift = place - exponent;
            if shift <= 0 {
                return (digits << -shift, false);
            }
            // Shifted number with two extra bits: half, and sticky.
            let shifted = shift_right_sticky(digits << 2, shift as u32);
            let rounds_up = mode.rounds_up(negative, shifted);
            ((shifted >> 2) + u128::from(rounds_up), shifted & 3 != 0)
        };
        let top = exponent + 127 - digits.leading_zeros() as i32;
        let place = (top - self.fraction as i32).max(self.last_place());
        let (rounded, inexact) = round_to_place(place);
        // A carry into the next power of two, or out of the subnormal numbers, carries into the exponent field.
        let field = (place - self.last_place()) as u64;
        if field >= 1 << self.exponent
            || (field << self.fraction) + rounded as u64 >= self.infinity()
        {
            *flags |= OVERFLOW | INEXACT;
            let rounds_away = mode.rounds_up(negative, 0b111);
            return self.signed(negative, self.infinity() - u64::from(!rounds_away));
        }
        if inexact {
            *flags |= INEXACT;
            // Tiny: below the smallest normal number if the exponent range were unbounded.
            let places_below = self.last_place() + self.fraction as i32 - top;
            let is_tiny = places_below > 1
                || places_below == 1
                    && round_to_place(self.last_place() - 1).0 < 1 << (self.fraction + 1);
            *flags |= if is_tiny { UNDERFLOW } else { 0 };
        }
        self.signed(negative, (field << self.fraction) + rounded as u64)
    }

    /// NaN result of an operation; raises the invalid flag if an operand is signalling.
    fn nan_of(self, words: &[u64], flags: &mut u8) -> u64 {
        for &word in words {
            if let Value::Nan { signalling: true } = self.value(word) {
                *flags |= INVALID;
            }
        }
        self.nan()
    }

    /// Sets the flag of an invalid operation and returns the canonical NaN.
    fn invalid(self, flags: &mut u8) -> u64 {
        *flags |= INVALID;
        self.nan()
    }

    /// Sum of two operands of which neither is NaN.
    fn sum(self, a: Value, b: Value, mode: Rounding, flags: &mut u8) -> u64 {
        let zero_is_negative = mode == Rounding::Down;
        match (a, b) {
            (Value::Infinite(a), Value::Infinite(b)) if a != b => self.invalid(flags),
            (Value::Infinite(negative), _) | (_, Value::Infinite(negative)) => {
                self.signed(negative, self.infinity())
            }
            (Value::Zero(a), Value::Zero(b)) => {
                self.signed(if a == b { a } else { zero_is_negative }, 0)
            }
            (Value::Finite(a), Value::Finite(b)) => match a.plus(b) {
                Some(sum) => self.round(sum, mode, flags),
                None => self.signed(zero_is_negative, 0),
            },
            (Value::Finite(operand), _) | (_, Value::Finite(operand)) => {
                self.round(operand, mode, flags)
            }
            _ => self.nan(),
        }
    }

    /// `a + b`
    pub fn add(self, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
        match (self.value(a), self.value(b)) {
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => self.nan_of(&[a, b], flags),
            (a, b) => self.sum(a, b, mode, flags),
        }
    }

    /// `a - b`
    pub fn subtract(self, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
        self.add(a, b ^ self.sign(), mode, flags)
    }

    /// `a * b`
    pub fn multiply(self, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
        match (self.value(a), self.value(b)) {
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => self.nan_of(&[a, b], flags),
            (Value::Zero(_), Value::Infinite(_)) | (Value::Infinite(_), Value::Zero(_)) => {
                self.invalid(flags)
            }
            (Value::Finite(a), Value::Finite(b)) => self.round(a.times(b), mode, flags),
            (Value::Infinite(_), _) | (_, Value::Infinite(_)) => {
                (a ^ b) & self.sign() | self.infinity()
            }
            _ => (a ^ b) & self.sign(),
        }
    }

    /// `a * b + c`, rounded once.
    pub fn multiply_add(self, a: u64, b: u64, c: u64, mode: Rounding, flags: &mut u8) -> u64 {
        let negative = (a ^ b) & self.sign() != 0;
        let product = match (self.value(a), self.value(b)) {
            // IEEE 754 leaves open whether this is invalid with a quiet NaN; RISC-V defines it as invalid.
            (Value::Zero(_), Value::Infinite(_)) | (Value::Infinite(_), Value::Zero(_)) => {
                return self.invalid(flags)
            }
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => {
                return self.nan_of(&[a, b, c], flags)
            }
            (Value::Finite(a), Value::Finite(b)) => Value::Finite(a.times(b)),
            (Value::Infinite(_), _) | (_, Value::Infinite(_)) => Value::Infinite(negative),
            _ => Value::Zero(negative),
        };
        match self.value(c) {
            Value::Nan { .. } => self.nan_of(&[c], flags),
            c => self.sum(product, c, mode, flags),
        }
    }

    /// `a / b`
    pub fn divide(self, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
        let sign = (a ^ b) & self.sign();
        match (self.value(a), self.value(b)) {
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => self.nan_of(&[a, b], flags),
            (Value::Zero(_), Value::Zero(_)) | (Value::Infinite(_), Value::Infinite(_)) => {
                self.invalid(flags)
            }
            (Value::Infinite(_), _) => sign | self.infinity(),
            (Value::Zero(_), _) | (_, Value::Infinite(_)) => sign,
            (_, Value::Zero(_)) => {
                *flags |= DIVIDE_BY_ZERO;
                sign | self.infinity()
            }
            (Value::Finite(a), Value::Finite(b)) => {
                // The quotient has at least 125 - 53 bits, so the sticky bit is far below the last place.
                let a = a.with_top_at(125);
                let (quotient, rest) = (a.digits / b.digits, a.digits % b.digits);
                let exponent = a.exponent - b.exponent;
                let digits = quotient | u128::from(rest != 0);
                self.round(
                    Number {
                        negative: sign != 0,
                        exponent,
                        digits,
                    },
                    mode,
                    flags,
                )
            }
        }
    }

    /// The square root.
    pub fn square_root(self, a: u64, mode: Rounding, flags: &mut u8) -> u64 {
        match self.value(a) {
            Value::Nan { .. } => self.nan_of(&[a], flags),
            Value::Zero(_) | Value::Infinite(false) => a,
            Value::Infinite(true) | Value::Finite(Number { negative: true, .. }) => {
                self.invalid(flags)
            }
            Value::Finite(number) => {
                // Only even exponents can be halved. The root of a 126-bit number has 63 bits.
                let high = number.with_top_at(126);
                let number = if high.exponent % 2 == 0 {
                    high
                } else {
                    number.with_top_at(125)
                };
                let root = number.digits.isqrt();
                let digits = root << 1 | u128::from(root * root != number.digits);
                self.round(
                    Number {
                        negative: false,
                        exponent: number.exponent / 2 - 1,
                        digits,
                    },
                    mode,
                    flags,
                )
            }
        }
    }

    /// Smaller of two numbers. Negative zero is less than positive zero; a NaN operand is ignored.
    pub(crate) fn minimum(self, a: u64, b: u64, flags: &mut u8) -> u64 {
        self.extreme(a, b, false, flags)
    }

    /// Larger of two numbers, with the rules of [`Format::minimum`].
    pub(crate) fn maximum(self, a: u64, b: u64, flags: &mut u8) -> u64 {
        self.extreme(a, b, true, flags)
    }

    /// Larger of two numbers if `larger`, otherwise the smaller one.
    fn extreme(self, a: u64, b: u64, larger: bool, flags: &mut u8) -> u64 {
        match (self.value(a), self.value(b)) {
            (Value::Nan { .. }, Value::Nan { .. }) => self.nan_of(&[a, b], flags),
            (Value::Nan { .. }, _) => {
                self.nan_of(&[a], flags);
                b
            }
            (_, Value::Nan { .. }) => {
                self.nan_of(&[b], flags);
                a
            }
            _ if (self.order(a) < self.order(b)) != larger => a,
            _ => b,
        }
    }

    /// Maps a number to an integer of the same order; negative zero is less than positive zero.
    fn order(self, word: u64) -> i64 {
        let magnitude = (word & (self.sign() - 1)) as i64;
        if word & self.sign() != 0 {
            -1 - magnitude
        } else {
            magnitude
        }
    }

    /// Compares two numbers as `feq` does; `None` if one is NaN. Only a signalling NaN is invalid.
    pub fn compare_quiet(self, a: u64, b: u64, flags: &mut u8) -> Option<Ordering> {
        match (self.value(a), self.value(b)) {
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => {
                self.nan_of(&[a, b], flags);
                None
            }
            (Value::Zero(_), Value::Zero(_)) => Some(Ordering::Equal),
            _ => Some(self.order(a).cmp(&self.order(b))),
        }
    }

    /// Compares two numbers as `flt` and `fle` do; `None` if one is NaN. Every NaN is invalid.
    pub fn compare_signalling(self, a: u64, b: u64, flags: &mut u8) -> Option<Ordering> {
        let ordering = self.compare_quiet(a, b, flags);
        *flags |= if ordering.is_none() { INVALID } else { 0 };
        ordering
    }

    /// Class of a number as `fclass` encodes it: a word with one of the bits 0 to 9.
    pub fn class(self, word: u64) -> u64 {
        let is_subnormal = word & self.infinity() == 0;
        let bit = match self.value(word) {
            Value::Infinite(true) => 0,
            Value::Finite(Number { negative: true, .. }) if !is_subnormal => 1,
            Value::Finite(Number { negative: true, .. }) => 2,
            Value::Zero(true) => 3,
            Value::Zero(false) => 4,
            Value::Finite(_) if is_subnormal => 5,
            Value::Finite(_) => 6,
            Value::Infinite(false) => 7,
            Value::Nan { signalling: true } => 8,
            Value::Nan { signalling: false } => 9,
        };
        1 << bit
    }

    /// Converts to an integer. An out-of-range number becomes the nearest bound, and NaN the upper bound.
    pub fn to_integer(
        self,
        word: u64,
        lowest: i128,
        highest: i128,
        mode: Rounding,
        flags: &mut u8,
    ) -> i128 {
        let bound = |negative, flags: &mut u8| {
            *flags |= INVALID;
            if negative {
                lowest
            } else {
                highest
            }
        };
        let number = match self.value(word) {
            Value::Nan { .. } => return bound(false, flags),
            Value::Infinite(negative) => return bound(negative, flags),
            Value::Zero(_) => return 0,
            Value::Finite(number) => number,
        };
        if number.exponent > 64 {
            return bound(number.negative, flags);
        }
        let shifted = if number.exponent >= 0 {
            number.digits << (number.exponent + 2)
        } else {
            shift_right_sticky(number.digits << 2, -number.exponent as u32)
        };
        let rounds_up = mode.rounds_up(number.negative, shifted);
        let magnitude = ((shifted >> 2) + u128::from(rounds_up)) as i128;
        let integer = if number.negative {
            -magnitude
        } else {
            magnitude
        };
        if integer < lowest || integer > highest {
            return bound(number.negative, flags);
        }
        *flags |= if shifted & 3 != 0 { INEXACT } else { 0 };
        integer
    }

    /// Converts an integer of at most 64 bits plus sign.
    pub fn from_integer(self, integer: i128, mode: Rounding, flags: &mut u8) -> u64 {
        if integer == 0 {
            return 0;
        }
        let number = Number {
            negative: integer < 0,
            exponent: 0,
            digits: integer.unsigned_abs(),
        };
        self.round(number, mode, flags)
    }

    /// Converts a number to another format.
    pub fn convert(self, word: u64, target: Format, mode: Rounding, flags: &mut u8) -> u64 {
        match self.value(word) {
            Value::Nan { .. } => {
                self.nan_of(&[word], flags);
                target.nan()
            }
            Value::Infinite(negative) => target.signed(negative, target.infinity()),
            Value::Zero(negative) => target.signed(negative, 0),
            Value::Finite(number) => target.round(number, mode, flags),
        }
    }
}

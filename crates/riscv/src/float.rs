//! IEEE 754 arithmetic with every rounding mode and exact flags, on the bits of numbers.
//!
//! It is written here because no library serves. `rustc_apfloat` has no square root, tells no overflow where the result is
//! the largest number, and no underflow where it is the smallest normal one; the tests compare with it what it has.
//! Berkeley SoftFloat takes a C compiler to build, and `simple-soft-float` computes with fractions of big integers.
//! With integers of 128 bits it is short: every operation gives an exact number, or one whose lowest bit says that there is
//! more behind it, and one function rounds that to a result.

/// How results are rounded. The numbers are those of the `rm` field.
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
    /// The mode of this number, if there is one.
    pub fn new(number: u8) -> Option<Rounding> {
        use Rounding::*;
        [NearestEven, Zero, Down, Up, NearestAway]
            .get(usize::from(number))
            .copied()
    }

    /// Whether a magnitude is rounded away from zero: by its sign, its last bit, the one behind it and whether there is more.
    fn up(self, negative: bool, odd: bool, half: bool, more: bool) -> bool {
        match self {
            Rounding::NearestEven => half && (more || odd),
            Rounding::Zero => false,
            Rounding::Down => negative && (half || more),
            Rounding::Up => !negative && (half || more),
            Rounding::NearestAway => half,
        }
    }
}

/// The flag of an inexact result.
pub const INEXACT: u8 = 1;
/// The flag of a result that is tiny after rounding, and inexact.
pub const UNDERFLOW: u8 = 2;
/// The flag of a result too large.
pub const OVERFLOW: u8 = 4;
/// The flag of a division of a finite number by zero.
pub const DIVIDE_BY_ZERO: u8 = 8;
/// The flag of an invalid operation.
pub const INVALID: u8 = 16;

/// A binary format, by the widths of its fields. Numbers of it are the low bits of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the significand that are stored.
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

/// A finite number but zero: its magnitude is `digits` times two to the `exponent`. Where a number does not fit, its lowest
/// bit is set: it stands for all that is behind.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    exponent: i32,
    digits: u128,
}

/// What a word of a format is.
enum Value {
    Nan { signalling: bool },
    Infinite(bool),
    Zero(bool),
    Finite(Number),
}

/// Shifts right; what is lost is in the lowest bit.
fn jam(digits: u128, by: u32) -> u128 {
    match by {
        0 => digits,
        1..=127 => digits >> by | u128::from(digits << (128 - by) != 0),
        _ => u128::from(digits != 0),
    }
}

impl Number {
    /// The same with its highest bit at this place, which is not below where it is.
    fn with_top_at(self, top: u32) -> Number {
        let by = top + self.digits.leading_zeros() - 127;
        Number {
            exponent: self.exponent - by as i32,
            digits: self.digits << by,
            ..self
        }
    }

    /// The sum of two, exact or with more behind at least 15 bits below the last of both; nothing if it is zero.
    fn plus(self, other: Number) -> Option<Number> {
        let (a, b) = (self.with_top_at(124), other.with_top_at(124));
        let (big, small) = if (a.exponent, a.digits) >= (b.exponent, b.digits) {
            (a, b)
        } else {
            (b, a)
        };
        let aligned = jam(small.digits, (big.exponent - small.exponent) as u32);
        let digits = if big.negative == small.negative {
            big.digits + aligned
        } else {
            big.digits - aligned
        };
        (digits != 0).then_some(Number { digits, ..big })
    }

    fn times(self, other: Number) -> Number {
        Number {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            digits: self.digits * other.digits,
        }
    }
}

impl Format {
    fn sign(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The one NaN that results are.
    pub fn nan(self) -> u64 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    /// The exponent of the last place of the smallest numbers.
    fn last_place(self) -> i32 {
        2 - (1 << (self.exponent - 1)) - self.fraction as i32
    }

    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        if negative {
            self.sign() | magnitude
        } else {
            magnitude
        }
    }

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

    /// The word for a number, rounded. If it has more behind it, at least three of its bits are behind the last place.
    fn round(self, number: Number, mode: Rounding, flags: &mut u8) -> u64 {
        let Number {
            negative,
            exponent,
            digits,
        } = number;
        // Rounds to this last place, and says whether that changed anything.
        let to_place = |place: i32| {
            let by = place - exponent;
            if by <= 0 {
                return (digits << -by, false);
            }
            // The shifted number with two bits more: the half, and whether there is more.
            let kept = jam(digits << 2, by as u32);
            let (odd, half, more) = (kept & 4 != 0, kept & 2 != 0, kept & 1 != 0);
            let up = mode.up(negative, odd, half, more);
            ((kept >> 2) + u128::from(up), half || more)
        };
        let top = exponent + 127 - digits.leading_zeros() as i32;
        let place = (top - self.fraction as i32).max(self.last_place());
        let (kept, inexact) = to_place(place);
        // A carry into the next power of two, or from the subnormal numbers, is a carry into the exponent.
        let field = (place - self.last_place()) as u64;
        if field >= 1 << self.exponent || (field << self.fraction) + kept as u64 >= self.infinity()
        {
            *flags |= OVERFLOW | INEXACT;
            let away = mode.up(negative, true, true, true);
            return self.signed(negative, self.infinity() - u64::from(!away));
        }
        if inexact {
            *flags |= INEXACT;
            // Tiny is what would be below the smallest normal number if exponents had no bound.
            let below = self.last_place() + self.fraction as i32 - top;
            let tiny = below > 1
                || below == 1 && to_place(self.last_place() - 1).0 < 1 << (self.fraction + 1);
            *flags |= if tiny { UNDERFLOW } else { 0 };
        }
        self.signed(negative, (field << self.fraction) + kept as u64)
    }

    /// The NaN of an operation, invalid if one of its operands signals.
    fn nan_of(self, words: &[u64], flags: &mut u8) -> u64 {
        for &word in words {
            if let Value::Nan { signalling: true } = self.value(word) {
                *flags |= INVALID;
            }
        }
        self.nan()
    }

    fn invalid(self, flags: &mut u8) -> u64 {
        *flags |= INVALID;
        self.nan()
    }

    /// The sum, where neither is a NaN.
    fn sum(self, a: Value, b: Value, mode: Rounding, flags: &mut u8) -> u64 {
        let cancelled = mode == Rounding::Down;
        match (a, b) {
            (Value::Infinite(a), Value::Infinite(b)) if a != b => self.invalid(flags),
            (Value::Infinite(negative), _) | (_, Value::Infinite(negative)) => {
                self.signed(negative, self.infinity())
            }
            (Value::Zero(a), Value::Zero(b)) => self.signed(if a == b { a } else { cancelled }, 0),
            (Value::Finite(a), Value::Finite(b)) => match a.plus(b) {
                Some(sum) => self.round(sum, mode, flags),
                None => self.signed(cancelled, 0),
            },
            (Value::Finite(only), _) | (_, Value::Finite(only)) => self.round(only, mode, flags),
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
            // The standard leaves open whether this is invalid beside a quiet NaN; RISC-V says that it is.
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
                // at least 125 - 53 bits of quotient, so that what is behind them is far behind.
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
                // Even exponents have roots; of 126 bits that has 63.
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

    /// The smaller one, or the larger. The negative zero is smaller than the other; of a number and a NaN it is the number.
    pub fn extreme(self, a: u64, b: u64, larger: bool, flags: &mut u8) -> u64 {
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

    /// Numbers in the order of the numbers they stand for, and the negative zero before the other.
    fn order(self, word: u64) -> i64 {
        let magnitude = (word & (self.sign() - 1)) as i64;
        if word & self.sign() != 0 {
            -1 - magnitude
        } else {
            magnitude
        }
    }

    /// How two compare; nothing if one is a NaN, which is invalid if it signals or they were to be in an `ordered` relation.
    pub fn compare(
        self,
        a: u64,
        b: u64,
        ordered: bool,
        flags: &mut u8,
    ) -> Option<std::cmp::Ordering> {
        match (self.value(a), self.value(b)) {
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => {
                self.nan_of(&[a, b], flags);
                *flags |= if ordered { INVALID } else { 0 };
                None
            }
            (Value::Zero(_), Value::Zero(_)) => Some(std::cmp::Ordering::Equal),
            _ => Some(self.order(a).cmp(&self.order(b))),
        }
    }

    /// The bit of its class, as `fclass` numbers them.
    pub fn class(self, word: u64) -> u64 {
        let subnormal = word & self.infinity() == 0;
        let bit = match self.value(word) {
            Value::Infinite(negative) => {
                if negative {
                    0
                } else {
                    7
                }
            }
            Value::Finite(Number { negative: true, .. }) => {
                if subnormal {
                    2
                } else {
                    1
                }
            }
            Value::Finite(_) => {
                if subnormal {
                    5
                } else {
                    6
                }
            }
            Value::Zero(negative) => {
                if negative {
                    3
                } else {
                    4
                }
            }
            Value::Nan { signalling } => {
                if signalling {
                    8
                } else {
                    9
                }
            }
        };
        1 << bit
    }

    /// As an integer between these bounds. What does not fit is the bound that is nearest, and a NaN the upper one.
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
        let kept = if number.exponent >= 0 {
            number.digits << (number.exponent + 2)
        } else {
            jam(number.digits << 2, -number.exponent as u32)
        };
        let up = mode.up(number.negative, kept & 4 != 0, kept & 2 != 0, kept & 1 != 0);
        let magnitude = ((kept >> 2) + u128::from(up)) as i128;
        let integer = if number.negative {
            -magnitude
        } else {
            magnitude
        };
        if integer < lowest || integer > highest {
            return bound(number.negative, flags);
        }
        *flags |= if kept & 3 != 0 { INEXACT } else { 0 };
        integer
    }

    /// The number of an integer of no more than 64 bits and a sign.
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

    /// A number of this format in another.
    pub fn convert(self, word: u64, to: Format, mode: Rounding, flags: &mut u8) -> u64 {
        match self.value(word) {
            Value::Nan { .. } => {
                self.nan_of(&[word], flags);
                to.nan()
            }
            Value::Infinite(negative) => to.signed(negative, to.infinity()),
            Value::Zero(negative) => to.signed(negative, 0),
            Value::Finite(number) => to.round(number, mode, flags),
        }
    }
}

//! Ranges of cell values, used to omit most checks and to locate indexed slots.

use crate::model::{Model, Number};
use crate::program::{Arithmetic, UNDEFINED};

/// The values `lo`, `lo + step`, … up to `hi`; one value if `step` is 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    /// Least value.
    pub lo: Number,
    /// Greatest value.
    pub hi: Number,
    /// Distance of adjacent values; 0 if there is one value.
    pub step: u64,
}

/// Greatest common divisor; `gcd(a, 0)` is `a`.
fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl Range {
    /// Any number, or the undefined value.
    pub const ANY: Range = Range {
        lo: UNDEFINED,
        hi: Number::MAX,
        step: 1,
    };
    /// The truth values 0 and 1.
    pub const TRUTH: Range = Range {
        lo: 0,
        hi: 1,
        step: 1,
    };

    /// Range of one value.
    pub fn single(value: Number) -> Range {
        Range {
            lo: value,
            hi: value,
            step: 0,
        }
    }

    /// All values from `lo` to `hi`.
    pub fn between(lo: Number, hi: Number) -> Range {
        Range {
            lo,
            hi,
            step: (lo != hi).into(),
        }
    }

    /// True if all values lie between bounds.
    pub fn is_within(self, lo: Number, hi: Number) -> bool {
        lo <= self.lo && self.hi <= hi
    }

    /// The range, given that the value lies between bounds.
    pub fn clipped(self, lo: Number, hi: Number) -> Range {
        if self.is_within(lo, hi) {
            return self;
        }
        // Never empty: code after a check that always fails does not run, so any range is correct.
        let lo = lo.max(self.lo);
        Range::between(lo, hi.min(self.hi).max(lo))
    }

    /// Smallest range that contains two ranges.
    pub fn union(self, other: Range) -> Range {
        let (lo, hi) = (self.lo.min(other.lo), self.hi.max(other.hi));
        let distance = self.lo.abs_diff(other.lo);
        let step = gcd(gcd(self.step, other.step), distance);
        Range { lo, hi, step }
    }

    /// All values, if there are at most `max_count`.
    pub fn values(self, max_count: usize) -> Option<impl Iterator<Item = Number>> {
        let step = self.step.max(1);
        let last = self.hi.abs_diff(self.lo) / step;
        // `i * step` is at most `hi - lo`, which may need all 64 bits.
        let value = move |i: u64| self.lo.saturating_add_unsigned(i * step);
        (last < max_count as u64).then(|| (0..=last).map(value))
    }
}

/// Possible results of an arithmetic operation, including those outside 64 bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct WideRange {
    /// Least result.
    lo: i128,
    /// Greatest result.
    hi: i128,
    /// Distance of adjacent results; 0 if there is one result.
    step: u64,
}

/// All results from `lo` to `hi`.
impl WideRange {
    fn between(lo: i128, hi: i128) -> WideRange {
        WideRange {
            lo,
            hi,
            step: (lo != hi).into(),
        }
    }

    /// True if every result fits in 64 bits.
    pub fn fits(self) -> bool {
        i128::from(Number::MIN) <= self.lo && self.hi <= i128::from(Number::MAX)
    }

    /// True if a result can equal the encoding of the undefined value.
    pub fn meets_undefined(self) -> bool {
        self.lo <= UNDEFINED.into() && i128::from(UNDEFINED) <= self.hi
    }

    /// Range of the valid results; all others are faults.
    pub fn numbers(self) -> Range {
        let (min_number, max_number) = Model::NUMBERS;
        match i128::from(min_number) <= self.lo && self.hi <= i128::from(max_number) {
            true => Range {
                lo: self.lo as Number,
                hi: self.hi as Number,
                step: self.step,
            },
            false => {
                let lo = self.lo.clamp(min_number.into(), max_number.into()) as Number;
                Range::between(lo, self.hi.clamp(lo.into(), max_number.into()) as Number)
            }
        }
    }
}

/// Possible results of an arithmetic operation, before the check that they are numbers.
pub(super) fn arithmetic(op: Arithmetic, a: Range, b: Range) -> WideRange {
    let wide = |range: Range| (i128::from(range.lo), i128::from(range.hi));
    let ((a_lo, a_hi), (b_lo, b_hi)) = (wide(a), wide(b));
    match op {
        Arithmetic::Add => WideRange {
            lo: a_lo + b_lo,
            hi: a_hi + b_hi,
            step: gcd(a.step, b.step),
        },
        Arithmetic::Subtract => WideRange {
            lo: a_lo - b_hi,
            hi: a_hi - b_lo,
            step: gcd(a.step, b.step),
        },
        Arithmetic::Multiply => {
            enclosing_range([a_lo * b_lo, a_lo * b_hi, a_hi * b_lo, a_hi * b_hi])
        }
        // A quotient is no larger than the dividend, except for the negation of the least number.
        Arithmetic::Divide => {
            let max_result = a_lo.abs().max(a_hi.abs());
            WideRange::between(-max_result, max_result)
        }
        Arithmetic::Remainder => {
            let max_result = (b_lo.abs().max(b_hi.abs()) - 1).max(0);
            let max_result = max_result.min(a_lo.abs().max(a_hi.abs()));
            let lo = if a.lo < 0 { -max_result } else { 0 };
            WideRange::between(lo, if a.hi > 0 { max_result } else { 0 })
        }
        // Results of non-negative numbers have no bits above the highest of either operand.
        Arithmetic::BitAnd | Arithmetic::BitOr | Arithmetic::BitXor if a.lo >= 0 && b.lo >= 0 => {
            let max_result = (a.hi.max(b.hi).max(0) as u64 + 1).next_power_of_two();
            WideRange::between(0, i128::from(max_result) - 1)
        }
        Arithmetic::BitAnd | Arithmetic::BitOr | Arithmetic::BitXor => {
            WideRange::between(Number::MIN.into(), Number::MAX.into())
        }
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
            // Other shift distances are left to the interpreter.
            let (min_shift, max_shift) = (b.lo.clamp(0, 63), b.hi.clamp(0, 63));
            let shifted = |value: i128, by: Number| match op {
                Arithmetic::ShiftLeft => value << by,
                _ => value >> by,
            };
            enclosing_range([
                shifted(a_lo, min_shift),
                shifted(a_lo, max_shift),
                shifted(a_hi, min_shift),
                shifted(a_hi, max_shift),
            ])
        }
    }
}

/// Range from the least to the greatest of some results.
fn enclosing_range(ends: [i128; 4]) -> WideRange {
    let (mut lo, mut hi) = (ends[0], ends[0]);
    for end in ends {
        lo = lo.min(end);
        hi = hi.max(end);
    }
    WideRange::between(lo, hi)
}

//! Numbers and the results of operators. Constant folding and the interpreter both use this module.
//!
//! Machine code computes them in its own way ([`crate::native`]), and leaves to the interpreter each case that it does
//! not handle.

/// A simple value: a number, or the position of a label or of another value in its type.
/// The least number is reserved for undefined values.
pub type Number = i64;

/// The undefined value of a scalar. No range contains it.
pub const UNDEFINED: Number = Number::MIN;

/// Operators with a number as result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Arithmetic {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient, rounded toward zero.
    Divide,
    /// Remainder, with the sign of the dividend.
    Remainder,
    /// Bits that are set in both numbers.
    BitAnd,
    /// Bits that are set in at least one of the numbers.
    BitOr,
    /// Bits that are set in exactly one of the numbers.
    BitXor,
    /// `a << b`, or `a >> -b`.
    ShiftLeft,
    /// `a >> b`, or `a << -b`.
    ShiftRight,
}

impl Arithmetic {
    /// Result of the operation; `None` on overflow, if the result is [`UNDEFINED`], or on division by zero.
    #[inline(always)]
    pub fn of(self, a: Number, b: Number) -> Option<Number> {
        let result = match self {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
            Arithmetic::Divide => a.checked_div(b),
            Arithmetic::Remainder => a.checked_rem(b),
            Arithmetic::BitAnd => Some(a & b),
            Arithmetic::BitOr => Some(a | b),
            Arithmetic::BitXor => Some(a ^ b),
            Arithmetic::ShiftLeft => shift(a, b),
            Arithmetic::ShiftRight => shift(a, b.saturating_neg()),
        };
        result.filter(|&result| result != UNDEFINED)
    }
}

/// `a` times two to the power of `by`, rounded down; `None` on overflow.
/// A shift by 64 or more, in either direction, gives 0.
fn shift(a: Number, by: Number) -> Option<Number> {
    match by {
        ..=-64 | 64.. => Some(0),
        ..0 => Some(a >> -by),
        _ => Number::try_from(i128::from(a) << by).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Number = Number::MAX;

    #[test]
    fn overflowing_arithmetic_returns_none() {
        use Arithmetic::*;
        let none = [
            (Add, MAX, 1),
            (Subtract, -MAX, 1),
            (Subtract, -MAX, 2),
            (Multiply, 1 << 32, 1 << 31),
            (Multiply, -(1 << 32), 1 << 31),
            (Divide, 5, 0),
            (Remainder, 5, 0),
            (BitXor, MAX, -1),
            (ShiftLeft, 1, 63),
            (ShiftLeft, -1, 63),
            (ShiftRight, 3, -62),
        ];
        for (op, a, b) in none {
            assert_eq!(op.of(a, b), None, "{op:?} {a} {b}");
        }
        let some = [
            (Add, MAX, -1, MAX - 1),
            (Subtract, -MAX, -MAX, 0),
            (Multiply, 1 << 31, 1 << 31, 1 << 62),
            (Divide, -MAX, -1, MAX),
            (Remainder, -7, 2, -1),
            (ShiftLeft, 1, 62, 1 << 62),
            (ShiftLeft, 1, 64, 0),
            (ShiftLeft, 0, 63, 0),
            (ShiftLeft, -8, -2, -2),
            (ShiftRight, -1, 63, -1),
            (ShiftRight, -1, 64, 0),
            (ShiftRight, 1, UNDEFINED, 0),
        ];
        for (op, a, b, result) in some {
            assert_eq!(op.of(a, b), Some(result), "{op:?} {a} {b}");
        }
    }
}

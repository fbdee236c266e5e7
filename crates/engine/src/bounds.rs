//! Least and greatest values that expressions of a model can have.

use crate::model::{Expr, Model, Number, Operator};

/// A bound above all numbers of a model; computed bounds are clamped to it.
const NUMBER_BOUND: i128 = 1 << 64;

/// Least and greatest value of an expression, as far as the analysis shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Least value.
    pub lo: i128,
    /// Greatest value.
    pub hi: i128,
}

impl Bounds {
    /// Bounds of a type or of the model's numbers.
    pub fn new(lo: Number, hi: Number) -> Bounds {
        Bounds {
            lo: lo.into(),
            hi: hi.into(),
        }
    }

    /// True if all values fit 32 bits.
    pub fn fits_32_bits(self) -> bool {
        i128::from(i32::MIN) <= self.lo && self.hi <= i128::from(i32::MAX)
    }

    /// Smallest bounds of both.
    fn hull(self, other: Bounds) -> Bounds {
        Bounds {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    /// Greatest absolute value.
    fn magnitude(self) -> i128 {
        self.lo.abs().max(self.hi.abs())
    }

    /// All values up to an absolute value.
    fn up_to_magnitude(magnitude: i128) -> Bounds {
        Bounds {
            lo: -magnitude,
            hi: magnitude,
        }
    }
}

/// Bounds of a simple value, as far as the analysis shows.
pub fn bounds(model: &Model, e: &Expr) -> Bounds {
    let bounds = match e {
        Expr::Int(n) => Bounds::new(*n, *n),
        Expr::Line(_, e) | Expr::Alias(_, _, e) | Expr::Let(_, _, e) => bounds(model, e),
        Expr::Negate(e) => {
            let Bounds { lo, hi } = bounds(model, e);
            Bounds { lo: -hi, hi: -lo }
        }
        Expr::If(_, a, b) => bounds(model, a).hull(bounds(model, b)),
        Expr::Binary(op, a, b) if op.is_arithmetic() => {
            result_bounds(*op, bounds(model, a), bounds(model, b))
        }
        // A count of a multiset's slots.
        Expr::Count(..) => Bounds::new(0, u32::MAX.into()),
        _ => {
            let simple = model.type_of(e).and_then(|ty| model.bounds(ty));
            let (lo, hi) = simple.unwrap_or((0, 0));
            Bounds::new(lo, hi)
        }
    };
    Bounds {
        lo: bounds.lo.clamp(-NUMBER_BOUND, NUMBER_BOUND),
        hi: bounds.hi.clamp(-NUMBER_BOUND, NUMBER_BOUND),
    }
}

/// Bounds of an operator's result.
fn result_bounds(op: Operator, a: Bounds, b: Bounds) -> Bounds {
    match op {
        Operator::Add => Bounds {
            lo: a.lo + b.lo,
            hi: a.hi + b.hi,
        },
        Operator::Subtract => Bounds {
            lo: a.lo - b.hi,
            hi: a.hi - b.lo,
        },
        Operator::Multiply => Bounds::up_to_magnitude(a.magnitude().saturating_mul(b.magnitude())),
        Operator::ShiftLeft | Operator::ShiftRight => {
            // A shift in either direction, by the largest amount.
            let shift = match op {
                Operator::ShiftLeft => b.hi,
                _ => -b.lo,
            };
            Bounds::up_to_magnitude(a.magnitude() << shift.clamp(0, 62))
        }
        // No result is larger than the operands, or has more bits.
        _ => a.hull(b).hull(Bounds {
            lo: -a.magnitude().max(b.magnitude()) - 1,
            hi: 0,
        }),
    }
}

//! Size of the numbers that a model computes.

use cohkit_engine::model::{Expr, Model, Number, Operator, TypeId};
use cohkit_engine::visit::{self, Node};

/// Width of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum NumberWidth {
    /// At most 32 bits.
    AtMost32,
    /// More than 32 bits, as far as the analysis shows.
    Over32,
}

/// A bound above all numbers of a model; computed bounds are clamped to it.
const NUMBER_BOUND: i128 = 1 << 64;

/// Least and greatest value of an expression, as far as the analysis shows.
#[derive(Clone, Copy)]
struct Bounds {
    /// Least value.
    lo: i128,
    /// Greatest value.
    hi: i128,
}

impl Bounds {
    /// Bounds of a type or of the model's numbers.
    fn new(lo: Number, hi: Number) -> Bounds {
        Bounds {
            lo: lo.into(),
            hi: hi.into(),
        }
    }

    /// True if all values fit 32 bits.
    fn fits_32_bits(self) -> bool {
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

/// Width of the numbers that a model stores, computes or compares.
pub(super) fn number_width(model: &Model) -> NumberWidth {
    // If arithmetic beyond 32 bits is an error, there are no larger numbers.
    if Bounds::new(model.numbers.0, model.numbers.1).fits_32_bits() {
        return NumberWidth::AtMost32;
    }
    let mut exceeds_32_bits = false;
    for ty in 0..model.types.len() as u32 {
        let (lo, hi) = model.bounds(TypeId(ty)).unwrap_or((0, 0));
        exceeds_32_bits |= !Bounds::new(lo, hi).fits_32_bits();
    }
    let mut check_node = |node: Node| {
        if let Node::Expr(e @ (Expr::Int(_) | Expr::Negate(_) | Expr::Binary(..))) = node {
            exceeds_32_bits |= !bounds(model, e).fits_32_bits();
        }
    };
    let bodies = model.rules.iter().map(|rule| &rule.body);
    let bodies = bodies.chain(model.starts.iter().map(|start| &start.body));
    for body in bodies.chain(model.functions.iter().map(|function| &function.body)) {
        visit::block(body, &mut check_node);
    }
    let claims = model.invariants.iter().chain(&model.liveness);
    let claims = claims.chain(&model.assumptions).map(|claim| &claim.holds);
    let claims = claims.chain(model.rules.iter().map(|rule| &rule.guard));
    let claims = claims.chain(model.covers.iter().filter_map(|cover| cover.holds.as_ref()));
    for e in claims.chain(&model.quiescent) {
        visit::expr(e, &mut check_node);
    }
    match exceeds_32_bits {
        true => NumberWidth::Over32,
        false => NumberWidth::AtMost32,
    }
}

/// Bounds of a simple value, as far as the analysis shows.
fn bounds(model: &Model, e: &Expr) -> Bounds {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, Dialect};

    fn width_of_text(text: &str, dialect: Dialect) -> NumberWidth {
        number_width(&read("test", text, dialect).expect("a model").model)
    }

    fn model_text(range: &str, claim: &str) -> String {
        format!(
            "var n: {range}; startstate begin n := 0; end; rule begin n := 0; end; invariant {claim};"
        )
    }

    #[test]
    fn large_values_and_results_require_more_than_32_bits() {
        for (range, claim) in [
            ("0..1000", "n * 1000 + n < 9 & (n << 3) - n >= -n"),
            ("0..2147483647", "n / 2 > -2147483647"),
        ] {
            assert_eq!(
                width_of_text(&model_text(range, claim), Dialect::Any),
                NumberWidth::AtMost32,
                "{claim}"
            );
        }
        for (range, claim) in [
            ("0..4294967296", "true"),
            ("0..9", "n < 4294967296"),
            ("0..2147483647", "n + 1 > n"),
            ("0..100000", "n * n > n"),
            ("0..100", "(1 << n) > n"),
            ("0..100", "(1 >> -n) > n"),
        ] {
            assert_eq!(
                width_of_text(&model_text(range, claim), Dialect::Any),
                NumberWidth::Over32,
                "{claim}"
            );
        }
        // CMurphi computes in 32 bits in any case.
        let large = model_text("0..100000", "n * n > n");
        assert_eq!(
            width_of_text(&large, Dialect::CMurphi),
            NumberWidth::AtMost32
        );
    }
}

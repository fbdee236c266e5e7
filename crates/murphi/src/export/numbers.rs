//! Size of the numbers that a model computes.

use cohkit_engine::model::{Expr, Model, Operator, TypeId};
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

/// Width of the numbers that a model stores, computes or compares.
pub(super) fn number_width(model: &Model) -> NumberWidth {
    // If arithmetic beyond 32 bits is an error, there are no larger numbers.
    if fits_32_bits(model.numbers.0.into(), model.numbers.1.into()) {
        return NumberWidth::AtMost32;
    }
    let mut exceeds_32_bits = false;
    for ty in 0..model.types.len() as u32 {
        let (lo, hi) = model.bounds(TypeId(ty)).unwrap_or((0, 0));
        exceeds_32_bits |= !fits_32_bits(lo.into(), hi.into());
    }
    let mut check_node = |node: Node| {
        if let Node::Expr(e @ (Expr::Int(_) | Expr::Negate(_) | Expr::Binary(..))) = node {
            let (lo, hi) = bounds(model, e);
            exceeds_32_bits |= !fits_32_bits(lo, hi);
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

fn fits_32_bits(lo: i128, hi: i128) -> bool {
    i128::from(i32::MIN) <= lo && hi <= i128::from(i32::MAX)
}

/// Bounds of a simple value, as far as the analysis shows.
fn bounds(model: &Model, e: &Expr) -> (i128, i128) {
    let (lo, hi) = match e {
        Expr::Int(n) => ((*n).into(), (*n).into()),
        Expr::Line(_, e) | Expr::Alias(_, _, e) | Expr::Let(_, _, e) => bounds(model, e),
        Expr::Negate(e) => {
            let (lo, hi) = bounds(model, e);
            (-hi, -lo)
        }
        Expr::If(_, a, b) => hull(bounds(model, a), bounds(model, b)),
        Expr::Binary(op, a, b) if op.is_arithmetic() => {
            result(*op, bounds(model, a), bounds(model, b))
        }
        // A count of a multiset's slots.
        Expr::Count(..) => (0, u32::MAX.into()),
        _ => {
            let simple = model.type_of(e).and_then(|ty| model.bounds(ty));
            let (lo, hi) = simple.unwrap_or((0, 0));
            (lo.into(), hi.into())
        }
    };
    (
        lo.clamp(-NUMBER_BOUND, NUMBER_BOUND),
        hi.clamp(-NUMBER_BOUND, NUMBER_BOUND),
    )
}

/// Bounds of an operator's result.
fn result(op: Operator, a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    let magnitude = |x: (i128, i128)| x.0.abs().max(x.1.abs());
    match op {
        Operator::Add => (a.0 + b.0, a.1 + b.1),
        Operator::Subtract => (a.0 - b.1, a.1 - b.0),
        Operator::Multiply => {
            let magnitude = magnitude(a).saturating_mul(magnitude(b));
            (-magnitude, magnitude)
        }
        Operator::ShiftLeft | Operator::ShiftRight => {
            // A shift in either direction, by the largest amount.
            let shift = match op {
                Operator::ShiftLeft => b.1,
                _ => -b.0,
            };
            let magnitude = magnitude(a) << shift.clamp(0, 62);
            (-magnitude, magnitude)
        }
        // No result is larger than the operands, or has more bits.
        _ => hull(hull(a, b), (-magnitude(a).max(magnitude(b)) - 1, 0)),
    }
}

fn hull(a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    (a.0.min(b.0), a.1.max(b.1))
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

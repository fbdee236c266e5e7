//! Size of the numbers that a model computes.

use cohkit_engine::bounds::{bounds, Bounds};
use cohkit_engine::model::{Expr, Model, TypeId};
use cohkit_engine::visit::{self, Node};

/// Width of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum NumberWidth {
    /// At most 32 bits.
    AtMost32,
    /// More than 32 bits, as far as the analysis shows.
    Over32,
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

//! Conditions, compiled to jumps.

use super::cost::cost;
use super::values::comparison;
use super::{scalarsets_of, Compiler, Label};
use crate::model::{Expr, Operator, Steps, TypeId, VariableId, UNDEFINED};
use crate::program::Comparison;
use crate::visit;

/// An operand of a conjunction: a condition or its negation.
#[derive(Clone, Copy)]
struct Literal<'e> {
    /// The condition.
    e: &'e Expr,
    /// Value that the condition must have: false for its negation.
    value: bool,
}

impl<'e> Literal<'e> {
    /// The condition itself.
    fn positive(e: &'e Expr) -> Literal<'e> {
        Literal { e, value: true }
    }

    /// The negation of a condition.
    fn negative(e: &'e Expr) -> Literal<'e> {
        Literal { e, value: false }
    }
}

impl Compiler<'_> {
    /// Emits code that jumps to `to` if a condition has the value `when`, and falls through otherwise.
    pub(super) fn jump_if(&mut self, e: &Expr, when: bool, to: Label) {
        if let Some(value) = self.constant_value(e) {
            if (value != 0) == when {
                self.code.emit_jump(to);
            }
            return;
        }
        match e {
            Expr::Not(a) => self.jump_if(a, !when, to),
            Expr::Binary(Operator::And, a, b) => {
                self.jump_if_both(Literal::positive(a), Literal::positive(b), when, to)
            }
            // `a or b` is the negation of `not a and not b`.
            Expr::Binary(Operator::Or, a, b) => {
                self.jump_if_both(Literal::negative(a), Literal::negative(b), !when, to)
            }
            // `a implies b` is the negation of `a and not b`.
            Expr::Binary(Operator::Implies, a, b) => {
                self.jump_if_both(Literal::positive(a), Literal::negative(b), !when, to)
            }
            Expr::Line(line, e) => {
                self.code.line = *line;
                self.jump_if(e, when, to);
            }
            Expr::Alias(id, place, e) => {
                self.with_alias(*id, place, visit::contains_call(e), |c| {
                    c.jump_if(e, when, to)
                })
            }
            Expr::Let(id, value, e) => {
                let mark = self.code.temporary;
                self.emit_assign(&(*id).into(), value);
                self.code.temporary = mark;
                self.jump_if(e, when, to);
            }
            Expr::Binary(op @ (Operator::Equal | Operator::NotEqual), a, b)
                if self.is_aggregate(a) =>
            {
                let mark = self.code.temporary;
                self.jump_if_aggregates_equal(a, b, when == (*op == Operator::Equal), to);
                self.code.temporary = mark;
            }
            Expr::Binary(op, a, b) => self.jump_if_compared(*op, a, b, when, to),
            // The body holds for some value if its negation does not hold for all.
            Expr::Forall(id, body) => self.jump_if_all(*id, Literal::positive(body), when, to),
            Expr::Exists(id, body) => self.jump_if_all(*id, Literal::negative(body), !when, to),
            Expr::ForallSteps(id, steps, body) => {
                self.jump_if_all_steps(*id, steps, Literal::positive(body), when, to)
            }
            Expr::ExistsSteps(id, steps, body) => {
                self.jump_if_all_steps(*id, steps, Literal::negative(body), !when, to)
            }
            Expr::IsUndefined(place) => {
                let mark = self.code.temporary;
                let (location, _) = self.locate(place);
                let a = self.emit_load(location);
                let b = self.code.constant(UNDEFINED).cell;
                self.code.temporary = mark;
                let op = match when {
                    true => Comparison::Equal,
                    false => Comparison::NotEqual,
                };
                self.code.emit_jump_if(op, a, b, to);
            }
            Expr::IsMember(e, ty) => self.jump_if_member(e, *ty, when, to),
            _ => {
                let mark = self.code.temporary;
                let value = self.emit_value(e);
                self.code.temporary = mark;
                let zero = self.code.constant(0);
                let op = match when {
                    true => Comparison::NotEqual,
                    false => Comparison::Equal,
                };
                self.code.emit_jump_if(op, value.cell, zero.cell, to);
            }
        }
    }

    /// Jumps to `to` if a comparison of simple values has the value `when`.
    fn jump_if_compared(&mut self, op: Operator, a: &Expr, b: &Expr, when: bool, to: Label) {
        let mark = self.code.temporary;
        let (a, b) = self.emit_two_values(a, b);
        let (op, a, b) = comparison(op, a.cell, b.cell);
        // The negation of `a < b` is `b <= a`.
        let (op, a, b) = match (when, op) {
            (true, op) => (op, a, b),
            (false, Comparison::Equal) => (Comparison::NotEqual, a, b),
            (false, Comparison::NotEqual) => (Comparison::Equal, a, b),
            (false, Comparison::Less) => (Comparison::LessOrEqual, b, a),
            (false, Comparison::LessOrEqual) => (Comparison::Less, b, a),
        };
        self.code.temporary = mark;
        self.code.emit_jump_if(op, a, b, to);
    }

    /// Jumps to `to` if "the value belongs to the member type of its union" has the value `when`.
    fn jump_if_member(&mut self, e: &Expr, member: TypeId, when: bool, to: Label) {
        let mark = self.code.temporary;
        let conversion = self.conversion(member, e);
        let value = self.emit_value(e);
        // Without a conversion, the range is empty: no value belongs to the type.
        let (lo, hi) = conversion.map_or((0, -1), |conversion| (conversion.lo, conversion.hi));
        let end = self.code.new_label();
        let outside = if when { end } else { to };
        let (lo, hi) = (self.code.constant(lo).cell, self.code.constant(hi).cell);
        self.code
            .emit_jump_if(Comparison::Less, value.cell, lo, outside);
        self.code
            .emit_jump_if(Comparison::Less, hi, value.cell, outside);
        if when {
            self.code.emit_jump(to);
        }
        self.code.bind_label(end);
        self.code.temporary = mark;
    }

    /// Jumps to `to` if "both literals hold" has the value `when`.
    fn jump_if_both(&mut self, a: Literal, b: Literal, when: bool, to: Label) {
        if when {
            let end = self.code.new_label();
            self.jump_if(a.e, !a.value, end);
            self.jump_if(b.e, b.value, to);
            self.code.bind_label(end);
        } else {
            self.jump_if(a.e, !a.value, to);
            self.jump_if(b.e, !b.value, to);
        }
    }

    /// Jumps to `to` if "the literal holds for all values of the bound variable" has the value `when`.
    fn jump_if_all(&mut self, id: VariableId, body: Literal, when: bool, to: Label) {
        let outer_count = self.code.enclosing_quantifiers.len();
        if !scalarsets_of(self.model, id).is_empty() {
            self.code.enclosing_quantifiers.push(id);
        }
        if self.exhaustive_quantifiers.contains(&id) {
            self.jump_if_all_exhaustive(id, body, when, to);
        } else {
            let end = self.code.new_label();
            let decided_label = if when { end } else { to };
            self.repeat(id, cost(self, body.e), |c| {
                c.jump_if(body.e, !body.value, decided_label)
            });
            if when {
                self.code.emit_jump(to);
            }
            self.code.bind_label(end);
        }
        self.code.enclosing_quantifiers.truncate(outer_count);
    }

    /// As [`Compiler::jump_if_all`], but evaluates all values even once the result is decided.
    fn jump_if_all_exhaustive(&mut self, id: VariableId, body: Literal, when: bool, to: Label) {
        let mark = self.code.temporary;
        let has_counterexample = self.code.new_temporary();
        let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
        self.code.emit_copy(has_counterexample, zero);
        self.repeat(id, cost(self, body.e), |c| {
            let next = c.code.new_label();
            c.jump_if(body.e, body.value, next);
            c.code.emit_copy(has_counterexample, one);
            c.code.bind_label(next);
        });
        let expected = if when { zero } else { one };
        self.code
            .emit_jump_if(Comparison::Equal, has_counterexample, expected, to);
        self.code.temporary = mark;
    }

    /// As [`Compiler::jump_if_all`], for the numbers of a sequence.
    fn jump_if_all_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        body: Literal,
        when: bool,
        to: Label,
    ) {
        let mark = self.code.temporary;
        let end = self.code.new_label();
        let decided_label = if when { end } else { to };
        self.repeat_steps(id, steps, cost(self, body.e), |c| {
            c.jump_if(body.e, !body.value, decided_label)
        });
        if when {
            self.code.emit_jump(to);
        }
        self.code.bind_label(end);
        self.code.temporary = mark;
    }
}

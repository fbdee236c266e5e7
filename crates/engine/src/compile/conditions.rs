//! Conditions, compiled to jumps.

use super::cost::cost;
use super::values::comparison;
use super::{Compiler, Label};
use crate::model::{Expr, Operator, Steps, Type, VariableId, UNDEFINED};
use crate::program::{Comparison, Op};
use crate::visit;

impl Compiler<'_> {
    /// Emits code that jumps to `to` if a condition has the value `when`, and falls through otherwise.
    pub(super) fn jump(&mut self, e: &Expr, when: bool, to: Label) {
        if let Some(value) = self.constant_value(e) {
            if (value != 0) == when {
                self.emit(Op::Jump { to: to.0 });
            }
            return;
        }
        match e {
            Expr::Not(a) => self.jump(a, !when, to),
            Expr::Binary(Operator::And, a, b) => self.jump_conjunction(a, true, b, true, when, to),
            Expr::Binary(Operator::Or, a, b) => {
                self.jump_conjunction(a, false, b, false, !when, to)
            }
            Expr::Binary(Operator::Implies, a, b) => {
                self.jump_conjunction(a, true, b, false, !when, to)
            }
            Expr::Line(line, e) => {
                self.line = *line;
                self.jump(e, when, to);
            }
            Expr::Alias(id, place, e) => {
                self.with_alias(*id, place, visit::contains_call(e), |c| c.jump(e, when, to))
            }
            Expr::Let(id, value, e) => {
                let mark = self.temporary;
                self.assign(&(*id).into(), value);
                self.temporary = mark;
                self.jump(e, when, to);
            }
            Expr::Binary(op @ (Operator::Equal | Operator::NotEqual), a, b)
                if self.is_aggregate(a) =>
            {
                let mark = self.temporary;
                self.jump_if_aggregates_equal(a, b, when == (*op == Operator::Equal), to);
                self.temporary = mark;
            }
            Expr::Binary(op, a, b) => {
                let mark = self.temporary;
                let (a, b) = self.two_values(a, b);
                let (op, a, b) = comparison(*op, a.cell, b.cell);
                // The negation of `a < b` is `b <= a`.
                let (op, a, b) = match (when, op) {
                    (true, op) => (op, a, b),
                    (false, Comparison::Equal) => (Comparison::NotEqual, a, b),
                    (false, Comparison::NotEqual) => (Comparison::Equal, a, b),
                    (false, Comparison::Less) => (Comparison::LessOrEqual, b, a),
                    (false, Comparison::LessOrEqual) => (Comparison::Less, b, a),
                };
                self.temporary = mark;
                self.emit(Op::JumpIf { op, a, b, to: to.0 });
            }
            Expr::Forall(id, body) => self.jump_quantified(*id, body, true, when, to),
            Expr::Exists(id, body) => self.jump_quantified(*id, body, false, !when, to),
            Expr::ForallSteps(id, steps, body) => {
                self.jump_quantified_steps(*id, steps, body, true, when, to)
            }
            Expr::ExistsSteps(id, steps, body) => {
                self.jump_quantified_steps(*id, steps, body, false, !when, to)
            }
            Expr::IsUndefined(place) => {
                let mark = self.temporary;
                let (location, _) = self.locate(place);
                let a = self.load(location);
                let b = self.constant(UNDEFINED).cell;
                self.temporary = mark;
                let op = match when {
                    true => Comparison::Equal,
                    false => Comparison::NotEqual,
                };
                self.emit(Op::JumpIf { op, a, b, to: to.0 });
            }
            Expr::IsMember(e, ty) => {
                let mark = self.temporary;
                let conversion = self.conversion(*ty, e);
                let value = self.value(e);
                let (_, lo, hi) = conversion.unwrap_or((0, 0, -1));
                let end = self.new_label();
                let outside = if when { end } else { to };
                let (lo, hi) = (self.constant(lo).cell, self.constant(hi).cell);
                let op = Comparison::Less;
                self.emit(Op::JumpIf {
                    op,
                    a: value.cell,
                    b: lo,
                    to: outside.0,
                });
                self.emit(Op::JumpIf {
                    op,
                    a: hi,
                    b: value.cell,
                    to: outside.0,
                });
                if when {
                    self.emit(Op::Jump { to: to.0 });
                }
                self.bind_label(end);
                self.temporary = mark;
            }
            _ => {
                let mark = self.temporary;
                let value = self.value(e);
                self.temporary = mark;
                let zero = self.constant(0);
                let op = if when {
                    Comparison::NotEqual
                } else {
                    Comparison::Equal
                };
                self.emit(Op::JumpIf {
                    op,
                    a: value.cell,
                    b: zero.cell,
                    to: to.0,
                });
            }
        }
    }

    /// Jumps to `to` if "`a` has `a_value` and `b` has `b_value`" has the value `when`.
    pub(super) fn jump_conjunction(
        &mut self,
        a: &Expr,
        a_value: bool,
        b: &Expr,
        b_value: bool,
        when: bool,
        to: Label,
    ) {
        if when {
            let end = self.new_label();
            self.jump(a, !a_value, end);
            self.jump(b, b_value, to);
            self.bind_label(end);
        } else {
            self.jump(a, !a_value, to);
            self.jump(b, !b_value, to);
        }
    }

    /// Jumps to `to` if "the body has `body_value` for all values" has the value `when`.
    pub(super) fn jump_quantified(
        &mut self,
        id: VariableId,
        body: &Expr,
        body_value: bool,
        when: bool,
        to: Label,
    ) {
        let outer_count = self.enclosing_quantifiers.len();
        if let Type::Scalarset(2..) = self.model.ty(self.model.variable(id).ty) {
            self.enclosing_quantifiers.push(id);
        }
        if self.exhaustive_quantifiers.contains(&id) {
            self.jump_quantified_exhaustive(id, body, body_value, when, to);
        } else {
            let end = self.new_label();
            let decided_label = if when { end } else { to };
            self.repeat(id, cost(self, body), |c| {
                c.jump(body, !body_value, decided_label)
            });
            if when {
                self.emit(Op::Jump { to: to.0 });
            }
            self.bind_label(end);
        }
        self.enclosing_quantifiers.truncate(outer_count);
    }

    /// As [`Compiler::jump_quantified`], but evaluates all values even once the result is decided.
    fn jump_quantified_exhaustive(
        &mut self,
        id: VariableId,
        body: &Expr,
        body_value: bool,
        when: bool,
        to: Label,
    ) {
        let mark = self.temporary;
        let decided_cell = self.new_temporary();
        let (zero, one) = (self.constant(0).cell, self.constant(1).cell);
        self.emit(Op::Copy {
            dst: decided_cell,
            a: zero,
        });
        self.repeat(id, cost(self, body), |c| {
            let next = c.new_label();
            c.jump(body, body_value, next);
            c.emit(Op::Copy {
                dst: decided_cell,
                a: one,
            });
            c.bind_label(next);
        });
        let op = Comparison::Equal;
        let b = if when { zero } else { one };
        self.emit(Op::JumpIf {
            op,
            a: decided_cell,
            b,
            to: to.0,
        });
        self.temporary = mark;
    }

    /// As [`Compiler::jump_quantified`], for the numbers of a sequence.
    pub(super) fn jump_quantified_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        body: &Expr,
        body_value: bool,
        when: bool,
        to: Label,
    ) {
        let mark = self.temporary;
        let end = self.new_label();
        let decided_label = if when { end } else { to };
        self.repeat_steps(id, steps, cost(self, body), |c| {
            c.jump(body, !body_value, decided_label)
        });
        if when {
            self.emit(Op::Jump { to: to.0 });
        }
        self.bind_label(end);
        self.temporary = mark;
    }
}

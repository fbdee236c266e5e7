//! Loops; short ones are unrolled.

use super::places::encode_reach;
use super::{Compiler, Value};
use crate::model::{Expr, Model, Number, Steps, VariableId, Violation};
use crate::program::{Arithmetic, Comparison, LoopOrder, Op};

/// Maximum number of nodes of unrolled loop bodies.
const MAX_UNROLLED_NODES: u64 = 4096;

impl Compiler<'_> {
    /// True if a loop over a bound variable, with a body of this cost, is short enough to unroll.
    pub(super) fn is_unrolled(&self, bound: VariableId, cost: usize) -> bool {
        let count = self.model.count(self.model.variable(bound).ty);
        count.saturating_mul(cost as u64) <= MAX_UNROLLED_NODES
    }

    /// Emits `f` for each value of a bound variable, unrolled or as a loop.
    pub(super) fn repeat(&mut self, id: VariableId, cost: usize, mut f: impl FnMut(&mut Self)) {
        let domain = self.domain(id);
        if self.is_unrolled(id, cost) {
            for value in domain {
                self.bound_values[id.index()] = Some(value);
                f(self);
            }
            self.bound_values[id.index()] = None;
            return;
        }
        let cell = self.cells[id.index()];
        let (first, last) = (
            self.constant(*domain.start()).cell,
            self.constant(*domain.end()).cell,
        );
        let one = self.constant(1).cell;
        self.emit(Op::Copy {
            dst: cell,
            a: first,
        });
        let (top, end) = (self.new_label(), self.new_label());
        self.bind_label(top);
        f(self);
        self.emit(Op::JumpIf {
            op: Comparison::Equal,
            a: cell,
            b: last,
            to: end.0,
        });
        self.emit(Op::Arithmetic {
            op: Arithmetic::Add,
            dst: cell,
            a: cell,
            b: one,
        });
        self.emit(Op::Jump { to: top.0 });
        self.bind_label(end);
    }

    /// Emits `f` as a loop over the values of a bound variable, in the order held by the cells of `order`.
    pub(super) fn repeat_in_order(
        &mut self,
        id: VariableId,
        order: &LoopOrder,
        f: impl FnOnce(&mut Self),
    ) {
        let (zero, one) = (self.constant(0).cell, self.constant(1).cell);
        let last = self.constant(Number::from(order.count) - 1).cell;
        let iteration = self.new_temporary();
        self.emit(Op::Copy {
            dst: iteration,
            a: zero,
        });
        let (top, end) = (self.new_label(), self.new_label());
        self.bind_label(top);
        self.emit(Op::Load {
            dst: self.cells[id.index()],
            offset: iteration,
            base: order.first,
            len: encode_reach(order.count),
        });
        f(self);
        self.emit(Op::JumpIf {
            op: Comparison::Equal,
            a: iteration,
            b: last,
            to: end.0,
        });
        self.emit(Op::Arithmetic {
            op: Arithmetic::Add,
            dst: iteration,
            a: iteration,
            b: one,
        });
        self.emit(Op::Jump { to: top.0 });
        self.bind_label(end);
    }

    /// Emits `f` for the numbers of a sequence, unrolled or as a loop.
    pub(super) fn repeat_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        cost: usize,
        mut f: impl FnMut(&mut Self),
    ) {
        let by = self.constant_value(&steps.by);
        if let (Some(from), Some(to), Some(by)) = (
            self.constant_value(&steps.from),
            self.constant_value(&steps.to),
            by,
        ) {
            if by > 0 && to < from || by < 0 && from < to {
                return;
            }
            let iterations = match by {
                0 => u64::MAX,
                _ => (to.abs_diff(from) / by.unsigned_abs()).saturating_add(1),
            };
            if iterations.saturating_mul(cost.max(1) as u64) <= MAX_UNROLLED_NODES {
                for iteration in 0..iterations {
                    self.bound_values[id.index()] =
                        Some(from.wrapping_add((iteration as Number).wrapping_mul(by)));
                    f(self);
                }
                self.bound_values[id.index()] = None;
                return;
            }
        }
        let cell = self.cells[id.index()];
        let saved_value = |c: &mut Self, e: &Expr| {
            let value = c.value(e);
            let dst = c.new_temporary();
            c.emit(Op::Copy { dst, a: value.cell });
            Value { cell: dst, ..value }
        };
        let from = saved_value(self, &steps.from).cell;
        let to = saved_value(self, &steps.to);
        let step = saved_value(self, &steps.by).cell;
        let last = to.cell;
        let zero = self.constant(0).cell;
        self.emit(Op::Copy { dst: cell, a: from });
        if by.is_none_or(|by| by == 0) {
            let continue_label = self.new_label();
            let op = Comparison::NotEqual;
            self.emit(Op::JumpIf {
                op,
                a: step,
                b: zero,
                to: continue_label.0,
            });
            self.emit_violation(&Violation::ill_defined("a loop has steps of 0"));
            self.bind_label(continue_label);
        }
        let (top, down, body, end) = (
            self.new_label(),
            self.new_label(),
            self.new_label(),
            self.new_label(),
        );
        let op = Comparison::Less;
        self.bind_label(top);
        self.emit(Op::JumpIf {
            op,
            a: step,
            b: zero,
            to: down.0,
        });
        self.emit(Op::JumpIf {
            op,
            a: last,
            b: cell,
            to: end.0,
        });
        self.emit(Op::Jump { to: body.0 });
        self.bind_label(down);
        self.emit(Op::JumpIf {
            op,
            a: cell,
            b: last,
            to: end.0,
        });
        self.bind_label(body);
        f(self);
        // If the next number would overflow, the loop ends.
        let (min_number, max_number) = Model::NUMBERS;
        let overflow_test = match by {
            Some(by) if by > 0 && to.hi > max_number - by => {
                Some((self.constant(max_number - by).cell, cell))
            }
            Some(by) if by < 0 && to.lo < min_number - by => {
                Some((cell, self.constant(min_number - by).cell))
            }
            _ => None,
        };
        if let Some((a, b)) = overflow_test {
            let op = Comparison::Less;
            self.emit(Op::JumpIf {
                op,
                a,
                b,
                to: end.0,
            });
        }
        let next = self.new_temporary();
        self.emit_at(
            Op::Arithmetic {
                op: Arithmetic::Add,
                dst: next,
                a: cell,
                b: step,
            },
            |_| String::new(),
        );
        self.emit(Op::Copy { dst: cell, a: next });
        self.emit(Op::Jump { to: top.0 });
        self.bind_label(end);
    }
}

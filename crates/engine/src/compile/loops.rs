//! Loops; short ones are unrolled.

use super::places::encode_reach;
use super::{Compiler, Label, Value};
use crate::model::{Expr, Model, Number, Steps, VariableId, Violation};
use crate::program::{Arithmetic, Cell, Comparison, LoopOrder, Op};

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
            self.code.constant(*domain.start()).cell,
            self.code.constant(*domain.end()).cell,
        );
        let one = self.code.constant(1).cell;
        self.code.emit_copy(cell, first);
        let (top, end) = (self.code.new_label(), self.code.new_label());
        self.code.bind_label(top);
        f(self);
        self.code.emit_jump_if(Comparison::Equal, cell, last, end);
        self.code.emit_add(cell, cell, one);
        self.code.emit_jump(top);
        self.code.bind_label(end);
    }

    /// Emits `f` as a loop over the values of a bound variable, in the order held by the cells of `order`.
    pub(super) fn repeat_in_order(
        &mut self,
        id: VariableId,
        order: &LoopOrder,
        f: impl FnOnce(&mut Self),
    ) {
        let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
        let last = self.code.constant(Number::from(order.count) - 1).cell;
        let iteration = self.code.new_temporary();
        self.code.emit_copy(iteration, zero);
        let (top, end) = (self.code.new_label(), self.code.new_label());
        self.code.bind_label(top);
        self.code.emit(Op::Load {
            dst: self.cells[id.index()],
            offset: iteration,
            base: order.first,
            len: encode_reach(order.count),
        });
        f(self);
        self.code
            .emit_jump_if(Comparison::Equal, iteration, last, end);
        self.code.emit_add(iteration, iteration, one);
        self.code.emit_jump(top);
        self.code.bind_label(end);
    }

    /// Emits `f` for the numbers of a sequence, unrolled or as a loop.
    pub(super) fn repeat_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        cost: usize,
        mut f: impl FnMut(&mut Self),
    ) {
        if let Some(numbers) = self.unrolled_steps(steps, cost) {
            for number in numbers {
                self.bound_values[id.index()] = Some(number);
                f(self);
            }
            self.bound_values[id.index()] = None;
            return;
        }
        let cell = self.cells[id.index()];
        let from = self.emit_saved_value(&steps.from).cell;
        let to = self.emit_saved_value(&steps.to);
        let by = self.emit_saved_value(&steps.by).cell;
        let constant_by = self.constant_value(&steps.by);
        let zero = self.code.constant(0).cell;
        self.code.emit_copy(cell, from);
        if constant_by.is_none_or(|by| by == 0) {
            let continue_label = self.code.new_label();
            self.code
                .emit_jump_if(Comparison::NotEqual, by, zero, continue_label);
            self.code
                .emit_violation(&Violation::ill_defined("a loop has steps of 0"));
            self.code.bind_label(continue_label);
        }
        let (top, down, body, end) = (
            self.code.new_label(),
            self.code.new_label(),
            self.code.new_label(),
            self.code.new_label(),
        );
        self.code.bind_label(top);
        self.code.emit_jump_if(Comparison::Less, by, zero, down);
        self.code.emit_jump_if(Comparison::Less, to.cell, cell, end);
        self.code.emit_jump(body);
        self.code.bind_label(down);
        self.code.emit_jump_if(Comparison::Less, cell, to.cell, end);
        self.code.bind_label(body);
        f(self);
        self.emit_overflow_exit(cell, to, constant_by, end);
        let next = self.code.new_temporary();
        let op = Op::Arithmetic {
            op: Arithmetic::Add,
            dst: next,
            a: cell,
            b: by,
        };
        self.code.emit_at(op, String::new());
        self.code.emit_copy(cell, next);
        self.code.emit_jump(top);
        self.code.bind_label(end);
    }

    /// Numbers of a constant sequence, if the loop over them is short enough to unroll or does not run at all; else
    /// `None`.
    fn unrolled_steps(&self, steps: &Steps, cost: usize) -> Option<impl Iterator<Item = Number>> {
        let from = self.constant_value(&steps.from)?;
        let to = self.constant_value(&steps.to)?;
        let by = self.constant_value(&steps.by)?;
        let is_empty = by > 0 && to < from || by < 0 && from < to;
        let iterations = match by {
            _ if is_empty => 0,
            0 => u64::MAX,
            _ => (to.abs_diff(from) / by.unsigned_abs()).saturating_add(1),
        };
        let number = move |i: u64| from.wrapping_add((i as Number).wrapping_mul(by));
        let is_unrolled = iterations.saturating_mul(cost.max(1) as u64) <= MAX_UNROLLED_NODES;
        is_unrolled.then(|| (0..iterations).map(number))
    }

    /// Emits a value in a temporary of its own, which the loop's body does not change.
    fn emit_saved_value(&mut self, e: &Expr) -> Value {
        let value = self.emit_value(e);
        let cell = self.code.new_temporary();
        self.code.emit_copy(cell, value.cell);
        Value { cell, ..value }
    }

    /// Emits a jump to `end` if the number after the one in `cell` would overflow, where this is possible for a sequence
    /// with limit `to` and constant increment `by`.
    fn emit_overflow_exit(&mut self, cell: Cell, to: Value, by: Option<Number>, end: Label) {
        let (min_number, max_number) = Model::NUMBERS;
        match by {
            Some(by) if by > 0 && to.hi > max_number - by => {
                let last_number = self.code.constant(max_number - by).cell;
                self.code
                    .emit_jump_if(Comparison::Less, last_number, cell, end);
            }
            Some(by) if by < 0 && to.lo < min_number - by => {
                let last_number = self.code.constant(min_number - by).cell;
                self.code
                    .emit_jump_if(Comparison::Less, cell, last_number, end);
            }
            _ => {}
        }
    }
}

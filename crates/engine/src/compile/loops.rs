//! Loops, unrolled where they are short.

use super::*;

/// Loops whose unrolled bodies would have more nodes than this stay loops.
const UNROLL: usize = 4096;

impl Compiler<'_> {
    pub(super) fn unrolls(&self, bound: VariableId, cost: usize) -> bool {
        let domain = self.domain(bound);
        let count = (*domain.end() as i64 - *domain.start() as i64 + 1) as usize;
        count.saturating_mul(cost) <= UNROLL
    }

    /// Emits `f` for each value of a bound variable, unrolled or as a loop.
    pub(super) fn repeat(&mut self, id: VariableId, cost: usize, mut f: impl FnMut(&mut Self)) {
        let domain = self.domain(id);
        if self.unrolls(id, cost) {
            for value in domain {
                self.known[id.index()] = Some(value);
                f(self);
            }
            self.known[id.index()] = None;
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
        let (top, end) = (self.label(), self.label());
        self.place(top);
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
        self.place(end);
    }

    /// Emits `f` for numbers in steps, unrolled or as a loop.
    pub(super) fn repeat_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        cost: usize,
        mut f: impl FnMut(&mut Self),
    ) {
        let by = self.known(&steps.by);
        if let (Some(from), Some(to), Some(by)) =
            (self.known(&steps.from), self.known(&steps.to), by)
        {
            let (from, to, by) = (from as i64, to as i64, by as i64);
            let count = if by == 0 {
                i64::MAX
            } else {
                ((to - from) / by + 1).max(0)
            };
            if by != 0 && (to - from) * by.signum() < 0 {
                return;
            }
            if count.saturating_mul(cost.max(1) as i64) <= UNROLL as i64 {
                for i in 0..count {
                    self.known[id.index()] = Some((from + i * by) as i32);
                    f(self);
                }
                self.known[id.index()] = None;
                return;
            }
        }
        let cell = self.cells[id.index()];
        let kept = |c: &mut Self, e: &Expr| {
            let value = c.value(e);
            let dst = c.temporary();
            c.emit(Op::Copy { dst, a: value.cell });
            dst
        };
        let from = kept(self, &steps.from);
        let last = kept(self, &steps.to);
        let step = kept(self, &steps.by);
        let zero = self.constant(0).cell;
        self.emit(Op::Copy { dst: cell, a: from });
        if by.is_none_or(|by| by == 0) {
            let fine = self.label();
            let op = Comparison::NotEqual;
            self.emit(Op::JumpIf {
                op,
                a: step,
                b: zero,
                to: fine.0,
            });
            self.fail(&Violation::ill_defined("a loop has steps of 0"));
            self.place(fine);
        }
        let (top, down, body, end) = (self.label(), self.label(), self.label(), self.label());
        let op = Comparison::Less;
        self.place(top);
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
        self.place(down);
        self.emit(Op::JumpIf {
            op,
            a: cell,
            b: last,
            to: end.0,
        });
        self.place(body);
        f(self);
        let next = self.temporary();
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
        self.place(end);
    }
}

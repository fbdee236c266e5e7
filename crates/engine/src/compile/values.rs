//! Simple values: constants, and code that computes the others.

use super::{Compiler, Value};
use crate::model::{Expr, Model, Number, Operator, Place, Role, UNDEFINED};
use crate::program::{Arithmetic, Cell, Comparison, Op};
use crate::visit;

impl Compiler<'_> {
    /// Returns the value of a constant expression whose evaluation cannot fail; `None` for other expressions.
    pub(super) fn constant_value(&self, e: &Expr) -> Option<Number> {
        use Operator::*;
        match e {
            Expr::Int(n) => Some(*n),
            Expr::Bool(b) => Some((*b).into()),
            Expr::Label(_, n) => Some((*n).into()),
            Expr::Read(Place { variable, path }) if path.is_empty() => {
                self.bound_values[variable.index()]
            }
            Expr::Peek(Place { variable, path }) if path.is_empty() => {
                self.bound_values[variable.index()]
            }
            Expr::Line(_, e) => self.constant_value(e),
            Expr::Convert(to, e) => {
                let value = self.constant_value(e)?;
                let (shift, lo, hi) = self.conversion(*to, e)?;
                (lo..=hi).contains(&value).then(|| value + shift)
            }
            Expr::IsMember(e, ty) => {
                let value = self.constant_value(e)?;
                let (_, lo, hi) = self.conversion(*ty, e)?;
                Some((lo..=hi).contains(&value).into())
            }
            Expr::Read(_)
            | Expr::Peek(_)
            | Expr::Undefined(_)
            | Expr::IsUndefined(_)
            | Expr::Forall(..)
            | Expr::Exists(..)
            | Expr::ForallSteps(..)
            | Expr::ExistsSteps(..)
            | Expr::Call(..)
            | Expr::Alias(..)
            | Expr::Let(..)
            | Expr::Present(..)
            | Expr::Count(..) => None,
            Expr::Table(id, index) => {
                let table = &self.program.tables[id.index()];
                let position = self.constant_value(index)?.checked_sub(table.lo)?;
                table
                    .values
                    .get(position as usize)
                    .map(|&value| value.into())
            }
            Expr::Not(a) => Some(1 - self.constant_value(a)?),
            Expr::Negate(a) => Subtract.of(0, self.constant_value(a)?, self.model.numbers),
            Expr::If(c, a, b) => {
                self.constant_value(if self.constant_value(c)? != 0 { a } else { b })
            }
            Expr::Binary(op, a, b) => {
                let a = self.constant_value(a)?;
                match op {
                    And if a == 0 => return Some(0),
                    Or if a != 0 => return Some(1),
                    Implies if a == 0 => return Some(1),
                    _ => {}
                }
                let b = self.constant_value(b)?;
                op.of(a, b, self.model.numbers)
            }
        }
    }

    /// Emits code that computes a simple value. The result may be the cell of a variable itself.
    pub(super) fn value(&mut self, e: &Expr) -> Value {
        if let Some(value) = self.constant_value(e) {
            return self.constant(value);
        }
        if let Expr::Binary(op, a, b) = e {
            if let Some(op) = op.as_arithmetic() {
                let (a, b) = self.two_values(a, b);
                return self.arithmetic(op, a, b);
            }
        }
        match e {
            Expr::Read(place) | Expr::Peek(place) => {
                let (location, ty) = self.locate(place);
                let cell = self.load(location);
                let may_be_undefined =
                    self.model.undefined && self.model.variable(place.variable).role != Role::Bound;
                if may_be_undefined && matches!(e, Expr::Peek(_)) {
                    let (_, hi) = self.model.bounds(ty).unwrap_or(self.model.numbers);
                    let lo = UNDEFINED;
                    return Value { cell, lo, hi };
                }
                if may_be_undefined {
                    self.emit_at_with_type(Op::Defined { a: cell }, Some(ty), |m| m.spell(place));
                }
                let (lo, hi) = self.model.bounds(ty).unwrap_or(self.model.numbers);
                Value { cell, lo, hi }
            }
            Expr::Table(id, index) => {
                let index = self.value(index);
                let dst = self.new_temporary();
                let op = Op::Table {
                    dst,
                    a: index.cell,
                    table: id.0,
                };
                self.emit_at(op, |m| m.tables[id.index()].name.clone());
                let result = self.model.tables[id.index()].result;
                let (lo, hi) = self.model.bounds(result).unwrap_or(self.model.numbers);
                Value { cell: dst, lo, hi }
            }
            Expr::Negate(a) => {
                let zero = self.constant(0);
                let a = self.value(a);
                self.arithmetic(Arithmetic::Subtract, zero, a)
            }
            Expr::Line(line, e) => {
                self.line = *line;
                self.value(e)
            }
            Expr::Undefined(_) => self.constant(UNDEFINED),
            Expr::Call(id, arguments) => {
                let location = self.call(*id, arguments);
                let ty = self.model.functions[id.index()].result;
                let (lo, hi) = ty.and_then(|ty| self.model.bounds(ty)).unwrap_or((0, 0));
                Value {
                    cell: location.base,
                    lo: if self.model.undefined { UNDEFINED } else { lo },
                    hi,
                }
            }
            Expr::Alias(id, place, e) => {
                self.with_alias(*id, place, visit::contains_call(e), |c| c.value(e))
            }
            Expr::Let(id, value, e) => {
                self.assign(&(*id).into(), value);
                self.value(e)
            }
            Expr::Convert(to, e) => self.convert(*to, e),
            Expr::Present(place, index) => {
                let location = self.slot(place, index);
                let cell = self.load(location);
                Value { cell, lo: 0, hi: 1 }
            }
            Expr::Count(id, place, claim) => self.emit_count(*id, place, claim),
            Expr::If(c, a, b) => {
                if let Some(c) = self.constant_value(c) {
                    return self.value(if c != 0 { a } else { b });
                }
                let dst = self.new_temporary();
                let (else_label, end) = (self.new_label(), self.new_label());
                self.jump(c, false, else_label);
                let a = self.value(a);
                self.emit(Op::Copy { dst, a: a.cell });
                self.emit(Op::Jump { to: end.0 });
                self.bind_label(else_label);
                let b = self.value(b);
                self.emit(Op::Copy { dst, a: b.cell });
                self.bind_label(end);
                Value {
                    cell: dst,
                    lo: a.lo.min(b.lo),
                    hi: a.hi.max(b.hi),
                }
            }
            // The remaining expressions are truth values.
            Expr::Binary(op, a, b)
                if !matches!(op, Operator::And | Operator::Or | Operator::Implies)
                    && !self.is_aggregate(a) =>
            {
                let (a, b) = self.two_values(a, b);
                let dst = self.new_temporary();
                let (op, a, b) = comparison(*op, a.cell, b.cell);
                self.emit(Op::Compare { op, dst, a, b });
                Value {
                    cell: dst,
                    lo: 0,
                    hi: 1,
                }
            }
            _ => {
                let dst = self.new_temporary();
                let (zero, one) = (self.constant(0).cell, self.constant(1).cell);
                let end = self.new_label();
                self.emit(Op::Copy { dst, a: zero });
                self.jump(e, false, end);
                self.emit(Op::Copy { dst, a: one });
                self.bind_label(end);
                Value {
                    cell: dst,
                    lo: 0,
                    hi: 1,
                }
            }
        }
    }

    /// Emits an arithmetic operation, with the check of the model's numbers that it needs.
    pub(super) fn arithmetic(&mut self, op: Arithmetic, a: Value, b: Value) -> Value {
        let dst = self.new_temporary();
        self.emit_at(
            Op::Arithmetic {
                op,
                dst,
                a: a.cell,
                b: b.cell,
            },
            |_| String::new(),
        );
        let (min_number, max_number) = self.model.numbers;
        let range = match op {
            Arithmetic::Add => a.lo.checked_add(b.lo).zip(a.hi.checked_add(b.hi)),
            Arithmetic::Subtract => a.lo.checked_sub(b.hi).zip(a.hi.checked_sub(b.lo)),
            _ => None,
        };
        let range_in_numbers = range.filter(|&(lo, hi)| min_number <= lo && hi <= max_number);
        if range_in_numbers.is_none() && self.model.numbers != Model::NUMBERS {
            // The engines compute with 64 bits only, so narrower numbers are checked here. The empty operand name
            // marks a result that is not stored.
            let bounds = self.bounds(min_number, max_number);
            self.emit_at(Op::Check { a: dst, bounds }, |_| String::new());
        }
        let (lo, hi) = range_in_numbers.unwrap_or((min_number, max_number));
        Value { cell: dst, lo, hi }
    }
}

/// Comparison of two cells in the form of the instructions.
pub(super) fn comparison(op: Operator, a: Cell, b: Cell) -> (Comparison, Cell, Cell) {
    match op {
        Operator::Equal => (Comparison::Equal, a, b),
        Operator::NotEqual => (Comparison::NotEqual, a, b),
        Operator::Less => (Comparison::Less, a, b),
        Operator::LessOrEqual => (Comparison::LessOrEqual, a, b),
        Operator::Greater => (Comparison::Less, b, a),
        _ => (Comparison::LessOrEqual, b, a),
    }
}

//! Simple values: constants, and code that computes the others.

use super::{Compiler, Conversion, Value};
use crate::model::{Expr, Model, Number, Operator, Place, Role, TableId, UNDEFINED};
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
                let Conversion { shift, lo, hi } = self.conversion(*to, e)?;
                (lo..=hi).contains(&value).then(|| value + shift)
            }
            Expr::IsMember(e, ty) => {
                let value = self.constant_value(e)?;
                let Conversion { lo, hi, .. } = self.conversion(*ty, e)?;
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
                let table = &self.code.program.tables[id.index()];
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
    pub(super) fn emit_value(&mut self, e: &Expr) -> Value {
        if let Some(value) = self.constant_value(e) {
            return self.code.constant(value);
        }
        if let Expr::Binary(op, a, b) = e {
            if let Some(op) = op.as_arithmetic() {
                let (a, b) = self.emit_two_values(a, b);
                return self.emit_arithmetic(op, a, b);
            }
        }
        match e {
            Expr::Read(place) => self.emit_read(place),
            Expr::Peek(place) => self.emit_peek(place),
            Expr::Table(id, index) => self.emit_table_lookup(*id, index),
            Expr::Negate(a) => {
                let zero = self.code.constant(0);
                let a = self.emit_value(a);
                self.emit_arithmetic(Arithmetic::Subtract, zero, a)
            }
            Expr::Line(line, e) => {
                self.code.line = *line;
                self.emit_value(e)
            }
            Expr::Undefined(_) => self.code.constant(UNDEFINED),
            Expr::Call(id, arguments) => {
                let location = self.emit_call(*id, arguments);
                let ty = self.model.functions[id.index()].result;
                let (lo, hi) = ty.and_then(|ty| self.model.bounds(ty)).unwrap_or((0, 0));
                Value {
                    cell: location.base,
                    lo: if self.model.undefined { UNDEFINED } else { lo },
                    hi,
                }
            }
            Expr::Alias(id, place, e) => {
                self.with_alias(*id, place, visit::contains_call(e), |c| c.emit_value(e))
            }
            Expr::Let(id, value, e) => {
                self.emit_assign(&(*id).into(), value);
                self.emit_value(e)
            }
            Expr::Convert(to, e) => self.emit_conversion(*to, e),
            Expr::Present(place, index) => {
                let location = self.locate_slot(place, index);
                let cell = self.emit_load(location);
                Value { cell, lo: 0, hi: 1 }
            }
            Expr::Count(id, place, claim) => self.emit_count(*id, place, claim),
            Expr::If(condition, then, otherwise) => self.emit_choice(condition, then, otherwise),
            // The remaining expressions are truth values.
            Expr::Binary(op, a, b)
                if !matches!(op, Operator::And | Operator::Or | Operator::Implies)
                    && !self.is_aggregate(a) =>
            {
                let (a, b) = self.emit_two_values(a, b);
                let dst = self.code.new_temporary();
                let (op, a, b) = comparison(*op, a.cell, b.cell);
                self.code.emit(Op::Compare { op, dst, a, b });
                Value {
                    cell: dst,
                    lo: 0,
                    hi: 1,
                }
            }
            _ => self.emit_truth_value(e),
        }
    }

    /// Emits a read of a place, with a fault if it is undefined.
    fn emit_read(&mut self, place: &Place) -> Value {
        let (location, ty) = self.locate(place);
        let cell = self.emit_load(location);
        if self.may_be_undefined(place) {
            self.code
                .emit_at_with_type(Op::Defined { a: cell }, Some(ty), self.model.spell(place));
        }
        let (lo, hi) = self.model.bounds(ty).unwrap_or(self.model.numbers);
        Value { cell, lo, hi }
    }

    /// Emits a read of a place that may be undefined.
    fn emit_peek(&mut self, place: &Place) -> Value {
        let (location, ty) = self.locate(place);
        let cell = self.emit_load(location);
        let (mut lo, hi) = self.model.bounds(ty).unwrap_or(self.model.numbers);
        if self.may_be_undefined(place) {
            lo = UNDEFINED;
        }
        Value { cell, lo, hi }
    }

    /// True if a place may be without a value.
    fn may_be_undefined(&self, place: &Place) -> bool {
        self.model.undefined && self.model.variable(place.variable).role != Role::Bound
    }

    /// Emits a lookup in a constant table.
    fn emit_table_lookup(&mut self, id: TableId, index: &Expr) -> Value {
        let index = self.emit_value(index);
        let dst = self.code.new_temporary();
        let op = Op::Table {
            dst,
            a: index.cell,
            table: id.0,
        };
        self.code
            .emit_at(op, self.model.tables[id.index()].name.clone());
        let result = self.model.tables[id.index()].result;
        let (lo, hi) = self.model.bounds(result).unwrap_or(self.model.numbers);
        Value { cell: dst, lo, hi }
    }

    /// Emits a conditional expression; only the chosen branch is evaluated.
    fn emit_choice(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Value {
        if let Some(condition) = self.constant_value(condition) {
            return self.emit_value(if condition != 0 { then } else { otherwise });
        }
        let dst = self.code.new_temporary();
        let (else_label, end) = (self.code.new_label(), self.code.new_label());
        self.jump_if(condition, false, else_label);
        let then = self.emit_value(then);
        self.code.emit_copy(dst, then.cell);
        self.code.emit_jump(end);
        self.code.bind_label(else_label);
        let otherwise = self.emit_value(otherwise);
        self.code.emit_copy(dst, otherwise.cell);
        self.code.bind_label(end);
        Value {
            cell: dst,
            lo: then.lo.min(otherwise.lo),
            hi: then.hi.max(otherwise.hi),
        }
    }

    /// Emits code that computes a condition as 0 or 1.
    fn emit_truth_value(&mut self, condition: &Expr) -> Value {
        let dst = self.code.new_temporary();
        let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
        let end = self.code.new_label();
        self.code.emit_copy(dst, zero);
        self.jump_if(condition, false, end);
        self.code.emit_copy(dst, one);
        self.code.bind_label(end);
        Value {
            cell: dst,
            lo: 0,
            hi: 1,
        }
    }

    /// Emits an arithmetic operation, with the check of the model's numbers that it needs.
    pub(super) fn emit_arithmetic(&mut self, op: Arithmetic, a: Value, b: Value) -> Value {
        let dst = self.code.new_temporary();
        self.code.emit_at(
            Op::Arithmetic {
                op,
                dst,
                a: a.cell,
                b: b.cell,
            },
            String::new(),
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
            let bounds = self.code.bounds_index(min_number, max_number);
            self.code
                .emit_at(Op::Check { a: dst, bounds }, String::new());
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

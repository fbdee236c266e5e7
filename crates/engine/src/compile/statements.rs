//! Statements and notes as code.

use super::cost::stmt_cost;
use super::places::append_leaves;
use super::{Compiler, Location, LoopPlaces, Value};
use crate::model::{
    Expr, Model, Note, Piece, Place, Stmt, TypeId, VariableId, Violation, UNDEFINED,
};
use crate::program::{Arithmetic, Cell, Comparison, Op};
use crate::visit;

impl Compiler<'_> {
    /// Emits statements. Temporaries live no longer than their statement.
    pub(super) fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            let mark = self.temporary;
            self.stmt(stmt);
            self.temporary = mark;
        }
    }

    /// Emits one statement.
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.watched_store(place, |c| c.assign(place, value)),
            Stmt::Let(id, Some(value)) => self.assign(&(*id).into(), value),
            Stmt::Let(id, None) if self.model.undefined => self.fill(&(*id).into(), true),
            Stmt::Let(id, None) => self.fill(&(*id).into(), false),
            Stmt::Clear(place) => self.watched_store(place, |c| c.fill(place, false)),
            Stmt::Undefine(place) => self.watched_store(place, |c| c.fill(place, true)),
            Stmt::Line(line) => self.line = *line,
            Stmt::Alias(id, place, body) => {
                let may_remove = self.may_remove_elements(body);
                self.with_alias(*id, place, may_remove, |c| c.block(body));
            }
            Stmt::ForSteps(id, steps, body) => {
                let cost = body.iter().map(|s| stmt_cost(self, s)).sum();
                self.repeat_steps(*id, steps, cost, |c| c.block(body));
            }
            Stmt::While(condition, body, max_iterations) => {
                let (top, end) = (self.new_label(), self.new_label());
                let count = self.new_temporary();
                let (zero, one) = (self.constant(0).cell, self.constant(1).cell);
                let limit = self.constant((*max_iterations).into()).cell;
                let line = self.line;
                self.emit(Op::Copy {
                    dst: count,
                    a: zero,
                });
                self.bind_label(top);
                self.line = line;
                self.jump(condition, false, end);
                let continue_label = self.new_label();
                let op = Comparison::NotEqual;
                self.emit(Op::JumpIf {
                    op,
                    a: count,
                    b: limit,
                    to: continue_label.0,
                });
                let reason = format!("a loop runs more than {max_iterations} times");
                self.line = line;
                self.emit_violation(&Violation::ill_defined(reason));
                self.bind_label(continue_label);
                self.block(body);
                let op = Arithmetic::Add;
                self.emit(Op::Arithmetic {
                    op,
                    dst: count,
                    a: count,
                    b: one,
                });
                self.emit(Op::Jump { to: top.0 });
                self.bind_label(end);
            }
            Stmt::Switch(subject, cases, otherwise) => self.switch(subject, cases, otherwise),
            Stmt::Return(value) => self.emit_return(value.as_ref()),
            Stmt::Call(id, arguments) => {
                self.call(*id, arguments);
            }
            Stmt::Assume(claim) => {
                let continue_label = self.new_label();
                self.jump(claim, true, continue_label);
                let verdict = self.without_assumption;
                self.emit(Op::Return { verdict });
                self.bind_label(continue_label);
            }
            Stmt::Cover(id) => self.emit(Op::Cover { cover: id.0 }),
            Stmt::Insert(place, element) => self.insert(place, element),
            Stmt::Remove(place, index) => self.remove(place, index),
            Stmt::RemoveWhere(id, place, claim) => self.remove_where(*id, place, claim),
            Stmt::If(condition, then, otherwise) => {
                if let Some(value) = self.constant_value(condition) {
                    return self.block(if value != 0 { then } else { otherwise });
                }
                let (else_label, end) = (self.new_label(), self.new_label());
                self.jump(condition, false, else_label);
                self.block(then);
                if !otherwise.is_empty() {
                    self.emit(Op::Jump { to: end.0 });
                }
                self.bind_label(else_label);
                self.block(otherwise);
                self.bind_label(end);
            }
            Stmt::For(id, body) => {
                let cost = body.iter().map(|s| stmt_cost(self, s)).sum();
                match self.uniform_stores.get(id).cloned() {
                    None => self.repeat(*id, cost, |c| c.block(body)),
                    Some(groups) => self.watched_loop(*id, cost, groups, body),
                }
            }
            Stmt::Error(violation) => self.emit_violation(violation),
            Stmt::Assert(violation, claim) => {
                let end = self.new_label();
                let line = self.line;
                self.jump(claim, true, end);
                self.line = line;
                self.emit_violation(violation);
                self.bind_label(end);
            }
            Stmt::Note(note) if self.notes => self.note(note),
            Stmt::Note(_) => {}
        }
    }

    /// Emits a loop whose iterations may store different values in these places. The body is emitted twice: in the
    /// order of the model, and in the order of [`Program::orders`] to evaluate other orders.
    fn watched_loop(
        &mut self,
        id: VariableId,
        cost: usize,
        groups: Vec<Vec<Place>>,
        body: &[Stmt],
    ) {
        let ty = self.model.variable(id).ty;
        let order = self.program.orders.iter().position(|order| order.ty == ty);
        let Some(number) = order else {
            // No symmetry permutes the values.
            return self.repeat(id, cost, |c| c.block(body));
        };
        let order = self.program.orders[number].clone();
        let outer_count = self.watched_places.len();
        for places in groups {
            let (stored_flag, zero) = (self.new_temporary(), self.constant(0).cell);
            self.emit(Op::Copy {
                dst: stored_flag,
                a: zero,
            });
            self.watched_places.push(LoopPlaces {
                places,
                stored_flag,
                order: number as u32,
            });
        }
        match self.uses_loop_order {
            Some(false) => self.repeat(id, cost, |c| c.block(body)),
            Some(true) => self.repeat_in_order(id, &order, |c| c.block(body)),
            None => {
                let (reordered, end) = (self.new_label(), self.new_label());
                let line = self.line;
                let zero = self.constant(0).cell;
                self.emit(Op::JumpIf {
                    op: Comparison::NotEqual,
                    a: self.program.reorder_flag,
                    b: zero,
                    to: reordered.0,
                });
                self.uses_loop_order = Some(false);
                self.repeat(id, cost, |c| c.block(body));
                self.emit(Op::Jump { to: end.0 });
                self.bind_label(reordered);
                self.line = line;
                self.uses_loop_order = Some(true);
                self.repeat_in_order(id, &order, |c| c.block(body));
                self.bind_label(end);
                self.uses_loop_order = None;
            }
        }
        self.watched_places.truncate(outer_count);
    }

    /// Emits a store. In a watched place, it records a disagreement if an earlier iteration has stored a different
    /// value.
    fn watched_store(&mut self, place: &Place, store: impl FnOnce(&mut Self)) {
        let watching_loops = self
            .watched_places
            .iter()
            .filter(|w| w.places.contains(place));
        let watching_loops: Vec<(Cell, u32)> =
            watching_loops.map(|w| (w.stored_flag, w.order)).collect();
        if watching_loops.is_empty() {
            return store(self);
        }
        let value = |c: &mut Self| {
            let location = c.locate(place).0;
            let (a, dst) = (c.load(location), c.new_temporary());
            c.emit(Op::Copy { dst, a });
            dst
        };
        let old_value = value(self);
        store(self);
        let new_value = value(self);
        for (stored_flag, order) in watching_loops {
            let continue_label = self.new_label();
            let (zero, one) = (self.constant(0).cell, self.constant(1).cell);
            for (a, b) in [(stored_flag, zero), (old_value, new_value)] {
                let op = Comparison::Equal;
                self.emit(Op::JumpIf {
                    op,
                    a,
                    b,
                    to: continue_label.0,
                });
            }
            let place = self.model.spell(place);
            let violation = self.violation_index(&Violation::limit(format!(
                "the order of a loop over a scalarset matters: its iterations store different values in `{place}`"
            )));
            self.emit_at(Op::Disagree { order, violation }, |_| String::new());
            self.bind_label(continue_label);
            self.emit(Op::Copy {
                dst: stored_flag,
                a: one,
            });
        }
    }

    /// Emits a store of a value, with a check of its range.
    pub(super) fn assign(&mut self, place: &Place, value: &Expr) {
        let ty = self.model.type_of_place(place);
        if self.model.bounds(ty).is_none() {
            let from = self.locate_aggregate(value, ty);
            let (to, _) = self.locate(place);
            self.copy(from, to, self.sizes[ty.index()]);
            return;
        }
        let value = self.value(value);
        let (location, _) = self.locate(place);
        self.check(value, ty, |m| m.spell(place));
        self.store(location, value.cell);
    }

    /// Emits a check that a value lies in a simple type, unless this is known.
    pub(super) fn check(&mut self, value: Value, ty: TypeId, name: impl FnOnce(&Model) -> String) {
        let (lo, hi) = self.model.bounds(ty).unwrap_or(self.model.numbers);
        let is_in_range = value.lo >= lo && value.hi <= hi;
        // The undefined value is not out of range.
        if is_in_range || value.lo == value.hi && value.lo == UNDEFINED {
            return;
        }
        let (a, end) = (value.cell, self.new_label());
        if value.lo == UNDEFINED && self.model.undefined {
            let b = self.constant(UNDEFINED).cell;
            let op = Comparison::Equal;
            self.emit(Op::JumpIf {
                op,
                a,
                b,
                to: end.0,
            });
        }
        let bounds = self.bounds(lo, hi);
        self.emit_at_with_type(Op::Check { a, bounds }, Some(ty), name);
        self.bind_label(end);
    }

    /// Location of the parts of an array, record or multiset.
    pub(super) fn locate_aggregate(&mut self, e: &Expr, ty: TypeId) -> Location {
        match e {
            Expr::Read(place) | Expr::Peek(place) => self.locate(place).0,
            Expr::Line(line, e) => {
                self.line = *line;
                self.locate_aggregate(e, ty)
            }
            Expr::Call(id, arguments) => self.call(*id, arguments),
            Expr::Alias(id, place, e) => {
                self.with_alias(*id, place, visit::contains_call(e), |c| {
                    c.locate_aggregate(e, ty)
                })
            }
            Expr::Let(id, value, e) => {
                self.assign(&(*id).into(), value);
                self.locate_aggregate(e, ty)
            }
            // Validation excludes everything but the undefined value.
            _ => {
                let location = self.allocate_temporaries(self.sizes[ty.index()]);
                self.fill_at(location, ty, true);
                location
            }
        }
    }

    /// Allocates consecutive temporary cells.
    pub(super) fn allocate_temporaries(&mut self, len: u32) -> Location {
        let base = self.temporary;
        self.temporary += len;
        self.temporaries_end = self.temporaries_end.max(self.temporary);
        Location {
            base,
            offset: None,
            len,
        }
    }

    /// Emits a copy of consecutive cells.
    pub(super) fn copy(&mut self, from: Location, to: Location, cells: u32) {
        for cell in 0..cells {
            let mark = self.temporary;
            let a = self.load(from.skip(cell));
            self.store(to.skip(cell), a);
            self.temporary = mark;
        }
    }

    /// Sets every part of a place to its first value, or makes it undefined.
    fn fill(&mut self, place: &Place, undefined: bool) {
        let (location, ty) = self.locate(place);
        self.fill_at(location, ty, undefined);
    }

    /// Sets every part of a value of a type to its first value, or makes it undefined.
    pub(super) fn fill_at(&mut self, location: Location, ty: TypeId, undefined: bool) {
        let mut leaves = Vec::new();
        append_leaves(self.model, ty, String::new(), false, &mut leaves);
        for (i, leaf) in leaves.iter().enumerate() {
            let value = match undefined && !leaf.in_multiset {
                true => UNDEFINED,
                false => leaf.lo,
            };
            let value = self.constant(value);
            self.store(location.skip(i as u32), value.cell);
        }
    }

    /// Emits a selection: the first case with a value equal to `subject`, else `otherwise`. The subject is evaluated
    /// once.
    fn switch(&mut self, subject: &Expr, cases: &[(Vec<Expr>, Vec<Stmt>)], otherwise: &[Stmt]) {
        let subject = self.value(subject);
        let dst = self.new_temporary();
        self.emit(Op::Copy {
            dst,
            a: subject.cell,
        });
        let end = self.new_label();
        for (values, body) in cases {
            let (case_label, next) = (self.new_label(), self.new_label());
            for value in values {
                let mark = self.temporary;
                let value = self.value(value);
                self.temporary = mark;
                let op = Comparison::Equal;
                self.emit(Op::JumpIf {
                    op,
                    a: dst,
                    b: value.cell,
                    to: case_label.0,
                });
            }
            self.emit(Op::Jump { to: next.0 });
            self.bind_label(case_label);
            self.block(body);
            self.emit(Op::Jump { to: end.0 });
            self.bind_label(next);
        }
        self.block(otherwise);
        self.bind_label(end);
    }

    /// Emits a note. Its values are in consecutive cells from the next free temporary on.
    fn note(&mut self, note: &Note) {
        self.program.notes.push(note.clone());
        let index = self.program.notes.len() as u32 - 1;
        let values = self.temporary;
        for _ in 0..note.value_count() {
            self.new_temporary();
        }
        let mut next = values;
        match note {
            Note::Event { values, phrase, .. } => {
                values
                    .iter()
                    .for_each(|e| self.emit_note_value(e, &mut next));
                self.phrase(phrase, &mut next);
            }
            Note::Mark { member, .. } => self.emit_note_value(member, &mut next),
        }
        self.emit(Op::Note {
            note: index,
            values,
        });
    }

    /// Copies a value to the cell `next`, and advances `next`.
    fn emit_note_value(&mut self, e: &Expr, next: &mut Cell) {
        let value = self.value(e);
        self.emit(Op::Copy {
            dst: *next,
            a: value.cell,
        });
        *next += 1;
    }

    /// Emits the values of a phrase, as [`Self::emit_note_value`] does. Cells of a branch that is not taken keep old
    /// values.
    fn phrase(&mut self, phrase: &[Piece], next: &mut Cell) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) | Piece::Agent(e) => self.emit_note_value(e, next),
                Piece::Choice(c, a, b) => {
                    self.emit_note_value(c, next);
                    let (else_label, end) = (self.new_label(), self.new_label());
                    self.jump(c, false, else_label);
                    self.phrase(a, next);
                    self.emit(Op::Jump { to: end.0 });
                    self.bind_label(else_label);
                    self.phrase(b, next);
                    self.bind_label(end);
                }
            }
        }
    }
}

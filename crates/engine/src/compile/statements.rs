//! Statements and notes as code.

use super::cost::stmt_cost;
use super::places::append_leaves;
use super::{Compiler, FillValue, Location, LoopPlaces, Notes, Value, WatchedExit};
use crate::model::{
    Expr, Model, Note, Piece, Place, Stmt, TypeId, VariableId, Violation, UNDEFINED,
};
use crate::program::{Cell, Comparison, Op, ProvisionalCheck};
use crate::symmetry_check::{LoopCheck, OrderDependence, OrderTrigger};
use crate::visit;

impl Compiler<'_> {
    /// Emits statements. Temporaries live no longer than their statement.
    pub(super) fn emit_block(&mut self, block: &[Stmt]) {
        for stmt in block {
            let mark = self.code.temporary;
            self.emit_stmt(stmt);
            self.code.temporary = mark;
        }
    }

    /// Emits one statement.
    fn emit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => {
                self.emit_watched_store(place, |c| c.emit_assign(place, value))
            }
            Stmt::Let(id, Some(value)) => self.emit_assign(&(*id).into(), value),
            Stmt::Let(id, None) if self.model.undefined => {
                self.emit_fill(&(*id).into(), FillValue::Undefined)
            }
            Stmt::Let(id, None) => self.emit_fill(&(*id).into(), FillValue::First),
            Stmt::Clear(place) => {
                self.emit_watched_store(place, |c| c.emit_fill(place, FillValue::First))
            }
            Stmt::Undefine(place) => {
                self.emit_watched_store(place, |c| c.emit_fill(place, FillValue::Undefined))
            }
            Stmt::Line(line) => self.code.line = *line,
            Stmt::Alias(id, place, body) => {
                let may_remove = self.may_remove_elements(body);
                self.with_alias(*id, place, may_remove, |c| c.emit_block(body));
            }
            Stmt::ForSteps(id, steps, body) => {
                let cost = body.iter().map(|s| stmt_cost(self, s)).sum();
                self.repeat_steps(*id, steps, cost, |c| c.emit_block(body));
            }
            Stmt::While(condition, body, max_iterations) => {
                self.emit_while(condition, body, *max_iterations)
            }
            Stmt::Switch(subject, cases, otherwise) => self.emit_switch(subject, cases, otherwise),
            Stmt::Return(value) => self.emit_return(value.as_ref()),
            Stmt::Call(id, arguments) => {
                self.emit_call(*id, arguments);
            }
            Stmt::Assume(claim) => {
                let continue_label = self.code.new_label();
                self.jump_if(claim, true, continue_label);
                let verdict = self.without_assumption;
                self.code.emit(Op::Return { verdict });
                self.code.bind_label(continue_label);
            }
            Stmt::Cover(id) => self.code.emit(Op::Cover { cover: id.0 }),
            Stmt::Insert(place, element) => self.emit_insert(place, element),
            Stmt::Remove(place, index) => self.emit_remove(place, index),
            Stmt::RemoveWhere(id, place, claim) => self.emit_remove_where(*id, place, claim),
            Stmt::If(condition, then, otherwise) => self.emit_if(condition, then, otherwise),
            Stmt::For(id, body) => {
                let cost = body.iter().map(|s| stmt_cost(self, s)).sum();
                match self.loop_checks.get(id).cloned() {
                    None => self.repeat(*id, cost, |c| c.emit_block(body)),
                    Some(check) => self.emit_watched_loop(*id, cost, check, body),
                }
            }
            Stmt::Error(violation) => self.code.emit_violation(violation),
            Stmt::Assert(violation, claim) => {
                let end = self.code.new_label();
                let line = self.code.line;
                self.jump_if(claim, true, end);
                self.code.line = line;
                self.code.emit_violation(violation);
                self.code.bind_label(end);
            }
            Stmt::Note(note) if self.notes == Notes::Compiled => self.emit_note(note),
            Stmt::Note(_) => {}
        }
    }

    /// Emits a loop that ends once the condition is false; more than `max_iterations` iterations are a violation.
    fn emit_while(&mut self, condition: &Expr, body: &[Stmt], max_iterations: u32) {
        let (top, end) = (self.code.new_label(), self.code.new_label());
        let count = self.code.new_temporary();
        let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
        let limit = self.code.constant(max_iterations.into()).cell;
        let line = self.code.line;
        self.code.emit_copy(count, zero);
        self.code.bind_label(top);
        self.code.line = line;
        self.jump_if(condition, false, end);
        let continue_label = self.code.new_label();
        self.code
            .emit_jump_if(Comparison::NotEqual, count, limit, continue_label);
        let reason = format!("a loop runs more than {max_iterations} times");
        self.code.line = line;
        self.code.emit_violation(&Violation::ill_defined(reason));
        self.code.bind_label(continue_label);
        self.emit_block(body);
        self.code.emit_add(count, count, one);
        self.code.emit_jump(top);
        self.code.bind_label(end);
    }

    /// Emits a choice between two blocks.
    fn emit_if(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        if let Some(value) = self.constant_value(condition) {
            return self.emit_block(if value != 0 { then } else { otherwise });
        }
        let (else_label, end) = (self.code.new_label(), self.code.new_label());
        self.jump_if(condition, false, else_label);
        self.emit_block(then);
        if !otherwise.is_empty() {
            self.code.emit_jump(end);
        }
        self.code.bind_label(else_label);
        self.emit_block(otherwise);
        self.code.bind_label(end);
    }

    /// Emits a loop whose order may matter. The body is emitted twice: in the order of the model, and in the order of
    /// [`LoopOrders::orders`] to evaluate other orders.
    fn emit_watched_loop(&mut self, id: VariableId, cost: usize, check: LoopCheck, body: &[Stmt]) {
        let ty = self.model.variable(id).ty;
        let order = self
            .code
            .program
            .loop_orders
            .orders
            .iter()
            .position(|order| order.ty == ty);
        let Some(number) = order else {
            // No symmetry permutes the values.
            return self.repeat(id, cost, |c| c.emit_block(body));
        };
        let order = self.code.program.loop_orders.orders[number].clone();
        let (outer_count, outer_exits) = (self.watched_places.len(), self.watched_exits.len());
        if let Some(OrderDependence { reason, trigger }) = check.dependence {
            let disagreement = self.provisional_disagreement(number as u32, &reason, trigger);
            match trigger {
                OrderTrigger::EarlyExit | OrderTrigger::ReturnOrFailure => {
                    let returned = (trigger == OrderTrigger::ReturnOrFailure).then(|| {
                        let (returned, zero) =
                            (self.code.new_temporary(), self.code.constant(0).cell);
                        self.code.emit_copy(returned, zero);
                        returned
                    });
                    self.watched_exits.push(WatchedExit {
                        disagreement,
                        returned,
                        next_iteration: None,
                    });
                }
                OrderTrigger::EveryRun => self.code.emit_at(disagreement, String::new()),
            }
        }
        for places in check.places {
            let (stored_flag, zero) = (self.code.new_temporary(), self.code.constant(0).cell);
            self.code.emit_copy(stored_flag, zero);
            self.watched_places.push(LoopPlaces {
                places,
                stored_flag,
                order: number as u32,
            });
        }
        let has_exit = self.watched_exits.len() > outer_exits;
        match self.uses_loop_order {
            Some(false) => self.repeat(id, cost, |c| c.emit_iteration(body, has_exit)),
            Some(true) => self.repeat_in_order(id, &order, |c| c.emit_iteration(body, has_exit)),
            None => {
                let (reordered, end) = (self.code.new_label(), self.code.new_label());
                let line = self.code.line;
                let zero = self.code.constant(0).cell;
                self.code.emit_jump_if(
                    Comparison::NotEqual,
                    self.code.program.loop_orders.reorder_flag,
                    zero,
                    reordered,
                );
                self.uses_loop_order = Some(false);
                self.repeat(id, cost, |c| c.emit_iteration(body, has_exit));
                self.code.emit_jump(end);
                self.code.bind_label(reordered);
                self.code.line = line;
                self.uses_loop_order = Some(true);
                self.repeat_in_order(id, &order, |c| c.emit_iteration(body, has_exit));
                self.code.bind_label(end);
                self.uses_loop_order = None;
            }
        }
        self.watched_places.truncate(outer_count);
        if has_exit {
            let exit = self.watched_exits.pop();
            self.emit_end_of_watched_loop(exit.and_then(|exit| exit.returned));
        }
    }

    /// Emits an iteration of a watched loop; `has_exit` is true if its early exits are watched.
    fn emit_iteration(&mut self, body: &[Stmt], has_exit: bool) {
        let next = self.code.new_label();
        if let (Some(exit), true) = (self.watched_exits.last_mut(), has_exit) {
            exit.next_iteration = Some(next);
        }
        self.emit_block(body);
        self.code.bind_label(next);
    }

    /// Emits the return that an iteration has postponed by setting the cell `returned`.
    fn emit_end_of_watched_loop(&mut self, returned: Option<Cell>) {
        let Some(returned) = returned else {
            return;
        };
        let (zero, continue_label) = (self.code.constant(0).cell, self.code.new_label());
        self.code
            .emit_jump_if(Comparison::Equal, returned, zero, continue_label);
        match self
            .watched_exits
            .last()
            .and_then(|exit| exit.next_iteration)
        {
            Some(next_outer) => self.code.emit_jump(next_outer),
            None => self.emit_jump_to_end(),
        }
        self.code.bind_label(continue_label);
    }

    /// Emits what a return needs that leaves watched loops. Loops that only return one value run their
    /// remaining iterations first: if one of these fails, the interpreter compares all orders.
    pub(super) fn emit_watched_exits(&mut self) {
        let exits = self.watched_exits.clone();
        let innermost = exits.last().and_then(|exit| exit.next_iteration);
        let returned: Option<Vec<Cell>> = exits.iter().map(|exit| exit.returned).collect();
        if let (Some(next), Some(returned)) = (innermost, returned) {
            let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
            let interpreted = self.code.new_label();
            let flag = self.code.program.loop_orders.postpones_returns;
            self.code
                .emit_jump_if(Comparison::Equal, flag, zero, interpreted);
            for cell in returned {
                self.code.emit_copy(cell, one);
            }
            self.code.emit_jump(next);
            self.code.bind_label(interpreted);
        }
        for exit in exits {
            self.code.emit_at(exit.disagreement, String::new());
        }
    }

    /// Returns the instruction that asks for a comparison of all orders of a loop, which belongs to the order `order`.
    /// The search gives up the symmetry of its scalarsets if results differ.
    fn provisional_disagreement(&mut self, order: u32, reason: &str, trigger: OrderTrigger) -> Op {
        let violation = self.code.violation_index(&Violation::limit(format!(
            "the order of a loop over a scalarset matters: {reason}"
        )));
        let is_early_exit = trigger != OrderTrigger::EveryRun;
        let checks = &mut self.code.program.loop_orders.provisional;
        // Loops may share a reason.
        match checks.iter_mut().find(|check| check.violation == violation) {
            Some(check) => check.is_early_exit |= is_early_exit,
            None => checks.push(ProvisionalCheck {
                violation,
                is_early_exit,
            }),
        }
        Op::Disagree { order, violation }
    }

    /// Emits a store. In a watched place, it records a disagreement if an earlier iteration has stored a different
    /// value.
    fn emit_watched_store(&mut self, place: &Place, store: impl FnOnce(&mut Self)) {
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
            let (a, dst) = (c.emit_load(location), c.code.new_temporary());
            c.code.emit_copy(dst, a);
            dst
        };
        let old_value = value(self);
        store(self);
        let new_value = value(self);
        for (stored_flag, order) in watching_loops {
            let continue_label = self.code.new_label();
            let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
            for (a, b) in [(stored_flag, zero), (old_value, new_value)] {
                self.code
                    .emit_jump_if(Comparison::Equal, a, b, continue_label);
            }
            let place = self.model.spell(place);
            let violation = self.code.violation_index(&Violation::limit(format!(
                "the order of a loop over a scalarset matters: its iterations store different values in `{place}`"
            )));
            self.code
                .emit_at(Op::Disagree { order, violation }, String::new());
            self.code.bind_label(continue_label);
            self.code.emit_copy(stored_flag, one);
        }
    }

    /// Emits a store of a value, with a check of its range.
    pub(super) fn emit_assign(&mut self, place: &Place, value: &Expr) {
        let ty = self.model.type_of_place(place);
        if self.model.bounds(ty).is_none() {
            let from = self.locate_aggregate(value, ty);
            let (to, _) = self.locate(place);
            self.emit_copies(from, to, self.sizes[ty.index()]);
            return;
        }
        let value = self.emit_value(value);
        let (location, _) = self.locate(place);
        self.emit_check(value, ty, |m| m.spell(place));
        self.emit_store(location, value.cell);
    }

    /// Emits a check that a value lies in a simple type, unless this is known.
    pub(super) fn emit_check(
        &mut self,
        value: Value,
        ty: TypeId,
        name: impl FnOnce(&Model) -> String,
    ) {
        let (lo, hi) = self.model.bounds(ty).unwrap_or(self.model.numbers);
        let is_in_range = value.lo >= lo && value.hi <= hi;
        // The undefined value is not out of range.
        if is_in_range || value.lo == value.hi && value.lo == UNDEFINED {
            return;
        }
        let (a, end) = (value.cell, self.code.new_label());
        if value.lo == UNDEFINED && self.model.undefined {
            let b = self.code.constant(UNDEFINED).cell;
            self.code.emit_jump_if(Comparison::Equal, a, b, end);
        }
        let bounds = self.code.bounds_index(lo, hi);
        self.code
            .emit_at_with_type(Op::Check { a, bounds }, Some(ty), name(self.model));
        self.code.bind_label(end);
    }

    /// Location of the parts of an array, record or multiset.
    pub(super) fn locate_aggregate(&mut self, e: &Expr, ty: TypeId) -> Location {
        match e {
            Expr::Read(place) | Expr::Peek(place) => self.locate(place).0,
            Expr::Line(line, e) => {
                self.code.line = *line;
                self.locate_aggregate(e, ty)
            }
            Expr::Call(id, arguments) => self.emit_call(*id, arguments),
            Expr::Alias(id, place, e) => {
                self.with_alias(*id, place, visit::contains_call(e), |c| {
                    c.locate_aggregate(e, ty)
                })
            }
            Expr::Let(id, value, e) => {
                self.emit_assign(&(*id).into(), value);
                self.locate_aggregate(e, ty)
            }
            // Validation excludes everything but the undefined value.
            _ => {
                let location = self.code.allocate_temporaries(self.sizes[ty.index()]);
                self.emit_fill_at(location, ty, FillValue::Undefined);
                location
            }
        }
    }

    /// Emits a copy of consecutive cells.
    pub(super) fn emit_copies(&mut self, from: Location, to: Location, cells: u32) {
        for cell in 0..cells {
            let mark = self.code.temporary;
            let a = self.emit_load(from.skip(cell));
            self.emit_store(to.skip(cell), a);
            self.code.temporary = mark;
        }
    }

    /// Emits stores to every part of a place.
    fn emit_fill(&mut self, place: &Place, value: FillValue) {
        let (location, ty) = self.locate(place);
        self.emit_fill_at(location, ty, value);
    }

    /// Emits stores to every part of a value of a type.
    pub(super) fn emit_fill_at(&mut self, location: Location, ty: TypeId, value: FillValue) {
        let mut leaves = Vec::new();
        append_leaves(self.model, ty, String::new(), false, &mut leaves);
        for (i, leaf) in leaves.iter().enumerate() {
            let value = match value {
                FillValue::Undefined if !leaf.in_multiset => UNDEFINED,
                _ => leaf.lo,
            };
            let value = self.code.constant(value);
            self.emit_store(location.skip(i as u32), value.cell);
        }
    }

    /// Emits a selection: the first case with a value equal to `subject`, else `otherwise`. The subject is evaluated
    /// once.
    fn emit_switch(
        &mut self,
        subject: &Expr,
        cases: &[(Vec<Expr>, Vec<Stmt>)],
        otherwise: &[Stmt],
    ) {
        let subject = self.emit_value(subject);
        let dst = self.code.new_temporary();
        self.code.emit_copy(dst, subject.cell);
        let end = self.code.new_label();
        for (values, body) in cases {
            let (case_label, next) = (self.code.new_label(), self.code.new_label());
            for value in values {
                let mark = self.code.temporary;
                let value = self.emit_value(value);
                self.code.temporary = mark;
                self.code
                    .emit_jump_if(Comparison::Equal, dst, value.cell, case_label);
            }
            self.code.emit_jump(next);
            self.code.bind_label(case_label);
            self.emit_block(body);
            self.code.emit_jump(end);
            self.code.bind_label(next);
        }
        self.emit_block(otherwise);
        self.code.bind_label(end);
    }

    /// Emits a note. Its values are in consecutive cells from the next free temporary on.
    fn emit_note(&mut self, note: &Note) {
        self.code.program.notes.push(note.clone());
        let index = self.code.program.notes.len() as u32 - 1;
        let values = self.code.temporary;
        for _ in 0..note.value_count() {
            self.code.new_temporary();
        }
        let mut next = values;
        match note {
            Note::Event { values, phrase, .. } => {
                values
                    .iter()
                    .for_each(|e| self.emit_note_value(e, &mut next));
                self.emit_phrase(phrase, &mut next);
            }
            Note::Mark { member, .. } => self.emit_note_value(member, &mut next),
        }
        self.code.emit(Op::Note {
            note: index,
            values,
        });
    }

    /// Copies a value to the cell `next`, and advances `next`.
    fn emit_note_value(&mut self, e: &Expr, next: &mut Cell) {
        let value = self.emit_value(e);
        self.code.emit_copy(*next, value.cell);
        *next += 1;
    }

    /// Emits the values of a phrase, as [`Self::emit_note_value`] does. Cells of a branch that is not taken keep old
    /// values.
    fn emit_phrase(&mut self, phrase: &[Piece], next: &mut Cell) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) | Piece::Agent(e) => self.emit_note_value(e, next),
                Piece::Choice(c, a, b) => {
                    self.emit_note_value(c, next);
                    let (else_label, end) = (self.code.new_label(), self.code.new_label());
                    self.jump_if(c, false, else_label);
                    self.emit_phrase(a, next);
                    self.code.emit_jump(end);
                    self.code.bind_label(else_label);
                    self.emit_phrase(b, next);
                    self.code.bind_label(end);
                }
            }
        }
    }
}

//! Statements, and the notes among them.

use super::{Kind, Validator};
use crate::model::{Cover, Expr, Note, Piece, Place, Role, Stmt, VariableId};

impl Validator<'_> {
    /// Checks a statement and everything in it.
    pub(super) fn check_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.check_assignment(place, value),
            Stmt::Clear(place) => {
                self.check_target(place);
            }
            Stmt::Undefine(place) => {
                self.require_undefined_values();
                self.check_target(place);
            }
            Stmt::Line(_) => {}
            Stmt::Alias(id, place, body) => self.scoped(|v| {
                v.bind_alias(*id, place);
                v.check_block(body);
            }),
            Stmt::ForSteps(id, steps, body) => self.scoped(|v| {
                v.check_steps(*id, steps);
                v.check_block(body);
            }),
            Stmt::While(condition, body, _) => {
                self.expect(condition, Kind::Bool, "a condition");
                self.check_block(body);
            }
            Stmt::Switch(subject, cases, otherwise) => self.check_switch(subject, cases, otherwise),
            Stmt::Return(value) => self.check_return(value.as_ref()),
            Stmt::Call(id, arguments) => self.check_call(*id, arguments),
            Stmt::Assume(claim) => self.expect(claim, Kind::Bool, "an assumption"),
            Stmt::Cover(id) => match self.model.covers.get(id.index()) {
                Some(Cover { holds: None, .. }) => {}
                Some(cover) => self.error(format!("the cover `{}` is met by a state", cover.name)),
                None => self.error(format!("there is no cover {}", id.0)),
            },
            Stmt::Insert(place, element) => {
                self.check_target(place);
                if let Some(ty) = self.element_type(place) {
                    self.expect(element, self.model.kind_of_type(ty), "an element");
                }
            }
            Stmt::Remove(place, index) => {
                self.check_target(place);
                self.element_type(place);
                self.expect(index, Kind::Int, "a slot");
            }
            Stmt::RemoveWhere(id, place, claim) => {
                self.check_target(place);
                self.element_type(place);
                self.scoped(|v| {
                    v.bring_into_scope(*id, Role::Bound);
                    v.expect(claim, Kind::Bool, "a claim");
                });
            }
            Stmt::Let(id, value) => self.check_let(*id, value.as_ref()),
            Stmt::If(condition, then, otherwise) => {
                self.expect(condition, Kind::Bool, "a condition");
                self.check_block(then);
                self.check_block(otherwise);
            }
            Stmt::For(id, body) => self.scoped(|v| {
                v.bring_into_scope(*id, Role::Bound);
                v.check_block(body);
            }),
            Stmt::Error(_) => {}
            Stmt::Assert(_, claim) => self.expect(claim, Kind::Bool, "an assertion"),
            Stmt::Note(note) => self.check_note(note),
        }
    }

    /// Checks that a place and the value assigned to it have the same kind.
    fn check_assignment(&mut self, place: &Place, value: &Expr) {
        let (target_kind, kind) = (self.check_target(place), self.kind_of_expr(value));
        if let (Some(target_kind), Some(kind)) = (target_kind, kind) {
            if target_kind != kind {
                let text = format!(
                    "{} is assigned to {}",
                    self.describe_kind(kind),
                    self.describe_kind(target_kind)
                );
                self.error(text);
            }
        }
    }

    /// Checks that all values of the cases have the kind of the subject.
    fn check_switch(
        &mut self,
        subject: &Expr,
        cases: &[(Vec<Expr>, Vec<Stmt>)],
        otherwise: &[Stmt],
    ) {
        let kind = self.kind_of_expr(subject);
        for (values, body) in cases {
            for value in values {
                if let Some(kind) = kind {
                    self.expect(value, kind, "a case");
                }
            }
            self.check_block(body);
        }
        self.check_block(otherwise);
    }

    /// Checks that a value is returned if the function has a result, and only then, and that it has the result's kind.
    fn check_return(&mut self, value: Option<&Expr>) {
        let kind = value.map(|e| self.kind_of_expr(e));
        let expected_kind = self.result.flatten().map(|ty| self.model.kind_of_type(ty));
        match (kind, expected_kind) {
            (Some(Some(kind)), Some(expected_kind)) if kind != expected_kind => {
                let text = format!(
                    "{} is returned, not {}",
                    self.describe_kind(kind),
                    self.describe_kind(expected_kind)
                );
                self.error(text);
            }
            (Some(_), None) => self.error("a value is returned from where there is no result"),
            (None, Some(_)) => self.error("a function returns without a value"),
            _ => {}
        }
    }

    /// Brings a local variable into scope, and checks the kind of its initial value.
    fn check_let(&mut self, id: VariableId, value: Option<&Expr>) {
        // The value is checked first: it cannot refer to the variable that it initialises.
        let kind = value.and_then(|e| self.kind_of_expr(e));
        self.bring_into_scope(id, Role::Local);
        if let (Some(kind), Some(v)) = (kind, self.model.variables.get(id.index())) {
            let expected_kind = self.model.kind_of_type(v.ty);
            if kind != expected_kind {
                let text = format!(
                    "`{}` is {} but begins with {}",
                    v.name,
                    self.describe_kind(expected_kind),
                    self.describe_kind(kind)
                );
                self.error(text);
            }
        }
    }

    /// Reports a use of undefined values in a model without them.
    pub(super) fn require_undefined_values(&mut self) {
        if !self.model.undefined {
            self.error("every variable of this model always has a value");
        }
    }

    /// Checks the values of a note.
    pub(super) fn check_note(&mut self, note: &Note) {
        match note {
            Note::Event { values, phrase, .. } => {
                values.iter().for_each(|value| self.check_note_value(value));
                self.check_phrase(phrase);
            }
            Note::Mark { member, .. } => self.check_note_value(member),
        }
    }

    /// Checks a value of a note.
    pub(super) fn check_note_value(&mut self, value: &Expr) {
        if let Some(Kind::Aggregate(_)) = self.kind_of_expr(value) {
            self.error("a note can contain only simple values");
        }
    }

    /// Checks the values, agents and conditions of a phrase.
    pub(super) fn check_phrase(&mut self, phrase: &[Piece]) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) => self.check_note_value(e),
                Piece::Agent(e) => self.expect(e, Kind::Int, "an agent"),
                Piece::Choice(c, a, b) => {
                    self.expect(c, Kind::Bool, "a condition");
                    self.check_phrase(a);
                    self.check_phrase(b);
                }
            }
        }
    }

    /// Checks a place that is written; returns its kind.
    pub(super) fn check_target(&mut self, place: &Place) -> Option<Kind> {
        if let Some(v) = self.model.variables.get(place.variable.index()) {
            if v.role == Role::Bound {
                self.error(format!("`{}` is bound and cannot be assigned", v.name));
            }
        }
        self.kind_of_place(place)
    }

    /// Brings an alias into scope, which must have the type of its place.
    pub(super) fn bind_alias(&mut self, id: VariableId, place: &Place) {
        let kind = self.kind_of_place(place);
        self.bring_into_scope(id, Role::Alias);
        let alias = self.model.variables.get(id.index());
        if let (Some(kind), Some(alias)) = (kind, alias) {
            if self.model.kind_of_type(alias.ty) != kind {
                self.error(format!("the alias `{}` is of another type", alias.name));
            }
        }
    }
}

//! Statements, and the notes among them.

use super::*;

impl Validator<'_> {
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => {
                let (target, value) = (self.target(place), self.expr(value));
                if let (Some(a), Some(b)) = (target, value) {
                    if a != b {
                        let text = format!("{} is assigned to {}", self.name(b), self.name(a));
                        self.error(text);
                    }
                }
            }
            Stmt::Clear(place) => {
                self.target(place);
            }
            Stmt::Undefine(place) => {
                self.require_undefined_values();
                self.target(place);
            }
            Stmt::Line(_) => {}
            Stmt::Alias(id, place, body) => self.scoped(|v| {
                v.aliased(*id, place);
                v.block(body);
            }),
            Stmt::ForSteps(id, steps, body) => self.scoped(|v| {
                v.steps(*id, steps);
                v.block(body);
            }),
            Stmt::While(condition, body, _) => {
                self.expect(condition, Kind::Bool, "a condition");
                self.block(body);
            }
            Stmt::Switch(subject, cases, otherwise) => {
                let kind = self.expr(subject);
                for (values, body) in cases {
                    for value in values {
                        if let Some(kind) = kind {
                            self.expect(value, kind, "a case");
                        }
                    }
                    self.block(body);
                }
                self.block(otherwise);
            }
            Stmt::Return(value) => {
                let kind = value.as_ref().map(|e| self.expr(e));
                let expected_kind = self.result.flatten().map(|ty| self.model.kind_of_type(ty));
                match (kind, expected_kind) {
                    (Some(Some(kind)), Some(expected_kind)) if kind != expected_kind => {
                        let text = format!(
                            "{} is returned, not {}",
                            self.name(kind),
                            self.name(expected_kind)
                        );
                        self.error(text);
                    }
                    (Some(_), None) => {
                        self.error("a value is returned from where there is no result")
                    }
                    (None, Some(_)) => self.error("a function returns without a value"),
                    _ => {}
                }
            }
            Stmt::Call(id, arguments) => self.call(*id, arguments),
            Stmt::Assume(claim) => self.expect(claim, Kind::Bool, "an assumption"),
            Stmt::Cover(id) => match self.model.covers.get(id.index()) {
                Some(Cover { holds: None, .. }) => {}
                Some(cover) => self.error(format!("the cover `{}` is met by a state", cover.name)),
                None => self.error(format!("there is no cover {}", id.0)),
            },
            Stmt::Insert(place, element) => {
                self.target(place);
                if let Some(ty) = self.multiset(place) {
                    self.expect(element, self.model.kind_of_type(ty), "an element");
                }
            }
            Stmt::Remove(place, index) => {
                self.target(place);
                self.multiset(place);
                self.expect(index, Kind::Int, "a slot");
            }
            Stmt::RemoveWhere(id, place, claim) => {
                self.target(place);
                self.multiset(place);
                self.scoped(|v| {
                    v.bring_into_scope(*id, Role::Bound);
                    v.expect(claim, Kind::Bool, "a claim");
                });
            }
            Stmt::Let(id, value) => {
                // The value is checked first: it cannot refer to the variable that it initialises.
                let kind = value.as_ref().and_then(|e| self.expr(e));
                self.bring_into_scope(*id, Role::Local);
                if let (Some(kind), Some(v)) = (kind, self.model.variables.get(id.index())) {
                    let expected_kind = self.model.kind_of_type(v.ty);
                    if kind != expected_kind {
                        let text = format!(
                            "`{}` is {} but begins with {}",
                            v.name,
                            self.name(expected_kind),
                            self.name(kind)
                        );
                        self.error(text);
                    }
                }
            }
            Stmt::If(condition, then, otherwise) => {
                self.expect(condition, Kind::Bool, "a condition");
                self.block(then);
                self.block(otherwise);
            }
            Stmt::For(id, body) => self.scoped(|v| {
                v.bring_into_scope(*id, Role::Bound);
                v.block(body);
            }),
            Stmt::Error(_) => {}
            Stmt::Assert(_, claim) => self.expect(claim, Kind::Bool, "an assertion"),
            Stmt::Note(note) => self.note(note),
        }
    }

    pub(super) fn require_undefined_values(&mut self) {
        if !self.model.undefined {
            self.error("every variable of this model always has a value");
        }
    }

    pub(super) fn note(&mut self, note: &Note) {
        match note {
            Note::Says { values, words, .. } => {
                values.iter().for_each(|value| self.check_note_value(value));
                self.phrase(words);
            }
            Note::Marks { member, .. } => self.check_note_value(member),
        }
    }

    /// Checks a value of a note.
    pub(super) fn check_note_value(&mut self, value: &Expr) {
        if let Some(Kind::Aggregate(_)) = self.expr(value) {
            self.error("a note can contain only simple values");
        }
    }

    pub(super) fn phrase(&mut self, phrase: &[Piece]) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) => self.check_note_value(e),
                Piece::Agent(e) => self.expect(e, Kind::Int, "an agent"),
                Piece::Choice(c, a, b) => {
                    self.expect(c, Kind::Bool, "a condition");
                    self.phrase(a);
                    self.phrase(b);
                }
            }
        }
    }

    pub(super) fn target(&mut self, place: &Place) -> Option<Kind> {
        if let Some(v) = self.model.variables.get(place.variable.index()) {
            if v.role == Role::Bound {
                self.error(format!("`{}` is bound and cannot be assigned", v.name));
            }
        }
        self.place(place)
    }

    pub(super) fn aliased(&mut self, id: VariableId, place: &Place) {
        let kind = self.place(place);
        self.bring_into_scope(id, Role::Alias);
        let alias = self.model.variables.get(id.index());
        if let (Some(kind), Some(alias)) = (kind, alias) {
            if self.model.kind_of_type(alias.ty) != kind {
                self.error(format!("the alias `{}` is of another type", alias.name));
            }
        }
    }
}

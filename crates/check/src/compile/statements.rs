//! Statements and notes as code.

use super::*;

impl Compiler<'_> {
    pub(super) fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            let mark = self.temporary;
            self.stmt(stmt);
            self.temporary = mark;
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.assign(place, value),
            Stmt::Let(id, Some(value)) => self.assign(&(*id).into(), value),
            Stmt::Let(id, None) => self.clear(&(*id).into()),
            Stmt::Clear(place) => self.clear(place),
            Stmt::If(condition, then, otherwise) => {
                if let Some(value) = self.known(condition) {
                    return self.block(if value != 0 { then } else { otherwise });
                }
                let (no, end) = (self.label(), self.label());
                self.jump(condition, false, no);
                self.block(then);
                if !otherwise.is_empty() {
                    self.emit(Op::Jump { to: end.0 });
                }
                self.place(no);
                self.block(otherwise);
                self.place(end);
            }
            Stmt::For(id, body) => {
                let cost = body.iter().map(|s| stmt_cost(self, s)).sum();
                self.repeat(*id, cost, |c| c.block(body));
            }
            Stmt::Error(name) => {
                let name = self.name(name);
                self.emit(Op::Fail { name });
            }
            Stmt::Assert(name, claim) => {
                let end = self.label();
                self.jump(claim, true, end);
                let name = self.name(name);
                self.emit(Op::Fail { name });
                self.place(end);
            }
            Stmt::Note(note) if self.notes => self.note(note),
            Stmt::Note(_) => {}
        }
    }

    fn assign(&mut self, place: &Place, value: &Expr) {
        let ty = self.model.type_of_place(place);
        let Some((lo, hi)) = self.model.bounds(ty) else {
            // Validation leaves only the copy of one place to another of the same type.
            if let Expr::Read(from) = value {
                let (from, _) = self.locate(from);
                let (to, _) = self.locate(place);
                for part in 0..self.sizes[ty.index()] {
                    let mark = self.temporary;
                    let a = self.load(Location {
                        base: from.base + part,
                        len: from.len - part,
                        ..from
                    });
                    self.store(
                        Location {
                            base: to.base + part,
                            len: to.len - part,
                            ..to
                        },
                        a,
                    );
                    self.temporary = mark;
                }
            }
            return;
        };
        let value = self.value(value);
        let (at, _) = self.locate(place);
        if value.lo < lo as i64 || value.hi > hi as i64 {
            let name = |m: &Model| m.variable(place.variable).name.clone();
            self.emit_at(
                Op::Check {
                    a: value.cell,
                    lo,
                    hi,
                },
                name,
            );
        }
        self.store(at, value.cell);
    }

    fn clear(&mut self, place: &Place) {
        let (at, ty) = self.locate(place);
        let mut parts = Vec::new();
        leaves(self.model, ty, String::new(), &mut parts);
        for (part, slot) in parts.iter().enumerate() {
            let first = self.constant(slot.lo);
            let part = part as u32;
            self.store(
                Location {
                    base: at.base + part,
                    len: at.len - part,
                    ..at
                },
                first.cell,
            );
        }
    }

    fn note(&mut self, note: &Note) {
        self.program.notes.push(note.clone());
        let index = self.program.notes.len() as u32 - 1;
        let values = self.temporary;
        for _ in 0..note.values() {
            self.temporary();
        }
        let mut next = values;
        self.tell(&note.agent, &mut next);
        if let Some(line) = &note.line {
            self.tell(line, &mut next);
        }
        match &note.action {
            NoteAction::Send { message, to: other }
            | NoteAction::Receive {
                message,
                from: other,
            } => {
                self.tell(other, &mut next);
                self.phrase(message, &mut next);
            }
            NoteAction::Does(phrase) | NoteAction::Becomes(phrase) => {
                self.phrase(phrase, &mut next)
            }
        }
        self.emit(Op::Note {
            note: index,
            values,
        });
    }

    fn tell(&mut self, e: &Expr, next: &mut Cell) {
        let value = self.value(e);
        self.emit(Op::Copy {
            dst: *next,
            a: value.cell,
        });
        *next += 1;
    }

    fn phrase(&mut self, phrase: &[Piece], next: &mut Cell) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) | Piece::Agent(e) => self.tell(e, next),
                Piece::Choice(c, a, b) => {
                    self.tell(c, next);
                    let (no, end) = (self.label(), self.label());
                    self.jump(c, false, no);
                    self.phrase(a, next);
                    self.emit(Op::Jump { to: end.0 });
                    self.place(no);
                    self.phrase(b, next);
                    self.place(end);
                }
            }
        }
    }
}

impl Note {
    /// How many values it tells: agent, line, other agent, and those of its phrase.
    pub(crate) fn values(&self) -> u32 {
        1 + self.line.is_some() as u32
            + match &self.action {
                NoteAction::Send { message, .. } | NoteAction::Receive { message, .. } => {
                    1 + values(message)
                }
                NoteAction::Does(phrase) | NoteAction::Becomes(phrase) => values(phrase),
            }
    }
}

/// How many values a phrase tells.
pub(crate) fn values(phrase: &[Piece]) -> u32 {
    let piece = |p: &Piece| match p {
        Piece::Text(_) => 0,
        Piece::Value(_) | Piece::Agent(_) => 1,
        Piece::Choice(_, a, b) => 1 + values(a) + values(b),
    };
    phrase.iter().map(piece).sum()
}

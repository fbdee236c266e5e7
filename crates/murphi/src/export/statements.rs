//! Printing of statements.

use super::*;

impl Printer<'_> {
    pub(super) fn block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|s| self.stmt(s));
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.assign(place, value),
            Stmt::Let(id, Some(value)) => self.assign(&(*id).into(), value),
            Stmt::Let(id, None) => {
                let word = if self.model.undefined {
                    "undefine"
                } else {
                    "clear"
                };
                self.line(format!("{word} {};", self.names.variables[id.index()]))
            }
            Stmt::Undefine(place) => {
                let place = self.place(place);
                self.line(format!("undefine {place};"));
            }
            Stmt::Line(_) => {}
            Stmt::Alias(id, place, body) => {
                let place = self.place(place);
                self.line(format!(
                    "alias {}: {place} do",
                    self.names.variables[id.index()]
                ));
                self.indented(|p| p.block(body));
                self.line("end;");
            }
            Stmt::ForSteps(id, steps, body) => self.for_steps(*id, steps, body),
            Stmt::While(condition, body, _) => {
                let condition = self.expr(condition, 0);
                self.line(format!("while {condition} do"));
                self.indented(|p| p.block(body));
                self.line("end;");
            }
            Stmt::Switch(subject, cases, otherwise) => {
                let subject = self.expr(subject, 0);
                self.line(format!("switch {subject}"));
                for (values, body) in cases {
                    let values: Vec<_> = values.iter().map(|v| self.expr(v, 0)).collect();
                    self.line(format!("case {}:", values.join(", ")));
                    self.indented(|p| p.block(body));
                }
                if !otherwise.is_empty() {
                    self.line("else");
                    self.indented(|p| p.block(otherwise));
                }
                self.line("end;");
            }
            Stmt::Return(None) => self.line("return;"),
            Stmt::Return(Some(e)) => {
                let e = self.expr(e, 0);
                self.line(format!("return {e};"));
            }
            Stmt::Call(id, arguments) => {
                let call = self.call(*id, arguments);
                self.line(format!("{call};"));
            }
            Stmt::Assume(e) => {
                let e = self.expr(e, 0);
                self.line(format!("assume {e};"));
            }
            Stmt::Cover(id) => {
                let name = quote(&self.model.covers[id.index()].name);
                self.line(format!("cover {name} true;"));
            }
            // Multisets are rejected.
            Stmt::Insert(..) | Stmt::Remove(..) | Stmt::RemoveWhere(..) => {}
            Stmt::Clear(place) => {
                let place = self.place(place);
                self.line(format!("clear {place};"));
            }
            Stmt::If(condition, then, otherwise) => {
                let condition = self.expr(condition, 0);
                self.line(format!("if {condition} then"));
                self.indented(|p| p.block(then));
                if !otherwise.is_empty() {
                    self.line("else");
                    self.indented(|p| p.block(otherwise));
                }
                self.line("end;");
            }
            Stmt::For(id, body) => {
                let ty = self.model.variable(*id).ty.index();
                let head = format!(
                    "for {}: {} do",
                    self.names.variables[id.index()],
                    self.names.types[ty]
                );
                self.line(head);
                self.indented(|p| p.block(body));
                self.line("end;");
            }
            Stmt::Error(violation) => {
                self.line(format!("error {};", quote(&violation_text(violation))))
            }
            Stmt::Assert(violation, claim) => {
                let claim = self.expr(claim, 0);
                self.line(format!(
                    "assert {claim} {};",
                    quote(&violation_text(violation))
                ));
            }
            Stmt::Note(_) => {}
        }
    }

    /// Assigns a value that may be undefined.
    pub(super) fn assign(&mut self, place: &Place, value: &Expr) {
        let simple = self.model.bounds(self.model.type_of_place(place)).is_some();
        if let Expr::If(condition, a, b) = value.without_line() {
            if self.can_be_undefined(a) || self.can_be_undefined(b) {
                let condition = self.expr(condition, 0);
                self.line(format!("if {condition} then"));
                self.indented(|p| p.assign(place, a));
                self.line("else");
                self.indented(|p| p.assign(place, b));
                return self.line("end;");
            }
        }
        let to = self.place(place);
        let text = self.expr(value, 0);
        match value.without_line() {
            Expr::Undefined(_) => self.line(format!("undefine {to};")),
            Expr::Peek(from) if simple && self.may_be_undefined(from) => {
                let from = self.place(from);
                self.line(format!(
                    "if isundefined({from}) then undefine {to}; else {to} := {text}; end;"
                ));
            }
            _ => self.line(format!("{to} := {text};")),
        }
    }

    pub(super) fn may_be_undefined(&self, place: &Place) -> bool {
        self.model.undefined && self.model.variable(place.variable).role != Role::Bound
    }

    pub(super) fn for_steps(&mut self, id: VariableId, steps: &Steps, body: &[Stmt]) {
        let name = self.names.variables[id.index()].clone();
        let [from, to, by] = [&steps.from, &steps.to, &steps.by].map(|e| self.expr(e, 0));
        // For an empty range Rumur counts in the other direction, or reports an error.
        let direction_test = match by.starts_with('-') {
            true => format!(
                "{} >= {}",
                self.expr(&steps.from, binds::SUM),
                self.expr(&steps.to, binds::SUM)
            ),
            false => format!(
                "{} <= {}",
                self.expr(&steps.from, binds::SUM),
                self.expr(&steps.to, binds::SUM)
            ),
        };
        let constant = |e: &Expr| match e.without_line() {
            Expr::Int(n) => Some(*n),
            _ => None,
        };
        let constants = (
            constant(&steps.from),
            constant(&steps.to),
            constant(&steps.by),
        );
        if let (Some(from), Some(to), Some(by)) = constants {
            if by > 0 && to < from || by < 0 && from < to {
                return;
            }
        } else {
            self.line(format!("if {direction_test} then"));
        }
        self.line(format!("for {name} := {from} to {to} by {by} do"));
        self.indented(|p| p.block(body));
        self.line("end;");
        if !matches!(constants, (Some(_), Some(_), Some(_))) {
            self.line("end;");
        }
    }
}

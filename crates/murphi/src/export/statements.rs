//! Printing of statements.

use super::expressions::{alternatives, precedence};
use super::{may_be_undefined, quote, violation_text, Printer};
use cohkit_engine::model::{Expr, Place, Steps, Stmt, VariableId};

impl Printer<'_> {
    /// Prints statements in order.
    pub(super) fn print_block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|s| self.print_stmt(s));
    }

    /// Prints one statement, which may take several lines.
    pub(super) fn print_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.print_assignment(place, value),
            Stmt::Let(id, Some(value)) => self.print_assignment(&(*id).into(), value),
            Stmt::Let(id, None) => {
                let keyword = if self.model.undefined {
                    "undefine"
                } else {
                    "clear"
                };
                self.add_line(format!("{keyword} {};", self.names.variables[id.index()]))
            }
            Stmt::Undefine(place) => {
                let place = self.place(place);
                self.add_line(format!("undefine {place};"));
            }
            Stmt::Line(_) => {}
            Stmt::Alias(id, place, body) => {
                let name = &self.names.variables[id.index()];
                let header = format!("alias {name}: {} do", self.place(place));
                self.print_enclosed(header, body);
            }
            Stmt::ForSteps(id, steps, body) => self.print_for_steps(*id, steps, body),
            Stmt::While(condition, body, _) => {
                let condition = self.expr(condition, 0);
                self.print_enclosed(format!("while {condition} do"), body);
            }
            Stmt::Switch(subject, cases, otherwise) => self.print_switch(subject, cases, otherwise),
            Stmt::Return(None) => self.add_line("return;"),
            Stmt::Return(Some(e)) => {
                let e = self.expr(e, 0);
                self.add_line(format!("return {e};"));
            }
            Stmt::Call(id, arguments) => {
                let call = self.call(*id, arguments);
                self.add_line(format!("{call};"));
            }
            Stmt::Assume(e) => {
                let e = self.expr(e, 0);
                self.add_line(format!("assume {e};"));
            }
            Stmt::Cover(id) => {
                let name = quote(&self.model.covers[id.index()].name);
                self.add_line(format!("cover {name} true;"));
            }
            // Multisets are rejected.
            Stmt::Insert(..) | Stmt::Remove(..) | Stmt::RemoveWhere(..) => {}
            Stmt::Clear(place) => {
                let place = self.place(place);
                self.add_line(format!("clear {place};"));
            }
            Stmt::If(condition, then, otherwise) => self.print_if(condition, then, otherwise),
            Stmt::For(id, body) => {
                let ty = self.model.variable(*id).ty.index();
                let (name, ty) = (&self.names.variables[id.index()], &self.names.types[ty]);
                self.print_enclosed(format!("for {name}: {ty} do"), body);
            }
            Stmt::Error(violation) => {
                self.add_line(format!("error {};", quote(&violation_text(violation))))
            }
            Stmt::Assert(violation, claim) => {
                let claim = self.expr(claim, 0);
                self.add_line(format!(
                    "assert {claim} {};",
                    quote(&violation_text(violation))
                ));
            }
            Stmt::Note(_) => {}
        }
    }

    /// Prints statements between a header line and `end`.
    fn print_enclosed(&mut self, header: String, body: &[Stmt]) {
        self.add_line(header);
        self.with_indent(|p| p.print_block(body));
        self.add_line("end;");
    }

    /// Prints a choice between two blocks.
    fn print_if(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let condition = self.expr(condition, 0);
        self.add_line(format!("if {condition} then"));
        self.with_indent(|p| p.print_block(then));
        self.print_else(otherwise);
        self.add_line("end;");
    }

    /// Prints a choice between several blocks by the value of an expression.
    fn print_switch(
        &mut self,
        subject: &Expr,
        cases: &[(Vec<Expr>, Vec<Stmt>)],
        otherwise: &[Stmt],
    ) {
        let subject = self.expr(subject, 0);
        self.add_line(format!("switch {subject}"));
        for (values, body) in cases {
            let values: Vec<_> = values.iter().map(|v| self.expr(v, 0)).collect();
            self.add_line(format!("case {}:", values.join(", ")));
            self.with_indent(|p| p.print_block(body));
        }
        self.print_else(otherwise);
        self.add_line("end;");
    }

    /// Prints the `else` part of a statement; nothing if it is empty.
    fn print_else(&mut self, otherwise: &[Stmt]) {
        if !otherwise.is_empty() {
            self.add_line("else");
            self.with_indent(|p| p.print_block(otherwise));
        }
    }

    /// Prints an assignment of a value that may be undefined.
    pub(super) fn print_assignment(&mut self, place: &Place, value: &Expr) {
        let is_simple = self.model.bounds(self.model.type_of_place(place)).is_some();
        if let Some((condition, a, b)) = alternatives(value) {
            if self.can_be_undefined(&a) || self.can_be_undefined(&b) {
                let condition = self.expr(condition, 0);
                self.add_line(format!("if {condition} then"));
                self.with_indent(|p| p.print_assignment(place, &a));
                self.add_line("else");
                self.with_indent(|p| p.print_assignment(place, &b));
                return self.add_line("end;");
            }
        }
        let to = self.place(place);
        let text = self.expr(value, 0);
        match value.without_line() {
            Expr::Undefined(_) => self.add_line(format!("undefine {to};")),
            _ => match self.undefined_place(value).filter(|_| is_simple) {
                Some(from) => self.add_line(format!(
                    "if isundefined({from}) then undefine {to}; else {to} := {text}; end;"
                )),
                None => self.add_line(format!("{to} := {text};")),
            },
        }
    }

    /// Returns true if a place of this model can be undefined.
    pub(super) fn may_be_undefined(&self, place: &Place) -> bool {
        may_be_undefined(self.model, place)
    }

    /// Prints a loop over numbers in steps.
    pub(super) fn print_for_steps(&mut self, id: VariableId, steps: &Steps, body: &[Stmt]) {
        let name = self.names.variables[id.index()].clone();
        let [from, to, by] = [&steps.from, &steps.to, &steps.by].map(|e| self.expr(e, 0));
        // For an empty range, Rumur counts in the opposite direction or reports an error.
        let direction_test = match by.starts_with('-') {
            true => format!(
                "{} >= {}",
                self.expr(&steps.from, precedence::SUM),
                self.expr(&steps.to, precedence::SUM)
            ),
            false => format!(
                "{} <= {}",
                self.expr(&steps.from, precedence::SUM),
                self.expr(&steps.to, precedence::SUM)
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
            self.add_line(format!("if {direction_test} then"));
        }
        self.add_line(format!("for {name} := {from} to {to} by {by} do"));
        self.with_indent(|p| p.print_block(body));
        self.add_line("end;");
        if !matches!(constants, (Some(_), Some(_), Some(_))) {
            self.add_line("end;");
        }
    }
}

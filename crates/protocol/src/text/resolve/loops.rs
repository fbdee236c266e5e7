//! Arrays over the remotes, and loops over sets of them.
//!
//! Remotes are interchangeable, so what a loop does must not depend on whom it is at first. That is so where each
//! remote's turn touches what is that remote's own, and changes the rest only by adding or only by taking away.

use super::controller::{Reading, Scope, Side};
use super::expression::{Kind, Operand};
use super::*;
use crate::controller::{Event, Expression, Operator, Set, Statement, Target, Value};
use crate::protocol::{Carries, Type, VariableId};

impl<'a> Resolver<'a, '_> {
    /// One remote's number in an array, with the array's type.
    pub(super) fn element_of(
        &mut self,
        name: Name<'a>,
        index: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<(Expression, Type)> {
        let found = scope.variables.find(name, self.sink);
        let ty = found.map(|variable| scope.types[usize::from(variable)]);
        let index = match ty {
            Some(Type::PerNumber { size, .. }) => self.number_of(index, size, scope),
            _ => self.typed(index, Kind::Remote, scope),
        };
        let (variable, ty) = (found?, ty?);
        if !ty.array() {
            let message = format!("`{}` is no array", name.text);
            self.sink.push(
                Diagnostic::new(Code::Type, name.span, message)
                    .label("has one value")
                    .see(
                        scope.variables.list[usize::from(variable)].span,
                        "an array is declared as `0..N per remote`, or `0..N per` a number",
                    ),
            );
            return None;
        }
        let element = Expression::Element(scope.variable(variable), Box::new(index?));
        Some((element, ty))
    }

    /// The index of an array with so many numbers: a number, or one of a cycle of this size.
    fn number_of(
        &mut self,
        index: &Expr<'a>,
        size: u16,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        match self.expression(index, scope)? {
            Operand::Single(index, Kind::Cycle(of)) if of == size => Some(index),
            Operand::Single(Expression::Constant(number), Kind::Number) => {
                let number = Number {
                    value: number.into(),
                    span: index.span,
                };
                let last = u32::from(size) - 1;
                let number = ranged(number, 0, last, "the index is", self.sink)?;
                Some(Expression::Constant(number as u16))
            }
            _ => self.typed(index, Kind::Number, scope),
        }
    }

    /// `x[REMOTE] := e`, or with an operator.
    pub(super) fn element(
        &mut self,
        name: Name<'a>,
        index: &Expr<'a>,
        operator: Option<Operator>,
        value: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let (before, ty) = self.element_of(name, index, scope)?;
        let value = match operator {
            None => match self.stored(value, ty, scope)? {
                Value::Single(value, _) => value,
                Value::Set(_) => return None,
            },
            Some(operator) => {
                let by = self.typed(value, Kind::Number, scope)?;
                Expression::Binary(operator, Box::new(before.clone()), Box::new(by))
            }
        };
        let Expression::Element(variable, index) = before else {
            return None;
        };
        Some(Statement::AssignElement(variable, *index, value))
    }

    /// `x := e` of an array: each remote's number becomes this.
    pub(super) fn all_elements(
        &mut self,
        action: &Action<'a>,
        (name, variable, ty): (Name<'a>, VariableId, Type),
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let ActionKind::Assign(_, None, value) = &action.kind else {
            let message = format!("`{}` is an array", name.text);
            self.sink.push(
                Diagnostic::new(Code::Type, name.span, message)
                    .label(format!("change one number of it: `{}[...]`", name.text)),
            );
            return None;
        };
        if scope.each.is_some() {
            return self.outside(action.span, "what sets all of an array");
        }
        let Value::Single(value, _) = self.stored(value, ty, scope)? else {
            return None;
        };
        if let Type::PerNumber { size, .. } = ty {
            let mut uses = Uses::default();
            uses.read(&value);
            if uses.read.iter().any(|(read, _)| *read == variable) {
                let text = format!("`{}` is set from what it is", name.text);
                self.sink.push(
                    Diagnostic::new(Code::Misplaced, action.span, text)
                        .label("all of it is set to one value"),
                );
                return None;
            }
            let set =
                |at| Statement::AssignElement(variable, Expression::Constant(at), value.clone());
            return Some(Statement::If {
                condition: Expression::Constant(1),
                then: (0..size).map(set).collect(),
                otherwise: Vec::new(),
            });
        }
        let body = vec![Statement::AssignElement(variable, Expression::Each, value)];
        let condition = Expression::Constant(1);
        self.in_any_order(&condition, &[action.span], &body)?;
        Some(Statement::ForEach { condition, body })
    }

    /// `for NAME in SET { ACTIONS }`.
    pub(super) fn for_each(
        &mut self,
        (name, set, actions): (Name<'a>, &Expr<'a>, &[Action<'a>]),
        event: Event,
        scope: &Scope<'a, '_>,
        reading: &Reading<'a>,
    ) -> Option<Statement> {
        if scope.each.is_some() {
            return self.outside(name.span, "another loop");
        }
        let of_message = scope.message.map(|m| &self.messages[m.index()].fields);
        let field = of_message.is_some_and(|fields| fields.iter().any(|f| f.name == name.text));
        let kind = self.kind_names.index.contains_key(name.text);
        if field || kind || scope.variables.index.contains_key(name.text) {
            let message = format!("`{}` means something else in this row", name.text);
            self.sink.push(
                Diagnostic::new(Code::AmbiguousName, name.span, message)
                    .label("a variable, a field or a kind of remotes has this name"),
            );
            return None;
        }
        let set = self.set(set, scope);
        let inner = Scope {
            each: Some(name),
            ..*scope
        };
        let mut body = Vec::new();
        for action in actions {
            body.push(match &action.kind {
                ActionKind::Send { .. }
                | ActionKind::Assign(..)
                | ActionKind::AssignElement(..)
                | ActionKind::For(..) => self.action(action, event, &inner, reading),
                _ => self.outside(
                    action.span,
                    "what is neither sent nor a change of a variable",
                ),
            });
        }
        let body: Vec<Statement> = body.into_iter().collect::<Option<_>>()?;
        let spans: Vec<Span> = actions.iter().map(|action| action.span).collect();
        self.sent_in_loop(&spans, &body, name, scope.side)?;
        let each = Box::new(Expression::Each);
        let condition = Expression::In(each, Box::new(set?));
        self.in_any_order(&condition, &spans, &body)?;
        Some(Statement::ForEach { condition, body })
    }

    fn outside<T>(&mut self, span: Span, what: &str) -> Option<T> {
        self.sink.push(
            Diagnostic::new(Code::Misplaced, span, format!("{what} stands in a loop"))
                .label("write it outside `for`"),
        );
        None
    }

    /// What is sent in a loop goes to the remote that it is at: two messages to one receiver would be sent in the order of
    /// the remotes. A remote has the bytes of a line or of an access once.
    fn sent_in_loop(
        &mut self,
        spans: &[Span],
        body: &[Statement],
        name: Name<'a>,
        side: Side,
    ) -> Option<()> {
        let mut good = Some(());
        for (&span, statement) in spans.iter().zip(body) {
            let Statement::Send { message, to, .. } = statement else {
                continue;
            };
            let (message, label) = match self.messages[message.index()].carries {
                _ if *to != Target::Remote(Expression::Each) => (
                    "a message of a loop goes elsewhere",
                    format!("add `to {}`", name.text),
                ),
                carries if side == Side::Remote && carries != Carries::Nothing => (
                    "a remote sends bytes in a loop",
                    "only messages without bytes".to_string(),
                ),
                _ => continue,
            };
            let diagnostic = Diagnostic::new(Code::Misplaced, span, message);
            self.sink.push(diagnostic.label(label));
            good = None;
        }
        good
    }

    /// Reports statements by which a loop depends on whom it is at first.
    fn in_any_order(
        &mut self,
        condition: &Expression,
        spans: &[Span],
        body: &[Statement],
    ) -> Option<()> {
        let mut uses = Uses::default();
        uses.read(condition);
        for statement in body {
            uses.statement(statement);
        }
        let wrong = (0..)
            .zip(body)
            .find(|(_, statement)| uses.depends(statement));
        let Some((at, _)) = wrong else {
            return Some(());
        };
        let text = "this depends on the remote at which a loop begins";
        let at: usize = at;
        self.sink.push(
            Diagnostic::new(Code::Misplaced, spans[at], text)
                .label("not the same in every order")
                .note("a loop sets elements of the remote that it is at, and changes what it does not read elsewhere by `+=` alone or by `-=` alone"),
        );
        None
    }
}

/// Which variables a loop reads and changes.
#[derive(Default)]
struct Uses {
    /// Read, and whether as the element of the remote at hand.
    read: Vec<(VariableId, bool)>,
    /// Changed as a whole, and how; `None` is neither adding nor taking away.
    changed: Vec<(VariableId, Option<Operator>)>,
    /// Arrays of which elements are set.
    set: Vec<VariableId>,
}

/// How a statement changes a variable as a whole, and what it reads for it.
enum Change<'s> {
    By(Option<Operator>, &'s Expression),
    BySet(Option<Operator>, &'s Set),
}

/// The variable that a statement changes as a whole.
fn change(statement: &Statement) -> Option<(VariableId, Change<'_>)> {
    Some(match statement {
        Statement::Assign(variable, value) => {
            let sum = match value {
                Expression::Round(sum, _) => sum,
                other => other,
            };
            let change = match sum {
                Expression::Binary(operator @ (Operator::Add | Operator::Subtract), a, by)
                    if **a == Expression::Variable(*variable) =>
                {
                    Change::By(Some(*operator), by)
                }
                other => Change::By(None, other),
            };
            (*variable, change)
        }
        Statement::AssignSet(variable, set) => {
            let change = match set {
                Set::Union(a, by) if **a == Set::Variable(*variable) => {
                    Change::BySet(Some(Operator::Add), by)
                }
                Set::Difference(a, by) if **a == Set::Variable(*variable) => {
                    Change::BySet(Some(Operator::Subtract), by)
                }
                other => Change::BySet(None, other),
            };
            (*variable, change)
        }
        _ => return None,
    })
}

impl Uses {
    fn statement(&mut self, statement: &Statement) {
        match change(statement) {
            Some((variable, Change::By(how, by))) => {
                self.changed.push((variable, how));
                self.read(by);
            }
            Some((variable, Change::BySet(how, by))) => {
                self.changed.push((variable, how));
                self.read_set(by);
            }
            None => {}
        }
        match statement {
            Statement::AssignElement(variable, index, value) => {
                self.set.push(*variable);
                self.read(index);
                self.read(value);
            }
            Statement::Send { fields, .. } => {
                for field in fields {
                    match field {
                        Value::Single(value, _) => self.read(value),
                        Value::Set(set) => self.read_set(set),
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether a statement of the loop does something else when another remote's turn comes first.
    fn depends(&self, statement: &Statement) -> bool {
        let reads = |variable| self.read.iter().any(|(read, _)| *read == variable);
        if let Some((variable, Change::By(how, _) | Change::BySet(how, _))) = change(statement) {
            let same = |(other, with): &(VariableId, _)| *other != variable || *with == how;
            return how.is_none() || reads(variable) || !self.changed.iter().all(same);
        }
        match statement {
            Statement::AssignElement(variable, index, _) => {
                *index != Expression::Each || self.read.contains(&(*variable, false))
            }
            _ => false,
        }
    }

    fn read(&mut self, expression: &Expression) {
        match expression {
            Expression::Variable(variable) => self.read.push((*variable, false)),
            Expression::Element(variable, of) => {
                self.read.push((*variable, **of == Expression::Each));
                self.read(of);
            }
            Expression::Table(_, inner)
            | Expression::All(inner)
            | Expression::Any(inner)
            | Expression::Not(inner)
            | Expression::Round(inner, _) => self.read(inner),
            Expression::Binary(_, a, b) => {
                self.read(a);
                self.read(b);
            }
            Expression::Count(set) => self.read_set(set),
            Expression::In(remote, set) => {
                self.read(remote);
                self.read_set(set);
            }
            Expression::SetsEqual(a, b) | Expression::SetsDiffer(a, b) => {
                self.read_set(a);
                self.read_set(b);
            }
            Expression::Constant(_)
            | Expression::None
            | Expression::Own
            | Expression::Sender
            | Expression::Each
            | Expression::State
            | Expression::Field(_) => {}
        }
    }

    fn read_set(&mut self, set: &Set) {
        match set {
            Set::Variable(variable) => self.read.push((*variable, false)),
            Set::Singleton(remote) => self.read(remote),
            Set::Union(a, b) | Set::Difference(a, b) => {
                self.read_set(a);
                self.read_set(b);
            }
            Set::Empty | Set::All(_) | Set::Field(_) => {}
        }
    }
}

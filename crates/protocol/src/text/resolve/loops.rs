//! Arrays over the remotes, and loops over sets of them.
//!
//! Remotes are interchangeable, so the result of a loop must not depend on their order. That holds if each iteration
//! touches only elements of the current remote, and changes other variables only by adding or only by subtracting.

use super::expression::Operand;
use super::scope::{AgentTable, Kind, Scope, Side};
use super::{number_in_range, Resolver};
use crate::controller::{
    Event, Expression, HomeSet, HomeSetQuery, Operator, Set, Statement, Target, Value,
};
use crate::protocol::{Carries, Type, VariableId};
use crate::terms::IndexDomain;
use crate::text::ast::{Action, ActionKind, Expr, Name, Number};
use crate::text::diagnostic::{Code, Diagnostic};
use cohkit_diagnostics::Span;

impl<'a> Resolver<'a, '_> {
    /// Resolves an element of an array; returns it with the array's type.
    pub(super) fn element_of(
        &mut self,
        name: Name<'a>,
        indices: &[Expr<'a>],
        scope: &Scope<'a, '_>,
    ) -> Option<(Expression, Type)> {
        let variable = scope.variables.find(name, self.sink)?;
        let ty = scope.types[usize::from(variable)];
        let declared = scope.variables.list[usize::from(variable)].span;
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = ty
        else {
            let message = format!("`{}` is no array", name.text);
            self.sink.push(
                Diagnostic::new(Code::Type, name.span, message)
                    .label("has one value")
                    .note_at(
                        declared,
                        "an array is declared as `0..N per remote`, or `0..N per` a number",
                    ),
            );
            return None;
        };
        self.require_line(name, variable, scope)?;
        let dimensions = 1 + usize::from(second_domain.is_some());
        if ty.is_home_set() || indices.len() != dimensions {
            let (message, label) = match ty.is_home_set() {
                true => ("is a set", "`home in SET` tests membership".to_string()),
                false => (
                    "has another number of indices",
                    format!("needs {dimensions}"),
                ),
            };
            let message = format!("`{}` {message}", name.text);
            let diagnostic = Diagnostic::new(Code::Type, name.span, message).label(label);
            self.sink
                .push(diagnostic.note_at(declared, "declared here"));
            return None;
        }
        let dimensions = std::iter::once(first_domain).chain(second_domain);
        let resolved = dimensions.zip(indices).map(|(domain, index)| match domain {
            IndexDomain::Remotes => self.resolve_typed(index, Kind::Remote, scope),
            IndexDomain::Homes(_) => self.resolve_typed(index, Kind::Home, scope),
            IndexDomain::Numbers(size) => self.number_of(index, size, scope),
        });
        let resolved: Vec<Option<Expression>> = resolved.collect();
        let resolved = resolved.into_iter().collect::<Option<_>>()?;
        Some((Expression::Element(scope.variable(variable), resolved), ty))
    }

    /// Resolves an index among `size` numbers: a number, or a value of a cycle of this size.
    fn number_of(
        &mut self,
        index: &Expr<'a>,
        size: u16,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        match self.resolve_expression(index, scope)? {
            Operand::Single(index, Kind::Cycle(cycle_size)) if cycle_size == size => Some(index),
            Operand::Single(Expression::Constant(number), Kind::Number) => {
                let number = Number {
                    value: number.into(),
                    span: index.span,
                };
                let max = u32::from(size) - 1;
                let number = number_in_range(number, 0, max, "the index is", self.sink)?;
                Some(Expression::Constant(number as u16))
            }
            _ => self.resolve_typed(index, Kind::Number, scope),
        }
    }

    /// `x[INDEX] := e`, or with an operator `x[INDEX] += e` or `-= e`.
    pub(super) fn assign_element(
        &mut self,
        name: Name<'a>,
        indices: &[Expr<'a>],
        operator: Option<Operator>,
        value: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let (old_value, ty) = self.element_of(name, indices, scope)?;
        let value = match (operator, ty.single()) {
            (None, _) => match self.resolve_stored(value, ty, scope)? {
                Value::Single(value, _) => value,
                Value::Set(_) => return None,
            },
            (Some(operator), Type::Cycle { size }) => {
                self.cycle_sum(name, operator, (old_value.clone(), size), value)?
            }
            (Some(operator), _) => {
                let amount = self.resolve_typed(value, Kind::Number, scope)?;
                Expression::Binary(operator, Box::new(old_value.clone()), Box::new(amount))
            }
        };
        let Expression::Element(variable, resolved_indices) = old_value else {
            return None;
        };
        Some(Statement::AssignElement(variable, resolved_indices, value))
    }

    /// `x := SET`, or `x += SET` or `-= SET`, for a `set of home`.
    pub(super) fn assign_homes(
        &mut self,
        variable: VariableId,
        operator: Option<Operator>,
        value: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let set = match operator {
            None => self.resolve_home_set(value, scope)?,
            Some(operator) => {
                let old_value = Operand::Homes(HomeSet::Variable(variable));
                match self.apply_operator(operator, old_value, value, scope)? {
                    Operand::Homes(set) => set,
                    _ => return None,
                }
            }
        };
        Some(Statement::AssignHomes(variable, set))
    }

    /// `x := e` for an array: sets all elements.
    pub(super) fn assign_all_elements(
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
            return self.reject_in_loop(action.span, "an assignment to a whole array");
        }
        let Value::Single(value, _) = self.resolve_stored(value, ty, scope)? else {
            return None;
        };
        // The value is evaluated once, so it must not depend on the array.
        let mut uses = VariableUses::default();
        uses.record_reads(&value);
        if uses.reads.iter().any(|(read, _)| *read == variable) {
            let text = format!("`{}` is set from its own value", name.text);
            self.sink.push(
                Diagnostic::new(Code::Misplaced, action.span, text)
                    .label("all of it is set to one value"),
            );
            return None;
        }
        Some(Statement::AssignAll(variable, value))
    }

    /// `for NAME in SET { ACTIONS }`.
    pub(super) fn for_each(
        &mut self,
        (name, set, actions): (Name<'a>, &Expr<'a>, &[Action<'a>]),
        event: Event,
        scope: &Scope<'a, '_>,
        table: &AgentTable<'a>,
    ) -> Option<Statement> {
        if scope.each.is_some() {
            return self.reject_in_loop(name.span, "another loop");
        }
        let message_fields = scope.message.map(|m| &self.messages[m.index()].fields);
        let is_field =
            message_fields.is_some_and(|fields| fields.iter().any(|f| f.name == name.text));
        let is_kind = self.kind_names.index.contains_key(name.text);
        if is_field || is_kind || scope.variables.index.contains_key(name.text) {
            let message = format!("`{}` means something else in this row", name.text);
            self.sink.push(
                Diagnostic::new(Code::AmbiguousName, name.span, message)
                    .label("a variable, a field or a kind of remotes has this name"),
            );
            return None;
        }
        let operand = self.resolve_expression(set, scope);
        let element_kind = match &operand {
            Some(Operand::Homes(_)) => Kind::Home,
            Some(Operand::Single(_, kind)) => return self.kind_mismatch(set, Kind::Set, *kind),
            _ => Kind::Remote,
        };
        let inner = Scope {
            each: Some((name, element_kind)),
            ..*scope
        };
        let mut body = Vec::new();
        for action in actions {
            body.push(match &action.kind {
                ActionKind::Send { .. }
                | ActionKind::Assign(..)
                | ActionKind::AssignElement(..)
                | ActionKind::For(..) => self.resolve_action(action, event, &inner, table),
                _ => self.reject_in_loop(
                    action.span,
                    "an action other than a message or an assignment",
                ),
            });
        }
        let body: Vec<Statement> = body.into_iter().collect::<Option<_>>()?;
        let spans: Vec<Span> = actions.iter().map(|action| action.span).collect();
        self.check_loop_send(&spans, &body, (name, element_kind), scope.side)?;
        match operand? {
            Operand::Set(set) => {
                let element = Box::new(Expression::Each);
                let condition = Expression::In(element, Box::new(set));
                let mut uses = VariableUses::default();
                uses.record_reads(&condition);
                self.check_order_independence(uses, &spans, &body)?;
                Some(Statement::ForEach { condition, body })
            }
            Operand::Homes(set) => {
                let mut uses = VariableUses::default();
                uses.record_home_set_reads(&set);
                self.check_order_independence(uses, &spans, &body)?;
                Some(Statement::ForHomes { set, body })
            }
            // The wrong type has been reported.
            Operand::Single(..) => None,
        }
    }

    /// Reports an item that must not occur in a loop. Always returns `None`.
    fn reject_in_loop<T>(&mut self, span: Span, item: &str) -> Option<T> {
        self.sink.push(
            Diagnostic::new(Code::Misplaced, span, format!("{item} occurs in a loop"))
                .label("write it outside `for`"),
        );
        None
    }

    /// Checks that a message sent in a loop goes to the agent of the iteration. Two messages to one receiver would be
    /// sent in the order of the remotes. A remote has the bytes of a line or access only once.
    fn check_loop_send(
        &mut self,
        spans: &[Span],
        body: &[Statement],
        (name, kind): (Name<'a>, Kind),
        side: Side,
    ) -> Option<()> {
        let iteration_agent = match kind {
            Kind::Home => Target::HomeAt(Expression::Each),
            _ => Target::Remote(Expression::Each),
        };
        let mut result = Some(());
        for (&span, statement) in spans.iter().zip(body) {
            let Statement::Send { message, to, .. } = statement else {
                continue;
            };
            let (message, label) = match self.messages[message.index()].carries {
                _ if *to != iteration_agent => (
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
            result = None;
        }
        result
    }

    /// Reports statements that make a loop depend on the order of the agents. The condition has been recorded in
    /// `uses`.
    fn check_order_independence(
        &mut self,
        mut uses: VariableUses,
        spans: &[Span],
        body: &[Statement],
    ) -> Option<()> {
        for statement in body {
            uses.record(statement);
        }
        let violation = (0..)
            .zip(body)
            .find(|(_, statement)| uses.depends_on_order(statement));
        let Some((index, _)) = violation else {
            return Some(());
        };
        let text = "the result depends on the order of the loop";
        let index: usize = index;
        self.sink.push(
            Diagnostic::new(Code::Misplaced, spans[index], text)
                .label("not the same in every order")
                .note("a loop may set elements of its current remote, and change variables that it does not read elsewhere by only `+=` or only `-=`"),
        );
        None
    }
}

/// Variables that a loop reads and changes.
#[derive(Default)]
pub(super) struct VariableUses {
    /// Variables read; true if as an element of the current agent.
    reads: Vec<(VariableId, bool)>,
    /// Variables changed as a whole, with the operator; `None` for neither adding nor subtracting.
    changes: Vec<(VariableId, Option<Operator>)>,
    /// Arrays whose elements are set.
    set_arrays: Vec<VariableId>,
}

/// Change of a variable as a whole: the operator (`None` for a plain assignment), and the operand that it reads.
enum VariableChange<'s> {
    /// Change of a single value.
    Value(Option<Operator>, &'s Expression),
    /// Change of a set of remotes: adding is a union, subtracting a difference.
    Remotes(Option<Operator>, &'s Set),
    /// Change of a set of homes.
    Homes(Option<Operator>, &'s HomeSet),
}

/// Returns the variable that a statement changes as a whole, with the change, if any.
fn whole_change(statement: &Statement) -> Option<(VariableId, VariableChange<'_>)> {
    Some(match statement {
        Statement::Assign(variable, value) => {
            let sum = match value {
                Expression::Modulo(sum, _) => sum,
                other => other,
            };
            let change = match sum {
                Expression::Binary(operator @ (Operator::Add | Operator::Subtract), a, operand)
                    if **a == Expression::Variable(*variable) =>
                {
                    VariableChange::Value(Some(*operator), operand)
                }
                other => VariableChange::Value(None, other),
            };
            (*variable, change)
        }
        Statement::AssignSet(variable, set) => {
            let change = match set {
                Set::Union(a, operand) if **a == Set::Variable(*variable) => {
                    VariableChange::Remotes(Some(Operator::Add), operand)
                }
                Set::Difference(a, operand) if **a == Set::Variable(*variable) => {
                    VariableChange::Remotes(Some(Operator::Subtract), operand)
                }
                other => VariableChange::Remotes(None, other),
            };
            (*variable, change)
        }
        Statement::AssignHomes(variable, set) => {
            let change = match set {
                HomeSet::Union(a, operand) if **a == HomeSet::Variable(*variable) => {
                    VariableChange::Homes(Some(Operator::Add), operand)
                }
                HomeSet::Difference(a, operand) if **a == HomeSet::Variable(*variable) => {
                    VariableChange::Homes(Some(Operator::Subtract), operand)
                }
                other => VariableChange::Homes(None, other),
            };
            (*variable, change)
        }
        _ => return None,
    })
}

impl VariableUses {
    /// Variables that are read.
    pub(super) fn variables(&self) -> impl Iterator<Item = VariableId> + '_ {
        self.reads.iter().map(|(variable, _)| *variable)
    }

    /// Records the reads and changes of a statement.
    fn record(&mut self, statement: &Statement) {
        match whole_change(statement) {
            Some((variable, VariableChange::Value(operator, operand))) => {
                self.changes.push((variable, operator));
                self.record_reads(operand);
            }
            Some((variable, VariableChange::Remotes(operator, operand))) => {
                self.changes.push((variable, operator));
                self.record_set_reads(operand);
            }
            Some((variable, VariableChange::Homes(operator, operand))) => {
                self.changes.push((variable, operator));
                self.record_home_set_reads(operand);
            }
            None => {}
        }
        match statement {
            Statement::AssignElement(variable, indices, value) => {
                self.set_arrays.push(*variable);
                indices.iter().for_each(|index| self.record_reads(index));
                self.record_reads(value);
            }
            Statement::Send { fields, .. } => {
                for field in fields {
                    match field {
                        Value::Single(value, _) => self.record_reads(value),
                        Value::Set(set) => self.record_set_reads(set),
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns true if the effect of a statement depends on the order of the loop.
    fn depends_on_order(&self, statement: &Statement) -> bool {
        let is_read = |variable| self.reads.iter().any(|(read, _)| *read == variable);
        let change = whole_change(statement);
        if let Some((
            variable,
            VariableChange::Value(operator, _)
            | VariableChange::Remotes(operator, _)
            | VariableChange::Homes(operator, _),
        )) = change
        {
            let is_consistent =
                |(changed, by): &(VariableId, _)| *changed != variable || *by == operator;
            return operator.is_none()
                || is_read(variable)
                || !self.changes.iter().all(is_consistent);
        }
        match statement {
            Statement::AssignElement(variable, indices, _) => {
                indices[0] != Expression::Each || self.reads.contains(&(*variable, false))
            }
            _ => false,
        }
    }

    /// Records the variables that an expression reads.
    pub(super) fn record_reads(&mut self, expression: &Expression) {
        match expression {
            Expression::Variable(variable) => self.reads.push((*variable, false)),
            Expression::Element(variable, indices) => {
                self.reads.push((*variable, indices[0] == Expression::Each));
                indices.iter().for_each(|index| self.record_reads(index));
            }
            Expression::Table(_, inner)
            | Expression::All(inner)
            | Expression::Any(inner)
            | Expression::Not(inner)
            | Expression::Modulo(inner, _) => self.record_reads(inner),
            Expression::Binary(_, a, b) => {
                self.record_reads(a);
                self.record_reads(b);
            }
            Expression::Count(set) => self.record_set_reads(set),
            Expression::Homes(query) => match &**query {
                HomeSetQuery::Count(set) => self.record_home_set_reads(set),
                HomeSetQuery::In(home, set) => {
                    self.record_reads(home);
                    self.record_home_set_reads(set);
                }
                HomeSetQuery::Equal(a, b) => {
                    self.record_home_set_reads(a);
                    self.record_home_set_reads(b);
                }
            },
            Expression::In(remote, set) => {
                self.record_reads(remote);
                self.record_set_reads(set);
            }
            Expression::SetsEqual(a, b) | Expression::SetsDiffer(a, b) => {
                self.record_set_reads(a);
                self.record_set_reads(b);
            }
            Expression::Constant(_)
            | Expression::None
            | Expression::Own
            | Expression::Sender
            | Expression::Home
            | Expression::Each
            | Expression::State
            | Expression::Field(_) => {}
        }
    }

    /// Records the variables that a set of remotes reads.
    fn record_set_reads(&mut self, set: &Set) {
        match set {
            Set::Variable(variable) => self.reads.push((*variable, false)),
            Set::Singleton(remote) => self.record_reads(remote),
            Set::Union(a, b) | Set::Difference(a, b) => {
                self.record_set_reads(a);
                self.record_set_reads(b);
            }
            Set::Empty | Set::All(_) | Set::Field(_) => {}
        }
    }
    /// Records the variables that a set of homes reads.
    fn record_home_set_reads(&mut self, set: &HomeSet) {
        match set {
            HomeSet::Variable(variable) => self.reads.push((*variable, false)),
            HomeSet::Singleton(home) => self.record_reads(home),
            HomeSet::Union(a, b) | HomeSet::Difference(a, b) => {
                self.record_home_set_reads(a);
                self.record_home_set_reads(b);
            }
            HomeSet::Empty => {}
        }
    }
}

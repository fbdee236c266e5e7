//! Sets that a row chooses from and receivers of its messages, in terms of the values before the row. Rules need them
//! in their guards.

use cohkit_protocol::controller::{Expression, Set, Statement, Target};
use cohkit_protocol::protocol::{MessageId, VariableId};

/// Values that a row has assigned so far, in terms of the values before the row; `None` if a value cannot be expressed
/// so.
#[derive(Default)]
struct PriorValues {
    /// Assignments to variables that hold a single value, in order; the last one to a variable counts.
    singles: Vec<(VariableId, Option<Expression>)>,
    /// Assignments to sets, in order; the last one to a variable counts.
    sets: Vec<(VariableId, Option<Set>)>,
}

/// Receiver of a message, in terms of the values before the row.
pub(super) enum Receiver {
    /// The home of the line.
    Home,
    /// A remote.
    Remote(Expression),
    /// Each remote of a set.
    Each(Set),
}

/// An earlier assignment of the row that cannot be expressed in the values before the row.
pub(super) struct UnknownValue;

/// Returns the set that a row chooses from, or an error if its value before the row is not known. `None` if the row
/// does not choose.
pub(super) fn chosen_from(body: &[Statement]) -> Option<Result<Set, UnknownValue>> {
    let mut values = PriorValues::default();
    for statement in body {
        if let Statement::Choose(_, set) = statement {
            return Some(values.set(set).ok_or(UnknownValue));
        }
        values.record(statement);
    }
    None
}

/// Returns the messages that a row sends, with their receivers, in order. [`Expression::Each`] is the member that the
/// row chooses. Only messages for which `selects` returns true are included.
///
/// # Errors
/// A receiver cannot be expressed in the values before the row.
pub(super) fn sent_messages(
    body: &[Statement],
    selects: &dyn Fn(MessageId) -> bool,
) -> Result<Vec<(MessageId, Receiver)>, UnknownValue> {
    let mut values = PriorValues::default();
    let mut messages = Vec::new();
    for statement in body {
        match statement {
            Statement::Send { message, to, .. } if selects(*message) => {
                let to = match to {
                    Target::Home => Some(Receiver::Home),
                    Target::HomeAt(_) => None,
                    Target::Remote(remote) => values.single(remote).map(Receiver::Remote),
                    Target::Each(set) => values.set(set).map(Receiver::Each),
                };
                messages.push((*message, to.ok_or(UnknownValue)?));
            }
            Statement::ForEach {
                condition: Expression::In(_, set),
                body,
            } => {
                for inner in body {
                    if let Statement::Send { message, .. } = inner {
                        if selects(*message) {
                            let set = values.set(set).ok_or(UnknownValue)?;
                            messages.push((*message, Receiver::Each(set)));
                        }
                    }
                }
            }
            other => {
                let mut sends = false;
                Statement::visit(std::slice::from_ref(other), &mut |inner| {
                    sends |= matches!(inner, Statement::Send { message, .. } if selects(*message));
                });
                if sends {
                    return Err(UnknownValue);
                }
            }
        }
        values.record(statement);
    }
    Ok(messages)
}

impl PriorValues {
    /// Records the effect of a statement.
    fn record(&mut self, statement: &Statement) {
        match statement {
            Statement::Choose(variable, _) => {
                self.singles.push((*variable, Some(Expression::Each)));
            }
            Statement::Assign(variable, value) => {
                let value = self.single(value);
                self.singles.push((*variable, value));
            }
            Statement::AssignSet(variable, set) => {
                let set = self.set(set);
                self.sets.push((*variable, set));
            }
            other => Statement::visit(std::slice::from_ref(other), &mut |inner| match inner {
                Statement::Assign(variable, _) => self.singles.push((*variable, None)),
                Statement::AssignSet(variable, _) => self.sets.push((*variable, None)),
                _ => {}
            }),
        }
    }

    /// Returns an expression in terms of the values before the row; `None` for expressions other than variables,
    /// fields and remotes.
    fn single(&self, expression: &Expression) -> Option<Expression> {
        match expression {
            Expression::Variable(variable) => {
                let mut set = self.singles.iter().rev();
                match set.find(|(assigned, _)| assigned == variable) {
                    Some((_, value)) => value.clone(),
                    None => Some(expression.clone()),
                }
            }
            Expression::None | Expression::Own | Expression::Sender | Expression::Field(_) => {
                Some(expression.clone())
            }
            _ => None,
        }
    }

    /// Returns a set in terms of the values before the row, or `None` if that is impossible.
    fn set(&self, set: &Set) -> Option<Set> {
        Some(match set {
            Set::Empty | Set::All(_) | Set::Field(_) => set.clone(),
            Set::Singleton(expression) => Set::Singleton(Box::new(self.single(expression)?)),
            Set::Variable(variable) => {
                let mut sets = self.sets.iter().rev();
                match sets.find(|(assigned, _)| assigned == variable) {
                    Some((_, value)) => value.clone()?,
                    None => set.clone(),
                }
            }
            Set::Union(a, b) => Set::Union(Box::new(self.set(a)?), Box::new(self.set(b)?)),
            Set::Difference(a, b) => {
                Set::Difference(Box::new(self.set(a)?), Box::new(self.set(b)?))
            }
        })
    }
}

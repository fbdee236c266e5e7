//! Sets that a row chooses from and receivers of its messages, in terms of the values before the row. Rules need them
//! in their guards.

use cohkit_protocol::controller::{Expression, Set, Statement, Target};
use cohkit_protocol::protocol::{MessageId, VariableId};

/// Values that a row has assigned so far, in terms of the values before the row; `None` if a value cannot be expressed
/// so.
#[derive(Default)]
struct PriorValues {
    singles: Vec<(VariableId, Option<Expression>)>,
    sets: Vec<(VariableId, Option<Set>)>,
}

/// Receiver of a message, in terms of the values before the row.
pub(super) enum Sent {
    /// The home of the line.
    Home,
    /// A remote.
    Remote(Expression),
    /// Each remote of a set.
    Each(Set),
}

/// An earlier assignment of the row that cannot be expressed in the values before the row.
pub(super) struct NotFollowed;

/// The set that a row chooses from. `None` if it does not choose.
pub(super) fn chosen_from(body: &[Statement]) -> Option<Result<Set, NotFollowed>> {
    let mut before = PriorValues::default();
    for statement in body {
        if let Statement::Choose(_, set) = statement {
            return Some(before.set(set).ok_or(NotFollowed));
        }
        before.after(statement);
    }
    None
}

/// The messages that a row sends, with their receivers. [`Expression::Each`] is the member that the row chooses; `asks`
/// selects the messages.
pub(super) fn sent(
    body: &[Statement],
    asks: &dyn Fn(MessageId) -> bool,
) -> Result<Vec<(MessageId, Sent)>, NotFollowed> {
    let mut before = PriorValues::default();
    let mut all = Vec::new();
    for statement in body {
        match statement {
            Statement::Send { message, to, .. } if asks(*message) => {
                let to = match to {
                    Target::Home => Some(Sent::Home),
                    Target::HomeAt(_) => None,
                    Target::Remote(remote) => before.single(remote).map(Sent::Remote),
                    Target::Each(set) => before.set(set).map(Sent::Each),
                };
                all.push((*message, to.ok_or(NotFollowed)?));
            }
            Statement::ForEach {
                condition: Expression::In(_, set),
                body,
            } => {
                for inner in body {
                    if let Statement::Send { message, .. } = inner {
                        if asks(*message) {
                            let set = before.set(set).ok_or(NotFollowed)?;
                            all.push((*message, Sent::Each(set)));
                        }
                    }
                }
            }
            other => {
                let mut sends = false;
                Statement::visit(std::slice::from_ref(other), &mut |inner| {
                    sends |= matches!(inner, Statement::Send { message, .. } if asks(*message));
                });
                if sends {
                    return Err(NotFollowed);
                }
            }
        }
        before.after(statement);
    }
    Ok(all)
}

impl PriorValues {
    /// Records the effect of a statement.
    fn after(&mut self, statement: &Statement) {
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

    fn single(&self, expression: &Expression) -> Option<Expression> {
        match expression {
            Expression::Variable(variable) => {
                let mut set = self.singles.iter().rev();
                match set.find(|(other, _)| other == variable) {
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

    fn set(&self, set: &Set) -> Option<Set> {
        Some(match set {
            Set::Empty | Set::All(_) | Set::Field(_) => set.clone(),
            Set::Singleton(one) => Set::Singleton(Box::new(self.single(one)?)),
            Set::Variable(variable) => {
                let mut sets = self.sets.iter().rev();
                match sets.find(|(other, _)| other == variable) {
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

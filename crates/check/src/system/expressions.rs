//! Expressions of controllers, in the model's terms.
//!
//! Values are numbers (see [`super::layout::largest`]), but for sets of remotes, which are arrays in variables:
//! a set is asked for its members instead of being built.

use cohkit_protocol::controller::{Expression, Operator};
use cohkit_protocol::protocol::{Type as ValueType, VariableId as Name};

use super::layout::{Side, System};
use crate::model::{Expr, Place};

/// What an expression of a row may speak of.
#[derive(Clone)]
pub(super) struct Context {
    /// Whether the row is the home's.
    pub home: bool,
    /// The line concerned.
    pub line: Expr,
    /// Index of the remote whose row it is.
    pub own: Option<Expr>,
    /// Index of the remote that sent the message at hand.
    pub sender: Option<Expr>,
    /// The values and types of the fields of the message at hand.
    pub fields: Vec<(Expr, ValueType)>,
    /// Index of the remote a loop or quantifier is at.
    pub each: Option<Expr>,
}

impl Context {
    /// The same inside a loop or quantifier.
    pub fn with_each(&self, each: Expr) -> Context {
        Context {
            each: Some(each),
            ..self.clone()
        }
    }

    /// This agent's part of a variable.
    pub fn part(&self, variable: crate::model::VariableId) -> Place {
        let place = variable.at(&self.line);
        match &self.own {
            Some(own) => place.at(own),
            None => place,
        }
    }

    /// The index of a remote that needs no computing.
    fn known(&self, e: &Expression) -> Option<Expr> {
        match e {
            Expression::Own => self.own.clone(),
            Expression::Sender => self.sender.clone(),
            Expression::Each => self.each.clone(),
            _ => None,
        }
    }
}

impl<'p> System<'p> {
    /// The kind of agent whose row it is.
    pub fn side_of(&self, context: &Context) -> &Side<'p> {
        self.side(context.home)
    }

    /// The place of a variable.
    pub fn variable(&self, context: &Context, name: Name) -> Place {
        context.part(self.side_of(context).variables[name.index()])
    }

    /// Whether an expression denotes a set.
    pub fn is_set(&self, context: &Context, e: &Expression) -> bool {
        match e {
            Expression::Empty | Expression::Singleton(_) => true,
            Expression::Variable(name) => {
                let variables = &self.side_of(context).controller.variables;
                variables[name.index()].ty == ValueType::RemoteSet
            }
            Expression::Field(i) => {
                let field = context.fields.get(usize::from(*i));
                field.is_some_and(|(_, ty)| *ty == ValueType::RemoteSet)
            }
            Expression::Binary(Operator::Union | Operator::Difference, ..) => true,
            _ => false,
        }
    }

    /// The value of an expression as a number.
    pub fn number(&mut self, context: &Context, e: &Expression) -> Expr {
        use Expression as E;
        if self.is_set(context, e) {
            return self.sum(|system, i| {
                let member = system.member(context, e, Expr::Int(i));
                member.then(1 << i, 0)
            });
        }
        match e {
            E::Constant(c) => Expr::Int((*c).into()),
            E::None | E::Empty | E::Singleton(_) => Expr::Int(0),
            E::Own | E::Sender | E::Each => match context.known(e) {
                Some(index) => index + 1,
                None => Expr::Int(0),
            },
            E::State => {
                let positions = self.positions(context.home);
                positions.of(context.part(self.side_of(context).state))
            }
            E::Variable(name) => self.variable(context, *name).into(),
            E::Element(name, remote) => {
                let index = self.remote_index(context, remote);
                self.variable(context, *name).at(index).into()
            }
            E::Field(i) => match context.fields.get(usize::from(*i)) {
                Some((value, _)) => value.clone(),
                None => Expr::Int(0),
            },
            E::Table(table, index) => {
                let index = self.number(context, index);
                self.side_of(context).tables[usize::from(*table)].of(index)
            }
            E::Count(set) => self.sum(|system, i| {
                let member = system.member(context, set, Expr::Int(i));
                member.as_number()
            }),
            E::Binary(Operator::Add, a, b) => self.number(context, a) + self.number(context, b),
            E::Binary(Operator::Subtract, a, b) => {
                self.number(context, a) - self.number(context, b)
            }
            E::In(..) | E::All(_) | E::Any(_) | E::Not(_) | E::Binary(..) => {
                self.truth(context, e).as_number()
            }
        }
    }

    /// The sum of something over all remotes.
    fn sum(&mut self, mut of: impl FnMut(&mut Self, i32) -> Expr) -> Expr {
        let first = of(self, 0);
        (1..self.remotes).fold(first, |sum, i| sum + of(self, i))
    }

    /// Whether a condition holds.
    pub fn truth(&mut self, context: &Context, e: &Expression) -> Expr {
        use Expression as E;
        match e {
            E::Constant(c) => Expr::Bool(*c != 0),
            E::Not(a) => !self.truth(context, a),
            E::In(remote, set) => match context.known(remote) {
                Some(index) => self.member(context, set, index),
                None => {
                    let index = self.remote_index(context, remote);
                    let member = self.member(context, set, index);
                    self.number(context, remote).gt(0).and(member)
                }
            },
            E::All(claim) => self.with_bound(self.remote_type, |system, each| {
                each.all(system.truth(&context.with_each(each.into()), claim))
            }),
            E::Any(claim) => self.with_bound(self.remote_type, |system, each| {
                each.any(system.truth(&context.with_each(each.into()), claim))
            }),
            E::Binary(Operator::And, a, b) => {
                let a = self.truth(context, a);
                a.and(self.truth(context, b))
            }
            E::Binary(Operator::Or, a, b) => {
                let a = self.truth(context, a);
                a.or(self.truth(context, b))
            }
            E::Binary(operator @ (Operator::Equal | Operator::NotEqual), a, b)
                if self.is_set(context, a) || self.is_set(context, b) =>
            {
                let equal = self.with_bound(self.remote_type, |system, each| {
                    let a = system.member(context, a, each.into());
                    let b = system.member(context, b, each.into());
                    each.all(a.is(b))
                });
                match operator {
                    Operator::Equal => equal,
                    _ => !equal,
                }
            }
            E::Binary(operator, a, b) => {
                let (x, y) = (self.number(context, a), self.number(context, b));
                match operator {
                    Operator::Equal => x.is(y),
                    Operator::NotEqual => x.is_not(y),
                    Operator::Less => x.lt(y),
                    Operator::LessOrEqual => x.le(y),
                    Operator::Greater => x.gt(y),
                    Operator::GreaterOrEqual => x.ge(y),
                    Operator::Subtract => (x - y).is_not(0),
                    // Sets, and what the arms above took, do not come here.
                    _ => (x + y).is_not(0),
                }
            }
            _ => self.number(context, e).is_not(0),
        }
    }

    /// Whether the remote with this index is in a set.
    pub fn member(&mut self, context: &Context, set: &Expression, remote: Expr) -> Expr {
        use Expression as E;
        match set {
            E::Singleton(one) => match context.known(one) {
                Some(index) => remote.is(index),
                None => self.number(context, one).is(remote + 1),
            },
            E::Variable(name) if self.is_set(context, set) => {
                self.variable(context, *name).at(remote).into()
            }
            E::Field(i) if self.is_set(context, set) => {
                let powers = self.powers();
                let members = context.fields[usize::from(*i)].0.clone();
                ((members / powers.of(remote)) % 2).is(1)
            }
            E::Binary(Operator::Union, a, b) => {
                let a = self.member(context, a, remote.clone());
                a.or(self.member(context, b, remote))
            }
            E::Binary(Operator::Difference, a, b) => {
                let a = self.member(context, a, remote.clone());
                a.and(!self.member(context, b, remote))
            }
            _ => Expr::Bool(false),
        }
    }

    /// The index of the remote that an expression names. If it names none, the index lies outside every array,
    /// which the search reports.
    pub fn remote_index(&mut self, context: &Context, e: &Expression) -> Expr {
        match context.known(e) {
            Some(index) => index,
            None => self.number(context, e) - 1,
        }
    }
}

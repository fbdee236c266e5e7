//! Expressions of controllers, in the model's terms.
//!
//! Values are numbers (see [`super::layout::largest`]), but for sets of remotes, which are arrays in variables:
//! a set is asked for its members instead of being built.

use cohkit_protocol::controller::{Expression, Operator, Set, Value};
use cohkit_protocol::protocol::{Type, VariableId as Name};
use cohkit_protocol::terms::Over;
use cohkit_protocol::written_out::Homes;

use super::layout::{Side, System};
use cohkit_engine::model::{Expr, Place};

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
    /// The values of the fields of the message at hand.
    pub fields: Vec<Expr>,
    /// Index of the remote a loop or quantifier is at.
    pub each: Option<Expr>,
    /// Index of the remote that the row chooses, if it finds one.
    pub chosen: Option<Expr>,
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
    pub fn part(&self, variable: cohkit_engine::model::VariableId) -> Place {
        let place = variable.at(&self.line);
        match &self.own {
            Some(own) => place.at(own),
            None => place,
        }
    }

    /// The index of a remote that needs no computing.
    pub fn known(&self, e: &Expression) -> Option<Expr> {
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
        let side = self.side_of(context);
        let variable = side.variables[name.index()];
        match (
            side.controller.variables[name.index()].register,
            &context.own,
        ) {
            (false, _) => context.part(variable),
            (true, Some(own)) => variable.at(own),
            (true, None) if self.protocol.homes == 1 => variable.into(),
            (true, None) => variable.at(self.home_of(&context.line)),
        }
    }

    /// The value of a message's field as a number.
    pub fn given(&mut self, context: &Context, value: &Value) -> Expr {
        match value {
            Value::Single(value, _) => self.number(context, value),
            // The members' powers of two.
            Value::Set(set) => self.sum(|system, i| {
                let member = system.member(context, set, i.into());
                member.then(1 << i, 0)
            }),
        }
    }

    /// The value of an expression as a number.
    pub fn number(&mut self, context: &Context, e: &Expression) -> Expr {
        use Expression as E;
        match e {
            E::Constant(c) => Expr::Int((*c).into()),
            E::None => Expr::Int(0),
            E::Own | E::Each => match context.known(e) {
                Some(index) => index + 1,
                None => self.senseless(context, "names a remote where there is none to name"),
            },
            // The home is none of the remotes.
            E::Sender => context.known(e).map_or(Expr::Int(0), |index| index + 1),
            E::State => {
                let positions = self.positions(context.home);
                positions.of(context.part(self.side_of(context).state))
            }
            E::Variable(name) => self.variable(context, *name).into(),
            E::Element(name, at) => self.element(context, *name, at).into(),
            E::Home => self.home_of(&context.line),
            E::Field(i) => self.field(context, *i),
            E::Table(table, index) => {
                let index = self.number(context, index);
                self.side_of(context).tables[usize::from(*table)].of(index)
            }
            E::Count(set) => self.sum(|system, i| {
                let member = system.member(context, set, i.into());
                member.as_number()
            }),
            E::Round(number, size) => self.number(context, number) % i32::from(*size),
            E::Binary(operator, a, b) => match operator {
                Operator::Add => self.number(context, a) + self.number(context, b),
                Operator::Subtract => self.number(context, a) - self.number(context, b),
                Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual
                | Operator::And
                | Operator::Or => self.truth(context, e).as_number(),
            },
            E::Homes(of) => {
                let written_out = Homes(self.protocol.homes).expression(of);
                self.number(context, &written_out)
            }
            E::In(..)
            | E::SetsEqual(..)
            | E::SetsDiffer(..)
            | E::All(_)
            | E::Any(_)
            | E::Not(_) => self.truth(context, e).as_number(),
        }
    }

    /// A field of the message at hand.
    fn field(&mut self, context: &Context, field: u8) -> Expr {
        match context.fields.get(usize::from(field)) {
            Some(value) => value.clone(),
            None => self.senseless(context, "reads a field that its event does not have"),
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
            E::Homes(of) => {
                let written_out = Homes(self.protocol.homes).expression(of);
                self.truth(context, &written_out)
            }
            E::SetsEqual(a, b) => self.same_members(context, a, b),
            E::SetsDiffer(a, b) => !self.same_members(context, a, b),
            E::Binary(operator, a, b) => {
                let holds: fn(Expr, Expr) -> Expr = match operator {
                    Operator::And => {
                        let a = self.truth(context, a);
                        return a.and(self.truth(context, b));
                    }
                    Operator::Or => {
                        let a = self.truth(context, a);
                        return a.or(self.truth(context, b));
                    }
                    Operator::Equal => |x, y| x.is(y),
                    Operator::NotEqual => |x, y| x.is_not(y),
                    Operator::Less => |x, y| x.lt(y),
                    Operator::LessOrEqual => |x, y| x.le(y),
                    Operator::Greater => |x, y| x.gt(y),
                    Operator::GreaterOrEqual => |x, y| x.ge(y),
                    Operator::Add => |x, y| (x + y).is_not(0),
                    Operator::Subtract => |x, y| (x - y).is_not(0),
                };
                let (x, y) = (self.number(context, a), self.number(context, b));
                holds(x, y)
            }
            E::None
            | E::Own
            | E::Sender
            | E::Home
            | E::Each
            | E::State
            | E::Variable(_)
            | E::Element(..)
            | E::Field(_)
            | E::Table(..)
            | E::Round(..)
            | E::Count(_) => self.number(context, e).is_not(0),
        }
    }

    fn same_members(&mut self, context: &Context, a: &Set, b: &Set) -> Expr {
        self.with_bound(self.remote_type, |system, each| {
            let a = system.member(context, a, each.into());
            let b = system.member(context, b, each.into());
            each.all(a.is(b))
        })
    }

    /// Whether the remote with this index is in a set.
    pub fn member(&mut self, context: &Context, set: &Set, remote: Expr) -> Expr {
        match set {
            Set::Empty => Expr::Bool(false),
            Set::All(_) if !self.protocol.several_tables() => Expr::Bool(true),
            // What a remote is follows from its state, so that remotes are interchangeable all the same.
            Set::All(kind) => {
                let state = self.remote.state.at(&context.line).at(remote);
                self.kinds().of(state).is(i32::from(kind.0))
            }
            Set::Singleton(one) => match context.known(one) {
                Some(index) => remote.is(index),
                None => self.number(context, one).is(remote + 1),
            },
            Set::Variable(name) => self.variable(context, *name).at(remote).into(),
            Set::Field(field) => {
                let powers = self.powers();
                let members = self.field(context, *field);
                ((members / powers.of(remote)) % 2).is(1)
            }
            Set::Union(a, b) => {
                let a = self.member(context, a, remote.clone());
                a.or(self.member(context, b, remote))
            }
            Set::Difference(a, b) => {
                let a = self.member(context, a, remote.clone());
                a.and(!self.member(context, b, remote))
            }
        }
    }

    /// One value of an array.
    pub fn element(&mut self, context: &Context, array: Name, at: &[Expression]) -> Place {
        let mut place = self.variable(context, array);
        let Type::Array { over, then, .. } =
            self.side_of(context).controller.variables[array.index()].ty
        else {
            return place;
        };
        for (over, index) in std::iter::once(over).chain(then).zip(at) {
            let index = match over {
                Over::Remotes => self.remote_index(context, index),
                Over::Numbers(_) | Over::Homes(_) => self.number(context, index),
            };
            place = place.at(index);
        }
        place
    }

    /// The number of a line's home; what is about no line has it in the place of a line.
    pub fn home_of(&self, line: &Expr) -> Expr {
        match i32::from(self.protocol.homes) {
            1 => Expr::Int(0),
            homes if homes == self.lines => line.clone(),
            homes => line.clone() % homes,
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

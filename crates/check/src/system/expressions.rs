//! Lowering of controllers' expressions.
//!
//! Values are numbers (see [`super::agents::largest`]), except sets of remotes, which are arrays in variables. A set is
//! never built: an expression tests its members.

use cohkit_engine::model::{Expr, Place};
use cohkit_protocol::controller::{Expression, Operator, Set, Value};
use cohkit_protocol::protocol::{Type, VariableId as Name};
use cohkit_protocol::terms::IndexDomain;
use cohkit_protocol::unroll::Homes;

use super::agents::Agents;
use super::context::Context;

impl Agents<'_> {
    /// Returns the value of a message's field as a number, as [`super::agents::largest`] describes.
    pub fn sent_value(&self, context: &Context, value: &Value) -> Expr {
        match value {
            Value::Single(value, _) => self.number(context, value),
            // Sum of the members' powers of two.
            Value::Set(set) => self.sum(|i| {
                let member = self.member(context, set, i.into());
                member.then(1 << i, 0)
            }),
        }
    }

    /// Returns the value of an expression as a number. An expression without meaning in its place rejects the system.
    pub fn number(&self, context: &Context, e: &Expression) -> Expr {
        use Expression as E;
        match e {
            E::Constant(c) => Expr::Int((*c).into()),
            E::None => Expr::Int(0),
            E::Own | E::Each => match context.known(e) {
                Some(index) => index + 1,
                None => self.unsupported(context, "names a remote where none is defined"),
            },
            // The home is not among the remotes, so as a sender it is 0.
            E::Sender => context.known(e).map_or(Expr::Int(0), |index| index + 1),
            E::State => {
                let positions = self.positions(context.home);
                positions.of(self.state(context))
            }
            E::Variable(name) => self.variable(context, *name).into(),
            E::Element(name, at) => self.element(context, *name, at).into(),
            E::Home => self.frame.home_of(&context.line),
            E::Field(i) => self.field(context, *i),
            E::Table(table, index) => {
                let index = self.number(context, index);
                self.side_of(context).tables[usize::from(*table)].of(index)
            }
            E::Count(set) => self.sum(|i| {
                let member = self.member(context, set, i.into());
                member.as_number()
            }),
            E::Modulo(number, size) => self.number(context, number) % i32::from(*size),
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
                | Operator::Or => self.condition(context, e).as_number(),
            },
            E::Homes(expression) => {
                let written_out = Homes(self.frame.protocol.homes).expression(expression);
                self.number(context, &written_out)
            }
            E::In(..)
            | E::SetsEqual(..)
            | E::SetsDiffer(..)
            | E::All(_)
            | E::Any(_)
            | E::Not(_) => self.condition(context, e).as_number(),
        }
    }

    /// A field of the current message.
    fn field(&self, context: &Context, field: u8) -> Expr {
        match context.fields.get(usize::from(field)) {
            Some(value) => value.clone(),
            None => self.unsupported(context, "reads a field that its event does not have"),
        }
    }

    /// Sum over all remotes.
    fn sum(&self, term: impl Fn(i32) -> Expr) -> Expr {
        let first = term(0);
        (1..self.frame.remotes).fold(first, |sum, i| sum + term(i))
    }

    /// Truth value of a condition.
    pub fn condition(&self, context: &Context, e: &Expression) -> Expr {
        use Expression as E;
        match e {
            E::Constant(c) => Expr::Bool(*c != 0),
            E::Not(a) => !self.condition(context, a),
            E::In(remote, set) => match context.known(remote) {
                Some(index) => self.member(context, set, index),
                None => {
                    let index = self.remote_index(context, remote);
                    let member = self.member(context, set, index);
                    self.number(context, remote).gt(0).and(member)
                }
            },
            E::All(claim) => self.frame.scope.with_bound(self.frame.remote_type, |each| {
                each.all(self.condition(&context.with_each(each.into()), claim))
            }),
            E::Any(claim) => self.frame.scope.with_bound(self.frame.remote_type, |each| {
                each.any(self.condition(&context.with_each(each.into()), claim))
            }),
            E::Homes(expression) => {
                let written_out = Homes(self.frame.protocol.homes).expression(expression);
                self.condition(context, &written_out)
            }
            E::SetsEqual(a, b) => self.same_members(context, a, b),
            E::SetsDiffer(a, b) => !self.same_members(context, a, b),
            E::Binary(operator, a, b) => {
                let holds: fn(Expr, Expr) -> Expr = match operator {
                    Operator::And => {
                        let a = self.condition(context, a);
                        return a.and(self.condition(context, b));
                    }
                    Operator::Or => {
                        let a = self.condition(context, a);
                        return a.or(self.condition(context, b));
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
            | E::Modulo(..)
            | E::Count(_) => self.number(context, e).is_not(0),
        }
    }

    fn same_members(&self, context: &Context, a: &Set, b: &Set) -> Expr {
        self.frame.scope.with_bound(self.frame.remote_type, |each| {
            let a = self.member(context, a, each.into());
            let b = self.member(context, b, each.into());
            each.all(a.is(b))
        })
    }

    /// Returns the condition that the remote with index `remote` is a member of a set.
    pub fn member(&self, context: &Context, set: &Set, remote: Expr) -> Expr {
        match set {
            Set::Empty => Expr::Bool(false),
            Set::All(_) if !self.frame.protocol.several_tables() => Expr::Bool(true),
            // The kind of a remote follows from its state, so remotes stay symmetric.
            Set::All(kind) => {
                let state = self.remote.state.at(&context.line).at(remote);
                self.kinds().of(state).is(i32::from(kind.0))
            }
            Set::Singleton(expression) => match context.known(expression) {
                Some(index) => remote.is(index),
                None => self.number(context, expression).is(remote + 1),
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

    /// Returns the place of an array's element. `indices` holds one or two expressions.
    pub fn element(&self, context: &Context, array: Name, indices: &[Expression]) -> Place {
        let mut place = self.variable(context, array);
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = self.side_of(context).controller.variables[array.index()].ty
        else {
            return place;
        };
        for (domain, index) in std::iter::once(first_domain)
            .chain(second_domain)
            .zip(indices)
        {
            let index = match domain {
                IndexDomain::Remotes => self.remote_index(context, index),
                IndexDomain::Numbers(_) | IndexDomain::Homes(_) => self.number(context, index),
            };
            place = place.at(index);
        }
        place
    }

    /// The index of the remote that an expression names. If it names none, the index is outside every array, which the
    /// search reports.
    pub fn remote_index(&self, context: &Context, e: &Expression) -> Expr {
        match context.known(e) {
            Some(index) => index,
            None => self.number(context, e) - 1,
        }
    }
}

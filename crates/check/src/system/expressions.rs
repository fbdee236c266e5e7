//! Lowering of controllers' expressions.
//!
//! Values are numbers (see [`super::agents::largest`]), except sets of remotes, which are arrays in variables. A set is
//! never built: an expression tests its members.

use cohkit_engine::model::{Expr, Place};
use cohkit_protocol::controller::{Expression, Operator, Set, Value};
use cohkit_protocol::protocol::{Type, VariableId};
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
            Value::Set(set) => self.sum(|remote| {
                let member = self.member(context, set, remote.into());
                member.then(1 << remote, 0)
            }),
        }
    }

    /// Returns the value of an expression as a number. An expression without meaning in its place rejects the system.
    pub fn number(&self, context: &Context, expression: &Expression) -> Expr {
        use Expression as E;
        match expression {
            E::Constant(constant) => Expr::Int((*constant).into()),
            E::None => Expr::Int(0),
            E::Own | E::Each => match context.known(expression) {
                Some(index) => index + 1,
                None => self.unsupported(context, "names a remote where none is defined"),
            },
            // The home is not among the remotes, so as a sender it is 0.
            E::Sender => match context.known(expression) {
                Some(index) => index + 1,
                None => Expr::Int(0),
            },
            E::State => {
                let positions = self.positions(context.home);
                positions.of(self.state(context))
            }
            E::Variable(variable) => self.variable(context, *variable).into(),
            E::Element(array, indices) => self.element(context, *array, indices).into(),
            E::Home => self.frame.home_of(&context.line),
            E::Field(field) => self.field(context, *field),
            E::Table(table, index) => {
                let index = self.number(context, index);
                self.side_of(context).tables[usize::from(*table)].of(index)
            }
            E::Count(set) => self.sum(|remote| {
                let member = self.member(context, set, remote.into());
                member.as_number()
            }),
            E::Modulo(number, size) => self.number(context, number) % i32::from(*size),
            E::Binary(operator, left, right) => match operator {
                Operator::Add => self.number(context, left) + self.number(context, right),
                Operator::Subtract => self.number(context, left) - self.number(context, right),
                Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual
                | Operator::And
                | Operator::Or => self.condition(context, expression).as_number(),
            },
            E::Homes(over_homes) => {
                let unrolled = Homes(self.frame.protocol.homes).expression(over_homes);
                self.number(context, &unrolled)
            }
            E::In(..)
            | E::SetsEqual(..)
            | E::SetsDiffer(..)
            | E::All(_)
            | E::Any(_)
            | E::Not(_) => self.condition(context, expression).as_number(),
        }
    }

    /// A field of the current message.
    fn field(&self, context: &Context, field: u8) -> Expr {
        match context.fields.get(usize::from(field)) {
            Some(value) => value.clone(),
            None => self.unsupported(context, "reads a field that its event does not have"),
        }
    }

    /// Sum of a term for each remote, by its index.
    fn sum(&self, term: impl Fn(i32) -> Expr) -> Expr {
        let first = term(0);
        (1..self.frame.remotes).fold(first, |sum, remote| sum + term(remote))
    }

    /// Truth value of a condition.
    pub fn condition(&self, context: &Context, expression: &Expression) -> Expr {
        use Expression as E;
        match expression {
            E::Constant(constant) => Expr::Bool(*constant != 0),
            E::Not(negated) => !self.condition(context, negated),
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
            E::Homes(over_homes) => {
                let unrolled = Homes(self.frame.protocol.homes).expression(over_homes);
                self.condition(context, &unrolled)
            }
            E::SetsEqual(a, b) => self.same_members(context, a, b),
            E::SetsDiffer(a, b) => !self.same_members(context, a, b),
            E::Binary(operator, left, right) => {
                self.binary_condition(context, *operator, left, right)
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
            | E::Count(_) => self.number(context, expression).is_not(0),
        }
    }

    /// Truth value of a binary operator. A number is true if it is not 0.
    fn binary_condition(
        &self,
        context: &Context,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Expr {
        let holds: fn(Expr, Expr) -> Expr = match operator {
            Operator::And => {
                let left = self.condition(context, left);
                return left.and(self.condition(context, right));
            }
            Operator::Or => {
                let left = self.condition(context, left);
                return left.or(self.condition(context, right));
            }
            Operator::Equal => |left, right| left.is(right),
            Operator::NotEqual => |left, right| left.is_not(right),
            Operator::Less => |left, right| left.lt(right),
            Operator::LessOrEqual => |left, right| left.le(right),
            Operator::Greater => |left, right| left.gt(right),
            Operator::GreaterOrEqual => |left, right| left.ge(right),
            Operator::Add => |left, right| (left + right).is_not(0),
            Operator::Subtract => |left, right| (left - right).is_not(0),
        };
        let (left, right) = (self.number(context, left), self.number(context, right));
        holds(left, right)
    }

    /// Returns the condition that two sets are equal.
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
            Set::Variable(variable) => self.variable(context, *variable).at(remote).into(),
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
    pub fn element(&self, context: &Context, array: VariableId, indices: &[Expression]) -> Place {
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
    pub fn remote_index(&self, context: &Context, expression: &Expression) -> Expr {
        match context.known(expression) {
            Some(index) => index,
            None => self.number(context, expression) - 1,
        }
    }
}

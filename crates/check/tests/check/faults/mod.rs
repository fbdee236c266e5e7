//! Faults of a lowering, seeded into its input: the model then differs from the controllers that are executed.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Operator, Set, Statement, Target, Value,
};
use cohkit_protocol::protocol::{Home, Protocol};

/// A fault, as a change to each part of a controller.
pub struct Fault {
    pub name: &'static str,
    single: fn(Expression) -> Expression,
    set: fn(Set) -> Set,
    statement: fn(Statement) -> Option<Statement>,
    change_protocol: fn(&mut Protocol),
}

const NONE: Fault = Fault {
    name: "none",
    single: |e| e,
    set: |set| set,
    statement: Some,
    change_protocol: |_| {},
};

/// Faults that a lowering has had or could have.
pub const FAULTS: [Fault; 19] = [
    Fault {
        name: "what is added to a set by += loses the set",
        statement: |s| match s {
            Statement::AssignSet(to, Set::Union(from, _)) if *from == Set::Variable(to) => {
                Some(Statement::AssignSet(to, Set::Empty))
            }
            other => Some(other),
        },
        ..NONE
    },
    Fault {
        name: "what is taken from a set by -= loses the set",
        statement: |s| match s {
            Statement::AssignSet(to, Set::Difference(from, _)) if *from == Set::Variable(to) => {
                Some(Statement::AssignSet(to, Set::Empty))
            }
            other => Some(other),
        },
        ..NONE
    },
    Fault {
        name: "a union is its left side",
        set: |set| match set {
            Set::Union(left, _) => *left,
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "a difference is the other way round",
        set: |set| match set {
            Set::Difference(a, b) => Set::Difference(b, a),
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "< is <=",
        single: |e| match e {
            Expression::Binary(Operator::Less, a, b) => {
                Expression::Binary(Operator::LessOrEqual, a, b)
            }
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "- is +",
        single: |e| match e {
            Expression::Binary(Operator::Subtract, a, b) => Expression::Binary(Operator::Add, a, b),
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "equal sets are different",
        single: |e| match e {
            Expression::SetsEqual(a, b) => Expression::SetsDiffer(a, b),
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "none is in every set",
        single: |e| match e {
            Expression::In(remote, set) => {
                let is_none =
                    Expression::Binary(Operator::Equal, remote.clone(), Box::new(Expression::None));
                let member = Expression::In(remote, set);
                Expression::Binary(Operator::Or, Box::new(is_none), Box::new(member))
            }
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "a field is read as 0",
        single: |e| match e {
            Expression::Field(_) => Expression::Constant(0),
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "and is or",
        single: |e| match e {
            Expression::Binary(Operator::And, a, b) => Expression::Binary(Operator::Or, a, b),
            other => other,
        },
        ..NONE
    },
    Fault {
        name: "nothing is sent to each of a set",
        statement: |s| match s {
            Statement::Send {
                to: Target::Each(_),
                ..
            } => None,
            other => Some(other),
        },
        ..NONE
    },
    Fault {
        name: "messages overtake each other in an order",
        change_protocol: |protocol| protocol.orders.clear(),
        ..NONE
    },
    Fault {
        name: "each sender of a network has a queue of its own",
        change_protocol: |protocol| protocol.networks.clear(),
        ..NONE
    },
    Fault {
        name: "an input queue has room for one message more",
        change_protocol: |protocol| {
            for network in &mut protocol.networks {
                network.capacity = network.capacity.map(|capacity| capacity + 1);
            }
        },
        ..NONE
    },
    Fault {
        name: "a deferred store is forgotten",
        statement: |s| (s != Statement::CommitDeferred).then_some(s),
        ..NONE
    },
    Fault {
        name: "nobody is chosen",
        statement: |s| match s {
            Statement::Choose(to, _) => Some(Statement::Assign(to, Expression::None)),
            other => Some(other),
        },
        ..NONE
    },
    Fault {
        name: "an atomic access is a write",
        change_protocol: |protocol| {
            for rule in &mut protocol.remote.rules {
                if rule.event == Event::Access(Access::Atomic) {
                    rule.event = Event::Access(Access::WritePartial);
                }
            }
        },
        ..NONE
    },
    Fault {
        name: "statements run backwards",
        change_protocol: |protocol| {
            for controller in controllers(protocol) {
                for rule in &mut controller.rules {
                    if let Effect::Take { body, .. } = &mut rule.effect {
                        body.reverse();
                    }
                }
            }
        },
        ..NONE
    },
    Fault {
        name: "the last row of an event is tried first",
        change_protocol: |protocol| {
            for controller in controllers(protocol) {
                controller.rules.reverse();
            }
        },
        ..NONE
    },
];

fn controllers(protocol: &mut Protocol) -> Vec<&mut Controller> {
    match &mut protocol.home {
        Home::Controller(home) => vec![&mut protocol.remote, home],
        Home::Policy(_) => unreachable!("these homes are written as rows"),
    }
}

impl Fault {
    /// The input that a lowering with this fault effectively lowers.
    pub fn seeded(&self, protocol: &Protocol) -> Protocol {
        let mut seeded = protocol.clone();
        for controller in controllers(&mut seeded) {
            for rule in &mut controller.rules {
                rule.guard = rule.guard.take().map(|guard| self.single(guard));
                if let Effect::Take { body, .. } = &mut rule.effect {
                    let statements = std::mem::take(body).into_iter();
                    *body = statements.filter_map(|s| self.statement(s)).collect();
                }
            }
        }
        (self.change_protocol)(&mut seeded);
        seeded
    }

    fn boxed(&self, e: Expression) -> Box<Expression> {
        Box::new(self.single(e))
    }

    fn boxed_set(&self, set: Set) -> Box<Set> {
        Box::new(self.set(set))
    }

    fn single(&self, e: Expression) -> Expression {
        use Expression as E;
        (self.single)(match e {
            E::Count(set) => E::Count(self.boxed_set(*set)),
            E::In(remote, set) => E::In(self.boxed(*remote), self.boxed_set(*set)),
            E::SetsEqual(a, b) => E::SetsEqual(self.boxed_set(*a), self.boxed_set(*b)),
            E::SetsDiffer(a, b) => E::SetsDiffer(self.boxed_set(*a), self.boxed_set(*b)),
            E::Not(a) => E::Not(self.boxed(*a)),
            E::Binary(operator, a, b) => E::Binary(operator, self.boxed(*a), self.boxed(*b)),
            other => other,
        })
    }

    fn set(&self, set: Set) -> Set {
        (self.set)(match set {
            Set::Singleton(one) => Set::Singleton(self.boxed(*one)),
            Set::Union(a, b) => Set::Union(self.boxed_set(*a), self.boxed_set(*b)),
            Set::Difference(a, b) => Set::Difference(self.boxed_set(*a), self.boxed_set(*b)),
            other => other,
        })
    }

    fn statement(&self, statement: Statement) -> Option<Statement> {
        let value = |value| match value {
            Value::Single(e, ty) => Value::Single(self.single(e), ty),
            Value::Set(set) => Value::Set(self.set(set)),
        };
        (self.statement)(match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => Statement::Send {
                message,
                to: match to {
                    Target::Home => Target::Home,
                    Target::HomeAt(to) => Target::HomeAt(self.single(to)),
                    Target::Remote(to) => Target::Remote(self.single(to)),
                    Target::Each(set) => Target::Each(self.set(set)),
                },
                fields: fields.into_iter().map(value).collect(),
            },
            Statement::Assign(to, e) => Statement::Assign(to, self.single(e)),
            Statement::AssignSet(to, set) => Statement::AssignSet(to, self.set(set)),
            other => other,
        })
    }
}

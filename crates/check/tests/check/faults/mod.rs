//! Faults of a lowering, seeded into its input: the model then differs from the controllers that are executed.
//! A test passes if some random protocol exposes each fault as a difference between model and execution.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Operator, Set, Statement, Target, Value,
};
use cohkit_protocol::protocol::{Home, Protocol};

/// A fault, as a change to each part of a protocol. Parts that a fault does not change keep the function of
/// [`NO_FAULT`].
pub struct Fault {
    /// Description of the behaviour of the faulty lowering.
    pub name: &'static str,
    /// Change of an expression, after its parts have been changed.
    expression: fn(Expression) -> Expression,
    /// Change of a set expression, after its parts have been changed.
    set: fn(Set) -> Set,
    /// Change of a statement, after its parts have been changed; `None` drops the statement.
    statement: fn(Statement) -> Option<Statement>,
    /// Change of the whole protocol, after that of its rows.
    change_protocol: fn(&mut Protocol),
}

/// Changes nothing: the base of every fault.
const NO_FAULT: Fault = Fault {
    name: "none",
    expression: |e| e,
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
        ..NO_FAULT
    },
    Fault {
        name: "what is taken from a set by -= loses the set",
        statement: |s| match s {
            Statement::AssignSet(to, Set::Difference(from, _)) if *from == Set::Variable(to) => {
                Some(Statement::AssignSet(to, Set::Empty))
            }
            other => Some(other),
        },
        ..NO_FAULT
    },
    Fault {
        name: "a union is its left side",
        set: |set| match set {
            Set::Union(left, _) => *left,
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "a difference is the other way round",
        set: |set| match set {
            Set::Difference(a, b) => Set::Difference(b, a),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "< is <=",
        expression: |e| match e {
            Expression::Binary(Operator::Less, a, b) => {
                Expression::Binary(Operator::LessOrEqual, a, b)
            }
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "- is +",
        expression: |e| match e {
            Expression::Binary(Operator::Subtract, a, b) => Expression::Binary(Operator::Add, a, b),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "equal sets are different",
        expression: |e| match e {
            Expression::SetsEqual(a, b) => Expression::SetsDiffer(a, b),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "none is in every set",
        expression: |e| match e {
            Expression::In(remote, set) => {
                let is_none =
                    Expression::Binary(Operator::Equal, remote.clone(), Box::new(Expression::None));
                let member = Expression::In(remote, set);
                Expression::Binary(Operator::Or, Box::new(is_none), Box::new(member))
            }
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "a field is read as 0",
        expression: |e| match e {
            Expression::Field(_) => Expression::Constant(0),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "and is or",
        expression: |e| match e {
            Expression::Binary(Operator::And, a, b) => Expression::Binary(Operator::Or, a, b),
            other => other,
        },
        ..NO_FAULT
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
        ..NO_FAULT
    },
    Fault {
        name: "messages overtake each other in an order",
        change_protocol: |protocol| protocol.orders.clear(),
        ..NO_FAULT
    },
    Fault {
        name: "each sender of a network has a queue of its own",
        change_protocol: |protocol| protocol.networks.clear(),
        ..NO_FAULT
    },
    Fault {
        name: "an input queue has room for one message more",
        change_protocol: |protocol| {
            for network in &mut protocol.networks {
                network.capacity = network.capacity.map(|capacity| capacity + 1);
            }
        },
        ..NO_FAULT
    },
    Fault {
        name: "a deferred store is forgotten",
        statement: |s| (s != Statement::CommitDeferred).then_some(s),
        ..NO_FAULT
    },
    Fault {
        name: "nobody is chosen",
        statement: |s| match s {
            Statement::Choose(to, _) => Some(Statement::Assign(to, Expression::None)),
            other => Some(other),
        },
        ..NO_FAULT
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
        ..NO_FAULT
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
        ..NO_FAULT
    },
    Fault {
        name: "the last row of an event is tried first",
        change_protocol: |protocol| {
            for controller in controllers(protocol) {
                controller.rules.reverse();
            }
        },
        ..NO_FAULT
    },
];

fn controllers(protocol: &mut Protocol) -> Vec<&mut Controller> {
    match &mut protocol.home {
        Home::Controller(home) => vec![&mut protocol.remote, home],
        Home::Policy(_) => unreachable!("these homes are written as rows"),
    }
}

impl Fault {
    /// Returns the input that a lowering with this fault effectively lowers.
    pub fn apply(&self, protocol: &Protocol) -> Protocol {
        let mut faulty = protocol.clone();
        for controller in controllers(&mut faulty) {
            for rule in &mut controller.rules {
                rule.guard = rule
                    .guard
                    .take()
                    .map(|guard| self.rewrite_expression(guard));
                if let Effect::Take { body, .. } = &mut rule.effect {
                    let statements = std::mem::take(body).into_iter();
                    *body = statements
                        .filter_map(|s| self.rewrite_statement(s))
                        .collect();
                }
            }
        }
        (self.change_protocol)(&mut faulty);
        faulty
    }

    fn boxed(&self, e: Expression) -> Box<Expression> {
        Box::new(self.rewrite_expression(e))
    }

    fn boxed_set(&self, set: Set) -> Box<Set> {
        Box::new(self.rewrite_set(set))
    }

    fn rewrite_expression(&self, e: Expression) -> Expression {
        use Expression as E;
        (self.expression)(match e {
            E::Count(set) => E::Count(self.boxed_set(*set)),
            E::In(remote, set) => E::In(self.boxed(*remote), self.boxed_set(*set)),
            E::SetsEqual(a, b) => E::SetsEqual(self.boxed_set(*a), self.boxed_set(*b)),
            E::SetsDiffer(a, b) => E::SetsDiffer(self.boxed_set(*a), self.boxed_set(*b)),
            E::Not(a) => E::Not(self.boxed(*a)),
            E::Binary(operator, a, b) => E::Binary(operator, self.boxed(*a), self.boxed(*b)),
            other => other,
        })
    }

    fn rewrite_set(&self, set: Set) -> Set {
        (self.set)(match set {
            Set::Singleton(remote) => Set::Singleton(self.boxed(*remote)),
            Set::Union(a, b) => Set::Union(self.boxed_set(*a), self.boxed_set(*b)),
            Set::Difference(a, b) => Set::Difference(self.boxed_set(*a), self.boxed_set(*b)),
            other => other,
        })
    }

    fn rewrite_statement(&self, statement: Statement) -> Option<Statement> {
        let value = |value| match value {
            Value::Single(e, ty) => Value::Single(self.rewrite_expression(e), ty),
            Value::Set(set) => Value::Set(self.rewrite_set(set)),
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
                    Target::HomeAt(to) => Target::HomeAt(self.rewrite_expression(to)),
                    Target::Remote(to) => Target::Remote(self.rewrite_expression(to)),
                    Target::Each(set) => Target::Each(self.rewrite_set(set)),
                },
                fields: fields.into_iter().map(value).collect(),
            },
            Statement::Assign(to, e) => Statement::Assign(to, self.rewrite_expression(e)),
            Statement::AssignSet(to, set) => Statement::AssignSet(to, self.rewrite_set(set)),
            other => other,
        })
    }
}

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
    expression: |expression| expression,
    set: |set| set,
    statement: Some,
    change_protocol: |_| {},
};

/// Faults that a lowering has had or could have.
pub const FAULTS: [Fault; 19] = [
    Fault {
        name: "`set += e` clears the set",
        statement: |statement| match statement {
            Statement::AssignSet(to, Set::Union(from, _)) if *from == Set::Variable(to) => {
                Some(Statement::AssignSet(to, Set::Empty))
            }
            other => Some(other),
        },
        ..NO_FAULT
    },
    Fault {
        name: "`set -= e` clears the set",
        statement: |statement| match statement {
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
        name: "the operands of a difference are exchanged",
        set: |set| match set {
            Set::Difference(left, right) => Set::Difference(right, left),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "< is <=",
        expression: |expression| match expression {
            Expression::Binary(Operator::Less, left, right) => {
                Expression::Binary(Operator::LessOrEqual, left, right)
            }
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "- is +",
        expression: |expression| match expression {
            Expression::Binary(Operator::Subtract, left, right) => {
                Expression::Binary(Operator::Add, left, right)
            }
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "equal sets are different",
        expression: |expression| match expression {
            Expression::SetsEqual(left, right) => Expression::SetsDiffer(left, right),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "none is in every set",
        expression: |expression| match expression {
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
        expression: |expression| match expression {
            Expression::Field(_) => Expression::Constant(0),
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "and is or",
        expression: |expression| match expression {
            Expression::Binary(Operator::And, left, right) => {
                Expression::Binary(Operator::Or, left, right)
            }
            other => other,
        },
        ..NO_FAULT
    },
    Fault {
        name: "a message to each of a set is dropped",
        statement: |statement| match statement {
            Statement::Send {
                to: Target::Each(_),
                ..
            } => None,
            other => Some(other),
        },
        ..NO_FAULT
    },
    Fault {
        name: "ordered messages overtake each other",
        change_protocol: |protocol| protocol.orders.clear(),
        ..NO_FAULT
    },
    Fault {
        name: "each sender of a network has an input queue of its own",
        change_protocol: |protocol| protocol.networks.clear(),
        ..NO_FAULT
    },
    Fault {
        name: "the capacity of an input queue is larger by one",
        change_protocol: |protocol| {
            for network in &mut protocol.networks {
                network.capacity = network.capacity.map(|capacity| capacity + 1);
            }
        },
        ..NO_FAULT
    },
    Fault {
        name: "a deferred store is not performed",
        statement: |statement| (statement != Statement::CommitDeferred).then_some(statement),
        ..NO_FAULT
    },
    Fault {
        name: "a choice yields `none`",
        statement: |statement| match statement {
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
        name: "statements run in reverse order",
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

/// The controllers of remotes and home, which must be written as rows.
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
                        .filter_map(|statement| self.rewrite_statement(statement))
                        .collect();
                }
            }
        }
        (self.change_protocol)(&mut faulty);
        faulty
    }

    /// Rewrites an operand.
    fn rewrite_operand(&self, operand: Expression) -> Box<Expression> {
        Box::new(self.rewrite_expression(operand))
    }

    /// Rewrites a set that is an operand.
    fn rewrite_set_operand(&self, set: Set) -> Box<Set> {
        Box::new(self.rewrite_set(set))
    }

    /// Changes an expression, from the innermost operands to the whole.
    fn rewrite_expression(&self, expression: Expression) -> Expression {
        use Expression as E;
        (self.expression)(match expression {
            E::Count(set) => E::Count(self.rewrite_set_operand(*set)),
            E::In(remote, set) => E::In(
                self.rewrite_operand(*remote),
                self.rewrite_set_operand(*set),
            ),
            E::SetsEqual(left, right) => E::SetsEqual(
                self.rewrite_set_operand(*left),
                self.rewrite_set_operand(*right),
            ),
            E::SetsDiffer(left, right) => E::SetsDiffer(
                self.rewrite_set_operand(*left),
                self.rewrite_set_operand(*right),
            ),
            E::Not(condition) => E::Not(self.rewrite_operand(*condition)),
            E::Binary(operator, left, right) => E::Binary(
                operator,
                self.rewrite_operand(*left),
                self.rewrite_operand(*right),
            ),
            other => other,
        })
    }

    /// Changes a set, from the innermost operands to the whole.
    fn rewrite_set(&self, set: Set) -> Set {
        (self.set)(match set {
            Set::Singleton(remote) => Set::Singleton(self.rewrite_operand(*remote)),
            Set::Union(left, right) => Set::Union(
                self.rewrite_set_operand(*left),
                self.rewrite_set_operand(*right),
            ),
            Set::Difference(left, right) => Set::Difference(
                self.rewrite_set_operand(*left),
                self.rewrite_set_operand(*right),
            ),
            other => other,
        })
    }

    /// Changes a statement, after its expressions and sets.
    fn rewrite_statement(&self, statement: Statement) -> Option<Statement> {
        let value = |value| match value {
            Value::Single(value, ty) => Value::Single(self.rewrite_expression(value), ty),
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
            Statement::Assign(to, value) => Statement::Assign(to, self.rewrite_expression(value)),
            Statement::AssignSet(to, set) => Statement::AssignSet(to, self.rewrite_set(set)),
            other => other,
        })
    }
}

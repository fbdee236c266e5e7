//! Translation of a home to one whose variables hold no numbers of remotes.
//!
//! * A variable of type `count` becomes the set of the remotes that it counts. `x := count(S)` becomes `x := S`, and
//!   `x := x + 1` and `x := x - 1` in a row for a message add and remove the sender. `x := 1` in a row that sends a
//!   message to one remote becomes the set of this remote. This is exact as long as the sender is not yet, or already,
//!   in the set, and the receiver is a remote: an *obligation*, recorded in a flag that no row resets.
//! * Beside each pointer, *provenance*: the message whose sender the pointer names. It is a ghost that no guard reads.
//! * On request, the *requester*: a ghost pointer to the sender of the message with which the home left its last stable
//!   state. A home that waits for this remote need not name it in a variable of its own.
//!
//! Everything else keeps its meaning, so that the executor of ordinary systems runs the translated home.

use cohkit_diagnostics::Span;
use cohkit_protocol::controller::{
    Controller, Effect, Event, Expression, Initial, Operator, Rule, Set, Statement, Target, Value,
    Variable,
};
use cohkit_protocol::protocol::{MessageId, Protocol, StateId, Type, VariableId};

use crate::blocks::Blocks;
use crate::obstacle::Obstacle;

/// A translated home.
#[derive(Clone, Debug)]
pub(crate) struct LiftedHome {
    /// Variables and rows of the translated home.
    pub(crate) controller: Controller,
    /// Largest number of remotes of equal memberships that some row distinguishes from more, at least 1.
    pub(crate) saturation: usize,
    /// True if a row uses the set of all remotes, so that remotes outside all sets matter.
    pub(crate) uses_all: bool,
    /// Flag of each variable that was a count: it is 1 once the set no longer has the size that the count had.
    pub(crate) obligations: Vec<(VariableId, Obstacle)>,
    /// The requester, if it was added.
    pub(crate) requester: Option<VariableId>,
    /// Blocks of knowledge indices, if the home is constructed from a policy.
    pub(crate) blocks: Option<Blocks>,
}

/// Translates a home; `with_requester` adds the requester.
///
/// # Errors
/// The first construct that the abstraction does not model.
pub(crate) fn lift(
    protocol: &Protocol,
    home: &Controller,
    with_requester: bool,
) -> Result<LiftedHome, Obstacle> {
    let requester = Variable {
        name: "requester in progress".to_string(),
        ty: Type::Remote,
        register: false,
        initial: Initial::Number(0),
        labels: Vec::new(),
        internal: true,
        span: home.span,
    };
    let mut variables = home.variables.clone();
    variables.extend(with_requester.then_some(requester));
    let mut lifter = Lifter {
        home,
        ghosts: vec![None; home.variables.len()],
        requester: with_requester.then_some(VariableId(home.variables.len() as u16)),
        variables,
        obligations: Vec::new(),
        saturation: 1,
        uses_all: false,
        rule: Span::default(),
        receiver: None,
    };
    for (index, variable) in home.variables.iter().enumerate() {
        lifter.lift_variable(protocol, index, variable)?;
    }
    let rules = home.rules.iter().map(|rule| lifter.rule(rule));
    let rules = rules.collect::<Result<Vec<Rule>, Obstacle>>()?;
    // A member that a row chooses leaves one fewer of its memberships behind.
    let choice = usize::from(home.rules.iter().any(Rule::chooses));
    Ok(LiftedHome {
        controller: Controller {
            name: home.name.clone(),
            states: home.states.clone(),
            variables: lifter.variables,
            tables: home.tables.clone(),
            rules,
            locals: home.locals.clone(),
            span: home.span,
        },
        saturation: lifter.saturation + choice,
        uses_all: lifter.uses_all,
        obligations: lifter.obligations,
        requester: lifter.requester,
        blocks: None,
    })
}

/// Statement that records a violated obligation in its flag.
fn violated_if(condition: Expression, flag: VariableId) -> Statement {
    Statement::If {
        condition,
        then: vec![Statement::Assign(flag, Expression::Constant(1))],
        otherwise: Vec::new(),
    }
}

/// The first remote to which a row sends a message that no set of remotes receives.
fn receiver_of(rule: &Rule) -> Option<Expression> {
    let mut receiver = None;
    rule.visit(&mut |statement| {
        if let Statement::Send {
            to: Target::Remote(remote),
            ..
        } = statement
        {
            receiver.get_or_insert_with(|| remote.clone());
        }
    });
    receiver
}

/// Translation in progress.
struct Lifter<'h> {
    /// Home before the translation.
    home: &'h Controller,
    /// For each variable of the home, the flag of its obligation if it is a count, or its provenance if it is a
    /// pointer.
    ghosts: Vec<Option<VariableId>>,
    /// Ghost pointer to the requester, if there is one.
    requester: Option<VariableId>,
    /// Variables of the translated home.
    variables: Vec<Variable>,
    /// Flags of the obligations so far.
    obligations: Vec<(VariableId, Obstacle)>,
    /// See [`LiftedHome::saturation`].
    saturation: usize,
    /// See [`LiftedHome::uses_all`].
    uses_all: bool,
    /// Span of the current row.
    rule: Span,
    /// See [`receiver_of`], for the current row.
    receiver: Option<Expression>,
}

impl Lifter<'_> {
    /// Obstacle: the current row has this construct.
    fn unsupported(&self, construct: &str) -> Obstacle {
        let home = &self.home.name;
        Obstacle::at(
            self.rule,
            format!("a row of {home} has {construct}, which the abstraction does not model"),
        )
    }

    /// Type of a variable before the translation.
    fn ty(&self, variable: VariableId) -> Type {
        self.home.variables[variable.index()].ty
    }

    /// Adds the ghost of a variable, and changes the type of a count.
    fn lift_variable(
        &mut self,
        protocol: &Protocol,
        index: usize,
        variable: &Variable,
    ) -> Result<(), Obstacle> {
        let name = &variable.name;
        if variable.register {
            let reason = format!("the register `{name}` belongs to all lines");
            return Err(Obstacle::at(variable.span, reason));
        }
        let (ghost_name, ghost_type) = match variable.ty {
            Type::Range { .. } | Type::Cycle { .. } | Type::Bool => {
                return match variable.initial {
                    Initial::Number(_) => Ok(()),
                    Initial::All(_) => {
                        let reason = format!("`{name}` begins with the number of remotes");
                        Err(Obstacle::at(variable.span, reason))
                    }
                }
            }
            Type::RemoteSet => return Ok(()),
            Type::Count => {
                if matches!(variable.initial, Initial::Number(number) if number > 0) {
                    let reason = format!("`{name}` begins with a number of unnamed remotes");
                    return Err(Obstacle::at(variable.span, reason));
                }
                self.variables[index].ty = Type::RemoteSet;
                (format!("{name} counts twice"), Type::Bool)
            }
            Type::Remote => {
                let max = protocol.messages.len() as u16;
                (format!("{name} from"), Type::Range { max })
            }
            Type::Home { .. } => {
                let reason = format!("`{name}` names a home");
                return Err(Obstacle::at(variable.span, reason));
            }
            Type::Array { .. } => {
                let reason = format!("`{name}` is an array");
                return Err(Obstacle::at(variable.span, reason));
            }
        };
        let ghost = VariableId(self.variables.len() as u16);
        self.ghosts[index] = Some(ghost);
        if variable.ty == Type::Count {
            let reason = format!("`{name}` does not count each remote once");
            self.obligations
                .push((ghost, Obstacle::at(variable.span, reason)));
        }
        self.variables.push(Variable {
            name: ghost_name,
            ty: ghost_type,
            register: false,
            initial: Initial::Number(0),
            labels: Vec::new(),
            internal: true,
            span: variable.span,
        });
        Ok(())
    }

    /// Translates a row.
    fn rule(&mut self, rule: &Rule) -> Result<Rule, Obstacle> {
        self.rule = rule.span;
        self.receiver = receiver_of(rule);
        match rule.event {
            Event::Access(_) => return Err(self.unsupported("an access")),
            Event::Message(_)
            | Event::Local(_)
            | Event::Unlock
            | Event::MemoryData(_)
            | Event::MemoryDone => {}
        }
        let guard = rule.guard.as_ref();
        let guard = guard.map(|guard| self.expression(guard)).transpose()?;
        let effect = match &rule.effect {
            Effect::Take { body, next } => {
                let mut body = self.statements(body, rule.event)?;
                body.extend(self.requester_after(rule, next.unwrap_or(rule.state)));
                Effect::Take { body, next: *next }
            }
            Effect::Stall => Effect::Stall,
            Effect::Refuse => Effect::Refuse,
            Effect::Never => Effect::Never,
        };
        Ok(Rule {
            state: rule.state,
            event: rule.event,
            guard,
            effect,
            span: rule.span,
        })
    }

    /// Assignment to the requester at the end of a row with this next state.
    fn requester_after(&self, rule: &Rule, next: StateId) -> Option<Statement> {
        let requester = self.requester?;
        let is_stable = |state: StateId| self.home.states[state.index()].is_stable();
        let value = match (is_stable(rule.state), is_stable(next), rule.event) {
            (true, false, Event::Message(_)) => Expression::Sender,
            (false, true, _) => Expression::None,
            (true, false, _) | (true, true, _) | (false, false, _) => return None,
        };
        Some(Statement::Assign(requester, value))
    }

    /// Translates statements of a row for an event.
    fn statements(&mut self, body: &[Statement], event: Event) -> Result<Vec<Statement>, Obstacle> {
        let mut lifted = Vec::new();
        for statement in body {
            self.statement(statement, event, &mut lifted)?;
        }
        Ok(lifted)
    }

    /// Translates a statement, and appends the result to `lifted`.
    fn statement(
        &mut self,
        statement: &Statement,
        event: Event,
        lifted: &mut Vec<Statement>,
    ) -> Result<(), Obstacle> {
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => lifted.push(self.send(*message, to, fields)?),
            Statement::Assign(variable, value) => match self.ty(*variable) {
                Type::Count => self.assign_count(*variable, value, event, lifted)?,
                Type::Remote => {
                    lifted.push(Statement::Assign(*variable, self.expression(value)?));
                    lifted.extend(self.provenance(*variable, value, event));
                }
                Type::Range { .. }
                | Type::Cycle { .. }
                | Type::Bool
                | Type::RemoteSet
                | Type::Home { .. }
                | Type::Array { .. } => {
                    lifted.push(Statement::Assign(*variable, self.expression(value)?));
                }
            },
            Statement::AssignSet(variable, set) => {
                lifted.push(Statement::AssignSet(*variable, self.set(set)?));
            }
            Statement::Choose(variable, set) => {
                lifted.push(Statement::Choose(*variable, self.set(set)?));
                lifted.extend(self.provenance(*variable, &Expression::None, event));
            }
            Statement::If {
                condition,
                then,
                otherwise,
            } => lifted.push(Statement::If {
                condition: self.expression(condition)?,
                then: self.statements(then, event)?,
                otherwise: self.statements(otherwise, event)?,
            }),
            Statement::WriteMemory
            | Statement::DeferStore
            | Statement::CommitDeferred
            | Statement::StartRead
            | Statement::StartWrite
            | Statement::StartStore { .. }
            | Statement::Acknowledge(_)
            | Statement::AcknowledgeUnlock
            | Statement::Done
            | Statement::Retry => lifted.push(statement.clone()),
            Statement::AssignElement(..) | Statement::AssignAll(..) => {
                return Err(self.unsupported("an array"))
            }
            Statement::AssignHomes(..) | Statement::ForHomes { .. } => {
                return Err(self.unsupported("a set of homes"))
            }
            Statement::ForEach { .. } => return Err(self.unsupported("a loop over remotes")),
            Statement::BulkTransition { .. } => {
                return Err(self.unsupported("a transition of all lines"))
            }
        }
        Ok(())
    }

    /// Translates the sending of a message.
    fn send(
        &mut self,
        message: MessageId,
        to: &Target,
        fields: &[Value],
    ) -> Result<Statement, Obstacle> {
        let to = match to {
            Target::Remote(remote) => Target::Remote(self.expression(remote)?),
            Target::Each(set) => Target::Each(self.set(set)?),
            Target::Home | Target::HomeAt(_) => return Err(self.unsupported("a message to a home")),
        };
        let fields = fields.iter().map(|field| match field {
            Value::Single(value, ty) => Ok(Value::Single(self.expression(value)?, *ty)),
            Value::Set(_) => Err(self.unsupported("a set of remotes in a message")),
        });
        Ok(Statement::Send {
            message,
            to,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    /// Statement that records the message whose sender a pointer names from now on.
    fn provenance(
        &self,
        variable: VariableId,
        value: &Expression,
        event: Event,
    ) -> Option<Statement> {
        let ghost = self.ghosts[variable.index()]?;
        let origin = match (value, event) {
            (Expression::Sender, Event::Message(message)) => Expression::Constant(message.0 + 1),
            (Expression::Variable(other), _) => Expression::Variable(self.ghosts[other.index()]?),
            _ => Expression::Constant(0),
        };
        Some(Statement::Assign(ghost, origin))
    }

    /// Translates an assignment to a count.
    fn assign_count(
        &mut self,
        variable: VariableId,
        value: &Expression,
        event: Event,
        lifted: &mut Vec<Statement>,
    ) -> Result<(), Obstacle> {
        if let Some(set) = self.counted_set(value)? {
            lifted.push(Statement::AssignSet(variable, set));
            return Ok(());
        }
        if let (Expression::Constant(1), Some(receiver), Some(ghost)) =
            (value, self.receiver.clone(), self.ghosts[variable.index()])
        {
            let receiver = self.expression(&receiver)?;
            let is_none = Expression::Binary(
                Operator::Equal,
                Box::new(receiver.clone()),
                Box::new(Expression::None),
            );
            lifted.push(violated_if(is_none, ghost));
            let set = Set::Singleton(Box::new(receiver));
            lifted.push(Statement::AssignSet(variable, set));
            return Ok(());
        }
        let (ghost, own_set) = (self.ghosts[variable.index()], Set::Variable(variable));
        let (Expression::Binary(operator, base, step), Event::Message(_), Some(ghost)) =
            (value, event, ghost)
        else {
            return Err(self.uncounted(variable));
        };
        if **base != Expression::Variable(variable) || **step != Expression::Constant(1) {
            return Err(self.uncounted(variable));
        }
        let sender = || Box::new(Set::Singleton(Box::new(Expression::Sender)));
        let is_member = Expression::In(Box::new(Expression::Sender), Box::new(own_set.clone()));
        let (is_wrong, set) = match operator {
            Operator::Add => (is_member, Set::Union(Box::new(own_set), sender())),
            Operator::Subtract => (
                Expression::Not(Box::new(is_member)),
                Set::Difference(Box::new(own_set), sender()),
            ),
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::And
            | Operator::Or => return Err(self.uncounted(variable)),
        };
        lifted.push(violated_if(is_wrong, ghost));
        lifted.push(Statement::AssignSet(variable, set));
        Ok(())
    }

    /// Obstacle: the new value of a count is not the size of a set.
    fn uncounted(&self, variable: VariableId) -> Obstacle {
        let name = &self.home.variables[variable.index()].name;
        self.unsupported(&format!(
            "a value of `{name}` that is not the size of a set"
        ))
    }

    /// Set whose size an expression is; `None` if the expression is no size of a set.
    fn counted_set(&mut self, expression: &Expression) -> Result<Option<Set>, Obstacle> {
        Ok(match expression {
            Expression::Constant(0) => Some(Set::Empty),
            Expression::Count(set) => Some(self.set(set)?),
            Expression::Variable(variable) if self.ty(*variable) == Type::Count => {
                Some(Set::Variable(*variable))
            }
            _ => None,
        })
    }

    /// Translates an expression that is not a size of a set.
    fn expression(&mut self, expression: &Expression) -> Result<Expression, Obstacle> {
        let boxed =
            |lifter: &mut Self, operand: &Expression| lifter.expression(operand).map(Box::new);
        Ok(match expression {
            Expression::Constant(_)
            | Expression::None
            | Expression::Sender
            | Expression::State
            | Expression::Home
            | Expression::Field(_) => expression.clone(),
            Expression::Variable(variable) => match self.ty(*variable) {
                Type::Count => {
                    return Err(self.unsupported("a count that is compared with no constant"))
                }
                Type::Range { .. }
                | Type::Cycle { .. }
                | Type::Bool
                | Type::Remote
                | Type::RemoteSet
                | Type::Home { .. }
                | Type::Array { .. } => expression.clone(),
            },
            Expression::In(remote, set) => {
                Expression::In(boxed(self, remote)?, Box::new(self.set(set)?))
            }
            Expression::SetsEqual(a, b) => {
                Expression::SetsEqual(Box::new(self.set(a)?), Box::new(self.set(b)?))
            }
            Expression::SetsDiffer(a, b) => {
                Expression::SetsDiffer(Box::new(self.set(a)?), Box::new(self.set(b)?))
            }
            Expression::Not(operand) => Expression::Not(boxed(self, operand)?),
            Expression::Modulo(operand, size) => Expression::Modulo(boxed(self, operand)?, *size),
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Expression::Own => return Err(self.unsupported("`self`")),
            Expression::Each | Expression::All(_) | Expression::Any(_) => {
                return Err(self.unsupported("a quantifier over remotes"))
            }
            Expression::Element(..) => return Err(self.unsupported("an array")),
            Expression::Table(..) => return Err(self.unsupported("a table")),
            Expression::Count(_) => {
                return Err(self.unsupported("a count that is compared with no constant"))
            }
            Expression::Homes(_) => return Err(self.unsupported("a set of homes")),
        })
    }

    /// Translates a binary operation. A comparison of a size with a constant limits the numbers that matter.
    fn binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Result<Expression, Obstacle> {
        let is_comparison = match operator {
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => true,
            Operator::Add | Operator::Subtract | Operator::And | Operator::Or => false,
        };
        let binary = |left, right| Expression::Binary(operator, Box::new(left), Box::new(right));
        let is_size = |expression: &Expression, lifter: &Self| match expression {
            Expression::Count(_) => true,
            Expression::Variable(variable) => lifter.ty(*variable) == Type::Count,
            _ => false,
        };
        let size = |lifter: &mut Self, expression: &Expression, bound: u16| {
            lifter.saturation = lifter.saturation.max(usize::from(bound) + 1);
            match lifter.counted_set(expression)? {
                Some(set) => Ok(Expression::Count(Box::new(set))),
                None => Err(lifter.unsupported("a size that is not that of a set")),
            }
        };
        match (left, right) {
            (size_of, Expression::Constant(bound)) if is_comparison && is_size(size_of, self) => {
                Ok(binary(size(self, size_of, *bound)?, right.clone()))
            }
            (Expression::Constant(bound), size_of) if is_comparison && is_size(size_of, self) => {
                Ok(binary(left.clone(), size(self, size_of, *bound)?))
            }
            _ => Ok(binary(self.expression(left)?, self.expression(right)?)),
        }
    }

    /// Translates a set.
    fn set(&mut self, set: &Set) -> Result<Set, Obstacle> {
        let boxed = |lifter: &mut Self, operand: &Set| lifter.set(operand).map(Box::new);
        Ok(match set {
            Set::Empty | Set::Variable(_) => set.clone(),
            Set::All(_) => {
                self.uses_all = true;
                set.clone()
            }
            Set::Singleton(remote) => Set::Singleton(Box::new(self.expression(remote)?)),
            Set::Field(_) => return Err(self.unsupported("a set of remotes in a message")),
            Set::Union(a, b) => Set::Union(boxed(self, a)?, boxed(self, b)?),
            Set::Difference(a, b) => Set::Difference(boxed(self, a)?, boxed(self, b)?),
        })
    }
}

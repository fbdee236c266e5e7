//! Independent interpreter of controller tables.
//!
//! The module deliberately shares no code with [`cohkit_protocol::execute`], which all writers of traces use. A fault
//! there is therefore not repeated here.

use cohkit_protocol::controller::{
    Controller, Effect, Event, Expression, Initial, Operator, Set, Statement, Target,
    Value as FieldValue,
};
use cohkit_protocol::protocol::{MessageId, StateId, Type, VariableId};
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::terms::IndexDomain;
use cohkit_protocol::unroll::Homes;
use cohkit_protocol::value_text::Contents;
use std::collections::BTreeSet;

/// Value of a variable or field. A remote is its number plus 1; `none` is 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number, a Boolean or a remote.
    Scalar(i64),
    /// A set of remotes.
    Set(BTreeSet<i64>),
    /// An array of numbers, row by row if it has two dimensions.
    Array(Vec<i64>),
}

impl Value {
    /// Converts to the contents of a variable of type `ty`, in which the members of sets are numbered from 0.
    pub fn contents(&self, ty: Type) -> Contents {
        match self {
            Value::Scalar(scalar) => Contents::Value(*scalar as u16),
            Value::Set(remotes) => {
                Contents::Members(remotes.iter().map(|&remote| remote as u16 - 1).collect())
            }
            Value::Array(elements) if ty.is_home_set() => {
                let members = (0..).zip(elements).filter(|(_, &inside)| inside != 0);
                Contents::Members(members.map(|(home, _)| home).collect())
            }
            Value::Array(elements) => {
                Contents::Elements(elements.iter().map(|&element| element as u16).collect())
            }
        }
    }

    /// Converts to the encoding of a message field, in which a set has one bit per member.
    pub fn code(&self) -> u16 {
        match self {
            Value::Scalar(scalar) => *scalar as u16,
            Value::Set(remotes) => remotes
                .iter()
                .fold(0, |bits, remote| bits | 1 << (remote - 1)),
            Value::Array(_) => 0,
        }
    }
}

/// An agent: its state, and its variables in declaration order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agent {
    /// Index of the state.
    pub state: usize,
    /// Values of the variables.
    pub values: Vec<Value>,
}

/// Event at an agent, with its context.
pub struct Trigger<'t> {
    /// Event.
    pub event: Event,
    /// Remote that sent the message; `None` for the home or without a message.
    pub sender: Option<usize>,
    /// Remote that processes the event; `None` for the home.
    pub actor: Option<usize>,
    /// Number of the home of the current line. For a message about no line, number of the home that sends or receives
    /// it.
    pub home: usize,
    /// Fields of the message.
    pub fields: &'t [Value],
}

/// A message sent by a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentMessage {
    /// Message type.
    pub message: MessageId,
    /// Receiving remote; `None` for a home.
    pub to: Option<usize>,
    /// Number of the receiving home, if the row specifies it; otherwise it is the home of the line.
    pub home: Option<i64>,
    /// Field values.
    pub fields: Vec<Value>,
}

/// Effect of a row on its environment: a message, or the statement with the same name in [`cohkit_protocol`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum RowEffect {
    /// A message is sent.
    Send(SentMessage),
    /// The home writes the received line, or performs the received write, in memory.
    WriteMemory,
    /// The home defers the received write.
    DeferStore,
    /// The home performs the deferred write.
    CommitDeferred,
    /// The outstanding access completes.
    Done,
    /// A read of memory starts.
    StartRead,
    /// A write of the received line to memory starts.
    StartWrite,
    /// A write of the received bytes to memory starts. `whole` is true if they cover the whole line.
    StartStore { whole: bool },
    /// The local operation with this index is acknowledged.
    Acknowledge(u8),
    /// The device's unlock is acknowledged.
    Unlocked,
    /// All lines of the remote in state `from` change to state `to`.
    BulkTransition { from: StateId, to: StateId },
}

/// Response of a table to an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// No row, or one marked `unreachable`.
    NoRow,
    /// The event stalls.
    Stall,
    /// The event is refused.
    Refuse,
    /// A row applies.
    Row {
        /// State and variables of the agent after the row.
        next_agent: Agent,
        /// Effects of the row, in order.
        effects: Vec<RowEffect>,
    },
}

/// A controller table, with the sizes of the system.
pub struct Table<'c> {
    /// Controller.
    pub controller: &'c Controller,
    /// Kind of each remote.
    pub kinds: &'c [KindId],
    /// Number of homes.
    pub homes: Homes,
}

impl Table<'_> {
    /// An agent in an initial state, with the initial values of its variables.
    pub fn initial_agent(&self, state: StateId) -> Agent {
        let remotes_of_kind = |kind| {
            let remotes = (1..).zip(self.kinds);
            remotes.filter(move |(_, other_kind)| **other_kind == kind)
        };
        let values = self.controller.variables.iter().map(|variable| {
            match (variable.ty, variable.initial) {
                (
                    Type::Array {
                        first_domain,
                        second_domain,
                        ..
                    },
                    Initial::Number(number),
                ) => {
                    let total_elements = self.element_count(first_domain)
                        * second_domain
                            .map_or(1, |second_domain| self.element_count(second_domain));
                    Value::Array(vec![number.into(); total_elements])
                }
                (Type::RemoteSet, Initial::All(kind)) => {
                    Value::Set(remotes_of_kind(kind).map(|(remote, _)| remote).collect())
                }
                (Type::RemoteSet, _) => Value::Set(BTreeSet::new()),
                (_, Initial::All(kind)) => Value::Scalar(remotes_of_kind(kind).count() as i64),
                (_, Initial::Number(number)) => Value::Scalar(number.into()),
            }
        });
        Agent {
            state: state.index(),
            values: values.collect(),
        }
    }

    /// Response to an event. A row that chooses a member of a set takes the first one.
    ///
    /// # Errors
    /// The matching row has no meaning; the text states the reason.
    pub fn respond(&self, agent: &Agent, trigger: &Trigger) -> Result<Response, String> {
        self.respond_choosing(agent, trigger, 0)
            .map(|response| response.unwrap_or(Response::NoRow))
    }

    /// Response to an event, where a row that chooses a member of a set takes the one with number `choice`. `None` if
    /// the set has no such member.
    ///
    /// # Errors
    /// The matching row has no meaning; the text states the reason.
    pub fn respond_choosing(
        &self,
        agent: &Agent,
        trigger: &Trigger,
        choice: usize,
    ) -> Result<Option<Response>, String> {
        for row in &self.controller.rules {
            if row.state.index() != agent.state || row.event != trigger.event {
                continue;
            }
            let mut interpreter = RowInterpreter {
                table: self,
                trigger,
                agent: agent.clone(),
                current_remote: 0,
                choice,
                effects: Vec::new(),
            };
            if let Some(guard) = &row.guard {
                if interpreter.evaluate(guard)? == 0 {
                    continue;
                }
            }
            return Ok(Some(match &row.effect {
                Effect::Never => Response::NoRow,
                Effect::Stall => Response::Stall,
                Effect::Refuse => Response::Refuse,
                Effect::Take { body, next } => {
                    interpreter.execute_all(body)?;
                    let RowInterpreter {
                        agent: mut next_agent,
                        effects,
                        choice,
                        ..
                    } = interpreter;
                    if choice > 0 {
                        return Ok(None);
                    }
                    next_agent.state = next.map_or(agent.state, StateId::index);
                    Response::Row {
                        next_agent,
                        effects,
                    }
                }
            }));
        }
        Ok(Some(Response::NoRow))
    }

    /// Number of elements of an array dimension.
    fn element_count(&self, domain: IndexDomain) -> usize {
        match domain {
            IndexDomain::Remotes => self.kinds.len(),
            IndexDomain::Numbers(element_count) | IndexDomain::Homes(element_count) => {
                element_count.into()
            }
        }
    }

    /// True if the value is in the range of the type.
    fn fits(&self, ty: Type, value: &Value) -> bool {
        let remotes = self.kinds.len() as i64;
        match (ty, value) {
            (Type::Array { of, .. }, Value::Scalar(_)) => self.fits(of.ty(), value),
            (Type::Range { max }, Value::Scalar(scalar)) => (0..=i64::from(max)).contains(scalar),
            (Type::Home { homes }, Value::Scalar(scalar)) => (0..i64::from(homes)).contains(scalar),
            (Type::Cycle { size }, Value::Scalar(scalar)) => (0..i64::from(size)).contains(scalar),
            (Type::Count | Type::Remote, Value::Scalar(scalar)) => (0..=remotes).contains(scalar),
            (Type::Bool, Value::Scalar(scalar)) => (0..=1).contains(scalar),
            (Type::RemoteSet, Value::Set(_)) => true,
            _ => false,
        }
    }
}

/// State of the interpretation of a row, for one agent and one event.
struct RowInterpreter<'r> {
    /// Table that contains the row.
    table: &'r Table<'r>,
    /// Event with its context.
    trigger: &'r Trigger<'r>,
    /// State and variables, with the assignments made so far.
    agent: Agent,
    /// Current remote of a loop or quantifier.
    current_remote: i64,
    /// Number of the member to choose; 0 after the choice.
    choice: usize,
    /// Effects so far, in order.
    effects: Vec<RowEffect>,
}

impl RowInterpreter<'_> {
    /// Executes statements in order; the first error ends the row.
    fn execute_all(&mut self, body: &[Statement]) -> Result<(), String> {
        body.iter()
            .try_for_each(|statement| self.execute(statement))
    }

    /// Executes a statement: updates the variables, and records its effect if it has one. The error names a value
    /// without meaning, such as one out of range.
    fn execute(&mut self, statement: &Statement) -> Result<(), String> {
        let effect = match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => return self.send(*message, to, fields),
            Statement::Assign(variable, value) => {
                let value = Value::Scalar(self.evaluate(value)?);
                return self.assign(variable.index(), value);
            }
            Statement::AssignSet(variable, set) => {
                let value = Value::Set(self.evaluate_set(set)?);
                return self.assign(variable.index(), value);
            }
            Statement::Choose(variable, set) => {
                let member = self.evaluate_set(set)?.into_iter().nth(self.choice);
                if member.is_some() {
                    self.choice = 0;
                }
                return self.assign(variable.index(), Value::Scalar(member.unwrap_or(0)));
            }
            Statement::AssignElement(array, indices, value) => {
                return self.assign_element(*array, indices, value);
            }
            Statement::AssignAll(..) | Statement::AssignHomes(..) | Statement::ForHomes { .. } => {
                let variables = &self.table.controller.variables;
                let unrolled = self.table.homes.statement(statement, variables);
                return self.execute_all(unrolled.as_slice());
            }
            Statement::ForEach { condition, body } => {
                for remote in 1..=self.table.kinds.len() as i64 {
                    self.current_remote = remote;
                    if self.evaluate(condition)? != 0 {
                        self.execute_all(body)?;
                    }
                }
                return Ok(());
            }
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let holds = self.evaluate(condition)? != 0;
                return self.execute_all(if holds { then } else { otherwise });
            }
            Statement::Retry => return Ok(()),
            Statement::BulkTransition { from, to } => RowEffect::BulkTransition {
                from: *from,
                to: *to,
            },
            Statement::WriteMemory => RowEffect::WriteMemory,
            Statement::DeferStore => RowEffect::DeferStore,
            Statement::CommitDeferred => RowEffect::CommitDeferred,
            Statement::Done => RowEffect::Done,
            Statement::StartRead => RowEffect::StartRead,
            Statement::StartWrite => RowEffect::StartWrite,
            Statement::StartStore { whole } => RowEffect::StartStore { whole: *whole },
            Statement::Acknowledge(local) => RowEffect::Acknowledge(*local),
            Statement::AcknowledgeUnlock => RowEffect::Unlocked,
        };
        self.effects.push(effect);
        Ok(())
    }

    /// Position of an element in its array, row by row. Indices of remotes start at 1, because 0 is `none`.
    fn element_position(
        &mut self,
        array: VariableId,
        indices: &[Expression],
    ) -> Result<usize, String> {
        let no_such_element = || "there is no such element".to_string();
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = self.table.controller.variables[array.index()].ty
        else {
            return Err(no_such_element());
        };
        let mut position = 0;
        for (domain, index) in [Some(first_domain), second_domain]
            .into_iter()
            .flatten()
            .zip(indices)
        {
            let first = if domain == IndexDomain::Remotes { 1 } else { 0 };
            let offset =
                usize::try_from(self.evaluate(index)? - first).map_err(|_| no_such_element())?;
            let element_count = self.table.element_count(domain);
            if offset >= element_count {
                return Err(no_such_element());
            }
            position = position * element_count + offset;
        }
        Ok(position)
    }

    /// Assigns a variable, if the value is in its range.
    fn assign(&mut self, variable: usize, value: Value) -> Result<(), String> {
        let declaration = &self.table.controller.variables[variable];
        if !self.table.fits(declaration.ty, &value) {
            return Err(format!("{} cannot become {value:?}", declaration.name));
        }
        self.agent.values[variable] = value;
        Ok(())
    }

    /// Assigns an element of an array, if the value is in the range of its elements.
    fn assign_element(
        &mut self,
        array: VariableId,
        indices: &[Expression],
        value: &Expression,
    ) -> Result<(), String> {
        let position = self.element_position(array, indices)?;
        let value = self.evaluate(value)?;
        let ty = self.table.controller.variables[array.index()].ty;
        let fits = self.table.fits(ty, &Value::Scalar(value));
        let element = match &mut self.agent.values[array.index()] {
            Value::Array(elements) if fits => elements.get_mut(position),
            _ => None,
        };
        *element.ok_or("an element is assigned a value out of its range")? = value;
        Ok(())
    }

    /// Records one message for each receiver.
    fn send(
        &mut self,
        message: MessageId,
        to: &Target,
        fields: &[FieldValue],
    ) -> Result<(), String> {
        let mut values = Vec::new();
        for field in fields {
            values.push(match field {
                FieldValue::Set(set) => Value::Set(self.evaluate_set(set)?),
                FieldValue::Single(value, ty) => {
                    let value = Value::Scalar(self.evaluate(value)?);
                    if !self.table.fits(*ty, &value) {
                        return Err(format!("a field cannot be {value:?}"));
                    }
                    value
                }
            });
        }
        let mut home_number = None;
        let receivers = match to {
            Target::Home => vec![0],
            Target::HomeAt(home) => {
                home_number = Some(self.evaluate(home)?);
                vec![0]
            }
            Target::Remote(remote) => match self.evaluate(remote)? {
                0 => return Err("a message has no receiver".into()),
                remote => vec![remote],
            },
            Target::Each(set) => self.evaluate_set(set)?.into_iter().collect(),
        };
        self.effects.extend(receivers.into_iter().map(|to| {
            RowEffect::Send(SentMessage {
                message,
                to: usize::try_from(to - 1).ok(),
                home: home_number,
                fields: values.clone(),
            })
        }));
        Ok(())
    }

    /// Evaluates a set of remotes, by their numbers plus 1.
    fn evaluate_set(&mut self, set: &Set) -> Result<BTreeSet<i64>, String> {
        let members = |value: Option<&Value>| match value {
            Some(Value::Set(members)) => Ok(members.clone()),
            _ => Err("a set is missing".to_string()),
        };
        Ok(match set {
            Set::Empty => BTreeSet::new(),
            Set::All(kind) => {
                let remotes = (1..).zip(self.table.kinds);
                remotes
                    .filter(|(_, other_kind)| *other_kind == kind)
                    .map(|(remote, _)| remote)
                    .collect()
            }
            Set::Singleton(remote) => {
                let remote = self.evaluate(remote)?;
                (remote != 0).then_some(remote).into_iter().collect()
            }
            Set::Variable(variable) => members(self.agent.values.get(variable.index()))?,
            Set::Field(field) => members(self.trigger.fields.get(usize::from(*field)))?,
            Set::Union(a, b) => &self.evaluate_set(a)? | &self.evaluate_set(b)?,
            Set::Difference(a, b) => &self.evaluate_set(a)? - &self.evaluate_set(b)?,
        })
    }

    /// Evaluates an expression; a Boolean is 0 or 1, a remote is its number plus 1.
    fn evaluate(&mut self, expression: &Expression) -> Result<i64, String> {
        let single_value = |value: Option<&Value>| match value {
            Some(Value::Scalar(scalar)) => Ok(*scalar),
            _ => Err("a value is missing".to_string()),
        };
        let remote = |remote: Option<usize>| remote.map_or(0, |remote| remote as i64 + 1);
        Ok(match expression {
            Expression::Constant(constant) => i64::from(*constant),
            Expression::None => 0,
            Expression::Own => remote(self.trigger.actor),
            Expression::Sender => remote(self.trigger.sender),
            Expression::Each => self.current_remote,
            Expression::State => self.agent.state as i64,
            Expression::Home => self.trigger.home as i64,
            Expression::Variable(variable) => {
                single_value(self.agent.values.get(variable.index()))?
            }
            Expression::Field(field) => single_value(self.trigger.fields.get(usize::from(*field)))?,
            Expression::Element(array, indices) => {
                let position = self.element_position(*array, indices)?;
                match &self.agent.values[array.index()] {
                    Value::Array(elements) => elements.get(position).copied(),
                    _ => None,
                }
                .ok_or("there is no such element")?
            }
            Expression::Table(table, index) => {
                let index = self.evaluate(index)?;
                let values = &self.table.controller.tables[usize::from(*table)].values;
                let value = values
                    .get(index as usize)
                    .ok_or("a table has no such entry")?;
                i64::from(*value)
            }
            Expression::Count(set) => self.evaluate_set(set)?.len() as i64,
            Expression::In(element, set) => {
                let element = self.evaluate(element)?;
                self.evaluate_set(set)?.contains(&element).into()
            }
            Expression::Homes(homes) => self.evaluate(&self.table.homes.expression(homes))?,
            Expression::SetsEqual(a, b) => (self.evaluate_set(a)? == self.evaluate_set(b)?).into(),
            Expression::SetsDiffer(a, b) => (self.evaluate_set(a)? != self.evaluate_set(b)?).into(),
            Expression::All(condition) => (!self.exists_remote(condition, false)?).into(),
            Expression::Any(condition) => self.exists_remote(condition, true)?.into(),
            Expression::Not(condition) => (self.evaluate(condition)? == 0).into(),
            Expression::Modulo(number, size) => self.evaluate(number)? % i64::from(*size),
            Expression::Binary(operator, left, right) => {
                self.evaluate_binary(*operator, left, right)?
            }
        })
    }

    /// Evaluates a binary operator. The right operand may have no meaning if the left one decides the result.
    fn evaluate_binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Result<i64, String> {
        let left = self.evaluate(left)?;
        match (operator, left) {
            (Operator::And, 0) => return Ok(0),
            (Operator::Or, 1) => return Ok(1),
            _ => {}
        }
        let right = self.evaluate(right)?;
        Ok(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Equal => (left == right).into(),
            Operator::NotEqual => (left != right).into(),
            Operator::Less => (left < right).into(),
            Operator::LessOrEqual => (left <= right).into(),
            Operator::Greater => (left > right).into(),
            Operator::GreaterOrEqual => (left >= right).into(),
            Operator::And | Operator::Or => right,
        })
    }

    /// True if the condition has the value `expected` for at least one remote.
    fn exists_remote(&mut self, condition: &Expression, expected: bool) -> Result<bool, String> {
        let outer = self.current_remote;
        let mut exists = false;
        for remote in 1..=self.table.kinds.len() as i64 {
            self.current_remote = remote;
            exists |= (self.evaluate(condition)? != 0) == expected;
        }
        self.current_remote = outer;
        Ok(exists)
    }
}

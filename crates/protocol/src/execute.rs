//! Executes controllers, one event at a time.
//!
//! This is the reference semantics of [`crate::controller`]: the construction runs it to find a home's reachable
//! states, tables are flattened with it, and simulators may memoise it. It models no channels, no memory and no time:
//! an agent's actions are returned as a list of [`Act`]s.

mod homes;
mod intervals;
mod members;
mod values;

use std::borrow::Cow;

use crate::controller::{
    Controller, Effect, Event, Expression, Initial, Operator, Rule, Set, Statement, Target, Value,
    MEMORY_WRITES,
};
use crate::remotes::Remotes;
use crate::terms::{IndexDomain, MessageId, StateId, Type, VariableId};
use members::{is_in, ones, words, Members, WORD_BITS};
pub use values::Changes;
use values::{Registers, Values};

/// State of one agent for one line: its state index and one slot per variable. A [`Type::Array`] has several slots, and
/// a set has one for each 16 possible members. The slots of registers come last.
///
/// Encoding of slots: numbers as they are; a remote as 0 for `none` and its index plus 1 otherwise; a set as bit masks
/// of 16 remotes or homes each; truth values as 0 and 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Configuration {
    /// Index of the current state.
    pub state: u16,
    /// Slots of the variables.
    pub slots: Vec<u16>,
}

/// An event with its context.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// Event that the agent reacts to.
    pub event: Event,
    /// Index of the remote that sent the message; `None` if the home sent it, or for an event without a message.
    pub sender: Option<u16>,
    /// Index of the remote that executes; `None` for a home.
    pub executing_remote: Option<u16>,
    /// Number of the line's home; for a message about no line, of the home that sends or receives it.
    pub home: u16,
    /// Values of the message's fields in the order of their declaration, encoded as in [`Configuration`]. Each field
    /// is one slot, even a set.
    pub fields: &'a [u16],
}

/// Destination of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Receiver {
    /// Home of the line.
    Home,
    /// Home with this number, about no line.
    HomeAt(u16),
    /// Remote with this index.
    Remote(u16),
}

/// Action of an agent on its environment. The caller chooses the representation of message fields.
/// `AcknowledgeUnlock` reports to the device that its unlock is complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Act<Fields = Vec<u16>> {
    /// Send a message. The caller decides in which channel it travels and when it arrives.
    Send {
        message: MessageId,
        to: Receiver,
        fields: Fields,
    },
    /// Write the taken message's line to memory, without latency.
    WriteMemory,
    /// Keep the bytes of the taken write in the line's buffer for deferred bytes.
    DeferStore,
    /// Write the deferred bytes to memory, without latency.
    CommitDeferred,
    /// Complete the pending access of the executing remote, as [`crate::pending_access`] defines.
    Done,
    /// Move all lines of the executing remote that are in state `from` to state `to`.
    BulkTransition {
        from: StateId,
        to: StateId,
    },
    /// Start a memory read; the caller answers with [`Event::MemoryData`].
    StartRead,
    /// Start writing the taken message's line to memory; the caller answers with [`Event::MemoryDone`].
    StartWrite,
    /// Start writing the bytes of the request in progress to memory, `whole` if they cover the line; the caller
    /// answers with [`Event::MemoryDone`].
    StartStore {
        whole: bool,
    },
    /// Report to the device that the local operation with this index into [`Controller::locals`] is complete.
    Acknowledge(u8),
    AcknowledgeUnlock,
}

impl<Fields> Act<Fields> {
    /// Returns the message that the act sends, if any.
    #[inline]
    pub fn sent_message(&self) -> Option<MessageId> {
        match *self {
            Act::Send { message, .. } => Some(message),
            _ => None,
        }
    }
}

impl Act {
    /// Converts the message fields to another representation.
    pub fn with_fields<Fields>(&self, convert: impl FnOnce(&[u16]) -> Fields) -> Act<Fields> {
        match self {
            Act::Send {
                message,
                to,
                fields,
            } => Act::Send {
                message: *message,
                to: *to,
                fields: convert(fields),
            },
            Act::WriteMemory => Act::WriteMemory,
            Act::DeferStore => Act::DeferStore,
            Act::CommitDeferred => Act::CommitDeferred,
            Act::Done => Act::Done,
            Act::BulkTransition { from, to } => Act::BulkTransition {
                from: *from,
                to: *to,
            },
            Act::StartRead => Act::StartRead,
            Act::StartWrite => Act::StartWrite,
            Act::StartStore { whole } => Act::StartStore { whole: *whole },
            Act::Acknowledge(local) => Act::Acknowledge(*local),
            Act::AcknowledgeUnlock => Act::AcknowledgeUnlock,
        }
    }
}

/// Outcome of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No rule applies, or the row is `unreachable`.
    Unexpected,
    /// The event stalls: the caller keeps it and offers it again later.
    Stall,
    /// The local operation is rejected.
    Refuse,
    /// The event was taken.
    Taken {
        /// Index of the rule in [`Controller::rules`].
        rule: usize,
        /// Actions of the rule, in order.
        acts: Vec<Act>,
    },
}

/// Reason why a rule could not be executed: an error of the protocol, not of its environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A value does not fit the variable with this index.
    OutOfRange {
        /// Index of the variable.
        variable: u16,
        /// Value that does not fit.
        value: i32,
    },
    /// A value does not fit the field of this message at this position.
    FieldOutOfRange {
        /// Type of the message.
        message: MessageId,
        /// Position of the field.
        field: usize,
        /// Value that does not fit.
        value: i32,
    },
    /// The receiver of this message is `none`.
    NoReceiver(MessageId),
    /// An intermediate value overflows, or an index or a remote is out of range.
    Arithmetic,
    /// A table has no such entry, or could not compute it.
    Table(u16),
}

/// A rule that could not be executed to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowError {
    /// First fault of the rule, in the order of its statements.
    pub fault: Fault,
    /// Actions before the fault.
    pub acts: Vec<Act>,
    /// Actions of the rest of the rule, as far as it can be executed. They matter because a row waits while a
    /// channel has no capacity for one of its messages, whatever its fault.
    pub later: Vec<Act>,
}

/// Source of the values of [`Expression::Table`].
pub trait Tables {
    /// Returns the entry of a table at an index.
    ///
    /// # Errors
    /// [`Fault::Table`] if there is no such entry.
    fn get(&mut self, table: u16, index: u16) -> Result<u16, Fault>;
}

impl Tables for &Controller {
    fn get(&mut self, table: u16, index: u16) -> Result<u16, Fault> {
        self.tables[table as usize]
            .values
            .get(index as usize)
            .copied()
            .ok_or(Fault::Table(table))
    }
}

/// Number of slots of a variable.
fn slots(ty: Type, remotes: u16) -> usize {
    match ty {
        Type::RemoteSet => words(remotes),
        _ if ty.is_home_set() => words(ty.extent(remotes)[0]),
        _ => ty.extent(remotes).map(usize::from).iter().product(),
    }
}

/// A controller laid out for a number of remotes.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// Rules, states and variables to execute.
    controller: Cow<'a, Controller>,
    /// Number of remotes of all kinds.
    remotes: u16,
    /// Number of remotes of each kind, for initial values.
    remotes_by_kind: Remotes,
    /// For each variable, its first slot.
    first_slots: Vec<usize>,
    /// Number of slots of variables that are not registers.
    line_slot_count: usize,
    /// Number of slots of all variables, registers included.
    slot_count: usize,
    /// Rules by state, sorted by event; rules of one event keep their order.
    rules_by_state: Vec<Vec<(Event, u32)>>,
}

impl<'a> Machine<'a> {
    /// Lays out a controller for this many remotes.
    pub fn new(controller: &'a Controller, remotes: impl Into<Remotes>) -> Self {
        Machine::from_controller(Cow::Borrowed(controller), remotes)
    }

    /// Lays out a borrowed or owned controller.
    pub fn from_controller(controller: Cow<'a, Controller>, remotes: impl Into<Remotes>) -> Self {
        let remotes_by_kind = remotes.into();
        let remotes = remotes_by_kind.total();
        let mut first_slots = vec![0; controller.variables.len()];
        let (mut slot_count, mut line_slot_count) = (0, 0);
        for register in [false, true] {
            let variables = controller.variables.iter().zip(&mut first_slots);
            for (variable, offset) in variables.filter(|(v, _)| v.register == register) {
                *offset = slot_count;
                slot_count += slots(variable.ty, remotes);
            }
            if !register {
                line_slot_count = slot_count;
            }
        }
        let mut rules_by_state = vec![Vec::new(); controller.states.len()];
        for (index, rule) in controller.rules.iter().enumerate() {
            rules_by_state[rule.state.index()].push((rule.event, index as u32));
        }
        rules_by_state.iter_mut().for_each(|rules| rules.sort());
        Machine {
            controller,
            remotes,
            remotes_by_kind,
            first_slots,
            line_slot_count,
            slot_count,
            rules_by_state,
        }
    }

    /// Slots of the registers, which are the same for all lines of an agent.
    pub fn registers(&self) -> std::ops::Range<usize> {
        self.line_slot_count..self.slot_count
    }

    /// The controller that was laid out.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Slot of the variable behind `memory writes`, if the home reads it. The provider of the backing permission sets
    /// it; rows cannot.
    pub fn memory_writes(&self) -> Option<usize> {
        let mut variables = self.controller.variables.iter();
        let index = variables.position(|variable| variable.name == MEMORY_WRITES)?;
        Some(self.slot(index as u16))
    }

    /// Initial configuration: first state and initial values.
    pub fn initial(&self) -> Configuration {
        self.initial_in(StateId(0))
    }

    /// Initial configuration of an agent whose initial state is `state`.
    pub fn initial_in(&self, state: StateId) -> Configuration {
        let mut slots = vec![0; self.slot_count];
        for (index, variable) in self.controller.variables.iter().enumerate() {
            let slot = self.slot(index as u16);
            slots[slot] = match (variable.initial, variable.ty) {
                (Initial::Number(number), ty) => {
                    slots[slot..][..self::slots(ty, self.remotes)].fill(number);
                    continue;
                }
                (Initial::All(kind), Type::RemoteSet) => {
                    let mut members = Members::empty();
                    self.remotes_by_kind
                        .numbers(kind)
                        .for_each(|remote| members.add(remote));
                    members.write_to(&mut slots[slot..][..words(self.remotes)]);
                    continue;
                }
                (Initial::All(kind), _) => self.remotes_by_kind.count(kind),
            };
        }
        let state = state.0;
        Configuration { state, slots }
    }

    /// First slot of a variable.
    pub fn slot(&self, variable: u16) -> usize {
        self.first_slots[variable as usize]
    }

    /// Range of the slots of a variable.
    pub fn slots(&self, variable: u16) -> std::ops::Range<usize> {
        let first = self.slot(variable);
        let ty = self.controller.variables[variable as usize].ty;
        first..first + slots(ty, self.remotes)
    }

    /// Executes the rule for an event. On [`Outcome::Taken`] the configuration is the new one. Otherwise, and on a
    /// fault, its state is unchanged; after a fault its slots may have changed.
    ///
    /// # Errors
    /// [`RowError`], with the fault that makes the rule impossible to execute.
    pub fn step(
        &self,
        configuration: &mut Configuration,
        trigger: Trigger,
        tables: &mut dyn Tables,
    ) -> Result<Outcome, RowError> {
        self.step_choosing(configuration, trigger, tables, 0)
    }

    /// As [`Machine::step`], with a choice: a row that chooses takes the member of its set with this number, counted
    /// from the lowest. If the member or the choice does not exist, a number other than 0 gives [`Outcome::Stall`], and
    /// slots may have changed.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn step_choosing(
        &self,
        configuration: &mut Configuration,
        trigger: Trigger,
        tables: &mut dyn Tables,
        choice: u16,
    ) -> Result<Outcome, RowError> {
        let (line_slots, registers) = configuration.slots.split_at_mut(self.line_slot_count);
        let registers = Registers {
            slots: registers,
            changes: None,
        };
        let mut values = Values {
            line_slots,
            registers,
        };
        let state = &mut configuration.state;
        self.react(state, &mut values, trigger, tables, choice)
    }

    /// As [`Machine::step`], for an agent whose registers are stored separately: the configuration has the slots of the
    /// line only. Changes of registers are recorded, so that neither checking nor undoing them takes time for unchanged
    /// registers.
    ///
    /// # Errors
    /// [`RowError`], with the fault that makes the rule impossible to execute.
    pub fn step_with(
        &self,
        configuration: &mut Configuration,
        (registers, changes): (&mut [u16], &mut Changes),
        trigger: Trigger,
        tables: &mut dyn Tables,
    ) -> Result<Outcome, RowError> {
        let registers = Registers {
            slots: registers,
            changes: Some(changes),
        };
        let line_slots = &mut configuration.slots[..];
        let mut values = Values {
            line_slots,
            registers,
        };
        let state = &mut configuration.state;
        self.react(state, &mut values, trigger, tables, 0)
    }

    /// Executes the first rule of the state whose guard holds, as [`Machine::step_choosing`] describes; a number
    /// `choice` that no row used gives [`Outcome::Stall`].
    fn react(
        &self,
        state: &mut u16,
        values: &mut Values,
        trigger: Trigger,
        tables: &mut dyn Tables,
        choice: u16,
    ) -> Result<Outcome, RowError> {
        let rules = &self.rules_by_state[*state as usize];
        let first = rules.partition_point(|(event, _)| *event < trigger.event);
        let rules = rules[first..].iter();
        for (_, index) in rules.take_while(|(event, _)| *event == trigger.event) {
            let rule: &Rule = &self.controller.rules[*index as usize];
            let mut run = RuleExecution {
                machine: self,
                state: *state,
                values,
                trigger,
                tables,
                each: 0,
                choice,
                acts: Vec::new(),
                fault: None,
            };
            if let Some(guard) = &rule.guard {
                match run.eval(guard) {
                    Ok(0) => continue,
                    Ok(_) => {}
                    Err(fault) => {
                        return Err(RowError {
                            fault,
                            acts: Vec::new(),
                            later: Vec::new(),
                        })
                    }
                }
            }
            return Ok(match &rule.effect {
                Effect::Never => Outcome::Unexpected,
                Effect::Stall => Outcome::Stall,
                Effect::Refuse => Outcome::Refuse,
                Effect::Take { body, next } => {
                    let result = run.execute_body(body);
                    let mut acts = std::mem::take(&mut run.acts);
                    if run.choice > 0 {
                        return Ok(Outcome::Stall);
                    }
                    let aborted = result.err().map(|fault| (fault, acts.len()));
                    if let Some((fault, act_count)) = run.fault.take().or(aborted) {
                        let later = acts.split_off(act_count);
                        return Err(RowError { fault, acts, later });
                    }
                    if let Some(next) = next {
                        *state = next.0;
                    }
                    Outcome::Taken {
                        rule: *index as usize,
                        acts,
                    }
                }
            });
        }
        Ok(Outcome::Unexpected)
    }
}

/// Execution of one rule.
struct RuleExecution<'m, 'a, 's> {
    /// Machine of the executing agent.
    machine: &'m Machine<'a>,
    /// Index of the state before the rule.
    state: u16,
    /// Slots that the rule reads and writes.
    values: &'m mut Values<'s>,
    /// Event and its context.
    trigger: Trigger<'m>,
    /// Tables of [`Expression::Table`].
    tables: &'m mut dyn Tables,
    /// Remote of the current iteration or quantifier, encoded as in [`Configuration`] (index plus 1), or number of the
    /// current home.
    each: u16,
    /// Number of the member that a choice takes; 0 once it has been taken.
    choice: u16,
    /// Actions so far, in order.
    acts: Vec<Act>,
    /// First fault, with the number of actions before it.
    fault: Option<(Fault, usize)>,
}

impl RuleExecution<'_, '_, '_> {
    /// Executes statements. A fault is recorded, and later statements are still executed to find the messages they
    /// send.
    ///
    /// # Errors
    /// A missing entry of a table, because the rest cannot be executed without it.
    fn execute_body(&mut self, statements: &[Statement]) -> Result<(), Fault> {
        for statement in statements {
            match self.execute_statement(statement) {
                Err(fault @ Fault::Table(_)) => return Err(fault),
                Err(fault) => {
                    self.fault.get_or_insert((fault, self.acts.len()));
                }
                // The chosen member does not exist: later statements do not matter.
                Ok(()) if self.choice > 0 && matches!(statement, Statement::Choose(..)) => break,
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Executes one statement. Effects on the environment are appended to `acts`; effects on variables are immediate.
    #[inline]
    fn execute_statement(&mut self, statement: &Statement) -> Result<(), Fault> {
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => self.send(*message, to, fields)?,
            Statement::Assign(variable, value) => {
                let value = self.eval(value)?;
                self.store(variable.0, 0, value)?;
            }
            Statement::AssignSet(variable, set) => self.assign_set(*variable, set)?,
            Statement::Choose(variable, set) => self.choose(*variable, set)?,
            Statement::AssignElement(variable, indices, value) => {
                let element = self.element_offset(*variable, indices)?;
                let value = self.eval(value)?;
                self.store(variable.0, element, value)?;
            }
            Statement::AssignAll(variable, value) => self.assign_all(*variable, value)?,
            Statement::AssignHomes(variable, set) => self.assign_homes(*variable, set)?,
            Statement::ForHomes { set, body } => self.for_homes(set, body)?,
            Statement::ForEach { condition, body } => self.for_each(condition, body)?,
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let branch = if self.eval(condition)? != 0 {
                    then
                } else {
                    otherwise
                };
                self.execute_body(branch)?;
            }
            Statement::WriteMemory => self.acts.push(Act::WriteMemory),
            Statement::DeferStore => self.acts.push(Act::DeferStore),
            Statement::CommitDeferred => self.acts.push(Act::CommitDeferred),
            Statement::Done => self.acts.push(Act::Done),
            Statement::Retry => {}
            // The agent's other lines are not accessible here; the executor applies the transition to them.
            Statement::BulkTransition { from, to } => self.acts.push(Act::BulkTransition {
                from: *from,
                to: *to,
            }),
            Statement::StartRead => self.acts.push(Act::StartRead),
            Statement::StartWrite => self.acts.push(Act::StartWrite),
            Statement::StartStore { whole } => self.acts.push(Act::StartStore { whole: *whole }),
            Statement::Acknowledge(local) => self.acts.push(Act::Acknowledge(*local)),
            Statement::AcknowledgeUnlock => self.acts.push(Act::AcknowledgeUnlock),
        }
        Ok(())
    }

    /// Stores the member of the set that the choice selects; `none` for the first member of an empty set. A selected
    /// member that does not exist leaves the choice and the variable unchanged.
    fn choose(&mut self, variable: VariableId, set: &Set) -> Result<(), Fault> {
        let members = self.eval_set(set)?;
        let member = members.numbers().nth(self.choice.into());
        if let Some(member) = member {
            self.choice = 0;
            self.store(variable.0, 0, i32::from(member) + 1)?;
        } else if self.choice == 0 {
            self.store(variable.0, 0, 0)?;
        }
        Ok(())
    }

    /// Executes statements once for each remote for which the condition holds, in ascending order.
    fn for_each(&mut self, condition: &Expression, body: &[Statement]) -> Result<(), Fault> {
        let mut remote = 1;
        while remote <= u32::from(self.machine.remotes) {
            self.each = remote as u16;
            remote = match self.eval(condition)? {
                0 => self.interval_end(condition),
                _ => {
                    self.execute_body(body)?;
                    remote + 1
                }
            };
        }
        Ok(())
    }

    /// Assigns to a set variable. A union or difference of the variable and one remote changes a single word in
    /// place.
    fn assign_set(&mut self, variable: VariableId, set: &Set) -> Result<(), Fault> {
        let (first, count) = self.set_slots(variable);
        let is_variable = |set: &Set| *set == Set::Variable(variable);
        let single_change = match set {
            Set::Union(left, right) if is_variable(left) => Some((right, true)),
            Set::Difference(left, right) if is_variable(left) => Some((right, false)),
            _ => None,
        };
        if let Some((Set::Singleton(remote), adds)) =
            single_change.map(|(operand, adds)| (&**operand, adds))
        {
            if let Some(remote) = self.eval_remote(remote)? {
                let slot = first + usize::from(remote / WORD_BITS);
                let (word, bit) = (self.values.get(slot), 1 << (remote % WORD_BITS));
                let word = if adds { word | bit } else { word & !bit };
                self.values.set(slot, word);
            }
            return Ok(());
        }
        let members = self.eval_set(set)?;
        self.values.store_set(first, count, &members);
        Ok(())
    }

    /// Sets every element of an array to one value, which is evaluated once.
    fn assign_all(&mut self, variable: VariableId, value: &Expression) -> Result<(), Fault> {
        let ty = self.machine.controller.variables[variable.index()].ty;
        let value = self.eval(value)?;
        let encoded = self.encode(ty, value).ok_or(Fault::OutOfRange {
            variable: variable.0,
            value,
        })?;
        let (first, count) = (
            self.machine.slot(variable.0),
            slots(ty, self.machine.remotes),
        );
        self.values.fill(first, count, encoded);
        Ok(())
    }

    /// First slot and number of slots of a variable that is a set of remotes.
    fn set_slots(&self, variable: VariableId) -> (usize, usize) {
        let first = self.machine.slot(variable.0);
        (first, words(self.machine.remotes))
    }

    /// Appends one action per receiver. The fields are evaluated once, before the receivers.
    fn send(&mut self, message: MessageId, to: &Target, fields: &[Value]) -> Result<(), Fault> {
        let fields = fields
            .iter()
            .enumerate()
            .map(|(field, argument)| match argument {
                // A field is one slot, even if it is a set.
                Value::Set(_) if self.machine.remotes > WORD_BITS => Err(Fault::Arithmetic),
                Value::Set(set) => Ok(self.eval_set(set)?.first()),
                Value::Single(value, ty) => {
                    let value = self.eval(value)?;
                    self.encode(*ty, value).ok_or(Fault::FieldOutOfRange {
                        message,
                        field,
                        value,
                    })
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut push = |to| {
            self.acts.push(Act::Send {
                message,
                to,
                fields: fields.clone(),
            })
        };
        match to {
            Target::Home => push(Receiver::Home),
            Target::HomeAt(home) => {
                let home = u16::try_from(self.eval(home)?).map_err(|_| Fault::Arithmetic)?;
                self.acts.push(Act::Send {
                    message,
                    to: Receiver::HomeAt(home),
                    fields,
                });
            }
            Target::Remote(remote) => {
                let remote = self
                    .eval_remote(remote)?
                    .ok_or(Fault::NoReceiver(message))?;
                let to = Receiver::Remote(remote);
                self.acts.push(Act::Send {
                    message,
                    to,
                    fields,
                });
            }
            Target::Each(set) => {
                for remote in self.eval_set(set)?.numbers() {
                    self.acts.push(Act::Send {
                        message,
                        to: Receiver::Remote(remote),
                        fields: fields.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Offset of an array's element among the slots of the array.
    fn element_offset(
        &mut self,
        variable: VariableId,
        indices: &[Expression],
    ) -> Result<usize, Fault> {
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = self.machine.controller.variables[variable.index()].ty
        else {
            return Err(Fault::Arithmetic);
        };
        let mut element = 0;
        for (domain, index) in std::iter::once(first_domain)
            .chain(second_domain)
            .zip(indices)
        {
            let count = domain.count(self.machine.remotes);
            let index = match domain {
                IndexDomain::Remotes => self.eval_remote(index)?,
                IndexDomain::Numbers(_) | IndexDomain::Homes(_) => {
                    u16::try_from(self.eval(index)?).ok()
                }
            };
            let index = index.filter(|index| *index < count);
            let index = index.ok_or(Fault::Arithmetic)?;
            element = element * usize::from(count) + usize::from(index);
        }
        Ok(element)
    }

    /// Index of the remote that an expression names; `None` for `none`.
    fn eval_remote(&mut self, expression: &Expression) -> Result<Option<u16>, Fault> {
        match self.eval(expression)? {
            0 => Ok(None),
            value => match u16::try_from(value - 1) {
                Ok(index) if index < self.machine.remotes => Ok(Some(index)),
                _ => Err(Fault::Arithmetic),
            },
        }
    }

    /// Stores a value in the slot `element` of a variable; [`Fault::OutOfRange`] if it does not fit.
    fn store(&mut self, variable: u16, element: usize, value: i32) -> Result<(), Fault> {
        let ty = self.machine.controller.variables[variable as usize].ty;
        let encoded = self.encode(ty, value);
        let slot = self.machine.slot(variable) + element;
        let encoded = encoded.ok_or(Fault::OutOfRange { variable, value })?;
        self.values.set(slot, encoded);
        Ok(())
    }

    /// Encodes a value; `None` if it does not fit the type.
    fn encode(&self, ty: Type, value: i32) -> Option<u16> {
        let max = match ty {
            Type::Range { max } => max,
            Type::Cycle { size } => size - 1,
            Type::Home { homes } => homes - 1,
            Type::Count | Type::Remote => self.machine.remotes,
            Type::Bool => 1,
            Type::Array { of, .. } => return self.encode(of.ty(), value),
            Type::RemoteSet => {
                u16::MAX.checked_shr((WORD_BITS - self.machine.remotes.min(WORD_BITS)).into())?
            }
        };
        u16::try_from(value).ok().filter(|value| *value <= max)
    }

    /// First slot's value of a variable.
    fn variable(&self, variable: VariableId) -> u16 {
        self.values.get(self.machine.slot(variable.0))
    }

    /// Value of a field of the current message; [`Fault::Arithmetic`] if the message lacks it.
    fn field(&self, field: u8) -> Result<u16, Fault> {
        let field = self.trigger.fields.get(usize::from(field));
        field.copied().ok_or(Fault::Arithmetic)
    }

    /// Evaluates a set.
    fn eval_set(&mut self, set: &Set) -> Result<Members, Fault> {
        let mut members = Members::empty();
        match set {
            Set::Empty => {}
            Set::All(kind) => self
                .machine
                .remotes_by_kind
                .numbers(*kind)
                .for_each(|remote| members.add(remote)),
            Set::Singleton(remote) => {
                if let Some(remote) = self.eval_remote(remote)? {
                    members.add(remote);
                }
            }
            Set::Variable(variable) => {
                let (first, count) = self.set_slots(*variable);
                members = Members::from_words(self.values.slots(first, count));
            }
            Set::Field(field) => members = Members::from_words(&[self.field(*field)?]),
            Set::Union(a, b) => {
                members = self.eval_set(a)?.combine(&self.eval_set(b)?, |a, b| a | b)
            }
            Set::Difference(a, b) => {
                members = self.eval_set(a)?.combine(&self.eval_set(b)?, |a, b| a & !b)
            }
        }
        Ok(members)
    }

    /// Number of remotes in a set. A variable, with or without one more or less remote, is counted without a copy.
    fn count_members(&mut self, set: &Set) -> Result<u32, Fault> {
        Ok(match set {
            Set::Variable(variable) => {
                let (first, count) = self.set_slots(*variable);
                ones(self.values.slots(first, count))
            }
            Set::Union(base, singleton) if matches!(**singleton, Set::Singleton(_)) => {
                let (count, remote) =
                    (self.count_members(base)?, self.singleton_remote(singleton)?);
                let is_member = self.contains(base, remote)?;
                count + u32::from(remote.is_some() && !is_member)
            }
            Set::Difference(base, singleton) if matches!(**singleton, Set::Singleton(_)) => {
                let (count, remote) =
                    (self.count_members(base)?, self.singleton_remote(singleton)?);
                count - u32::from(self.contains(base, remote)?)
            }
            _ => self.eval_set(set)?.count(),
        })
    }

    /// The remote of a singleton; `None` for `none` and for other sets.
    fn singleton_remote(&mut self, set: &Set) -> Result<Option<u16>, Fault> {
        match set {
            Set::Singleton(remote) => self.eval_remote(remote),
            _ => Ok(None),
        }
    }

    /// Returns true if a remote is in a set; `none` is in no set.
    fn contains(&mut self, set: &Set, remote: Option<u16>) -> Result<bool, Fault> {
        Ok(match set {
            Set::Empty => false,
            Set::All(kind) => {
                let kind_members = self.machine.remotes_by_kind.numbers(*kind);
                remote.is_some_and(|remote| kind_members.contains(&remote))
            }
            Set::Singleton(member) => {
                let member = self.eval_remote(member)?;
                member.is_some() && member == remote
            }
            Set::Variable(variable) => {
                let (first, count) = self.set_slots(*variable);
                let slots = self.values.slots(first, count);
                remote.is_some_and(|remote| is_in(slots, remote))
            }
            Set::Field(field) => {
                let word = self.field(*field)?;
                remote.is_some_and(|remote| is_in(&[word], remote))
            }
            // Both operands are evaluated, so that a fault in either is reported.
            Set::Union(a, b) => self.contains(a, remote)? | self.contains(b, remote)?,
            Set::Difference(a, b) => self.contains(a, remote)? & !self.contains(b, remote)?,
        })
    }

    /// Evaluates an expression. Remotes are encoded as in [`Configuration`], and truth values are 0 and 1.
    fn eval(&mut self, expression: &Expression) -> Result<i32, Fault> {
        let encode_index = |index: Option<u16>| index.map_or(0, |index| i32::from(index) + 1);
        Ok(match expression {
            Expression::Constant(value) => i32::from(*value),
            Expression::None => 0,
            Expression::Own | Expression::Sender => {
                if let Some(changes) = &mut self.values.registers.changes {
                    changes.is_identity_dependent = true;
                }
                encode_index(match expression {
                    Expression::Own => self.trigger.executing_remote,
                    _ => self.trigger.sender,
                })
            }
            Expression::Each => i32::from(self.each),
            Expression::State => i32::from(self.state),
            Expression::Variable(variable) => i32::from(self.variable(*variable)),
            Expression::Home => i32::from(self.trigger.home),
            Expression::Element(variable, indices) => {
                let element = self.element_offset(*variable, indices)?;
                let slot = self.machine.slot(variable.0) + element;
                i32::from(self.values.get(slot))
            }
            Expression::Field(field) => i32::from(self.field(*field)?),
            Expression::Table(table, index) => {
                let index = self.eval(index)?;
                let index = u16::try_from(index).map_err(|_| Fault::Table(*table))?;
                i32::from(self.tables.get(*table, index)?)
            }
            Expression::Count(set) => self.count_members(set)? as i32,
            Expression::In(remote, set) => {
                let remote = self.eval_remote(remote)?;
                i32::from(self.contains(set, remote)?)
            }
            Expression::SetsEqual(a, b) => i32::from(self.eval_set(a)?.equals(&self.eval_set(b)?)),
            Expression::SetsDiffer(a, b) => {
                i32::from(!self.eval_set(a)?.equals(&self.eval_set(b)?))
            }
            Expression::Homes(query) => self.eval_homes(query)?,
            Expression::All(condition) => i32::from(!self.holds_for_some(condition, false)?),
            Expression::Any(condition) => i32::from(self.holds_for_some(condition, true)?),
            Expression::Not(operand) => i32::from(self.eval(operand)? == 0),
            Expression::Modulo(number, size) => self.eval(number)? % i32::from(*size),
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right)?,
        })
    }

    /// Returns true if the condition has this truth value for at least one remote.
    fn holds_for_some(&mut self, condition: &Expression, truth: bool) -> Result<bool, Fault> {
        let outer = self.each;
        let mut is_found = false;
        let mut remote = 1;
        while remote <= u32::from(self.machine.remotes) {
            self.each = remote as u16;
            if (self.eval(condition)? != 0) == truth {
                is_found = true;
                break;
            }
            remote = self.interval_end(condition);
        }
        self.each = outer;
        Ok(is_found)
    }

    /// Applies an operator. `and` and `or` do not evaluate the right operand if the left one decides.
    fn binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Result<i32, Fault> {
        let a = self.eval(left)?;
        match operator {
            Operator::And if a == 0 => return Ok(0),
            Operator::Or if a != 0 => return Ok(1),
            _ => {}
        }
        let b = self.eval(right)?;
        let truth = i32::from;
        Ok(match operator {
            Operator::Add => a.checked_add(b).ok_or(Fault::Arithmetic)?,
            Operator::Subtract => a.checked_sub(b).ok_or(Fault::Arithmetic)?,
            Operator::Equal => truth(a == b),
            Operator::NotEqual => truth(a != b),
            Operator::Less => truth(a < b),
            Operator::LessOrEqual => truth(a <= b),
            Operator::Greater => truth(a > b),
            Operator::GreaterOrEqual => truth(a >= b),
            Operator::And | Operator::Or => truth(b != 0),
        })
    }
}

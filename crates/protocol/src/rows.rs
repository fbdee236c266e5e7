//! Controllers as rows of text, for people: state, event, guard, actions, next state.
//!
//! The rows use the words of the protocol language. Operations that only a constructed home has (memory and local
//! operations) are written in the same style.

use crate::controller::{
    Controller, Effect, Event, Expression, HomeSet, HomeSetQuery, Operator, Rule, Set, Statement,
    Target, Value,
};
use crate::execute::Fault;
use crate::protocol::{End, Message, MessageId, Protocol, Type, VariableId};
use crate::terms::StateId;
use cohkit_diagnostics::Span;
use serde::Serialize;
use std::collections::BTreeSet;

/// A controller as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rows {
    /// Number of states of the controller.
    pub states: usize,
    /// Number of rows that take their event; rows that stall or reject it are not counted.
    pub transitions: usize,
    /// Number of different events.
    pub events: usize,
    /// Rows by state, and for each state in the order in which they are tried.
    pub rows: Vec<Row>,
}

/// A rule as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// State in which the rule applies.
    pub state: String,
    /// Access, message or operation.
    pub event: String,
    /// Guard as text; `None` if the rule has none.
    pub guard: Option<String>,
    /// Actions in order, each as text; the only one of a row that takes nothing is `stall` or `refuse`.
    pub actions: Vec<String>,
    /// Next state, which may be the same; `None` if the event is not taken.
    pub next: Option<String>,
    /// Span of the row; for a constructed row, of the part of the policy that it comes from.
    #[serde(skip)]
    pub span: Span,
}

/// Renders the rows of one of the protocol's controllers. Rows with `unreachable` are left out.
pub fn rows(protocol: &Protocol, controller: &Controller) -> Rows {
    let mut rules: Vec<&Rule> = controller.rules.iter().collect();
    rules.retain(|rule| rule.effect != Effect::Never);
    rules.sort_by_key(|rule| rule.state);
    let taken_rules = rules
        .iter()
        .filter(|rule| matches!(rule.effect, Effect::Take { .. }));
    let events: BTreeSet<Event> = rules.iter().map(|rule| rule.event).collect();
    let renderer = |&rule| RowRenderer {
        protocol,
        controller,
        rule,
    };
    Rows {
        states: controller.states.len(),
        transitions: taken_rules.count(),
        events: events.len(),
        rows: rules.iter().map(|rule| renderer(rule).row()).collect(),
    }
}

/// Name of an event: `store`, `GetM`, `clean_invalidate`, `memory data`.
pub fn event_words(protocol: &Protocol, controller: &Controller, event: Event) -> String {
    match event {
        Event::Access(access) => access.name().to_string(),
        Event::Message(message) => protocol.message(message).name.clone(),
        Event::Local(local) => controller.locals[usize::from(local)].name.clone(),
        Event::Unlock => "unlock".to_string(),
        Event::MemoryData(0) => "memory data".to_string(),
        Event::MemoryData(choice) => format!("memory data, choice {choice}"),
        Event::MemoryDone => "memory done".to_string(),
    }
}

/// Describes in one sentence why a row of an agent could not be executed.
pub fn fault_words(
    agent: &str,
    messages: &[Message],
    controller: &Controller,
    fault: &Fault,
) -> String {
    let reason = match fault {
        Fault::OutOfRange { variable, value } => {
            let name = &controller.variables[usize::from(*variable)].name;
            format!("`{name}` has no room for {value}")
        }
        Fault::FieldOutOfRange {
            message,
            field,
            value,
        } => {
            let message = &messages[message.index()];
            let field = message.fields.get(*field);
            let field = field.map_or("", |field| field.name.as_str());
            format!("`{field}` of {} has no room for {value}", message.name)
        }
        Fault::NoReceiver(message) => {
            format!("{} is sent to `none`", messages[message.index()].name)
        }
        Fault::Arithmetic => "an amount is out of range".to_string(),
        Fault::Table(_) => "a table of the home has no entry for this".to_string(),
    };
    format!("a row of {agent} cannot be executed: {reason}")
}

/// Binding strengths of operators, weakest first. An operand is put in parentheses if it binds no tighter than its
/// context.
mod precedence {
    /// Context of a whole expression, which needs no parentheses.
    pub const LOWEST: u8 = 0;
    /// `or`.
    pub const OR: u8 = 1;
    /// `and`.
    pub const AND: u8 = 2;
    /// `not`.
    pub const NOT: u8 = 3;
    /// `==`, `!=`, `<`, `<=`, `>`, `>=` and `in`, which do not group.
    pub const COMPARISON: u8 = 4;
    /// `+`, `-` and `mod`.
    pub const SUM: u8 = 5;
    /// Names, numbers, calls and sets in braces.
    pub const ATOM: u8 = 9;
}

/// Rule being rendered, with its controller and protocol.
struct RowRenderer<'a> {
    /// Protocol whose names the text uses.
    protocol: &'a Protocol,
    /// Controller that has the rule.
    controller: &'a Controller,
    /// Rule to render.
    rule: &'a Rule,
}

impl RowRenderer<'_> {
    /// Renders the rule.
    fn row(&self) -> Row {
        let state = |index: usize| self.controller.states[index].name.clone();
        let state_index = self.rule.state.index();
        let (actions, next) = match &self.rule.effect {
            Effect::Take { body, next } => {
                let next = next.map_or(state_index, |next| next.index());
                (self.statements(body), Some(state(next)))
            }
            Effect::Stall => (vec!["stall".to_string()], None),
            Effect::Refuse => (vec!["refuse".to_string()], None),
            Effect::Never => (vec!["unreachable".to_string()], None),
        };
        Row {
            state: state(state_index),
            event: self.event(),
            guard: self.rule.guard.as_ref().map(|guard| self.expression(guard)),
            actions,
            next,
            span: self.rule.span,
        }
    }

    /// Name of the rule's event.
    fn event(&self) -> String {
        event_words(self.protocol, self.controller, self.rule.event)
    }

    /// Name of a message.
    fn message(&self, message: MessageId) -> String {
        self.protocol.message(message).name.clone()
    }

    /// Name of a local operation.
    fn local(&self, local: u8) -> String {
        self.controller.locals[usize::from(local)].name.clone()
    }

    /// Name of a variable.
    fn variable(&self, variable: VariableId) -> &str {
        &self.controller.variables[variable.index()].name
    }

    /// Renders statements in order.
    fn statements(&self, body: &[Statement]) -> Vec<String> {
        body.iter()
            .map(|statement| self.statement(statement))
            .collect()
    }

    /// Renders one statement in the words of the language, with nested statements in braces.
    fn statement(&self, statement: &Statement) -> String {
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => self.send(*message, to, fields),
            Statement::Assign(variable, Expression::Modulo(sum, _)) => {
                let operand = match &**sum {
                    Expression::Binary(Operator::Add, _, operand) => operand,
                    other => other,
                };
                format!(
                    "{} += {}",
                    self.variable(*variable),
                    self.expression(operand)
                )
            }
            Statement::Assign(variable, value) => {
                let ty = self.controller.variables[variable.index()].ty;
                format!("{} := {}", self.variable(*variable), self.typed(ty, value))
            }
            Statement::AssignSet(variable, set) => {
                format!(
                    "{} := {}",
                    self.variable(*variable),
                    self.set(set, precedence::LOWEST)
                )
            }
            Statement::Choose(variable, set) => {
                format!(
                    "{} := any {}",
                    self.variable(*variable),
                    self.set(set, precedence::COMPARISON)
                )
            }
            Statement::AssignElement(variable, indices, value) => {
                let element = self.element(*variable, indices);
                format!("{element} := {}", self.expression(value))
            }
            Statement::AssignAll(variable, value) => {
                format!("{} := {}", self.variable(*variable), self.expression(value))
            }
            Statement::AssignHomes(variable, set) => {
                format!(
                    "{} := {}",
                    self.variable(*variable),
                    self.homes(set, precedence::LOWEST)
                )
            }
            Statement::ForHomes { set, body } => format!(
                "for each in {} {{ {} }}",
                self.homes(set, precedence::COMPARISON),
                self.statements(body).join(", ")
            ),
            Statement::ForEach {
                condition: Expression::In(_, set),
                body,
            } => format!(
                "for each in {} {{ {} }}",
                self.set(set, precedence::COMPARISON),
                self.statements(body).join(", ")
            ),
            Statement::ForEach { condition, body } => format!(
                "for each remote with {}: {{ {} }}",
                self.expression(condition),
                self.statements(body).join(", ")
            ),
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let mut text = format!(
                    "if {} {{ {} }}",
                    self.expression(condition),
                    self.statements(then).join(", ")
                );
                if !otherwise.is_empty() {
                    text += &format!(" else {{ {} }}", self.statements(otherwise).join(", "));
                }
                text
            }
            Statement::WriteMemory => "write".to_string(),
            Statement::DeferStore => "defer".to_string(),
            Statement::CommitDeferred => "write deferred".to_string(),
            Statement::Done => "done".to_string(),
            Statement::Retry => "retry".to_string(),
            Statement::BulkTransition { from, to } => {
                let name = |state: &StateId| &self.controller.states[state.index()].name;
                format!("every {} becomes {}", name(from), name(to))
            }
            Statement::StartRead => "read memory".to_string(),
            Statement::StartWrite => "write memory".to_string(),
            Statement::StartStore { whole: true } => "store line".to_string(),
            Statement::StartStore { whole: false } => "store part of line".to_string(),
            Statement::Acknowledge(local) => format!("acknowledge {}", self.local(*local)),
            Statement::AcknowledgeUnlock => "acknowledge unlock".to_string(),
        }
    }

    /// Renders `send MESSAGE (FIELDS) to RECEIVER`. The receiver is left out where there is no choice.
    fn send(&self, message: MessageId, to: &Target, fields: &[Value]) -> String {
        let declared = self.protocol.message(message).fields.iter();
        let fields: Vec<String> = declared
            .zip(fields)
            .map(|(field, value)| {
                let value = match value {
                    Value::Single(value, ty) => self.typed(*ty, value),
                    Value::Set(set) => self.set(set, precedence::LOWEST),
                };
                format!("{} = {value}", field.name)
            })
            .collect();
        let fields = match fields.is_empty() {
            true => String::new(),
            false => format!(" ({})", fields.join(", ")),
        };
        let receiver = match to {
            Target::Home if self.protocol.channel_of(message).to == End::Home => String::new(),
            Target::Home => " to home".to_string(),
            Target::HomeAt(home) => format!(" to {}", self.expression(home)),
            // A constructed home that names a remote by number has only this one.
            Target::Remote(Expression::Constant(_)) => String::new(),
            Target::Remote(to) => format!(" to {}", self.expression(to)),
            Target::Each(to) => format!(" to {}", self.set(to, precedence::LOWEST)),
        };
        format!("send {}{fields}{receiver}", self.message(message))
    }

    /// Renders an expression of this type, so that truth values read as `false` and `true`.
    fn typed(&self, ty: Type, value: &Expression) -> String {
        match (ty, value) {
            (Type::Bool, Expression::Constant(0)) => "false".to_string(),
            (Type::Bool, Expression::Constant(_)) => "true".to_string(),
            _ => self.expression(value),
        }
    }

    /// Renders an expression without surrounding parentheses.
    fn expression(&self, expression: &Expression) -> String {
        self.expression_in(expression, precedence::LOWEST)
    }

    /// Renders an element of an array.
    fn element(&self, variable: VariableId, indices: &[Expression]) -> String {
        let indices = indices
            .iter()
            .map(|index| format!("[{}]", self.expression(index)));
        format!("{}{}", self.variable(variable), indices.collect::<String>())
    }

    /// Renders an expression, in parentheses if it binds no tighter than its context.
    fn expression_in(&self, expression: &Expression, context_precedence: u8) -> String {
        let (text, binding) = match expression {
            Expression::Constant(value) => (value.to_string(), precedence::ATOM),
            Expression::None => ("none".to_string(), precedence::ATOM),
            Expression::Own => ("self".to_string(), precedence::ATOM),
            Expression::Sender => ("sender".to_string(), precedence::ATOM),
            Expression::Each => ("each".to_string(), precedence::ATOM),
            Expression::State => ("state".to_string(), precedence::ATOM),
            Expression::Variable(variable) => {
                (self.variable(*variable).to_string(), precedence::ATOM)
            }
            Expression::Home => ("home".to_string(), precedence::ATOM),
            Expression::Element(variable, indices) => {
                (self.element(*variable, indices), precedence::ATOM)
            }
            Expression::Field(field) => (self.field(*field), precedence::ATOM),
            Expression::Table(table, index) => {
                let name = &self.controller.tables[usize::from(*table)].name;
                (
                    format!("{name}({})", self.expression(index)),
                    precedence::ATOM,
                )
            }
            Expression::Count(set) => (
                format!("count({})", self.set(set, precedence::LOWEST)),
                precedence::ATOM,
            ),
            Expression::Homes(query) => match &**query {
                HomeSetQuery::Count(set) => (
                    format!("count({})", self.homes(set, precedence::LOWEST)),
                    precedence::ATOM,
                ),
                HomeSetQuery::In(home, set) => (
                    format!(
                        "{} in {}",
                        self.expression_in(home, precedence::COMPARISON),
                        self.homes(set, precedence::COMPARISON)
                    ),
                    precedence::COMPARISON,
                ),
                HomeSetQuery::Equal(a, b) => {
                    let (a, b) = (
                        self.homes(a, precedence::COMPARISON),
                        self.homes(b, precedence::COMPARISON),
                    );
                    (format!("{a} == {b}"), precedence::COMPARISON)
                }
            },
            Expression::All(condition) => (
                format!("all({})", self.expression(condition)),
                precedence::ATOM,
            ),
            Expression::Any(condition) => (
                format!("any({})", self.expression(condition)),
                precedence::ATOM,
            ),
            Expression::In(remote, set) => (
                format!(
                    "{} in {}",
                    self.expression_in(remote, precedence::COMPARISON),
                    self.set(set, precedence::COMPARISON)
                ),
                4,
            ),
            Expression::SetsEqual(a, b) => (
                format!(
                    "{} == {}",
                    self.set(a, precedence::COMPARISON),
                    self.set(b, precedence::COMPARISON)
                ),
                precedence::COMPARISON,
            ),
            Expression::SetsDiffer(a, b) => (
                format!(
                    "{} != {}",
                    self.set(a, precedence::COMPARISON),
                    self.set(b, precedence::COMPARISON)
                ),
                precedence::COMPARISON,
            ),
            Expression::Not(condition) => (
                format!("not {}", self.expression_in(condition, precedence::NOT)),
                precedence::NOT,
            ),
            Expression::Modulo(number, size) => (
                format!("{} mod {size}", self.expression_in(number, precedence::SUM)),
                precedence::SUM,
            ),
            Expression::Binary(operator, left, right) => {
                let (sign, binding) = match operator {
                    Operator::Or => ("or", precedence::OR),
                    Operator::And => ("and", precedence::AND),
                    Operator::Equal => ("==", precedence::COMPARISON),
                    Operator::NotEqual => ("!=", precedence::COMPARISON),
                    Operator::Less => ("<", precedence::COMPARISON),
                    Operator::LessOrEqual => ("<=", precedence::COMPARISON),
                    Operator::Greater => (">", precedence::COMPARISON),
                    Operator::GreaterOrEqual => (">=", precedence::COMPARISON),
                    Operator::Add => ("+", precedence::SUM),
                    Operator::Subtract => ("-", precedence::SUM),
                };
                // `and`, `or`, `+` and `-` group to the left; comparisons do not group.
                let left_context = match binding {
                    precedence::COMPARISON => binding,
                    _ => binding - 1,
                };
                (
                    format!(
                        "{} {sign} {}",
                        self.expression_in(left, left_context),
                        self.expression_in(right, binding)
                    ),
                    binding,
                )
            }
        };
        if binding > context_precedence {
            text
        } else {
            format!("({text})")
        }
    }

    /// Renders a set, in parentheses if it binds no tighter than its context.
    fn set(&self, set: &Set, context_precedence: u8) -> String {
        let (sign, left, right) = match set {
            Set::Empty => return "{}".to_string(),
            Set::All(kind) => return self.protocol.kinds[kind.index()].name.clone(),
            Set::Singleton(remote) => return format!("{{ {} }}", self.expression(remote)),
            Set::Variable(variable) => return self.variable(*variable).to_string(),
            Set::Field(field) => return self.field(*field),
            Set::Union(left, right) => ("+", left, right),
            Set::Difference(left, right) => ("-", left, right),
        };
        join_sets(
            self.set(left, precedence::COMPARISON),
            sign,
            self.set(right, precedence::SUM),
            context_precedence,
        )
    }

    /// Renders a set of homes, in parentheses if it binds no tighter than its context.
    fn homes(&self, set: &HomeSet, context_precedence: u8) -> String {
        let (sign, left, right) = match set {
            HomeSet::Empty => return "{}".to_string(),
            HomeSet::Singleton(home) => return format!("{{ {} }}", self.expression(home)),
            HomeSet::Variable(variable) => return self.variable(*variable).to_string(),
            HomeSet::Union(left, right) => ("+", left, right),
            HomeSet::Difference(left, right) => ("-", left, right),
        };
        join_sets(
            self.homes(left, precedence::COMPARISON),
            sign,
            self.homes(right, precedence::SUM),
            context_precedence,
        )
    }

    /// Name of a field of the rule's message.
    fn field(&self, field: u8) -> String {
        let Event::Message(message) = self.rule.event else {
            return format!("field {field}");
        };
        let fields = &self.protocol.message(message).fields;
        fields
            .get(usize::from(field))
            .map_or_else(|| format!("field {field}"), |field| field.name.clone())
    }
}

/// Joins two sets by an operator, in parentheses if that binds no tighter than its context.
fn join_sets(left: String, sign: &str, right: String, context_precedence: u8) -> String {
    match context_precedence < precedence::SUM {
        true => format!("{left} {sign} {right}"),
        false => format!("({left} {sign} {right})"),
    }
}

//! Scopes: the names that rows and expressions of an agent may use, and the agent's table while
//! its rows are resolved.

use super::Names;
use crate::controller::{Controller, Event, Expression, State, Variable};
use crate::policy::LocalPolicy;
use crate::protocol::{End, MessageId, StateId, Type, VariableId};
use crate::remotes::KindId;
use crate::text::ast::Name;
use crate::text::diagnostic::Sink;
use cohkit_diagnostics::Span;
use rustc_hash::FxHashMap;

/// Agent whose rows are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A caching agent of any kind.
    Remote,
    /// A hand-written home.
    Home,
}

impl Side {
    /// Agent in messages to the user.
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Remote => "the remote",
            Side::Home => "the home",
        }
    }
    /// Returns true if the agent may be at this end of a channel.
    pub(super) fn is_end(self, end: End) -> bool {
        end == End::Any
            || end
                == if self == Side::Remote {
                    End::Remote
                } else {
                    End::Home
                }
    }
}

/// Kind of a value. All ranges and counts are numbers; each size of a cycle is a kind of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A number of a range or count.
    Number,
    /// A number of a cycle with this many values.
    Cycle(u16),
    /// A truth value.
    Bool,
    /// A remote or `none`.
    Remote,
    /// The number of a home.
    Home,
    /// A set of remotes.
    Set,
    /// A set of homes.
    HomeSet,
}

impl Kind {
    /// Kind of a value of this type; for an array, of an element.
    pub(super) fn of(ty: Type) -> Kind {
        match ty {
            Type::Range { .. } | Type::Count => Kind::Number,
            Type::Cycle { size } => Kind::Cycle(size),
            Type::Bool => Kind::Bool,
            Type::Remote => Kind::Remote,
            Type::Home { .. } => Kind::Home,
            Type::RemoteSet => Kind::Set,
            Type::Array { .. } if ty.is_home_set() => Kind::HomeSet,
            Type::Array { of, .. } => Kind::of(of.ty()),
        }
    }
    /// Kind in messages to the user, with its article.
    pub(super) fn words(self) -> String {
        match self {
            Kind::Number => "a number".into(),
            Kind::Cycle(size) => format!("a number of `cycle {size}`"),
            Kind::Bool => "a truth value".into(),
            Kind::Remote => "a remote".into(),
            Kind::Home => "a home".into(),
            Kind::HomeSet => "a set of homes".into(),
            Kind::Set => "a set of remotes".into(),
        }
    }
}

/// Names that the expressions of one row may use.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a, 'n> {
    /// Agent of the row.
    pub side: Side,
    /// Kind of remotes of the row; `None` for a home.
    pub kind: Option<KindId>,
    /// Variables and registers of the agent, in order.
    pub variables: &'n Names<'a>,
    /// Index of the first of these variables.
    pub base: u16,
    /// Type of each variable.
    pub types: &'n [Type],
    /// Message whose fields the row may read; `None` for other events.
    pub message: Option<MessageId>,
    /// In a loop, the name of its agent, and whether that is a remote or a home.
    pub each: Option<(Name<'a>, Kind)>,
    /// For each variable, true if it is a register.
    pub registers: &'n [bool],
    /// True if the row is about no line.
    pub lineless: bool,
}

/// Table of an agent, while its rows are resolved.
pub(super) struct AgentTable<'a> {
    /// Agent of the table.
    pub(super) side: Side,
    /// Kind of remotes; `None` for a home.
    pub(super) kind: Option<KindId>,
    /// States of the agent, in order; a split state repeats the name of its origin.
    pub(super) states: Names<'a>,
    /// Index in the controller of the first state, and of the first variable. Not 0 for kinds of
    /// remotes after the first.
    pub(super) base: (u16, u16),
    /// Variables and registers, in order.
    pub(super) variables: Names<'a>,
    /// Type of each variable.
    pub(super) types: Vec<Type>,
    /// For each variable, true if it is a register.
    pub(super) registers: Vec<bool>,
    /// Local operations, one entry per form; empty for a remote.
    pub(super) locals: Vec<LocalPolicy>,
    /// True if the home has `local unlock`.
    pub(super) unlock: bool,
    /// First row without a guard for each state and event.
    pub(super) rows: FxHashMap<(StateId, Event), Span>,
    /// Conditions of the states whose permission is conditional.
    pub(super) permission_conditions: Vec<PermissionCondition>,
    /// Controller built so far.
    pub(super) controller: Controller,
}

impl Scope<'_, '_> {
    /// Index of a variable, given its number in the current table.
    pub fn variable(&self, number: u16) -> VariableId {
        VariableId(self.base + number)
    }
}

impl<'a> AgentTable<'a> {
    /// Finds the state with this name.
    pub(super) fn state(&self, name: Name<'a>, sink: &mut Sink) -> Option<StateId> {
        let state = self.states.find(name, sink)?;
        Some(StateId(self.base.0 + state))
    }

    /// Returns the resolved state; its index counts within the controller.
    pub(super) fn resolved_state(&self, state: StateId) -> &State {
        &self.controller.states[state.index()]
    }

    /// Returns true if the state will be split because its permission is conditional.
    pub(super) fn is_split(&self, state: StateId) -> bool {
        self.permission_conditions
            .iter()
            .any(|condition| condition.state == state)
    }

    /// Returns the resolved variable; its index counts within the controller.
    pub(super) fn variable_at(&self, variable: VariableId) -> &Variable {
        &self.controller.variables[variable.index()]
    }

    /// Adds a state split from one of these; `None` if there are too many.
    pub(super) fn add_state(&mut self, split_state: StateId, state: State) -> Option<StateId> {
        let index = self.controller.states.len();
        let name = self.states.list[usize::from(split_state.0 - self.base.0)];
        let id = (index < usize::from(u16::MAX)).then_some(StateId(index as u16))?;
        self.states.list.push(name);
        self.controller.states.push(state);
        Some(id)
    }

    /// Scope of a row that takes this event. `lineless` is true for a row about no line.
    pub(super) fn scope(&self, event: Event, lineless: bool) -> Scope<'a, '_> {
        let message = if let Event::Message(message) = event {
            Some(message)
        } else {
            None
        };
        Scope {
            side: self.side,
            kind: self.kind,
            base: self.base.1,
            variables: &self.variables,
            types: &self.types,
            message,
            each: None,
            registers: &self.registers,
            lineless,
        }
    }
}

/// Conditions of a state's permission.
pub(super) struct PermissionCondition {
    /// State with the conditional permission.
    pub(super) state: StateId,
    /// Condition of read permission, as a truth value.
    pub(super) reads: Expression,
    /// Condition of write permission, as a truth value.
    pub(super) writes: Expression,
    /// Variables that the conditions read, without duplicates.
    pub(super) variables: Vec<VariableId>,
    /// True if the state holds the line without permission too (`holds`).
    pub(super) holds: bool,
    /// True if the state is declared `dirty`.
    pub(super) dirty: bool,
}

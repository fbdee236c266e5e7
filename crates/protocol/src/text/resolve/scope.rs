//! Context in which rows and their expressions are resolved.

use super::*;
use crate::controller::{Controller, Event, Expression, State, Variable};
use crate::policy::LocalPolicy;
use crate::protocol::{Type, VariableId};
use crate::remotes::KindId;

/// Agent whose rows are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Remote,
    Home,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Remote => "the remote",
            Side::Home => "the home",
        }
    }
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
    Number,
    Cycle(u16),
    Bool,
    Remote,
    Home,
    Set,
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
    pub side: Side,
    /// Kind of remotes of the row.
    pub kind: Option<KindId>,
    pub variables: &'n Names<'a>,
    /// Index of the first of these variables.
    pub base: u16,
    pub types: &'n [Type],
    /// Current message, if any.
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
    pub(super) side: Side,
    /// Kind of remotes; `None` for a home.
    pub(super) kind: Option<KindId>,
    pub(super) states: Names<'a>,
    /// Index of the first state, and of the first variable.
    pub(super) base: (u16, u16),
    pub(super) variables: Names<'a>,
    pub(super) types: Vec<Type>,
    pub(super) registers: Vec<bool>,
    pub(super) locals: Vec<LocalPolicy>,
    pub(super) unlock: bool,
    /// First row without a guard for each state and event.
    pub(super) rows: FxHashMap<(StateId, Event), Span>,
    /// Conditions of the states whose permission is conditional.
    pub(super) permission_conditions: Vec<PermissionCondition>,
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

    /// The resolved state.
    pub(super) fn resolved_state(&self, state: StateId) -> &State {
        &self.controller.states[state.index()]
    }

    /// Returns true if the state will be split because its permission is conditional.
    pub(super) fn is_split(&self, state: StateId) -> bool {
        self.permission_conditions
            .iter()
            .any(|condition| condition.state == state)
    }

    /// The resolved variable.
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
    pub(super) state: StateId,
    pub(super) reads: Expression,
    pub(super) writes: Expression,
    pub(super) variables: Vec<VariableId>,
    /// True if the state holds the line without permission too (`holds`).
    pub(super) holds: bool,
    pub(super) dirty: bool,
}

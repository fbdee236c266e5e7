//! What is known where rows and their expressions are read.

use super::*;
use crate::controller::{Controller, Event, Expression, State, Variable};
use crate::policy::LocalPolicy;
use crate::protocol::{Type, VariableId};
use crate::remotes::KindId;

/// Whose rows are read.
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
    pub(super) fn is(self, end: End) -> bool {
        end == End::Any
            || end
                == if self == Side::Remote {
                    End::Remote
                } else {
                    End::Home
                }
    }
}

/// The type of a value. Ranges and counts are all numbers; each size of a cycle is a type of its own.
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
    /// Of an array, the kind of one of its values.
    pub(super) fn of(ty: Type) -> Kind {
        match ty {
            Type::Range { .. } | Type::Count => Kind::Number,
            Type::Cycle { size } => Kind::Cycle(size),
            Type::Bool => Kind::Bool,
            Type::Remote => Kind::Remote,
            Type::Home { .. } => Kind::Home,
            Type::RemoteSet => Kind::Set,
            Type::Array { .. } if ty.set_of_homes() => Kind::HomeSet,
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

/// What the expressions of one row may speak of.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a, 'n> {
    pub side: Side,
    /// The kind of remotes whose row it is.
    pub kind: Option<KindId>,
    pub variables: &'n Names<'a>,
    /// Of the first of these variables, its index.
    pub base: u16,
    pub types: &'n [Type],
    /// The message at hand.
    pub message: Option<MessageId>,
    /// In a loop, what it calls the agent that it is at, and whether that is a remote or a home.
    pub each: Option<(Name<'a>, Kind)>,
    /// Which of the variables are registers.
    pub registers: &'n [bool],
    /// Whether the row is about no line.
    pub lineless: bool,
}

/// An agent whose rows are being read.
pub(super) struct Reading<'a> {
    pub(super) side: Side,
    /// The kind of remotes, if it is one.
    pub(super) kind: Option<KindId>,
    pub(super) states: Names<'a>,
    /// The index of the first of these states, and of the first variable.
    pub(super) base: (u16, u16),
    pub(super) variables: Names<'a>,
    pub(super) types: Vec<Type>,
    pub(super) registers: Vec<bool>,
    pub(super) locals: Vec<LocalPolicy>,
    pub(super) unlock: bool,
    /// The first row without a guard for each state and event.
    pub(super) rows: FxHashMap<(StateId, Event), Span>,
    /// Of the states whose right depends on variables, on what.
    pub(super) depends: Vec<Depends>,
    pub(super) controller: Controller,
}

impl Scope<'_, '_> {
    /// The variable with this number among those of the table at hand.
    pub fn variable(&self, number: u16) -> VariableId {
        VariableId(self.base + number)
    }
}

impl<'a> Reading<'a> {
    /// The state with this name.
    pub(super) fn state(&self, name: Name<'a>, sink: &mut Sink) -> Option<StateId> {
        let state = self.states.find(name, sink)?;
        Some(StateId(self.base.0 + state))
    }

    /// What is said of a state.
    pub(super) fn about(&self, state: StateId) -> &State {
        &self.controller.states[state.index()]
    }

    /// Whether a state becomes several, as its right depends on variables.
    pub(super) fn is_split(&self, state: StateId) -> bool {
        self.depends.iter().any(|depends| depends.state == state)
    }

    /// What is said of a variable.
    pub(super) fn about_variable(&self, variable: VariableId) -> &Variable {
        &self.controller.variables[variable.index()]
    }

    /// Adds a state that one of these becomes beside others; `None` if there are too many.
    pub(super) fn add_state(&mut self, of: StateId, state: State) -> Option<StateId> {
        let place = self.controller.states.len();
        let name = self.states.list[usize::from(of.0 - self.base.0)];
        let added = (place < usize::from(u16::MAX)).then_some(StateId(place as u16))?;
        self.states.list.push(name);
        self.controller.states.push(state);
        Some(added)
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

/// What the right of a state depends on.
pub(super) struct Depends {
    pub(super) state: StateId,
    pub(super) reads: Expression,
    pub(super) writes: Expression,
    pub(super) variables: Vec<VariableId>,
    /// Whether the text says that the state holds the line in any case.
    pub(super) holds: bool,
    pub(super) dirty: bool,
}

//! States and variables of the agents: one set of all remotes, and one of all homes.

use cohkit_engine::build::{error, when};
use cohkit_engine::model::{Expr, Number, Place, Stmt, TableId, TypeId, VariableId, Violation};
use cohkit_protocol::controller::{Controller, Initial, Variable};
use cohkit_protocol::protocol::{Permission, StateId, Type as ValueType};
use cohkit_protocol::terms::{IndexDomain, VariableId as ValueId};
use std::cell::Cell;
use std::rc::Rc;

use super::context::Context;
use super::frame::Frame;
use super::options::SystemError;

/// One side of the protocol in the model: all remotes, or all homes.
pub(super) struct Side<'p> {
    /// Controller that the agents execute.
    pub controller: &'p Controller,
    /// The enumeration of its states.
    pub states: TypeId,
    /// Its current state, per line (and remote).
    pub state: VariableId,
    /// Its variables by their index in the controller, per line (and remote); registers without the line.
    pub variables: Vec<VariableId>,
    /// Tables of the controller, by their index there.
    pub tables: Vec<TableId>,
    /// Permission of each state, as [`permission_code`] gives it.
    pub permission: TableId,
    /// Per state, true if it is stable.
    pub stable: TableId,
}

impl<'p> Side<'p> {
    /// Declares the states and variables of all agents of a controller. `name` begins the names of the variables;
    /// `home` is true for homes.
    fn new(frame: &Frame<'p>, controller: &'p Controller, name: &str, home: bool) -> Side<'p> {
        let scope = &frame.scope;
        let labels = controller.states.iter().map(|state| state.name.as_str());
        let states = scope.enumeration(&format!("{name}_state"), labels);
        let declare = |name: String, element: TypeId, register: bool| {
            let ty = match (register, home) {
                (true, false) => scope.array(&name, frame.remote_type, element),
                (true, true) => frame.per_home(&name, element),
                (false, true) => scope.array(&name, frame.line_type, element),
                (false, false) => frame.per_remote(&name, element),
            };
            scope.state(name, ty)
        };
        let state = declare(format!("{name}_state"), states, false);
        let variables = controller.variables.iter().map(|declared| {
            let element = variable_type(frame, declared);
            if declared.ty == ValueType::Remote {
                scope.add_optional(element);
            }
            let variable = declare(
                format!("{name}_{}", declared.name),
                element,
                declared.register,
            );
            // With several kinds of remotes, the name already contains the kind.
            let spoken_name = match declared.name.contains('.') {
                true => declared.name.clone(),
                false => format!("{name}.{}", declared.name),
            };
            scope.with_builder(|build| build.set_spoken_name(variable, spoken_name));
            variable
        });
        let variables = variables.collect();
        let tables = controller.tables.iter().map(|table| {
            let largest = table.values.iter().copied().max().unwrap_or(0);
            let index = scope.range("index", 0, table.values.len() as i32 - 1);
            let result = scope.range("result", 0, i32::from(largest));
            let values = table.values.iter().map(|&value| value.into());
            scope.table(&table.name, index, result, values)
        });
        let tables = tables.collect();
        let permissions = scope.range("permission", 0, 2);
        let codes = controller
            .states
            .iter()
            .map(|state| permission_code(state.permission));
        let permission = scope.table(format!("{name}_permission"), states, permissions, codes);
        let stable = (controller.states.iter()).map(|state| i32::from(state.is_stable()));
        Side {
            controller,
            states,
            state,
            variables,
            tables,
            permission,
            stable: scope.table(format!("{name}_stable"), states, TypeId::BOOL, stable),
        }
    }
}

/// The agents of a system.
pub(super) struct Agents<'p> {
    /// Fixed parts of the system.
    pub(super) frame: Rc<Frame<'p>>,
    /// All remotes, of all kinds.
    pub remote: Side<'p>,
    /// All homes.
    pub home: Side<'p>,
    /// Table with the number of each state, for remotes and home; `None` until an expression needs it.
    positions: [Cell<Option<TableId>>; 2],
    /// Table with the kind of remotes of each state; `None` until an expression needs it.
    kinds: Cell<Option<TableId>>,
    /// Table with a power of two for each remote; `None` until an expression needs it.
    powers: Cell<Option<TableId>>,
}

impl<'p> Agents<'p> {
    /// Declares the states and variables of all agents.
    pub fn new(frame: &Rc<Frame<'p>>, home: &'p Controller) -> Agents<'p> {
        let remote = &frame.protocol.remote;
        Agents {
            remote: Side::new(frame, remote, &remote.name, false),
            home: Side::new(frame, home, &frame.home_name, true),
            frame: frame.clone(),
            positions: Default::default(),
            kinds: Cell::default(),
            powers: Cell::default(),
        }
    }

    /// Returns the homes if `home` is true, otherwise the remotes.
    pub fn side(&self, home: bool) -> &Side<'p> {
        if home {
            &self.home
        } else {
            &self.remote
        }
    }

    /// The side of the agent that executes the row.
    pub fn side_of(&self, context: &Context) -> &Side<'p> {
        self.side(context.home)
    }

    /// The state of the agent that executes the row.
    pub fn state(&self, context: &Context) -> Place {
        context.part(self.side_of(context).state)
    }

    /// The place of a variable.
    pub fn variable(&self, context: &Context, name: ValueId) -> Place {
        let side = self.side_of(context);
        let variable = side.variables[name.index()];
        match (
            side.controller.variables[name.index()].register,
            &context.remote,
        ) {
            (false, _) => context.part(variable),
            (true, Some(remote)) => variable.at(remote),
            (true, None) => self.frame.part_of_home(variable, &context.line),
        }
    }

    /// The table that numbers the states of one side, for expressions that read the state as a number.
    pub fn positions(&self, home: bool) -> TableId {
        declared_once(&self.positions[usize::from(home)], || {
            let side = self.side(home);
            let count = side.controller.states.len() as i32;
            let result = self.frame.scope.range("position", 0, count - 1);
            (self.frame.scope).table("position", side.states, result, 0..count)
        })
    }

    /// The table with the kind of remotes that each state belongs to.
    pub fn kinds(&self) -> TableId {
        declared_once(&self.kinds, || {
            let protocol = self.frame.protocol;
            let last = protocol.kinds.len() as i32 - 1;
            let result = self.frame.scope.range("kind", 0, last);
            let states = (0..self.remote.controller.states.len() as u16).map(StateId);
            let values = states.map(|state| i32::from(protocol.kind_of(state).0));
            (self.frame.scope).table("kind", self.remote.states, result, values)
        })
    }

    /// The table of powers of two, one for each remote.
    pub fn powers(&self) -> TableId {
        declared_once(&self.powers, || {
            let remotes = self.frame.remotes;
            let result = self.frame.scope.range("power", 1, 1 << (remotes - 1));
            let values = (0..remotes).map(|remote| 1 << remote);
            (self.frame.scope).table("power", self.frame.remote_type, result, values)
        })
    }

    /// Returns the condition that the agent is in one of these states, indices into the controller's states.
    pub fn is_in(&self, context: &Context, states: &[usize]) -> Expr {
        let (side, state) = (self.side_of(context), self.state(context));
        let is_state = |&index: &usize| state.clone().is(side.states.nth(index as u32));
        Expr::disjunction(states.iter().map(is_state))
    }

    /// Initializes the states and variables of a line. Values that are the first of their type need no statement.
    pub fn initialize_line(&self, line: Expr) -> Vec<Stmt> {
        let mut out = Vec::new();
        for number in 0..self.frame.remotes_by_kind.total() {
            let (kind, _) = self.frame.remotes_by_kind.kind(number);
            let initial = self.frame.protocol.kinds[kind.index()].initial;
            if initial.index() > 0 {
                let place = self.remote.state.at(&line).at(i32::from(number));
                out.push(place.set(self.remote.states.nth(initial.index() as u32)));
            }
        }
        for home in [false, true] {
            let variables = (0..)
                .map(ValueId)
                .zip(&self.side(home).controller.variables);
            for (name, Variable { initial, ty, .. }) in variables {
                if *initial == Initial::Number(0) {
                    continue;
                }
                let initialize = |remote: Option<VariableId>| {
                    let context = Context::new(&line, remote.map(Expr::from));
                    self.initialize_variable(self.variable(&context, name), *initial, *ty)
                };
                match home {
                    true => out.extend(initialize(None)),
                    false => out.push(
                        self.frame
                            .for_each_remote(|remote| initialize(Some(remote))),
                    ),
                }
            }
        }
        out
    }

    /// Initializes one agent's variable.
    fn initialize_variable(&self, place: Place, initial: Initial, ty: ValueType) -> Vec<Stmt> {
        match (initial, ty) {
            (
                Initial::Number(number),
                ValueType::Array {
                    first_domain,
                    second_domain,
                    ..
                },
            ) => {
                let number = i32::from(number);
                let domains: Vec<IndexDomain> =
                    std::iter::once(first_domain).chain(second_domain).collect();
                self.set_every_element(place, &domains, &|place| place.set(number))
            }
            (Initial::Number(number), _) => vec![place.set(i32::from(number))],
            (Initial::All(kind), ValueType::RemoteSet) => {
                let members = self.frame.remotes_by_kind.numbers(kind).map(i32::from);
                members
                    .map(|number| place.clone().at(number).set(true))
                    .collect()
            }
            (Initial::All(kind), _) => {
                vec![place.set(i32::from(self.frame.remotes_by_kind.count(kind)))]
            }
        }
    }

    /// One statement for every element of an array.
    fn set_every_element(
        &self,
        place: Place,
        domains: &[IndexDomain],
        set: &dyn Fn(Place) -> Stmt,
    ) -> Vec<Stmt> {
        match domains {
            [] => vec![set(place)],
            [IndexDomain::Remotes, rest @ ..] => vec![self
                .frame
                .for_each_remote(|remote| self.set_every_element(place.at(remote), rest, set))],
            [IndexDomain::Numbers(count) | IndexDomain::Homes(count), rest @ ..] => {
                (0..i32::from(*count))
                    .flat_map(|index| self.set_every_element(place.clone().at(index), rest, set))
                    .collect()
            }
        }
    }

    /// Error: a row does something that has no meaning in its place.
    pub fn unsupported_expression(&self, action: &str, context: &Context) -> SystemError {
        let agent = &self.side_of(context).controller.name;
        SystemError::Invalid(format!("a row of {agent} {action}"))
    }

    /// Records that an expression has no meaning in its place, so that the system is rejected. Returns a placeholder.
    pub fn unsupported(&self, context: &Context, action: &str) -> Expr {
        let error = self.unsupported_expression(action, context);
        self.frame.scope.reject(error);
        Expr::Int(0)
    }

    /// Violation: an agent has no row for the event, or its row cannot be executed. `describe` describes it with the
    /// name of the agent. For a remote, the name is that of its state's kind.
    pub fn unexpected_message_error(
        &self,
        context: &Context,
        describe: &dyn Fn(&str) -> String,
    ) -> Vec<Stmt> {
        let violation =
            |agent: &str| error(Violation::new("no unexpected message", describe(agent)));
        let kinds = &self.frame.protocol.kinds;
        if context.home || kinds.len() == 1 {
            return vec![violation(&self.side(context.home).controller.name)];
        }
        let state = self.state(context);
        let kind = self.kinds().of(state);
        let kinds = kinds.iter().zip(0..);
        kinds
            .map(|(remote_kind, number)| {
                when(kind.clone().is(number), vec![violation(&remote_kind.name)])
            })
            .collect()
    }
}

/// Returns a table that is declared when it is first needed.
fn declared_once(table: &Cell<Option<TableId>>, declare: impl FnOnce() -> TableId) -> TableId {
    let declared = table.get().unwrap_or_else(declare);
    table.set(Some(declared));
    declared
}

/// Returns the type of one agent's variable: a number, an array, or a truth value for each remote if it is a set.
fn variable_type(frame: &Frame, variable: &Variable) -> TypeId {
    let scope = &frame.scope;
    let largest = largest(variable.ty, frame.remotes);
    match variable.ty {
        ValueType::RemoteSet => scope.array(&variable.name, frame.remote_type, TypeId::BOOL),
        ValueType::Array {
            first_domain,
            second_domain,
            ..
        } => {
            let mut ty = scope.range(&variable.name, 0, largest);
            for (dimension, domain) in [Some(first_domain), second_domain]
                .into_iter()
                .enumerate()
                .rev()
            {
                let index = match domain {
                    None => continue,
                    Some(IndexDomain::Remotes) => frame.remote_type,
                    Some(IndexDomain::Homes(homes)) => {
                        scope.range("home", 0, Number::from(homes) - 1)
                    }
                    Some(IndexDomain::Numbers(size)) => {
                        let second = ["", "2"][dimension];
                        let index = format!("{}_index{second}", variable.name);
                        scope.range(&index, 0, Number::from(size) - 1)
                    }
                };
                ty = scope.array(&variable.name, index, ty);
            }
            ty
        }
        _ => scope.range(&variable.name, 0, largest),
    }
}

/// Returns the largest code of a value. Values are numbers in the model: a remote is its index plus 1, `none` is 0,
/// and true is 1. In a message a set of remotes is the sum of the members' powers of two.
pub(super) fn largest(ty: ValueType, remotes: i32) -> i32 {
    match ty.single() {
        ValueType::Range { max } => max.into(),
        ValueType::Home { homes } => i32::from(homes) - 1,
        ValueType::Cycle { size } => i32::from(size) - 1,
        ValueType::Count | ValueType::Remote => remotes,
        ValueType::Bool => 1,
        ValueType::RemoteSet => (1 << remotes) - 1,
        // A single element of an array is no array.
        ValueType::Array { .. } => 0,
    }
}

/// Returns the number that stands for a permission in the model: none 0, read 1, write 2.
pub(super) fn permission_code(permission: Permission) -> i32 {
    match permission {
        Permission::None => 0,
        Permission::Read => 1,
        Permission::Write => 2,
    }
}

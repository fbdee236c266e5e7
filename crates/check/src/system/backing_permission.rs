//! The backing permission of each line: the permission that an outer level grants to the home.

use cohkit_engine::build::assert;
use cohkit_engine::model::{Expr, Stmt, VariableId, Violation};
use cohkit_protocol::controller::MEMORY_WRITES;
use cohkit_protocol::protocol::{MessageId, Permission};
use cohkit_protocol::terms::VariableId as ValueId;
use cohkit_system::hierarchy;
use cohkit_system::state::WRITE_WITHOUT_PERMISSION;
use std::rc::Rc;

use super::agents::{permission_code, Agents};
use super::context::Context;
use super::flows::Direction;

/// The backing permission, if the model has an outer level.
pub(super) struct BackingPermission<'p> {
    /// Variables of the home, among them `memory writes`.
    agents: Rc<Agents<'p>>,
    /// State variable; `None` if the model has no outer level.
    granted: Option<Granted>,
}

/// State variable of the backing permission.
struct Granted {
    /// Granted permission per line, as [`permission_code`] gives it.
    permission: VariableId,
    /// Per message, the permission that the home needs before it consumes it. Indexed by [`MessageId`].
    needs: Vec<Permission>,
}

impl<'p> BackingPermission<'p> {
    /// Declares the permission, if there is an outer level.
    pub fn new(agents: &Rc<Agents<'p>>) -> BackingPermission<'p> {
        let frame = &agents.frame;
        let granted = frame.options.parent_any.then(|| {
            let permission = frame.scope.range("permission", 0, 2);
            let per_line = frame.scope.array("granted", frame.line_type, permission);
            let needs = |message| hierarchy::required_permission(frame.protocol, message);
            Granted {
                permission: frame.scope.state("memory_granted", per_line),
                needs: frame.protocol.message_ids().map(needs).collect(),
            }
        });
        BackingPermission {
            agents: agents.clone(),
            granted,
        }
    }

    /// True if an outer level owns the memory.
    pub fn exists(&self) -> bool {
        self.granted.is_some()
    }

    /// Returns the backing permission of a line: 0, 1 or 2, as [`permission_code`] gives it. `None`
    /// without an outer level.
    pub fn of(&self, line: &Expr) -> Option<Expr> {
        Some(self.granted.as_ref()?.permission.at(line).into())
    }

    /// Returns the permission that the home needs before it consumes a message; none without an outer
    /// level.
    pub fn needs(&self, message: MessageId) -> Permission {
        let granted = self.granted.as_ref();
        granted.map_or(Permission::None, |granted| granted.needs[message.index()])
    }

    /// True if the home's backing permission allows it to consume a message.
    pub fn admits(&self, message: MessageId, direction: Direction, line: &Expr) -> Expr {
        match (self.of(line), self.needs(message)) {
            (Some(permission), needs)
                if direction == Direction::ToHome && needs != Permission::None =>
            {
                permission.ge(permission_code(needs))
            }
            _ => Expr::Bool(true),
        }
    }

    /// Asserts that the home may write its memory. `None` without an outer level.
    pub fn may_write(&self, line: &Expr) -> Option<Stmt> {
        let permission = self.of(line)?;
        let violation = Violation::new("inclusion", WRITE_WITHOUT_PERMISSION);
        Some(assert(
            violation,
            permission.is(permission_code(Permission::Write)),
        ))
    }

    /// True if the home has any permission to the memory of a line.
    pub fn is_any(&self, line: &Expr) -> Expr {
        match self.of(line) {
            Some(permission) => permission.gt(0),
            None => Expr::Bool(true),
        }
    }

    /// Changes the permission of a line.
    pub fn set(&self, line: &Expr, to: Permission) -> Vec<Stmt> {
        let granted = self.granted.iter();
        let set = granted.map(|granted| granted.permission.at(line).set(permission_code(to)));
        set.chain(self.set_memory_writes(line, to == Permission::Write))
            .collect()
    }

    /// Sets the variable `memory writes`, if guards of the home read it and there is backing permission.
    pub fn set_memory_writes(&self, line: &Expr, writes: bool) -> Option<Stmt> {
        self.granted.as_ref()?;
        let mut variables = self.agents.home.controller.variables.iter();
        let index = variables.position(|variable| variable.name == MEMORY_WRITES)?;
        let context = Context::new(line, None);
        let place = self.agents.variable(&context, ValueId(index as u16));
        Some(place.set(i32::from(writes)))
    }
}

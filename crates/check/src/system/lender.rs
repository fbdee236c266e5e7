//! Steps of the backing permission, as defined by [`cohkit_system::world`]: when it rises, and when it falls.

use cohkit_protocol::controller::MEMORY_WRITES;
use cohkit_protocol::protocol::{MessageId, Right};
use cohkit_protocol::terms::VariableId as ValueId;
use cohkit_system::world::{EXCEEDS_BACKING_PERMISSION, WRITE_WITHOUT_PERMISSION};

use super::layout::{ends, lock, right_code, Direction, Storage, System};
use super::SystemError;
use cohkit_engine::build::assert;
use cohkit_engine::model::{Expr, Rule, Stmt, VariableId, Violation};

impl System<'_> {
    /// Backing permission of a line: 0, 1 or 2. `None` if the memory has no outer level.
    fn backing_permission_of(&self, line: &Expr) -> Option<Expr> {
        let permission = self.backing_permission.as_ref()?;
        Some(permission.right.at(line).into())
    }

    /// True if the home's backing permission allows it to consume a message.
    pub fn is_admitted(&self, message: MessageId, direction: Direction, line: &Expr) -> Expr {
        match (&self.backing_permission, direction) {
            (Some(permission), Direction::ToHome) => {
                let needs = permission.needs[message.index()];
                match needs {
                    Right::None => Expr::Bool(true),
                    _ => Expr::from(permission.right.at(line)).ge(right_code(needs)),
                }
            }
            _ => Expr::Bool(true),
        }
    }

    /// Asserts that the home may write its memory.
    pub fn may_write(&self, line: &Expr) -> Option<Stmt> {
        let right = self.backing_permission_of(line)?;
        let violation = Violation::new("inclusion", WRITE_WITHOUT_PERMISSION);
        Some(assert(violation, right.is(right_code(Right::Write))))
    }

    /// Sets the variable `memory writes`, if guards of the home read it and there is backing permission.
    pub fn set_memory_writes(&mut self, line: &Expr, writes: bool) -> Option<Stmt> {
        self.backing_permission.as_ref()?;
        let mut variables = self.home.controller.variables.iter();
        let index = variables.position(|variable| variable.name == MEMORY_WRITES)?;
        let context = Self::context(true, line, None);
        let place = self.variable(&context, ValueId(index as u16));
        Some(place.set(i32::from(writes)))
    }

    /// True if the device may request a local operation. An outer level does so only to revoke permission, one
    /// operation at a time.
    pub fn may_request_operation(&self, local: usize, line: &Expr) -> Expr {
        let operation = &self.home.controller.locals[local];
        let (Some(right), Some(device)) = (self.backing_permission_of(line), self.device) else {
            return Expr::Bool(true);
        };
        if !operation.locks {
            return Expr::Bool(false);
        }
        let open = device.lock.at(line).is(device.locks.nth(lock::NONE));
        let free = device.accepted.at(line).is(0).and(open);
        free.and(right.gt(right_code(operation.ensures)))
    }

    /// Adds the invariant that no remote has more permission than the home has to its memory.
    pub fn add_inclusion_invariant(&mut self) {
        if self.backing_permission.is_none() {
            return;
        }
        let holds = self.for_all_lines(|system, line| {
            let backing_right = system.backing_permission_of(line).unwrap_or(Expr::Int(2));
            let (right, state) = (system.remote.right, system.remote.state.at(line));
            system.with_bound(system.remote_type, |_, r| {
                r.all(right.of(state.at(r)).le(backing_right))
            })
        });
        self.build.invariant(
            Violation::new("inclusion", EXCEEDS_BACKING_PERMISSION),
            holds,
        );
    }

    /// True if the home has any permission to the memory of a line.
    pub fn has_backing_permission(&self, line: &Expr) -> Expr {
        match self.backing_permission_of(line) {
            Some(right) => right.gt(0),
            None => Expr::Bool(true),
        }
    }

    /// True if a request that may arrive next needs this permission or a higher one.
    fn any_request_needs(&mut self, line: &Expr, right: Right) -> Expr {
        let needs = |system: &Self, message: MessageId| {
            let permission = system.backing_permission.as_ref();
            permission.map_or(Right::None, |permission| permission.needs[message.index()])
        };
        let mut is_needed = Expr::Bool(false);
        for flow in 0..self.flows.len() {
            let (message, direction) = (self.flows[flow].message, self.flows[flow].direction);
            if direction != Direction::ToHome || needs(self, message) < right {
                continue;
            }
            let in_flow = self.with_bound(self.remote_type, |system, from| {
                let sender = Expr::from(from);
                let is_waiting = match system.flows[flow].storage {
                    Storage::Counted(variable) => {
                        let place = ends(variable.at(line), Some(&sender), None);
                        let is_waiting = system.count_cells(flow, place).gt(0);
                        let ends = (Some(&sender), None);
                        is_waiting.and(system.has_no_predecessor(message, direction, line, ends))
                    }
                    Storage::Queued(queue, label) => {
                        let place = system.queue_at(queue, line, Some(&sender), None);
                        let head = place.field("slot").at(0);
                        let queue = &system.queues[queue];
                        let is_kind = head.clone().field("kind").is(queue.kinds.nth(label));
                        is_kind.and(queue.about(&head, line))
                    }
                };
                from.any(is_waiting)
            });
            is_needed = is_needed.or(in_flow);
        }
        is_needed
    }

    /// Adds the steps of the outer level. The permission rises while a request waits for it, and falls under a lock.
    /// Others write a line without permission.
    pub fn lender_steps(&mut self) -> Result<(), SystemError> {
        let Some(permission) = &self.backing_permission else {
            return Ok(());
        };
        let right = permission.right;
        let Some(device) = self.device else {
            let description = "the outer level owns the memory, but the home has no local operation that gives up the permission";
            return Err(SystemError::Meaningless(description.into()));
        };
        let l = self.parameter("l", self.line_type);
        let line = Expr::from(l);
        let has_permission = |of: Right| Expr::from(right.at(l)).is(right_code(of));
        let lock_state = device.lock.at(l);
        let locked = |label: u32| lock_state.clone().is(device.locks.nth(label));
        let (reads, writes) = (
            self.any_request_needs(&line, Right::Read),
            self.any_request_needs(&line, Right::Write),
        );
        let waits = has_permission(Right::None)
            .and(reads)
            .or(has_permission(Right::Read).and(writes));
        let can_rise_to = |to: Right| {
            waits
                .clone()
                .and(Expr::from(right.at(l)).lt(right_code(to)))
        };
        let (write_locked, any_locked) = (
            locked(lock::WRITE),
            locked(lock::WRITE).or(locked(lock::READ)),
        );
        let revocations = [
            (
                "revokes the permission",
                Right::None,
                (!has_permission(Right::None)).and(write_locked),
            ),
            (
                "downgrades the permission to read",
                Right::Read,
                has_permission(Right::Write).and(any_locked),
            ),
        ];
        for (action, to) in [
            ("grants read permission", Right::Read),
            ("grants write permission", Right::Write),
        ] {
            let can_rise = can_rise_to(to);
            let mut body = vec![self.note_action(device.agent, &line, action, true)];
            body.push(
                self.memory
                    .at(l)
                    .set(Expr::from(self.memory.at(l)).or(has_permission(Right::None))),
            );
            body.extend(self.set_backing_permission(&line, to));
            self.add_outer_level_rule(action, l, (can_rise, body), false);
        }
        for (action, to, guard) in revocations {
            let mut body = vec![self.note_action(device.agent, &line, action, true)];
            if to == Right::None {
                body.push(self.memory.at(l).set(false));
            }
            body.extend(self.set_backing_permission(&line, to));
            self.add_outer_level_rule(action, l, (guard, body), true);
        }
        let changes = self.has_other_current_copy(&line, None);
        let mut body = vec![self.note_action(device.agent, &line, "another agent writes", true)];
        body.extend(self.mark_copies_stale(&line, true));
        self.add_outer_level_rule(
            "another agent writes",
            l,
            (has_permission(Right::None).and(changes), body),
            true,
        );
        Ok(())
    }

    fn set_backing_permission(&mut self, line: &Expr, to: Right) -> Vec<Stmt> {
        let mut out = Vec::new();
        if let Some(permission) = &self.backing_permission {
            out.push(permission.right.at(line).set(right_code(to)));
        }
        out.extend(self.set_memory_writes(line, to == Right::Write));
        out
    }

    fn add_outer_level_rule(
        &mut self,
        action: &str,
        line: VariableId,
        (guard, body): (Expr, Vec<Stmt>),
        spontaneous: bool,
    ) {
        self.build.rule(Rule {
            name: format!("lender {action}"),
            parameters: vec![line],
            guard,
            body,
            spontaneous,
            priority: 0,
        });
    }
}

//! Effects of rows: statements of controllers, and writes.

use cohkit_engine::build::{assert, choose, when};
use cohkit_engine::model::{Expr, Stmt, Violation};
use cohkit_protocol::controller::{Local, Statement};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Carries, Permission, StateId};
use cohkit_protocol::unroll::Homes;
use cohkit_system::agent::PARTIAL_WRITE_TO_STALE_COPY;
use cohkit_system::plan::CompletionEffect;

use super::agents::{permission_code, Agents};
use super::charts::Act;
use super::context::Context;
use super::copies::Copies;
use super::device::lock;
use super::execution::Execution;
use super::frame::Frame;
use super::layout::Layout;
use super::memory::{slot, Slot};
use super::options::SystemError;
use super::stores::PendingStores;

/// Text of charts for a write that was outstanding, at the moment at which it is performed. The trace checker knows it.
const PERFORMS: &str = "performs the write";

/// Lowering of the statements of rows to effects on a system's variables.
pub(super) struct Effects<'s, 'p> {
    /// All components of the system.
    pub(super) layout: &'s Layout<'p>,
    /// Fixed parts of the system, from `layout`.
    pub(super) frame: &'s Frame<'p>,
    /// States and variables of agents, from `layout`.
    pub(super) agents: &'s Agents<'p>,
    /// Pending stores, from `layout`.
    pub(super) stores: &'s PendingStores<'p>,
    /// Copies of the lines, from `layout`.
    pub(super) copies: &'s Copies<'p>,
}

impl<'s, 'p> Effects<'s, 'p> {
    /// Creates the lowering for a system.
    pub fn new(layout: &'s Layout<'p>) -> Effects<'s, 'p> {
        Effects {
            layout,
            frame: &layout.frame,
            agents: &layout.agents,
            stores: &layout.stores,
            copies: &layout.copies,
        }
    }

    /// Lowers statements in order. `execution` holds the values that one statement passes on to the next.
    ///
    /// # Errors
    /// A statement has no meaning in its place.
    pub fn statements(
        &self,
        execution: &mut Execution,
        body: &[Statement],
    ) -> Result<Vec<Stmt>, SystemError> {
        let mut out = Vec::new();
        for statement in body {
            self.statement(execution, statement, &mut out)?;
        }
        Ok(out)
    }

    /// Lowers statements that run for some agents only, or not at all. The rest of the row must not depend on them.
    fn conditional_statements(
        &self,
        execution: &mut Execution,
        body: &[Statement],
    ) -> Result<Vec<Stmt>, SystemError> {
        let copies_before = (execution.copy.clone(), execution.incoming_copy.clone());
        let out = self.statements(execution, body)?;
        if copies_before != (execution.copy.clone(), execution.incoming_copy.clone()) {
            let action = "performs a write in a conditional part";
            return Err(self.unsupported(action, execution.context));
        }
        Ok(out)
    }

    /// Lowers one statement of a row, and adds its effects to `out`.
    fn statement(
        &self,
        execution: &mut Execution,
        statement: &Statement,
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let context = execution.context;
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => self.send_to(execution, *message, to, fields, out)?,
            Statement::Assign(..)
            | Statement::AssignSet(..)
            | Statement::Choose(..)
            | Statement::AssignElement(..) => out.extend(self.assignment(context, statement)),
            Statement::AssignAll(..) | Statement::AssignHomes(..) | Statement::ForHomes { .. } => {
                let variables = &self.agents.side_of(context).controller.variables;
                let homes = Homes(self.frame.protocol.homes);
                let unrolled = homes.statement(statement, variables);
                out.extend(self.statements(execution, unrolled.as_slice())?);
            }
            Statement::ForEach { .. } | Statement::If { .. } => {
                out.push(self.conditional(execution, statement)?)
            }
            Statement::WriteMemory => self.write_memory(execution, out)?,
            Statement::DeferStore => out.extend(self.defer_store(execution)?),
            Statement::CommitDeferred => out.extend(self.write_deferred(execution)?),
            Statement::Done => self.done(execution, out),
            // The search tries every access in every state anyway.
            Statement::Retry => {}
            Statement::BulkTransition { from, to } => match &context.remote {
                Some(remote) => out.push(self.bulk_transition(remote, *from, *to)),
                None => return Err(self.unsupported("gives lines up", context)),
            },
            Statement::StartRead => {
                self.start_memory_operation(context, slot::READ, out)?;
            }
            Statement::StartWrite => {
                let Some(current) = execution.incoming_copy.clone() else {
                    return Err(self.unsupported("writes memory without a line", context));
                };
                let memory = self.start_memory_operation(context, slot::WRITE, out)?;
                out.push(memory.current.at(&context.line).set(current));
            }
            Statement::StartStore { whole } => {
                let operation = if *whole { slot::STORE } else { slot::PARTIAL };
                self.start_memory_operation(context, operation, out)?;
            }
            Statement::Acknowledge(index) => self.acknowledge(context, *index, out)?,
            Statement::AcknowledgeUnlock => {
                let Some(device) = &self.layout.device else {
                    let action = "unlocks a line that it can never lock";
                    return Err(self.unsupported(action, context));
                };
                let line = &context.line;
                out.push(self.frame.note_home_action(line, "is unlocked"));
                out.push(device.set_lock(line, lock::NONE));
            }
        }
        Ok(())
    }

    /// Lowers an assignment to a variable. `None` if the statement is no assignment of a single variable, set or
    /// element.
    fn assignment(&self, context: &Context, statement: &Statement) -> Option<Stmt> {
        let agents = &self.agents;
        match statement {
            Statement::Assign(variable, value) => {
                let value = agents.number(context, value);
                Some(agents.variable(context, *variable).set(value))
            }
            Statement::AssignSet(variable, set) => {
                let place = agents.variable(context, *variable);
                Some(self.frame.for_each_remote(|remote| {
                    let member = agents.member(context, set, remote.into());
                    vec![place.at(remote).set(member)]
                }))
            }
            Statement::Choose(variable, _) => {
                let chosen = context.chosen.clone();
                let value = chosen.map_or(Expr::Int(0), |index| index + 1);
                Some(agents.variable(context, *variable).set(value))
            }
            Statement::AssignElement(array, indices, value) => {
                let place = agents.element(context, *array, indices);
                Some(place.set(agents.number(context, value)))
            }
            _ => None,
        }
    }

    /// Lowers a loop over remotes or a conditional statement.
    fn conditional(
        &self,
        execution: &mut Execution,
        statement: &Statement,
    ) -> Result<Stmt, SystemError> {
        let (context, agents) = (execution.context, &self.agents);
        match statement {
            Statement::ForEach { condition, body } => {
                let (scope, remote_type) = (&self.frame.scope, self.frame.remote_type);
                scope.with_bound(remote_type, |remote| {
                    let inner = context.with_each(remote.into());
                    let condition = agents.condition(&inner, condition);
                    let mut execution = Execution {
                        context: &inner,
                        copy: execution.copy.clone(),
                        incoming_copy: execution.incoming_copy.clone(),
                        consumed_store: execution.consumed_store.clone(),
                        ..*execution
                    };
                    let body = self.conditional_statements(&mut execution, body)?;
                    Ok(remote.each(vec![when(condition, body)]))
                })
            }
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = agents.condition(context, condition);
                let then = self.conditional_statements(execution, then)?;
                let otherwise = self.conditional_statements(execution, otherwise)?;
                Ok(choose(condition, then, otherwise))
            }
            _ => Err(self.unsupported("has an unknown loop", context)),
        }
    }

    /// Writes the data of the event to memory: the received or read line, or the bytes of the message's store.
    fn write_memory(
        &self,
        execution: &mut Execution,
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let (context, line) = (execution.context, execution.context.line.clone());
        let carries = execution
            .message
            .map(|message| self.frame.protocol.message(message).carries);
        match (carries, &execution.incoming_copy) {
            (Some(carries @ (Carries::Store | Carries::PartialStore)), _) => {
                let whole_line = carries == Carries::Store;
                out.extend(self.stores.perform_store(execution, &context.sender, None));
                out.push(self.frame.note_home_action(&line, PERFORMS));
                out.extend(self.store_to_memory(&line, whole_line));
            }
            (_, Some(current)) => {
                out.extend(self.layout.backing_permission.may_write(&line));
                out.push(self.copies.memory.current.at(line).set(current));
            }
            _ => return Err(self.unsupported("writes memory without bytes", context)),
        }
        Ok(())
    }

    /// Completes the outstanding access, with the checks of its kind.
    fn done(&self, execution: &mut Execution, out: &mut Vec<Stmt>) {
        let (context, line) = (execution.context, execution.context.line.clone());
        match execution.done {
            CompletionEffect::Completes(CompletionKind::Write) => {
                out.extend(self.stores.assert_store_order(context, true));
                if self.frame.facts.coherent && execution.is_partial_write {
                    let violation = Violation::new("data value", PARTIAL_WRITE_TO_STALE_COPY);
                    out.push(assert(violation, execution.copy.clone()));
                }
                if let Some(remote) = &context.remote {
                    out.push(
                        self.frame
                            .note_action(remote.clone(), &line, PERFORMS, false),
                    );
                }
                out.extend(self.copies.mark_stale(&line, true));
                execution.copy = Expr::Bool(true);
            }
            CompletionEffect::Completes(CompletionKind::Sent) => {
                out.extend(self.stores.assert_store_performed(context))
            }
            // The copy of a message was checked when it was sent.
            CompletionEffect::Completes(CompletionKind::Read)
                if self.frame.facts.coherent && execution.incoming_copy.is_none() =>
            {
                out.extend(self.stores.assert_store_order(context, false));
                let message = "a read completes with a stale copy";
                out.push(assert(
                    Violation::new("data value", message),
                    execution.copy.clone(),
                ));
            }
            _ => {}
        }
    }

    /// Moves all lines of a remote that are in state `from` to state `to`.
    fn bulk_transition(&self, remote: &Expr, from: StateId, to: StateId) -> Stmt {
        let controller = self.agents.remote.controller;
        let holds = |state: StateId| controller.states[state.index()].holds_line;
        let drops = holds(from) && !holds(to);
        let [from, to] = [from, to].map(|state| self.agents.remote.states.nth(state.0.into()));
        self.frame
            .scope
            .with_bound(self.frame.line_type, |bound_line| {
                let line = Expr::from(bound_line);
                let state = self.agents.remote.state.at(&line).at(remote);
                let mut body = vec![state.clone().set(to)];
                if drops {
                    body.push(self.copies.memory.copies.at(&line).at(remote).set(false));
                }
                let context = Context::new(&line, Some(remote.clone()));
                let becomes = Act::Becomes(self.agents.state_words(&context));
                body.push(self.frame.note_act(remote.clone(), becomes, &line, false));
                bound_line.each(vec![when(state.is(from), body)])
            })
    }

    /// Performs a store in memory, and asserts that the device holds no lock. `whole_line` is true if the bytes
    /// cover the line.
    fn store_to_memory(&self, line: &Expr, whole_line: bool) -> Vec<Stmt> {
        let message = "a store reaches memory while the device holds the lock";
        let mut out: Vec<Stmt> = self
            .layout
            .backing_permission
            .may_write(line)
            .into_iter()
            .collect();
        out.extend(
            self.layout
                .assert_unlocked(line, &[lock::READ, lock::WRITE], message),
        );
        match self.frame.facts.coherent {
            true => out.extend(self.copies.mark_stale(line, whole_line)),
            false => out.extend(self.stores.outdate_atomic_reads(line)),
        }
        if whole_line {
            out.push(self.copies.memory.current.at(line).set(true));
        }
        out
    }

    /// Defers the store of the current message, and asserts that no other store of the line is deferred.
    fn defer_store(&self, execution: &mut Execution) -> Result<Vec<Stmt>, SystemError> {
        let context = execution.context;
        let carries = execution
            .message
            .map(|message| self.frame.protocol.message(message).carries);
        let (Some(deferred_store), Some(carries), Some(sender)) =
            (self.stores.deferred_store, carries, &context.sender)
        else {
            return Err(self.unsupported("defers a store, but its event carries none", context));
        };
        let ticket = match &mut execution.consumed_store {
            Some(consumed_store) => consumed_store.defer(),
            None => Expr::Int(0),
        };
        let from = deferred_store.from.at(&context.line);
        let message = "the home defers a store while another store is deferred";
        Ok(vec![
            assert(
                Violation::new("one deferred store at a time", message),
                from.clone().is(0),
            ),
            from.set(sender.clone() + 1),
            deferred_store.ticket.at(&context.line).set(ticket),
            deferred_store
                .whole
                .at(&context.line)
                .set(carries == Carries::Store),
        ])
    }

    /// Performs the deferred store in memory.
    fn write_deferred(&self, execution: &mut Execution) -> Result<Vec<Stmt>, SystemError> {
        let context = execution.context;
        let Some(deferred_store) = self.stores.deferred_store else {
            return Err(self.unsupported("writes a deferred store, but never defers one", context));
        };
        let line = &context.line;
        let (from, whole) = (deferred_store.from.at(line), deferred_store.whole.at(line));
        let message = "the home writes a deferred store, but no store is deferred";
        let mut out = vec![assert(
            Violation::new("one deferred store at a time", message),
            from.clone().gt(0),
        )];
        out.extend(self.stores.perform_store(
            execution,
            &Some(from.clone() - 1),
            Some(deferred_store),
        ));
        out.push(self.frame.note_home_action(line, PERFORMS));
        let whole_store = self.store_to_memory(line, true);
        let partial_store = self.store_to_memory(line, false);
        out.push(choose(whole.clone(), whole_store, partial_store));
        out.extend([from.set(0), whole.set(false)]);
        if let (true, Some(incoming_copy)) =
            (self.frame.facts.coherent, &mut execution.incoming_copy)
        {
            // The received copy does not contain that store.
            *incoming_copy = Expr::Bool(false);
            if execution.message.is_none() {
                execution.copy = Expr::Bool(false);
            }
        }
        Ok(out)
    }

    /// Starts a memory operation, and asserts that none is in progress. `operation` is a state of [`slot`].
    fn start_memory_operation(
        &self,
        context: &Context,
        operation: u32,
        out: &mut Vec<Stmt>,
    ) -> Result<Slot, SystemError> {
        let memory = match self.copies.memory.slot {
            Some(memory) if context.home => memory,
            _ => return Err(self.unsupported("starts a memory operation", context)),
        };
        let state = memory.state.at(&context.line);
        out.push(assert(
            Violation::new(
                "memory operation while the slot is busy",
                "the home starts a memory operation while another one is in progress",
            ),
            state.clone().is(memory.states.nth(slot::IDLE)),
        ));
        out.push(state.set(memory.states.nth(operation)));
        Ok(memory)
    }

    /// Acknowledges a local operation to the device, which may lock the line. `index` is the operation's index in
    /// [`cohkit_protocol::controller::Controller::locals`]. Asserts that the operation was accepted.
    fn acknowledge(
        &self,
        context: &Context,
        index: u8,
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let device = self.layout.device.as_ref();
        let local = device.and_then(|device| device.locals.get(usize::from(index)));
        let (Some(device), Some(local)) = (device, local) else {
            return Err(self.unsupported("acknowledges an unknown operation", context));
        };
        let line = &context.line;
        let action = format!("acknowledges {}", local.name);
        out.push(self.frame.note_home_action(line, &action));
        let accepted = device.accepted.at(line);
        out.push(assert(
            Violation::new(
                "one local operation at a time",
                format!(
                    "the home acknowledges {}, which it has not accepted",
                    local.name
                ),
            ),
            accepted.clone().is(i32::from(index) + 1),
        ));
        out.push(accepted.set(0));
        if let Some(watch) = &self.layout.watch {
            out.extend(watch.operation_effect(index, line, false));
        }
        out.extend(self.assert_ensured(line, local));
        if local.locks {
            let level = match local.ensures {
                Permission::None => lock::WRITE,
                Permission::Read => lock::READ,
                Permission::Write => {
                    return Err(
                        self.unsupported("locks a line without ensuring a permission", context)
                    )
                }
            };
            out.push(assert(
                Violation::new("lock", "the home locks a line that is locked"),
                device.is_lock(line, lock::NONE),
            ));
            out.push(device.set_lock(line, level));
        }
        Ok(())
    }

    /// Asserts that an acknowledged operation has its effect: the remotes have no more permission than it ensures, and
    /// memory is current.
    fn assert_ensured(&self, line: &Expr, local: &Local) -> [Stmt; 2] {
        let (permission, state) = (self.agents.remote.permission, self.agents.remote.state);
        let permissions = self.frame.all_remotes(|remote| {
            permission
                .of(state.at(line).at(remote))
                .le(permission_code(local.ensures))
        });
        let when = format!("when {} is acknowledged", local.name);
        let excess = format!("a remote still has a permission that it must not have {when}");
        let stale = format!("memory is stale {when}");
        let current = self.copies.memory.current.at(line);
        [
            assert(Violation::new("single writer", excess), permissions),
            assert(Violation::new("data value", stale), current),
        ]
    }

    /// Error: a row does something that has no meaning in its place.
    fn unsupported(&self, action: &str, context: &Context) -> SystemError {
        self.agents.unsupported_expression(action, context)
    }
}

//! Effects of rows: statements of controllers, sends, writes, and notes for charts.

use cohkit_protocol::controller::{Access, Statement};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Carries, MessageId, Right, StateId, Type as ValueType};
use cohkit_protocol::unroll::Homes;
use cohkit_system::agent::{PARTIAL_WRITE_TO_STALE_COPY, STALE_RESPONSE_IN_FLIGHT};
use cohkit_system::plan::CompletionEffect;

use super::execution::Execution;
use super::expressions::Context;
use super::layout::{ends, lock, right_code, slot, Slot, Storage, System};
use super::story::{note, Act};
use super::SystemError;
use cohkit_engine::build::{assert, choose, when};
use cohkit_engine::model::{Expr, Phrase, Piece, Place, Stmt, TypeId, Violation};

/// Text of a performed write in charts, for a write that was outstanding.
const PERFORMS: &str = "performs the write";

impl<'p> System<'p> {
    /// Lowers statements in order.
    pub fn statements(
        &mut self,
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
        &mut self,
        execution: &mut Execution,
        body: &[Statement],
    ) -> Result<Vec<Stmt>, SystemError> {
        let copies_before = (execution.copy.clone(), execution.incoming_copy.clone());
        let out = self.statements(execution, body)?;
        if copies_before != (execution.copy.clone(), execution.incoming_copy.clone()) {
            let action = "performs a write in a conditional part";
            return Err(self.unsupported_expression(action, execution.context));
        }
        Ok(out)
    }

    fn statement(
        &mut self,
        execution: &mut Execution,
        statement: &Statement,
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let context = execution.context;
        let line = context.line.clone();
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => self.send_to(execution, *message, to, fields, out)?,
            Statement::Assign(name, value) => {
                let value = self.number(context, value);
                out.push(self.variable(context, *name).set(value));
            }
            Statement::AssignSet(name, set) => {
                let place = self.variable(context, *name);
                let assignments = self.with_bound(self.remote_type, |system, remote| {
                    let member = system.member(context, set, remote.into());
                    remote.each(vec![place.at(remote).set(member)])
                });
                out.push(assignments);
            }
            Statement::Choose(name, _) => {
                let chosen = context.chosen.clone();
                let value = chosen.map_or(Expr::Int(0), |index| index + 1);
                out.push(self.variable(context, *name).set(value));
            }
            Statement::AssignElement(name, at, value) => {
                let place = self.element(context, *name, at);
                let value = self.number(context, value);
                out.push(place.set(value));
            }
            Statement::AssignAll(..) | Statement::AssignHomes(..) | Statement::ForHomes { .. } => {
                let variables = &self.side_of(context).controller.variables;
                let homes = Homes(self.protocol.homes);
                let written_out = homes.statement(statement, variables);
                out.extend(self.statements(execution, written_out.as_slice())?);
            }
            Statement::ForEach { condition, body } => {
                let repetition = self.with_bound(self.remote_type, |system, remote| {
                    let inner = context.with_each(remote.into());
                    let condition = system.truth(&inner, condition);
                    let mut execution = Execution {
                        context: &inner,
                        copy: execution.copy.clone(),
                        incoming_copy: execution.incoming_copy.clone(),
                        consumed_store: execution.consumed_store.clone(),
                        ..*execution
                    };
                    let body = system.conditional_statements(&mut execution, body)?;
                    Ok(remote.each(vec![when(condition, body)]))
                })?;
                out.push(repetition);
            }
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.truth(context, condition);
                let then = self.conditional_statements(execution, then)?;
                let otherwise = self.conditional_statements(execution, otherwise)?;
                out.push(choose(condition, then, otherwise));
            }
            Statement::WriteMemory => self.write_memory(execution, out)?,
            Statement::DeferStore => out.extend(self.defer_store(execution)?),
            Statement::CommitDeferred => out.extend(self.write_deferred(execution)?),
            Statement::Done => self.done(execution, out),
            // The search tries every access in every state anyway.
            Statement::Retry => {}
            Statement::BulkTransition { from, to } => match &context.remote {
                Some(remote) => out.push(self.bulk_transition(remote, *from, *to)),
                None => return Err(self.unsupported_expression("gives lines up", context)),
            },
            Statement::StartRead => {
                self.start_memory_operation(context, slot::READ, out)?;
            }
            Statement::StartWrite => {
                let Some(bit) = execution.incoming_copy.clone() else {
                    return Err(
                        self.unsupported_expression("writes memory without a line", context)
                    );
                };
                let memory = self.start_memory_operation(context, slot::WRITE, out)?;
                out.push(memory.current.at(line).set(bit));
            }
            Statement::StartStore { whole } => {
                let operation = if *whole { slot::STORE } else { slot::PARTIAL };
                self.start_memory_operation(context, operation, out)?;
            }
            Statement::Acknowledge(index) => self.acknowledge(context, *index, out)?,
            Statement::AcknowledgeUnlock => {
                let Some(device) = self.device else {
                    return Err(self
                        .unsupported_expression("unlocks a line that it can never lock", context));
                };
                out.push(self.note_action(self.home_agent(&line), &line, "is unlocked", true));
                out.push(device.lock.at(line).set(device.locks.nth(lock::NONE)));
            }
        }
        Ok(())
    }

    /// Writes the bytes of the current message to memory.
    fn write_memory(
        &mut self,
        execution: &mut Execution,
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let (context, line) = (execution.context, execution.context.line.clone());
        let carries = execution.message.map(|m| self.protocol.message(m).carries);
        match (carries, &execution.incoming_copy) {
            (Some(kind @ (Carries::Store | Carries::PartialStore)), _) => {
                let whole_line = kind == Carries::Store;
                out.extend(self.perform_store(execution, &context.sender, None));
                out.push(self.note_action(self.home_agent(&line), &line, PERFORMS, true));
                out.extend(self.store_to_memory(&line, whole_line));
            }
            (_, Some(bit)) => {
                out.extend(self.may_write(&line));
                out.push(self.memory.at(line).set(bit));
            }
            _ => return Err(self.unsupported_expression("writes memory without bytes", context)),
        }
        Ok(())
    }

    /// Completes the outstanding access.
    fn done(&mut self, execution: &mut Execution, out: &mut Vec<Stmt>) {
        let (context, line) = (execution.context, execution.context.line.clone());
        match execution.done {
            CompletionEffect::Ends(CompletionKind::Write) => {
                out.extend(self.assert_store_order(context, true));
                if self.facts.coherent && execution.is_partial_write {
                    let violation = Violation::new("data value", PARTIAL_WRITE_TO_STALE_COPY);
                    out.push(assert(violation, execution.copy.clone()));
                }
                if let Some(remote) = &context.remote {
                    out.push(self.note_action(remote.clone(), &line, PERFORMS, false));
                }
                out.extend(self.mark_copies_stale(&line, true));
                execution.copy = Expr::Bool(true);
            }
            CompletionEffect::Ends(CompletionKind::Sent) => {
                out.extend(self.assert_store_performed(context))
            }
            // The copy of a message was checked when it was sent.
            CompletionEffect::Ends(CompletionKind::Read)
                if self.facts.coherent && execution.incoming_copy.is_none() =>
            {
                out.extend(self.assert_store_order(context, false));
                let message = "a read completes with a stale copy";
                out.push(assert(
                    Violation::new("data value", message),
                    execution.copy.clone(),
                ));
            }
            _ => {}
        }
    }

    /// Moves all lines of a remote in one state to another.
    fn bulk_transition(&mut self, remote: &Expr, from: StateId, to: StateId) -> Stmt {
        let controller = self.remote.controller;
        let holds = |state: StateId| controller.states[state.index()].holds_line;
        let drops = holds(from) && !holds(to);
        let [from, to] = [from, to].map(|state| self.remote.states.nth(state.0.into()));
        self.with_bound(self.line_type, |system, l| {
            let state = system.remote.state.at(l).at(remote);
            let mut body = vec![state.clone().set(to)];
            if drops {
                body.push(system.current.at(l).at(remote).set(false));
            }
            let line = Expr::from(l);
            let context = Self::context(false, &line, Some(remote.clone()));
            let becomes = Act::Becomes(system.state_words(&context));
            body.push(system.note_act(remote.clone(), becomes, &line, false));
            l.each(vec![when(state.is(from), body)])
        })
    }

    /// Performs a store in memory, and asserts that the device holds no lock.
    fn store_to_memory(&mut self, line: &Expr, whole_line: bool) -> Vec<Stmt> {
        let message = "a store reaches memory while the device holds the lock";
        let mut out: Vec<Stmt> = self.may_write(line).into_iter().collect();
        out.extend(self.assert_unlocked(line, &[lock::READ, lock::WRITE], message));
        match self.facts.coherent {
            true => out.extend(self.mark_copies_stale(line, whole_line)),
            false => out.extend(self.outdate_atomic_reads(line)),
        }
        if whole_line {
            out.push(self.memory.at(line).set(true));
        }
        out
    }

    /// Defers the store of the current message.
    fn defer_store(&mut self, execution: &mut Execution) -> Result<Vec<Stmt>, SystemError> {
        let context = execution.context;
        let carries = execution.message.map(|m| self.protocol.message(m).carries);
        let (Some(deferred_store), Some(carries), Some(sender)) =
            (self.deferred_store, carries, &context.sender)
        else {
            return Err(
                self.unsupported_expression("defers a store, but its event carries none", context)
            );
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
    fn write_deferred(&mut self, execution: &mut Execution) -> Result<Vec<Stmt>, SystemError> {
        let context = execution.context;
        let Some(deferred_store) = self.deferred_store else {
            return Err(self
                .unsupported_expression("writes a deferred store, but never defers one", context));
        };
        let line = &context.line;
        let (from, whole) = (deferred_store.from.at(line), deferred_store.whole.at(line));
        let message = "the home writes a deferred store, but no store is deferred";
        let mut out = vec![assert(
            Violation::new("one deferred store at a time", message),
            from.clone().gt(0),
        )];
        out.extend(self.perform_store(execution, &Some(from.clone() - 1), Some(deferred_store)));
        out.push(self.note_action(self.home_agent(line), line, PERFORMS, true));
        let whole_store = self.store_to_memory(line, true);
        let partial_store = self.store_to_memory(line, false);
        out.push(choose(whole.clone(), whole_store, partial_store));
        out.extend([from.set(0), whole.set(false)]);
        if let (true, Some(incoming_copy)) = (self.facts.coherent, &mut execution.incoming_copy) {
            // The received copy does not contain that store.
            *incoming_copy = Expr::Bool(false);
            if execution.message.is_none() {
                execution.copy = Expr::Bool(false);
            }
        }
        Ok(out)
    }

    /// Asserts that the device's lock has none of these levels. `None` if the device cannot lock lines.
    pub fn assert_unlocked(&self, line: &Expr, levels: &[u32], message: &str) -> Option<Stmt> {
        let device = self.device?;
        if !self.home.controller.locals.iter().any(|local| local.locks) {
            return None;
        }
        let is_locked = device.lock.at(line);
        let is_locked = levels
            .iter()
            .map(|&level| is_locked.clone().is(device.locks.nth(level)));
        let is_locked = Expr::disjunction(is_locked.collect::<Vec<_>>());
        Some(assert(Violation::new("single writer", message), !is_locked))
    }

    pub fn unsupported_expression(&self, action: &str, context: &Context) -> SystemError {
        let agent = &self.side_of(context).controller.name;
        SystemError::Meaningless(format!("a row of {agent} {action}"))
    }

    /// Records that an expression has no meaning in its place, so that the system is rejected. Returns a placeholder.
    pub fn unsupported(&mut self, context: &Context, action: &str) -> Expr {
        let error = self.unsupported_expression(action, context);
        self.unsupported.get_or_insert(error);
        Expr::Int(0)
    }

    /// Starts a memory operation.
    fn start_memory_operation(
        &self,
        context: &Context,
        operation: u32,
        out: &mut Vec<Stmt>,
    ) -> Result<Slot, SystemError> {
        let memory = match self.slot {
            Some(memory) if context.home => memory,
            _ => return Err(self.unsupported_expression("starts a memory operation", context)),
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

    fn acknowledge(
        &mut self,
        context: &Context,
        index: u8,
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let controller = self.home.controller;
        let (Some(device), Some(local)) = (self.device, controller.locals.get(usize::from(index)))
        else {
            return Err(self.unsupported_expression("acknowledges an unknown operation", context));
        };
        let line = &context.line;
        let action = format!("acknowledges {}", local.name);
        out.push(self.note_action(self.home_agent(line), line, &action, true));
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
        out.extend(self.watch_acknowledgement(index, line));
        let right = self.remote.right;
        let state = self.remote.state;
        let rights = self.with_bound(self.remote_type, |_, r| {
            r.all(right.of(state.at(line).at(r)).le(right_code(local.ensures)))
        });
        let when = format!("when {} is acknowledged", local.name);
        let message = format!("a remote still has a permission that it must not have {when}");
        out.push(assert(Violation::new("single writer", message), rights));
        let message = format!("memory is stale {when}");
        out.push(assert(
            Violation::new("data value", message),
            self.memory.at(line),
        ));
        if local.locks {
            let level = match local.ensures {
                Right::None => lock::WRITE,
                Right::Read => lock::READ,
                Right::Write => {
                    return Err(self.unsupported_expression(
                        "locks a line without ensuring a permission",
                        context,
                    ))
                }
            };
            let held = device.lock.at(line);
            out.push(assert(
                Violation::new("lock", "the home locks a line that is locked"),
                held.clone().is(device.locks.nth(lock::NONE)),
            ));
            out.push(held.set(device.locks.nth(level)));
        }
        Ok(())
    }

    /// Effect of a write on all copies but the written one: they become stale. Empty without the coherence guarantee,
    /// as the bits are not read there.
    pub fn mark_copies_stale(&mut self, line: &Expr, includes_memory: bool) -> Vec<Stmt> {
        if !self.facts.coherent {
            return Vec::new();
        }
        let current = self.current.at(line);
        let mut out = vec![current.clear()];
        out.extend(self.outdate_atomic_reads(line));
        if includes_memory {
            out.push(self.memory.at(line).set(false));
        }
        if let Some(memory) = self.slot {
            out.push(memory.current.at(line).set(false));
        }
        for flow in 0..self.flows.len() {
            if let Storage::Counted(variable) = self.flows[flow].storage {
                if self.carries_line(flow) {
                    let statements = self.for_each_cell(flow, variable.at(line), &|place| {
                        let (stale, current) = (place.clone().at(false), place.at(true));
                        vec![when(
                            current.clone().gt(0),
                            vec![stale.clone().set(stale + current.clone()), current.set(0)],
                        )]
                    });
                    out.extend(statements);
                }
            }
        }
        for index in 0..self.queues.len() {
            if self.queues[index].carries_line {
                let positions = self.queues[index].positions;
                let statements = self.for_each_queue(index, line, &mut |system, queue| {
                    let outdating = system.with_bound(positions, |system, i| {
                        let entry = queue.clone().field("slot").at(i);
                        i.each(vec![when(
                            system.queues[index].about(&entry, line),
                            vec![entry.field("current").set(false)],
                        )])
                    });
                    vec![outdating]
                });
                out.extend(statements);
            }
        }
        out
    }

    /// True if a copy of the line other than that of `remote` (`None`: memory) is current.
    pub fn has_other_current_copy(&mut self, line: &Expr, remote: Option<&Expr>) -> Expr {
        if !self.facts.coherent {
            return Expr::Bool(false);
        }
        let current = self.current;
        let mut exists = match remote {
            Some(_) if self.remotes == 1 => Expr::Bool(false),
            _ => self.with_bound(self.remote_type, |_, r| {
                let is_other = remote.map_or(Expr::Bool(true), |remote| r.is_not(remote));
                r.any(is_other.and(current.at(line).at(r)))
            }),
        };
        if remote.is_some() {
            exists = exists.or(self.memory.at(line));
        }
        exists = exists.or(self.has_last_value_read(line));
        if let Some(memory) = self.slot {
            exists = exists.or(memory.current.at(line));
        }
        for flow in 0..self.flows.len() {
            if let Storage::Counted(variable) = self.flows[flow].storage {
                if self.carries_line(flow) {
                    let in_flow =
                        self.any_cell(flow, variable.at(line), &|place| place.at(true).gt(0));
                    exists = exists.or(in_flow);
                }
            }
        }
        for index in 0..self.queues.len() {
            if self.queues[index].carries_line {
                let positions = self.queues[index].positions;
                let in_queue = self.any_queue(index, line, &mut |system, queue| {
                    system.with_bound(positions, |system, i| {
                        let entry = queue.clone().field("slot").at(i);
                        let is_about_line = system.queues[index].about(&entry, line);
                        i.any(is_about_line.and(entry.field("current")))
                    })
                });
                exists = exists.or(in_queue);
            }
        }
        exists
    }

    /// Returns true if a message of these kinds is in flight to the current agent.
    pub fn any_in_flight(&mut self, messages: &[MessageId], context: &Context) -> Expr {
        let mut exists = Expr::Bool(false);
        for flow in 0..self.flows.len() {
            let flight = &self.flows[flow];
            if !messages.contains(&flight.message) || !flight.direction.is_to_remote() {
                continue;
            }
            let in_flow = match flight.direction.is_from_remote() {
                false => self.in_flight_to(flow, context, None, false),
                true => self.with_bound(self.remote_type, |system, from| {
                    from.any(system.in_flight_to(flow, context, Some(&from.into()), false))
                }),
            };
            exists = exists.or(in_flow);
        }
        exists
    }

    /// Asserts that no response to a read that begins is in flight with a copy that is already stale.
    pub fn assert_no_stale_response(&mut self, context: &Context, read: Access) -> Vec<Stmt> {
        let responses = self.facts.answers(read).to_vec();
        let mut out = Vec::new();
        for flow in 0..self.flows.len() {
            let flight = &self.flows[flow];
            let is_response =
                responses.contains(&flight.message) && flight.direction.is_to_remote();
            if !is_response {
                continue;
            }
            let from_remote = flight.direction.is_from_remote();
            let is_stale = match from_remote {
                false => self.in_flight_to(flow, context, None, true),
                true => self.with_bound(self.remote_type, |system, from| {
                    from.any(system.in_flight_to(flow, context, Some(&from.into()), true))
                }),
            };
            let violation = Violation::new("data value", STALE_RESPONSE_IN_FLIGHT);
            out.push(assert(violation, !is_stale));
        }
        out
    }

    /// Returns true if a message of a flow is in flight to the current agent; with `stale_only`, only one with a stale
    /// copy of the line.
    fn in_flight_to(
        &mut self,
        flow: usize,
        context: &Context,
        from: Option<&Expr>,
        stale_only: bool,
    ) -> Expr {
        let (line, to) = (&context.line, context.remote.as_ref());
        match self.flows[flow].storage {
            Storage::Counted(variable) => {
                let place = ends(variable.at(line), from, to);
                let stored = self.flows[flow].stored.clone();
                self.nest_claim(&stored, place, &mut |_, place| {
                    let matches = place.clone().at(false).gt(0);
                    match stale_only {
                        true => matches,
                        false => matches.or(place.at(true).gt(0)),
                    }
                })
            }
            Storage::Queued(index, label) => {
                let place = self.queue_at(index, line, from, to);
                let queue = &self.queues[index];
                let (positions, kind) = (queue.positions, queue.kinds.nth(label));
                self.with_bound(positions, |system, i| {
                    let entry = place.field("slot").at(i);
                    let matches = entry.clone().field("kind").is(kind);
                    let matches = matches.and(system.queues[index].about(&entry, line));
                    i.any(match stale_only {
                        true => matches.and(!Expr::from(entry.field("current"))),
                        false => matches,
                    })
                })
            }
        }
    }

    /// True if the messages of a flow carry a copy of the line.
    pub fn carries_line(&self, flow: usize) -> bool {
        self.protocol
            .message(self.flows[flow].message)
            .carries
            .line()
    }

    /// The types that index a counted flow between the line and the current bit.
    pub fn cell_types(&self, flow: usize) -> Vec<TypeId> {
        let flow = &self.flows[flow];
        let ends = usize::from(flow.direction.is_from_remote())
            + usize::from(flow.direction.is_to_remote());
        let mut types = vec![self.remote_type; ends];
        types.extend(&flow.stored);
        types
    }

    fn for_each_cell(
        &mut self,
        flow: usize,
        place: Place,
        body: &dyn Fn(Place) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        let types = self.cell_types(flow);
        self.nest_statements(&types, place, &mut |_, place| body(place))
    }

    /// True if `claim` holds for some cell of a counted flow.
    pub fn any_cell(&mut self, flow: usize, place: Place, claim: &dyn Fn(Place) -> Expr) -> Expr {
        let types = self.cell_types(flow);
        self.nest_claim(&types, place, &mut |_, place| claim(place))
    }

    fn queue_types(&self, queue: usize) -> Vec<TypeId> {
        let (direction, senders) = (self.queues[queue].direction, self.queues[queue].senders);
        let ends = usize::from(direction.is_from_remote()) + usize::from(direction.is_to_remote());
        let mut types = vec![self.remote_type; ends];
        types.extend(senders);
        types
    }

    fn for_each_queue(
        &mut self,
        queue: usize,
        line: &Expr,
        body: &mut dyn FnMut(&mut Self, Place) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        let types = self.queue_types(queue);
        let place = self.queues_of(queue, line);
        self.nest_statements(&types, place, body)
    }

    /// True if `claim` holds for some queue of a group for messages about a line.
    pub fn any_queue(
        &mut self,
        queue: usize,
        line: &Expr,
        claim: &mut dyn FnMut(&mut Self, Place) -> Expr,
    ) -> Expr {
        let types = self.queue_types(queue);
        let place = self.queues_of(queue, line);
        self.nest_claim(&types, place, claim)
    }

    pub fn nest_statements(
        &mut self,
        types: &[TypeId],
        place: Place,
        body: &mut dyn FnMut(&mut Self, Place) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        match types {
            [] => body(self, place),
            [first, rest @ ..] => {
                let repetition = self.with_bound(*first, |system, i| {
                    i.each(system.nest_statements(rest, place.at(i), body))
                });
                vec![repetition]
            }
        }
    }

    pub fn nest_claim(
        &mut self,
        types: &[TypeId],
        place: Place,
        claim: &mut dyn FnMut(&mut Self, Place) -> Expr,
    ) -> Expr {
        match types {
            [] => claim(self, place),
            [first, rest @ ..] => self.with_bound(*first, |system, i| {
                i.any(system.nest_claim(rest, place.at(i), claim))
            }),
        }
    }

    /// The lifeline of a remote, or of the home of a line.
    pub fn agent(&self, remote: Option<&Expr>, line: &Expr) -> Expr {
        match remote {
            Some(index) => index.clone(),
            None => self.home_agent(line),
        }
    }

    /// The lifeline of the home of a line.
    pub fn home_agent(&self, line: &Expr) -> Expr {
        match self.protocol.homes {
            1 => self.first_home.into(),
            _ => self.home_of(line) + self.first_home,
        }
    }

    /// The line of a note, if the system has several lines.
    pub fn note_line(&self, line: &Expr) -> Option<Expr> {
        (self.lines > 1).then(|| line.clone())
    }

    /// Note of an agent's act. `visible` is true if the home can observe it.
    pub fn note_act(&self, agent: impl Into<Expr>, act: Act, line: &Expr, visible: bool) -> Stmt {
        note(agent.into(), act, self.note_line(line), visible)
    }

    /// Note that an agent sends or receives a message.
    pub fn note_message(
        &self,
        message: MessageId,
        agent: Expr,
        act: Act,
        line: &Expr,
        visible: bool,
    ) -> Stmt {
        let about_line = self.protocol.message(message).about_line;
        let line = self.note_line(line).filter(|_| about_line);
        note(agent, act, line, visible)
    }

    /// Note that an agent does something without a message.
    pub fn note_action(
        &self,
        agent: impl Into<Expr>,
        line: &Expr,
        action: &str,
        visible: bool,
    ) -> Stmt {
        let act = Act::Does(vec![Piece::Text(action.to_string())]);
        self.note_act(agent, act, line, visible)
    }

    /// A message with its fields: `Data(acks=1)`.
    pub fn words(&self, message: MessageId, values: &[Expr]) -> Phrase {
        let kind = self.protocol.message(message);
        let mut words = vec![Piece::Text(kind.name.clone())];
        for (i, (field, value)) in kind.fields.iter().zip(values).enumerate() {
            let separator = if i == 0 { "(" } else { ", " };
            words.push(Piece::Text(format!("{separator}{}=", field.name)));
            words.extend(self.value_words(field.ty, value));
        }
        if !kind.fields.is_empty() {
            words.push(Piece::Text(")".into()));
        }
        words
    }

    /// A value in the notation of its type.
    pub fn value_words(&self, ty: ValueType, value: &Expr) -> Phrase {
        let text = |words: &str| vec![Piece::Text(words.to_string())];
        match ty {
            ValueType::Remote => vec![Piece::Choice(
                value.clone().gt(0),
                vec![Piece::Agent(value.clone() - 1)],
                text("none"),
            )],
            ValueType::Bool => vec![Piece::Choice(
                value.clone().gt(0),
                text("true"),
                text("false"),
            )],
            ValueType::Home { .. } => vec![Piece::Agent(value.clone() + self.first_home)],
            ValueType::RemoteSet => {
                let member = |remote| (value.clone() / (1 << remote) % 2).is(1);
                self.set_words(ty, (0..self.remotes).map(member))
            }
            _ => vec![Piece::Value(value.clone())],
        }
    }

    /// A set in words. `inside` gives for each possible member whether it is in the set.
    pub fn set_words(&self, ty: ValueType, inside: impl Iterator<Item = Expr>) -> Phrase {
        let text = |words: &str| Piece::Text(words.to_string());
        let mut words = vec![text("{")];
        let mut previous = Vec::new();
        for (number, inside) in (0..).zip(inside) {
            let mut member = vec![text(&self.names.member(ty, number))];
            if !previous.is_empty() {
                let has_previous = Expr::disjunction(previous.iter().cloned());
                member.insert(0, Piece::Choice(has_previous, vec![text(", ")], Vec::new()));
            }
            words.push(Piece::Choice(inside.clone(), member, Vec::new()));
            previous.push(inside);
        }
        words.push(text("}"));
        words
    }
}

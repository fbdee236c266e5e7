//! All events of a system: accesses, deliveries, memory operations, and the device.

use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::Right;

use super::expressions::Context;
use super::layout::{ends, lock, slot, Device, Direction, Slot, Storage, System};
use super::message_rules::{performs, Trigger};
use super::story::Act;
use super::tickets::ConsumedStore;
use super::SystemError;
use cohkit_engine::build::{assert, error, when};
use cohkit_engine::model::{Expr, Place, Rule, Stmt, TypeId, VariableId, Violation};
use cohkit_system::plan::write_hits;

impl<'p> System<'p> {
    /// Adds all rules.
    pub fn triggers(&mut self) -> Result<(), SystemError> {
        for (access, name) in Access::ALL {
            self.add_access(access, name)?;
        }
        self.add_write_hits();
        self.check_load_hit_order();
        for flow in 0..self.flows.len() {
            self.deliver(flow)?;
        }
        self.memory_steps()?;
        self.device_steps()?;
        self.lender_steps()
    }

    pub fn line_index(&mut self) -> (VariableId, Expr) {
        let line = self.parameter("l", self.line_type);
        (line, line.into())
    }

    pub fn context(home: bool, line: &Expr, remote: Option<Expr>) -> Context {
        Context {
            home,
            line: line.clone(),
            remote,
            sender: None,
            fields: Vec::new(),
            each: None,
            chosen: None,
        }
    }

    /// An access of a core, or of the cache's replacement policy.
    fn add_access(&mut self, access: Access, name: &str) -> Result<(), SystemError> {
        let event = Event::Access(access);
        if !self
            .remote
            .controller
            .rules
            .iter()
            .any(|r| r.event == event)
        {
            return Ok(());
        }
        let (l, line) = self.line_index();
        let r = self.parameter("r", self.remote_type);
        let (parameters, line) = match access.about_line() {
            true => (vec![l, r], line),
            false => (vec![r], Expr::Int(0)),
        };
        let context = Self::context(false, &line, Some(r.into()));
        let result = self.react(
            event,
            Trigger {
                name: format!("{} {name}", self.remote.controller.name),
                parameters,
                present: Expr::Bool(true),
                before: context.clone(),
                after: context,
                consume: Vec::new(),
                accept_effects: Vec::new(),
                refuse_effects: None,
                message: None,
                store: None,
                incoming_copy: None,
                is_required: false,
                spontaneous: true,
            },
        );
        result.map(|_| ())
    }

    /// Stores and atomics that hit without a row of their own. A write without effect, because no other copy is
    /// current, is left out. Loads that hit never have an effect.
    fn add_write_hits(&mut self) {
        let controller = self.remote.controller;
        let is_hit = |state: usize| write_hits(controller, state);
        let states: Vec<usize> = (0..controller.states.len())
            .filter(|&s| is_hit(s))
            .collect();
        if states.is_empty() || !self.facts.coherent {
            return;
        }
        let (l, line) = self.line_index();
        let r = self.parameter("r", self.remote_type);
        let state = self.remote.state.at(l).at(r);
        let in_hit_state = Expr::disjunction(
            states
                .iter()
                .map(|&s| state.clone().is(self.remote.states.nth(s as u32))),
        );
        let context = Self::context(false, &line, Some(r.into()));
        let changes = self.has_other_current_copy(&line, Some(&r.into()));
        let changes = changes.or(self.has_posted_stores(&context));
        let mut body = vec![self.note_action(r, &line, &performs(Access::Store), false)];
        body.extend(self.assert_store_order(&context, true));
        body.extend(self.mark_copies_stale(&line, true));
        body.push(self.current.at(l).at(r).set(true));
        self.build.rule(Rule {
            name: format!("{} store hits", controller.name),
            parameters: vec![l, r],
            guard: in_hit_state.and(changes),
            body,
            spontaneous: true,
            priority: 0,
        });
    }

    /// The delivery of a message.
    fn deliver(&mut self, index: usize) -> Result<(), SystemError> {
        let flow = &self.flows[index];
        let (message, direction) = (flow.message, flow.direction);
        let (constants, tickets) = (flow.constants.clone(), flow.tickets);
        let kind = self.protocol.message(message);
        let home = !direction.is_to_remote();
        let (l, line) = self.line_index();
        let remote_type = self.remote_type;
        let sender = direction
            .is_from_remote()
            .then(|| self.parameter("s", remote_type));
        let receiver = direction
            .is_to_remote()
            .then(|| self.parameter("r", remote_type));
        let (from, to) = (sender.map(Expr::from), receiver.map(Expr::from));
        let mut arrival = match self.flows[index].storage {
            Storage::Counted(variable) => {
                let place = ends(variable.at(l), from.as_ref(), to.as_ref());
                let mut arrival = self.counted_arrival(index, place);
                let ends = (from.as_ref(), to.as_ref());
                let no_predecessor = self.has_no_predecessor(message, direction, &line, ends);
                arrival.present = arrival.present.and(no_predecessor);
                arrival
            }
            Storage::Queued(queue, label) => {
                let sending_home = self.queues[queue]
                    .senders
                    .map(|homes| self.parameter("h", homes));
                let place = match sending_home {
                    Some(sending_home) => self.queue_between(queue, &line, &sending_home.into()),
                    None => self.queue_at(queue, &line, from.as_ref(), to.as_ref()),
                };
                let mut arrival = self.queued_arrival(index, queue, label, place, &line);
                arrival.parameters.extend(sending_home);
                arrival
            }
        };
        let admitted = self.is_admitted(message, direction, &line);
        arrival.present = arrival.present.and(admitted);
        let present = arrival.present.clone();
        let entry = match self.flows[index].storage {
            Storage::Queued(queue, _) => {
                let ends = (from.as_ref(), to.as_ref());
                self.entry(self.queues[queue].order, direction, &line, ends)
            }
            Storage::Counted(_) => None,
        };
        if let Some(entry) = &entry {
            arrival.present = arrival.present.and(entry.can_be_consumed());
            arrival.removal.extend(entry.removal());
        }
        // Fields that are not stored have the constant that every send gives them.
        let fields = |stored: Vec<Expr>| -> Vec<Expr> {
            let mut stored = stored.into_iter();
            let values = constants.iter().map(|constant| match constant {
                Some(constant) => Some(Expr::Int((*constant).into())),
                None => stored.next(),
            });
            values.flatten().collect()
        };
        let context = |stored: Vec<Expr>| Context {
            home,
            line: line.clone(),
            remote: to.clone(),
            sender: from.clone(),
            fields: fields(stored),
            each: None,
            chosen: None,
        };
        let (before, after) = (context(arrival.before), context(arrival.after));
        let values = after.fields.clone();
        let mut consume = arrival.field_saves;
        let receives = Act::Receive {
            message: self.words(message, &values),
            // Nothing depends on which home sent the message, unless homes keep an order.
            from: (direction != Direction::BetweenHomes).then(|| self.agent(from.as_ref(), &line)),
        };
        let receiving_agent = self.agent(to.as_ref(), &line);
        consume.push(self.note_message(message, receiving_agent, receives, &line, home));
        consume.extend(arrival.removal);
        let mut parameters = vec![l];
        parameters.extend(sender);
        parameters.extend(receiver);
        parameters.extend(arrival.parameters);
        self.in_flight(index, &parameters, &present, &before);
        let agent = &self.side(home).controller.name;
        let guard_context = before.clone();
        let is_taken = self.react(
            Event::Message(message),
            Trigger {
                name: format!("{agent} takes {}", kind.name),
                parameters: parameters.clone(),
                present: arrival.present,
                before,
                after,
                consume,
                accept_effects: Vec::new(),
                refuse_effects: None,
                message: Some(message),
                store: tickets.map(|tickets| {
                    let ticket = arrival.ticket.unwrap_or(tickets.low.into());
                    ConsumedStore::new(ticket, tickets)
                }),
                incoming_copy: arrival.current,
                is_required: true,
                spontaneous: false,
            },
        )?;
        if let Some(entry) = entry {
            self.add_blocking_rule(
                message,
                entry,
                (parameters, present, is_taken),
                &guard_context,
            );
        }
        Ok(())
    }

    /// Any message of an unordered flow may be next: its fields are parameters of the rule.
    fn counted_arrival(&mut self, flow: usize, mut place: Place) -> Arrival {
        let carries = self.carries_line(flow);
        let flow = &self.flows[flow];
        let has_ordered_followers = flow.has_ordered_followers;
        let tickets = flow.tickets.and_then(|tickets| tickets.ty);
        let fields = &self.protocol.message(flow.message).fields;
        let names = fields.iter().zip(&flow.constants);
        let stored: Vec<(&str, TypeId)> = names
            .filter(|(_, constant)| constant.is_none())
            .map(|(field, _)| field.name.as_str())
            .zip(flow.stored.iter().copied())
            .collect();
        let mut parameters = Vec::new();
        for (name, ty) in stored {
            parameters.push(self.parameter(name, ty));
        }
        let before: Vec<Expr> = parameters.iter().map(|&p| p.into()).collect();
        let ticket = tickets.map(|ty| self.parameter("ticket", ty));
        parameters.extend(ticket);
        let follower_bit = has_ordered_followers.then(|| self.parameter("early", TypeId::BOOL));
        parameters.extend(follower_bit);
        let current = carries.then(|| self.parameter("current", TypeId::BOOL));
        parameters.extend(current);
        for &parameter in &parameters {
            place = place.at(parameter);
        }
        Arrival {
            parameters,
            present: place.clone().gt(0),
            field_saves: Vec::new(),
            removal: vec![place.clone().set(place - 1)],
            after: before.clone(),
            before,
            ticket: ticket.map(Expr::from),
            current: current.map(Expr::from),
        }
    }

    /// Only the head of a queue may be next: its fields are read before it is removed.
    fn queued_arrival(
        &mut self,
        flow: usize,
        queue: usize,
        label: u32,
        place: Place,
        line: &Expr,
    ) -> Arrival {
        let carries = self.carries_line(flow);
        let tickets = self.flows[flow].tickets.and_then(|tickets| tickets.ty);
        let columns = self.flows[flow].columns.clone();
        let stored = self.flows[flow].stored.clone();
        let head = place.clone().field("slot").at(0);
        let kinds = self.queues[queue].kinds;
        let mut present = head.clone().field("kind").is(kinds.nth(label));
        if self.lines > 1 {
            present = present.and(self.queues[queue].about(&head, line));
        }
        let (mut field_saves, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for (column, ty) in columns.into_iter().zip(stored) {
            let name = format!("field{column}");
            let value = head.clone().field(&name);
            let local = self.local(&name, ty);
            field_saves.push(local.begin(&value));
            before.push(value.into());
            after.push(local.into());
        }
        let ticket = tickets.map(|ty| self.local("ticket", ty));
        if let Some(ticket) = ticket {
            field_saves.push(ticket.begin(head.clone().field("ticket")));
        }
        let current = carries.then(|| self.local("brought", TypeId::BOOL));
        if let Some(current) = current {
            field_saves.push(current.begin(head.field("current")));
        }
        let positions = self.queues[queue].positions;
        let length = place.clone().field("length");
        let slots = place.field("slot");
        let shift = self.with_bound(positions, |_, i| {
            let moved = slots.clone().at(i).set(slots.clone().at(i + 1));
            i.each(vec![when((i + 1).lt(&length), vec![moved])])
        });
        let removal = vec![
            shift,
            slots.at(length.clone() - 1).clear(),
            length.clone().set(length - 1),
        ];
        Arrival {
            parameters: Vec::new(),
            present,
            field_saves,
            removal,
            before,
            after,
            ticket: ticket.map(Expr::from),
            current: current.map(Expr::from),
        }
    }

    /// Steps of memory operations: memory reads or writes, and answers the home.
    fn memory_steps(&mut self) -> Result<(), SystemError> {
        let Some(memory) = self.slot else {
            return Ok(());
        };
        let (l, line) = self.line_index();
        let state = memory.state.at(l);
        let is_in_state = |label: u32| state.clone().is(memory.states.nth(label));
        let set_state = |label: u32| state.clone().set(memory.states.nth(label));
        let current = memory.current.at(l);
        let memory_bit = self.memory.at(l);
        let read_only = "memory is read for a remote while the device may write it under its lock";
        let reads = self.assert_unlocked(&line, &[lock::WRITE], read_only);
        let excluded = "a store reaches memory while the device holds the lock";
        let stores = self.assert_unlocked(&line, &[lock::READ, lock::WRITE], excluded);
        let may_write: Vec<Stmt> = self.may_write(&line).into_iter().collect();
        let write_everything = self.mark_copies_stale(&line, true);
        let write_partly = self.mark_copies_stale(&line, false);
        let steps = [
            (
                "is read",
                slot::READ,
                [
                    reads.into_iter().collect(),
                    vec![
                        assert(
                            Violation::new("data value", "memory is read while it is stale"),
                            memory_bit.clone(),
                        ),
                        current.clone().set(memory_bit.clone()),
                        set_state(slot::SAMPLED),
                    ],
                ]
                .concat(),
            ),
            (
                "is written",
                slot::WRITE,
                [
                    may_write.clone(),
                    vec![
                        memory_bit.clone().set(current.clone()),
                        current.clone().set(false),
                        set_state(slot::DONE),
                    ],
                ]
                .concat(),
            ),
            (
                "takes the store",
                slot::STORE,
                [
                    may_write.clone(),
                    stores.clone().into_iter().collect(),
                    write_everything,
                    vec![memory_bit.set(true), set_state(slot::DONE)],
                ]
                .concat(),
            ),
            (
                "takes the partial store",
                slot::PARTIAL,
                [
                    may_write,
                    stores.into_iter().collect(),
                    write_partly,
                    vec![set_state(slot::DONE)],
                ]
                .concat(),
            ),
        ];
        for (action, from, body) in steps {
            let note = self.note_action(self.memory_agent, &line, action, true);
            self.build.rule(Rule {
                name: format!("memory {action}"),
                parameters: vec![l],
                guard: is_in_state(from),
                body: [vec![note], body].concat(),
                spontaneous: false,
                priority: 0,
            });
        }
        self.memory_answers(memory, l)
    }

    /// The home consumes the data of a memory read, or the completion of a memory write.
    fn memory_answers(&mut self, memory: Slot, l: VariableId) -> Result<(), SystemError> {
        let line = Expr::from(l);
        let state = memory.state.at(l);
        let is_in_state = |label: u32| state.clone().is(memory.states.nth(label));
        let set_state = |label: u32| state.clone().set(memory.states.nth(label));
        let current = memory.current.at(l);
        let alternatives = self
            .home
            .controller
            .rules
            .iter()
            .filter_map(|row| match row.event {
                Event::MemoryData(k) => Some(k),
                _ => None,
            });
        let alternatives = alternatives.max().unwrap_or(0);
        let incoming_copy = self.local("sampled", TypeId::BOOL);
        for alternative in 0..=alternatives {
            let consume = vec![
                incoming_copy.begin(current.clone()),
                current.clone().set(false),
                set_state(slot::IDLE),
            ];
            let name = if alternatives == 0 {
                "takes the memory's data".to_string()
            } else {
                format!("takes the memory's data, choice {alternative}")
            };
            let is_required = alternative == 0;
            let trigger = self.home_trigger(
                &line,
                l,
                &name,
                is_in_state(slot::SAMPLED),
                consume,
                is_required,
            );
            self.react(
                Event::MemoryData(alternative),
                Trigger {
                    incoming_copy: Some(incoming_copy.into()),
                    ..trigger
                },
            )?;
        }
        let consume = vec![set_state(slot::IDLE)];
        let name = "hears that memory is done";
        let trigger = self.home_trigger(&line, l, name, is_in_state(slot::DONE), consume, true);
        self.react(Event::MemoryDone, trigger).map(|_| ())
    }

    /// Steps of the device: it requests local operations, uses the line under its lock, and unlocks.
    fn device_steps(&mut self) -> Result<(), SystemError> {
        let Some(device) = self.device else {
            return Ok(());
        };
        self.add_device_requests(device)?;
        match self.home.controller.locals.iter().any(|local| local.locks) {
            true => self.device_locks(device),
            false => Ok(()),
        }
    }

    fn add_device_requests(&mut self, device: Device) -> Result<(), SystemError> {
        let (l, line) = self.line_index();
        let (requested, accepted) = (device.requested.at(l), device.accepted.at(l));
        let mut idle = requested.clone().is(0);
        if !self.options.overlaps_requests {
            idle = idle.and(accepted.clone().is(0));
        }
        let locals = &self.home.controller.locals;
        for (k, local) in locals.iter().enumerate() {
            let code = k as i32 + 1;
            let action = format!("asks for {}", local.name);
            let note = self.note_action(device.agent, &line, &action, true);
            let mut body = vec![note, requested.clone().set(code)];
            body.extend(self.watch_request(k, &line));
            self.build.rule(Rule {
                name: format!("device {action}"),
                parameters: vec![l],
                guard: idle.clone().and(self.may_request_operation(k, &line)),
                body,
                spontaneous: true,
                priority: 0,
            });
            let takes = format!("takes {}", local.name);
            let consume = vec![
                self.note_action(self.home_agent(&line), &line, &takes, true),
                requested.clone().set(0),
            ];
            let present = requested.clone().is(code);
            let trigger = self.home_trigger(&line, l, &takes, present, consume, false);
            self.react(
                Event::Local(k as u8),
                Trigger {
                    accept_effects: vec![
                        assert(
                            Violation::new(
                                "one local operation at a time",
                                "the home accepts a local operation while another one is in progress",
                            ),
                            accepted.clone().is(0),
                        ),
                        accepted.clone().set(code),
                    ],
                    refuse_effects: Some(vec![self.note_action(
                        self.home_agent(&line),
                        &line,
                        &format!("refuses {}", local.name),
                        true,
                    )]),
                    ..trigger
                },
            )?;
        }
        Ok(())
    }

    /// The device unlocks, and writes while its lock allows it.
    fn device_locks(&mut self, device: Device) -> Result<(), SystemError> {
        let (l, line) = self.line_index();
        let (locals, lock_state) = (&self.home.controller.locals, device.lock.at(l));
        let is_lock = |label: u32| lock_state.clone().is(device.locks.nth(label));
        // A device may unlock a line that it has not locked. Refusing has no effect, so only a home that takes the
        // unlock matters.
        let unlocks = "unlocks a line that it has not locked";
        let consume = vec![self.note_action(device.agent, &line, unlocks, true)];
        let present = is_lock(lock::NONE);
        let trigger = self.home_trigger(&line, l, "takes a stray unlock", present, consume, false);
        self.react(
            Event::Unlock,
            Trigger {
                accept_effects: vec![error(Violation::new(
                    "lock",
                    "the home takes an unlock of a line that is not locked",
                ))],
                ..trigger
            },
        )?;
        let consume = vec![self.note_action(device.agent, &line, "unlocks", true)];
        let present = is_lock(lock::READ).or(is_lock(lock::WRITE));
        let trigger = self.home_trigger(&line, l, "takes the unlock", present, consume, false);
        self.react(
            Event::Unlock,
            Trigger {
                accept_effects: vec![lock_state.clone().set(device.locks.nth(lock::UNLOCKING))],
                refuse_effects: Some(vec![error(Violation::new(
                    "lock",
                    "the home refuses an unlock of a line that is locked",
                ))]),
                ..trigger
            },
        )?;
        // An outer level writes lines whose permission it has revoked, in a rule of its own.
        let writes = locals.iter().any(|l| l.locks && l.ensures == Right::None);
        if writes && self.backing_permission.is_none() {
            let changes = self.has_other_current_copy(&line, None);
            let mut body = vec![self.note_action(device.agent, &line, "writes", true)];
            body.extend(self.mark_copies_stale(&line, true));
            body.push(self.memory.at(l).set(true));
            self.build.rule(Rule {
                name: "device writes under its lock".into(),
                parameters: vec![l],
                guard: is_lock(lock::WRITE).and(changes),
                body,
                spontaneous: true,
                priority: 0,
            });
        }
        Ok(())
    }

    /// A trigger of the home that is no message.
    fn home_trigger(
        &self,
        line: &Expr,
        l: VariableId,
        name: &str,
        present: Expr,
        consume: Vec<Stmt>,
        is_required: bool,
    ) -> Trigger {
        let context = Self::context(true, line, None);
        Trigger {
            name: format!("{} {name}", self.home.controller.name),
            parameters: vec![l],
            present,
            before: context.clone(),
            after: context,
            consume,
            accept_effects: Vec::new(),
            refuse_effects: None,
            message: None,
            store: None,
            incoming_copy: None,
            is_required,
            spontaneous: false,
        }
    }
}

/// Expressions and statements that take a message out of its channel.
struct Arrival {
    parameters: Vec<VariableId>,
    present: Expr,
    /// Saves the fields of the message.
    field_saves: Vec<Stmt>,
    /// Removes the message.
    removal: Vec<Stmt>,
    /// Stored fields, in guards and after `field_saves`.
    before: Vec<Expr>,
    after: Vec<Expr>,
    /// Ticket of the message's store, if it is stored.
    ticket: Option<Expr>,
    /// Current bit of the message's copy of the line.
    current: Option<Expr>,
}

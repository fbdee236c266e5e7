//! Rows of the home: their application to lines, and the memory operations and local operations that they start or
//! complete.

use cohkit_base::sequence::Action;
use cohkit_system::agent::{self, HomeInput};
use std::ops::Range;

use super::super::caches::check_inclusion;
use super::row::{HomeRow, TakenInput};
use super::*;
use crate::simulation::event_prefetch::prefetch_receiver;

impl Home {
    /// Applies the transition of an input that the home takes.
    #[inline(always)]
    pub fn apply_transition(&mut self, env: &mut HomeEnvironment, input: &TakenInput) {
        let TakenInput {
            work,
            line,
            message,
            before,
            transition,
        } = *input;
        let tables = env.context.tables;
        let home = tables.home_of(line);
        self.executor.commit_registers(&mut env.context, home);
        let mut next_line = None;
        if let (Work::Message(index), Some(message)) = (work, message) {
            next_line = (env.interconnect).take_message(&mut env.context, index, message);
        }
        env.context.observe(Fact::TakenAtHome {
            work,
            line,
            message,
        });
        self.record_local(env, work);
        if let Some(message) = message {
            self.record_message(env.context.tables, message);
        }
        if transition.next != before {
            self.directory.set(line, transition.next);
            if let Some(application) = &mut env.application {
                let program = &self.executor.program;
                let change = (before, transition.next);
                application.notify_permission_change(&mut env.context, program, line, change);
            }
        }
        self.apply_acts(env, input);
        if let Some(message) = message {
            self.release_message(env, message, transition);
        }
        self.observe_state(&mut env.context, line, transition.next);
        self.return_waiting_inputs(env, tables.unit_of(line), line);
        if let Some(next_line) = next_line {
            self.return_waiting_inputs(env, tables.unit_of(next_line), next_line);
        }
    }

    /// Applies the acts of a row.
    #[inline(always)]
    fn apply_acts(&mut self, env: &mut HomeEnvironment, input: &TakenInput) {
        let tables = env.context.tables;
        let latency = match input.work {
            Work::Read(_) | Work::Written(_) => tables.times.resume,
            _ => tables.times.latency,
        };
        let carried_copy = (input.message)
            .filter(|message| tables.kind_of(message).line)
            .map(|message| message.copy);
        let home_input = HomeInput {
            message: input.message.map(|message| message.kind),
            carried_copy: carried_copy.as_ref(),
        };
        let mut row = HomeRow {
            ready: env.context.now() + latency,
            acts: input.transition.acts(),
            home: self,
            env,
            input,
        };
        let Ok(()) = agent::home(&tables.facts, home_input, &mut row);
    }

    /// Records that the home takes a local operation or an unlock.
    #[inline(always)]
    fn record_local(&mut self, env: &mut HomeEnvironment, work: Work) {
        match work {
            Work::Local(line, _) => {
                let is_of_device = self.upper_level.is_none() && env.application.is_none();
                if is_of_device && !self.is_directory_eviction(line) {
                    env.device.current = Some(Operation {
                        line,
                        locked: false,
                    });
                }
            }
            Work::Unlock(line) => {
                let locks = &mut env.context.local.locks;
                match &mut self.upper_level {
                    // The device no longer uses the line from here on.
                    None => env.device.release_lock(line, locks),
                    Some(above) => above.begin_unlock(line, locks),
                }
            }
            _ => {}
        }
    }

    /// Records that the home takes a message: the answer to a forward, or bytes of a write that are kept.
    #[inline(always)]
    fn record_message(&mut self, tables: &Tables, message: &Message) {
        let kind = tables.kind_of(message);
        let unit = &mut self.units[tables.unit_of(message.line)];
        if kind.class == Some(Class::Answer)
            && unit.unanswered_forwards > 0
            && unit.forwarded_line == message.line
        {
            unit.unanswered_forwards -= 1;
        }
        if kind.store && self.executor.program.keeps_store_bytes {
            (unit.deferred_stores).push(Store::from_message(message, kind.carries_whole_line));
        }
    }

    /// Releases the bytes of a message that the home has taken. A store whose bytes are dropped must be outstanding.
    #[inline(always)]
    fn release_message(
        &mut self,
        env: &mut HomeEnvironment,
        message: &Message,
        transition: &Transition,
    ) {
        let (program, line) = (&self.executor.program, message.line);
        let kind = env.context.tables.kind_of(message);
        let keeps_bytes = |act| matches!(program.act(act), Act::WriteMemory | Act::DeferStore);
        let is_dropped =
            kind.store && !program.keeps_store_bytes && !transition.acts().any(keeps_bytes);
        if kind.line || is_dropped {
            env.context.contents.data.release(message.copy);
        }
        if is_dropped && !(env.caches).has_outstanding_store(&env.context, message.from, line) {
            let name = env.context.agent_name(message.from);
            let text = format!("a store that {name} has completed is not performed");
            let property = env.context.contents.oracle.store_property();
            env.context.fail(property, line, text);
        }
    }

    /// Reports the state of a line.
    #[inline(always)]
    fn observe_state(&self, context: &mut Context, line: Line, configuration: ConfigurationId) {
        let home = context.tables.home_of(line);
        (self.executor).observe_state(context, (HOME, line), home, configuration);
    }

    /// Sends a message that is ready at `ready`. If that is not known yet, or an earlier message of its order is not
    /// sent yet, the message is kept.
    #[inline(always)]
    pub(super) fn send_in_order(
        &mut self,
        env: &mut HomeEnvironment,
        message: Message,
        number: u32,
        ready: Option<Time>,
    ) {
        match ready {
            Some(ready) if self.delayed.is_empty() => self.send(env, message, ready),
            ready => {
                if let Some(ready) = ready {
                    env.context.keep_cause(number, ready);
                }
                self.delayed.add(message, number, ready);
                self.send_delayed(env);
            }
        }
    }

    /// Sends the messages whose line memory has read, and those that were kept behind them.
    pub fn send_delayed(&mut self, env: &mut HomeEnvironment) {
        let ready_messages = env.memory.take_ready_messages();
        if self.delayed.is_empty() {
            return;
        }
        for (number, ready) in ready_messages {
            self.delayed.set_ready(number, ready);
        }
        let kinds = &env.context.tables.kinds;
        let is_ordered = |message: &Message| kinds[message.kind.index()].order_group.is_some();
        for (message, number, ready) in self.delayed.take_ready(is_ordered) {
            let ready = ready.max(env.context.now());
            env.context.resume_message(number, ready);
            self.send(env, message, ready);
        }
    }

    /// Sends a message that is ready at `ready`, and prefetches the state that its receiver accesses first.
    #[inline]
    pub fn send(&mut self, env: &mut HomeEnvironment, message: Message, ready: Time) {
        let ways = &env.caches.ways;
        prefetch_receiver(&env.context, &message, ways, &self.directory, env.memory);
        env.interconnect.send(&mut env.context, message, ready);
    }
}

/// Memory.
impl Home {
    /// Starts a read by memory, or by the application that serves the line.
    pub fn read_memory(
        &mut self,
        env: &mut HomeEnvironment,
        ready: Time,
        line: Line,
        transition: &Transition,
    ) {
        if let Some(application) = serving_application(&mut env.application, line) {
            let program = &mut self.executor.program;
            return application.present_read(&mut env.context, program, ready, line, transition);
        }
        let event = KernelEvent::Read(line);
        (env.memory).start_for_unit(&mut env.context, ready, (line, false), event);
    }

    /// Starts a write by memory, or by the application that serves the line.
    pub fn write_memory(
        &mut self,
        env: &mut HomeEnvironment,
        ready: Time,
        line: Line,
        next: ConfigurationId,
    ) {
        if let Some(application) = serving_application(&mut env.application, line) {
            let copy = env.memory.copy(line);
            let program = &self.executor.program;
            return application.present_write(&mut env.context, program, ready, (line, copy), next);
        }
        let event = KernelEvent::Written(line);
        (env.memory).start_for_unit(&mut env.context, ready, (line, true), event);
    }

    /// Performs a cache's write at memory. Returns the words if only a part is written.
    pub(super) fn perform_store(
        &mut self,
        env: &mut HomeEnvironment,
        store: Store,
        is_whole_line: bool,
    ) -> Option<Range<u16>> {
        if let Some(above) = &mut self.upper_level {
            above.notify_written(store.line);
        }
        store.perform(env, is_whole_line)
    }
}

/// Local operations of the agent behind the home: the device, the application, or the cache above.
impl Home {
    /// Presents a local operation or an unlock to its unit.
    pub fn present_local(&mut self, env: &mut HomeEnvironment, work: Work, line: Line) {
        if self.clocked.is_some() {
            return self.submit_local(&mut env.context, line, work);
        }
        let request = matches!(work, Work::Local(..));
        self.present(env, work, line, None, request);
    }

    /// Completes a local operation at the home, and checks the permissions it guarantees.
    pub(super) fn complete_local_operation(
        &mut self,
        env: &mut HomeEnvironment,
        line: Line,
        local: u8,
    ) {
        let context = &mut env.context;
        let Some(operation) = context.tables.locals.get(local as usize) else {
            let text = "an unknown operation is acknowledged".into();
            return context.fail(FailureKind::Meaningless, line, text);
        };
        let (ensures, name) = (operation.ensures, &operation.name);
        context.tally.counters.locals[0] += 1;
        if context.is_traced(line) {
            let what = format!("acknowledges {name}");
            context.note(HOME, line, Action::Does { what });
        }
        context.check_memory(line, env.memory.copy(line), "is given to the device");
        // The oracle does not track the permissions of a single caching agent.
        let oracle_agrees =
            env.caches.count() > 1 && context.contents.oracle.highest_permission(line) <= ensures;
        for cache in env.caches.agents().filter(|_| !oracle_agrees) {
            let permission = env.caches.permission(cache, line);
            if permission > ensures {
                let text = format!(
                    "{} may {permission} after {name}",
                    context.agent_name(cache)
                );
                context.fail(FailureKind::SingleWriter, line, text);
            }
        }
        if !self.defer_acknowledgement(line, local) {
            self.notify_device(env, line, local);
        }
    }

    /// Notifies the agent behind the home of a completed local operation.
    pub fn notify_device(&mut self, env: &mut HomeEnvironment, line: Line, local: u8) {
        let context = &mut env.context;
        let Some(operation) = context.tables.locals.get(local as usize) else {
            return;
        };
        let (ensures, locks) = (operation.ensures, operation.locks);
        if let Some(above) = &mut self.upper_level {
            above.notify_locked(line, &mut context.local.locks);
        } else if let Some(application) = &mut env.application {
            application.acknowledge(context, env.frontend, line, ensures, locks);
        } else if locks {
            context.local.locks.lock(line, ensures);
            env.device.use_line(context, line);
        } else {
            env.device.end_operation(context);
        }
    }
}

/// Coupling with the level above.
impl Home {
    /// Handles a change of the permission or copy of the cache above.
    pub fn handle_change_above(
        &mut self,
        env: &mut HomeEnvironment,
        line: Line,
        permission: Permission,
        copy: Copy,
    ) {
        let Some(above) = &mut self.upper_level else {
            return;
        };
        let previous = above.permissions.get(line);
        above.permissions.set(line, permission);
        let data = &mut env.context.contents.data;
        let copy = match permission {
            Permission::None => Copy::UNTOUCHED,
            _ => data.share(copy),
        };
        env.memory.set_copy(data, line, copy);
        if permission < previous {
            for cache in env.caches.agents() {
                let cache_permission = env.caches.permission(cache, line);
                let cache_line = (cache, line);
                let above = &above.permissions;
                check_inclusion(&mut env.context, above, cache_line, cache_permission);
            }
        } else if permission > previous {
            let unit = env.context.tables.unit_of(line);
            self.return_waiting_inputs(env, unit, line);
        }
    }

    /// Handles a recall by the level above, after which caches here keep at most permission `remaining`.
    pub fn handle_recall(&mut self, env: &mut HomeEnvironment, line: Line, remaining: Permission) {
        let Some(operation) = hierarchy::recalling_operation(&env.context.tables.locals, remaining)
        else {
            let text = format!(
                "no local operation of the lower level locks the line and leaves {remaining:?}"
            );
            return env.context.fail(FailureKind::Meaningless, line, text);
        };
        if let Some(above) = &mut self.upper_level {
            above.request_lock(line, remaining);
        }
        self.present_local(env, Work::Local(line, operation), line);
    }
}

/// Returns the application if it answers the home's reads of `line` and accepts its writes.
#[inline]
pub(super) fn serving_application<'a>(
    application: &'a mut Option<&mut Application>,
    line: Line,
) -> Option<&'a mut Application> {
    application
        .as_deref_mut()
        .filter(|application| application.serves(line))
}

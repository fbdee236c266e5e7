//! Rows of caches: their effects on lines, messages and accesses, and the checks of their results.

use cohkit_protocol::controller::Access;
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_system::plan::CompletionEffect;

use super::super::program::{number_of, Act};
use super::*;
use crate::data::Data;
use crate::oracle::Level;
use crate::simulation::Pending;

impl Caches {
    /// Applies a transition to `entry`, which the caller then writes back. `message` is the consumed message,
    /// `access` the access that starts.
    pub(super) fn apply_transition(
        &mut self,
        env: &mut CacheEnvironment,
        (cache, line): (Agent, Line),
        entry: &mut Entry,
        transition: &Transition,
        message: Option<&Message>,
        access: Option<u32>,
    ) {
        self.executor
            .commit_registers(&mut env.context, cache.index());
        let (before, after) = (transition.before, transition.after);
        let carries_line = message.is_some_and(|m| env.context.tables.kind_of(m).line);
        let mut received_copy = message.filter(|_| carries_line).map(|message| message.copy);
        for act in transition.acts() {
            match self.executor.program.act(act) {
                Act::Send { .. } => {
                    let source = received_copy.or(before.holds_line.then_some(entry.copy));
                    self.send_from_row(env, (cache, line), entry, act, source, access);
                }
                Act::Done => self.complete_pending_access(
                    env,
                    cache,
                    line,
                    entry,
                    &mut received_copy,
                    transition,
                ),
                Act::BulkTransition { from, to } => self.bulk_transitions.push((from, to)),
                _ => self.report_unsupported(
                    env,
                    cache,
                    line,
                    entry.configuration,
                    "an action of a home",
                ),
            }
        }
        self.check_abandoned_store(env, cache, line, entry, transition);
        if let (Some(copy), true) = (received_copy, entry.first_access != NONE) {
            let access = &mut env.context.local.accesses[entry.first_access];
            if access.kind == Access::Atomic {
                let old_value = env.context.contents.data.word(line, copy, access.word);
                access.found = Some(old_value);
            }
        }
        let data = &mut env.context.contents.data;
        replace_copy(
            data,
            entry,
            received_copy,
            (before.holds_line, after.holds_line),
        );
        if transition.next != entry.configuration && !self[cache].held_accesses.is_empty() {
            self.executor
                .schedule_retry(&mut env.context, cache.index());
        }
        entry.configuration = transition.next;
        if let Some(lower_level) = &mut self.lower_level {
            lower_level.notify_change(cache, line);
        }
        let is_tracked = self.count() > 1 || env.permissions_above.is_some();
        if after.permission != before.permission && is_tracked {
            let oracle = &mut env.context.contents.oracle;
            oracle.record_permission_change(line, before.permission, after.permission);
        }
        if after.permission > before.permission {
            self.check_permissions(env, cache, line, after.permission);
        }
        // An L1 may hold a line only while its cache has read permission, and not beyond the arrival of new bytes.
        if !env.frontend.cores.is_empty() && (after.permission == Permission::None || carries_line)
        {
            (env.frontend.cores).invalidate_in_l1s(&mut env.context, cache, line, None);
        }
        self.observe_state(env, cache, line, entry.configuration);
    }

    /// Sends the message of an act, with the bytes of `source` if it carries the line.
    #[inline(always)]
    fn send_from_row(
        &mut self,
        env: &mut CacheEnvironment,
        (cache, line): (Agent, Line),
        entry: &Entry,
        act: u32,
        source: Option<Copy>,
        access: Option<u32>,
    ) {
        let Act::Send {
            message: kind,
            to,
            fields,
        } = self.executor.program.act(act)
        else {
            return;
        };
        let message_kind = &env.context.tables.kinds[kind.index()];
        let (mut copy, mut word, mut words) = (Copy::UNTOUCHED, 0, 0);
        if message_kind.line {
            let Some(source) = source else {
                let name = env.context.agent_name(cache);
                let text = format!("{name} sends a line it does not have");
                return env.context.fail(FailureKind::Meaningless, line, text);
            };
            env.context.check_single_use(line, kind.index(), source);
            copy = env.context.contents.data.share(source);
        } else if message_kind.store {
            let first_access = (entry.first_access != NONE).then_some(entry.first_access);
            let store_index = access.or(first_access);
            (copy, word, words) = self.bytes_to_send(env, cache, line, entry, store_index);
        }
        let message = Message {
            line: env.context.tables.line_of(kind, line, to),
            copy,
            kind,
            from: cache,
            to: number_of(to),
            word,
            words,
            fields,
            credit: false,
            flight: 0,
        };
        self.send(env, message);
    }

    /// Checks that a row does not cancel a store that the home has performed.
    #[inline(always)]
    fn check_abandoned_store(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &Entry,
        transition: &Transition,
    ) {
        let accesses = &env.context.local.accesses;
        let is_performed = entry.first_access != NONE && accesses[entry.first_access].performed;
        let oracle = &env.context.contents.oracle;
        if transition.abandons_store && is_performed && oracle.level > Level::Off {
            let (property, name) = (oracle.store_property(), env.context.agent_name(cache));
            let text = format!("a store of {name} is cancelled although the home has performed it");
            env.context.fail(property, line, text);
        }
    }

    /// Reports the state of a line in a cache.
    #[inline(always)]
    fn observe_state(
        &self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        configuration: ConfigurationId,
    ) {
        let agent_line = (cache, line);
        (self.executor).observe_state(&mut env.context, agent_line, cache.index(), configuration);
    }

    /// Returns the bytes of the outstanding write for a message to the home: copy, first word and number of words.
    fn bytes_to_send(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &Entry,
        index: Option<u32>,
    ) -> (Copy, u16, u16) {
        let pending = index.map(|index| env.context.local.accesses[index]);
        let (Some(index), Some(access)) = (index, pending.filter(|access| access.kind.writes()))
        else {
            let reason = "its row sends the data of a write without a pending write";
            self.report_unsupported(env, cache, line, entry.configuration, reason);
            return (Copy::UNTOUCHED, 0, 0);
        };
        if access.purpose == Purpose::Atomic && access.kind != Access::Atomic {
            let reason = "an atomic access needs the line, but its row sends the data to the home";
            self.report_unsupported(env, cache, line, entry.configuration, reason);
        }
        // The next message to be sent gets this flight number.
        let flight = env.context.local.flights.wrapping_add(1);
        (env.context.contents.oracle).record_store_sent((cache, line), flight, access.sent);
        let pending_access = &mut env.context.local.accesses[index];
        (pending_access.sent, pending_access.flight) = (true, flight);
        let copy = env.frontend.bytes_to_send(&mut env.context, &access);
        (copy, access.word, access.words)
    }

    /// Completes the pending access as the row specifies.
    fn complete_pending_access(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        received_copy: &mut Option<Copy>,
        transition: &Transition,
    ) {
        let index = entry.first_access;
        if index == NONE {
            let problem = "`done` without an access";
            return self.report_unsupported(env, cache, line, entry.configuration, problem);
        }
        let access = env.context.local.accesses[index];
        let source = received_copy.or(transition.before.holds_line.then_some(entry.copy));
        let configuration = entry.configuration;
        match (transition.done, source) {
            (CompletionEffect::Completes(CompletionKind::Sent), source) => {
                self.complete_sent_write(env, &access, source, configuration)
            }
            (CompletionEffect::Completes(CompletionKind::Read), Some(copy)) => {
                complete_read(env, &access, copy, received_copy.is_none())
            }
            (CompletionEffect::Completes(CompletionKind::Write), Some(copy)) => {
                if transition.is_partial_write {
                    env.context.check_written(cache, line, copy);
                }
                let (frontend, context) = (&mut env.frontend, &mut env.context);
                let new_copy = match access.kind {
                    Access::WriteLine => frontend.write_full_line(context, &access, copy),
                    _ => frontend.write(context, &access, copy),
                };
                match received_copy {
                    Some(received_copy) => *received_copy = new_copy,
                    None => entry.copy = new_copy,
                }
            }
            _ => self.report_unsupported(env, cache, line, configuration, "`done` without data"),
        }
        entry.first_access = access.next;
        self.complete_access(env, index, false, true);
    }

    /// Completes a write that the home has performed. `source` has the old value of an atomic access.
    fn complete_sent_write(
        &mut self,
        env: &mut CacheEnvironment,
        access: &Pending,
        source: Option<Copy>,
        configuration: ConfigurationId,
    ) {
        let Pending { cache, line, .. } = *access;
        if !access.performed {
            let name = env.context.agent_name(cache);
            let text = format!("{name} completes a write that the home has not performed");
            let property = env.context.contents.oracle.store_property();
            return env.context.fail(property, line, text);
        }
        if access.purpose != Purpose::Atomic || access.kind != Access::Atomic {
            return;
        }
        let data = &env.context.contents.data;
        let old_value = source.map(|copy| data.word(line, copy, access.word));
        match old_value.or(access.found) {
            Some(old_value) => {
                (env.frontend).complete_home_atomic(&mut env.context, access, old_value)
            }
            None => {
                let problem = "`done` without the old value of an atomic access";
                self.report_unsupported(env, cache, line, configuration, problem)
            }
        }
    }

    /// Moves all lines of a cache from one state to another, if rows just taken contain such bulk transitions.
    #[inline(always)]
    pub(super) fn apply_bulk_transitions(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        if !self.bulk_transitions.is_empty() {
            self.move_all_lines(env, cache);
        }
    }

    /// Moves all lines of a cache in the order of their addresses. Performs no checks of permissions.
    #[cold]
    fn move_all_lines(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        for (from, to) in std::mem::take(&mut self.bulk_transitions) {
            for line in self.lines_of(cache) {
                let (place, mut entry) = self.find(cache, line);
                if self.executor.program.state(entry.configuration) != from.index() {
                    continue;
                }
                let before = self.executor.program.properties(entry.configuration);
                entry.configuration = self.executor.program.in_state(entry.configuration, to);
                let after = self.executor.program.properties(entry.configuration);
                if before.holds_line && !after.holds_line {
                    env.context
                        .contents
                        .data
                        .release(std::mem::replace(&mut entry.copy, Copy::UNTOUCHED));
                }
                if after.permission != before.permission && self.count() > 1 {
                    env.context.contents.oracle.record_permission_change(
                        line,
                        before.permission,
                        after.permission,
                    );
                }
                if after.permission == Permission::None && !env.frontend.cores.is_empty() {
                    (env.frontend.cores).invalidate_in_l1s(&mut env.context, cache, line, None);
                }
                self.observe_state(env, cache, line, entry.configuration);
                self.write_back_entry(env, cache, line, place, entry);
            }
        }
    }

    /// Writes an entry back to its place, according to its new configuration. A line in the initial configuration
    /// has no entry.
    #[inline(always)]
    pub(super) fn write_back_entry(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        place: Place,
        mut entry: Entry,
    ) {
        let is_absent = entry.configuration == self.initial_configuration(cache);
        let (ways, cache_state) = (&mut self.ways, &mut self.caches[cache.index()]);
        match place {
            Place::Way(slot) if is_absent => {
                ways.clear(slot);
                env.context.local.cached_lines -= 1;
            }
            Place::Way(slot) => ways.set_entry(slot, encode_entry(entry)),
            // The list may have changed since. Each line is in it at most once.
            Place::OutsideWays => {
                let index = cache_state
                    .transient_lines
                    .iter()
                    .position(|&(transient_line, _)| transient_line == line);
                match index {
                    Some(index) if is_absent => {
                        cache_state.transient_lines.swap_remove(index);
                    }
                    Some(index) => cache_state.transient_lines[index].1 = entry,
                    None => {}
                }
            }
            Place::Absent if is_absent => {}
            Place::Absent => cache_state.transient_lines.push((line, entry)),
        }
        // Accesses that still wait for a line that is now absent start again.
        while is_absent && entry.first_access != NONE {
            let index = entry.first_access;
            entry.first_access = env.context.local.accesses[index].next;
            env.context.local.accesses[index].next = NONE;
            env.context
                .schedule(env.context.now(), KernelEvent::Access(index));
        }
        let waiting_for_way = !self[cache].waiting_for_way.is_empty();
        if waiting_for_way && self.executor.program.properties(entry.configuration).stable {
            self.retry_waiting_for_way(env, cache);
        }
    }

    /// Fails the run because a row of a cache cannot be executed.
    #[cold]
    pub(super) fn report_impossible_row(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        transition: &Transition,
    ) {
        let tables = env.context.tables;
        let name = tables.agent_name(cache);
        let program = &self.executor.program;
        let text = program.fault(name, &tables.protocol_messages, transition);
        env.context.fail(FailureKind::UnexpectedMessage, line, text);
    }

    /// Checks a permission that an agent has gained.
    #[inline]
    fn check_permissions(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        permission: Permission,
    ) {
        if let Some(permissions_above) = env.permissions_above {
            check_inclusion(
                &mut env.context,
                permissions_above,
                (cache, line),
                permission,
            );
        } else if self.count() == 1 && env.context.local.locks.is_empty() {
            return;
        }
        if env.context.contents.oracle.is_excluded(line, permission) {
            self.report_conflicting_permissions(env, cache, line, permission);
        }
        let lock_permission = env.context.local.locks.permission(line);
        if !are_compatible(permission, lock_permission) {
            let text = format!(
                "{} may {permission} under the device's lock",
                env.context.agent_name(cache)
            );
            env.context.fail(FailureKind::SingleWriter, line, text);
        }
    }

    /// Reports which other agents' permissions exclude the one that an agent has gained.
    #[cold]
    fn report_conflicting_permissions(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        permission: Permission,
    ) {
        for other in self.agents().filter(|&other| other != cache) {
            let configuration = self.configuration(other, line);
            let other_permission = self.executor.program.properties(configuration).permission;
            if !are_compatible(permission, other_permission) {
                let text = format!(
                    "{} may {permission} while {} may {other_permission}",
                    env.context.agent_name(cache),
                    env.context.agent_name(other)
                );
                env.context.fail(FailureKind::SingleWriter, line, text);
            }
        }
        if env.permissions_above.is_some() {
            let name = env.context.agent_name(cache);
            let text = format!(
                "{name} may {permission}, but a cache below another one has a conflicting permission"
            );
            env.context.fail(FailureKind::SingleWriter, line, text);
        }
    }

    /// Fails the run because of a problem in a configuration of a cache: a row that has no meaning in a simulation.
    #[cold]
    pub(super) fn report_unsupported(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        configuration: ConfigurationId,
        problem: &str,
    ) {
        let state_text = self.state_text(env.context.tables, cache, configuration);
        let text = format!(
            "{} in {state_text}: {problem}",
            env.context.agent_name(cache)
        );
        env.context.fail(FailureKind::Meaningless, line, text);
    }
}

/// Completes a read with the bytes of a message, or of the cache's own copy if `in_place`.
fn complete_read(env: &mut CacheEnvironment, access: &Pending, copy: Copy, in_place: bool) {
    let context = &mut env.context;
    // The bytes of a message were checked when it was sent, which may have been before the read started.
    context.check_own_stores(access, copy);
    if in_place || context.contents.oracle.may_be_stale() {
        env.frontend.check_load(context, access, copy);
    } else if context.contents.data.version(copy) < access.since {
        let (name, since) = (context.agent_name(access.cache), access.since);
        let text = format!("{name} completes a read with data that were stale before write {since}, although the read started later");
        context.fail(FailureKind::DataValue, access.line, text);
    }
    env.frontend.read(context, access, copy, in_place);
}

/// Replaces an entry's copy by the one that its row has received, if the configurations before and after hold the line.
#[inline(always)]
fn replace_copy(
    data: &mut Data,
    entry: &mut Entry,
    received_copy: Option<Copy>,
    (held_before, holds_after): (bool, bool),
) {
    let old = entry.copy;
    match (received_copy, holds_after) {
        (Some(copy), true) => {
            if held_before {
                data.release(old);
            }
            entry.copy = copy;
        }
        (Some(copy), false) => {
            data.release(copy);
            if held_before {
                data.release(old);
            }
        }
        (None, false) if held_before => data.release(old),
        _ => {}
    }
    if !holds_after {
        entry.copy = Copy::UNTOUCHED;
    }
}

/// Checks inclusion: a cache has no permission that the cache above lacks.
pub(crate) fn check_inclusion(
    context: &mut Context,
    permissions_above: &Paged<Permission>,
    (cache, line): (Agent, Line),
    permission: Permission,
) {
    let upper = permissions_above.get(line);
    if permission > upper {
        let name = context.agent_name(cache);
        let text = format!("{name} may {permission} while the cache above it may {upper}");
        context.fail(FailureKind::Inclusion, line, text);
    }
}

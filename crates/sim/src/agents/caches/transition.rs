//! Rows of caches: their application to lines, and the checks of their results.

use cohkit_protocol::controller::Access;
use cohkit_system::agent;

use super::row::CacheRow;
use super::*;

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
        let carried_copy = message.filter(|_| carries_line).map(|message| message.copy);
        if let (Some(copy), true) = (carried_copy, entry.first_access != NONE) {
            let access = &mut env.context.local.accesses[entry.first_access];
            if access.kind == Access::Atomic {
                let old_value = env.context.contents.data.word(line, copy, access.word);
                access.found = Some(old_value);
            }
        }
        let facts = &env.context.tables.facts;
        let own_copy = before.holds_line.then_some(entry.copy);
        let mut row = CacheRow {
            caches: self,
            env,
            cache,
            line,
            entry,
            acts: transition.acts(),
            access,
            own_copy,
            carries_line,
        };
        let carried_copy = carried_copy.map(Some);
        let Ok(copy) = agent::remote(facts, &transition.effects, own_copy, carried_copy, &mut row);
        entry.copy = copy.unwrap_or(Copy::UNTOUCHED);
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

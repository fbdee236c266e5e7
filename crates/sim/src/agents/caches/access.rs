//! Accesses at their cache: in the cache's own copy, by a transaction, or after an eviction.

use cohkit_protocol::controller::{Access, Event};

use super::*;
use crate::simulation::Pending;

/// Maximum number of consecutive attempts of one access without any other event. More are reported as an access that
/// its rows retry forever.
const MAX_CONSECUTIVE_ATTEMPTS: usize = 64;

/// Result of attempting an access.
pub(super) enum Attempt {
    /// The access has been performed.
    Performed,
    /// The access has started a transaction.
    Began,
    /// The access waits for the transaction in progress.
    Waits,
    /// The protocol has no row for the access in this state, and the state will not change by itself.
    Skipped,
    /// The access waits for a change of registers or of a line's variables, or for room in an input queue.
    Held,
}

/// Result of attempting to evict a line.
#[derive(PartialEq, Eq)]
pub(super) enum Eviction {
    /// The eviction's row has been taken: the line leaves its way.
    Begun,
    /// An input queue has no room for the row's messages.
    LacksRoom,
    /// The controller has no row that evicts the line now.
    Impossible,
}

impl Caches {
    /// Presents an access to its cache.
    #[inline(always)]
    pub(crate) fn present_access(&mut self, env: &mut CacheEnvironment, index: u32) {
        if env.context.observer.is_enabled() {
            let cache = env.context.local.accesses[index].cache;
            let translations = env.frontend.translations.as_ref();
            let is_translated = translations
                .is_some_and(|translations| translations.has_virtual_address(index, cache));
            env.context.observe(Fact::Reached {
                access: index,
                is_translated,
            });
        }
        let access = env.context.local.accesses[index];
        let (mut place, mut entry) = self.find(access.cache, access.line);
        if entry.first_access != NONE {
            self.enqueue_access(env, &mut entry, index);
            return self.write_back_entry(env, access.cache, access.line, place, entry);
        }
        match (place, access.kind) {
            (Place::Way(slot), _) => self.ways.touch(slot),
            (Place::Absent, Access::Evict | Access::Demote | Access::Clean)
                if !self.can_begin_absent(env, &access) =>
            {
                return self.complete_access(env, index, true, true);
            }
            (Place::Absent, kind)
                if matches!(kind, Access::Load | Access::Store)
                    || kind == Access::Atomic && self.executor.program.atomics_fetch =>
            {
                let Some(slot) = self.make_room(env, access.cache, access.line) else {
                    env.context.tally.counters.stall(Stall::NoEvictableWay);
                    env.context.observe(Fact::WaitsForWay { access: index });
                    self[access.cache].waiting_for_way.push(index);
                    return;
                };
                self.ways.insert(slot, access.line);
                env.context.local.cached_lines += 1;
                place = Place::Way(slot);
            }
            _ => {}
        }
        match self.attempt(env, access.cache, access.line, &mut entry, index) {
            Attempt::Performed => self.complete_access(env, index, true, true),
            Attempt::Skipped => self.complete_access(env, index, true, false),
            Attempt::Held => self.hold_access(env, access.cache, index),
            Attempt::Began | Attempt::Waits => self.enqueue_access(env, &mut entry, index),
        }
        self.write_back_entry(env, access.cache, access.line, place, entry);
        self.apply_bulk_transitions(env, access.cache);
    }

    /// True if the protocol has a row for an access to an absent line, and its bounds permit the transaction.
    fn can_begin_absent(&mut self, env: &mut CacheEnvironment, access: &Pending) -> bool {
        let Pending {
            cache, line, kind, ..
        } = *access;
        let input = self.executor.program.input(Event::Access(kind), cache);
        let transition = self.step(env, cache, line, self.initial_configuration(cache), &input);
        match transition.answer {
            Answer::Take => self.within_bounds(env, cache, line, &transition),
            // Attempting the access reports the fault.
            Answer::Fault => true,
            _ => false,
        }
    }

    /// Appends an access to the queue of its line.
    #[inline(always)]
    fn enqueue_access(&mut self, env: &mut CacheEnvironment, entry: &mut Entry, index: u32) {
        if entry.first_access == NONE {
            entry.first_access = index;
        } else {
            env.context.local.accesses[entry.last_access].next = index;
        }
        entry.last_access = index;
    }

    /// Returns a free way for a line. Evicts the least recently used line that can be evicted if there is none.
    /// Returns `None` if no line can be evicted now.
    #[inline(always)]
    fn make_room(&mut self, env: &mut CacheEnvironment, cache: Agent, line: Line) -> Option<Slot> {
        let ways = &self.ways;
        if let Some(slot) = ways.vacancy(cache.index(), line) {
            return Some(slot);
        }
        for slot in ways.candidates(cache.index(), line) {
            let mut entry = self.entry(slot);
            let Some(victim) = self.ways.line(slot) else {
                continue;
            };
            if entry.first_access != NONE
                || self.evict(env, cache, victim, &mut entry) != Eviction::Begun
            {
                // The level below returns its copy first. Until then no other line needs to be evicted.
                if self
                    .lower_level
                    .as_ref()
                    .is_some_and(|lower| lower.is_evicting(cache, victim))
                {
                    return None;
                }
                continue;
            }
            self.free_way(env, cache, slot, victim, entry);
            return Some(slot);
        }
        None
    }

    /// Removes an evicted line from its way.
    fn free_way(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        slot: Slot,
        line: Line,
        entry: Entry,
    ) {
        self.ways.clear(slot);
        env.context.local.cached_lines -= 1;
        if entry.configuration != self.initial_configuration(cache) {
            self[cache].transient_lines.push((line, entry));
        }
    }

    /// Evicts a line of which the level below has returned its copy, unless the line's state has changed meanwhile.
    pub(super) fn evict_recalled(&mut self, env: &mut CacheEnvironment, cache: Agent, line: Line) {
        if let (Place::Way(slot), mut entry) = self.find(cache, line) {
            if entry.first_access == NONE
                && self.evict(env, cache, line, &mut entry) == Eviction::Begun
            {
                self.free_way(env, cache, slot, line, entry);
            }
        }
        self.retry_waiting_for_way(env, cache);
    }

    /// Retries accesses that found their set full.
    pub(super) fn retry_waiting_for_way(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        for index in std::mem::take(&mut self[cache].waiting_for_way) {
            env.context
                .schedule(env.context.now(), KernelEvent::Access(index));
        }
    }

    /// Holds an access until the registers or variables in its guards change, or until an input queue has room.
    pub(super) fn hold_access(&mut self, env: &mut CacheEnvironment, cache: Agent, index: u32) {
        let is_write = env.context.local.accesses[index].kind.writes();
        let cache_state = &mut self[cache];
        cache_state.held_accesses.push(index);
        if is_write {
            cache_state
                .writes_held_since
                .get_or_insert(env.context.now());
        }
    }

    /// Retries the accesses that waited for a change of registers or for room in an input queue.
    pub(super) fn retry_held(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        if let Some(since) = self[cache].writes_held_since.take() {
            env.context.tally.counters.registers_waited += env.context.now() - since;
        }
        for index in std::mem::take(&mut self[cache].held_accesses) {
            env.context
                .schedule(env.context.now(), KernelEvent::Access(index));
        }
    }

    /// Performs a write by the level below, whose memory is this cache's copy, as a store in place. `copy` is the
    /// new content, of which the caller passes on its hold.
    pub(crate) fn store_in_place(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        copy: Copy,
    ) {
        let (place, mut entry) = self.find(cache, line);
        let properties = self.executor.program.properties(entry.configuration);
        if properties.permission < Permission::Write {
            env.context.contents.data.release(copy);
            let name = env.context.agent_name(cache);
            let text = format!("the level below {name} writes its memory without write permission");
            return env.context.fail(FailureKind::Inclusion, line, text);
        }
        env.context.contents.data.release(entry.copy);
        entry.copy = copy;
        let input = self
            .executor
            .program
            .input(Event::Access(Access::Store), cache);
        let transition = self.step(env, cache, line, entry.configuration, &input);
        match transition.answer {
            Answer::Take if transition.acts().is_empty() => {
                entry.configuration = transition.next;
            }
            // Without a row, a store in a state with write permission is performed in place.
            Answer::Unexpected => {}
            _ => {
                let reason =
                    "it has write permission, but its row for a store does more than perform it";
                self.report_unsupported(env, cache, line, entry.configuration, reason);
            }
        }
        self.write_back_entry(env, cache, line, place, entry);
    }

    /// Evicts a line if the controller has a row for that.
    #[inline(always)]
    fn evict(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
    ) -> Eviction {
        let input = self
            .executor
            .program
            .input(Event::Access(Access::Evict), cache);
        let transition = self.step(env, cache, line, entry.configuration, &input);
        if transition.answer != Answer::Take
            || !self.within_bounds(env, cache, line, &transition)
            || self.must_wait_for_recall(env, cache, line, &transition, true)
        {
            return Eviction::Impossible;
        }
        if self.waits_for_room(env, cache, line, &transition, None) {
            return Eviction::LacksRoom;
        }
        env.context.note_access(cache, line, Access::Evict);
        self.apply_transition(env, (cache, line), entry, &transition, None, None);
        Eviction::Begun
    }

    /// True if the protocol's bounds permit a spontaneous transition to send its messages.
    #[inline(always)]
    fn within_bounds(
        &self,
        env: &CacheEnvironment,
        cache: Agent,
        line: Line,
        transition: &Transition,
    ) -> bool {
        let sent = self.executor.program.sent_messages(transition);
        let in_flight = |kind| {
            let same = |message: &Message| {
                (message.kind, message.from, message.line) == (kind, cache, line)
            };
            env.context
                .local
                .messages
                .iter()
                .filter(|(_, m)| same(m))
                .count()
        };
        env.context.tables.bounds.can_start_access(sent, in_flight)
    }

    /// Attempts to perform an access, or to start its transaction.
    pub(super) fn attempt(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        index: u32,
    ) -> Attempt {
        for _ in 0..MAX_CONSECUTIVE_ATTEMPTS {
            if let Some(attempt) = self.attempt_once(env, cache, line, entry, index) {
                return attempt;
            }
        }
        let configuration = entry.configuration;
        self.report_unsupported(
            env,
            cache,
            line,
            configuration,
            "an access is retried forever",
        );
        Attempt::Skipped
    }

    /// Makes one attempt. Returns `None` if the access is to be attempted again in the state that a row has led to.
    fn attempt_once(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        index: u32,
    ) -> Option<Attempt> {
        let access = env.context.local.accesses[index];
        let before = self.executor.program.properties(entry.configuration);
        let needed_permission = access.kind.needs();
        if access.purpose == Purpose::Hint && before.permission >= needed_permission {
            return Some(Attempt::Performed);
        }
        // The level below requests the line again after it has returned its copy.
        let lower_level = self.lower_level.as_ref();
        if before.stable && lower_level.is_some_and(|lower| !lower.is_free(cache, line)) {
            return Some(Attempt::Skipped);
        }
        let event = Event::Access(access.kind);
        let input = self.executor.program.input(event, cache);
        let transition = self.step(env, cache, line, entry.configuration, &input);
        // A row that only retries without changing anything is equivalent to no row.
        let has_no_effect = before.stable
            && before.permission < needed_permission
            && transition.next == entry.configuration
            && transition.acts().is_empty()
            && !self.executor.changes_registers(cache.index());
        Some(match transition.answer {
            Answer::Take if has_no_effect => {
                return self.evict_for_access(env, cache, line, entry, event)
            }
            Answer::Take | Answer::Fault
                if self.waits_for_room(env, cache, line, &transition, None) =>
            {
                Attempt::Held
            }
            Answer::Take if self.within_bounds(env, cache, line, &transition) => {
                return self.begin(env, line, entry, index, &transition)
            }
            Answer::Take => Attempt::Waits,
            Answer::Fault => {
                self.report_impossible_row(env, cache, line, &transition);
                Attempt::Skipped
            }
            _ if self.executor.has_registers()
                && (self.executor.program).has_guarded_row(entry.configuration, event) =>
            {
                Attempt::Held
            }
            _ if needed_permission == Permission::None => Attempt::Skipped,
            _ if before.permission >= needed_permission && access.kind.is_performed_in_place() => {
                self.perform(env, line, entry, index);
                Attempt::Performed
            }
            _ if !before.stable => Attempt::Waits,
            _ => return self.evict_for_access(env, cache, line, entry, event),
        })
    }

    /// Takes the row of an access. Returns `None` if the access is to be attempted again.
    #[inline(always)]
    fn begin(
        &mut self,
        env: &mut CacheEnvironment,
        line: Line,
        entry: &mut Entry,
        index: u32,
        transition: &Transition,
    ) -> Option<Attempt> {
        let Pending { cache, kind, .. } = env.context.local.accesses[index];
        let (before, after) = (transition.before, transition.after);
        let needed_permission = kind.needs();
        env.context.note_access(cache, line, kind);
        env.context.observe(Fact::Begun {
            access: index,
            from: entry.configuration,
        });
        let pending = &mut env.context.local.accesses[index];
        (pending.sent, pending.performed, pending.found) = (false, false, None);
        self.apply_transition(env, (cache, line), entry, transition, None, Some(index));
        if !kind.about_line() && transition.retries {
            return None;
        }
        if needed_permission == Permission::None {
            return Some(Attempt::Performed);
        }
        let read_permitted = !kind.writes() && after.permission >= needed_permission;
        if transition.effects.performs || read_permitted && before.permission >= needed_permission {
            self.perform(env, line, entry, index);
            return Some(Attempt::Performed);
        }
        let oracle = &mut env.context.contents.oracle;
        match after.stable {
            // No message will come that completes the access.
            true if self.sends_store_bytes(env.context.tables, transition) => {
                oracle.record_store_posted((cache, line));
                Some(Attempt::Performed)
            }
            true => None,
            false => {
                env.context.local.accesses[index].since = oracle.latest(line);
                Some(Attempt::Began)
            }
        }
    }

    /// Handles an access without a row for the line's state: evicts the copy, so that the access can be attempted
    /// again. If there is no copy to evict, an access whose row has a guard waits for the next message of its line.
    fn evict_for_access(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        event: Event,
    ) -> Option<Attempt> {
        let initial = self.initial_configuration(cache);
        let eviction = match entry.configuration == initial {
            true => Eviction::Impossible,
            false => self.evict(env, cache, line, entry),
        };
        match eviction {
            Eviction::Begun => {}
            Eviction::LacksRoom => return Some(Attempt::Held),
            Eviction::Impossible => {
                return Some(
                    match self
                        .executor
                        .program
                        .has_guarded_row(entry.configuration, event)
                    {
                        true => Attempt::Waits,
                        false => Attempt::Skipped,
                    },
                )
            }
        }
        let properties = self.executor.program.properties(entry.configuration);
        (entry.configuration != initial && !properties.stable).then_some(Attempt::Waits)
    }

    /// True if a transition sends the bytes of a non-caching write.
    fn sends_store_bytes(&self, tables: &Tables, transition: &Transition) -> bool {
        let mut sent = self.executor.program.sent_messages(transition);
        sent.any(|message| tables.kinds[message.index()].store)
    }

    /// Performs an access in the cache's own copy.
    #[inline(always)]
    fn perform(&mut self, env: &mut CacheEnvironment, line: Line, entry: &mut Entry, index: u32) {
        let access = env.context.local.accesses[index];
        match access.kind {
            Access::Load | Access::ReadOnce | Access::Acquire => {
                env.context.check_own_stores(&access, entry.copy);
                env.frontend
                    .check_load(&mut env.context, &access, entry.copy);
                (env.frontend).read(&mut env.context, &access, entry.copy, true);
                if access.kind == Access::Load && !env.frontend.cores.is_empty() {
                    (env.frontend.cores).fill_l1(&mut env.context, &access, entry.copy);
                }
            }
            Access::WriteLine => {
                let copy = (env.frontend).write_full_line(&mut env.context, &access, entry.copy);
                entry.copy = copy;
                let written = Some((access.core, copy));
                (env.frontend.cores).invalidate_in_l1s(
                    &mut env.context,
                    access.cache,
                    line,
                    written,
                );
            }
            _ => {
                entry.copy = env.frontend.write(&mut env.context, &access, entry.copy);
                let written = Some((access.core, entry.copy));
                (env.frontend.cores).invalidate_in_l1s(
                    &mut env.context,
                    access.cache,
                    line,
                    written,
                );
            }
        }
        if env.context.is_traced(line) {
            env.context.note_performed(&access, entry.copy);
        }
    }

    /// Completes an access; its core continues. `hit` is true if it completed on arrival, `performed` is false if
    /// the protocol has no row for it.
    #[inline(always)]
    pub(super) fn complete_access(
        &mut self,
        env: &mut CacheEnvironment,
        index: u32,
        hit: bool,
        performed: bool,
    ) {
        if let Some(lower_level) = &mut self.lower_level {
            lower_level.end_prefetch(&env.context.local.accesses[index]);
        }
        env.frontend
            .complete_access(&mut env.context, index, hit, performed);
    }

    /// True if a cache's access to a line has sent bytes and is still outstanding.
    pub(crate) fn has_outstanding_store(
        &self,
        context: &Context,
        cache: Agent,
        line: Line,
    ) -> bool {
        let (_, entry) = self.find(cache, line);
        entry.first_access != NONE && context.local.accesses[entry.first_access].sent
    }

    /// Records that the home performs the write that a cache sent with the message `flight`. Returns the access that sent
    /// it if it is still outstanding. A store that completes when it is sent may be followed by another access to the
    /// line.
    pub(crate) fn outstanding_write(
        &self,
        context: &mut Context,
        cache: Agent,
        line: Line,
        flight: u32,
    ) -> Option<Pending> {
        let (_, entry) = self.find(cache, line);
        if entry.first_access == NONE {
            return None;
        }
        let access = &mut context.local.accesses[entry.first_access];
        if !(access.sent && access.flight == flight) {
            return None;
        }
        access.performed = true;
        Some(*access)
    }

    /// Records the old value that the home has found for an outstanding atomic access, and the answer must return.
    pub(crate) fn record_old_value(&self, context: &mut Context, access: &Pending, old: u64) {
        let (_, entry) = self.find(access.cache, access.line);
        context.local.accesses[entry.first_access].value = old;
    }
}

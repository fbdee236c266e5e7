//! Accesses of cores, from issue to completion.

use super::*;

impl Simulation {
    /// Restarts the watchdog at `time`, now or later: an access is performed then, and no other progress is expected
    /// before.
    #[inline]
    pub(crate) fn postpone_watchdog(&mut self, time: Time) {
        self.tally.last_performed = self.tally.last_performed.max(time);
    }

    /// Issues a core's next access at a time that is not in the past.
    #[inline(always)]
    pub(crate) fn issue(&mut self, core: u16, time: Time) {
        if self.application.is_some() {
            return self.continue_thread(core, time);
        }
        let Some(next) = self.traffic.next_access(core, time) else {
            return;
        };
        if next.time > time {
            self.postpone_watchdog(next.time);
        }
        let time = next.time;
        self.tally.in_flight += 1;
        self.start_access(next.line, next.access, next.word, core, time, Purpose::Core);
        let distance = self.groups.of_core(core).prefetch;
        if distance > 0 {
            self.prefetch_access(core, distance - 1, time);
        }
        // A prefetch requests a permission. Where stores are sent to the home, there is no write permission to request.
        let prefetched_line = self.traffic.write_prefetch(core);
        if let Some(line) = prefetched_line.filter(|_| !self.remote.sends_stores) {
            self.start_access(line, Access::Store, 0, core, time, Purpose::Hint);
        }
    }

    /// Returns the cache that serves a core.
    #[inline]
    pub(crate) fn cache_of(&self, core: u16) -> Agent {
        self.groups.cache_of(core)
    }

    /// True if a core is in front of one of these caches, not those of another simulation.
    pub(crate) fn has_core(&self, core: u16) -> bool {
        (self.neighbours.upper_level.as_ref())
            .is_none_or(|above| above.has_core(core, self.groups.caches()))
    }

    #[inline]
    pub(crate) fn start_access(
        &mut self,
        line: Line,
        kind: Access,
        word: u16,
        core: u16,
        time: Time,
        purpose: Purpose,
    ) {
        let access = self.local.accesses.insert(Pending {
            line,
            next: u32::MAX,
            value: match self.stored_by_thread(core) {
                Some(value) => value,
                None => mix(self.traffic.issued << 1 | 1),
            },
            issued: time,
            since: 0,
            word: word % self.contents.data.words(),
            words: self.words_of_thread(core),
            core,
            cache: self.cache_of(core),
            kind,
            purpose,
            sent: false,
            flight: 0,
            performed: false,
            found: None,
        });
        let time = self.groups.departure_time(core, time);
        let cache = self.local.accesses[access].cache;
        if (self.translations.as_ref()).is_some_and(|translations| translations.has(cache)) {
            if kind.about_line() {
                return self.translate(access, time);
            }
            self.mark_physical(access);
        }
        if matches!(purpose, Purpose::Core | Purpose::Posted | Purpose::Atomic)
            && self.has_private_components()
        {
            return self.local.queue.push(time, Event::Core(access));
        }
        let arrival = time + self.groups.of_core(core).request;
        self.local.queue.push(arrival, Event::Access(access));
    }

    /// Issues an access of a core's thread at a time that is not in the past.
    pub(crate) fn issue_thread_access(
        &mut self,
        core: u16,
        (line, word): (Line, u16),
        kind: Access,
        purpose: Purpose,
        time: Time,
    ) {
        let last = word.saturating_add(self.words_of_thread(core)) - 1;
        if line >= self.tables.platform.lines || last >= self.contents.data.words() {
            let (lines, words) = (self.tables.platform.lines, self.contents.data.words());
            let text = format!(
                "thread {core} accesses word {last} of line {line}; there are {lines} lines of {words} words"
            );
            return self.fail(FailureKind::Contract, line, text);
        }
        self.tally.in_flight += u64::from(purpose != Purpose::Hint);
        self.start_access(line, kind, word, core, time, purpose);
    }

    /// Prefetches, for reading, the line of the access `distance` accesses after the core's next one.
    pub(super) fn prefetch_access(&mut self, core: u16, distance: u32, time: Time) {
        if let Some(line) = self.traffic.line_ahead(core, distance) {
            self.start_access(line, Access::Load, 0, core, time, Purpose::Hint);
        }
    }

    /// Issues the prefetches before a core's first access that no access accompanies.
    pub(super) fn prefetch_initial_accesses(&mut self, core: u16) {
        for distance in 1..self.groups.of_core(core).prefetch {
            self.prefetch_access(core, distance, 0);
        }
    }

    /// Completes an access at its cache; its core continues.
    #[inline(always)]
    pub(crate) fn complete_access(&mut self, index: u32, hit: bool, performed: bool) {
        let access = self.local.accesses.remove(index);
        self.observe(Fact::Completed {
            index,
            access: &access,
            hit,
            performed,
        });
        if (self.translations.as_ref()).is_some_and(|translations| translations.has(access.cache)) {
            self.end_translation_use(index, access.cache, access.line);
        }
        if access.purpose == Purpose::Hint {
            self.tally.counters.prefetched += u64::from(!hit);
            if let Some(below) = &mut self.neighbours.lower_level {
                below.end_prefetch(access.cache, access.line);
            }
            return;
        }
        if performed && !hit && access.kind.about_line() {
            // Caches of the lower level are numbered across all caches of the upper one.
            let first_cache = (self.neighbours.upper_level.as_ref())
                .map_or(0, |above| above.cache.0 * self.groups.caches());
            let cache = Agent(first_cache + access.cache.0);
            let waited = self.local.now - access.issued;
            self.tally
                .counters
                .bouncing
                .record_miss(&access, cache, waited);
        }
        let group = self.groups.of_cache(access.cache);
        let done = self.local.now + if hit { group.hit } else { group.fill };
        let next = done + group.work;
        match access.purpose {
            Purpose::Drain => return self.complete_drain(&access, hit, performed, done),
            Purpose::Port => return self.complete_port_access(&access, hit, performed, done),
            Purpose::Core | Purpose::Posted | Purpose::Atomic | Purpose::Hint => {}
        }
        self.tally.in_flight -= 1;
        self.postpone_watchdog(self.local.now);
        if performed {
            self.count_performed(1, done);
            self.tally.counters.hits += u64::from(hit);
            if access.is_store() {
                self.complete_store(&access, &[access.issued]);
            }
            self.record_latency(&access, done);
        } else {
            self.tally.counters.skipped += 1;
        }
        match access.purpose {
            Purpose::Posted => self.complete_posted(access.core, access.line),
            _ => self.issue(access.core, next),
        }
    }

    /// Records the latency of a completed access. Fails the run if it exceeds the core's timeout.
    #[inline(always)]
    pub(crate) fn record_latency(&mut self, access: &Pending, done: Time) {
        let time = done - access.issued;
        self.tally.counters.latency.record(time);
        if access.kind.about_line() {
            let latency = match access.is_store() {
                true => &mut self.tally.counters.stores,
                false => &mut self.tally.counters.loads,
            };
            latency.record(time);
            let word = self.tables.line_bytes / u32::from(self.contents.data.words());
            self.tally.counters.bytes_requested += u64::from(match access.kind {
                Access::WriteLine => self.tables.line_bytes,
                _ => word * u32::from(access.words),
            });
        }
        if time >= self.tables.times.timeout {
            self.report_timeout(access.line, access.core, access.issued);
        }
    }

    /// Completes a store at its cache. `issued` has the issue time of each store that the access stands for. Stores
    /// whose bytes were sent and not performed yet become visible to others when the home performs them.
    pub(crate) fn complete_store(&mut self, access: &Pending, issued: &[Time]) {
        match (access.sent, access.performed) {
            (true, false) => {
                let store = (access.cache, access.flight);
                self.cores.posted_stores.insert(store, issued.to_vec());
            }
            (true, true) => {}
            (false, _) => self.record_visible_stores(issued),
        }
    }

    /// Records that stores with these issue times are visible to all agents from now on.
    pub(crate) fn record_visible_stores(&mut self, issued: &[Time]) {
        for issue_time in issued {
            self.tally
                .counters
                .visible
                .record(self.local.now.saturating_sub(*issue_time));
        }
    }

    /// Counts performed accesses, whose completion their core sees at `done`, which is not in the past.
    #[inline(always)]
    pub(crate) fn count_performed(&mut self, accesses: u64, done: Time) {
        self.tally.counters.performed += accesses;
        self.tally.counters.end = self.tally.counters.end.max(done);
        if self
            .tally
            .counters
            .throughput_samples
            .count_events(accesses)
        {
            self.record_sample(done);
        }
    }

    #[cold]
    pub(super) fn record_sample(&mut self, done: Time) {
        let cached = self.lines_cached();
        self.tally
            .counters
            .throughput_samples
            .take_samples(done, cached);
    }
}

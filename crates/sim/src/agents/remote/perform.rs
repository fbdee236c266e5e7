//! Performing accesses: in the cache's own copy, or by the home with the bytes sent to it.

use super::*;

impl Simulation {
    /// Performs an access in the cache's own copy.
    #[inline(always)]
    pub(super) fn perform(&mut self, line: Line, entry: &mut Entry, index: u32) {
        let access = self.local.accesses[index];
        match access.kind {
            Access::Load | Access::ReadOnce | Access::Acquire => {
                self.check_own_stores(&access, entry.copy);
                self.check_load(&access, entry.copy);
                if access.purpose == Purpose::Port {
                    self.read_by_port(&access, entry.copy, true);
                } else if self.application.is_some() {
                    let value = self.contents.data.word(line, entry.copy, access.word);
                    self.set_thread_result(access.core, value);
                }
                if access.kind == Access::Load && self.has_private_components() {
                    self.fill_l1(&access, entry.copy);
                }
            }
            Access::WriteLine => {
                let copy = self.write_full_line(&access, entry.copy);
                entry.copy = copy;
                self.invalidate_in_l1s(access.cache, line, Some((access.core, copy)));
            }
            _ => {
                entry.copy = self.write(&access, entry.copy);
                self.invalidate_in_l1s(access.cache, line, Some((access.core, entry.copy)));
            }
        }
        if self.is_traced(line) {
            self.note_performed(&access, entry.copy);
        }
    }

    /// Performs a write of the whole line, which replaces a copy of it.
    pub(super) fn write_full_line(&mut self, access: &Pending, old: Copy) -> Copy {
        if access.purpose == Purpose::Port {
            return self.write_by_port(access, old);
        }
        let words = 0..self.contents.data.words();
        let version = self
            .contents
            .oracle
            .write(access.line, words.clone(), access.value);
        self.record_write(access, words, version);
        let copy = self.contents.data.filled(access.value);
        self.contents.data.stamp(copy, version);
        self.contents.data.release(old);
        copy
    }

    /// Returns the bytes of the outstanding write for a message to the home: copy, first word and number of words.
    pub(super) fn bytes_to_send(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &Entry,
        index: Option<u32>,
    ) -> (Copy, u16, u16) {
        let pending = index.map(|index| self.local.accesses[index]);
        let (Some(index), Some(access)) = (index, pending.filter(|access| access.kind.writes()))
        else {
            let reason = "its row sends the data of a write without a pending write";
            self.report_unsupported(cache, line, entry.configuration, reason);
            return (Copy::UNTOUCHED, 0, 0);
        };
        if access.purpose == Purpose::Atomic && access.kind != Access::Atomic {
            let reason = "an atomic access needs the line, but its row sends the data to the home";
            self.report_unsupported(cache, line, entry.configuration, reason);
        }
        // The next message to be sent gets this flight number.
        let flight = self.local.flights.wrapping_add(1);
        (self.contents.oracle).record_store_sent((cache, line), flight, access.sent);
        let pending_access = &mut self.local.accesses[index];
        (pending_access.sent, pending_access.flight) = (true, flight);
        if access.purpose == Purpose::Port {
            return (self.port_bytes_to_send(&access), access.word, access.words);
        }
        (
            self.contents.data.filled(access.value),
            access.word,
            access.words,
        )
    }

    /// Performs, at the home, the write that a cache sent with the message `flight`. Returns the access that sent it if
    /// it is still outstanding. A store that completes when it is sent may be followed by another access to the line.
    pub(crate) fn perform_sent_write(
        &mut self,
        cache: Agent,
        line: Line,
        flight: u32,
    ) -> Option<Pending> {
        if let Some(issued) = self.cores.posted_stores.remove(&(cache, flight)) {
            self.record_visible_stores(&issued);
        }
        let (_, entry) = self.caches.find(cache, line);
        if entry.first_access == NONE {
            return None;
        }
        let access = &mut self.local.accesses[entry.first_access];
        if !(access.sent && access.flight == flight) {
            return None;
        }
        access.performed = true;
        let access = *access;
        match access.purpose {
            Purpose::Drain => {
                let issued = self.buffered_issue_times(access.core, line);
                self.record_visible_stores(&issued);
            }
            _ if access.is_store() => self.record_visible_stores(&[access.issued]),
            _ => {}
        }
        Some(access)
    }

    /// Performs, at the home, the atomic access that a cache has sent for a line, on a copy of memory's bytes. The
    /// access records the old value, which the answer must return.
    pub(crate) fn perform_atomic_at_home(&mut self, access: &Pending, copy: Copy) -> Copy {
        let Pending {
            line, word, core, ..
        } = *access;
        let old_value = self.contents.data.word(line, copy, word);
        let (_, entry) = self.caches.find(access.cache, line);
        let first = entry.first_access;
        self.local.accesses[first].value = old_value;
        let Some(new_value) = self.updated_value(core, old_value) else {
            return copy;
        };
        let version = self.contents.oracle.write(line, word..word + 1, new_value);
        self.record_write(access, word..word + 1, version);
        self.contents
            .data
            .write_word(line, copy, word, new_value, version)
    }

    /// Completes an atomic access that the home has performed. `answered_value` is the word in the answer.
    pub(super) fn complete_home_atomic(&mut self, access: &Pending, answered_value: u64) {
        let Pending { cache, line, .. } = *access;
        if answered_value != access.value {
            let text = format!(
                "an atomic access of {} found {:#x} and is answered with {answered_value:#x}",
                self.agent_name(cache),
                access.value
            );
            self.fail(FailureKind::DataValue, line, text);
        }
        self.set_thread_result(access.core, answered_value);
    }

    /// True if a cache's access to a line has sent bytes and is still outstanding.
    pub(crate) fn has_outstanding_store(&mut self, cache: Agent, line: Line) -> bool {
        let (_, entry) = self.caches.find(cache, line);
        entry.first_access != NONE && self.local.accesses[entry.first_access].sent
    }

    /// Performs a store, or all stores that the access stands for, in a copy of the line.
    pub(super) fn write(&mut self, access: &Pending, copy: Copy) -> Copy {
        match access.purpose {
            Purpose::Drain => return self.perform_buffered_stores(access, copy),
            Purpose::Port => return self.write_by_port(access, copy),
            Purpose::Core | Purpose::Posted | Purpose::Atomic | Purpose::Hint => {}
        }
        let Pending {
            line,
            word,
            words,
            mut value,
            ..
        } = *access;
        if access.purpose == Purpose::Atomic {
            self.check_load(access, copy);
            let old = self.contents.data.word(line, copy, word);
            self.set_thread_result(access.core, old);
            match self.updated_value(access.core, old) {
                Some(new) => value = new,
                None => return copy,
            }
        }
        let words = word..word + words;
        let version = self.contents.oracle.write(line, words.clone(), value);
        self.record_write(access, words.clone(), version);
        words.fold(copy, |copy, word| {
            self.contents
                .data
                .write_word(line, copy, word, value, version)
        })
    }

    /// Checks that a read's bytes contain all stores that its cache has posted before.
    pub(super) fn check_own_stores(&mut self, access: &Pending, copy: Copy) {
        let Pending { cache, line, .. } = *access;
        if !(self.contents.oracle)
            .contains_own_stores((cache, line), self.contents.data.version(copy))
        {
            let text = format!(
                "a read of {} does not return an earlier store of its own core",
                self.agent_name(cache)
            );
            self.fail(FailureKind::ProgramOrder, line, text);
        }
    }

    /// Checks a load that is performed with these bytes now.
    #[inline(always)]
    pub(crate) fn check_load(&mut self, access: &Pending, copy: Copy) {
        let Pending {
            cache, line, word, ..
        } = *access;
        let version = self.contents.data.version(copy);
        let value = || self.contents.data.word(line, copy, word);
        if self.contents.oracle.may_be_stale() {
            return self.check_stale_load(access, copy);
        }
        if !self.contents.oracle.is_current(line, version)
            || !self.contents.oracle.is_word_current(line, word, value)
        {
            let text = format!(
                "{} loads the data of write {version} of the line, but write {} was the last",
                self.agent_name(cache),
                self.contents.oracle.latest(line)
            );
            self.fail(FailureKind::DataValue, line, text);
        }
    }

    /// Records a performed write of a core, for models in which copies may be stale.
    #[inline(always)]
    pub(crate) fn record_write(
        &mut self,
        access: &Pending,
        words: std::ops::Range<u16>,
        version: u32,
    ) {
        if self.contents.oracle.may_be_stale() {
            let writer = (access.core, self.is_release(access));
            self.contents
                .oracle
                .record_observed_write(writer, access.line, words, version);
        }
    }

    /// Checks a load where copies may be stale: the value was written, by no write older than one that the core has
    /// observed.
    #[cold]
    pub(super) fn check_stale_load(&mut self, access: &Pending, copy: Copy) {
        let Pending {
            cache,
            core,
            line,
            word,
            ..
        } = *access;
        let (version, value) = (
            self.contents.data.version(copy),
            self.contents.data.word(line, copy, word),
        );
        let is_acquire = self.is_acquire(access);
        let observed = (version, value);
        if let Err(error) =
            (self.contents.oracle).check_stale_read((core, is_acquire), (line, word), observed)
        {
            let text = format!("{} loads word {word}: {error}", self.agent_name(cache));
            self.fail(FailureKind::DataValue, line, text);
        }
    }
}

//! Memory operations of the home, and the bytes of writes.

use std::ops::Range;

use super::*;
use crate::oracle::Breach;

impl Simulation {
    /// Performs a memory operation on a line for a unit. Returns when the unit receives the completion.
    #[inline(always)]
    pub(super) fn operate(&mut self, ready: Time, line: Line) -> Time {
        let (request_latency, response_latency) = self.tables.times.path;
        let arrival = ready + request_latency;
        let uncontended = (self.observer.is_enabled()).then(|| self.uncontended(arrival, line));
        let end = self.memory(arrival, line);
        if let Some(uncontended) = uncontended {
            self.observe(Fact::MemoryOperation {
                line,
                ready,
                end,
                uncontended,
            });
        }
        end + response_latency
    }

    /// Starts a read by memory, or by the application that serves the line.
    pub(crate) fn read_memory(&mut self, ready: Time, line: Line, transition: &Transition) {
        if self.is_served(line) {
            return self.present_application_read(ready, line, transition);
        }
        let end = self.operate(ready, line);
        self.observe(Fact::OperationStarted { line, write: false });
        self.local.queue.push(end, KernelEvent::Read(line));
    }

    pub(super) fn start_write(
        &mut self,
        unit_index: usize,
        ready: Time,
        line: Line,
        transition: &Transition,
        words: Option<Range<u16>>,
    ) {
        if !self.defer_memory_write(line, transition.next, words) {
            self.home.units[unit_index].writes_in_flight += 1;
            self.write_memory(ready, line, transition.next);
        }
    }

    /// Starts a write by memory, or by the application that serves the line.
    pub(crate) fn write_memory(&mut self, ready: Time, line: Line, next: ConfigurationId) {
        if self.is_served(line) {
            return self.present_application_write(ready, line, next);
        }
        let end = self.operate(ready, line);
        self.observe(Fact::OperationStarted { line, write: true });
        self.local.queue.push(end, KernelEvent::Written(line));
    }

    /// Writes the line that a message carries back to memory.
    pub(super) fn write_back(&mut self, line: Line, message: Option<&Message>) {
        let line_message = message.filter(|m| self.tables.kinds[m.kind.index()].line);
        let Some(message) = line_message else {
            let text = "the home writes memory without data".to_string();
            return self.fail(FailureKind::Meaningless, line, text);
        };
        let copy = self.contents.data.share(message.copy);
        self.contents.data.set_memory(line, copy);
        if let Some(above) = &mut self.neighbours.upper_level {
            above.notify_written(line);
        }
        if self.application.is_some() {
            self.note_write_back(line);
        }
    }

    /// Keeps the bytes of a write until the home writes them.
    pub(super) fn defer_store(&mut self, unit_index: usize, line: Line, message: Option<&Message>) {
        let store_message =
            message.map(|message| (message, self.tables.kinds[message.kind.index()]));
        let stores = &mut self.home.units[unit_index].deferred_stores;
        match store_message.filter(|(_, kind)| kind.store) {
            Some((message, kind)) if stores.iter().all(|store| store.line != line) => {
                stores.push(Store::from_message(message, &kind));
            }
            _ => {
                let text = "the home defers a store without a free slot".to_string();
                self.fail(FailureKind::Meaningless, line, text);
            }
        }
    }

    /// Writes the bytes that a unit has kept of a write: the whole line if `is_whole_line`, or the words present.
    /// Returns the words if only a part is written.
    pub(super) fn commit_store(
        &mut self,
        unit_index: usize,
        line: Line,
        is_whole_line: Option<bool>,
    ) -> Option<Range<u16>> {
        let stores = &mut self.home.units[unit_index].deferred_stores;
        let Some(position) = stores.iter().position(|store| store.line == line) else {
            let text = "the home commits a deferred store that it does not have".to_string();
            self.fail(FailureKind::Meaningless, line, text);
            return None;
        };
        let store = stores.remove(position);
        self.perform_store(store, is_whole_line.unwrap_or(store.is_whole_line))
    }

    /// Performs a remote's write at memory. Returns the words if only a part is written.
    pub(super) fn perform_store(
        &mut self,
        store: Store,
        is_whole_line: bool,
    ) -> Option<Range<u16>> {
        let (store_key, flight) = ((store.from, store.line), store.flight);
        let words = self.write_store(store, is_whole_line);
        if let Err(breach) = self
            .contents
            .oracle
            .record_store_performed(store_key, flight)
        {
            let name = self.agent_name(store_key.0);
            let (kind, text) = match breach {
                Breach::Twice => (
                    self.contents.oracle.store_property(),
                    format!("a store of {name} is performed twice, or after it was cancelled"),
                ),
                Breach::Overtakes => (
                    FailureKind::ProgramOrder,
                    format!("a store of {name} is performed before an earlier one to the line"),
                ),
            };
            self.fail(kind, store_key.1, text);
        }
        words
    }

    /// Writes the bytes of a remote's write to memory.
    fn write_store(&mut self, store: Store, is_whole_line: bool) -> Option<Range<u16>> {
        let line = store.line;
        if let Some(above) = &mut self.neighbours.upper_level {
            above.notify_written(line);
        }
        if self.lock_right(line) > Right::None {
            let text = format!(
                "a store of {} reaches memory under the device's lock",
                self.agent_name(store.from)
            );
            self.fail(FailureKind::SingleWriter, line, text);
        }
        let pending_store = self.perform_sent_write(store.from, line, store.flight);
        // The values of these writes are taken from their source, not from the bytes that arrived.
        let uses_source_value = |access: &Pending| {
            matches!(
                access.purpose,
                Purpose::Drain | Purpose::Port | Purpose::Atomic
            )
        };
        let source_access = pending_store.filter(uses_source_value);
        let value = self.contents.data.word(line, store.copy, 0);
        if is_whole_line && source_access.is_none() {
            let words = 0..self.contents.data.words();
            let version = self.contents.oracle.write(line, words.clone(), value);
            if let Some(pending_store) = &pending_store {
                self.record_write(pending_store, words, version);
            }
            self.contents.data.stamp(store.copy, version);
            self.contents.data.set_memory(line, store.copy);
            return None;
        }
        let is_port_access = |access: &Pending| access.purpose == Purpose::Port;
        let old_copy = match &source_access {
            // The bytes of a port have a value of their own in each word.
            Some(access) if is_whole_line && is_port_access(access) => store.copy,
            _ => {
                self.check_memory(line, "is written in part");
                self.contents.data.memory(line)
            }
        };
        let old_copy = self.contents.data.share(old_copy);
        let new_copy = match &source_access {
            Some(access) if access.purpose == Purpose::Atomic => {
                self.perform_atomic_at_home(access, old_copy)
            }
            Some(access) if is_port_access(access) => self.write_by_port(access, old_copy),
            // The contents of a sent write-buffer entry do not change until it has been performed.
            Some(access) => self.perform_buffered_stores(access, old_copy),
            None => {
                let words = store.word..store.word + store.words;
                let version = self.contents.oracle.write(line, words.clone(), value);
                if let Some(pending_store) = &pending_store {
                    self.record_write(pending_store, words.clone(), version);
                }
                words.fold(old_copy, |copy, word| {
                    self.contents
                        .data
                        .write_word(line, copy, word, value, version)
                })
            }
        };
        self.contents.data.set_memory(line, new_copy);
        self.contents.data.release(store.copy);
        source_access
            .is_none()
            .then_some(store.word..store.word + store.words)
    }

    /// Checks that the device cannot be modifying a line that memory reads for a cache.
    pub(super) fn check_memory_read(&mut self, line: Line) {
        if self.lock_right(line) == Right::Write {
            let text = "memory is read for a cache while the device may write it under its lock";
            self.fail(FailureKind::SingleWriter, line, text.into());
        }
    }

    /// Checks that memory has the current contents of a line.
    pub(crate) fn check_memory(&mut self, line: Line, when: &str) {
        let version = self.contents.data.version(self.contents.data.memory(line));
        if !self.contents.oracle.is_current(line, version) {
            let text = format!(
                "memory {when} with the data of write {version} of the line, but write {} was the last",
                self.contents.oracle.latest(line)
            );
            self.fail(FailureKind::DataValue, line, text);
        }
    }
}

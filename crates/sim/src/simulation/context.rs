//! Parts of a run that every component uses besides its own state.

use cohkit_protocol::protocol::MessageId;

use super::*;
use crate::agents::thread::Threads;

/// Parts of a run that components use besides their own state, borrowed for one event.
pub(crate) struct Context<'c> {
    /// Constant properties of machine and protocol.
    pub tables: &'c Tables,
    /// Time, events, messages and accesses.
    pub local: &'c mut LocalState,
    /// Contents of lines, and the oracle.
    pub contents: &'c mut CheckedData,
    /// Counters.
    pub tally: &'c mut RunTally,
    /// Recorders of the run.
    pub observer: &'c mut Observer,
    /// First failure of the run.
    pub failure: &'c mut Option<Box<Failure>>,
}

/// Borrows the context of a [`Simulation`], and leaves its components free.
macro_rules! context {
    ($simulation:expr) => {
        $crate::simulation::Context {
            tables: &$simulation.tables,
            local: &mut $simulation.local,
            contents: &mut $simulation.contents,
            tally: &mut $simulation.tally,
            observer: &mut $simulation.observer,
            failure: &mut $simulation.failure,
        }
    };
}
pub(crate) use context;

impl Context<'_> {
    /// Borrows the same parts for another component.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Context<'_> {
        Context {
            tables: self.tables,
            local: self.local,
            contents: self.contents,
            tally: self.tally,
            observer: self.observer,
            failure: self.failure,
        }
    }

    /// Returns the current time, in picoseconds.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.local.now
    }

    /// Schedules an event at a time that is not in the past. Of equal times, the event scheduled first comes first.
    #[inline(always)]
    pub fn schedule(&mut self, time: Time, event: Event) {
        self.local.queue.push(time, event);
    }

    /// Fails the run, unless it has failed before: the first failure counts.
    #[cold]
    pub fn fail(&mut self, kind: FailureKind, line: Line, text: String) {
        if self.failure.is_some() {
            return;
        }
        let sequence = self.sequence();
        *self.failure = Some(Box::new(Failure {
            kind,
            text,
            line,
            time: self.local.now,
            wait_for: Vec::new(),
            sequence: sequence.unwrap_or_default(),
        }));
    }

    /// Returns the recorded steps, if a trace is recorded.
    pub fn sequence(&self) -> Option<Sequence> {
        let trace = self.observer.trace.as_ref();
        trace.map(|trace| trace.sequence(self.tables.names.lifelines.to_vec()))
    }

    /// Returns the name of an agent.
    pub fn agent_name(&self, agent: Agent) -> &str {
        self.tables.agent_name(agent)
    }

    /// True if a content is the last write of its line, or if that is not checked.
    #[inline]
    pub fn is_current(&self, line: Line, copy: Copy) -> bool {
        self.currency(line, copy).1
    }

    /// Returns the version of a content, and true if it is the last write of its line.
    #[inline]
    fn currency(&self, line: Line, copy: Copy) -> (u32, bool) {
        let version = self.contents.data.version(copy);
        (version, self.contents.oracle.is_current(line, version))
    }

    /// Fails the run because bytes for a single use, which the receiver does not cache, are stale when they are sent.
    #[cold]
    pub fn report_stale_single_use(&mut self, line: Line, message: MessageId, copy: Copy) {
        let text = format!(
            "{} is sent with the data of write {} of the line, but write {} was the last",
            self.tables.protocol_messages[message.index()].name,
            self.contents.data.version(copy),
            self.contents.oracle.latest(line)
        );
        self.fail(FailureKind::DataValue, line, text);
    }

    /// Fails the run because a write that leaves part of the line unchanged starts from stale bytes.
    #[cold]
    pub fn report_stale_write(&mut self, cache: Agent, line: Line, copy: Copy) {
        let text = format!(
            "{} stores into the data of write {} of the line, but write {} was the last",
            self.agent_name(cache),
            self.contents.data.version(copy),
            self.contents.oracle.latest(line)
        );
        self.fail(FailureKind::DataValue, line, text);
    }

    /// Checks that memory's copy of a line is current. `when` is the verb in the message of a failure.
    pub fn check_memory(&mut self, line: Line, copy: Copy, when: &str) {
        if let (version, false) = self.currency(line, copy) {
            let text = format!(
                "memory {when} with the data of write {version} of the line, but write {} was the last",
                self.contents.oracle.latest(line)
            );
            self.fail(FailureKind::DataValue, line, text);
        }
    }

    /// Checks that the device cannot be modifying a line that memory reads for a cache.
    pub fn check_memory_read(&mut self, line: Line) {
        if self.local.locks.permission(line) == Permission::Write {
            self.report_read_under_lock(line);
        }
    }

    /// Fails the run because memory is read for a cache while the device may be modifying the line.
    #[cold]
    pub fn report_read_under_lock(&mut self, line: Line) {
        let text = "memory is read for a cache while the device may write it under its lock";
        self.fail(FailureKind::SingleWriter, line, text.into());
    }

    /// Checks a load that is performed with these bytes now. `threads` are those of the run, if any.
    #[inline(always)]
    pub fn check_load(&mut self, access: &Pending, copy: Copy, threads: Option<&Threads>) {
        let Pending {
            cache, line, word, ..
        } = *access;
        if self.contents.oracle.may_be_stale() {
            let is_acquire = threads.is_some_and(|threads| threads.is_acquire(access.core));
            return self.check_stale_load(access, copy, is_acquire);
        }
        let (version, is_current) = self.currency(line, copy);
        let value = || self.contents.data.word(line, copy, word);
        if !is_current || !self.contents.oracle.is_word_current(line, word, value) {
            let text = format!(
                "{} loads the data of write {version} of the line, but write {} was the last",
                self.agent_name(cache),
                self.contents.oracle.latest(line)
            );
            self.fail(FailureKind::DataValue, line, text);
        }
    }

    /// Checks a load where copies may be stale: the value was written, by no write older than one that the core has
    /// observed.
    #[cold]
    fn check_stale_load(&mut self, access: &Pending, copy: Copy, is_acquire: bool) {
        let Pending { line, word, .. } = *access;
        let CheckedData { data, oracle } = &mut *self.contents;
        let observed = (data.version(copy), data.word(line, copy, word));
        let reader = (access.core, is_acquire);
        if let Err(error) = oracle.check_stale_read(reader, (line, word), observed) {
            let name = self.agent_name(access.cache);
            let text = format!("{name} loads word {word}: {error}");
            self.fail(FailureKind::DataValue, line, text);
        }
    }

    /// Checks that a read's bytes contain all stores that its cache has posted before.
    pub fn check_own_stores(&mut self, access: &Pending, copy: Copy) {
        let Pending { cache, line, .. } = *access;
        let version = self.contents.data.version(copy);
        if !(self.contents.oracle).contains_own_stores((cache, line), version) {
            let name = self.agent_name(cache);
            let text = format!("a read of {name} does not return an earlier store of its own core");
            self.fail(FailureKind::ProgramOrder, line, text);
        }
    }

    /// Records that stores with these issue times (picoseconds) are visible to all agents from now on.
    pub fn record_visible_stores(&mut self, issued: &[Time]) {
        for issue_time in issued {
            let latency = self.local.now.saturating_sub(*issue_time);
            self.tally.counters.visible.record(latency);
        }
    }

    /// Performs a write of one value to words of a line, in a copy of it. Returns the new copy, which replaces the
    /// given one, and the number of the write.
    #[inline]
    pub fn write_words(
        &mut self,
        line: Line,
        copy: Copy,
        words: std::ops::Range<u16>,
        value: u64,
    ) -> (Copy, u32) {
        let version = self.contents.oracle.write(line, words.clone(), value);
        let data = &mut self.contents.data;
        let copy = words.fold(copy, |copy, word| {
            data.write_word(line, copy, word, value, version)
        });
        (copy, version)
    }

    /// Counts performed accesses, whose completion their core sees at `done`, which is not in the past.
    #[inline(always)]
    pub fn count_performed(&mut self, accesses: u64, done: Time) {
        let counters = &mut self.tally.counters;
        counters.performed += accesses;
        counters.end = counters.end.max(done);
        if counters.throughput_samples.count_events(accesses) {
            self.record_sample(done);
        }
    }

    /// Takes a sample of the throughput at `done`.
    #[cold]
    fn record_sample(&mut self, done: Time) {
        let cached = self.local.cached_lines;
        (self.tally.counters.throughput_samples).take_samples(done, cached);
    }
}

//! Candidate execution, and the relations between its events.

use super::event::{Event, Kind};
use super::thread_paths::ThreadPath;
use crate::program::{Class, Observable, Outcome, Program};

/// A candidate execution.
pub struct Execution<'e> {
    /// Events, thread by thread in program order.
    pub events: &'e [Event],
    /// Write that each read reads from, by event; `None` for the initial value.
    pub from: Vec<Option<usize>>,
    /// Coherence position of each write, by event: number of earlier writes of its location.
    pub rank: Vec<usize>,
    /// Path of each thread, by thread.
    pub(super) paths: Vec<&'e ThreadPath>,
}

impl Execution<'_> {
    /// Returns true if `a` precedes `b` in program order (herd's `po`).
    pub fn program_order(&self, a: usize, b: usize) -> bool {
        self.events[a].thread == self.events[b].thread && a < b
    }

    /// Returns true if both events access the same location.
    pub(crate) fn same_location(&self, a: usize, b: usize) -> bool {
        self.events[a].at == self.events[b].at
    }

    /// Returns true if `read` reads from `write` (herd's `rf`).
    pub(crate) fn reads_from(&self, write: usize, read: usize) -> bool {
        self.from[read] == Some(write) && self.events[read].kind == Kind::Read
    }

    /// Returns true if write `a` precedes write `b` in the coherence order of their location (herd's `co`).
    pub fn coherence(&self, a: usize, b: usize) -> bool {
        let writes = |event: usize| self.events[event].kind == Kind::Write;
        writes(a) && writes(b) && self.same_location(a, b) && self.rank[a] < self.rank[b]
    }

    /// Returns true if `read` reads a value older than that of `write` to its location (herd's `fr`).
    pub(crate) fn reads_before(&self, read: usize, write: usize) -> bool {
        let (a, b) = (&self.events[read], &self.events[write]);
        a.kind == Kind::Read
            && b.kind == Kind::Write
            && a.at == b.at
            && self.from[read].is_none_or(|from| self.rank[from] < self.rank[write])
    }

    /// Returns true if a fence orders `a` before `b`.
    pub fn fenced(&self, a: usize, b: usize) -> bool {
        self.fenced_by(a, b, &|_| true)
    }

    /// Returns true if a fence orders `a` before `b` and the class of its earlier accesses satisfies `has_class`.
    pub(crate) fn fenced_by(&self, a: usize, b: usize, has_class: &dyn Fn(Class) -> bool) -> bool {
        let thread = self.events[a].thread;
        let (earlier, later) = (&self.events[a], &self.events[b]);
        let has = |class: Class, event: &Event| {
            class.has(event.kind == Kind::Read, event.kind == Kind::Write)
        };
        let (from, to) = (self.number(a), self.number(b));
        let between = |&(earlier_class, later_class, position): &(Class, Class, usize)| {
            from < position
                && position <= to
                && has(earlier_class, earlier)
                && has(later_class, later)
                && has_class(earlier_class)
        };
        self.program_order(a, b) && self.paths[thread].fences.iter().any(between)
    }

    /// Returns true if the value that `b` writes depends on the value that `a` reads.
    pub fn data(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].data >> self.number(a) & 1 != 0
    }

    /// Returns true if the location of `b` depends on the value that `a` reads.
    pub fn address(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].address >> self.number(a) & 1 != 0
    }

    /// Returns true if `a` only selected which value or location `b` has.
    pub fn pick(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].pick >> self.number(a) & 1 != 0
    }

    /// Returns true if the thread of `a` and `b` writes the location of `b` between them.
    pub(crate) fn written_between(&self, a: usize, b: usize) -> bool {
        (a + 1..b).any(|event| {
            self.events[event].kind == Kind::Write && self.events[event].at == self.events[b].at
        })
    }

    /// Returns true if a branch before `b` depends on the value that `a` reads.
    pub fn control(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].control >> self.number(a) & 1 != 0
    }

    /// Returns true if a branch or an address before `b` depends on `a`, and an instruction-synchronisation fence
    /// follows that branch or address before `b` (herd's `ctrlisync`).
    pub(crate) fn synchronised(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].synchronised >> self.number(a) & 1 != 0
    }

    /// Returns true if `read` and `write` form one atomic access or one pair of load-reserved and store-conditional.
    pub fn atomic(&self, read: usize, write: usize) -> bool {
        self.program_order(read, write) && self.events[write].paired_read == Some(self.number(read))
    }

    /// Returns two choices for each pair of a read-side critical section and a grace period of another thread. The
    /// section precedes the grace period, or the reverse. A choice is a bit set of events and the bit set of the events
    /// ordered after them.
    pub(crate) fn grace_periods(&self) -> Vec<[(u64, u64); 2]> {
        let events = |thread: usize, numbers: std::ops::Range<usize>| {
            let indexed = self.events.iter().enumerate();
            let thread_events = indexed
                .filter(|(_, event)| event.thread == thread)
                .enumerate();
            let selected = thread_events.filter(|(number, _)| numbers.contains(number));
            selected.fold(0u64, |bits, (_, (event, _))| bits | 1 << event)
        };
        let mut choices = Vec::new();
        for (waiting_thread, path) in self.paths.iter().enumerate() {
            for &grace in &path.grace_periods {
                let (before, after) = (
                    events(waiting_thread, 0..grace),
                    events(waiting_thread, grace..usize::MAX),
                );
                let readers = self.paths.iter().enumerate();
                for (reader, path) in readers.filter(|(reader, _)| *reader != waiting_thread) {
                    choices.extend(path.sections.iter().map(|&(begin, end)| {
                        let section = (events(reader, 0..end), after);
                        [section, (before, events(reader, begin..usize::MAX))]
                    }));
                }
            }
        }
        choices
    }

    /// Returns the number of an event within its thread.
    fn number(&self, event: usize) -> usize {
        let thread = self.events[event].thread;
        let earlier = &self.events[..event];
        earlier.iter().filter(|e| e.thread == thread).count()
    }

    /// Returns the outcome of the execution, or `None` if the test's filter excludes it.
    pub fn outcome(&self, program: &Program) -> Option<Outcome> {
        program.outcome(|observed| match *observed {
            Observable::Register(thread, register) => self.paths[thread].registers[register],
            Observable::Location(location) => {
                let writes = (0..self.events.len()).filter(|&e| {
                    self.events[e].kind == Kind::Write && self.events[e].at == location
                });
                match writes.max_by_key(|&write| self.rank[write]) {
                    Some(last_write) => self.events[last_write].value,
                    None => program.initial[usize::from(location)],
                }
            }
        })
    }
}

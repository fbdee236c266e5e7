//! Histories of a location: the write that each read reads from, and the order of the writes.

use super::event::{Event, Kind};
use super::limits::MAX_CANDIDATES;
use crate::program::Location;

/// History of one location. Events are referred to by their indices in the execution.
pub(super) struct History {
    /// Each read with the write that it reads from; `None` for the initial value.
    pub(super) from: Vec<(usize, Option<usize>)>,
    /// Writes in coherence order.
    pub(super) order: Vec<usize>,
}

/// Enumeration of the histories of one location.
pub(super) struct HistorySearch<'e> {
    /// All events of the execution.
    events: &'e [Event],
    /// Reads of the location, in the order of events.
    reads: Vec<usize>,
    /// Writes of the location, in the order of events.
    writes: Vec<usize>,
    /// Initial value of the location.
    initial_value: i64,
    /// True to enumerate coherent histories only.
    coherent: bool,
    /// Writes ordered so far.
    order: Vec<usize>,
    /// Reads with their sources so far.
    from: Vec<(usize, Option<usize>)>,
    /// Histories found so far.
    pub(super) histories: Vec<History>,
}

impl<'e> HistorySearch<'e> {
    /// Prepares the search for a location; with `coherent`, for coherent histories only.
    pub(super) fn new(
        events: &'e [Event],
        location: Location,
        initial_value: i64,
        coherent: bool,
    ) -> HistorySearch<'e> {
        let events_of = |kind: Kind| {
            let indexed = events.iter().enumerate();
            let matching = indexed.filter(|(_, event)| (event.at, event.kind) == (location, kind));
            matching.map(|(event, _)| event).collect()
        };
        HistorySearch {
            events,
            reads: events_of(Kind::Read),
            writes: events_of(Kind::Write),
            initial_value,
            coherent,
            order: Vec::new(),
            from: Vec::new(),
            histories: Vec::new(),
        }
    }

    /// Enumerates every order of the writes that begins with `self.order`. `count` is increased by the number of
    /// visited candidates; the search stops above the limit.
    pub(super) fn extend_order(&mut self, count: &mut usize) {
        *count += 1;
        if *count > MAX_CANDIDATES {
            return;
        }
        if self.order.len() == self.writes.len() {
            return self.choose_sources(0, count);
        }
        for write in self.writes.clone() {
            let thread = self.events[write].thread;
            let is_next = |&candidate: &usize| {
                let earlier = self.coherent && candidate < write;
                !self.order.contains(&candidate)
                    && (candidate == write || earlier && self.events[candidate].thread == thread)
            };
            // Coherence keeps the writes of a thread in program order.
            if self.writes.iter().copied().find(is_next) != Some(write) {
                continue;
            }
            let sources = self.from.len();
            if !self.coherent || self.atomic(write) {
                self.order.push(write);
                self.extend_order(count);
                self.order.pop();
            }
            self.from.truncate(sources);
        }
    }

    /// Makes the read that forms one atomic access with `write`, if any, read from the write directly before `write` in
    /// coherence order. Returns false if the values differ.
    fn atomic(&mut self, write: usize) -> bool {
        let event = &self.events[write];
        let Some(number) = event.paired_read else {
            return true;
        };
        let first_event = self.events.iter().position(|e| e.thread == event.thread);
        let read = first_event.unwrap_or(0) + number;
        // Writes of the same thread between both parts do not violate atomicity.
        let between = |&&candidate: &&usize| (read..write).contains(&candidate);
        let from = self
            .order
            .iter()
            .rev()
            .find(|candidate| !between(candidate));
        let from = from.copied();
        self.from.push((read, from));
        self.value_of(from) == self.events[read].value
    }

    /// Returns the value of a write, or the initial value for `None`.
    fn value_of(&self, from: Option<usize>) -> i64 {
        from.map_or(self.initial_value, |write| self.events[write].value)
    }

    /// Enumerates every choice of a write with the right value for each read, from read `number` on.
    fn choose_sources(&mut self, number: usize, count: &mut usize) {
        let Some(&read) = self.reads.get(number) else {
            *count += 1;
            if !self.coherent || self.follows_program_order() {
                self.histories.push(History {
                    from: self.from.clone(),
                    order: self.order.clone(),
                });
            }
            return;
        };
        if self.from.iter().any(|(assigned, _)| *assigned == read) {
            return self.choose_sources(number + 1, count);
        }
        let writes = self.writes.clone().into_iter().map(Some);
        for from in std::iter::once(None).chain(writes) {
            if self.value_of(from) == self.events[read].value && *count <= MAX_CANDIDATES {
                self.from.push((read, from));
                self.choose_sources(number + 1, count);
                self.from.pop();
            }
        }
    }

    /// Returns true if no thread accesses an older value of the location after a newer one.
    fn follows_program_order(&self) -> bool {
        // Position of an event in the history: 0 is the initial value, then the writes in coherence order.
        let position_of = |write: usize| self.order.iter().position(|&other| other == write);
        let position_of =
            |from: Option<usize>| from.and_then(position_of).map_or(0, |index| index + 1);
        let mut events = self.reads.iter().chain(&self.writes).collect::<Vec<_>>();
        events.sort_unstable();
        let mut newest = (usize::MAX, 0);
        events.into_iter().all(|&event| {
            let Event { thread, kind, .. } = self.events[event];
            if newest.0 != thread {
                newest = (thread, 0);
            }
            let (position, fits) = match kind {
                Kind::Write => {
                    let position = position_of(Some(event));
                    (position, position > newest.1)
                }
                Kind::Read => {
                    let mut sources = self.from.iter();
                    let from = sources.find(|(read, _)| *read == event);
                    let position = position_of(from.and_then(|(_, from)| *from));
                    (position, position >= newest.1)
                }
            };
            newest.1 = position;
            fits
        })
    }
}

//! Main memory: a memory behind each home, and the copy of each line that memory holds.
//!
//! Most memories determine the end of an operation when it starts. Operations of a DRAM with a scheduler are
//! *deferred*: [`MainMemory::advance`] notifies their requesters. So are reads beyond the limit of a slice.

use super::deferred_memory::{schedule_for_requester, Completion, DeferredMemory, Operation};
use super::*;
use cohkit_dram::{Controller, InOrderMemory, UncontendedOp};
use std::ops::Range;

/// The memories behind all homes, and their contents.
pub(crate) struct MainMemory {
    /// Memories that determine the end of an operation when it starts; empty with DRAMs that have schedulers.
    memories: Vec<InOrderMemory>,
    /// Operations whose end is determined later, if there can be some.
    deferred: Option<Box<DeferredMemory>>,
    /// Number of homes, a power of two.
    homes: usize,
    line_bytes: u32,
    /// True if memory sees aliased line numbers.
    aliases_lines: bool,
    /// Content of each line in memory.
    copies: Paged<Copy>,
}

impl MainMemory {
    /// Creates idle memories in which no line has been written.
    pub fn new(platform: &Platform, line_bytes: u32) -> MainMemory {
        let homes = platform.homes() as usize;
        let (memories, controllers) = match &platform.memory {
            Memory::Jedec(dram) => {
                let controllers = (0..homes).map(|_| Controller::new(dram, line_bytes));
                (Vec::new(), controllers.collect())
            }
            memory => {
                let memories = (0..homes).map(|_| InOrderMemory::new(memory, line_bytes));
                (memories.collect(), Vec::new())
            }
        };
        MainMemory {
            memories,
            deferred: DeferredMemory::new(platform, controllers).map(Box::new),
            homes,
            line_bytes,
            aliases_lines: platform.aliases_lines(),
            copies: Paged::new(Copy::UNTOUCHED),
        }
    }

    /// Returns memory's copy of a line. The caller does not become a holder.
    #[inline]
    pub fn copy(&self, line: Line) -> Copy {
        self.copies.get(line)
    }

    /// Writes a content into memory, which becomes a holder in the caller's place.
    #[inline]
    pub fn set_copy(&mut self, data: &mut Data, line: Line, copy: Copy) {
        let old = self.copies.get(line);
        if old != copy {
            self.copies.set(line, copy);
        }
        data.release(old);
    }

    /// Prefetches the entry that [`MainMemory::copy`] reads.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.copies.prefetch(line);
    }

    /// Returns the number of the memory that has a line, and the line's number in that memory.
    #[inline(always)]
    fn place(&self, line: Line) -> (usize, Line) {
        let line = match self.aliases_lines {
            true => aliased(line),
            false => line,
        };
        (
            line as usize & (self.homes - 1),
            line >> self.homes.trailing_zeros(),
        )
    }

    /// Performs an operation on some words of a line, or on all, at `start`, in a memory that determines its end at
    /// once. Returns the end.
    #[inline(always)]
    fn operate(&mut self, start: Time, line: Line, words: Option<Range<usize>>) -> Time {
        let (number, place) = self.place(line);
        match words {
            None => self.memories[number].operate(start, place),
            Some(words) => {
                let bytes = 8 * words.start as u32..8 * words.end as u32;
                self.memories[number].operate_on(start, place, bytes)
            }
        }
    }

    /// True if memory determines the end of an operation when it starts.
    #[inline(always)]
    fn is_immediate(&self) -> bool {
        !self.memories.is_empty()
    }

    /// Starts an operation now on some words of a line, or on all. `event` is scheduled at its end.
    pub fn start(
        &mut self,
        context: &mut Context,
        (line, words): (Line, Option<Range<usize>>),
        write: bool,
        event: Option<Event>,
    ) {
        let completion = event.map_or(Completion::None, Completion::Event);
        self.start_at_once(context, (line, words), write, completion);
    }

    /// Starts reads of whole lines now. Their events are scheduled in this order, each not before the end of its read.
    pub fn start_burst(&mut self, context: &mut Context, reads: &[(Line, Event)]) {
        let has_home_cache =
            (self.deferred.as_ref()).is_some_and(|deferred| deferred.has_home_cache());
        if !self.is_immediate() || has_home_cache {
            let events = reads.iter().map(|&(_, event)| event);
            let number = self
                .deferred
                .as_mut()
                .map_or(0, |deferred| deferred.add_burst(events));
            for (&(line, _), place) in reads.iter().zip(0..) {
                let completion = Completion::Burst(number, place);
                self.start_at_once(context, (line, None), false, completion);
            }
            return;
        }
        let mut end = context.now();
        for &(line, event) in reads {
            end = end.max(self.operate(context.now(), line, None));
            schedule_for_requester(context, end, event);
        }
    }

    /// Starts an operation that reaches memory now.
    fn start_at_once(
        &mut self,
        context: &mut Context,
        (line, words): (Line, Option<Range<usize>>),
        write: bool,
        completion: Completion,
    ) {
        let now = context.now();
        let has_home_cache =
            (self.deferred.as_ref()).is_some_and(|deferred| deferred.has_home_cache());
        if self.is_immediate() && !has_home_cache {
            let end = self.operate(now, line, words);
            if let Completion::Event(event) = completion {
                schedule_for_requester(context, end, event);
            }
            return;
        }
        let operation = Operation {
            line,
            write,
            ready: now,
            asked: now,
            completion,
            chain: None,
            arrival: now,
            uncontended: 0,
            cache_latency: 0,
        };
        // Lines beyond the memory of the home belong to the application alone, and are not in its cache.
        let is_cached = has_home_cache && line < context.tables.platform.lines;
        let (number, _) = self.place(line);
        let (operation, written_back) = match &mut self.deferred {
            Some(deferred) if is_cached => deferred.access_home_cache(context, number, operation),
            _ => (Some(operation), None),
        };
        // The cache reads whole lines.
        let words = words.filter(|_| !is_cached);
        for operation in operation.into_iter().chain(written_back) {
            self.operate_deferred(context, words.clone(), operation);
        }
    }

    /// Starts an operation at its arrival, in a memory that need not determine its end at once.
    fn operate_deferred(
        &mut self,
        context: &mut Context,
        words: Option<Range<usize>>,
        operation: Operation,
    ) {
        let (number, place) = self.place(operation.line);
        if !self.is_immediate() {
            let bytes = match words {
                None => 0..self.line_bytes,
                Some(words) => 8 * words.start as u32..8 * words.end as u32,
            };
            if let Some(deferred) = &mut self.deferred {
                deferred.submit(context, number, (place, bytes), operation);
            }
            return;
        }
        let mut operation = operation;
        // Only the latency breakdown needs the duration.
        if operation.chain.is_some() {
            let uncontended = self.uncontended(operation.arrival, operation.line);
            operation.uncontended = uncontended.end - operation.arrival;
            context.note_memory_use(operation.line, &uncontended);
        }
        let end = self.operate(operation.arrival, operation.line, words);
        if let Some(deferred) = &mut self.deferred {
            deferred.finish(context, operation, end);
        }
    }

    /// Starts a read or write of a line for a unit of the home that is ready at `ready`. `event` is scheduled when the
    /// unit receives the completion.
    #[inline(always)]
    pub fn start_for_unit(
        &mut self,
        context: &mut Context,
        ready: Time,
        (line, write): (Line, bool),
        event: Event,
    ) {
        if self.deferred.is_none() {
            let end = self.operate_for_unit(context, ready, line);
            context.observe(Fact::OperationStarted { line, write });
            return context.schedule(end, event);
        }
        self.start_deferred(context, ready, (line, write), Completion::Unit(event));
    }

    /// Performs a write of a line for which no unit waits.
    pub fn start_posted_write(&mut self, context: &mut Context, ready: Time, line: Line) {
        if self.deferred.is_none() {
            self.operate_for_unit(context, ready, line);
            return;
        }
        self.start_deferred(context, ready, (line, true), Completion::None);
    }

    /// Reads a line for a message of the home. Returns the time at which the message may leave, if it is known.
    /// Otherwise [`MainMemory::take_ready_messages`] returns it later, with `number`.
    pub fn start_for_message(
        &mut self,
        context: &mut Context,
        ready: Time,
        line: Line,
        number: u32,
    ) -> Option<Time> {
        if self.deferred.is_none() {
            return Some(self.operate_for_unit(context, ready, line));
        }
        self.start_deferred(context, ready, (line, false), Completion::Message(number));
        None
    }

    /// Starts an operation that is deferred, or a read for which its slice may have to wait.
    fn start_deferred(
        &mut self,
        context: &mut Context,
        ready: Time,
        (line, write): (Line, bool),
        completion: Completion,
    ) {
        let operation = Operation {
            line,
            write,
            ready,
            asked: context.now(),
            completion,
            chain: context.chain_until(ready),
            arrival: 0,
            uncontended: 0,
            cache_latency: 0,
        };
        let slice = context.tables.slice_of(line);
        let is_read_of_unit = !write && matches!(completion, Completion::Unit(_));
        let is_admitted = self
            .deferred
            .as_mut()
            .is_none_or(|deferred| !is_read_of_unit || deferred.admit_read(slice, operation));
        if is_admitted {
            self.send_to_memory(context, operation);
        }
    }

    /// Sends the operation of a unit to memory, now or when the unit is ready.
    fn send_to_memory(&mut self, context: &mut Context, operation: Operation) {
        let ready = operation.ready.max(context.now());
        let arrival = ready + context.tables.times.path.0;
        let operation = Operation {
            arrival,
            chain: (operation.chain).map(|chain| context.chain_to_memory(chain, ready, arrival)),
            ..operation
        };
        let (number, _) = self.place(operation.line);
        let (operation, written_back) = match &mut self.deferred {
            Some(deferred) => deferred.access_home_cache(context, number, operation),
            None => (Some(operation), None),
        };
        for operation in operation.into_iter().chain(written_back) {
            self.operate_deferred(context, None, operation);
        }
    }

    /// Ends the read of a unit, which has received the line. The next read of its slice may start.
    #[inline]
    pub fn end_read(&mut self, context: &mut Context, line: Line) {
        let Some(deferred) = &mut self.deferred else {
            return;
        };
        if let Some(next) = deferred.end_read(context.tables.slice_of(line)) {
            self.send_to_memory(context, next);
        }
    }

    /// Lets the DRAM of a home issue the commands that are due.
    pub fn advance(&mut self, context: &mut Context, number: u32) {
        if let Some(deferred) = &mut self.deferred {
            deferred.advance(context, number as usize);
        }
    }

    /// Returns the messages whose line has been read, with the time at which each may leave.
    pub fn take_ready_messages(&mut self) -> Vec<(u32, Time)> {
        let deferred = self.deferred.as_mut();
        deferred.map_or_else(Vec::new, |deferred| {
            std::mem::take(&mut deferred.ready_messages)
        })
    }

    /// Performs an operation on a line for a unit of the home that is ready at `ready`. Returns the time at which
    /// the unit receives the completion, in picoseconds. Includes the latencies between unit and memory.
    #[inline(always)]
    fn operate_for_unit(&mut self, context: &mut Context, ready: Time, line: Line) -> Time {
        let (request_latency, response_latency) = context.tables.times.path;
        let arrival = ready + request_latency;
        let is_observed = context.observer.is_enabled();
        let uncontended = is_observed.then(|| self.uncontended(arrival, line));
        let end = self.operate(arrival, line, None);
        if let Some(uncontended) = uncontended {
            context.observe(Fact::MemoryOperation {
                line,
                ready,
                end,
                uncontended,
            });
        }
        end + response_latency
    }

    /// Returns an operation on a line as it would be without contention.
    #[cold]
    fn uncontended(&self, arrival: Time, line: Line) -> UncontendedOp {
        let (number, place) = self.place(line);
        self.memories[number].uncontended_operation(arrival, place)
    }

    /// Number of operations that found their row open, and of those that had to open a row.
    pub fn row_hits_and_misses(&self) -> (u64, u64) {
        let deferred = self.deferred.as_ref();
        let deferred = deferred.map_or((0, 0), |deferred| (deferred.row_hits, deferred.row_misses));
        let memories = self.memories.iter();
        memories.fold(deferred, |(hits, misses), memory| {
            (hits + memory.row_hits, misses + memory.row_misses)
        })
    }

    /// Number of memories, and of the resources of one kind (`"bus"`, `"bank"` or `"port"`) of each.
    pub fn count(&self, resource: &str) -> (usize, usize) {
        let controllers = self.deferred.as_ref().map(|deferred| &deferred.controllers);
        let counts = controllers.and_then(|controllers| controllers.first());
        let count = match (self.memories.first(), counts.map(Controller::counts)) {
            (Some(memory), _) => memory.count(resource),
            (None, Some((channels, banks))) => match resource {
                "bus" => channels,
                "bank" => banks,
                _ => 0,
            },
            (None, None) => 0,
        };
        (self.homes, count)
    }
}

/// Returns the aliased number of a line, which selects the unit and addresses memory on machines with aliasing. It is a
/// permutation of each aligned MiB, and inverts the same bits of all lines of an aligned 4 KiB.
#[inline(always)]
pub(crate) fn aliased(line: Line) -> Line {
    let bits = |low: u32, count: u32| line >> low & ((1 << count) - 1);
    line ^ bits(13, 5) << 8
        ^ bits(18, 3) << 5
        ^ (bits(16, 2) ^ bits(5, 2)) << 3
        ^ (bits(13, 3) ^ bits(5, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Number of units, of 64, among some lines.
    fn units(lines: impl Iterator<Item = Line>) -> usize {
        lines
            .map(|line| aliased(line) & 63)
            .collect::<HashSet<_>>()
            .len()
    }

    /// Aliasing permutes each aligned MiB. Within an aligned 4 KiB, it inverts the same bits of all lines.
    #[test]
    fn aliasing_permutes_blocks_and_keeps_pages() {
        for mebibyte in 0..1 << 9 {
            let first = mebibyte << 13;
            let lines: HashSet<Line> = (first..first + (1 << 13)).map(aliased).collect();
            assert_eq!(lines.len(), 1 << 13);
            assert!(lines.iter().all(|line| line >> 13 == mebibyte));
        }
        for page in 0..1 << 16 {
            let inverted = aliased(page << 5) ^ page << 5;
            assert!((page << 5..(page + 1) << 5).all(|line| aliased(line) ^ line == inverted));
        }
    }

    /// Any 32 consecutive lines are in 32 units, 64 in 48 to 64 (56 in the mean), and 128 in all.
    #[test]
    fn aliased_lines_spread_over_units() {
        let spread = |count: Line| (0..3 << 13).map(move |line| units(line..line + count));
        assert!(spread(32).all(|units| units == 32));
        assert!(spread(64).all(|units| (48..=64).contains(&units)));
        let mean = spread(64).sum::<usize>() as f64 / f64::from(3 << 13);
        assert!((mean - 56.0).abs() < 0.01, "{mean}");
        assert!(spread(128).all(|units| units == 64));
        let strides = [
            (2, 32),
            (4, 32),
            (8, 32),
            (16, 16),
            (32, 8),
            (64, 4),
            (128, 2),
            (256, 2),
            (512, 4),
            (1024, 8),
            (8192, 64),
        ];
        for (stride, expected) in strides {
            assert_eq!(
                units((0..64).map(|number| number * stride)),
                expected,
                "{stride}"
            );
        }
    }

    #[test]
    fn memory_returns_stored_contents() {
        let mut data = Data::new(128);
        let mut memory = MainMemory::new(&Platform::torture(1), 128);
        let copy = data.write_word(1 << 20, Copy::UNTOUCHED, 15, 1, 1);
        memory.set_copy(&mut data, 1 << 20, copy);
        assert_eq!(data.word(1 << 20, memory.copy(1 << 20), 15), 1);
        assert_eq!(memory.copy(5), Copy::UNTOUCHED);
    }
}

//! Main memory: a memory behind each home, and the copy of each line that memory holds.

use super::*;
use crate::components::memory::UncontendedOp;
use std::ops::Range;

/// The memories behind all homes, and their contents.
pub(crate) struct MainMemory {
    /// Timing of the memory of each home; their number is a power of two.
    memories: Vec<memory::Memory>,
    /// Content of each line in memory.
    copies: Paged<Copy>,
}

impl MainMemory {
    /// Creates idle memories in which no line has been written.
    pub fn new(platform: &Memory, homes: u64, line_bytes: u32) -> MainMemory {
        MainMemory {
            memories: (0..homes)
                .map(|_| memory::Memory::new(platform, line_bytes))
                .collect(),
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
        let count = self.memories.len();
        (line as usize & (count - 1), line >> count.trailing_zeros())
    }

    /// Starts an operation on a line at `start`. Returns the time at which it ends, in picoseconds.
    #[inline(always)]
    pub fn operate(&mut self, start: Time, line: Line) -> Time {
        let (number, place) = self.place(line);
        self.memories[number].operate(start, place)
    }

    /// Starts an operation on a range of 8-byte words of a line at `start`. Returns the time at which it ends, in
    /// picoseconds.
    pub fn operate_on_words(&mut self, start: Time, line: Line, words: Range<usize>) -> Time {
        let (number, place) = self.place(line);
        let bytes = 8 * words.start as u32..8 * words.end as u32;
        self.memories[number].operate_on(start, place, bytes)
    }

    /// Performs an operation on a line for a unit of the home that is ready at `ready`. Returns the time at which
    /// the unit receives the completion, in picoseconds. Includes the latencies between unit and memory.
    #[inline(always)]
    pub fn operate_for_unit(&mut self, context: &mut Context, ready: Time, line: Line) -> Time {
        let (request_latency, response_latency) = context.tables.times.path;
        let arrival = ready + request_latency;
        let is_observed = context.observer.is_enabled();
        let uncontended = is_observed.then(|| self.uncontended(arrival, line));
        let end = self.operate(arrival, line);
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
        let memories = self.memories.iter();
        memories.fold((0, 0), |(hits, misses), memory| {
            (hits + memory.row_hits, misses + memory.row_misses)
        })
    }

    /// Number of memories, and of the resources of one kind (`"bus"`, `"bank"` or `"port"`) of each.
    pub fn count(&self, resource: &str) -> (usize, usize) {
        let first = self.memories.first();
        (
            self.memories.len(),
            first.map_or(0, |memory| memory.count(resource)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_returns_stored_contents() {
        let mut data = Data::new(128);
        let mut memory = MainMemory::new(&Platform::torture(1).memory, 1, 128);
        let copy = data.write_word(1 << 20, Copy::UNTOUCHED, 15, 1, 1);
        memory.set_copy(&mut data, 1 << 20, copy);
        assert_eq!(data.word(1 << 20, memory.copy(1 << 20), 15), 1);
        assert_eq!(memory.copy(5), Copy::UNTOUCHED);
    }
}

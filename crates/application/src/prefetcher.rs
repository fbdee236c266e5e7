//! A sequential prefetcher between home and memory: it prefetches blocks of lines and answers reads from them.
//!
//! A read that misses all blocks allocates one and fetches its line first, then the whole block in bursts. A read in
//! the second half of a block allocates the next block. Writes of the CPU go to memory and update the block.

use crate::hardware::HardwareScenario;
use crate::interface::{
    Actions, Application, Contents, Event, Line, Placement, Scenario, Step, Thread, Words,
};
use std::collections::{BTreeMap, BTreeSet};

/// Parameters of the prefetcher and of its clients.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prefetch {
    /// Lines of the region, starting at line 0.
    pub lines: Line,
    /// Maximum number of blocks held; 0 disables prefetching.
    pub blocks: u32,
    /// Lines per block, a power of two.
    pub block: Line,
    /// Lines per burst.
    pub burst: Line,
    /// Number of threads; each reads its own part of the region in address order.
    pub threads: u32,
    /// Lines that each thread reads or writes; unlimited if `None`.
    pub reads: Option<u64>,
    /// Lines written instead of read, per thousand, evenly spaced. Successive passes select different lines, unless
    /// `written` times the lines of a thread is a multiple of 1000.
    pub written: u32,
    /// Distance of software prefetches: number of lines by which the prefetch of a line precedes its access; 0 for
    /// none.
    pub hints: Line,
}

/// A block of prefetched lines.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Block {
    /// First line, a multiple of the block's size.
    first: Line,
    /// Lines that have arrived.
    lines: BTreeMap<Line, Words>,
    /// Bursts in flight.
    bursts_in_flight: u32,
    /// True once an access to this block has allocated the next block.
    next_allocated: bool,
}

/// The prefetcher.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prefetcher {
    /// Parameters of the scenario.
    parameters: Prefetch,
    /// Blocks in LRU order, the least recently used first.
    blocks: Vec<Block>,
    /// Outstanding reads of the home that wait for memory.
    waiting: BTreeSet<Line>,
    /// Writes not yet complete in memory, with their words.
    writing: BTreeMap<Line, Words>,
    /// Bursts in flight, by number.
    bursts: BTreeMap<u32, Burst>,
}

/// A burst in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Burst {
    /// Lines still to arrive.
    remaining: Line,
    /// True for a single line that belongs to no block, because none could be allocated.
    is_single: bool,
}

impl Prefetcher {
    /// Returns the index of the block of a line and makes it the most recently used one.
    fn touch_block(&mut self, line: Line) -> Option<usize> {
        let first = line - line % self.parameters.block;
        let index = self.blocks.iter().position(|block| block.first == first)?;
        let block = self.blocks.remove(index);
        self.blocks.push(block);
        Some(self.blocks.len() - 1)
    }

    /// Allocates a block for a line and fetches that line first. Returns false if all blocks are busy.
    fn allocate_block(&mut self, line: Line, actions: &mut Actions) -> bool {
        if self.blocks.len() >= self.parameters.blocks as usize {
            let is_idle = |block: &Block| {
                let range = block.first..block.first + self.parameters.block;
                block.bursts_in_flight == 0 && self.waiting.range(range).next().is_none()
            };
            let Some(index) = self.blocks.iter().position(is_idle) else {
                return false;
            };
            self.blocks.remove(index);
        }
        let first = line - line % self.parameters.block;
        let end = (first + self.parameters.block).min(self.parameters.lines);
        self.blocks.push(Block {
            first,
            lines: BTreeMap::new(),
            bursts_in_flight: 0,
            next_allocated: false,
        });
        actions.count("blocks", 1);
        self.fetch_burst(line, 1, false, actions);
        let mut next = first;
        while next < end {
            let lines = self.parameters.burst.min(end - next);
            self.fetch_burst(next, lines, false, actions);
            next += lines;
        }
        true
    }

    /// Fetches lines, for the newest block or, if `is_single`, for a single read.
    fn fetch_burst(&mut self, first: Line, lines: Line, is_single: bool, actions: &mut Actions) {
        // Reuse numbers, so that the state stays bounded by the number of bursts in flight.
        let number = (0..).find(|number| !self.bursts.contains_key(number));
        let number = number.unwrap_or_default();
        let remaining = lines;
        self.bursts.insert(
            number,
            Burst {
                remaining,
                is_single,
            },
        );
        if let Some(block) = self.blocks.last_mut().filter(|_| !is_single) {
            block.bursts_in_flight += 1;
        }
        actions.fetch(number, first, lines);
    }

    /// Allocates the block after that of `line`, once, if `line` is in the second half of its block.
    fn allocate_next_block(&mut self, index: usize, line: Line, actions: &mut Actions) {
        let next = self.blocks[index].first + self.parameters.block;
        let second_half = line % self.parameters.block >= self.parameters.block / 2;
        if !second_half || self.blocks[index].next_allocated || next >= self.parameters.lines {
            return;
        }
        let present = self.blocks.iter().any(|block| block.first == next);
        self.blocks[index].next_allocated = true;
        if !present && !self.allocate_block(next, actions) {
            // All blocks are busy; a later read of this block retries.
            self.blocks[index].next_allocated = false;
        }
    }

    /// Handles a read of the home: answers it, or fetches the line.
    fn read(&mut self, line: Line, actions: &mut Actions) {
        let Some(index) = self.touch_block(line) else {
            self.waiting.insert(line);
            actions.count("misses", 1);
            if self.parameters.blocks == 0 || !self.allocate_block(line, actions) {
                self.fetch_burst(line, 1, true, actions);
            }
            return;
        };
        match self.blocks[index].lines.get(&line) {
            Some(words) => {
                actions.count("hits", 1);
                actions.answer(line, words.clone());
            }
            None => {
                actions.count("late", 1);
                self.waiting.insert(line);
            }
        }
        self.allocate_next_block(index, line, actions);
    }

    /// Handles a line that arrives from memory.
    fn handle_fetched_line(&mut self, tag: u32, line: Line, words: Words, actions: &mut Actions) {
        let Some(burst) = self.bursts.get_mut(&tag) else {
            return;
        };
        burst.remaining -= 1;
        let (is_single, is_complete) = (burst.is_single, burst.remaining == 0);
        if is_complete {
            self.bursts.remove(&tag);
        }
        let first = line - line % self.parameters.block;
        let mut blocks = self.blocks.iter_mut();
        let block = blocks.find(|block| !is_single && block.first == first);
        // A write during the fetch is newer than the fetched words.
        let newest = match block {
            Some(block) => {
                block.bursts_in_flight -= u32::from(is_complete);
                block.lines.entry(line).or_insert(words).clone()
            }
            None => self.writing.get(&line).cloned().unwrap_or(words),
        };
        if self.waiting.remove(&line) {
            actions.answer(line, newest);
        }
    }
}

impl Application for Prefetcher {
    fn name(&self) -> &str {
        "prefetcher"
    }

    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..self.parameters.lines)
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Read { line, .. } => self.read(line, actions),
            Event::Write { line, words, .. } => {
                let first = line - line % self.parameters.block;
                let block = self.blocks.iter_mut().find(|block| block.first == first);
                if let Some(block) = block {
                    block.lines.insert(line, words.clone());
                }
                self.writing.insert(line, words.clone());
                actions.store(line, line, words);
            }
            Event::StoreCompletion { tag } => {
                self.writing.remove(&tag);
                actions.accept(tag);
            }
            Event::FetchCompletion { tag, line, words } => {
                self.handle_fetched_line(tag, line, words, actions)
            }
            _ => {}
        }
    }
}

/// A thread that passes over its part of the region in address order, repeatedly, and reads or writes each line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reader {
    /// First line of its part.
    first: Line,
    /// Number of lines of its part, at least 1.
    lines: Line,
    /// Offset of the next line in its part.
    next: Line,
    /// Accesses still to make; unlimited if `None`.
    remaining: Option<u64>,
    /// Distance of software prefetches in lines; 0 for none.
    hints: Line,
    /// True once the prefetch that belongs to the next access has been issued.
    is_hinted: bool,
    /// Counter of the line access just completed: read or written.
    completed_counter: Option<&'static str>,
    /// Lines to write, per thousand.
    written: u32,
    /// Accumulated fraction of the next write, in thousandths.
    write_fraction: u32,
    /// Number of the last write, which is also its value.
    last_write: u64,
    /// Value last written to each line.
    written_values: BTreeMap<Line, u64>,
    /// Number of lines that did not hold the value that this thread had written.
    mismatches: u64,
}

/// Counter of reads.
const READ: &str = "lines read";
/// Counter of writes.
const WRITTEN: &str = "lines written";

impl Thread for Reader {
    /// Loads or stores the next line, in the given proportion, and then counts the access. Checks a loaded value if
    /// this thread has written the line.
    fn step(&mut self, result: u64) -> Step {
        if let Some(counter) = self.completed_counter.take() {
            if counter == READ {
                let last = (self.next + self.lines - 1) % self.lines;
                let written_value = self.written_values.get(&(self.first + last));
                self.mismatches +=
                    u64::from(written_value.is_some_and(|&written_value| written_value != result));
            }
            return Step::Count {
                name: counter,
                by: 1,
            };
        }
        if self.remaining == Some(0) {
            return Step::Stop;
        }
        // Prefetches stay in the thread's own part of the region.
        if (1..self.lines).contains(&self.hints) && !self.is_hinted {
            self.is_hinted = true;
            let line = self.first + (self.next + self.hints) % self.lines;
            return Step::Prefetch { line };
        }
        self.is_hinted = false;
        self.remaining = self.remaining.map(|remaining| remaining - 1);
        let line = self.first + self.next;
        self.next = (self.next + 1) % self.lines;
        self.write_fraction += self.written;
        let word = 0;
        if self.write_fraction < 1000 {
            self.completed_counter = Some(READ);
            return Step::Load { line, word };
        }
        self.write_fraction -= 1000;
        self.last_write += 1;
        self.completed_counter = Some(WRITTEN);
        let value = self.last_write;
        self.written_values.insert(line, value);
        Step::Store { line, word, value }
    }
}

impl Scenario for Prefetch {
    type Application = Prefetcher;
    type Thread = Reader;

    fn lines(&self) -> Line {
        self.lines
    }

    fn terminates(&self) -> bool {
        self.reads.is_some()
    }

    fn application(&self) -> Prefetcher {
        Prefetcher {
            parameters: self.clone(),
            blocks: Vec::new(),
            waiting: BTreeSet::new(),
            writing: BTreeMap::new(),
            bursts: BTreeMap::new(),
        }
    }

    fn threads(&self) -> Vec<Reader> {
        let threads = u64::from(self.threads);
        let begin = |thread| (u64::from(self.lines) * thread / threads) as Line;
        let threads = (0..threads).map(|thread| Reader {
            first: begin(thread),
            lines: (begin(thread + 1) - begin(thread)).max(1),
            next: 0,
            remaining: self.reads,
            hints: self.hints,
            is_hinted: false,
            completed_counter: None,
            written: self.written,
            write_fraction: 0,
            last_write: 0,
            written_values: BTreeMap::new(),
            mismatches: 0,
        });
        threads.collect()
    }

    fn verify(
        &self,
        application: &Prefetcher,
        threads: &[Reader],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        if let Some(line) = application.waiting.first() {
            return Err(format!("the read of line {line} waits for nothing"));
        }
        self.judge(0, threads, contents)
    }
}

impl HardwareScenario for Prefetch {
    fn observe(&self, event: &Event, _operations: &mut u64, actions: &mut Actions) {
        if let Event::FetchCompletion { .. } = event {
            actions.count("lines fetched", 1);
        }
    }

    /// Checks that every written value is in memory and that no other line has changed.
    fn judge(
        &self,
        _operations: u64,
        threads: &[Reader],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        if let Some(thread) = threads.iter().find(|thread| thread.mismatches > 0) {
            let (mismatches, first) = (thread.mismatches, thread.first);
            return Err(format!(
                "the thread of line {first} has read {mismatches} lines that differ from its own writes"
            ));
        }
        let is_wrong = |&line: &Line| {
            let mut values = threads
                .iter()
                .filter_map(|thread| thread.written_values.get(&line));
            let mut last = values.next().copied();
            // Where threads share a line, either may have written last.
            last = last.filter(|_| values.next().is_none());
            let is_written = threads
                .iter()
                .any(|thread| thread.written_values.contains_key(&line));
            let actual = contents.word(line, 0);
            match last {
                Some(last) => actual != last,
                None => !is_written && actual != contents.initial(line, 0),
            }
        };
        match (0..self.lines).find(is_wrong) {
            Some(line) => Err(format!("line {line} has wrong contents")),
            None => Ok(()),
        }
    }
}

//! Memory-side cache: a write-back cache between far memory's DRAM and all its users.
//!
//! The cache only takes time. All accesses to far memory pass it, so its lines are never stale, and the contents of far
//! memory have one place.

use super::dram::Ends;
use crate::lru::{Entry, LruSets};
use crate::platform::Platform;
use crate::scratchpad::LINE;
use cohkit_dram::Line;
use cohkit_units::Time;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A cached block, the line of this cache: one or several lines of the machine.
struct Block {
    /// Number of the block in far memory.
    number: u64,
    /// Time from which the block is available, in picoseconds.
    ready: Time,
    /// True if DRAM has older contents.
    dirty: bool,
}

impl Entry for Block {
    fn key(&self) -> u64 {
        self.number
    }
}

/// A block that is being read from DRAM.
struct Fill<U> {
    /// Number of its lines whose end is not known.
    remaining: u64,
    /// Latest known end of a line, in picoseconds.
    end: Time,
    /// Accesses that wait for the block, each with the earliest time of its end.
    waiting: Ends<U>,
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheCounters {
    /// Accesses to blocks that the cache held or that were being read for an earlier access.
    pub(crate) hits: u64,
    /// Other accesses.
    pub(crate) misses: u64,
    /// Changed blocks that were replaced and written to DRAM.
    pub(crate) write_backs: u64,
}

/// DRAM operations that follow from an access: lines to read and to write, possibly none, from `time` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DramWork {
    pub(crate) time: Time,
    /// Lines of the accessed block to read.
    pub(crate) reads: Range<Line>,
    /// Lines of the replaced block to write.
    pub(crate) writes: Range<Line>,
}

/// The cache. Each access has a user of type `U`, which is returned with the end of the access.
pub(crate) struct MemoryCache<U> {
    blocks: LruSets<Block>,
    /// Lines of a block.
    block_lines: u64,
    /// Latency of a look-up, hit or miss, in picoseconds.
    hit_latency: Time,
    /// Blocks that are being read, by number.
    fills: FxHashMap<u64, Fill<U>>,
    pub(crate) counters: CacheCounters,
}

impl<U> MemoryCache<U> {
    /// Creates the empty cache of a machine, if it has one. It has at most as many ways as blocks.
    pub(crate) fn new(platform: &Platform) -> Option<MemoryCache<U>> {
        let blocks = platform.cache_bytes.value / platform.cache_line.value;
        let ways = platform.cache_ways.value.min(blocks);
        (blocks > 0).then(|| MemoryCache {
            blocks: LruSets::new(blocks / ways, ways, 0),
            block_lines: platform.cache_line.value / LINE as u64,
            hit_latency: platform.cache_hit.value,
            fills: FxHashMap::default(),
            counters: CacheCounters::default(),
        })
    }

    /// Returns the lines of a block.
    fn lines_of(&self, block: u64) -> Range<Line> {
        let first = block * self.block_lines;
        first as Line..(first + self.block_lines) as Line
    }

    /// Performs an access at `now`. `writes` is true for a write, and `is_line` for one of a whole line. If the end is
    /// known, it is added to `ends`.
    pub(crate) fn access(
        &mut self,
        now: Time,
        line: Line,
        (writes, is_line): (bool, bool),
        user: U,
        ends: &mut Ends<U>,
    ) -> DramWork {
        let block = u64::from(line) / self.block_lines;
        let time = now + self.hit_latency;
        let mut work = DramWork {
            time,
            reads: 0..0,
            writes: 0..0,
        };
        let ready = match self.blocks.find(block) {
            Some(found) => {
                self.counters.hits += 1;
                found.dirty |= writes;
                found.ready
            }
            None => {
                self.counters.misses += 1;
                let victim = self.blocks.put(Block {
                    number: block,
                    ready: 0,
                    dirty: writes,
                });
                if let Some(victim) = victim.filter(|victim| victim.dirty) {
                    self.counters.write_backs += 1;
                    work.writes = self.lines_of(victim.number);
                }
                // A write of the whole block needs no contents of DRAM.
                let is_whole = writes && is_line && self.block_lines == 1;
                if !is_whole && !self.fills.contains_key(&block) {
                    work.reads = self.lines_of(block);
                    let fill = Fill {
                        remaining: self.block_lines,
                        end: 0,
                        waiting: Ends::new(),
                    };
                    self.fills.insert(block, fill);
                }
                0
            }
        };
        match self.fills.get_mut(&block) {
            Some(fill) => fill.waiting.push_back((time, user)),
            None => ends.push_back((time.max(ready), user)),
        }
        work
    }

    /// Completes the read of a line from DRAM, which ends at `end`. Adds the ends of the accesses that waited for the
    /// last line of its block to `ends`.
    pub(crate) fn complete_read(&mut self, line: Line, end: Time, ends: &mut Ends<U>) {
        let block = u64::from(line) / self.block_lines;
        let Some(fill) = self.fills.get_mut(&block) else {
            return;
        };
        fill.remaining -= 1;
        fill.end = fill.end.max(end);
        if fill.remaining > 0 {
            return;
        }
        let end = fill.end;
        // The block may have been replaced in the meantime.
        if let Some(found) = self.blocks.get_mut(block) {
            found.ready = end;
        }
        if let Some(fill) = self.fills.remove(&block) {
            let waiting = fill.waiting.into_iter();
            ends.extend(waiting.map(|(earliest, user)| (end.max(earliest), user)));
        }
    }
}

#[cfg(test)]
mod tests;

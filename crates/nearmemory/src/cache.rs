//! Set-associative caches of the host with LRU replacement. A cache holds the contents of lines of far memory and
//! scratchpads; for the host's own memory, which is coherent, it only models which lines are present.

use crate::lru::{Entry, LruSets};
use crate::scratchpad::{Data, LINE};
use cohkit_units::Time;

/// A cache way that holds a line.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Address of the first byte of the line.
    pub line: u64,
    /// Time from which the line is available, in picoseconds.
    pub ready: Time,
    /// Contents, for lines that are not coherent with memory; `None` in private caches and for lines of the host's
    /// memory.
    pub copy: Option<Box<Copy>>,
}

impl Entry for Way {
    #[inline(always)]
    fn key(&self) -> u64 {
        self.line
    }
}

/// Cached copy of a line that is not kept coherent.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// Contents, which may be older than those in memory.
    pub data: Data,
    /// True if the copy has stores that were not written back.
    pub dirty: bool,
}

/// A cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    sets: LruSets<Way>,
    /// Lines with copies, in arbitrary but deterministic order, for random selection.
    copies: Vec<u64>,
    /// True if `copies` is maintained.
    tracks_copies: bool,
}

impl Cache {
    /// Creates a cache of `bytes` bytes with `ways` ways, both powers of two; a cache of fewer lines has as many ways as
    /// lines. `tracks_copies` enables [`Cache::copies`].
    pub(crate) fn new(bytes: u64, ways: u64, tracks_copies: bool) -> Cache {
        let ways = ways.min(bytes / LINE as u64).max(1);
        let sets = (bytes / LINE as u64 / ways).max(1);
        Cache {
            sets: LruSets::new(sets, ways, LINE.trailing_zeros()),
            copies: Vec::new(),
            tracks_copies,
        }
    }

    /// Finds a line and makes it the most recently used one of its set.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<&mut Way> {
        self.sets.find(line)
    }

    /// Returns true if the cache holds the line. Does not change the order of use.
    pub(crate) fn has(&self, line: u64) -> bool {
        self.sets.get(line).is_some()
    }

    /// Inserts a line that is absent. Returns the evicted line, if any.
    pub(crate) fn put(&mut self, way: Way) -> Option<Way> {
        if self.tracks_copies && way.copy.is_some() {
            self.copies.push(way.line);
        }
        let victim = self.sets.put(way);
        self.untrack(victim)
    }

    /// Removes a line and returns it, if present. The caller writes a dirty copy back.
    pub(crate) fn remove(&mut self, line: u64) -> Option<Way> {
        let way = self.sets.remove(line);
        self.untrack(way)
    }

    /// Removes a line that has left the cache from the list of lines with copies, and returns it.
    fn untrack(&mut self, way: Option<Way>) -> Option<Way> {
        let way = way?;
        if self.tracks_copies && way.copy.is_some() {
            let position = self.copies.iter().rposition(|line| *line == way.line);
            if let Some(position) = position {
                self.copies.swap_remove(position);
            }
        }
        Some(way)
    }

    /// Returns all lines.
    pub(crate) fn ways(&self) -> impl Iterator<Item = &Way> {
        self.sets.iter()
    }

    /// Returns the addresses of the lines with copies, in deterministic order; empty if copies are not tracked.
    pub(crate) fn copies(&self) -> &[u64] {
        &self.copies
    }
}

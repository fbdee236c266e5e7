//! Set-associative caches of the host with LRU replacement; each set is in order of use, the most recent first. A
//! cache holds the contents of lines of far memory and scratchpads; for the host's own memory, which is coherent, it
//! only models which lines are present.

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

/// Cached copy of a line that is not kept coherent.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// Contents, which may be older than those in memory.
    pub data: Data,
    /// True if the copy has stores that were not written back.
    pub dirty: bool,
}

/// A cache. Sets are selected by a hash of the line number.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// Ways of each set, the most recently used first.
    sets: Vec<Vec<Way>>,
    /// Maximum number of lines of a set.
    ways: usize,
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
        let sets = (bytes / LINE as u64 / ways).max(1) as usize;
        Cache {
            sets: vec![Vec::new(); sets],
            ways: ways as usize,
            copies: Vec::new(),
            tracks_copies,
        }
    }

    /// Returns the index of the set of a line address.
    #[inline(always)]
    fn set_index(&self, line: u64) -> usize {
        let number = line / LINE as u64;
        (number ^ number >> 13 ^ number >> 26) as usize & (self.sets.len() - 1)
    }

    /// Finds a line and makes it the most recently used one of its set.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<&mut Way> {
        let set = self.set_index(line);
        let set = &mut self.sets[set];
        let position = set.iter().position(|way| way.line == line)?;
        if position > 0 {
            set[..=position].rotate_right(1);
        }
        set.first_mut()
    }

    /// Returns true if the cache holds the line. Does not change the order of use.
    pub(crate) fn has(&self, line: u64) -> bool {
        self.sets[self.set_index(line)]
            .iter()
            .any(|way| way.line == line)
    }

    /// Inserts a line that is absent. Returns the evicted line, if any.
    pub(crate) fn put(&mut self, way: Way) -> Option<Way> {
        if self.tracks_copies && way.copy.is_some() {
            self.copies.push(way.line);
        }
        let (set, ways) = (self.set_index(way.line), self.ways);
        let set = &mut self.sets[set];
        let victim = if set.len() >= ways { set.pop() } else { None };
        set.insert(0, way);
        self.untrack(victim)
    }

    /// Removes a line and returns it, if present. The caller writes a dirty copy back.
    pub(crate) fn remove(&mut self, line: u64) -> Option<Way> {
        let set = self.set_index(line);
        let set = &mut self.sets[set];
        let position = set.iter().position(|way| way.line == line)?;
        let way = set.remove(position);
        self.untrack(Some(way))
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
        self.sets.iter().flatten()
    }

    /// Returns the addresses of the lines with copies, in deterministic order; empty if copies are not tracked.
    pub(crate) fn copies(&self) -> &[u64] {
        &self.copies
    }
}

//! Caches of the host: lines by sets, that used last in front.

use crate::events::Time;
use crate::scratchpad::{Data, LINE};

/// A line in a cache.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Its address.
    pub line: u64,
    /// When it is there.
    pub ready: Time,
    /// What is in it, if the cache keeps that.
    pub copy: Option<Box<Copy>>,
}

/// What a cache has of a line that nothing keeps coherent.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub data: Data,
    pub dirty: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Cache {
    sets: Vec<Vec<Way>>,
    ways: usize,
    /// Lines with copies, in no order that means anything: to choose one at random.
    copies: Vec<u64>,
    tracks: bool,
}

impl Cache {
    /// So many bytes in sets of so many ways, both powers of two; and whether [`Cache::copies`] will be asked for.
    pub(crate) fn new(bytes: u64, ways: u64, tracks: bool) -> Cache {
        let sets = (bytes / LINE as u64 / ways).max(1) as usize;
        Cache {
            sets: vec![Vec::new(); sets],
            ways: ways as usize,
            copies: Vec::new(),
            tracks,
        }
    }

    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        let number = line / LINE as u64;
        (number ^ number >> 13 ^ number >> 26) as usize & (self.sets.len() - 1)
    }

    /// The line, which is then the one used last.
    #[inline(always)]
    pub(crate) fn find(&mut self, line: u64) -> Option<&mut Way> {
        let set = self.set(line);
        let set = &mut self.sets[set];
        let place = set.iter().position(|way| way.line == line)?;
        if place > 0 {
            set[..=place].rotate_right(1);
        }
        set.first_mut()
    }

    pub(crate) fn has(&self, line: u64) -> bool {
        self.sets[self.set(line)].iter().any(|way| way.line == line)
    }

    /// Puts a line in, which is not there, and gives back the one whose place it takes.
    pub(crate) fn put(&mut self, way: Way) -> Option<Way> {
        if self.tracks && way.copy.is_some() {
            self.copies.push(way.line);
        }
        let (set, ways) = (self.set(way.line), self.ways);
        let set = &mut self.sets[set];
        let victim = if set.len() >= ways { set.pop() } else { None };
        set.insert(0, way);
        self.gone(victim)
    }

    pub(crate) fn remove(&mut self, line: u64) -> Option<Way> {
        let set = self.set(line);
        let set = &mut self.sets[set];
        let place = set.iter().position(|way| way.line == line)?;
        let way = set.remove(place);
        self.gone(Some(way))
    }

    fn gone(&mut self, way: Option<Way>) -> Option<Way> {
        let way = way?;
        if self.tracks && way.copy.is_some() {
            let place = self.copies.iter().rposition(|line| *line == way.line);
            if let Some(place) = place {
                self.copies.swap_remove(place);
            }
        }
        Some(way)
    }

    /// All lines.
    pub(crate) fn ways(&self) -> impl Iterator<Item = &Way> {
        self.sets.iter().flatten()
    }

    /// Lines with copies, in the same order each time.
    pub(crate) fn copies(&self) -> &[u64] {
        &self.copies
    }
}

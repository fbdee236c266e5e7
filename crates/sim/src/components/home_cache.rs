//! Last-level cache at a home, in front of its memory: it keeps lines that have been read or written back.

use crate::message::Line;
use crate::platform::HomeCache as Quantities;

/// A line in a way, and whether memory lacks its last write.
#[derive(Clone, Copy)]
struct Way {
    line: Line,
    is_dirty: bool,
}

/// Result of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    /// True if the cache had the line.
    pub is_hit: bool,
    /// Line that was evicted and must be written to memory.
    pub written_back: Option<Line>,
}

/// Set-associative cache with LRU replacement. It keeps line numbers only: memory has the contents.
pub(crate) struct HomeCache {
    /// Ways of each set, the most recently used first.
    sets: Vec<Vec<Way>>,
    ways: usize,
    /// Lines that found their set with them, and those that did not.
    pub hits: u64,
    pub misses: u64,
}

impl HomeCache {
    /// Creates an empty cache.
    pub fn new(cache: &Quantities) -> HomeCache {
        HomeCache {
            sets: vec![Vec::new(); cache.sets.value.max(1) as usize],
            ways: cache.ways.value.max(1) as usize,
            hits: 0,
            misses: 0,
        }
    }

    /// Reads or writes a whole line, which is in the cache afterwards.
    pub fn access(&mut self, line: Line, write: bool) -> Access {
        let set_count = self.sets.len() as Line;
        let bits = set_count.trailing_zeros();
        let set = &mut self.sets[((line ^ line >> bits) & (set_count - 1)) as usize];
        let place = set.iter().position(|way| way.line == line);
        let mut way = match place {
            Some(place) => set.remove(place),
            None => Way {
                line,
                is_dirty: false,
            },
        };
        way.is_dirty |= write;
        let evicted = (set.len() >= self.ways).then(|| set.pop()).flatten();
        set.insert(0, way);
        match place {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        Access {
            is_hit: place.is_some(),
            written_back: evicted.filter(|way| way.is_dirty).map(|way| way.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohkit_units::Quantity;

    fn cache(sets: u64, ways: u64) -> HomeCache {
        let given = |value| Quantity::given(value, "a test");
        HomeCache::new(&Quantities {
            sets: given(sets),
            ways: given(ways),
            latency: given(0),
        })
    }

    /// The least recently used line leaves, and is written back only if it was written.
    #[test]
    fn least_recently_used_line_leaves() {
        let mut cache = cache(1, 2);
        let access = |is_hit, written_back| Access {
            is_hit,
            written_back,
        };
        assert_eq!(cache.access(1, true), access(false, None));
        assert_eq!(cache.access(2, false), access(false, None));
        assert_eq!(cache.access(1, false), access(true, None));
        assert_eq!(cache.access(3, false), access(false, None));
        assert_eq!(cache.access(2, false), access(false, Some(1)));
        assert_eq!((cache.hits, cache.misses), (1, 4));
    }

    /// A region of the size of the cache stays in it.
    #[test]
    fn region_of_its_size_stays() {
        let mut cache = cache(64, 4);
        for pass in 0..3 {
            for line in 0..256 {
                assert_eq!(cache.access(line, false).is_hit, pass > 0, "{line}");
            }
        }
    }
}

//! Sequences on paper, and random sequences against a naive LRU and against stack distances.

use super::*;
use proptest::prelude::*;

/// Latency of a look-up in tests, in picoseconds.
const HIT: Time = 20;
/// Duration of a DRAM operation in tests, in picoseconds.
const DRAM: Time = 500;

/// Creates a cache of this number of blocks.
fn cache(blocks: u64, ways: u64, block_lines: u64) -> MemoryCache<usize> {
    let mut platform = Platform::enzian();
    platform.cache_line.value = block_lines * LINE as u64;
    platform.cache_bytes.value = blocks * platform.cache_line.value;
    platform.cache_ways.value = ways;
    platform.cache_hit.value = HIT;
    MemoryCache::new(&platform).expect("a cache with a size")
}

/// Reads or writes a line at `now`, where each DRAM operation takes [`DRAM`]. Returns the end of the access, the lines
/// that were read from DRAM, and those that were written there.
fn access(
    cache: &mut MemoryCache<usize>,
    now: Time,
    line: Line,
    (writes, is_line): (bool, bool),
) -> (Time, Vec<Line>, Vec<Line>) {
    let mut ends = Ends::new();
    let work = cache.access(now, line, (writes, is_line), 7, &mut ends);
    for line in work.reads.clone() {
        cache.complete_read(line, work.time + DRAM, &mut ends);
    }
    assert_eq!((ends.len(), ends[0].1), (1, 7));
    (ends[0].0, work.reads.collect(), work.writes.collect())
}

/// A read of a line, as [`access`].
const READ: (bool, bool) = (false, true);
/// A write of a line.
const WRITE: (bool, bool) = (true, true);
/// A write of a word.
const WRITE_WORD: (bool, bool) = (true, false);

/// A line and an access to it; then its latency, and the lines that DRAM reads and writes.
type Step<'a> = (Line, (bool, bool), Time, &'a [Line], &'a [Line]);

/// Four sets of one way: lines 0, 4 and 8 replace each other, and line 1 stays.
#[test]
fn direct_mapped_lines_of_one_set_replace_each_other() {
    let mut cache = cache(4, 1, 1);
    let (hit, miss) = (HIT, HIT + DRAM);
    let steps: [Step; 11] = [
        (0, READ, miss, &[0], &[]),
        (1, READ, miss, &[1], &[]),
        (0, READ, hit, &[], &[]),
        (4, READ, miss, &[4], &[]),
        (0, WRITE, hit, &[], &[]),
        // The line has changed, so that its replacement writes it to DRAM.
        (8, READ, miss, &[8], &[0]),
        (0, WRITE_WORD, miss, &[0], &[]),
        (0, READ, hit, &[], &[]),
        (4, WRITE, hit, &[], &[0]),
        (1, READ, hit, &[], &[]),
        (0, READ, miss, &[0], &[4]),
    ];
    for (i, (line, kind, latency, reads, writes)) in steps.into_iter().enumerate() {
        let now = 10_000 * i as Time;
        let (end, read, written) = access(&mut cache, now, line, kind);
        assert_eq!(end - now, latency, "step {i}");
        assert_eq!((&read[..], &written[..]), (reads, writes), "step {i}");
    }
    let expected = CacheCounters {
        hits: 3,
        misses: 8,
        write_backs: 3,
    };
    assert_eq!(cache.counters, expected);
}

/// One set of three ways: the line that was not used for longest is replaced.
#[test]
fn least_recently_used_line_is_replaced() {
    let mut cache = cache(4, 4, 1);
    for (line, hits) in [
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (0, 1),
        (4, 1),
        (0, 2),
        (1, 2),
    ] {
        access(&mut cache, 0, line, READ);
        assert_eq!(cache.counters.hits, hits, "{line}");
    }
    // Used last are 1, 0, 4 and 3, in this order.
    for (line, is_hit) in [
        (3, true),
        (4, true),
        (0, true),
        (1, true),
        (2, false),
        (3, false),
    ] {
        let hits = cache.counters.hits;
        access(&mut cache, 0, line, READ);
        assert_eq!(cache.counters.hits > hits, is_hit, "{line}");
    }
}

/// A block of four lines is read and written as a whole, even if one of its lines is overwritten.
#[test]
fn block_of_several_lines_is_read_and_written_as_a_whole() {
    let mut cache = cache(2, 1, 4);
    let miss = HIT + DRAM;
    assert_eq!(
        access(&mut cache, 0, 5, WRITE),
        (miss, vec![4, 5, 6, 7], vec![])
    );
    assert_eq!(
        access(&mut cache, 1_000, 7, READ),
        (1_000 + HIT, vec![], vec![])
    );
    let (end, reads, writes) = access(&mut cache, 2_000, 12, READ);
    assert_eq!((end, reads), (2_000 + miss, vec![12, 13, 14, 15]));
    assert_eq!(writes, [4, 5, 6, 7]);
}

/// Accesses to a block that is being read wait for its last line, but each at least as long as a look-up. A block that
/// was replaced while it was being read is not read twice at once.
#[test]
fn accesses_to_a_block_in_flight_wait_for_it() {
    let mut cache = cache(1, 1, 2);
    let mut ends = Ends::new();
    let work = cache.access(0, 2, READ, 1, &mut ends);
    assert_eq!((work.time, work.reads), (HIT, 2..4));
    assert_eq!(cache.access(10, 3, READ, 2, &mut ends).reads, 0..0);
    cache.complete_read(3, 300, &mut ends);
    assert!(ends.is_empty());
    // The block is replaced and accessed again before it has arrived.
    assert_eq!(cache.access(20, 0, READ, 3, &mut ends).reads, 0..2);
    assert_eq!(cache.access(290, 2, READ, 4, &mut ends).reads, 0..0);
    cache.complete_read(2, 200, &mut ends);
    assert_eq!(Vec::from(ends), [(300, 1), (300, 2), (290 + HIT, 4)]);
    let mut ends = Ends::new();
    cache.complete_read(0, 400, &mut ends);
    cache.complete_read(1, 390, &mut ends);
    assert_eq!(Vec::from(ends), [(400, 3)]);
    assert_eq!((cache.counters.hits, cache.counters.misses), (1, 3));
}

/// Naive LRU: the lines of each set, the most recently used first, with true for a changed one.
struct NaiveLru {
    sets: Vec<Vec<(Line, bool)>>,
    ways: usize,
}

impl NaiveLru {
    /// Performs an access. Returns true for a hit, and the changed line that is replaced, if any.
    fn access(&mut self, line: Line, writes: bool) -> (bool, Option<Line>) {
        let set = line as usize % self.sets.len();
        let set = &mut self.sets[set];
        let held = set.iter().position(|(held, _)| *held == line);
        let changed = held.is_some_and(|position| set.remove(position).1);
        set.insert(0, (line, changed || writes));
        let replaced = set.drain(self.ways.min(set.len())..).next();
        let written_back = replaced.filter(|(_, changed)| *changed);
        (held.is_some(), written_back.map(|(line, _)| line))
    }
}

/// Returns the stack distance of each access: the number of different lines of its set that were accessed since the
/// last access to its line; `None` for a first access.
fn stack_distances(lines: &[Line], sets: usize) -> Vec<Option<usize>> {
    let set = |line: Line| line as usize % sets;
    let distance = |i: usize| {
        let last = lines[..i].iter().rposition(|line| *line == lines[i])?;
        let mut between: Vec<Line> = lines[last + 1..i].to_vec();
        between.retain(|line| set(*line) == set(lines[i]));
        between.sort_unstable();
        between.dedup();
        Some(between.len())
    };
    (0..lines.len()).map(distance).collect()
}

proptest! {
    /// Hits, misses and write-backs are those of a naive LRU. An access hits if its stack distance is less than the
    /// number of ways.
    #[test]
    fn random_accesses_match_a_naive_lru_and_stack_distances(
        accesses in prop::collection::vec((0_u32..48, any::<bool>()), 0..300),
        set_bits in 0_u32..4,
        way_bits in 0_u32..4,
    ) {
        let (sets, ways) = (1_usize << set_bits, 1_usize << way_bits);
        let mut cache = cache((sets * ways) as u64, ways as u64, 1);
        let mut naive = NaiveLru { sets: vec![Vec::new(); sets], ways };
        let lines: Vec<Line> = accesses.iter().map(|(line, _)| *line).collect();
        let distances = stack_distances(&lines, sets);
        for (i, (line, writes)) in accesses.into_iter().enumerate() {
            let hits = cache.counters.hits;
            let (_, _, written_back) = access(&mut cache, 0, line, (writes, true));
            let is_hit = cache.counters.hits > hits;
            let (naive_hit, naive_written_back) = naive.access(line, writes);
            prop_assert_eq!(is_hit, naive_hit);
            prop_assert_eq!(is_hit, distances[i].is_some_and(|distance| distance < ways));
            prop_assert_eq!(written_back, Vec::from_iter(naive_written_back));
        }
        prop_assert_eq!(cache.counters.hits + cache.counters.misses, lines.len() as u64);
    }
}

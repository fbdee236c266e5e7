//! Cores as traffic: the line and kind of each next access.
//!
//! A [`Workload`] describes the accesses of all cores of one kind. [`Traffic`] generates them one by one, and can
//! look ahead for prefetches.

use std::sync::Arc;

use cohkit_protocol::controller::Access;

use super::recorded::Recorded;
use crate::data::{mix, Random};
use crate::kernel::Time;
use crate::message::{CoreId, Line};

/// Order of the accessed lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Each line of the region in address order; the cores take turns.
    Sequential,
    /// The region in one contiguous chunk per core. Each core traverses its chunk in address order, and starts again
    /// from its beginning if it has more accesses to make.
    Chunked,
    /// Each core draws its lines uniformly from the region, with repetition.
    Random,
    /// Each core replays its recorded accesses in order.
    Recorded(Arc<Recorded>),
}

/// Workload of the cores.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The order of lines.
    pub pattern: Pattern,
    /// Accesses to choose from, each with a weight; for a recorded trace, the kinds that occur and their counts. An
    /// access has probability weight / sum of the weights.
    pub mix: Vec<(Access, u32)>,
    /// Number of lines of the region, which starts at line 0; at least 1.
    pub lines: Line,
    /// Total number of accesses, divided among the cores as evenly as lines are; one pass is `lines`.
    pub accesses: u64,
    /// Number of cores, distributed over the caches; 0 for none.
    pub cores: u32,
    /// Maximum number of outstanding accesses of one core, at least 1.
    pub outstanding: u32,
    /// Prefetch distance in accesses of the same core (with [`Pattern::Sequential`], of all cores). Each access
    /// prefetches the line of the access at this distance for reading; 0 for none.
    pub prefetch: u32,
    /// Extra prefetches for writing of a random line, per thousand accesses.
    pub write_prefetches: u32,
}

impl Workload {
    /// Returns the workload without cores.
    pub const fn idle() -> Workload {
        Workload {
            pattern: Pattern::Sequential,
            mix: Vec::new(),
            lines: 1,
            accesses: 0,
            cores: 0,
            outstanding: 1,
            prefetch: 0,
            write_prefetches: 0,
        }
    }

    /// True if the mix contains accesses of this kind.
    pub fn has(&self, access: Access) -> bool {
        let mut mix = self.mix.iter();
        mix.any(|&(kind, weight)| kind == access && weight > 0)
    }

    /// Returns a workload with one access to every line of a region of `lines` lines, without prefetches.
    pub fn pass(
        pattern: Pattern,
        access: Access,
        lines: Line,
        cores: u32,
        outstanding: u32,
    ) -> Self {
        Workload {
            pattern,
            mix: vec![(access, 1)],
            lines,
            accesses: u64::from(lines),
            cores,
            outstanding,
            prefetch: 0,
            write_prefetches: 0,
        }
    }

    /// Returns a workload of recorded accesses with at least `cores` cores, and at least as many as the trace has.
    pub fn recorded(recorded: Arc<Recorded>, cores: u32, outstanding: u32) -> Self {
        let weight = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let of_each = recorded.of_each();
        Workload {
            mix: of_each
                .map(|(access, count)| (access, weight(count)))
                .collect(),
            lines: recorded.lines(),
            accesses: recorded.accesses(),
            cores: cores.max(recorded.cores()),
            outstanding,
            pattern: Pattern::Recorded(recorded),
            prefetch: 0,
            write_prefetches: 0,
        }
    }
}

/// Access generators of all cores.
pub struct Traffic {
    /// Generators by kind of cores, in the order of the workloads.
    kinds: Vec<KindGenerators>,
    /// Number of accesses generated so far.
    pub issued: u64,
    /// Generators by core number, those of the first kind first.
    streams: Vec<Stream>,
    /// Source of the mix and of the extra prefetches, shared by all cores.
    random: Random,
}

/// Workload of the cores of one kind, and its progress.
struct KindGenerators {
    /// Parameters of the traffic.
    workload: Workload,
    /// Sum of the weights of the workload's mix.
    total_weight: u64,
    /// Number of accesses generated so far by all cores of the kind.
    issued: u64,
}

/// Access generator of one core.
struct Stream {
    /// Index of the core's kind in `Traffic::kinds`.
    kind: u8,
    /// Index among the cores of its kind.
    index_in_kind: u32,
    /// Number of accesses generated so far by this core.
    generated: u64,
    /// Number of accesses that this core makes. Not used with `Pattern::Sequential`, where cores share one count.
    accesses: u64,
    /// Issue time of the last recorded access, in picoseconds; 0 with other patterns.
    issued: Time,
    /// First line of the core's chunk of the region.
    first_line: Line,
    /// Number of lines of the chunk, at least 1.
    line_count: Line,
    /// Seed of the lines of `Pattern::Random`, different for each core.
    seed: u64,
}

/// An access to make.
#[derive(Clone, Copy, Debug)]
pub struct NextAccess {
    /// Line number, less than the number of lines of the workload.
    pub line: Line,
    /// Kind of access.
    pub access: Access,
    /// Word of the line: the recorded one, or any number, to be reduced modulo the words of a line.
    pub word: u16,
    /// Issue time in picoseconds.
    pub time: Time,
}

impl Traffic {
    /// Creates the generators of the cores of each kind, those of the first kind first. Equal seeds give equal
    /// accesses.
    pub fn new(workloads: &[&Workload], seed: u64) -> Traffic {
        let mut streams = Vec::new();
        for (workload, kind) in workloads.iter().zip(0..) {
            let first_stream = streams.len();
            let cores = u128::from(workload.cores);
            let stream = |core: u128| {
                let share = |total: u64| {
                    let begin = |core| (u128::from(total) * core / cores) as u64;
                    (begin(core), begin(core + 1) - begin(core))
                };
                let (first, lines) = share(workload.lines.into());
                let accesses = match &workload.pattern {
                    Pattern::Recorded(recorded) => recorded.of_core(core as u32).len() as u64,
                    _ => share(workload.accesses).1,
                };
                Stream {
                    kind,
                    index_in_kind: core as u32,
                    generated: 0,
                    accesses,
                    issued: 0,
                    first_line: first as Line,
                    // With more cores than lines, some cores share a line.
                    line_count: lines.max(1) as Line,
                    seed: mix(seed.wrapping_add((first_stream as u128 + core) as u64)),
                }
            };
            streams.extend((0..cores).map(stream));
        }
        let new_generators = |workload: &&Workload| KindGenerators {
            total_weight: (workload.mix.iter())
                .map(|&(_, weight)| u64::from(weight))
                .sum(),
            workload: Workload::clone(workload),
            issued: 0,
        };
        Traffic {
            kinds: workloads.iter().map(new_generators).collect(),
            issued: 0,
            streams,
            random: Random::new(seed),
        }
    }

    /// Returns the core's next access, with an issue time of `earliest` (picoseconds) or later; `None` if the core
    /// has made all of them.
    #[inline]
    pub fn next_access(&mut self, core: CoreId, earliest: Time) -> Option<NextAccess> {
        let line = self.line_ahead(core, 0)?;
        let stream = &mut self.streams[core.index()];
        let number = stream.generated as usize;
        stream.generated += 1;
        self.issued += 1;
        let kind = &mut self.kinds[usize::from(stream.kind)];
        kind.issued += 1;
        if let Pattern::Recorded(recorded) = &kind.workload.pattern {
            let entry = recorded.of_core(stream.index_in_kind)[number];
            stream.issued = earliest.max(stream.issued + Time::from(entry.gap));
            return Some(NextAccess {
                line,
                access: entry.access,
                word: entry.word,
                time: stream.issued,
            });
        }
        let (access, word) = if let [(access, _)] = kind.workload.mix[..] {
            (access, kind.issued as u16)
        } else {
            let mut draw = self.random.below(kind.total_weight);
            let mut mix = kind.workload.mix.iter();
            let choice = mix.find(|&&(_, weight)| {
                let hit = draw < u64::from(weight);
                draw = draw.wrapping_sub(u64::from(weight));
                hit
            });
            let access = choice.map_or(Access::Load, |&(access, _)| access);
            (access, self.random.below(1 << 16) as u16)
        };
        Some(NextAccess {
            line,
            access,
            word,
            time: earliest,
        })
    }

    /// Returns the line of an extra prefetch for writing, if one accompanies the core's current access. Draws
    /// random numbers, so it must be called once per access.
    pub fn write_prefetch(&mut self, core: CoreId) -> Option<Line> {
        let kind = self.streams[core.index()].kind;
        let workload = &self.kinds[usize::from(kind)].workload;
        let per_thousand = u64::from(workload.write_prefetches);
        let is_due = per_thousand > 0 && self.random.below(1000) < per_thousand;
        is_due.then(|| self.random.below(u64::from(workload.lines)) as Line)
    }

    /// Returns the line of the access `distance` accesses after the core's next one, if there is such an access.
    /// With `Pattern::Sequential`, accesses of all cores of the kind are counted.
    #[inline]
    pub fn line_ahead(&self, core: CoreId, distance: u32) -> Option<Line> {
        let stream = &self.streams[core.index()];
        let KindGenerators {
            workload, issued, ..
        } = &self.kinds[usize::from(stream.kind)];
        let lines = workload.lines;
        if workload.pattern == Pattern::Sequential {
            let number = issued + u64::from(distance);
            let line = (number % u64::from(lines)) as Line;
            return (number < workload.accesses).then_some(line);
        }
        let number = stream.generated + u64::from(distance);
        if number >= stream.accesses {
            return None;
        }
        Some(match &workload.pattern {
            Pattern::Recorded(recorded) => {
                recorded.of_core(stream.index_in_kind)[number as usize].line
            }
            Pattern::Random => {
                let choice = mix(stream.seed.wrapping_add(number));
                ((u128::from(choice) * u128::from(lines)) >> 64) as Line
            }
            _ => stream.first_line + (number % u64::from(stream.line_count)) as Line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generates all accesses of a workload, the cores in turn. Returns the lines of each core. Also checks that
    /// look-ahead agrees with the accesses made later.
    fn generated_lines(
        pattern: &Pattern,
        lines: Line,
        accesses: u64,
        cores: u32,
    ) -> Vec<Vec<Line>> {
        let mut workload = Workload::pass(pattern.clone(), Access::Load, lines, cores, 1);
        workload.accesses = accesses;
        let mut traffic = Traffic::new(&[&workload], 1);
        let mut lines_by_core = vec![Vec::new(); cores as usize];
        loop {
            let mut is_done = true;
            for core in (0..cores as u16).map(CoreId) {
                let ahead = traffic.line_ahead(core, 2);
                let expected = traffic.line_ahead(core, 0);
                let Some(next) = traffic.next_access(core, 0) else {
                    assert_eq!(expected, None);
                    continue;
                };
                assert_eq!(expected, Some(next.line));
                let second = match pattern {
                    Pattern::Sequential => None,
                    _ => traffic.line_ahead(core, 1),
                };
                assert!(second.is_none() || ahead == second);
                lines_by_core[core.index()].push(next.line);
                is_done = false;
            }
            if is_done {
                return lines_by_core;
            }
        }
    }

    #[test]
    fn one_pass_takes_each_line_once() {
        for (lines, cores) in [(100, 7), (48, 48), (5, 9), (1, 1)] {
            let chunks = generated_lines(&Pattern::Chunked, lines, lines.into(), cores);
            assert_eq!(chunks.concat(), (0..lines).collect::<Vec<_>>());
            let longest = chunks.iter().map(Vec::len).max();
            let shortest = chunks.iter().map(Vec::len).min();
            assert!(longest <= shortest.map(|length| length + 1));
            let mut turns =
                generated_lines(&Pattern::Sequential, lines, lines.into(), cores).concat();
            turns.sort_unstable();
            assert_eq!(turns, (0..lines).collect::<Vec<_>>());
        }
        assert_eq!(
            generated_lines(&Pattern::Chunked, 4, 7, 2),
            [vec![0, 1, 0], vec![2, 3, 2, 3]]
        );
        assert_eq!(generated_lines(&Pattern::Chunked, 1, 4, 3).concat(), [0; 4]);
    }

    #[test]
    fn random_streams_differ_and_stay_in_the_region() {
        let streams = generated_lines(&Pattern::Random, 1000, 3000, 3);
        assert!(streams.concat().iter().all(|&line| line < 1000));
        assert_eq!(streams.iter().map(Vec::len).sum::<usize>(), 3000);
        assert_ne!(streams[0], streams[1]);
        assert_ne!(streams[1], streams[2]);
        assert_eq!(streams, generated_lines(&Pattern::Random, 1000, 3000, 3));
    }
}

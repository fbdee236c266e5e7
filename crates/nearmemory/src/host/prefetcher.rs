//! Hardware prefetcher of a host core, and the lines of far memory that it has requested.
//!
//! Far memory is not coherent with the host's caches, so a line that no program has requested must not change a value.
//! A fence that orders earlier loads, or an atomic access with acquire semantics, therefore drops all lines that
//! hardware has prefetched and no access has used, and those on their way: the value of a later load is read
//! afterwards, as without a prefetcher. The lines of all cores are dropped, as the last-level cache is shared. A load
//! that only depends on an earlier one may return an older value. A store drops such a line too and requests it again,
//! because dependencies order stores after loads without a fence: the bytes around the stored ones are read after the
//! store. Stores therefore profit from no prefetch, and start none.

use super::{Host, FAR};
use crate::platform::Platform;
use crate::queue::Queue;
use crate::scratchpad::LINE;
use cohkit_units::Time;

/// Equal distances between successive lines after which a stream is followed.
const MATCHES: u32 = 2;

/// A stream of accesses to lines at equal distances.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Number of the line that was accessed last.
    last: i64,
    /// Distance between the last two lines, in lines; 0 after the first access.
    stride: i64,
    /// Number of successive equal distances.
    matches: u32,
}

/// Prefetcher of a core. It follows streams of any stride up to a limit.
#[derive(Clone, Debug)]
pub(super) struct Prefetcher {
    /// Streams, the most recently used first.
    streams: Vec<Stream>,
    max_streams: usize,
    /// Largest absolute stride, in lines.
    max_stride: i64,
    /// Strides between an access and the first line that it prefetches.
    distance: i64,
    /// Number of lines that an access prefetches.
    degree: i64,
    /// Lines of a page, within which prefetches stay.
    page_lines: i64,
}

impl Prefetcher {
    /// Creates the prefetcher of a core, which has no streams if the machine has no prefetchers.
    pub(super) fn new(platform: &Platform) -> Prefetcher {
        Prefetcher {
            streams: Vec::new(),
            max_streams: platform.prefetch_streams.value as usize,
            max_stride: platform.prefetch_stride.value as i64,
            distance: platform.prefetch_distance.value as i64,
            degree: platform.prefetch_degree.value as i64,
            page_lines: (platform.page.value / LINE as u64).max(1) as i64,
        }
    }

    /// Observes a load of a line, by number, and returns the numbers of the lines to prefetch.
    pub(super) fn observe(&mut self, line: u64) -> impl Iterator<Item = u64> + use<> {
        let line = line as i64;
        let stream = self.advance(line);
        let stride = stream
            .filter(|stream| stream.matches >= MATCHES)
            .map_or(0, |stream| stream.stride);
        let (distance, page_lines) = (self.distance, self.page_lines);
        let count = if stride == 0 { 0 } else { self.degree };
        let lines = (0..count).map(move |i| line + stride * (distance + i));
        let page = line / page_lines;
        lines
            .filter(move |line| *line >= 0 && line / page_lines == page)
            .map(|line| line as u64)
    }

    /// Returns the stream of an access after it, or `None` if the access does not advance one.
    fn advance(&mut self, line: i64) -> Option<Stream> {
        if self.max_streams == 0 {
            return None;
        }
        let expects = |stream: &Stream| stream.stride != 0 && stream.last + stream.stride == line;
        let is_repeated = |stream: &Stream| stream.last == line;
        let is_near = |stream: &Stream| (line - stream.last).abs() <= self.max_stride;
        let streams = &self.streams;
        let position = (streams.iter().position(expects))
            .or_else(|| streams.iter().position(is_repeated))
            .or_else(|| streams.iter().position(is_near));
        let Some(position) = position else {
            self.streams.truncate(self.max_streams - 1);
            let stream = Stream {
                last: line,
                stride: 0,
                matches: 0,
            };
            self.streams.insert(0, stream);
            return None;
        };
        self.streams[..=position].rotate_right(1);
        let stream = &mut self.streams[0];
        let stride = line - stream.last;
        if stride == 0 {
            return None;
        }
        stream.matches = match stride == stream.stride {
            true => (stream.matches + 1).min(MATCHES),
            false => 1,
        };
        (stream.last, stream.stride) = (line, stride);
        Some(*stream)
    }
}

impl Host {
    /// True if cores have hardware prefetchers.
    #[inline(always)]
    pub(super) fn has_prefetchers(&self) -> bool {
        self.platform.prefetch_streams.value > 0
    }

    /// True if the line is one of far memory, whose reads have no effect on a near-memory core.
    pub(super) fn is_far(&self, line: u64) -> bool {
        line.checked_sub(FAR)
            .is_some_and(|offset| offset < self.platform.far_bytes.value)
    }

    /// Records the use of a line that hardware may have prefetched: the line is then like any other one.
    #[inline(always)]
    pub(super) fn use_line(&mut self, line: u64) {
        if !self.unused_prefetches.is_empty() && self.unused_prefetches.remove(&line) {
            self.counters.hardware_used += 1;
        }
    }

    /// Records that an access joins the outstanding miss of a line, if there is one: see [`Host::use_line`]. A line
    /// that is to be dropped remains unused.
    #[inline(always)]
    pub(super) fn use_miss(&mut self, line: u64) {
        if !self.has_prefetchers() {
            return;
        }
        let miss = self.misses.get_mut(&line);
        if let Some(miss) = miss.filter(|miss| miss.is_unused && !miss.is_dropped) {
            miss.is_unused = false;
            self.counters.hardware_used += 1;
        }
    }

    /// True if the line is on its way, and is not to be cached when it arrives.
    pub(super) fn will_drop(&self, line: u64) -> bool {
        (self.misses.get(&line)).is_some_and(|miss| miss.is_dropped)
    }

    /// True if there are lines that [`Host::drop_unused_prefetches`] would drop.
    pub(super) fn has_unused_prefetches(&self) -> bool {
        self.has_prefetchers()
            && (!self.unused_prefetches.is_empty()
                || (self.misses.values()).any(|miss| miss.is_unused && !miss.is_dropped))
    }

    /// Drops a line that is to be stored to if hardware has prefetched it and no access has used it; if it is on its
    /// way, when it arrives.
    #[inline(always)]
    pub(super) fn drop_before_store(&mut self, queue: &mut Queue, now: Time, line: u64) {
        if !self.has_prefetchers() {
            return;
        }
        if self.unused_prefetches.remove(&line) {
            let way = self.llc.remove(line);
            self.handle_eviction(queue, now, way, 0);
        }
        if let Some(miss) = self.misses.get_mut(&line) {
            miss.is_dropped |= miss.is_unused;
        }
    }

    /// Drops the lines that hardware has prefetched and no access has used, and those on their way when they arrive.
    pub(super) fn drop_unused_prefetches(&mut self, queue: &mut Queue, now: Time) {
        for line in std::mem::take(&mut self.unused_prefetches) {
            let way = self.llc.remove(line);
            self.handle_eviction(queue, now, way, 0);
        }
        for miss in self.misses.values_mut() {
            miss.is_dropped |= miss.is_unused;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prefetcher with these numbers of streams, largest stride, distance and degree.
    fn prefetcher([streams, stride, distance, degree]: [u64; 4]) -> Prefetcher {
        let mut platform = Platform::enzian();
        platform.prefetch_streams.value = streams;
        platform.prefetch_stride.value = stride;
        platform.prefetch_distance.value = distance;
        platform.prefetch_degree.value = degree;
        platform.page.value = 64 * LINE as u64;
        Prefetcher::new(&platform)
    }

    /// Lines that each access prefetches.
    fn prefetched(prefetcher: &mut Prefetcher, lines: &[u64]) -> Vec<Vec<u64>> {
        let observe = |line: &u64| prefetcher.observe(*line).collect();
        lines.iter().map(observe).collect()
    }

    /// The third line at an equal distance starts the prefetches. Accesses to the same line change nothing, and
    /// prefetches stay in the page of 64 lines.
    #[test]
    fn third_line_of_a_stream_starts_prefetches() {
        let mut sequential = prefetcher([2, 1, 4, 2]);
        let none = Vec::new();
        assert_eq!(
            prefetched(&mut sequential, &[8, 9, 9, 10, 10, 11, 58, 59, 60, 61]),
            [
                &none,
                &none,
                &none,
                &vec![14, 15],
                &none,
                &vec![15, 16],
                &none,
                &none,
                &none,
                &none
            ]
            .map(Clone::clone)
        );
        let mut descending = prefetcher([2, 1, 4, 2]);
        let lines = prefetched(&mut descending, &[12, 11, 10, 9, 8, 7, 6, 5, 4]);
        assert_eq!(lines[2..4], [vec![6, 5], vec![5, 4]]);
        assert_eq!(lines[7..], [vec![1, 0], vec![0]]);
    }

    /// Strides beyond the limit are no stream; two streams in turn are followed with two streams, and not with one.
    #[test]
    fn strides_and_streams_are_limited() {
        let strided: Vec<u64> = (0..6).map(|i| 3 * i).collect();
        let mut wide = prefetcher([1, 3, 2, 1]);
        assert_eq!(
            prefetched(&mut wide, &strided)[2..],
            [[12], [15], [18], [21]]
        );
        let mut narrow = prefetcher([1, 2, 2, 1]);
        assert!(prefetched(&mut narrow, &strided).iter().all(Vec::is_empty));
        let in_turn: Vec<u64> = (0..8).map(|i| i / 2 + i % 2 * 32).collect();
        let count = |streams| {
            let mut prefetcher = prefetcher([streams, 1, 1, 1]);
            prefetched(&mut prefetcher, &in_turn).concat()
        };
        assert_eq!(count(1), []);
        assert_eq!(count(2), [3, 35, 4, 36]);
    }

    /// Two streams 4 lines apart are both followed although each line is accessed twice: a repeated access belongs to
    /// the stream of its line, not to the other stream, which is also near.
    #[test]
    fn repeated_accesses_belong_to_their_own_stream() {
        let mut near = prefetcher([2, 4, 1, 1]);
        // The second stream starts 5 lines above the first one, and waits for two lines of it.
        prefetched(&mut near, &[20, 21, 22, 27, 28, 23, 24, 29, 25]);
        let in_turn = [26, 30, 26, 30, 27, 31, 27, 31, 28, 32];
        assert_eq!(
            prefetched(&mut near, &in_turn).concat(),
            [27, 31, 28, 32, 29, 33]
        );
    }

    /// Without streams there are no prefetches.
    #[test]
    fn no_streams_prefetch_nothing() {
        let mut off = prefetcher([0, 1, 4, 2]);
        assert!(prefetched(&mut off, &[1, 2, 3, 4, 5]).concat().is_empty());
    }
}

//! Timestamps of events, sampled over a run. They show whether the rate was still changing at the end.

use serde::Serialize;

use crate::kernel::Time;

/// Maximum number of samples. At least half as many are kept once there have been that many events.
const MOST: usize = 128;

/// Timestamps of every n-th event.
#[derive(Clone)]
pub struct RateSampler {
    count: u64,
    /// Number of events per sample; doubles when the samples are full.
    every: u64,
    /// Number of events at which the next sample is due.
    next: u64,
    moments: Vec<Sample>,
}

/// Time at which a given count was reached.
#[derive(Clone, Copy)]
struct Sample {
    at: Time,
    /// Lines in caches at that time.
    cached: u64,
}

/// A quarter of the sampled events.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quarter {
    /// Number of events.
    pub count: u64,
    /// Duration, in nanoseconds.
    pub ns: f64,
    /// Lines in caches at the end of the quarter.
    pub lines_cached: u64,
}

impl Default for RateSampler {
    fn default() -> RateSampler {
        RateSampler {
            count: 0,
            every: 1,
            next: 1,
            moments: Vec::new(),
        }
    }
}

impl RateSampler {
    /// Counts `by` more events. Returns true if a sample is due, which the caller then takes with [`RateSampler::keep`].
    #[inline]
    pub(crate) fn happened(&mut self, by: u64) -> bool {
        self.count = self.count.saturating_add(by);
        self.count >= self.next
    }

    /// Takes the samples that are due, with time `at` and `cached` lines in caches.
    pub(crate) fn keep(&mut self, at: Time, cached: u64) {
        // Events are recorded slightly out of order. Samples must not decrease.
        let at = self.moments.last().map_or(at, |last| last.at.max(at));
        while self.count >= self.next {
            if self.moments.len() == MOST {
                let mut even = true;
                self.moments.retain(|_| {
                    even = !even;
                    even
                });
                self.every = self.every.saturating_mul(2);
                // After halving, the number of events since the last remaining sample may be too small for this one.
                self.next = self.every.saturating_mul(self.moments.len() as u64 + 1);
                continue;
            }
            self.moments.push(Sample { at, cached });
            self.next = self.next.saturating_add(self.every);
            if self.next == u64::MAX {
                break;
            }
        }
    }

    /// Returns the four quarters of the events since `begin`. Events after the last multiple of four samples are not
    /// counted. Returns `None` with fewer than four samples.
    pub fn quarters(&self, begin: Time) -> Option<[Quarter; 4]> {
        let each = self.moments.len() / 4;
        if each == 0 {
            return None;
        }
        let mut from = begin;
        Some([1, 2, 3, 4].map(|quarter| {
            let end = self.moments[quarter * each - 1];
            let ns = end.at.saturating_sub(from) as f64 / 1000.0;
            from = end.at;
            Quarter {
                count: each as u64 * self.every,
                ns,
                lines_cached: end.cached,
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns samples of one event per nanosecond, and from the thousandth on of one every two nanoseconds.
    fn slower(things: u64) -> RateSampler {
        let mut course = RateSampler::default();
        let mut at = 0;
        for number in 0..things {
            at += if number < 1000 { 1000 } else { 2000 };
            if course.happened(1) {
                course.keep(at, number + 1);
            }
        }
        course
    }

    #[test]
    fn quarters_have_equal_counts_and_their_own_duration() {
        let quarters = slower(2000).quarters(0).expect("there are enough");
        // Every 16th event is sampled: 125 samples.
        assert_eq!(quarters.map(|quarter| quarter.count), [31 * 16; 4]);
        assert_eq!(
            quarters.map(|quarter| quarter.ns),
            [496.0, 496.0, 984.0, 992.0]
        );
        let cached = quarters.map(|quarter| quarter.lines_cached);
        assert_eq!(cached, [496, 992, 1488, 1984]);
    }

    #[test]
    fn quarters_start_at_the_given_time() {
        let quarters = slower(4).quarters(500).expect("there are enough");
        assert_eq!(quarters.map(|quarter| quarter.ns), [0.5, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn fewer_than_four_samples_have_no_quarters() {
        assert_eq!(slower(3).quarters(0), None);
        assert_eq!(RateSampler::default().quarters(0), None);
    }

    #[test]
    fn simultaneous_events_share_one_timestamp() {
        let mut course = RateSampler::default();
        for (by, at) in [(1000, 5000), (u64::MAX, 6000), (7, 4000)] {
            if course.happened(by) {
                course.keep(at, 0);
            }
        }
        let quarters = course.quarters(0).expect("there are enough");
        assert_eq!(quarters.map(|quarter| quarter.ns), [6.0, 0.0, 0.0, 0.0]);
    }
}

//! Timestamps of events, sampled over a run. They show whether the rate was still changing at the end.

use serde::Serialize;

use crate::kernel::Time;

/// Maximum number of samples. At least half as many are kept once there have been that many events.
const MAX_SAMPLES: usize = 128;

/// Timestamps of every n-th event.
#[derive(Clone)]
pub struct RateSampler {
    /// Number of events so far.
    count: u64,
    /// Number of events per sample; doubles when the samples are full.
    events_per_sample: u64,
    /// Number of events at which the next sample is due.
    next: u64,
    /// Samples in time order, one after every `events_per_sample` events.
    samples: Vec<Sample>,
}

/// Time at which a given count was reached.
#[derive(Clone, Copy)]
struct Sample {
    /// Time, in picoseconds.
    time: Time,
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
            events_per_sample: 1,
            next: 1,
            samples: Vec::new(),
        }
    }
}

impl RateSampler {
    /// Counts `events` more events. Returns true if a sample is due, which the caller then takes with
    /// [`RateSampler::take_samples`].
    #[inline]
    pub(crate) fn count_events(&mut self, events: u64) -> bool {
        self.count = self.count.saturating_add(events);
        self.count >= self.next
    }

    /// Takes the samples that are due, at `time` (picoseconds), with `cached` lines in caches.
    pub(crate) fn take_samples(&mut self, time: Time, cached: u64) {
        // Events are recorded slightly out of order. Samples must not decrease.
        let time = self.samples.last().map_or(time, |last| last.time.max(time));
        while self.count >= self.next {
            if self.samples.len() == MAX_SAMPLES {
                let mut even = true;
                self.samples.retain(|_| {
                    even = !even;
                    even
                });
                self.events_per_sample = self.events_per_sample.saturating_mul(2);
                // After halving, the number of events since the last remaining sample may be too small for this one.
                self.next = self
                    .events_per_sample
                    .saturating_mul(self.samples.len() as u64 + 1);
                continue;
            }
            self.samples.push(Sample { time, cached });
            self.next = self.next.saturating_add(self.events_per_sample);
            if self.next == u64::MAX {
                break;
            }
        }
    }

    /// Returns the four quarters of the sampled events. The first quarter starts at `begin`, in picoseconds. Events
    /// after the last multiple of four samples are not counted. Returns `None` with fewer than four samples.
    pub fn quarters(&self, begin: Time) -> Option<[Quarter; 4]> {
        let samples_per_quarter = self.samples.len() / 4;
        if samples_per_quarter == 0 {
            return None;
        }
        let mut start = begin;
        Some([1, 2, 3, 4].map(|quarter| {
            let end = self.samples[quarter * samples_per_quarter - 1];
            let ns = end.time.saturating_sub(start) as f64 / 1000.0;
            start = end.time;
            Quarter {
                count: samples_per_quarter as u64 * self.events_per_sample,
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
    fn slowing_sampler(events: u64) -> RateSampler {
        let mut sampler = RateSampler::default();
        let mut time = 0;
        for number in 0..events {
            time += if number < 1000 { 1000 } else { 2000 };
            if sampler.count_events(1) {
                sampler.take_samples(time, number + 1);
            }
        }
        sampler
    }

    #[test]
    fn quarters_have_equal_counts_and_their_own_duration() {
        let quarters = slowing_sampler(2000).quarters(0).expect("there are enough");
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
        let quarters = slowing_sampler(4).quarters(500).expect("there are enough");
        assert_eq!(quarters.map(|quarter| quarter.ns), [0.5, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn fewer_than_four_samples_have_no_quarters() {
        assert_eq!(slowing_sampler(3).quarters(0), None);
        assert_eq!(RateSampler::default().quarters(0), None);
    }

    #[test]
    fn simultaneous_events_share_one_timestamp() {
        let mut sampler = RateSampler::default();
        for (events, time) in [(1000, 5000), (u64::MAX, 6000), (7, 4000)] {
            if sampler.count_events(events) {
                sampler.take_samples(time, 0);
            }
        }
        let quarters = sampler.quarters(0).expect("there are enough");
        assert_eq!(quarters.map(|quarter| quarter.ns), [6.0, 0.0, 0.0, 0.0]);
    }
}

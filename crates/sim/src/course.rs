//! When things happened in the course of a run, so that it can be told whether their rate was still changing.

use serde::Serialize;

use crate::kernel::Time;

/// Moments that are kept at most; half of them at least, once there have been as many things.
const MOST: usize = 128;

/// Things that happened one after the other: the moments at which every so-manieth of them did.
#[derive(Clone)]
pub struct Course {
    count: u64,
    /// A moment is kept for each so many things.
    every: u64,
    /// The number of things at which the next moment is kept.
    next: u64,
    moments: Vec<Sample>,
}

/// The moment by which so many things had happened.
#[derive(Clone, Copy)]
struct Sample {
    at: Time,
    /// Lines that caches held then.
    cached: u64,
}

/// A quarter of the things that happened in a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quarter {
    /// How many things these are.
    pub count: u64,
    /// How long they took, in nanoseconds.
    pub ns: f64,
    /// Lines that caches held at its end.
    pub lines_cached: u64,
}

impl Default for Course {
    fn default() -> Course {
        Course {
            count: 0,
            every: 1,
            next: 1,
            moments: Vec::new(),
        }
    }
}

impl Course {
    /// Takes note that so many more things have happened; whether a moment is to be kept for them.
    #[inline]
    pub(crate) fn happened(&mut self, by: u64) -> bool {
        self.count = self.count.saturating_add(by);
        self.count >= self.next
    }

    /// Keeps the moment of what has just happened.
    pub(crate) fn keep(&mut self, at: Time, cached: u64) {
        // What is noted a little later may have happened a little earlier.
        let at = self.moments.last().map_or(at, |last| last.at.max(at));
        while self.count >= self.next {
            if self.moments.len() == MOST {
                let mut even = true;
                self.moments.retain(|_| {
                    even = !even;
                    even
                });
                self.every = self.every.saturating_mul(2);
                // There may have been too few since the last one that is left for this moment to be kept.
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

    /// The four quarters of what has happened since a moment, but for a few last things; `None` if these are fewer
    /// than four.
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

    /// One thing in each nanosecond, and from the thousandth on one in two.
    fn slower(things: u64) -> Course {
        let mut course = Course::default();
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
    fn quarters_have_as_many_things_each_and_their_own_time() {
        let quarters = slower(2000).quarters(0).expect("there are enough");
        // Every 16th moment is kept, 125 of them.
        assert_eq!(quarters.map(|quarter| quarter.count), [31 * 16; 4]);
        assert_eq!(
            quarters.map(|quarter| quarter.ns),
            [496.0, 496.0, 984.0, 992.0]
        );
        let cached = quarters.map(|quarter| quarter.lines_cached);
        assert_eq!(cached, [496, 992, 1488, 1984]);
    }

    #[test]
    fn what_began_later_is_measured_from_there() {
        let quarters = slower(4).quarters(500).expect("there are enough");
        assert_eq!(quarters.map(|quarter| quarter.ns), [0.5, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn fewer_than_four_things_have_no_quarters() {
        assert_eq!(slower(3).quarters(0), None);
        assert_eq!(Course::default().quarters(0), None);
    }

    #[test]
    fn many_things_at_once_are_at_one_moment() {
        let mut course = Course::default();
        for (by, at) in [(1000, 5000), (u64::MAX, 6000), (7, 4000)] {
            if course.happened(by) {
                course.keep(at, 0);
            }
        }
        let quarters = course.quarters(0).expect("there are enough");
        assert_eq!(quarters.map(|quarter| quarter.ns), [6.0, 0.0, 0.0, 0.0]);
    }
}

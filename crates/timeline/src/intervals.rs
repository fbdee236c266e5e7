//! Time spent in intervals of a run, for counters.

use cohkit_units::Time;

/// Time spent in intervals of equal width. The width is doubled as the run continues, so that memory stays bounded.
pub struct IntervalTotals {
    /// Width of an interval, in picoseconds.
    pub(crate) width: Time,
    /// Time spent in each interval, in picoseconds. It exceeds the width if several things happen at once.
    pub(crate) spent: Vec<Time>,
}

/// Width of an interval of a short run, in picoseconds: about 16 ns.
const INITIAL_WIDTH: Time = 1 << 14;

/// Maximum number of intervals.
const MAX_INTERVALS: usize = 1 << 10;

impl Default for IntervalTotals {
    fn default() -> IntervalTotals {
        IntervalTotals {
            width: INITIAL_WIDTH,
            spent: Vec::new(),
        }
    }
}

impl IntervalTotals {
    /// Adds the time from `begin` to `end`, in picoseconds.
    pub fn add(&mut self, begin: Time, end: Time) {
        while end / self.width >= MAX_INTERVALS as u64 {
            let pairs = self.spent.chunks(2);
            self.spent = pairs.map(|pair| pair.iter().sum()).collect();
            self.width *= 2;
        }
        let last_interval = (end / self.width) as usize;
        if last_interval >= self.spent.len() {
            self.spent.resize(last_interval + 1, 0);
        }
        let mut time = begin;
        while time < end {
            let number = time / self.width;
            let interval_end = end.min((number + 1) * self.width);
            self.spent[number as usize] += interval_end - time;
            time = interval_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IntervalTotals, INITIAL_WIDTH, MAX_INTERVALS};
    use cohkit_units::Time;

    /// In runs of any length, each time is in exactly one interval.
    #[test]
    fn each_time_is_in_exactly_one_interval() {
        let mut intervals = IntervalTotals::default();
        let mut sum = 0;
        for number in 0..3_000 {
            let (begin, duration) = (number * 70_000, 1 + number * 37);
            intervals.add(begin, begin + duration);
            sum += duration;
        }
        assert_eq!(intervals.spent.iter().sum::<Time>(), sum);
        assert!(intervals.spent.len() <= MAX_INTERVALS);
        assert!(intervals.width > INITIAL_WIDTH);
    }
}

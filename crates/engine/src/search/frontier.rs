//! Position of a search among its states, which it expands in the order of their numbers.

/// Position of a search: the next state, and the level and the stretch to which that state belongs.
#[derive(Default)]
pub(super) struct Frontier {
    /// The next state to expand.
    pub next: usize,
    /// End of the current stretch; limits are checked when it is done.
    pub stretch_end: usize,
    /// End of the level of the next state. A level holds the states at equal distance from the start.
    pub level_end: usize,
    /// Number of steps to the deepest states found.
    pub depth: u64,
    /// Sizes of the last complete levels, the latest first; 0 for none.
    levels: [u64; 4],
}

impl Frontier {
    /// Completes a level; the next one ends at `end`.
    pub fn next_level(&mut self, end: usize) {
        self.depth += (end > self.level_end) as u64;
        self.levels.rotate_right(1);
        self.levels[0] = (end - self.level_end) as u64;
        self.level_end = end;
    }

    /// Estimated number of states that will still be expanded; `None` unless levels have been shrinking.
    pub fn states_ahead(&self) -> Option<u64> {
        let in_level = (self.level_end - self.next) as u64;
        estimate_remaining_states(&self.levels).map(|later_levels| in_level + later_levels)
    }
}

/// Estimated number of states beyond the last complete level; `None` unless levels have been shrinking. Extrapolates
/// the average ratio of the last levels as a geometric series.
fn estimate_remaining_states(levels: &[u64; 4]) -> Option<u64> {
    let shrinking = levels
        .windows(2)
        .all(|pair| 0 < pair[0] && pair[0] < pair[1]);
    let ratio = (levels[0] as f64 / levels[3] as f64).cbrt();
    shrinking.then(|| (levels[0] as f64 * ratio / (1.0 - ratio)).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::estimate_remaining_states;

    #[test]
    fn only_shrinking_levels_give_an_estimate() {
        // The series 50 + 25 + ... is 100 in all.
        assert_eq!(estimate_remaining_states(&[100, 200, 400, 800]), Some(100));
        assert_eq!(estimate_remaining_states(&[100, 200, 400, 300]), None);
        assert_eq!(estimate_remaining_states(&[100, 200, 400, 0]), None);
        assert_eq!(estimate_remaining_states(&[0, 200, 400, 800]), None);
    }
}

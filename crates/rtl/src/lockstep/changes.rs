//! What whoever listens is told of the remote's rights: what the home's units have learnt, in the order of each unit, but
//! what a unit had to tell while the change before still waited, which is lost.

use cohkit_protocol::protocol::Right;
use std::collections::VecDeque;

/// What the home learns of a line: the right that the remote had at most, and that it has now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The line's number at the home's ports.
    pub line: u64,
    /// The right before.
    pub before: Right,
    /// The right after.
    pub after: Right,
}

impl Change {
    /// A change as it stands at the port.
    fn word(&self) -> u64 {
        (self.before as u64) << 38 | (self.after as u64) << 36 | self.line
    }
}

/// The changes of some units that are still to be told, those that were lost included.
pub struct Changes {
    units: Vec<Unit>,
    /// Most cycles until a change is told; not known if nobody listens for a while.
    most: Option<u64>,
}

#[derive(Default)]
struct Unit {
    /// With the cycle in which the unit learnt of each.
    left: VecDeque<(u64, Change)>,
    /// The cycle in which it learnt of the last one that was told.
    told: Option<u64>,
}

impl Changes {
    /// Of so many units, whose changes are told within so many cycles, if that is known.
    pub fn new(units: usize, most: Option<u64>) -> Changes {
        Changes {
            units: (0..units).map(|_| Unit::default()).collect(),
            most,
        }
    }

    /// Cycles that suffice for a slice of so many units whose changes are always taken at once: each unit has its turn.
    pub fn soon(units: usize) -> u64 {
        2 * units as u64 + 16
    }

    /// A unit learns of a change.
    pub fn learnt(&mut self, unit: usize, change: Change, cycle: u64) {
        self.units[unit].left.push_back((cycle, change));
    }

    /// A change is told at the port; gives how many of the same unit were lost before it.
    ///
    /// # Errors
    /// If it is none that is to be told, or one before it could not be lost.
    pub fn told(&mut self, word: u64) -> Result<u64, String> {
        let is = |(_, change): &(u64, Change)| change.word() == word;
        let places = self.units.iter_mut().map(|unit| {
            let place = unit.left.iter().position(is);
            (unit, place)
        });
        let mut found = places.filter_map(|(unit, place)| Some((unit, place?)));
        let Some((unit, place)) = found.next() else {
            return Err(format!(
                "a change of rights of line {} is told, {:#x}, that the home did not learn of",
                word & ((1 << 36) - 1),
                word >> 36
            ));
        };
        for _ in 0..place {
            unit.lose(self.most)?;
        }
        unit.told = unit.left.pop_front().map(|(cycle, _)| cycle);
        Ok(place as u64)
    }

    /// Nothing more is told of a unit: gives how many changes were lost.
    ///
    /// # Errors
    /// If one could not be lost.
    pub fn rest(&mut self, unit: usize) -> Result<u64, String> {
        let unit = &mut self.units[unit];
        let lost = unit.left.len();
        for _ in 0..lost {
            unit.lose(self.most)?;
        }
        Ok(lost as u64)
    }
}

impl Unit {
    /// The next one was lost, because the one that was told before it still waited.
    fn lose(&mut self, most: Option<u64>) -> Result<(), String> {
        let Some((cycle, change)) = self.left.pop_front() else {
            return Ok(());
        };
        let waited = match (self.told, most) {
            (Some(told), Some(most)) => cycle <= told + most,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        match waited {
            true => Ok(()),
            false => Err(format!(
                "a change of rights of line {} is not told, from {:?} to {:?}",
                change.line, change.before, change.after
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(line: u64) -> Change {
        Change {
            line,
            before: Right::None,
            after: Right::Read,
        }
    }

    #[test]
    fn what_is_told_is_what_was_learnt_in_the_order_of_a_unit() {
        let mut changes = Changes::new(2, None);
        for (cycle, unit, line) in [(0, 0, 8), (1, 1, 9), (2, 0, 10)] {
            changes.learnt(unit, change(line), cycle);
        }
        assert_eq!(changes.told(change(9).word()), Ok(0));
        assert_eq!(changes.told(change(10).word()), Ok(1));
        assert!(changes.told(change(8).word()).is_err());
        assert_eq!(changes.rest(0), Ok(0));
    }

    #[test]
    fn only_what_comes_while_another_waits_is_lost() {
        let mut changes = Changes::new(1, Some(10));
        for (line, cycle) in [(1, 0), (2, 10), (3, 11)] {
            changes.learnt(0, change(line), cycle);
        }
        assert_eq!(changes.told(change(1).word()), Ok(0));
        let missed = changes.told(change(3).word());
        assert_eq!(missed, Ok(1));
        changes.learnt(0, change(4), 22);
        assert!(changes.rest(0).is_err());
        changes.learnt(0, change(5), 21);
        assert_eq!(changes.rest(0), Ok(1));
    }
}

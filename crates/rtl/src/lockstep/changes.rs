//! Reference model of the reported changes of the remote's permissions. The home reports what its units have learnt, in
//! order per unit. A change is lost if it occurs while the unit's previous change still waits.

use cohkit_protocol::protocol::Permission;
use std::collections::VecDeque;

/// A change in the home's knowledge of a line: the upper bounds of the remote's permission before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Number of the line at the home's ports.
    pub line: u64,
    /// Permission before.
    pub before: Permission,
    /// Permission after.
    pub after: Permission,
}

impl Change {
    /// Encodes the change as at the port.
    fn word(&self) -> u64 {
        (self.before as u64) << 38 | (self.after as u64) << 36 | self.line
    }
}

/// Expected reports of some units, including changes that may be lost.
pub struct Changes {
    /// Reports that each unit still has to make.
    units: Vec<Unit>,
    /// Maximum number of cycles until a change is reported; `None` if the listener may pause.
    max_delay: Option<u64>,
}

/// Changes of a unit that are not reported yet.
#[derive(Default)]
struct Unit {
    /// Unreported changes, each with the cycle in which the unit learnt of it.
    unreported: VecDeque<(u64, Change)>,
    /// Cycle in which the unit learnt of the last reported change.
    last_reported: Option<u64>,
}

impl Changes {
    /// Creates a model of `units` units. `max_delay` is the maximum number of cycles until a report, if known.
    pub fn new(units: usize, max_delay: Option<u64>) -> Changes {
        Changes {
            units: (0..units).map(|_| Unit::default()).collect(),
            max_delay,
        }
    }

    /// Returns a sufficient number of cycles until a report if reports are always accepted at once: each unit has its
    /// turn.
    pub fn max_report_delay(units: usize) -> u64 {
        2 * units as u64 + 16
    }

    /// Records that a unit has learnt of a change in `cycle`.
    pub fn record_change(&mut self, unit: usize, change: Change, cycle: u64) {
        self.units[unit].unreported.push_back((cycle, change));
    }

    /// Checks a report at the port, encoded as `change_t` of `home_pkg.sv`. Returns the number of earlier changes of
    /// the same unit that were lost.
    /// # Errors
    /// The change was not expected, or an earlier change could not have been lost.
    pub fn check_report(&mut self, word: u64) -> Result<u64, String> {
        let matches = |(_, change): &(u64, Change)| change.word() == word;
        let indices = self.units.iter_mut().map(|unit| {
            let index = unit.unreported.iter().position(matches);
            (unit, index)
        });
        let mut matching = indices.filter_map(|(unit, index)| Some((unit, index?)));
        let Some((unit, index)) = matching.next() else {
            return Err(format!(
                "a permission change of line {} is reported, {:#x}, that the home did not observe",
                word & ((1 << 36) - 1),
                word >> 36
            ));
        };
        for _ in 0..index {
            unit.accept_loss(self.max_delay)?;
        }
        unit.last_reported = unit.unreported.pop_front().map(|(cycle, _)| cycle);
        Ok(index as u64)
    }

    /// Checks that a unit reports nothing more. Returns the number of lost changes.
    ///
    /// # Errors
    /// A change could not have been lost.
    pub fn finish(&mut self, unit: usize) -> Result<u64, String> {
        let unit = &mut self.units[unit];
        let lost = unit.unreported.len();
        for _ in 0..lost {
            unit.accept_loss(self.max_delay)?;
        }
        Ok(lost as u64)
    }
}

impl Unit {
    /// Accepts the loss of the next change, provided that the previously reported change still waited.
    fn accept_loss(&mut self, max_delay: Option<u64>) -> Result<(), String> {
        let Some((cycle, change)) = self.unreported.pop_front() else {
            return Ok(());
        };
        let may_be_lost = match (self.last_reported, max_delay) {
            (Some(last_reported), Some(max_delay)) => cycle <= last_reported + max_delay,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        match may_be_lost {
            true => Ok(()),
            false => Err(format!(
                "a permission change of line {} is not reported, from {:?} to {:?}",
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
            before: Permission::None,
            after: Permission::Read,
        }
    }

    /// A report can precede earlier changes of other units; those of its own unit are lost.
    #[test]
    fn reported_changes_keep_the_order_of_their_unit() {
        let mut changes = Changes::new(2, None);
        for (cycle, unit, line) in [(0, 0, 8), (1, 1, 9), (2, 0, 10)] {
            changes.record_change(unit, change(line), cycle);
        }
        assert_eq!(changes.check_report(change(9).word()), Ok(0));
        assert_eq!(changes.check_report(change(10).word()), Ok(1));
        assert!(changes.check_report(change(8).word()).is_err());
        assert_eq!(changes.finish(0), Ok(0));
    }

    /// A change may be lost only while the previously reported change of its unit could still wait.
    #[test]
    fn changes_are_lost_only_while_another_waits() {
        let mut changes = Changes::new(1, Some(10));
        for (line, cycle) in [(1, 0), (2, 10), (3, 11)] {
            changes.record_change(0, change(line), cycle);
        }
        assert_eq!(changes.check_report(change(1).word()), Ok(0));
        let lost = changes.check_report(change(3).word());
        assert_eq!(lost, Ok(1));
        changes.record_change(0, change(4), 22);
        assert!(changes.finish(0).is_err());
        changes.record_change(0, change(5), 21);
        assert_eq!(changes.finish(0), Ok(1));
    }
}

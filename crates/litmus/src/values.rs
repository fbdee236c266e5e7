//! Abstraction of the data of lines: the write that produced a copy, and its value.

use cohkit_system::data::{Data, Extent};

use crate::program::Update;

/// A copy of a line: the number of the write that produced it, and its value. The initial value counts as write 1. The
/// default, write 0, is no copy.
pub type Copy = (u16, i64);

/// Last write of each line, and its value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Values {
    /// Copy after the last write, by line.
    pub(crate) last: Vec<Copy>,
}

/// Data of a write. `None` if an upper-level cache acquires write permission on behalf of the caches below it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WrittenValue(pub(crate) Option<Update>);

impl Data for Values {
    type Copy = Copy;
    type Write = WrittenValue;
    const KEEPS_VALUES: bool = true;
    const TRACKS_STALENESS: bool = false;

    fn new(lines: u8) -> Values {
        Values {
            last: vec![(1, 0); usize::from(lines)],
        }
    }

    fn initial(&self, line: u8) -> Copy {
        self.last[usize::from(line)]
    }

    fn is_current(&self, line: u8, copy: &Copy) -> bool {
        self.last[usize::from(line)] == *copy
    }

    fn write(&mut self, line: u8, copy: &Copy, _extent: Extent, write: &WrittenValue) -> Copy {
        let Some(write) = write.0 else { return *copy };
        let last_copy = &mut self.last[usize::from(line)];
        *last_copy = (last_copy.0 + 1, write.apply(copy.1));
        *last_copy
    }

    fn mark_stale(copy: &Copy) -> Copy {
        *copy
    }
}

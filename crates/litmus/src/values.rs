//! What stands for the bytes of lines: which write left a copy, and its value.

use cohkit_system::data::{Data, Extent};

use crate::program::Update;

/// A copy of a line: the number of the write that left it, counted from 1, and its value. The default is no copy.
pub type Copy = (u16, i64);

/// Each line's last write and its value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Values {
    pub(crate) last: Vec<Copy>,
}

/// What an access writes; nothing where a cache of an upper level takes the right to write for those below it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Written(pub(crate) Option<Update>);

impl Data for Values {
    type Copy = Copy;
    type Write = Written;
    const KEEPS: bool = true;
    const AGES: bool = false;

    fn new(lines: u8) -> Values {
        Values {
            last: vec![(1, 0); usize::from(lines)],
        }
    }

    fn initial(&self, line: u8) -> Copy {
        self.last[usize::from(line)]
    }

    fn current(&self, line: u8, copy: &Copy) -> bool {
        self.last[usize::from(line)] == *copy
    }

    fn write(&mut self, line: u8, on: &Copy, _extent: Extent, what: &Written) -> Copy {
        let Some(what) = what.0 else { return *on };
        let last = &mut self.last[usize::from(line)];
        *last = (last.0 + 1, what.of(on.1));
        *last
    }

    fn aged(copy: &Copy) -> Copy {
        *copy
    }
}

//! What stands for the bytes of a line.

use std::fmt::Debug;
use std::hash::Hash;

/// How much of a line a write changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// All of it: whatever it is written over is gone.
    Whole,
    /// A part of it.
    Part,
}

/// What a system's agents copy, send and write in place of bytes.
pub trait Data: Clone + Ord + Hash + Debug {
    /// A copy of a line. The default stands where there are no bytes, and is never current.
    type Copy: Clone + Eq + Ord + Hash + Debug + Default;

    /// What a write writes. The default is that of writes which nobody has said more of.
    type Write: Clone + Ord + Hash + Debug + Default;

    /// Whether what writes write makes a difference, so that homes have to keep it.
    const KEEPS: bool;

    /// Whether a write changes what other copies are, so that [`Data::aged`] has to be asked for each of them.
    const AGES: bool;

    /// The data of so many lines that nobody has written.
    fn new(lines: u8) -> Self;

    /// What memory holds at first.
    fn initial(&self, line: u8) -> Self::Copy;

    /// Whether a copy has the effect of every write of its line so far.
    fn current(&self, line: u8, copy: &Self::Copy) -> bool;

    /// Performs the next write of a line in a copy of it, and gives what the copy is then.
    fn write(
        &mut self,
        line: u8,
        on: &Self::Copy,
        extent: Extent,
        what: &Self::Write,
    ) -> Self::Copy;

    /// What a copy is after a write in another one.
    fn aged(copy: &Self::Copy) -> Self::Copy;

    /// All who have the same data have been told of the last write.
    fn told(&mut self) {}
}

/// One bit for each copy: whether it is current. For the data value property this is as exact as numbers of writes, and it
/// is finite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Current;

impl Data for Current {
    type Copy = bool;
    type Write = ();
    const KEEPS: bool = false;
    const AGES: bool = true;

    fn new(_lines: u8) -> Current {
        Current
    }

    fn initial(&self, _line: u8) -> bool {
        true
    }

    fn current(&self, _line: u8, copy: &bool) -> bool {
        *copy
    }

    fn write(&mut self, _line: u8, on: &bool, extent: Extent, _what: &()) -> bool {
        *on || extent == Extent::Whole
    }

    fn aged(_copy: &bool) -> bool {
        false
    }
}

/// A line of two words, each with the number of the write that was the last to write it. Writes of a part of the line
/// write one word and the other in turn.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Words {
    /// Of each line, how many writes there were, and what they have left.
    lines: Vec<(u32, [u32; 2])>,
}

impl Data for Words {
    /// Numbers of writes, counted from 1; memory holds 1 at first.
    type Copy = [u32; 2];
    type Write = ();
    const KEEPS: bool = false;
    const AGES: bool = false;

    fn new(lines: u8) -> Words {
        Words {
            lines: vec![(1, [1, 1]); usize::from(lines)],
        }
    }

    fn initial(&self, _line: u8) -> [u32; 2] {
        [1, 1]
    }

    fn current(&self, line: u8, copy: &[u32; 2]) -> bool {
        self.lines[usize::from(line)].1 == *copy
    }

    fn write(&mut self, line: u8, on: &[u32; 2], extent: Extent, _what: &()) -> [u32; 2] {
        let (writes, last) = &mut self.lines[usize::from(line)];
        *writes += 1;
        let mut after = *on;
        for copy in [last, &mut after] {
            match extent {
                Extent::Whole => *copy = [*writes; 2],
                Extent::Part => copy[(*writes % 2) as usize] = *writes,
            }
        }
        after
    }

    fn aged(copy: &[u32; 2]) -> [u32; 2] {
        *copy
    }
}

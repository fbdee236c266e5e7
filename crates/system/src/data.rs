//! Abstractions of the bytes of a line.

use std::fmt::Debug;
use std::hash::Hash;

/// Part of a line that a write changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// The whole line: the write depends on no earlier bytes.
    Whole,
    /// A part; the other bytes keep their values.
    Part,
}

/// Data of a system: the value that agents copy, send and write in place of a line's bytes.
pub trait Data: Clone + Ord + Hash + Debug {
    /// A copy of a line, or an abstraction of it. The default is the value of an agent without a copy, and is never
    /// current.
    type Copy: Clone + Eq + Ord + Hash + Debug + Default;

    /// The value of a write. The default is that of writes whose value no caller states.
    type Write: Clone + Ord + Hash + Debug + Default;

    /// True if the values of writes matter, so that homes must keep them until the writes are performed.
    const KEEPS_VALUES: bool;

    /// True if a write changes the abstract value of other copies, so that [`Data::mark_stale`] must be applied to
    /// each of them.
    const TRACKS_STALENESS: bool;

    /// The data of `lines` lines before any write.
    fn new(lines: u8) -> Self;

    /// The initial contents of memory.
    fn initial(&self, line: u8) -> Self::Copy;

    /// True if a copy contains every write to its line so far.
    fn is_current(&self, line: u8, copy: &Self::Copy) -> bool;

    /// Performs the next write to a line in a copy of it. Returns the new copy.
    fn write(
        &mut self,
        line: u8,
        copy: &Self::Copy,
        extent: Extent,
        write: &Self::Write,
    ) -> Self::Copy;

    /// The value of a copy after a write to another copy of the line.
    fn mark_stale(copy: &Self::Copy) -> Self::Copy;

    /// Clears the record of the last write; the caller applies that write to all other states with the same data.
    fn clear_last_write(&mut self) {}
}

/// One bit for each copy: true if it is current. For the data-value property this abstraction is as exact as numbered
/// writes, and it is finite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Current;

impl Data for Current {
    /// True if the copy is current.
    type Copy = bool;
    type Write = ();
    const KEEPS_VALUES: bool = false;
    const TRACKS_STALENESS: bool = true;

    fn new(_lines: u8) -> Current {
        Current
    }

    fn initial(&self, _line: u8) -> bool {
        true
    }

    fn is_current(&self, _line: u8, copy: &bool) -> bool {
        *copy
    }

    fn write(&mut self, _line: u8, copy: &bool, extent: Extent, _write: &()) -> bool {
        *copy || extent == Extent::Whole
    }

    fn mark_stale(_copy: &bool) -> bool {
        false
    }
}

/// A line of two words. Each word holds the number of the last write to it. Writes of a part of the line alternate
/// between the two words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Words {
    /// Per line: the number of writes so far, and the words after the last one.
    lines: Vec<(u32, [u32; 2])>,
}

impl Data for Words {
    /// Numbers of writes, counted from 1; memory initially holds 1.
    type Copy = [u32; 2];
    type Write = ();
    const KEEPS_VALUES: bool = false;
    const TRACKS_STALENESS: bool = false;

    fn new(lines: u8) -> Words {
        Words {
            lines: vec![(1, [1, 1]); usize::from(lines)],
        }
    }

    fn initial(&self, _line: u8) -> [u32; 2] {
        [1, 1]
    }

    fn is_current(&self, line: u8, copy: &[u32; 2]) -> bool {
        self.lines[usize::from(line)].1 == *copy
    }

    fn write(&mut self, line: u8, copy: &[u32; 2], extent: Extent, _write: &()) -> [u32; 2] {
        let (write_count, last_words) = &mut self.lines[usize::from(line)];
        *write_count += 1;
        let mut new_copy = *copy;
        for words in [last_words, &mut new_copy] {
            match extent {
                Extent::Whole => *words = [*write_count; 2],
                Extent::Part => words[(*write_count % 2) as usize] = *write_count,
            }
        }
        new_copy
    }

    fn mark_stale(copy: &[u32; 2]) -> [u32; 2] {
        *copy
    }
}

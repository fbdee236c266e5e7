//! What loads may find where copies may be old (`guarantee none`).
//!
//! A word that is read has what some write left in it, or what it began with. Where the text promises a memory model besides,
//! each core knows of writes: of its own, of those that it has read and, where it reads a release and acquires with that, of
//! all that the other core knew of. It finds no word as it was before a write of it that it knows of.
//!
//! If copies are written in place, writes of a line are in no order, and no more is asked than that some write left the word.

use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::message::Line;

/// A line, and a word of it.
pub type Word = (Line, u16);

/// Of words, the last write that somebody knows of. Writes of a line are numbered from 1.
type Known = FxHashMap<Word, u32>;

/// What has been written, and who knows of it.
#[derive(Default)]
pub struct Old {
    /// Whether the text promises a memory model, and the home performs all writes.
    ordered: bool,
    /// Whether copies are written in place.
    in_place: bool,
    /// Of each word its writes with their values, from the first to the last.
    written: FxHashMap<Word, Vec<(u32, u64)>>,
    cores: FxHashMap<u16, Known>,
    /// Of each write that was a release, what its core knew of.
    releases: FxHashMap<(Word, u32), Rc<Known>>,
}

impl Old {
    /// Nothing has been written.
    pub fn new(model: bool, in_place: bool) -> Old {
        Old {
            ordered: model && !in_place,
            in_place,
            ..Old::default()
        }
    }

    /// A write of words of a line, which all become this.
    pub fn written(&mut self, line: Line, words: Range<u16>, version: u32, value: u64) {
        for word in words {
            let writes = self.written.entry((line, word)).or_default();
            writes.push((version, value));
        }
    }

    /// The core whose write it is knows of it; others may, if they read a release.
    pub fn wrote(&mut self, core: u16, release: bool, line: Line, words: Range<u16>, version: u32) {
        if !self.ordered {
            return;
        }
        let known = self.cores.entry(core).or_default();
        known.extend(words.clone().map(|word| ((line, word), version)));
        if release {
            let known = Rc::new(known.clone());
            let of = |word| (((line, word), version), Rc::clone(&known));
            self.releases.extend(words.map(of));
        }
    }

    /// A core reads a word out of a copy that has all writes of the line up to one; `first` is what the word began with.
    ///
    /// # Errors
    /// What it should not have found, in words.
    pub fn read(
        &mut self,
        (core, acquires): (u16, bool),
        word: Word,
        (version, value): (u32, u64),
        first: u64,
    ) -> Result<(), String> {
        let writes = self.written.get(&word).map_or(&[][..], Vec::as_slice);
        if self.in_place {
            let left = value == first || writes.iter().any(|&(_, wrote)| wrote == value);
            return match left {
                true => Ok(()),
                false => Err(format!("{value} was never written there")),
            };
        }
        let before = writes.partition_point(|&(write, _)| write <= version);
        let (write, wrote) = match before {
            0 => (0, first),
            some => writes[some - 1],
        };
        if wrote != value {
            return Err(format!(
                "{value} is in a copy of write {version} of the line, and {wrote} was written"
            ));
        }
        if !self.ordered {
            return Ok(());
        }
        let known = self.cores.entry(core).or_default();
        let last = known.entry(word).or_default();
        if *last > write {
            return Err(format!(
                "it finds write {write} of the line, and its core knows of write {last}"
            ));
        }
        *last = write;
        if let (true, Some(others)) = (acquires, self.releases.get(&(word, write))) {
            for (&word, &write) in others.iter() {
                let last = known.entry(word).or_default();
                *last = write.max(*last);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Word = (1, 0);
    const FLAG: Word = (2, 3);

    /// Core 0 has written 7 to the data and released 9 to the flag.
    fn handed_over(release: bool) -> Old {
        let mut old = Old::new(true, false);
        old.written(1, 0..1, 1, 7);
        old.wrote(0, false, 1, 0..1, 1);
        old.written(2, 3..4, 1, 9);
        old.wrote(0, release, 2, 3..4, 1);
        old
    }

    #[test]
    fn what_was_never_written_is_found_whatever_is_promised() {
        for ordered in [true, false] {
            let mut old = Old::new(ordered, false);
            old.written(1, 0..1, 1, 7);
            let mut read = |found| old.read((1, false), DATA, found, 5);
            assert_eq!(read((0, 5)), Ok(()));
            assert_eq!(read((1, 7)), Ok(()));
            assert!(read((1, 5)).is_err() && read((0, 7)).is_err());
        }
    }

    #[test]
    fn a_copy_that_is_written_in_place_has_words_of_writes_in_any_order() {
        let mut old = Old::new(true, true);
        old.written(1, 0..1, 1, 7);
        old.written(1, 0..1, 2, 8);
        let mut read = |found| old.read((1, false), DATA, found, 5);
        for found in [(2, 8), (1, 5), (2, 7), (1, 8)] {
            assert_eq!(read(found), Ok(()));
        }
        assert!(read((2, 9)).is_err());
    }

    #[test]
    fn a_core_finds_nothing_older_than_it_has_found_or_written() {
        let mut old = handed_over(false);
        assert_eq!(old.read((1, false), DATA, (0, 5), 5), Ok(()));
        assert_eq!(old.read((1, false), DATA, (1, 7), 5), Ok(()));
        assert!(old.read((1, false), DATA, (0, 5), 5).is_err());
        assert!(old.read((0, false), DATA, (0, 5), 5).is_err());
        // Without a model nobody promises that.
        let mut old = Old::new(false, false);
        old.written(1, 0..1, 1, 7);
        old.wrote(0, true, 1, 0..1, 1);
        assert_eq!(old.read((0, false), DATA, (0, 5), 5), Ok(()));
    }

    #[test]
    fn who_acquires_from_a_release_finds_what_was_before_it() {
        for (release, acquires) in [(true, true), (true, false), (false, true)] {
            let mut old = handed_over(release);
            assert_eq!(old.read((1, acquires), FLAG, (1, 9), 0), Ok(()));
            let stale = old.read((1, false), DATA, (0, 5), 5);
            assert_eq!(stale.is_err(), release && acquires);
            // Others have acquired nothing.
            assert_eq!(old.read((2, false), DATA, (0, 5), 5), Ok(()));
        }
    }
}

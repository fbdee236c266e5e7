//! Values that loads may return where copies may be stale (`guarantee none`).
//!
//! A word that is read has the value of some write to it, or its initial value. If the protocol promises a memory model
//! in addition, each core has observed writes: its own, and those that it has read. If it reads a release with an
//! acquire, it has also observed all writes that the releasing core had. It reads no value of a word older than an
//! observed write to it.
//!
//! If copies are written in place, writes to a line are unordered. Then the only requirement is that some write has
//! written the value.

use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::message::{CoreId, Line};

/// A line, and a word of it.
pub type Word = (Line, u16);

/// Last observed write of each word. Writes to a line are numbered from 1.
type ObservedWrites = FxHashMap<Word, u32>;

/// All writes, and the cores that have observed them.
#[derive(Default)]
pub struct StaleCopies {
    /// True if the protocol promises a memory model, and the home performs all writes.
    ordered: bool,
    /// True if copies are written in place.
    in_place: bool,
    /// Number and value of each write to a word, in order.
    written: FxHashMap<Word, Vec<(u32, u64)>>,
    /// Observed writes of each core.
    cores: FxHashMap<CoreId, ObservedWrites>,
    /// Observed writes of the releasing core, for each write that was a release.
    releases: FxHashMap<(Word, u32), Rc<ObservedWrites>>,
}

impl StaleCopies {
    /// Creates the record of a run without writes. `model`: the protocol promises a memory model; `in_place`:
    /// caches may write their copies.
    pub fn new(model: bool, in_place: bool) -> StaleCopies {
        StaleCopies {
            ordered: model && !in_place,
            in_place,
            ..StaleCopies::default()
        }
    }

    /// Records a write of `value` to words of a line.
    pub fn written(&mut self, line: Line, words: Range<u16>, version: u32, value: u64) {
        for word in words {
            let writes = self.written.entry((line, word)).or_default();
            writes.push((version, value));
        }
    }

    /// Records that the writing core has observed its write. Other cores may observe it by acquiring a release.
    pub fn wrote(
        &mut self,
        core: CoreId,
        release: bool,
        line: Line,
        words: Range<u16>,
        version: u32,
    ) {
        if !self.ordered {
            return;
        }
        let observed = self.cores.entry(core).or_default();
        observed.extend(words.clone().map(|word| ((line, word), version)));
        if release {
            let observed = Rc::new(observed.clone());
            let entry = |word| (((line, word), version), Rc::clone(&observed));
            self.releases.extend(words.map(entry));
        }
    }

    /// Checks a core's read of `value` from a word in a copy with all writes of the line up to `version`.
    /// `acquires`: the read is an acquire. `initial` is the initial value of the word.
    ///
    /// # Errors
    /// Description of the wrong value.
    pub fn read(
        &mut self,
        (core, acquires): (CoreId, bool),
        word: Word,
        (version, value): (u32, u64),
        initial: u64,
    ) -> Result<(), String> {
        let writes = self.written.get(&word).map_or(&[][..], Vec::as_slice);
        if self.in_place {
            let is_written = value == initial || writes.iter().any(|&(_, wrote)| wrote == value);
            return match is_written {
                true => Ok(()),
                false => Err(format!("{value} was never written to this word")),
            };
        }
        let visible_writes = writes.partition_point(|&(write, _)| write <= version);
        let (write, wrote) = match visible_writes {
            0 => (0, initial),
            count => writes[count - 1],
        };
        if wrote != value {
            return Err(format!(
                "{value} is in a copy of write {version} of the line, and {wrote} was written"
            ));
        }
        if !self.ordered {
            return Ok(());
        }
        let observed = self.cores.entry(core).or_default();
        let last_observed = observed.entry(word).or_default();
        if *last_observed > write {
            return Err(format!(
                "it returns write {write} of the line, but its core has already observed write {last_observed}"
            ));
        }
        *last_observed = write;
        if let (true, Some(released)) = (acquires, self.releases.get(&(word, write))) {
            for (&word, &write) in released.iter() {
                let last_observed = observed.entry(word).or_default();
                *last_observed = write.max(*last_observed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Word that core 0 writes first.
    const DATA: Word = (1, 0);
    /// Word that core 0 writes after the data.
    const FLAG: Word = (2, 3);

    /// Core 0 has written 7 to the data, and then 9 to the flag: as a release if `release`.
    fn after_flag_store(release: bool) -> StaleCopies {
        let mut copies = StaleCopies::new(true, false);
        copies.written(1, 0..1, 1, 7);
        copies.wrote(CoreId(0), false, 1, 0..1, 1);
        copies.written(2, 3..4, 1, 9);
        copies.wrote(CoreId(0), release, 2, 3..4, 1);
        copies
    }

    #[test]
    fn never_written_values_are_found() {
        for ordered in [true, false] {
            let mut copies = StaleCopies::new(ordered, false);
            copies.written(1, 0..1, 1, 7);
            let mut read = |found| copies.read((CoreId(1), false), DATA, found, 5);
            assert_eq!(read((0, 5)), Ok(()));
            assert_eq!(read((1, 7)), Ok(()));
            assert!(read((1, 5)).is_err() && read((0, 7)).is_err());
        }
    }

    #[test]
    fn copy_written_in_place_may_hold_any_write() {
        let mut copies = StaleCopies::new(true, true);
        copies.written(1, 0..1, 1, 7);
        copies.written(1, 0..1, 2, 8);
        let mut read = |found| copies.read((CoreId(1), false), DATA, found, 5);
        for found in [(2, 8), (1, 5), (2, 7), (1, 8)] {
            assert_eq!(read(found), Ok(()));
        }
        assert!(read((2, 9)).is_err());
    }

    #[test]
    fn core_never_reads_older_than_its_last_access() {
        let mut copies = after_flag_store(false);
        assert_eq!(copies.read((CoreId(1), false), DATA, (0, 5), 5), Ok(()));
        assert_eq!(copies.read((CoreId(1), false), DATA, (1, 7), 5), Ok(()));
        assert!(copies.read((CoreId(1), false), DATA, (0, 5), 5).is_err());
        assert!(copies.read((CoreId(0), false), DATA, (0, 5), 5).is_err());
        // Without a model nothing else is promised.
        let mut copies = StaleCopies::new(false, false);
        copies.written(1, 0..1, 1, 7);
        copies.wrote(CoreId(0), true, 1, 0..1, 1);
        assert_eq!(copies.read((CoreId(0), false), DATA, (0, 5), 5), Ok(()));
    }

    #[test]
    fn acquire_observes_stores_before_the_release() {
        for (release, acquires) in [(true, true), (true, false), (false, true)] {
            let mut copies = after_flag_store(release);
            assert_eq!(copies.read((CoreId(1), acquires), FLAG, (1, 9), 0), Ok(()));
            let stale = copies.read((CoreId(1), false), DATA, (0, 5), 5);
            assert_eq!(stale.is_err(), release && acquires);
            // Another core has acquired nothing.
            assert_eq!(copies.read((CoreId(2), false), DATA, (0, 5), 5), Ok(()));
        }
    }
}

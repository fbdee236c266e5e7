//! What loads may find where copies may be old (`guarantee none`).
//!
//! A word that is read has what some write left in it, or what it began with. Where the text promises a memory model besides,
//! each core knows of writes: of its own, of those that it has read and, where it reads a release and acquires with that, of
//! all that the other core knew of. It finds no word as it was before a write of it that it knows of.

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
    /// Whether the text promises a memory model.
    ordered: bool,
    /// Of each word its writes with their values, from the first to the last.
    written: FxHashMap<Word, Vec<(u32, u64)>>,
    cores: FxHashMap<u16, Known>,
    /// Of each write that was a release, what its core knew of.
    releases: FxHashMap<(Word, u32), Rc<Known>>,
}

impl Old {
    /// Nothing has been written.
    pub fn new(ordered: bool) -> Old {
        Old {
            ordered,
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

//! What copies of a line hold, as numbers of writes: who has which write's bytes, without the bytes.

use cohkit_protocol::controller::Access;
use std::collections::{BTreeMap, BTreeSet};

/// The number of the write whose effect, with all before it, a copy has. A line that nobody has written has that of 0.
pub type Version = u64;

/// A write whose bytes are under way to the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// Its number among those of its line that were sent.
    pub serial: u64,
    /// Whether it writes the whole line.
    pub whole: bool,
}

/// An access that has begun and not ended.
#[derive(Clone, Debug)]
pub struct UnderWay {
    pub access: Access,
    /// The last write when it began.
    pub since: Version,
    /// Its bytes, if they have been sent.
    pub sent: Option<u64>,
}

/// What memory is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Idle,
    /// It is to be read; the trace may tell when, and with what.
    Read(Option<Version>),
    /// It is to be written.
    Write(Version),
    /// The bytes of a write are to be written.
    Store(Write),
    Written,
}

/// What is known of a line's bytes.
#[derive(Clone, Default, Debug)]
pub struct Bytes {
    /// The number of the last write.
    pub last: Version,
    /// What memory has.
    pub memory: Version,
    /// The values of words that the trace has told.
    words: BTreeMap<u64, u64>,
    /// Whether a write has been performed of which no word has been told.
    untold: bool,
    sent: u64,
    /// Those that were sent and not yet performed.
    unperformed: BTreeSet<u64>,
    /// What those that were performed have left.
    left: BTreeMap<u64, Version>,
    /// Whether copies may be old.
    loose: bool,
    /// Then: on which copy each write was performed that keeps a part of it, and which word it has written if that was told.
    made: Vec<(Option<Version>, Option<u64>)>,
    /// The value of each word in what each write has left, as far as it was told.
    in_copies: BTreeMap<(u64, Version), u64>,
}

impl Bytes {
    /// Of a line that nobody has written.
    pub fn new(loose: bool) -> Bytes {
        Bytes {
            loose,
            ..Bytes::default()
        }
    }

    /// A write is performed on a copy. Gives what the copy is then.
    pub fn write(&mut self, on: Option<Version>, whole: bool) -> Result<Version, String> {
        if !whole && (on.is_none() || !self.loose && on != Some(self.last)) {
            return Err(match on {
                Some(on) => format!(
                    "a part of the line is written over what write {on} left, and write {} was the last",
                    self.last
                ),
                None => "a part of the line is written where there is no copy".into(),
            });
        }
        self.last += 1;
        if self.untold || whole {
            self.words.clear();
        }
        self.untold = true;
        if self.loose {
            self.made.push((on.filter(|_| !whole), None));
        }
        Ok(self.last)
    }

    /// A write is sent away; its number.
    pub fn sends(&mut self) -> u64 {
        self.sent += 1;
        self.unperformed.insert(self.sent);
        self.sent
    }

    /// A write that was sent reaches memory.
    pub fn store(&mut self, write: Write) -> Result<(), String> {
        if !self.unperformed.remove(&write.serial) {
            return Err("a write is performed twice, or after it was given up".into());
        }
        self.memory = self.write(Some(self.memory), write.whole)?;
        self.left.insert(write.serial, self.memory);
        Ok(())
    }

    /// What a write that was sent has left; 0 before it is performed.
    pub fn left_by(&self, serial: u64) -> Version {
        self.left.get(&serial).copied().unwrap_or(0)
    }

    /// A write that was sent will not be performed.
    pub fn gives_up(&mut self, serial: u64) {
        self.unperformed.remove(&serial);
    }

    /// Whether a write that was sent has been performed.
    pub fn performed(&self, serial: u64) -> bool {
        !self.unperformed.contains(&serial)
    }

    /// Whether all writes that were sent have been performed or given up.
    pub fn rest(&self) -> bool {
        self.unperformed.is_empty()
    }

    /// A read sees a copy: it has at least what was written before it began.
    pub fn read(&self, copy: Option<Version>, since: Version) -> Result<(), String> {
        match copy {
            None => Err("a read ends without bytes".into()),
            Some(copy) if copy < since => Err(format!(
                "a read sees what write {copy} left, and write {since} was the last before it began"
            )),
            Some(_) => Ok(()),
        }
    }

    /// The device may have written what it likes, and the trace may not have told.
    pub fn forget_values(&mut self) {
        self.words.clear();
    }

    /// The trace tells the value that a word has just been written, or read, with.
    pub fn told(&mut self, writes: bool, word: u64, value: u64) -> Result<(), String> {
        if std::mem::take(&mut self.untold) && !writes {
            self.words.clear();
        }
        match self.words.insert(word, value) {
            Some(last) if !writes && last != value => Err(format!(
                "word {word} is read as {value}, and the last write left {last}"
            )),
            _ => Ok(()),
        }
    }

    /// The same of a copy that may be old: all that is in it was there on which it was written, but for the words written.
    pub fn told_of(
        &mut self,
        copy: Version,
        writes: bool,
        word: u64,
        value: u64,
    ) -> Result<(), String> {
        let place = |copy: Version| (copy as usize).wrapping_sub(1);
        let mut at = copy;
        if writes {
            if let Some((_, written)) = self.made.get_mut(place(copy)) {
                *written = Some(word);
            }
            self.in_copies.insert((word, at), value);
            return Ok(());
        }
        loop {
            let known = self.in_copies.get(&(word, at));
            if let Some(other) = known.filter(|other| **other != value) {
                return Err(format!(
                    "word {word} of what write {copy} left is read as {value}, and was {other}"
                ));
            }
            match self.made.get(place(at)) {
                Some(&(Some(on), Some(other))) if other != word => at = on,
                _ => break,
            }
        }
        self.in_copies.insert((word, at), value);
        Ok(())
    }
}

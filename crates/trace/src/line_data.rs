//! Abstract data: copies of a line as the number of the last write that they contain, without bytes.

use cohkit_protocol::controller::Access;
use std::collections::{BTreeMap, BTreeSet};

/// Number of the last write that a copy contains, along with all earlier ones. 0 for a line that was never written.
pub type Version = u64;

/// A write whose bytes are in flight to the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// Serial number among the writes sent for its line.
    pub serial: u64,
    /// True if it writes the whole line.
    pub whole_line: bool,
}

/// An outstanding access.
#[derive(Clone, Debug)]
pub struct PendingAccess {
    /// Kind of the access.
    pub access: Access,
    /// Last write of the line when the access began.
    pub version_at_start: Version,
    /// Serial number of its write, once the bytes have been sent.
    pub sent_serial: Option<u64>,
}

/// Operation of memory on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// No operation is in progress.
    Idle,
    /// A read is in progress. Once the trace reports its completion, contains the data read.
    Read(Option<Version>),
    /// A write-back is in progress.
    Write(Version),
    /// A store of sent bytes is in progress.
    Store(Write),
    /// The write or store has ended, and the home has not processed its completion.
    Written,
}

/// Abstract data of a line.
#[derive(Clone, Default, Debug)]
pub struct LineData {
    /// Number of the last write.
    pub last: Version,
    /// Contents of memory.
    pub memory: Version,
    /// Values of words, as reported by the trace.
    words: BTreeMap<u64, u64>,
    /// True if a write was performed and the trace has reported no word of it yet. A read that is reported first makes
    /// all of `words` unknown.
    has_unreported_write: bool,
    /// Number of writes sent so far, which is the serial number of the last one.
    sent_count: u64,
    /// Serial numbers of sent writes not yet performed.
    unperformed: BTreeSet<u64>,
    /// Version produced by each performed write, by serial number.
    performed_versions: BTreeMap<u64, Version>,
    /// True if copies may be stale.
    has_stale_copies: bool,
    /// If copies may be stale: the origin of each version, at index `version - 1`.
    origins: Vec<Origin>,
    /// If copies may be stale: value by word and version, as far as reported.
    words_in_copies: BTreeMap<(u64, Version), u64>,
}

/// Origin of a version: the copy that the write changed, and the word that it changed there.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// Version of the copy on which the write was performed. `None` if the write replaced the whole line.
    copy: Option<Version>,
    /// Word written; `None` until the trace reports it.
    word: Option<u64>,
}

impl LineData {
    /// Data of a line that was never written.
    pub fn new(has_stale_copies: bool) -> LineData {
        LineData {
            has_stale_copies,
            ..LineData::default()
        }
    }

    /// Performs a write on a copy. Returns the new version.
    ///
    /// # Errors
    /// A partial write is performed without a copy or, if copies must be current, on a stale one.
    pub fn write(&mut self, copy: Option<Version>, whole_line: bool) -> Result<Version, String> {
        if !whole_line && (copy.is_none() || !self.has_stale_copies && copy != Some(self.last)) {
            return Err(match copy {
                Some(copy) => format!(
                    "a part of the line is written over the version of write {copy}, but write {} was the last",
                    self.last
                ),
                None => "a part of the line is written where there is no copy".into(),
            });
        }
        self.last += 1;
        if self.has_unreported_write || whole_line {
            self.words.clear();
        }
        self.has_unreported_write = true;
        if self.has_stale_copies {
            self.origins.push(Origin {
                copy: copy.filter(|_| !whole_line),
                word: None,
            });
        }
        Ok(self.last)
    }

    /// Records that a write was sent. Returns its serial number.
    pub fn record_sent_write(&mut self) -> u64 {
        self.sent_count += 1;
        self.unperformed.insert(self.sent_count);
        self.sent_count
    }

    /// Performs a sent write in memory.
    ///
    /// # Errors
    /// The write was already performed or abandoned, or it is a partial write to stale memory.
    pub fn perform_sent_write(&mut self, write: Write) -> Result<(), String> {
        if !self.unperformed.remove(&write.serial) {
            return Err("a write is performed twice, or after it was cancelled".into());
        }
        self.memory = self.write(Some(self.memory), write.whole_line)?;
        self.performed_versions.insert(write.serial, self.memory);
        Ok(())
    }

    /// Version produced by a sent write; 0 before it is performed.
    pub fn version_written_by(&self, serial: u64) -> Version {
        self.performed_versions.get(&serial).copied().unwrap_or(0)
    }

    /// Records that a sent write was abandoned: it must not be performed any more.
    pub fn abandon_write(&mut self, serial: u64) {
        self.unperformed.remove(&serial);
    }

    /// True if a sent write was performed or abandoned.
    pub fn is_settled(&self, serial: u64) -> bool {
        !self.unperformed.contains(&serial)
    }

    /// True if all sent writes were performed or abandoned.
    pub fn is_quiescent(&self) -> bool {
        self.unperformed.is_empty()
    }

    /// Checks that a read with this copy includes all writes before the read began (up to `version_at_start`).
    ///
    /// # Errors
    /// The copy is missing, or older than `version_at_start`.
    pub fn check_read(
        &self,
        copy: Option<Version>,
        version_at_start: Version,
    ) -> Result<(), String> {
        match copy {
            None => Err("a read completes without bytes".into()),
            Some(copy) if copy < version_at_start => Err(format!(
                "a read sees the version of write {copy}, but write {version_at_start} was the last before it began"
            )),
            Some(_) => Ok(()),
        }
    }

    /// Forgets the values of words: the device may have written any of them without a report in the trace.
    pub fn forget_values(&mut self) {
        self.words.clear();
    }

    /// Records a reported value of a word, read or just written.
    ///
    /// # Errors
    /// A value read differs from the last write to the word, as far as the trace has reported it.
    pub fn check_reported_value(
        &mut self,
        writes: bool,
        word: u64,
        value: u64,
    ) -> Result<(), String> {
        if std::mem::take(&mut self.has_unreported_write) && !writes {
            self.words.clear();
        }
        match self.words.insert(word, value) {
            Some(last) if !writes && last != value => Err(format!(
                "word {word} is read as {value}, and the last write left {last}"
            )),
            _ => Ok(()),
        }
    }

    /// Records a reported value of a word in a copy that may be stale.
    ///
    /// # Errors
    /// A value read differs from a value reported for the same version, or for one from which the word was preserved.
    pub fn record_copy_value(
        &mut self,
        copy: Version,
        writes: bool,
        word: u64,
        value: u64,
    ) -> Result<(), String> {
        // Version 0 has no origin: its index is out of range.
        let index = |version: Version| (version as usize).wrapping_sub(1);
        let mut version = copy;
        if writes {
            if let Some(origin) = self.origins.get_mut(index(copy)) {
                origin.word = Some(word);
            }
            self.words_in_copies.insert((word, version), value);
            return Ok(());
        }
        // Go back through the versions whose writes preserved the word: all of them contain the same value.
        loop {
            let reported = self.words_in_copies.get(&(word, version));
            if let Some(previous) = reported.filter(|previous| **previous != value) {
                return Err(format!(
                    "word {word} of the version of write {copy} is read as {value}, and was {previous}"
                ));
            }
            match self.origins.get(index(version)) {
                Some(&Origin {
                    copy: Some(changed_copy),
                    word: Some(written_word),
                }) if written_word != word => version = changed_copy,
                _ => break,
            }
        }
        self.words_in_copies.insert((word, version), value);
        Ok(())
    }
}

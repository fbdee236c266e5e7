//! Checks of data and permissions during a run.
//!
//! *Loads*: a load returns the last write of its line in coherence order at the time it is performed at its cache.
//! Writes of a line are numbered as they are performed, and every content records the write that created it. The number
//! reveals a load of a stale content. If a message's bytes are used once, without keeping a copy, they must be current
//! when the message is sent. At [`Level::Bytes`], each word read is also compared with a second record of all words
//! written.
//!
//! *Write buffers*: a store is performed some time after its core has put it into its write buffer. Until then, a load
//! of the same core must find it there. At [`Level::Bytes`], a second record of all buffered words gives the value to
//! be found.
//!
//! *Stores of a cache*: the home performs each once, and in program order per line (`program_order`). A cache does not retry a
//! store that the home has performed.
//!
//! *Single writer*: when an agent gains a permission, no other agent has a permission that excludes it.
//!
//! A protocol file with `guarantee none` promises neither. Then a load must return a value that was written at some
//! time, and none older than its core knows of: `stale_copies`.

use cohkit_protocol::protocol::{Permission, Protocol};
use rustc_hash::FxHashMap;

use crate::data::{Data, Paged};
use crate::explain::FailureKind;
use crate::message::{Agent, CoreId, Line};
use program_order::OwnStores;
use stale_copies::{StaleCopies, Word};

pub use program_order::Breach;

mod program_order;
mod stale_copies;

/// Amount of checking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// No checks; for measuring the cost of checking.
    Off,
    /// Versions of lines, and permissions.
    Versions,
    /// Versions, permissions, and every byte read.
    Bytes,
}

/// Number of agents with permission to read only, and of those with permission to write.
pub(crate) type HolderCounts = [u16; 2];

/// State of a line.
#[derive(Clone, Copy, Default)]
struct LineRecord {
    /// Number of its last write.
    latest: u32,
    /// Numbers of agents with permissions, relative to the initial state: see [`HolderCounts`].
    holder_counts: HolderCounts,
}

/// Checker of one run.
pub struct Oracle {
    /// Amount of checking.
    pub level: Level,
    /// Last write of each line, and the agents with permissions for it.
    lines: Paged<LineRecord>,
    /// Last value written to each word, at [`Level::Bytes`]; words never written have none.
    words: FxHashMap<(Line, u16), u64>,
    /// Numbers of caches of the upper of two levels with permissions, while that level uses the oracle: see
    /// [`HolderCounts`].
    pub(crate) above: Option<Paged<HolderCounts>>,
    /// Value of each core's last store to a word, until the store is performed.
    buffered: FxHashMap<(CoreId, Line, u16), u64>,
    /// Initial value of a word.
    initial_value: fn(u32, u16) -> u64,
    /// State of the checks for copies that may be stale.
    stale_copies: Option<Box<StaleCopies>>,
    /// Stores that caches have sent to homes.
    own_stores: Option<Box<OwnStores>>,
}

impl Oracle {
    /// Creates the oracle of a protocol, before any write.
    pub fn for_protocol(level: Level, protocol: &Protocol) -> Oracle {
        let guarantee = protocol.guarantee;
        let mut states = protocol.remote.states.iter();
        let in_place = states.any(|state| state.permission == Permission::Write);
        let new_stale_copies = || Box::new(StaleCopies::new(guarantee.model.is_some(), in_place));
        let has_stores = protocol.messages.iter().any(|m| m.carries.store());
        let new_own_stores = || Box::new(OwnStores::new(guarantee.coherent));
        Oracle {
            stale_copies: (!guarantee.coherent).then(new_stale_copies),
            own_stores: (has_stores && level > Level::Off).then(new_own_stores),
            ..Oracle::new(level)
        }
    }

    /// Creates an oracle that checks single writer and data value, before any write.
    pub fn new(level: Level) -> Oracle {
        Oracle {
            level,
            lines: Paged::new(LineRecord::default()),
            words: FxHashMap::default(),
            above: None,
            buffered: FxHashMap::default(),
            initial_value: Data::untouched_word,
            stale_copies: None,
            own_stores: None,
        }
    }

    /// True if copies may be stale and permissions do not exclude each other, as with `guarantee none`.
    #[inline(always)]
    pub fn may_be_stale(&self) -> bool {
        self.stale_copies.is_some()
    }

    /// Returns the property violated by a store that is not performed exactly once. Where copies are current, it is the
    /// data value.
    pub fn store_property(&self) -> FailureKind {
        match self.may_be_stale() {
            false => FailureKind::DataValue,
            true => FailureKind::StorePerformedOnce,
        }
    }

    /// Records that a core has written words of a line, as a release if `release`.
    pub fn record_observed_write(
        &mut self,
        (core, release): (CoreId, bool),
        line: Line,
        words: std::ops::Range<u16>,
        version: u32,
    ) {
        if let (Some(stale_copies), Level::Bytes) = (&mut self.stale_copies, self.level) {
            stale_copies.wrote(core, release, line, words, version);
        }
    }

    /// Checks a word that a core reads from a copy that may be stale. `reader` is the core, and true if it acquires.
    /// `version_and_value` are those of the copy that it reads.
    ///
    /// # Errors
    /// Description of the violation.
    pub fn check_stale_read(
        &mut self,
        reader: (CoreId, bool),
        word: Word,
        version_and_value: (u32, u64),
    ) -> Result<(), String> {
        match (&mut self.stale_copies, self.level) {
            (Some(stale_copies), Level::Bytes) => stale_copies.read(
                reader,
                word,
                version_and_value,
                (self.initial_value)(word.0, word.1),
            ),
            _ => Ok(()),
        }
    }

    /// Records that a message carries the store of a cache's access to the home. `is_repeated`: another message has
    /// done so before.
    #[inline]
    pub fn record_store_sent(&mut self, cache_line: (Agent, Line), flight: u32, is_repeated: bool) {
        if let Some(own_stores) = &mut self.own_stores {
            own_stores.sent(cache_line, flight, is_repeated);
        }
    }

    /// Records that a cache has posted the store that it has sent.
    #[inline]
    pub fn record_store_posted(&mut self, cache_line: (Agent, Line)) {
        if let Some(own_stores) = &mut self.own_stores {
            own_stores.posted(cache_line);
        }
    }

    /// Records that the home has performed the store of a message, as the last write of the line.
    ///
    /// # Errors
    /// The store must not be performed.
    #[inline]
    pub fn record_store_performed(
        &mut self,
        cache_line: (Agent, Line),
        flight: u32,
    ) -> Result<(), Breach> {
        let version = self.latest(cache_line.1);
        match &mut self.own_stores {
            Some(own_stores) => own_stores.performed(cache_line, flight, version),
            None => Ok(()),
        }
    }

    /// True if a copy of this version contains all stores that the cache has posted to the line.
    #[inline]
    pub fn contains_own_stores(&self, cache_line: (Agent, Line), version: u32) -> bool {
        (self.own_stores.as_ref())
            .is_none_or(|own_stores| own_stores.contains_stores(cache_line, version))
    }

    /// Sets the initial value of all words to zero.
    pub(crate) fn set_initial_zeros(&mut self) {
        self.initial_value = |_, _| 0;
    }

    /// Performs a write of `value` to each of the words, and returns its number among the writes of the line, from
    /// 1 on. With the oracle off, every write has number 1.
    #[inline]
    pub fn write(&mut self, line: Line, words: std::ops::Range<u16>, value: u64) -> u32 {
        if self.level == Level::Off {
            return 1;
        }
        let version = self.latest(line) + 1;
        self.lines.value_mut(line).latest = version;
        if self.level == Level::Bytes {
            if let Some(stale_copies) = &mut self.stale_copies {
                stale_copies.written(line, words.clone(), version, value);
            }
            for word in words {
                self.words.insert((line, word), value);
            }
        }
        version
    }

    /// Records that the permission of one agent for a line changes.
    #[inline]
    pub fn record_permission_change(&mut self, line: Line, from: Permission, to: Permission) {
        let holder_counts = match &mut self.above {
            None => &mut self.lines.value_mut(line).holder_counts,
            Some(above) => above.value_mut(line),
        };
        for (permission, change) in [(from, u16::MAX), (to, 1)] {
            if permission != Permission::None {
                let count = &mut holder_counts[permission as usize - 1];
                *count = count.wrapping_add(change);
            }
        }
    }

    /// Returns the number of agents that may read only, and of those that may write.
    #[inline]
    fn holder_counts(&self, line: Line) -> HolderCounts {
        match &self.above {
            None => self.lines.get(line).holder_counts,
            Some(above) => above.get(line),
        }
    }

    /// Returns the highest permission that any agent has for a line.
    pub fn highest_permission(&self, line: Line) -> Permission {
        match self.holder_counts(line) {
            [0, 0] => Permission::None,
            [_, 0] => Permission::Read,
            _ => Permission::Write,
        }
    }

    /// True if another agent than the holder of `permission` has a permission that excludes it.
    #[inline]
    pub fn is_excluded(&self, line: Line, permission: Permission) -> bool {
        let [readers, writers] = self.holder_counts(line);
        match permission {
            _ if self.may_be_stale() => false,
            Permission::None => false,
            Permission::Read => writers > 0,
            Permission::Write => writers > 1 || readers > 0,
        }
    }

    /// Records that a core has stored a word into its write buffer.
    pub fn buffer(&mut self, core: CoreId, line: Line, word: u16, value: u64) {
        if self.level == Level::Bytes {
            self.buffered.insert((core, line, word), value);
        }
    }

    /// Records that a store from a core's write buffer has been performed.
    pub fn unbuffer(&mut self, core: CoreId, line: Line, word: u16, value: u64) {
        let key = (core, line, word);
        if self.buffered.get(&key) == Some(&value) {
            self.buffered.remove(&key);
        }
    }

    /// True if `forwarded`, the value that a load found in its core's write buffer, is correct. `None`: the load
    /// found nothing there.
    pub fn is_forwarded_value_correct(
        &self,
        core: CoreId,
        line: Line,
        word: u16,
        forwarded: Option<u64>,
    ) -> bool {
        self.level < Level::Bytes || self.buffered.get(&(core, line, word)).copied() == forwarded
    }

    /// Prefetches the state of a line.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.lines.prefetch(line);
    }

    /// Number of the last write of a line; 0 before any.
    #[inline]
    pub fn latest(&self, line: Line) -> u32 {
        self.lines.get(line).latest
    }

    /// True if a content of this version is the last write of the line, or if that is not checked.
    #[inline]
    pub fn is_current(&self, line: Line, version: u32) -> bool {
        self.level == Level::Off || self.may_be_stale() || version == self.latest(line)
    }

    /// True if a word has the value last written, or if that is not checked. `value` is evaluated only if it is needed.
    #[inline]
    pub fn is_word_current(&self, line: Line, word: u16, value: impl FnOnce() -> u64) -> bool {
        if self.level < Level::Bytes || self.may_be_stale() {
            return true;
        }
        let written = self.words.get(&(line, word)).copied();
        value() == written.unwrap_or_else(|| (self.initial_value)(line, word))
    }
}

/// True if two agents may have these permissions for one line at a time.
#[inline]
pub fn are_compatible(first: Permission, second: Permission) -> bool {
    first == Permission::None
        || second == Permission::None
        || (first, second) == (Permission::Read, Permission::Read)
}

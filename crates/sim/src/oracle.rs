//! What must hold of data and rights at every moment of a run.
//!
//! *Loads*: a load returns the line's last write in coherence order at the moment it is performed at its cache.
//! Writes of a line are numbered as they are performed; every content knows the write that made it;
//! so a load of an old content is seen by its number. Where a message's bytes are used once, without a copy
//! being kept, they must be current when the message is sent.
//! At [`Level::Bytes`] each word read is also compared with a second record of all words written.
//!
//! *Write buffers*: a store counts when it is performed, which is after its core has put it into its write buffer.
//! Until then a load of the same core must find it there. At [`Level::Bytes`] a second record of all words in buffers
//! says what it has to find.
//!
//! *Stores of a cache*: the home performs each once, and in the program order of its line ([`own`]); a cache tries no store
//! again that the home has performed.
//!
//! *Single writer*: when an agent gains a right, no other agent has one that excludes it.
//!
//! A text with `guarantee none` promises neither. Then a load has to find what was written at some time, and nothing older
//! than its core knows of: [`old`].

use cohkit_protocol::protocol::{Protocol, Right};
use rustc_hash::FxHashMap;

use crate::data::{Data, Paged};
use crate::explain::FailureKind;
use crate::message::{Agent, Line};
use old::{Old, Word};
use own::OwnStores;

pub use own::Breach;

mod old;
mod own;

/// How much is watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Nothing; for measuring what watching costs.
    Off,
    /// Versions of lines and rights.
    Versions,
    /// Every byte read besides.
    Bytes,
}

/// What is known of a line.
#[derive(Clone, Copy, Default)]
struct Watched {
    /// Number of its last write.
    latest: u32,
    /// How many agents have each right, as far as rights have changed.
    may: [u16; 3],
}

/// Watches one run.
pub struct Oracle {
    /// How much it watches.
    pub level: Level,
    lines: Paged<Watched>,
    words: FxHashMap<(Line, u16), u64>,
    /// How many shared caches have each right, while these are what is watched.
    pub(crate) above: Option<Paged<[u16; 3]>>,
    /// The last store of a core to a word, until it is performed.
    buffered: FxHashMap<(u16, Line, u16), u64>,
    /// What a word holds before it is written.
    first: fn(u32, u16) -> u64,
    /// What is known where copies may be old.
    old: Option<Box<Old>>,
    /// The stores that caches have sent to homes.
    own: Option<Box<OwnStores>>,
}

impl Oracle {
    /// Nothing written yet, by a text.
    pub fn of(level: Level, protocol: &Protocol) -> Oracle {
        let guarantee = protocol.guarantee;
        let mut states = protocol.remote.states.iter();
        let in_place = states.any(|state| state.right == Right::Write);
        let old = || Box::new(Old::new(guarantee.model.is_some(), in_place));
        let stores = protocol.messages.iter().any(|m| m.carries.store());
        let own = || Box::new(OwnStores::new(guarantee.coherent));
        Oracle {
            old: (!guarantee.coherent).then(old),
            own: (stores && level > Level::Off).then(own),
            ..Oracle::new(level)
        }
    }

    /// Nothing written yet, by a text that keeps single writer and data value.
    pub fn new(level: Level) -> Oracle {
        Oracle {
            level,
            lines: Paged::new(Watched::default()),
            words: FxHashMap::default(),
            above: None,
            buffered: FxHashMap::default(),
            first: Data::untouched_word,
            old: None,
            own: None,
        }
    }

    /// Whether copies may be old, and rights exclude no others.
    #[inline(always)]
    pub fn may_be_old(&self) -> bool {
        self.old.is_some()
    }

    /// Returns the property that every store is performed once. It is part of the data value where copies are current.
    pub fn of_stores(&self) -> FailureKind {
        match self.may_be_old() {
            false => FailureKind::DataValue,
            true => FailureKind::StorePerformedOnce,
        }
    }

    /// A core has written words of a line, as a release or not.
    pub fn wrote(
        &mut self,
        (core, release): (u16, bool),
        line: Line,
        words: std::ops::Range<u16>,
        version: u32,
    ) {
        if let (Some(old), Level::Bytes) = (&mut self.old, self.level) {
            old.wrote(core, release, line, words, version);
        }
    }

    /// A core, which acquires with that or not, reads this in a word of a copy that may be old.
    ///
    /// # Errors
    /// What it should not have found, in words.
    pub fn reads_old(
        &mut self,
        reader: (u16, bool),
        word: Word,
        found: (u32, u64),
    ) -> Result<(), String> {
        match (&mut self.old, self.level) {
            (Some(old), Level::Bytes) => {
                old.read(reader, word, found, (self.first)(word.0, word.1))
            }
            _ => Ok(()),
        }
    }

    /// A message takes the store of a cache's access to the home; `again` if another one has done so before.
    #[inline]
    pub fn store_is_sent(&mut self, of: (Agent, Line), flight: u32, again: bool) {
        if let Some(own) = &mut self.own {
            own.sent(of, flight, again);
        }
    }

    /// A cache has posted the store that it has sent.
    #[inline]
    pub fn store_is_posted(&mut self, of: (Agent, Line)) {
        if let Some(own) = &mut self.own {
            own.posted(of);
        }
    }

    /// The home has performed the store of a message, as the last write of the line.
    ///
    /// # Errors
    /// If it must not.
    #[inline]
    pub fn store_is_performed(&mut self, of: (Agent, Line), flight: u32) -> Result<(), Breach> {
        let version = self.latest(of.1);
        match &mut self.own {
            Some(own) => own.performed(of, flight, version),
            None => Ok(()),
        }
    }

    /// Whether a copy with this version has all stores that a cache has posted to the line.
    #[inline]
    pub fn finds_own(&self, of: (Agent, Line), version: u32) -> bool {
        (self.own.as_ref()).is_none_or(|own| own.finds(of, version))
    }

    /// All words are zero until they are written.
    pub(crate) fn begins_with_zeros(&mut self) {
        self.first = |_, _| 0;
    }

    /// Numbers a write that is performed now. Versions are also kept with the oracle off,
    /// for charts and for values of traffic.
    #[inline]
    pub fn write(&mut self, line: Line, words: std::ops::Range<u16>, value: u64) -> u32 {
        if self.level == Level::Off {
            return 1;
        }
        let version = self.latest(line) + 1;
        self.lines.of(line).latest = version;
        if self.level == Level::Bytes {
            if let Some(old) = &mut self.old {
                old.written(line, words.clone(), version, value);
            }
            for word in words {
                self.words.insert((line, word), value);
            }
        }
        version
    }

    /// What one agent may do with a line changes.
    #[inline]
    pub fn changes(&mut self, line: Line, from: Right, to: Right) {
        let may = match &mut self.above {
            None => &mut self.lines.of(line).may,
            Some(above) => above.of(line),
        };
        may[from as usize] = may[from as usize].wrapping_sub(1);
        may[to as usize] = may[to as usize].wrapping_add(1);
    }

    /// How many agents have each right.
    #[inline]
    fn may(&self, line: Line) -> [u16; 3] {
        match &self.above {
            None => self.lines.get(line).may,
            Some(above) => above.get(line),
        }
    }

    /// The most that any agent may do with a line.
    pub fn most(&self, line: Line) -> Right {
        match self.may(line) {
            [_, 0, 0] => Right::None,
            [_, _, 0] => Right::Read,
            _ => Right::Write,
        }
    }

    /// Whether another agent than the one that has this right has one that excludes it.
    #[inline]
    pub fn excluded(&self, line: Line, right: Right) -> bool {
        let [_, readers, writers] = self.may(line);
        match right {
            _ if self.may_be_old() => false,
            Right::None => false,
            Right::Read => writers > 0,
            Right::Write => writers > 1 || readers > 0,
        }
    }

    /// A core has stored a word into its write buffer.
    pub fn buffer(&mut self, core: u16, line: Line, word: u16, value: u64) {
        if self.level == Level::Bytes {
            self.buffered.insert((core, line, word), value);
        }
    }

    /// A store from a core's write buffer has been performed.
    pub fn unbuffer(&mut self, core: u16, line: Line, word: u16, value: u64) {
        let key = (core, line, word);
        if self.buffered.get(&key) == Some(&value) {
            self.buffered.remove(&key);
        }
    }

    /// Whether a load that found this in its core's write buffer should have found it.
    pub fn buffered(&self, core: u16, line: Line, word: u16, found: Option<u64>) -> bool {
        self.level < Level::Bytes || self.buffered.get(&(core, line, word)).copied() == found
    }

    /// Asks memory for what is known of a line.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.lines.prefetch(line);
    }

    /// Number of the last write of a line; 0 before any.
    #[inline]
    pub fn latest(&self, line: Line) -> u32 {
        self.lines.get(line).latest
    }

    /// Whether a content with this version is the line's last.
    #[inline]
    pub fn current(&self, line: Line, version: u32) -> bool {
        self.level == Level::Off || self.may_be_old() || version == self.latest(line)
    }

    /// Whether a word has the value written last.
    #[inline]
    pub fn word(&self, line: Line, word: u16, value: impl FnOnce() -> u64) -> bool {
        if self.level < Level::Bytes || self.may_be_old() {
            return true;
        }
        let written = self.words.get(&(line, word)).copied();
        value() == written.unwrap_or_else(|| (self.first)(line, word))
    }
}

/// Whether two agents may have these rights to one line at a time.
#[inline]
pub fn compatible(one: Right, other: Right) -> bool {
    one == Right::None || other == Right::None || (one, other) == (Right::Read, Right::Read)
}

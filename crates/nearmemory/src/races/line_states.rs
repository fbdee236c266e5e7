//! States of lines: in far memory, in the caches of hosts, in scratchpads, and in copies between them.

use super::knowledge::{happens_before, Clock};
use super::race::Site;

/// Size of a line in bytes.
const LINE_BYTES: u32 = 128;
/// Number of 8-byte words of a line.
const WORDS_PER_LINE: usize = LINE_BYTES as usize / 8;

/// A write with the vector clock of its core.
#[derive(Clone, Debug)]
pub(super) struct WriteRecord {
    pub(super) site: Site,
    /// Vector clock of the core at the write: a core whose clock is at least this one knows of the write.
    pub(super) clock: Clock,
}

/// A read of a line of far memory since the last store to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadRecord {
    pub(super) site: Site,
    /// The core's own time at the completion of the read; `None` while a copy engine reads, or a load waits.
    pub(super) completion: Option<u64>,
}

/// A word of a scratchpad line, as stored by a host.
#[derive(Clone, Debug)]
pub(super) struct StoredWord {
    /// The store.
    pub(super) write: WriteRecord,
    /// Sequence number of the store among the hosts' stores to scratchpads.
    pub(super) sequence: u64,
}

/// Words of a scratchpad line in flight in a write-back.
#[derive(Clone, Debug)]
pub(super) struct WordsInTransit {
    /// Words that were stored; `None` for the others.
    pub(super) words: [Option<StoredWord>; WORDS_PER_LINE],
    /// Vector clock of the host before the first of these stores. A cache may evict the line directly after that store,
    /// so a core that sees the write-back learns no more.
    pub(super) knowledge: Clock,
}

/// Words of a scratchpad line that hosts have written back.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenWords {
    /// Last store of a host to each word; `None` if there was none.
    pub(super) words: [Option<StoredWord>; WORDS_PER_LINE],
    /// Sequence number of the store whose word the core has loaded last, if the line had newer stores that no
    /// synchronisation covers: they may or may not have arrived. If the core then loads the word of a newer store, it
    /// may have read a partly written line.
    pub(super) early_load: Option<u64>,
}

/// State of a line in far memory.
#[derive(Clone, Debug)]
pub(super) struct FarLine {
    /// Number of writes to the line so far.
    pub(super) version: u64,
    /// The last write.
    pub(super) write: WriteRecord,
    /// Clocks of cores that had waited until the line was in far memory: a core that knows one of them may read it
    /// there.
    pub(super) arrival_clocks: Vec<Clock>,
}

impl FarLine {
    /// True if a program with the vector clock `knowledge` knows of the write, but not that it has reached far memory.
    pub(super) fn may_be_in_flight(&self, knowledge: &Clock) -> bool {
        happens_before(&self.write.clock, knowledge) && !self.has_arrived(knowledge)
    }

    /// True if a program with the vector clock `knowledge` knows that the write has reached far memory.
    pub(super) fn has_arrived(&self, knowledge: &Clock) -> bool {
        let mut arrival_clocks = self.arrival_clocks.iter();
        arrival_clocks.any(|clock| happens_before(clock, knowledge))
    }

    /// Records that a core has waited until the line was in far memory.
    pub(super) fn record_arrival(&mut self, clock: &Clock) {
        if !self
            .arrival_clocks
            .iter()
            .any(|arrival| happens_before(arrival, clock))
        {
            self.arrival_clocks.push(clock.clone());
        }
    }
}

/// A command to a copy engine, as far as its lines have not been requested.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// Address of the next line to request.
    pub(super) far: u64,
    /// Next scratchpad line.
    pub(super) scratchpad: u64,
    /// Number of lines not yet requested; at least 1.
    pub(super) lines: u64,
    /// The instruction that gave the command.
    pub(super) write: WriteRecord,
    /// True for a transfer from the scratchpad.
    pub(super) stores: bool,
    /// Sequence number of the command.
    pub(super) sequence: u64,
}

/// A scratchpad line being copied, until its core has observed completion by the stamp.
#[derive(Clone, Debug)]
pub(super) struct LineCopy {
    /// Sequence number of the command.
    pub(super) command: u64,
    /// Location of the instruction that gave the command.
    pub(super) site: Site,
    /// True for a copy from the scratchpad.
    pub(super) stores: bool,
    /// Address of the line in far memory from or to which the line is copied.
    pub(super) far: u64,
    /// Version of a stored line in far memory, once it is there.
    pub(super) version: u64,
    /// True once the copy is complete.
    pub(super) is_complete: bool,
}

/// Source or last destination in far memory of a scratchpad line.
#[derive(Clone, Debug)]
pub(super) struct LineOrigin {
    /// Address of the line in far memory.
    pub(super) far: u64,
    /// Version of that line when it was fetched or stored.
    pub(super) version: u64,
    /// Bytes that the core has stored since, one bit each.
    pub(super) mask: u128,
    /// True if the core has loaded one of the other bytes.
    pub(super) loaded: bool,
    /// True if the core knew of newer data in far memory at the time of such a load.
    pub(super) stale: bool,
}

impl LineOrigin {
    /// Creates the state of a line that was just copied.
    pub(super) fn new(far: u64, version: u64) -> LineOrigin {
        LineOrigin {
            far,
            version,
            mask: 0,
            loaded: false,
            stale: false,
        }
    }
}

/// State of a line in the last-level cache of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct CachedCopy {
    /// The version that it was read from; `None` until the fill is executed.
    pub(super) base: Option<u64>,
    /// The first store since the line was clean.
    pub(super) first_store: Option<WriteRecord>,
    /// Clock of the last store.
    pub(super) last_store_clock: Clock,
    /// Bytes stored since the line was clean, one bit each.
    pub(super) mask: u128,
    /// For a scratchpad line, the vector clock that its readers learn.
    pub(super) knowledge: Clock,
    /// Words of a scratchpad line stored since the line was clean.
    pub(super) words: [Option<StoredWord>; WORDS_PER_LINE],
}

/// Returns the bit mask of an access of 1 to 128 bytes within a line, one bit per byte of the line.
pub(super) fn byte_mask(address: u64, bytes: u32) -> u128 {
    (u128::MAX >> (LINE_BYTES - bytes)) << (address % u64::from(LINE_BYTES))
}

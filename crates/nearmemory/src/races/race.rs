//! Races and their program locations.

use crate::events::CoreId;
use std::collections::BTreeSet;

/// A program location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The core that runs the program.
    pub core_id: CoreId,
    /// Address of the instruction.
    pub pc: u64,
}

/// Kind of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RaceKind {
    /// A load hit a line in a host's cache, although a newer write to the line in far memory happens before the load.
    StaleLoad,
    /// A copy engine, or a load of another host, read a line whose newest data was in a host's cache or in flight,
    /// although the store of that data happens before the read.
    StaleFetch,
    /// A write-back, or a store of a scratchpad line, has overwritten data that was newer than the version it was
    /// derived from.
    Overwritten,
    /// A host and a copy engine, or two hosts, wrote a line, and neither had the other's data.
    BothWrite,
    /// A host read a line that a copy engine had yet to write, although the start of that copy happens before the
    /// read.
    NotStored,
    /// A core used or changed a scratchpad line before it had observed the completion of a fetch to the line.
    NotFetched,
    /// A core changed a scratchpad line before it had observed the completion of a store of the line to far memory.
    Reused,
    /// Two programs stored a line without synchronisation between the two stores.
    UnorderedStores,
    /// A program read a line, and another program stored it, without synchronisation between the two accesses.
    UnorderedRead,
    /// A core loaded words of a scratchpad line of which an eviction may have written back only a part of the host's
    /// stores.
    HalfWritten,
}

/// A race between two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Race {
    /// Kind of the race.
    pub kind: RaceKind,
    /// The later access.
    pub second: Site,
    /// The earlier access.
    pub first: Site,
    /// Address of the line in far memory. For a scratchpad line, the far address that it is copied from or to; without
    /// a copy, its address for the host.
    pub line: u64,
}

/// Races found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct RaceLog {
    /// Kinds and locations of all races; each pair of locations is reported once per kind.
    reported: BTreeSet<(RaceKind, Site, Site)>,
    /// Races that the machine has not taken yet.
    pub(crate) new_races: Vec<Race>,
}

impl RaceLog {
    /// Reports a race unless it was reported before.
    pub(super) fn report(&mut self, kind: RaceKind, second: Site, first: Site, line: u64) {
        if self.reported.insert((kind, second, first)) {
            self.new_races.push(Race {
                kind,
                second,
                first,
                line,
            });
        }
    }
}

//! Lines that move back and forth between caches, found in constant memory during the run.
//!
//! A direct-mapped table counts the transfers of lines that miss often. A frequent line displaces a rare one at the
//! same place.

use serde::Serialize;

use crate::kernel::Time;
use crate::message::{Agent, Line};
use crate::simulation::Pending;

/// Number of lines tracked at a time: a direct-mapped table indexed by line number.
const TRACKED_LINES: usize = 1 << 10;

/// Minimum number of transfers of a reported line. Fewer are no pattern.
const MIN_TRANSFERS: u64 = 16;

/// Minimum share of a reported line in the waiting time of all lines, 0 to 1.
const MIN_WAIT_SHARE: f64 = 0.01;

/// Maximum number of reported lines, to keep reports short.
const MAX_REPORTED_LINES: usize = 4;

/// A line that moves back and forth between caches because at least one of them writes it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BouncingLine {
    /// Number of the line.
    pub line: Line,
    /// Address of its first byte, from the start of the region.
    pub address: u64,
    /// Accesses that missed because another cache had accessed the line last, where at least one of the two accesses is
    /// a write.
    pub transfers: u64,
    /// Transfers whose access is to another word than the last access of the other cache: false sharing.
    pub other_words: u64,
    /// Share of its transfers in the time that accesses to all lines waited at caches, 0 to 1.
    pub share: f64,
}

/// A tracked line.
#[derive(Clone, Copy)]
struct TrackedLine {
    /// Number of the line.
    line: Line,
    /// Cache of the last access that missed.
    cache: Agent,
    /// Word of that access.
    word: u16,
    /// True if that access was a write.
    wrote: bool,
    /// Misses of this line minus misses of other lines with the same place. At 0 another line takes the place.
    strength: u64,
    /// Transfers so far, as in [`BouncingLine::transfers`].
    transfers: u64,
    /// Transfers so far to another word than that of the last access.
    other_words: u64,
    /// Time that accesses of these transfers waited, in picoseconds.
    waited: u128,
}

/// Tracker of bouncing lines and of the time that accesses wait.
#[derive(Clone, Default)]
pub struct Bouncing {
    /// Tracked lines, each at its number modulo [`TRACKED_LINES`]; empty before the first miss.
    places: Vec<Option<TrackedLine>>,
    /// Time that accesses to all lines waited, in picoseconds.
    waited: u128,
}

impl Bouncing {
    /// Records an access that missed in `cache` and was performed after `waited` picoseconds.
    #[inline]
    pub(crate) fn record_miss(&mut self, access: &Pending, cache: Agent, waited: Time) {
        if self.places.is_empty() {
            self.places = vec![None; TRACKED_LINES];
        }
        self.waited += u128::from(waited);
        let new_entry = TrackedLine {
            line: access.line,
            cache,
            word: access.word,
            wrote: access.kind.writes(),
            strength: 1,
            transfers: 0,
            other_words: 0,
            waited: 0,
        };
        let place = &mut self.places[access.line as usize % TRACKED_LINES];
        match place {
            Some(tracked) if tracked.line == access.line => {
                if tracked.cache != cache && (tracked.wrote || new_entry.wrote) {
                    tracked.transfers += 1;
                    tracked.other_words += u64::from(tracked.word != access.word);
                    tracked.waited += u128::from(waited);
                }
                tracked.strength += 1;
                (tracked.cache, tracked.word, tracked.wrote) =
                    (new_entry.cache, new_entry.word, new_entry.wrote);
            }
            Some(tracked) if tracked.strength > 1 => tracked.strength -= 1,
            _ => *place = Some(new_entry),
        }
    }

    /// Returns the reported lines, at most 4, longest waiting time first. `line_bytes` is the size of a line.
    pub fn lines(&self, line_bytes: u32) -> Vec<BouncingLine> {
        let total_wait = self.waited.max(1) as f64;
        let tracked = self.places.iter().flatten();
        let lines = tracked.map(|entry| BouncingLine {
            line: entry.line,
            address: u64::from(entry.line) * u64::from(line_bytes),
            transfers: entry.transfers,
            other_words: entry.other_words,
            share: entry.waited as f64 / total_wait,
        });
        let mut lines: Vec<_> = lines
            .filter(|line| line.transfers >= MIN_TRANSFERS && line.share >= MIN_WAIT_SHARE)
            .collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.line.cmp(&b.line)));
        lines.truncate(MAX_REPORTED_LINES);
        lines
    }
}

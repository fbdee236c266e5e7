//! Lines that go to and fro between caches, found in constant memory while a run goes on.

use serde::Serialize;

use crate::kernel::Time;
use crate::message::{Agent, Line};
use crate::simulation::Pending;

/// Lines that are followed at a time, each in the place that its number gives it.
const PLACES: usize = 1 << 10;

/// Fewer transfers are no pattern.
const FEWEST: u64 = 16;

/// The smallest share of the time that accesses waited for which a line is worth a word.
const SHARE: f64 = 0.01;

/// Most lines that are reported.
const MOST: usize = 4;

/// A line that goes to and fro between caches because at least one of them writes it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BouncingLine {
    /// Number of the line.
    pub line: Line,
    /// Address of its first byte, counted from the begin of the region.
    pub address: u64,
    /// Accesses that found it at another cache, where one of the two wrote.
    pub transfers: u64,
    /// Those of them that were to another word than the last access of the other cache: false sharing.
    pub other_words: u64,
    /// Share of the time that accesses waited at caches, all lines together, that those to this line did.
    pub share: f64,
}

/// A line that is followed.
#[derive(Clone, Copy)]
struct Followed {
    line: Line,
    /// The last access that missed.
    cache: Agent,
    word: u16,
    wrote: bool,
    /// Its misses, less those of other lines in this place; another line takes the place at 0.
    strength: u64,
    transfers: u64,
    other_words: u64,
    waited: u128,
}

/// Lines that bounce, and the time that accesses wait.
#[derive(Clone, Default)]
pub struct Bouncing {
    places: Vec<Option<Followed>>,
    waited: u128,
}

impl Bouncing {
    /// Notes an access that was performed after this cache had to ask for it, and waited so long.
    #[inline]
    pub(crate) fn missed(&mut self, access: &Pending, cache: Agent, waited: Time) {
        if self.places.is_empty() {
            self.places = vec![None; PLACES];
        }
        self.waited += u128::from(waited);
        let begin = Followed {
            line: access.line,
            cache,
            word: access.word,
            wrote: access.kind.writes(),
            strength: 1,
            transfers: 0,
            other_words: 0,
            waited: 0,
        };
        let place = &mut self.places[access.line as usize % PLACES];
        match place {
            Some(of) if of.line == access.line => {
                if of.cache != cache && (of.wrote || begin.wrote) {
                    of.transfers += 1;
                    of.other_words += u64::from(of.word != access.word);
                    of.waited += u128::from(waited);
                }
                of.strength += 1;
                (of.cache, of.word, of.wrote) = (begin.cache, begin.word, begin.wrote);
            }
            Some(of) if of.strength > 1 => of.strength -= 1,
            _ => *place = Some(begin),
        }
    }

    /// The lines of which accesses waited longest, the first first.
    pub fn lines(&self, line_bytes: u32) -> Vec<BouncingLine> {
        let all = self.waited.max(1) as f64;
        let followed = self.places.iter().flatten();
        let lines = followed.map(|of| BouncingLine {
            line: of.line,
            address: u64::from(of.line) * u64::from(line_bytes),
            transfers: of.transfers,
            other_words: of.other_words,
            share: of.waited as f64 / all,
        });
        let mut lines: Vec<_> = lines
            .filter(|line| line.transfers >= FEWEST && line.share >= SHARE)
            .collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.line.cmp(&b.line)));
        lines.truncate(MOST);
        lines
    }
}

//! Guided lines: what happens to them is led to a row of the ROM that chance would seldom use.
//!
//! A few lines at a time are guided while chance rules all others. A guided line first comes to rest; then its messages are
//! held back and its memory does not answer, until the way to the row has them arrive one after the other.
//! When the row was used, or the way turned out to be barred, chance has it again: the directory may take the line back,
//! and what is held back may be what another line's message has to wait for.

use super::*;
use crate::lockstep::ways::{Move, Situation, Ways};
use crate::rom;

/// Most lines that are guided at a time.
const MOST: usize = 4;

/// A line on its way to a row.
pub(super) struct Guide {
    at: usize,
    row: (usize, usize),
    moves: VecDeque<Move>,
    /// The situation in which the first of the moves is to be done, and the one that it leads to.
    here: Option<u32>,
    next: Option<u32>,
    /// The cycle in which the line was last seen in another situation.
    since: u64,
}

/// Which rows are still to be led to.
pub(super) struct Aims<'a> {
    pub ways: &'a Ways,
    /// Place of the next one in the rows, from the last on.
    pub next: usize,
    /// The cycle in which the next line may be chosen.
    pub pause: u64,
}

impl Bench<'_> {
    /// Chooses lines to be guided and moves them on.
    pub(super) fn guide(&mut self) -> Checked {
        let patience = 600 + 8 * (self.run.memory + self.run.delay);
        for mut guide in std::mem::take(&mut self.guides) {
            let (state, event) = guide.row;
            let over = self.report.covered[state][event] || self.cycle - guide.since > patience;
            if over || !self.move_on(&mut guide)? {
                self.release(guide.at);
            } else {
                self.guides.push(guide);
            }
        }
        self.choose();
        Ok(())
    }

    fn choose(&mut self) {
        let cycle = self.cycle;
        let Some(aims) = self.aims.as_mut().filter(|aims| aims.pause <= cycle) else {
            return;
        };
        if self.guides.len() >= MOST.min(self.lines.len().div_ceil(2)) {
            return;
        }
        let at = self.chance.below(self.lines.len() as u64) as usize;
        if self.lines[at].guided {
            return;
        }
        let rows = aims.ways.rows();
        let used = |&(state, event): &(usize, usize)| self.report.covered[state][event];
        let open = (0..rows.len())
            .map(|step| rows[rows.len() - 1 - (aims.next + step) % rows.len()])
            .enumerate()
            .find(|(_, row)| !used(row));
        let Some((step, row)) = open else {
            aims.pause = u64::MAX;
            return;
        };
        aims.next += step + 1;
        aims.pause = cycle + self.chance.below(100);
        self.lines[at].guided = true;
        self.guides.push(Guide {
            at,
            row,
            moves: VecDeque::new(),
            here: None,
            next: None,
            since: cycle,
        });
    }

    /// Does the next move if it is time for it. False if there is no way any more.
    fn move_on(&mut self, guide: &mut Guide) -> Checked<bool> {
        let at = guide.at;
        let line = &self.lines[at];
        if !self.has_settled(line) {
            return Ok(true);
        }
        if !line.holds_back {
            let rests = line.under_way == 0
                && line.operation == Memory::Idle
                && line.locked.is_none()
                && line.pending.is_none();
            (self.lines[at].holds_back, self.lines[at].withheld) = (rests, rests);
            return Ok(true);
        }
        let Some(ways) = self.aims.as_ref().map(|aims| aims.ways) else {
            return Ok(false);
        };
        let Some(here) = ways.number(&self.situation(at)) else {
            return Ok(false);
        };
        // A move that could not be done yet is tried again; if somebody else has moved the line, another way is sought.
        if guide.next == Some(here) {
            guide.moves.pop_front();
        } else if guide.here != Some(here) {
            match ways.to(here, guide.row) {
                Some(moves) => guide.moves = moves.into(),
                None => return Ok(false),
            }
        }
        let Some(&does) = guide.moves.front() else {
            return Ok(false);
        };
        if guide.here != Some(here) {
            guide.since = self.cycle;
        }
        guide.here = Some(here);
        guide.next = ways.after(here, does).filter(|&next| next != here);
        match does {
            Move::Access(access) => self.access(at, access)?,
            Move::ToRemote(kind) => {
                let message = self.release_one(at, false, kind);
                self.remote_takes(at, message)?;
            }
            Move::ToHome(kind) => {
                let message = self.release_one(at, true, kind);
                self.arrive(at, message);
            }
            Move::Local(operation) => self.ask(at, operation),
            Move::Unlock => self.unlock(at),
            Move::Memory => {
                let cycle = self.cycle;
                for burst in self.bursts(at) {
                    burst.at = cycle;
                }
            }
        }
        Ok(true)
    }

    /// Whether the home has done with the line all that it can, and everything that left it has been seen.
    fn has_settled(&self, line: &Line) -> bool {
        line.entering == 0
            && line.arrived.is_empty()
            && line.asked.is_empty()
            && line.unlocks == 0
            && line.answers.is_empty()
            && line.expected.iter().all(VecDeque::is_empty)
            && match line.operation {
                Memory::Idle => true,
                // Of a burst that may go on the end comes by itself.
                Memory::Reading | Memory::Writing => line.withheld && !line.memory_goes_on,
                _ => false,
            }
    }

    fn situation(&self, at: usize) -> Situation {
        let line = &self.lines[at];
        let way = |direction| {
            let held = line
                .held
                .iter()
                .filter(|(to_home, _)| *to_home == direction);
            let mut messages: Vec<MessageId> = held.map(|(_, message)| message.kind).collect();
            Situation::arrange(self.protocol, &mut messages);
            messages
        };
        Situation {
            remote: line.remote.state,
            home: line.home.state,
            memory: match line.operation {
                Memory::Idle => rom::Memory::None,
                Memory::ReadWanted | Memory::Reading | Memory::Read(_) => rom::Memory::Read,
                Memory::WriteWanted(..) | Memory::Writing | Memory::Written => rom::Memory::Write,
            },
            to_home: way(true),
            to_remote: way(false),
        }
    }

    /// The oldest message of a kind that is held back.
    fn release_one(&mut self, at: usize, to_home: bool, kind: MessageId) -> Message {
        let held = &mut self.lines[at].held;
        let place = held
            .iter()
            .position(|(direction, message)| *direction == to_home && message.kind == kind);
        held.remove(place.expect("the way begins with what is under way"))
            .1
    }

    /// The line's reads and writes at memory, to be given a time.
    pub(super) fn bursts(&mut self, at: usize) -> impl Iterator<Item = &mut Burst> {
        let slice = &mut self.slices[self.lines[at].number as usize % SLICES];
        self.lines[at].memory_goes_on = true;
        let bursts = slice.reads.iter_mut().chain(&mut slice.writes);
        bursts.filter(move |burst| burst.line == at)
    }

    /// Leaves a line to chance again.
    pub(super) fn release(&mut self, at: usize) {
        let line = &mut self.lines[at];
        (line.guided, line.holds_back, line.withheld) = (false, false, false);
        for (to_home, message) in std::mem::take(&mut line.held) {
            self.send(at, to_home, message);
        }
        let later = self.after(self.run.memory);
        for burst in self.bursts(at) {
            burst.at = burst.at.min(later);
        }
    }

    /// Leaves all lines to chance.
    pub(super) fn release_all(&mut self) {
        for guide in std::mem::take(&mut self.guides) {
            self.release(guide.at);
        }
    }
}

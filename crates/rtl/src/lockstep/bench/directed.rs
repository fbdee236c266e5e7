//! Directed lines: their transitions are steered to a row of the ROM that random traffic would rarely use.
//!
//! A few lines at a time are directed; all others are random. A directed line first comes to rest. Then its messages
//! are held back and its memory does not answer, until the path to the row releases them one by one.
//! After the row was used, or if the path is blocked, the line becomes random again: the directory may evict it, and a
//! held message may be one for which another line's message waits.

use super::*;
use crate::lockstep::reachability::{LineState, Move, ReachabilityGraph};
use crate::rom;

/// Maximum number of concurrently directed lines.
const MOST: usize = 4;

/// A line directed to a row.
pub(super) struct DirectedLine {
    at: usize,
    row: (usize, usize),
    moves: VecDeque<Move>,
    /// The state in which the first of the moves is to be made, and its successor.
    here: Option<u32>,
    next: Option<u32>,
    /// Cycle in which the line last changed its state.
    since: u64,
}

/// Rows that are still to be used.
pub(super) struct CoverageTargets<'a> {
    pub ways: &'a ReachabilityGraph,
    /// Index of the next row, counted from the last.
    pub next: usize,
    /// Earliest cycle in which the next line may be chosen.
    pub pause: u64,
}

impl Bench<'_> {
    /// Advances the directed lines and chooses further ones.
    pub(super) fn guide(&mut self) -> Checked {
        let patience = 600 + 8 * (self.run.memory + self.run.delay);
        for mut guide in std::mem::take(&mut self.directed_lines) {
            let (state, event) = guide.row;
            let over = self.report.covered[state][event] || self.cycle - guide.since > patience;
            if over || !self.make_next_move(&mut guide)? {
                self.release(guide.at);
            } else {
                self.directed_lines.push(guide);
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
        if self.directed_lines.len() >= MOST.min(self.lines.len().div_ceil(2)) {
            return;
        }
        let at = self.chance.below(self.lines.len() as u64) as usize;
        if self.lines[at].is_directed {
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
        self.lines[at].is_directed = true;
        self.directed_lines.push(DirectedLine {
            at,
            row,
            moves: VecDeque::new(),
            here: None,
            next: None,
            since: cycle,
        });
    }

    /// Makes the next move if the line has settled. Returns false if no path exists any more.
    fn make_next_move(&mut self, guide: &mut DirectedLine) -> Checked<bool> {
        let at = guide.at;
        let line = &self.lines[at];
        if !self.has_settled(line) {
            return Ok(true);
        }
        if !line.is_holding_messages {
            let rests = line.messages_in_flight == 0
                && line.operation == Memory::Idle
                && line.locked.is_none()
                && line.pending.is_none();
            (self.lines[at].is_holding_messages, self.lines[at].withheld) = (rests, rests);
            return Ok(true);
        }
        let Some(ways) = self.aims.as_ref().map(|aims| aims.ways) else {
            return Ok(false);
        };
        let Some(here) = ways.number(&self.line_state(at)) else {
            return Ok(false);
        };
        // A move that was blocked is retried. If another agent has changed the line's state, a new path is computed.
        if guide.next == Some(here) {
            guide.moves.pop_front();
        } else if guide.here != Some(here) {
            match ways.to(here, guide.row) {
                Some(moves) => guide.moves = moves.into(),
                None => return Ok(false),
            }
        }
        let Some(&transition) = guide.moves.front() else {
            return Ok(false);
        };
        if guide.here != Some(here) {
            guide.since = self.cycle;
        }
        guide.here = Some(here);
        guide.next = ways.after(here, transition).filter(|&next| next != here);
        match transition {
            Move::Access(access) => self.access(at, access)?,
            Move::ToRemote(kind) => {
                let message = self.release_one(at, false, kind);
                self.deliver_to_remote(at, message)?;
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

    /// True if the home has no further work on the line and all of its outputs have been observed.
    fn has_settled(&self, line: &Line) -> bool {
        line.entering == 0
            && line.arrived.is_empty()
            && line.asked.is_empty()
            && line.unlocks == 0
            && line.answers.is_empty()
            && line.expected.iter().all(VecDeque::is_empty)
            && match line.operation {
                Memory::Idle => true,
                // A burst that may continue completes by itself.
                Memory::Reading | Memory::Writing => line.withheld && !line.is_memory_resumed,
                _ => false,
            }
    }

    fn line_state(&self, at: usize) -> LineState {
        let line = &self.lines[at];
        let way = |direction| {
            let held = line
                .held
                .iter()
                .filter(|(to_home, _)| *to_home == direction);
            let mut messages: Vec<MessageId> = held.map(|(_, message)| message.kind).collect();
            LineState::arrange(self.protocol, &mut messages);
            messages
        };
        LineState {
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

    /// Removes the oldest held message of a kind.
    fn release_one(&mut self, at: usize, to_home: bool, kind: MessageId) -> Message {
        let held = &mut self.lines[at].held;
        let place = held
            .iter()
            .position(|(direction, message)| *direction == to_home && message.kind == kind);
        held.remove(place.expect("the way begins with what is under way"))
            .1
    }

    /// Returns the line's memory bursts, whose completion times the caller sets.
    pub(super) fn bursts(&mut self, at: usize) -> impl Iterator<Item = &mut Burst> {
        let slice = &mut self.slices[self.lines[at].number as usize % SLICES];
        self.lines[at].is_memory_resumed = true;
        let bursts = slice.reads.iter_mut().chain(&mut slice.writes);
        bursts.filter(move |burst| burst.line == at)
    }

    /// Returns a line to random traffic.
    pub(super) fn release(&mut self, at: usize) {
        let line = &mut self.lines[at];
        (line.is_directed, line.is_holding_messages, line.withheld) = (false, false, false);
        for (to_home, message) in std::mem::take(&mut line.held) {
            self.send(at, to_home, message);
        }
        let later = self.after(self.run.memory);
        for burst in self.bursts(at) {
            burst.at = burst.at.min(later);
        }
    }

    /// Returns all lines to random traffic.
    pub(super) fn release_all(&mut self) {
        for guide in std::mem::take(&mut self.directed_lines) {
            self.release(guide.at);
        }
    }
}

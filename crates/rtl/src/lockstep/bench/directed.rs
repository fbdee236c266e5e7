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
const MAX_DIRECTED_LINES: usize = 4;

/// A line directed to a row.
pub(super) struct DirectedLine {
    line_index: usize,
    row: (usize, usize),
    moves: VecDeque<Move>,
    /// The state in which the first of the moves is to be made, and its successor.
    current: Option<u32>,
    next: Option<u32>,
    /// Cycle in which the line last changed its state.
    last_change_cycle: u64,
}

/// Rows that are still to be used.
pub(super) struct CoverageTargets<'a> {
    pub graph: &'a ReachabilityGraph,
    /// Index of the next row, counted from the last.
    pub next: usize,
    /// Earliest cycle in which the next line may be chosen.
    pub pause: u64,
}

impl Bench<'_> {
    /// Advances the directed lines and chooses further ones.
    pub(super) fn advance_directed_lines(&mut self) -> Checked {
        let timeout_cycles = 600 + 8 * (self.run.memory + self.run.delay);
        for mut directed in std::mem::take(&mut self.directed_lines) {
            let (state, event) = directed.row;
            let is_over = self.report.covered[state][event]
                || self.cycle - directed.last_change_cycle > timeout_cycles;
            if is_over || !self.make_next_move(&mut directed)? {
                self.release(directed.line_index);
            } else {
                self.directed_lines.push(directed);
            }
        }
        self.choose_directed_line();
        Ok(())
    }

    fn choose_directed_line(&mut self) {
        let cycle = self.cycle;
        let Some(targets) = self
            .targets
            .as_mut()
            .filter(|targets| targets.pause <= cycle)
        else {
            return;
        };
        if self.directed_lines.len() >= MAX_DIRECTED_LINES.min(self.lines.len().div_ceil(2)) {
            return;
        }
        let line_index = self.random.below(self.lines.len() as u64) as usize;
        if self.lines[line_index].is_directed {
            return;
        }
        let rows = targets.graph.rows();
        let is_covered = |&(state, event): &(usize, usize)| self.report.covered[state][event];
        let uncovered = (0..rows.len())
            .map(|step| rows[rows.len() - 1 - (targets.next + step) % rows.len()])
            .enumerate()
            .find(|(_, row)| !is_covered(row));
        let Some((step, row)) = uncovered else {
            targets.pause = u64::MAX;
            return;
        };
        targets.next += step + 1;
        targets.pause = cycle + self.random.below(100);
        self.lines[line_index].is_directed = true;
        self.directed_lines.push(DirectedLine {
            line_index,
            row,
            moves: VecDeque::new(),
            current: None,
            next: None,
            last_change_cycle: cycle,
        });
    }

    /// Makes the next move if the line has settled. Returns false if no path exists any more.
    fn make_next_move(&mut self, directed: &mut DirectedLine) -> Checked<bool> {
        let line_index = directed.line_index;
        let line = &self.lines[line_index];
        if !self.has_settled(line) {
            return Ok(true);
        }
        if !line.is_holding_messages {
            let is_idle = line.messages_in_flight == 0
                && line.operation == Memory::Idle
                && line.lock_permission.is_none()
                && line.pending_local.is_none();
            (
                self.lines[line_index].is_holding_messages,
                self.lines[line_index].is_memory_withheld,
            ) = (is_idle, is_idle);
            return Ok(true);
        }
        let Some(graph) = self.targets.as_ref().map(|targets| targets.graph) else {
            return Ok(false);
        };
        let Some(current) = graph.number(&self.line_state(line_index)) else {
            return Ok(false);
        };
        // A move that was blocked is retried. If another agent has changed the line's state, a new path is computed.
        if directed.next == Some(current) {
            directed.moves.pop_front();
        } else if directed.current != Some(current) {
            match graph.path_to(current, directed.row) {
                Some(moves) => directed.moves = moves.into(),
                None => return Ok(false),
            }
        }
        let Some(&transition) = directed.moves.front() else {
            return Ok(false);
        };
        if directed.current != Some(current) {
            directed.last_change_cycle = self.cycle;
        }
        directed.current = Some(current);
        directed.next = graph
            .successor(current, transition)
            .filter(|&next| next != current);
        match transition {
            Move::Access(access) => self.start_access(line_index, access)?,
            Move::ToRemote(kind) => {
                let message = self.release_held_message(line_index, false, kind);
                self.deliver_to_remote(line_index, message)?;
            }
            Move::ToHome(kind) => {
                let message = self.release_held_message(line_index, true, kind);
                self.queue_at_port(line_index, message);
            }
            Move::Local(operation) => self.request_local(line_index, operation),
            Move::Unlock => self.unlock(line_index),
            Move::Memory => {
                let cycle = self.cycle;
                for burst in self.bursts(line_index) {
                    burst.completion_cycle = cycle;
                }
            }
        }
        Ok(true)
    }

    /// True if the home has no further work on the line and all of its outputs have been observed.
    fn has_settled(&self, line: &Line) -> bool {
        line.messages_at_ports == 0
            && line.arrived_messages.is_empty()
            && line.queued_locals.is_empty()
            && line.unlocks == 0
            && line.answers.is_empty()
            && line.expected_departures.iter().all(VecDeque::is_empty)
            && match line.operation {
                Memory::Idle => true,
                // A burst that may continue completes by itself.
                Memory::Reading | Memory::Writing => {
                    line.is_memory_withheld && !line.is_memory_resumed
                }
                _ => false,
            }
    }

    fn line_state(&self, line_index: usize) -> LineState {
        let line = &self.lines[line_index];
        let messages_toward = |direction| {
            let held_messages = line
                .held_messages
                .iter()
                .filter(|(to_home, _)| *to_home == direction);
            let mut messages: Vec<MessageId> =
                held_messages.map(|(_, message)| message.kind).collect();
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
            to_home: messages_toward(true),
            to_remote: messages_toward(false),
        }
    }

    /// Removes the oldest held message of a kind.
    fn release_held_message(
        &mut self,
        line_index: usize,
        to_home: bool,
        kind: MessageId,
    ) -> Message {
        let held_messages = &mut self.lines[line_index].held_messages;
        let index = held_messages
            .iter()
            .position(|(direction, message)| *direction == to_home && message.kind == kind);
        held_messages
            .remove(index.expect("the way begins with what is under way"))
            .1
    }

    /// Returns the line's memory bursts, whose completion times the caller sets.
    pub(super) fn bursts(&mut self, line_index: usize) -> impl Iterator<Item = &mut Burst> {
        let slice = &mut self.slices[self.lines[line_index].number as usize % SLICES];
        self.lines[line_index].is_memory_resumed = true;
        let bursts = slice.reads.iter_mut().chain(&mut slice.writes);
        bursts.filter(move |burst| burst.line == line_index)
    }

    /// Returns a line to random traffic.
    pub(super) fn release(&mut self, line_index: usize) {
        let line = &mut self.lines[line_index];
        (
            line.is_directed,
            line.is_holding_messages,
            line.is_memory_withheld,
        ) = (false, false, false);
        for (to_home, message) in std::mem::take(&mut line.held_messages) {
            self.send(line_index, to_home, message);
        }
        let latest = self.random_completion_cycle(self.run.memory);
        for burst in self.bursts(line_index) {
            burst.completion_cycle = burst.completion_cycle.min(latest);
        }
    }

    /// Returns all lines to random traffic.
    pub(super) fn release_all(&mut self) {
        for directed in std::mem::take(&mut self.directed_lines) {
            self.release(directed.line_index);
        }
    }
}

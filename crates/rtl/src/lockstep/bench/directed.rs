//! Directed lines: their transitions are steered to a row of the ROM that random traffic would rarely use.
//!
//! A few lines at a time are directed; all others are random. A directed line first becomes idle. Then its messages are
//! held back and its memory does not answer, until the path to the row releases them one by one. After the row was
//! used, or if the path is blocked, the line becomes random again. A path is blocked, for example, if the directory
//! evicts the line, or if another line's message must arrive before a held one.

use super::context::Context;
use super::environment::Environment;
use super::error::Checked;
use super::line::{Direction, Line, Memory};
use crate::lockstep::reachability::{LineState, Move, ReachabilityGraph};
use crate::rom;
use cohkit_protocol::protocol::{MessageId, Protocol};
use std::collections::VecDeque;

/// Maximum number of concurrently directed lines.
const MAX_DIRECTED_LINES: usize = 4;
/// Maximum number of cycles between two choices of a line.
const MAX_PAUSE_CYCLES: u64 = 100;

/// A line directed to a row.
struct DirectedLine {
    /// Index of the line.
    line_index: usize,
    /// Target, as state and event of the ROM.
    row: (usize, usize),
    /// Moves of the path to the row that are still to be made.
    moves: VecDeque<Move>,
    /// State in which the first of the moves is to be made, by its number in the graph; `None` before the first move.
    current_state: Option<u32>,
    /// Successor of that state, unless the move leaves the state unchanged.
    next_state: Option<u32>,
    /// Cycle in which the line last changed its state.
    last_change_cycle: u64,
}

/// The directed lines of a run, and the rows that are still to be used.
pub(super) struct Director<'a> {
    /// Paths to rows; without them, no line is directed.
    graph: Option<&'a ReachabilityGraph>,
    /// Index of the next row among those of the graph, counted from the last.
    next_row: usize,
    /// Earliest cycle in which the next line may be chosen.
    earliest_choice: u64,
    /// Lines that are directed at present.
    lines: Vec<DirectedLine>,
}

impl<'a> Director<'a> {
    /// Creates a director whose first target is the row `first_target`, counted from the last.
    pub fn new(graph: Option<&'a ReachabilityGraph>, first_target: usize) -> Director<'a> {
        Director {
            graph,
            next_row: first_target,
            earliest_choice: 0,
            lines: Vec::new(),
        }
    }

    /// Advances the directed lines, releases those that have used their row or lost their path, and chooses further
    /// ones.
    pub fn advance(&mut self, environment: &mut Environment) -> Checked {
        let Some(graph) = self.graph else {
            return Ok(());
        };
        let run = environment.context.run;
        // A heuristic: several round trips, with a margin for short latencies.
        let timeout_cycles = 600 + 8 * (run.max_memory_latency + run.max_message_latency);
        for mut directed in std::mem::take(&mut self.lines) {
            let (state, event) = directed.row;
            let context = &environment.context;
            let is_over = context.report.covered[state][event]
                || context.cycle - directed.last_change_cycle > timeout_cycles;
            if is_over || !directed.make_next_move(environment, graph)? {
                environment.release(directed.line_index);
            } else {
                self.lines.push(directed);
            }
        }
        self.choose_line(&mut environment.context, graph);
        Ok(())
    }

    /// Directs a random line to the next row that the run has not used, if there are such a line and row.
    fn choose_line(&mut self, context: &mut Context, graph: &ReachabilityGraph) {
        let cycle = context.cycle;
        if self.earliest_choice > cycle
            || self.lines.len() >= MAX_DIRECTED_LINES.min(context.lines.len().div_ceil(2))
        {
            return;
        }
        let line_index = context.random_line();
        if context.lines[line_index].steering.is_directed {
            return;
        }
        let rows = graph.rows();
        let is_covered = |&(state, event): &(usize, usize)| context.report.covered[state][event];
        let uncovered = (0..rows.len())
            .map(|step| rows[rows.len() - 1 - (self.next_row + step) % rows.len()])
            .enumerate()
            .find(|(_, row)| !is_covered(row));
        let Some((step, row)) = uncovered else {
            self.earliest_choice = u64::MAX;
            return;
        };
        self.next_row += step + 1;
        self.earliest_choice = cycle + context.random.below(MAX_PAUSE_CYCLES);
        context.lines[line_index].steering.is_directed = true;
        self.lines.push(DirectedLine {
            line_index,
            row,
            moves: VecDeque::new(),
            current_state: None,
            next_state: None,
            last_change_cycle: cycle,
        });
    }

    /// Returns all lines to random traffic.
    pub fn release_all(&mut self, environment: &mut Environment) {
        for directed in std::mem::take(&mut self.lines) {
            environment.release(directed.line_index);
        }
    }
}

impl DirectedLine {
    /// Makes the next move if the line has settled. Returns false if no path exists any more.
    fn make_next_move(
        &mut self,
        environment: &mut Environment,
        graph: &ReachabilityGraph,
    ) -> Checked<bool> {
        let context = &mut environment.context;
        let line = &mut context.lines[self.line_index];
        if !line.has_settled() {
            return Ok(true);
        }
        if !line.steering.is_holding_messages {
            let is_idle = line.messages.on_link == 0
                && line.operation == Memory::Idle
                && line.lock_permission.is_none()
                && line.pending_local.is_none();
            line.steering.is_holding_messages = is_idle;
            line.steering.is_memory_withheld = is_idle;
            return Ok(true);
        }
        let state = line_state(context.reference.protocol, line);
        let Some(current) = graph.number(&state) else {
            return Ok(false);
        };
        // A move that was blocked is retried. If another agent has changed the line's state, a new path is computed.
        if self.next_state == Some(current) {
            self.moves.pop_front();
        } else if self.current_state != Some(current) {
            match graph.path_to(current, self.row) {
                Some(moves) => self.moves = moves.into(),
                None => return Ok(false),
            }
        }
        let Some(&transition) = self.moves.front() else {
            return Ok(false);
        };
        if self.current_state != Some(current) {
            self.last_change_cycle = context.cycle;
        }
        self.current_state = Some(current);
        self.next_state = graph
            .successor(current, transition)
            .filter(|&next| next != current);
        environment.make_move(self.line_index, transition)?;
        Ok(true)
    }
}

/// Returns the state of a line whose messages are held.
fn line_state(protocol: &Protocol, line: &Line) -> LineState {
    let messages_toward = |direction: Direction| {
        let held_messages = line
            .steering
            .held
            .iter()
            .filter(|(other, _)| *other == direction);
        let mut messages: Vec<MessageId> = held_messages.map(|(_, message)| message.kind).collect();
        LineState::arrange(protocol, &mut messages);
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
        to_home: messages_toward(Direction::ToHome),
        to_remote: messages_toward(Direction::ToRemote),
    }
}

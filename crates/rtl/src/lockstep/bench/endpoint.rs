//! Reference model of an RTL endpoint behind the home: its actions are not visible at the pins, but predicted.
//!
//! All other checks are as in every run: the remote, its messages, the steps of the home and the bytes of its answers,
//! which are the endpoint's here.

use super::context::Context;
use super::error::{check_failed, line_failure, Checked};
use super::line::{covered_bits, Bytes, Memory};
use super::port_events::PortEvent;
use crate::lockstep::model::SLICES;
use crate::lockstep::setup::Check;
use crate::lockstep::shapes::Endpoint;
use crate::lockstep::words::line_of;
use cohkit_protocol::controller::Event;

/// Reference model of the endpoint.
#[derive(Default)]
pub(super) struct EndpointModel {
    /// Kind of the endpoint.
    endpoint: Endpoint,
    /// Pending command to each invalidation engine: first line in bits 0 to 39, number of lines from bit 40.
    pub commands: [Option<u64>; SLICES],
    /// True for each engine that has reported the end of its command.
    pub is_range_complete: [bool; SLICES],
    /// Number of completed local operations of the endpoint, by line.
    pub recalls_by_line: Vec<u64>,
    /// Sum of `recalls_by_line`.
    pub recalled_lines: u64,
    /// For each slice, the line of a remote procedure call (0 or 1) that the remote owns.
    pub remote_lines: [usize; SLICES],
}

/// The remote procedure, which maps an argument word to a result word.
fn procedure(word: u64) -> u64 {
    word.wrapping_mul(3).wrapping_add(1)
}

/// Returns the results of a call with these arguments, word by word.
pub(super) fn results(arguments: &Bytes) -> Bytes {
    arguments.map(procedure)
}

impl EndpointModel {
    /// Creates the model of an endpoint.
    pub fn new(endpoint: Endpoint, lines: usize) -> EndpointModel {
        EndpointModel {
            endpoint,
            recalls_by_line: vec![0; lines],
            ..EndpointModel::default()
        }
    }

    /// Predicts the endpoint's action that must precede this event of the home.
    pub fn predict_action(
        &self,
        context: &mut Context,
        line_index: usize,
        event: Event,
        evict: bool,
    ) {
        if !self.endpoint.has_memory() {
            return;
        }
        let words = context.reference.words;
        let line = &mut context.lines[line_index];
        match (event, &line.operation) {
            (Event::MemoryData(_), Memory::ReadWanted) => {
                line.operation = Memory::Read(line.memory)
            }
            (Event::MemoryDone, Memory::WriteWanted(bytes, mask)) => {
                for (word, &bytes) in bytes.iter().enumerate().take(words) {
                    let covered = covered_bits(*mask, word, words);
                    line.memory[word] = line.memory[word] & !covered | bytes & covered;
                }
                line.operation = Memory::Written;
            }
            (Event::Local(operation), _)
                if self.endpoint.drives_local_ports()
                    && !evict
                    && line.queued_locals.is_empty() =>
            {
                line.queued_locals.push_back(operation);
                context.record_port_event(PortEvent::LocalRequest(line_index));
            }
            _ => {}
        }
    }

    /// Records the completion of the endpoint's local operation.
    pub fn complete_operation(&mut self, context: &mut Context, line_index: usize) -> Checked {
        self.recalls_by_line[line_index] += 1;
        self.recalled_lines += 1;
        context.record_port_event(PortEvent::LocalResponse(line_index));
        if self.endpoint != Endpoint::Rpc {
            return Ok(());
        }
        // The arguments have been recalled from the remote; the results become the contents of the other line.
        let slice = line_index % SLICES;
        if line_index / SLICES != self.remote_lines[slice] {
            return line_failure(
                line_index,
                "the endpoint recalls a line that it owns itself".into(),
            );
        }
        let results = results(&context.lines[line_index].memory);
        self.remote_lines[slice] ^= 1;
        let other_line = &mut context.lines[slice + SLICES * self.remote_lines[slice]];
        (other_line.memory, other_line.latest) = (results, results);
        Ok(())
    }

    /// Handles the completion report of the invalidation engine for a range; fails if lines were refused.
    pub fn complete_invalidation(&mut self, slice: usize, answer: u64) -> Checked {
        // The line field has the number of refused operations.
        match line_of(answer) {
            0 => self.is_range_complete[slice] = true,
            refused => {
                let message = format!("{refused} lines of a range were refused");
                return check_failed(Check::Comparison, None, message);
            }
        }
        Ok(())
    }

    /// Commands the engines of both slices to recall all lines.
    pub fn command_engines(&mut self) {
        let lines = (self.recalls_by_line.len() / SLICES) as u64;
        for (slice, command) in (0..).zip(&mut self.commands) {
            *command = Some(lines << 40 | slice);
        }
    }
}

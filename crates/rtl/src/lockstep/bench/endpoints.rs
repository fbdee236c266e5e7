//! An RTL endpoint behind the home: the actions of memory and device are not visible at the pins, but predicted by a
//! model.
//!
//! All other checks are as in every run: the remote, its messages, the steps of the home and the bytes of its answers,
//! which are the endpoint's here.

use super::*;
use crate::lockstep::shapes::Endpoint;

/// Reference model of the endpoint.
#[derive(Default)]
pub(super) struct EndpointModel {
    pub endpoint: Endpoint,
    /// Pending commands to the invalidation engines, and true once they are complete.
    pub commands: [Option<u64>; SLICES],
    pub is_swept: [bool; SLICES],
    /// Completed local operations of the endpoint, by line; and their total.
    taken_by_line: Vec<u64>,
    pub lines_taken: u64,
    /// For each slice, the line of a call (0 or 1) that the remote owns.
    remote: [usize; SLICES],
}

impl EndpointModel {
    pub fn new(endpoint: Endpoint, lines: usize) -> EndpointModel {
        EndpointModel {
            endpoint,
            taken_by_line: vec![0; lines],
            ..EndpointModel::default()
        }
    }

    /// True if the endpoint implements the memory.
    pub fn has_memory(&self) -> bool {
        self.endpoint != Endpoint::None
    }

    /// True if the endpoint drives the ports for local operations.
    pub fn drives_local_ports(&self) -> bool {
        matches!(self.endpoint, Endpoint::Invalidation | Endpoint::Rpc)
    }
}

/// The remote procedure, which maps an argument word to a result word.
fn procedure(word: u64) -> u64 {
    word.wrapping_mul(3).wrapping_add(1)
}

impl Bench<'_> {
    /// Predicts the endpoint's action that must precede this event of the home.
    pub(super) fn predict_action(&mut self, line_index: usize, event: Event, evict: bool) {
        let words = self.words;
        let line = &mut self.lines[line_index];
        match (event, &line.operation) {
            (Event::MemoryData(_), Memory::ReadWanted) => {
                line.operation = Memory::Read(line.memory)
            }
            (Event::MemoryDone, Memory::WriteWanted(bytes, mask)) => {
                for (word, &bytes) in bytes.iter().enumerate().take(words) {
                    let covered = covered(*mask, word, words);
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
                self.record_port_event(PortEvent::Asks(line_index));
            }
            _ => {}
        }
    }

    /// Records the completion of the endpoint's local operation.
    pub(super) fn complete_endpoint_operation(&mut self, line_index: usize) -> Checked {
        self.endpoint.taken_by_line[line_index] += 1;
        self.endpoint.lines_taken += 1;
        self.record_port_event(PortEvent::Answers(line_index));
        if self.endpoint.endpoint != Endpoint::Rpc {
            return Ok(());
        }
        // The arguments have been taken; the results become the contents of the other line.
        let slice = line_index % SLICES;
        if line_index / SLICES != self.endpoint.remote[slice] {
            return line_failure(line_index, "the endpoint takes its own line".into());
        }
        let results = self.lines[line_index].memory.map(procedure);
        self.endpoint.remote[slice] ^= 1;
        let other_line = &mut self.lines[slice + SLICES * self.endpoint.remote[slice]];
        (other_line.memory, other_line.latest) = (results, results);
        Ok(())
    }

    /// Handles the completion report of the invalidation engine for a range.
    pub(super) fn complete_invalidation(
        &mut self,
        slice_index: usize,
        outputs: &Outputs,
    ) -> Checked {
        let refused = outputs.local_rsp[slice_index] & ((1 << 36) - 1);
        self.last_activity = self.cycle;
        match refused {
            0 => self.endpoint.is_swept[slice_index] = true,
            _ => {
                let message = format!("{refused} lines of a range were refused");
                return check_failed(Check::Comparison, None, message);
            }
        }
        Ok(())
    }

    /// Commands the engines of both slices to take all lines.
    pub(super) fn command_engines(&mut self) {
        for slice_index in 0..SLICES {
            self.endpoint.commands[slice_index] =
                Some(((self.lines.len() / SLICES) as u64) << 40 | slice_index as u64);
        }
    }

    /// Lets the remote obtain every line, half of them dirty; then the engine takes all of them, while the remote is
    /// idle or not. Returns the duration in cycles.
    pub(in crate::lockstep) fn sweep(&mut self, remote_is_idle: bool) -> Checked<u64> {
        let lines = self.lines.len();
        for line_index in 0..lines {
            let access = [Access::Load, Access::Store][line_index / SLICES % 2];
            self.start_access(line_index, access)?;
            self.run_until(|bench| bench.permission(line_index) >= Right::Read)?;
            self.start_access(line_index, access)?;
        }
        self.settle()?;
        let begin = self.cycle;
        self.command_engines();
        self.last_activity = self.cycle;
        while self.endpoint.is_swept != [true; SLICES] {
            if !remote_is_idle {
                self.attempt_remote_accesses()?;
            }
            self.run_cycle()?;
        }
        let cycles = self.cycle - begin;
        for line_index in 0..lines {
            if remote_is_idle && self.permission(line_index) != Right::None {
                return line_failure(line_index, "the remote has kept a line of the range".into());
            }
            if self.endpoint.taken_by_line[line_index] != 1 {
                let taken = self.endpoint.taken_by_line[line_index];
                return line_failure(line_index, format!("the line was taken {taken} times"));
            }
        }
        self.settle()?;
        self.check_final_state()?;
        self.check_registers()?;
        Ok(cycles)
    }

    /// Performs `calls` calls in each slice. Returns the sum of the cycles from the access to the other line until
    /// permission.
    pub(in crate::lockstep) fn calls(&mut self, calls: u64) -> Checked<u64> {
        let mut cycles = 0;
        for call in 0..calls * SLICES as u64 {
            let slice = call as usize % SLICES;
            let argument_line = slice + SLICES * self.endpoint.remote[slice];
            let result_line = slice + SLICES * (1 - self.endpoint.remote[slice]);
            // The first call must obtain a line; later ones use the line with the results.
            self.start_access(argument_line, Access::Store)?;
            self.run_until(|bench| bench.permission(argument_line) == Right::Write)?;
            for _ in 0..1 + self.random.below(4) {
                self.start_access(argument_line, Access::Store)?;
            }
            let arguments = self.lines[argument_line].copy;
            let begin = self.cycle;
            self.start_access(result_line, Access::Store)?;
            self.run_until(|bench| bench.permission(result_line) == Right::Write)?;
            cycles += self.cycle - begin;
            let results = &self.lines[result_line].copy;
            if results[..self.words] != arguments.map(procedure)[..self.words] {
                return line_failure(result_line, "a call has another result".into());
            }
            if self.permission(argument_line) != Right::None {
                return line_failure(argument_line, "the remote has kept the arguments".into());
            }
        }
        self.settle()?;
        self.check_final_state()?;
        self.check_registers()?;
        Ok(cycles)
    }
}

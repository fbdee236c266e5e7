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
    pub orders: [Option<u64>; SLICES],
    pub swept: [bool; SLICES],
    /// Completed local operations of the endpoint, by line; and their total.
    taken: Vec<u64>,
    pub took: u64,
    /// For each slice, the line of a call (0 or 1) that the remote owns.
    remote: [usize; SLICES],
}

impl EndpointModel {
    pub fn new(endpoint: Endpoint, lines: usize) -> EndpointModel {
        EndpointModel {
            endpoint,
            taken: vec![0; lines],
            ..EndpointModel::default()
        }
    }

    /// True if the endpoint implements the memory.
    pub fn has_memory(&self) -> bool {
        self.endpoint != Endpoint::None
    }

    /// True if the endpoint drives the ports for local operations.
    pub fn asks(&self) -> bool {
        matches!(self.endpoint, Endpoint::Invalidation | Endpoint::Rpc)
    }
}

/// The remote procedure, which maps an argument word to a result word.
fn procedure(word: u64) -> u64 {
    word.wrapping_mul(3).wrapping_add(1)
}

impl Bench<'_> {
    /// Predicts the endpoint's action that must precede this event of the home.
    pub(super) fn predict_action(&mut self, at: usize, event: Event, evict: bool) {
        let words = self.words;
        let line = &mut self.lines[at];
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
                if self.behind.asks() && !evict && line.asked.is_empty() =>
            {
                line.asked.push_back(operation);
                self.record_port_event(PortEvent::Asks(at));
            }
            _ => {}
        }
    }

    /// Records the completion of the endpoint's local operation.
    pub(super) fn complete_endpoint_operation(&mut self, at: usize) -> Checked {
        self.behind.taken[at] += 1;
        self.behind.took += 1;
        self.record_port_event(PortEvent::Answers(at));
        if self.behind.endpoint != Endpoint::Rpc {
            return Ok(());
        }
        // The arguments have been taken; the results become the contents of the other line.
        let slice = at % SLICES;
        if at / SLICES != self.behind.remote[slice] {
            return wrong(at, "the endpoint takes its own line".into());
        }
        let results = self.lines[at].memory.map(procedure);
        self.behind.remote[slice] ^= 1;
        let other = &mut self.lines[slice + SLICES * self.behind.remote[slice]];
        (other.memory, other.latest) = (results, results);
        Ok(())
    }

    /// Handles the completion report of the invalidation engine for a range.
    pub(super) fn complete_invalidation(&mut self, s: usize, outputs: &Outputs) -> Checked {
        let refused = outputs.local_rsp[s] & ((1 << 36) - 1);
        self.progress = self.cycle;
        match refused {
            0 => self.behind.swept[s] = true,
            _ => {
                let what = format!("{refused} lines of a range were refused");
                return noticed(Check::Comparison, None, what);
            }
        }
        Ok(())
    }

    /// Commands the engines of both slices to take all lines.
    pub(super) fn command_engines(&mut self) {
        for s in 0..SLICES {
            self.behind.orders[s] = Some(((self.lines.len() / SLICES) as u64) << 40 | s as u64);
        }
    }

    /// Lets the remote obtain every line, half of them dirty; then the engine takes all of them, while the remote is
    /// idle or not. Returns the duration in cycles.
    pub(in crate::lockstep) fn sweep(&mut self, rests: bool) -> Checked<u64> {
        let lines = self.lines.len();
        for at in 0..lines {
            let access = [Access::Load, Access::Store][at / SLICES % 2];
            self.access(at, access)?;
            self.until(|bench| bench.right(at) >= Right::Read)?;
            self.access(at, access)?;
        }
        self.settle()?;
        let begin = self.cycle;
        self.command_engines();
        self.progress = self.cycle;
        while self.behind.swept != [true; SLICES] {
            if !rests {
                self.remote_acts()?;
            }
            self.one_cycle()?;
        }
        let cycles = self.cycle - begin;
        for at in 0..lines {
            if rests && self.right(at) != Right::None {
                return wrong(at, "the remote has kept a line of the range".into());
            }
            if self.behind.taken[at] != 1 {
                let taken = self.behind.taken[at];
                return wrong(at, format!("the line was taken {taken} times"));
            }
        }
        self.settle()?;
        self.check_final_state()?;
        self.registers()?;
        Ok(cycles)
    }

    /// Performs `calls` calls in each slice. Returns the sum of the cycles from the access to the other line until
    /// permission.
    pub(in crate::lockstep) fn calls(&mut self, calls: u64) -> Checked<u64> {
        let mut cycles = 0;
        for call in 0..calls * SLICES as u64 {
            let slice = call as usize % SLICES;
            let own = slice + SLICES * self.behind.remote[slice];
            let other = slice + SLICES * (1 - self.behind.remote[slice]);
            // The first call must obtain a line; later ones use the line with the results.
            self.access(own, Access::Store)?;
            self.until(|bench| bench.right(own) == Right::Write)?;
            for _ in 0..1 + self.chance.below(4) {
                self.access(own, Access::Store)?;
            }
            let arguments = self.lines[own].copy;
            let begin = self.cycle;
            self.access(other, Access::Store)?;
            self.until(|bench| bench.right(other) == Right::Write)?;
            cycles += self.cycle - begin;
            let results = &self.lines[other].copy;
            if results[..self.words] != arguments.map(procedure)[..self.words] {
                return wrong(other, "a call has another result".into());
            }
            if self.right(own) != Right::None {
                return wrong(own, "the remote has kept the arguments".into());
            }
        }
        self.settle()?;
        self.check_final_state()?;
        self.registers()?;
        Ok(cycles)
    }
}

//! An endpoint of RTL behind the home: what memory and the device do is not seen at the pins, but foretold.
//!
//! Everything else is as in every other run: the remote, its messages, the steps of the home and the bytes of its answers,
//! which here are those of the endpoint.

use super::*;
use crate::lockstep::shapes::Endpoint;

/// What is foretold of the endpoint.
#[derive(Default)]
pub(super) struct EndpointModel {
    pub endpoint: Endpoint,
    /// Orders to the invalidation engine that are not yet taken, and whether they are done.
    pub orders: [Option<u64>; SLICES],
    pub swept: [bool; SLICES],
    /// By line, local operations that the endpoint has had done; and all of them.
    taken: Vec<u64>,
    pub took: u64,
    /// By slice, which of the two lines of a call the remote has.
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

    /// Memory is the endpoint's.
    pub fn remembers(&self) -> bool {
        self.endpoint != Endpoint::None
    }

    /// So are the ports for local operations.
    pub fn asks(&self) -> bool {
        matches!(self.endpoint, Endpoint::Invalidation | Endpoint::Rpc)
    }
}

/// What becomes of a word in a call.
fn procedure(word: u64) -> u64 {
    word.wrapping_mul(3).wrapping_add(1)
}

impl Bench<'_> {
    /// What the endpoint must have done for the home to take this event.
    pub(super) fn foretell(&mut self, at: usize, event: Event, evict: bool) {
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
                self.cross(Crossing::Asks(at));
            }
            _ => {}
        }
    }

    /// The endpoint hears that its operation is done.
    pub(super) fn taken_inside(&mut self, at: usize) -> Checked {
        self.behind.taken[at] += 1;
        self.behind.took += 1;
        self.cross(Crossing::Answers(at));
        if self.behind.endpoint != Endpoint::Rpc {
            return Ok(());
        }
        // The arguments are here; the results become the other line's bytes.
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

    /// The invalidation engine says that a range is done.
    pub(super) fn done_inside(&mut self, s: usize, outputs: &Outputs) -> Checked {
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

    /// Orders the engines of both slices to take all lines.
    pub(super) fn order_all(&mut self) {
        for s in 0..SLICES {
            self.behind.orders[s] = Some(((self.lines.len() / SLICES) as u64) << 40 | s as u64);
        }
    }

    /// The remote holds every line, half of them dirty; then the engine takes all of them, while the remote rests, or not.
    /// Gives the cycles that it took.
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
        self.order_all();
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
        self.at_the_end()?;
        self.registers()?;
        Ok(cycles)
    }

    /// So many calls in each slice; gives the cycles from the read of the other line to the right to it, added up.
    pub(in crate::lockstep) fn calls(&mut self, calls: u64) -> Checked<u64> {
        let mut cycles = 0;
        for call in 0..calls * SLICES as u64 {
            let slice = call as usize % SLICES;
            let own = slice + SLICES * self.behind.remote[slice];
            let other = slice + SLICES * (1 - self.behind.remote[slice]);
            // The first call needs a line; later ones have the one of the results.
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
        self.at_the_end()?;
        self.registers()?;
        Ok(cycles)
    }
}

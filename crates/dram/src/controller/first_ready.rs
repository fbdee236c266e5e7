//! FR-FCFS: the oldest burst whose column command is legal comes first, then the oldest that needs another command.
//!
//! A row is closed for another one only if no queued burst hits it. Nothing delays a burst that has waited for too
//! long, so that none starves.

use std::collections::VecDeque;

use super::banks::Banks;
use super::timing::Clock;
use super::{Burst, Served};

/// Queue of a channel with one command per clock.
pub(crate) struct FirstReady {
    queue: VecDeque<Burst>,
    /// Maximum number of bursts in the queue.
    capacity: usize,
    /// Clocks in the queue after which no column command may delay the oldest burst.
    max_wait: Clock,
    /// True if a row is closed after the last queued burst that hits it.
    closes_rows: bool,
}

/// Returns a mask with the bit of a bank.
fn mask(bank: usize) -> u64 {
    1 << bank
}

/// True if a column command of `burst` would delay `first`: in its bank, or when its own column command is the next
/// one.
fn delays(burst: &Burst, first: &Burst, banks: &Banks) -> bool {
    burst.bank == first.bank || banks.open_row(first.bank) == Some(first.row)
}

impl FirstReady {
    pub fn new(capacity: usize, max_wait: Clock, closes_rows: bool) -> FirstReady {
        FirstReady {
            queue: VecDeque::new(),
            capacity,
            max_wait,
            closes_rows,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Accepts a burst, if there is room.
    pub fn accept(&mut self, burst: Burst) -> bool {
        let has_room = self.queue.len() < self.capacity;
        if has_room {
            self.queue.push_back(burst);
        }
        has_room
    }

    /// Issues at most one command at `now`. Returns the next clock at which one may be legal, and the burst that was
    /// transferred, if any.
    pub fn step(&mut self, now: Clock, banks: &mut Banks) -> (Clock, Option<Served>) {
        let is_overdue = |burst: &&Burst| now - burst.since > self.max_wait;
        let overdue = self.queue.front().filter(is_overdue).copied();
        let mut next = Clock::MAX;
        // Banks whose open row a queued burst hits.
        let mut hit_banks = 0;
        for index in 0..self.queue.len() {
            let burst = &self.queue[index];
            if banks.open_row(burst.bank) != Some(burst.row)
                || index > 0 && overdue.is_some_and(|first| delays(burst, &first, banks))
            {
                continue;
            }
            hit_banks |= mask(burst.bank);
            let earliest = banks.column_from(burst.bank, burst.write);
            if earliest <= now {
                return (now + 1, self.serve(now, banks, index));
            }
            next = next.min(earliest);
        }
        let mut seen_banks = hit_banks;
        for burst in &mut self.queue {
            if seen_banks & mask(burst.bank) != 0 {
                continue;
            }
            seen_banks |= mask(burst.bank);
            let is_open = banks.open_row(burst.bank).is_some();
            let earliest = match is_open {
                true => banks.precharge_from(burst.bank),
                false => banks.activate_from(burst.bank),
            };
            if earliest > now {
                next = next.min(earliest);
                continue;
            }
            match is_open {
                true => banks.precharge(now, burst.bank),
                false => {
                    banks.activate(now, burst.bank, burst.row);
                    burst.missed = true;
                }
            }
            return (now + 1, None);
        }
        // When the oldest burst becomes overdue, other commands may be legal.
        let overdue_from = self
            .queue
            .front()
            .map(|burst| burst.since + self.max_wait + 1);
        (
            next.min(
                overdue_from
                    .filter(|&clock| clock > now)
                    .unwrap_or(Clock::MAX),
            ),
            None,
        )
    }

    /// Transfers a burst whose column command is legal.
    fn serve(&mut self, now: Clock, banks: &mut Banks, index: usize) -> Option<Served> {
        let burst = self.queue.remove(index)?;
        let hits = |other: &Burst| other.bank == burst.bank && other.row == burst.row;
        let closes = self.closes_rows && !self.queue.iter().any(hits);
        let end = banks.column(now, burst.bank, burst.write, closes);
        Some(Served { burst, end })
    }
}

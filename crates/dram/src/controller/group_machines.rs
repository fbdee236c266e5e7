//! Group machines of the UltraScale controller: four queues, each strictly in order, with round robin between them.
//!
//! The controller has a clock of its own, a whole number of clocks of the DRAM. In each of its clocks it issues at most
//! one column command, one activate and one precharge, in slots that follow each other. The first stage of a group
//! machine opens the rows of its bursts in order; the second stage transfers them in order. So the row of a burst may
//! be opened while earlier bursts wait for their column commands, unless one of them needs another row of the same
//! bank.

use std::collections::VecDeque;

use super::banks::Banks;
use super::timing::Clock;
use super::{Burst, Served};

/// Number of group machines of a channel.
pub(crate) const MACHINES: usize = 4;

/// Clocks from the start of a controller clock to the slot of an activate and of a precharge. The slot of a column
/// command is the first one.
const ACTIVATE_SLOT: Clock = 1;
const PRECHARGE_SLOT: Clock = 2;

/// Queue of a group machine. All bursts of a bank are in one machine, so only its arrivals, its commands and refreshes
/// change what it needs.
#[derive(Default)]
struct Machine {
    queue: VecDeque<Burst>,
    /// Number of bursts at the head of the queue whose row has been opened.
    prepared: usize,
    /// Bank of the first burst that is not prepared, and the command that it needs: updated after each change.
    needed: Option<(usize, Preparation)>,
}

/// Command that a group machine needs for the first burst whose row is not open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preparation {
    Activate,
    Precharge,
}

/// Group machines of a channel.
pub(crate) struct GroupMachines {
    machines: [Machine; MACHINES],
    /// Maximum number of bursts of each machine.
    capacity: usize,
    /// Clocks of the DRAM in one of the controller.
    ratio: Clock,
    /// True if a row is closed after a burst unless the next burst of the machine hits it.
    closes_rows: bool,
    /// Machine that comes first for the next column command, activate and precharge.
    first: [usize; 3],
    /// Number of bursts in all queues.
    queued: usize,
    /// Machines, as bits, with a burst whose row is open, and those that need an activate and a precharge. Most passes
    /// over the machines concern one or none.
    candidates: [u8; 3],
}

impl GroupMachines {
    pub fn new(capacity: usize, ratio: Clock, closes_rows: bool) -> GroupMachines {
        GroupMachines {
            machines: Default::default(),
            capacity,
            ratio,
            closes_rows,
            first: [0; 3],
            queued: 0,
            candidates: [0; 3],
        }
    }

    /// Notes the commands for which a machine that has changed is a candidate.
    #[inline(always)]
    fn update_candidates(&mut self, index: usize) {
        let machine = &self.machines[index];
        let needed = machine.needed.map(|(_, preparation)| preparation);
        let is_candidate = [
            machine.prepared > 0,
            needed == Some(Preparation::Activate),
            needed == Some(Preparation::Precharge),
        ];
        for (candidates, is_candidate) in self.candidates.iter_mut().zip(is_candidate) {
            *candidates = *candidates & !(1 << index) | u8::from(is_candidate) << index;
        }
    }

    /// Iterates over the candidates for a command, from the machine whose turn it is.
    #[inline(always)]
    fn candidates_in_turn(&self, turn: usize) -> impl Iterator<Item = usize> {
        let (candidates, start) = (self.candidates[turn], self.first[turn]);
        let mut rotated = (candidates >> start | candidates << (MACHINES - start)) & 15;
        std::iter::from_fn(move || {
            let place = rotated.trailing_zeros() as usize;
            rotated &= rotated.wrapping_sub(1);
            (place < MACHINES).then_some((start + place) % MACHINES)
        })
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Accepts a burst, if its machine has room.
    pub fn accept(&mut self, burst: Burst, banks: &Banks) -> bool {
        let index = burst.bank % MACHINES;
        let machine = &mut self.machines[index];
        let has_room = machine.queue.len() < self.capacity;
        if has_room {
            self.queued += 1;
            machine.queue.push_back(burst);
            if machine.prepared + 1 == machine.queue.len() {
                machine.examine(banks);
                self.update_candidates(index);
            }
        }
        has_room
    }

    /// Notes that all rows have been closed by a refresh.
    pub fn forget_open_rows(&mut self) {
        for index in 0..MACHINES {
            let machine = &mut self.machines[index];
            machine.prepared = 0;
            machine.needed =
                (machine.queue.front()).map(|burst| (burst.bank, Preparation::Activate));
            self.update_candidates(index);
        }
    }

    /// Returns the first clock of the controller from `clock` on.
    #[inline]
    pub fn align(&self, clock: Clock) -> Clock {
        match self.ratio.is_power_of_two() {
            true => (clock + self.ratio - 1) & !(self.ratio - 1),
            false => clock.next_multiple_of(self.ratio),
        }
    }

    /// Issues the commands of the controller clock that starts at `now`. Returns the next clock at which one may be
    /// legal, and the burst that was transferred, if any.
    pub fn step(&mut self, now: Clock, banks: &mut Banks) -> (Clock, Option<Served>) {
        let mut next = Clock::MAX;
        let served = self.issue_column(now, banks, &mut next);
        let activated = self.issue_preparation(now, banks, Preparation::Activate, &mut next);
        self.issue_preparation(now, banks, Preparation::Precharge, &mut next);
        // Bursts behind the one whose row was opened are prepared from the next clock of the controller on.
        if let Some(activated) = activated {
            self.machines[activated].examine(banks);
            self.update_candidates(activated);
        }
        match next {
            Clock::MAX => (next, served),
            next => (self.align(next.max(now + 1)), served),
        }
    }

    /// Issues a column command of the first machine in turn whose oldest burst may be transferred.
    fn issue_column(&mut self, now: Clock, banks: &mut Banks, next: &mut Clock) -> Option<Served> {
        for index in self.candidates_in_turn(0) {
            let machine = &mut self.machines[index];
            let burst = machine.queue.front()?;
            let earliest = banks.column_from(burst.bank, burst.write);
            if earliest > now {
                *next = (*next).min(earliest);
                continue;
            }
            let burst = machine.queue.pop_front()?;
            machine.prepared -= 1;
            self.queued -= 1;
            let mut others = machine
                .queue
                .iter()
                .filter(|other| other.bank == burst.bank);
            let closes = self.closes_rows && others.next().is_none_or(|next| next.row != burst.row);
            self.first[0] = (index + 1) % MACHINES;
            // The next command may be legal in the next clock of the controller.
            *next = now + 1;
            let end = banks.column(now, burst.bank, burst.write, closes);
            machine.needed = machine.needed_preparation(banks);
            self.update_candidates(index);
            return Some(Served { burst, end });
        }
        None
    }

    /// Issues an activate, or a precharge, of the first machine in turn that needs one. Returns that machine.
    #[inline(always)]
    fn issue_preparation(
        &mut self,
        now: Clock,
        banks: &mut Banks,
        kind: Preparation,
        next: &mut Clock,
    ) -> Option<usize> {
        let (turn, slot) = match kind {
            Preparation::Activate => (1, now + ACTIVATE_SLOT.min(self.ratio - 1)),
            Preparation::Precharge => (2, now + PRECHARGE_SLOT.min(self.ratio - 1)),
        };
        for index in self.candidates_in_turn(turn) {
            let machine = &mut self.machines[index];
            let (bank, _) = machine.needed?;
            let earliest = match kind {
                Preparation::Activate => banks.activate_from(bank),
                Preparation::Precharge => banks.precharge_from(bank),
            };
            if earliest > slot {
                // The clock of the controller whose slot is the first legal one.
                *next = (*next).min(earliest - (slot - now));
                continue;
            }
            let burst = &mut machine.queue[machine.prepared];
            match kind {
                Preparation::Activate => {
                    banks.activate(slot, burst.bank, burst.row);
                    burst.missed = true;
                    machine.prepared += 1;
                }
                Preparation::Precharge => banks.precharge(slot, burst.bank),
            }
            machine.needed = machine.needed_preparation(banks);
            self.update_candidates(index);
            self.first[turn] = (index + 1) % MACHINES;
            *next = now + 1;
            return Some(index);
        }
        None
    }
}

impl Machine {
    /// True if a burst whose row is open must be transferred before another row of the bank is opened.
    fn has_prepared(&self, bank: usize) -> bool {
        let mut prepared = self.queue.iter().take(self.prepared);
        prepared.any(|burst| burst.bank == bank)
    }

    /// Counts bursts as prepared whose row is open already, and determines the command that the next one needs.
    fn examine(&mut self, banks: &Banks) {
        while let Some(burst) = self.queue.get(self.prepared) {
            if banks.open_row(burst.bank) != Some(burst.row) {
                break;
            }
            self.prepared += 1;
        }
        self.needed = self.needed_preparation(banks);
    }

    /// Returns the bank of the first burst that is not prepared, and the command that it needs. A bank that serves
    /// prepared bursts is not closed.
    fn needed_preparation(&self, banks: &Banks) -> Option<(usize, Preparation)> {
        let burst = self.queue.get(self.prepared)?;
        match banks.open_row(burst.bank) {
            None => Some((burst.bank, Preparation::Activate)),
            Some(_) if self.has_prepared(burst.bank) => None,
            Some(_) => Some((burst.bank, Preparation::Precharge)),
        }
    }
}

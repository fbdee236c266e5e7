//! Group machines of the UltraScale controller: four queues, each strictly in order, with round robin between them.
//!
//! The controller has a clock of its own, a whole number of clocks of the DRAM. In each of its clocks it issues at most
//! one column command, one activate and one precharge, in slots that follow each other. The first stage of a group
//! machine opens the rows of its bursts in order; the second stage transfers them in order. So the row of a burst may
//! be opened while earlier bursts wait for their column commands, unless one of them needs another row of the same
//! bank.

use std::ops::Range;

use super::banks::Banks;
use super::timing::Clock;
use super::{Burst, Served};

/// Number of group machines of a channel.
pub(crate) const MACHINES: usize = 4;

/// Clocks from the start of a controller clock to the slot of an activate and of a precharge. The slot of a column
/// command is the first one.
const ACTIVATE_SLOT: Clock = 1;
const PRECHARGE_SLOT: Clock = 2;

/// Bursts in the order of their arrival, at most a fixed number.
struct BurstQueue {
    /// Ring buffer, whose length is a power of two.
    bursts: Box<[Burst]>,
    /// Place of the oldest burst, and number of bursts.
    head: usize,
    len: usize,
}

impl BurstQueue {
    fn new(capacity: usize) -> BurstQueue {
        BurstQueue {
            bursts: vec![Burst::default(); capacity.next_power_of_two()].into(),
            head: 0,
            len: 0,
        }
    }

    /// Returns the burst at a position, of which the oldest is 0.
    #[inline(always)]
    fn at(&mut self, position: usize) -> &mut Burst {
        let mask = self.bursts.len() - 1;
        &mut self.bursts[(self.head + position) & mask]
    }

    #[inline(always)]
    fn push(&mut self, burst: Burst) {
        *self.at(self.len) = burst;
        self.len += 1;
    }

    /// Removes the oldest burst.
    #[inline(always)]
    fn pop(&mut self) {
        self.head = (self.head + 1) & (self.bursts.len() - 1);
        self.len -= 1;
    }

    /// Returns the first burst of a bank at one of some positions.
    #[inline(always)]
    fn first_of_bank(&mut self, bank: usize, positions: Range<usize>) -> Option<Burst> {
        for position in positions {
            let burst = *self.at(position);
            if burst.bank == bank {
                return Some(burst);
            }
        }
        None
    }
}

/// Queue of a group machine. All bursts of a bank are in one machine, so only its arrivals, its commands and refreshes
/// change what it needs.
struct Machine {
    queue: BurstQueue,
    /// Number of bursts at the head of the queue whose row has been opened.
    prepared: usize,
    /// Bank of the first burst that is not prepared, while the machine is a candidate for an activate or a precharge.
    needed_bank: usize,
}

/// Commands that a group machine may issue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Column,
    Activate,
    Precharge,
}

impl Kind {
    /// First of the bits in [`GroupMachines::candidates`] for this kind, of which each machine has one.
    const fn shift(self) -> usize {
        self as usize * MACHINES
    }
}

/// One bit for each machine, and the first machine's bit of each kind.
const ALL_MACHINES: u32 = (1 << MACHINES) - 1;
const ALL_KINDS: u32 =
    1 << Kind::Column.shift() | 1 << Kind::Activate.shift() | 1 << Kind::Precharge.shift();

/// Group machines of a channel.
pub(crate) struct GroupMachines {
    machines: [Machine; MACHINES],
    /// Maximum number of bursts of each machine.
    capacity: usize,
    /// Clocks of the DRAM in one of the controller.
    ratio: Clock,
    /// True if a row is closed after a burst unless the next burst of the machine hits it.
    closes_rows: bool,
    /// Machine that comes first for the next command of each kind.
    first: [usize; 3],
    /// Number of bursts in all queues.
    queued: usize,
    /// Machines, as bits from [`Kind::shift`] on, with a burst whose row is open, and those that need an activate and a
    /// precharge: updated after each change. Most passes over the machines concern one or none.
    candidates: u32,
}

/// Machines as bits, in the order in which their turn comes.
struct InTurn {
    /// Bits of the machines from `start` on.
    rotated: u32,
    start: usize,
}

impl Iterator for InTurn {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.rotated == 0 {
            return None;
        }
        let place = self.rotated.trailing_zeros() as usize;
        self.rotated &= self.rotated - 1;
        Some((self.start + place) % MACHINES)
    }
}

impl GroupMachines {
    pub fn new(capacity: usize, ratio: Clock, closes_rows: bool) -> GroupMachines {
        let new_machine = |_| Machine {
            queue: BurstQueue::new(capacity),
            prepared: 0,
            needed_bank: 0,
        };
        GroupMachines {
            machines: std::array::from_fn(new_machine),
            capacity,
            ratio,
            closes_rows,
            first: [0; 3],
            queued: 0,
            candidates: 0,
        }
    }

    /// Determines the commands for which a machine that has changed is a candidate.
    #[inline(always)]
    fn update_candidates(&mut self, index: usize, banks: &Banks) {
        let machine = &mut self.machines[index];
        let needed = machine.needed_preparation(banks);
        let bits = u32::from(machine.prepared > 0) << Kind::Column.shift()
            | u32::from(needed == Some(Kind::Activate)) << Kind::Activate.shift()
            | u32::from(needed == Some(Kind::Precharge)) << Kind::Precharge.shift();
        self.candidates = self.candidates & !(ALL_KINDS << index) | bits << index;
    }

    /// Iterates over the candidates for a command, from the machine whose turn it is.
    #[inline(always)]
    fn candidates_in_turn(&self, kind: Kind) -> InTurn {
        let start = self.first[kind as usize];
        let candidates = self.candidates >> kind.shift() & ALL_MACHINES;
        InTurn {
            rotated: (candidates | candidates << MACHINES) >> start & ALL_MACHINES,
            start,
        }
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Accepts a burst, if its machine has room.
    #[inline(always)]
    pub fn accept(&mut self, burst: Burst, banks: &Banks) -> bool {
        let index = burst.bank % MACHINES;
        let machine = &mut self.machines[index];
        let has_room = machine.queue.len < self.capacity;
        if has_room {
            self.queued += 1;
            machine.queue.push(burst);
            if machine.prepared + 1 == machine.queue.len {
                machine.count_prepared(banks);
                self.update_candidates(index, banks);
            }
        }
        has_room
    }

    /// Notes that all rows have been closed by a refresh.
    pub fn forget_open_rows(&mut self, banks: &Banks) {
        for index in 0..MACHINES {
            self.machines[index].prepared = 0;
            self.update_candidates(index, banks);
        }
    }

    /// Returns the first clock of the controller from `clock` on.
    #[inline(always)]
    pub fn align(&self, clock: Clock) -> Clock {
        match self.ratio.is_power_of_two() {
            true => (clock + self.ratio - 1) & !(self.ratio - 1),
            false => clock.next_multiple_of(self.ratio),
        }
    }

    /// Issues the commands of the controller clock that starts at `now`. Returns a clock before which none is legal,
    /// and the burst that was transferred, if any.
    #[inline(always)]
    pub fn step(&mut self, now: Clock, banks: &mut Banks) -> (Clock, Option<Served>) {
        let mut next = Clock::MAX;
        let served = self.issue_column(now, banks, &mut next);
        let activated = self.issue_preparation(now, banks, Kind::Activate, &mut next);
        self.issue_preparation(now, banks, Kind::Precharge, &mut next);
        // Bursts behind the one whose row was opened are prepared from the next clock of the controller on.
        if let Some(activated) = activated {
            self.machines[activated].count_prepared(banks);
            self.update_candidates(activated, banks);
        }
        (next, served)
    }

    /// Issues a column command of the first machine in turn whose oldest burst may be transferred.
    #[inline(always)]
    fn issue_column(&mut self, now: Clock, banks: &mut Banks, next: &mut Clock) -> Option<Served> {
        for index in self.candidates_in_turn(Kind::Column) {
            let machine = &mut self.machines[index];
            let burst = *machine.queue.at(0);
            let bank = burst.bank;
            let earliest = banks.column_from(bank, burst.write);
            if earliest > now {
                *next = (*next).min(earliest);
                continue;
            }
            machine.queue.pop();
            machine.prepared -= 1;
            self.queued -= 1;
            let closes = self.closes_rows && {
                let all = 0..machine.queue.len;
                let other = machine.queue.first_of_bank(burst.bank, all);
                other.is_none_or(|next| next.row != burst.row)
            };
            self.first[Kind::Column as usize] = (index + 1) % MACHINES;
            // The next command may be legal in the next clock of the controller.
            *next = now + 1;
            let end = banks.column(now, bank, burst.write, closes);
            self.update_candidates(index, banks);
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
        kind: Kind,
        next: &mut Clock,
    ) -> Option<usize> {
        let is_activate = kind == Kind::Activate;
        let slot = match is_activate {
            true => now + ACTIVATE_SLOT.min(self.ratio - 1),
            false => now + PRECHARGE_SLOT.min(self.ratio - 1),
        };
        for index in self.candidates_in_turn(kind) {
            let machine = &mut self.machines[index];
            let bank = machine.needed_bank;
            let earliest = match is_activate {
                true => banks.activate_from(bank),
                false => banks.precharge_from(bank),
            };
            if earliest > slot {
                // The clock of the controller whose slot is the first legal one.
                *next = (*next).min(earliest - (slot - now));
                continue;
            }
            match is_activate {
                true => {
                    let burst = machine.queue.at(machine.prepared);
                    banks.activate(slot, bank, burst.row);
                    burst.missed = true;
                    machine.prepared += 1;
                }
                false => banks.precharge(slot, bank),
            }
            self.update_candidates(index, banks);
            self.first[kind as usize] = (index + 1) % MACHINES;
            *next = now + 1;
            return Some(index);
        }
        None
    }
}

impl Machine {
    /// Counts bursts as prepared whose row is open already.
    #[inline(always)]
    fn count_prepared(&mut self, banks: &Banks) {
        while self.prepared < self.queue.len {
            let burst = self.queue.at(self.prepared);
            if banks.open_row(burst.bank) != Some(burst.row) {
                break;
            }
            self.prepared += 1;
        }
    }

    /// Returns the command that the first burst needs that is not prepared, if any, and notes its bank. A bank that
    /// serves prepared bursts is not closed.
    #[inline(always)]
    fn needed_preparation(&mut self, banks: &Banks) -> Option<Kind> {
        if self.prepared == self.queue.len {
            return None;
        }
        let Burst { bank, row, .. } = *self.queue.at(self.prepared);
        self.needed_bank = bank;
        match banks.open_row(bank) {
            None => Some(Kind::Activate),
            // It counts as prepared from the next clock of the controller on.
            Some(open_row) if open_row == row => None,
            Some(_) => {
                let prepared = self.queue.first_of_bank(bank, 0..self.prepared);
                prepared.is_none().then_some(Kind::Precharge)
            }
        }
    }
}

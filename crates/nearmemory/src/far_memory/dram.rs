//! DRAM of far memory: with few parameters, where the end of an operation is known at its start, or with the timing of
//! JEDEC and a scheduler, which determines the end later.

use cohkit_dram::{Controller, Finished, InOrderMemory, Line, Memory};
use cohkit_units::Time;
use std::collections::VecDeque;
use std::ops::Range;

/// DRAM with its operations in progress. Each has a user of type `U`, which is returned with the end of the operation.
pub(crate) enum FarDram<U> {
    /// The end of an operation is known at its start.
    InOrder(InOrderMemory),
    /// The end of an operation is known once its last column command is issued.
    Scheduled(Box<ScheduledDram<U>>),
}

/// Ends of operations in picoseconds, with their users.
pub(crate) type Ends<U> = VecDeque<(Time, U)>;

/// DRAM with a scheduler.
pub(crate) struct ScheduledDram<U> {
    controller: Controller,
    /// Users of the operations in progress, by number; `None` for a free number.
    users: Vec<Option<U>>,
    /// Free numbers.
    free: Vec<u32>,
    /// Time of the earliest turn that has been requested and has not been taken, in picoseconds.
    next_turn: Time,
    /// Finished operations of a turn.
    finished: Vec<Finished>,
    row_hits: u64,
    row_misses: u64,
}

impl<U> FarDram<U> {
    /// Creates idle DRAM for lines of `line_bytes`.
    pub(crate) fn new(memory: &Memory, line_bytes: u32) -> FarDram<U> {
        match memory {
            Memory::Jedec(dram) => FarDram::Scheduled(Box::new(ScheduledDram {
                controller: Controller::new(dram, line_bytes),
                users: Vec::new(),
                free: Vec::new(),
                next_turn: Time::MAX,
                finished: Vec::new(),
                row_hits: 0,
                row_misses: 0,
            })),
            memory => FarDram::InOrder(InOrderMemory::new(memory, line_bytes)),
        }
    }

    /// Starts an operation that reaches the DRAM at `arrival`, on some bytes of a line. DRAM with few parameters
    /// transfers the whole line. An end that is known at once is added to `ends`.
    pub(crate) fn start(
        &mut self,
        arrival: Time,
        (line, bytes): (Line, Range<u32>),
        writes: bool,
        user: U,
        ends: &mut Ends<U>,
    ) {
        match self {
            FarDram::InOrder(memory) => ends.push_back((memory.operate(arrival, line), user)),
            FarDram::Scheduled(dram) => {
                let number = dram.free.pop().unwrap_or_else(|| {
                    dram.users.push(None);
                    dram.users.len() as u32 - 1
                });
                dram.users[number as usize] = Some(user);
                dram.controller
                    .submit(arrival, (line, bytes), writes, number);
            }
        }
    }

    /// Returns the time of a turn that the caller must schedule, in picoseconds, if there is a new one.
    pub(crate) fn request_turn(&mut self) -> Option<Time> {
        let FarDram::Scheduled(dram) = self else {
            return None;
        };
        let next = dram.controller.next()?;
        let is_new = next < dram.next_turn;
        dram.next_turn = dram.next_turn.min(next);
        is_new.then_some(next)
    }

    /// Takes the turn that was scheduled for `now`: issues the commands that are due. Ends that are then known
    /// are added to `ends`.
    pub(crate) fn take_turn(&mut self, now: Time, ends: &mut Ends<U>) {
        let FarDram::Scheduled(dram) = self else {
            return;
        };
        // A turn may have been scheduled before an earlier one.
        if dram.next_turn > now {
            return;
        }
        dram.next_turn = Time::MAX;
        dram.controller.advance(now, &mut dram.finished);
        for operation in dram.finished.drain(..) {
            dram.row_hits += u64::from(!operation.missed);
            dram.row_misses += u64::from(operation.missed);
            dram.free.push(operation.number);
            let user = dram.users[operation.number as usize].take();
            ends.extend(user.map(|user| (operation.end, user)));
        }
    }

    /// Returns the numbers of operations that found their rows open, and of those for which a row had to be opened.
    pub(crate) fn row_hits_and_misses(&self) -> (u64, u64) {
        match self {
            FarDram::InOrder(memory) => (memory.row_hits, memory.row_misses),
            FarDram::Scheduled(dram) => (dram.row_hits, dram.row_misses),
        }
    }
}

//! Copies lines between the scratchpad and far memory, or memory of the host's own, while the core goes on. The stamps of lines tell what is done.

use crate::scratchpad::{Data, Scratchpad, LINE};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Which way lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From far memory to the scratchpad.
    Fetch,
    /// From the scratchpad to far memory.
    Store,
}

/// A copy of lines that lie one behind the other on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub way: Way,
    /// The first line of the scratchpad.
    pub line: usize,
    /// How many lines.
    pub lines: usize,
    /// The first address of far memory.
    pub far: u64,
}

/// Why a transfer does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many are under way as there may be: later it can begin.
    Busy,
    /// It never can.
    Wrong(Unfit),
}

/// What is wrong with a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It has no line.
    NoLine,
    /// It begins within a line of far memory.
    WithinLine,
    /// Not all of its lines are in the scratchpad.
    Scratchpad,
    /// Not all of its lines are in one range of far memory.
    Far,
}

/// What the engine asks of far memory: one line. Answers may come in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number by which it is answered.
    pub number: u64,
    /// The address.
    pub far: u64,
    /// The line to be written; nothing for a read.
    pub data: Option<Box<Data>>,
}

/// A line of a transfer.
#[derive(Clone, Copy, Debug)]
struct Part {
    transfer: u64,
    way: Way,
    line: usize,
    far: u64,
}

/// The engine: transfers under way, of which no order is promised, neither among them nor among their lines.
#[derive(Clone, Debug)]
pub struct Copier {
    far: Vec<Range<u64>>,
    most: usize,
    /// Transfers by number, and how many of their lines are not done.
    left: BTreeMap<u64, usize>,
    /// Lines that far memory has not been asked for.
    waiting: VecDeque<Part>,
    /// What far memory has been asked, by number.
    asked: BTreeMap<u64, Part>,
    transfers: u64,
    accesses: u64,
}

impl Copier {
    /// For these ranges of far memory, in one of which all of a transfer lies, with so many transfers under way at once.
    pub fn new(far: Vec<Range<u64>>, most: usize) -> Copier {
        Copier {
            far,
            most,
            left: BTreeMap::new(),
            waiting: VecDeque::new(),
            asked: BTreeMap::new(),
            transfers: 0,
            accesses: 0,
        }
    }

    /// Forgets what is under way, and goes on with other ranges. Answers to what was asked before are known by their numbers.
    pub fn give(&mut self, far: Vec<Range<u64>>, most: usize) {
        let (transfers, accesses) = (self.transfers, self.accesses);
        *self = Copier {
            transfers,
            accesses,
            ..Copier::new(far, most)
        };
    }

    /// How many transfers are under way.
    pub fn under_way(&self) -> usize {
        self.left.len()
    }

    /// Whether far memory is to be asked for something.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether all lines of it are there. `lines` is how many the scratchpad has.
    fn fits(&self, transfer: Transfer, lines: usize) -> Result<(), Unfit> {
        let bytes = (transfer.lines as u64).checked_mul(LINE as u64);
        let end = bytes.and_then(|bytes| transfer.far.checked_add(bytes));
        let last = transfer.line.checked_add(transfer.lines);
        if transfer.lines == 0 {
            return Err(Unfit::NoLine);
        }
        if last.is_none_or(|last| last > lines) {
            return Err(Unfit::Scratchpad);
        }
        if !transfer.far.is_multiple_of(LINE as u64) {
            return Err(Unfit::WithinLine);
        }
        let there = end.is_some_and(|end| {
            let holds = |range: &Range<u64>| range.start <= transfer.far && end <= range.end;
            self.far.iter().any(holds)
        });
        there.then_some(()).ok_or(Unfit::Far)
    }

    /// Begins a transfer. `lines` is how many the scratchpad has.
    pub fn begin(&mut self, transfer: Transfer, lines: usize) -> Result<(), Refusal> {
        self.fits(transfer, lines).map_err(Refusal::Wrong)?;
        if self.left.len() >= self.most {
            return Err(Refusal::Busy);
        }
        let number = self.transfers;
        self.transfers += 1;
        self.left.insert(number, transfer.lines);
        self.waiting.extend((0..transfer.lines).map(|i| Part {
            transfer: number,
            way: transfer.way,
            line: transfer.line + i,
            far: transfer.far + (i * LINE) as u64,
        }));
        Ok(())
    }

    /// What far memory is to be asked next. A line that is stored is read from the scratchpad now.
    pub fn ask(&mut self, scratchpad: &Scratchpad) -> Option<Access> {
        let part = self.waiting.pop_front()?;
        let number = self.accesses;
        self.accesses += 1;
        self.asked.insert(number, part);
        let data = match part.way {
            Way::Fetch => None,
            Way::Store => scratchpad.line(part.line).map(|data| Box::new(*data)),
        };
        let far = part.far;
        Some(Access { number, far, data })
    }

    /// Far memory has done what it was asked by this number; `data` is what it has read. The line gets its stamp: that of
    /// writes if it was fetched, that of reads if it is in far memory. Says whether there was such a question.
    pub fn done(
        &mut self,
        scratchpad: &mut Scratchpad,
        number: u64,
        data: &Data,
        now: u64,
    ) -> bool {
        let Some(part) = self.asked.remove(&number) else {
            return false;
        };
        match part.way {
            Way::Fetch => scratchpad.fill(part.line, data, now),
            Way::Store => scratchpad.drained(part.line, now),
        }
        if let Some(left) = self.left.get_mut(&part.transfer) {
            *left -= 1;
            if *left == 0 {
                self.left.remove(&part.transfer);
            }
        }
        true
    }
}

//! The copy engine: copies lines between the scratchpad and far memory, or host memory, in parallel with the core.
//! Timestamps of scratchpad lines show completion.

use crate::scratchpad::{Data, Scratchpad, LINE};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From far memory, or from the host's memory, to the scratchpad.
    Fetch,
    /// From the scratchpad to far memory, or to the host's memory.
    Store,
}

/// A copy of lines that are contiguous on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Direction.
    pub direction: Direction,
    /// First line of the scratchpad.
    pub line: usize,
    /// Number of lines.
    pub lines: usize,
    /// First address in far memory or in the host's memory; a multiple of [`LINE`] in a valid transfer.
    pub far: u64,
}

/// Reason for which a transfer does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The maximum number of transfers is outstanding; a later attempt may succeed.
    Busy,
    /// The transfer is invalid.
    Invalid(TransferError),
}

/// Reason for which a transfer is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The transfer has no lines.
    NoLine,
    /// Its far address is not aligned to a line.
    WithinLine,
    /// Its lines exceed the scratchpad.
    Scratchpad,
    /// Its lines are not within one permitted range of far memory.
    Far,
}

/// A request to far memory, for one line. Responses may arrive in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Number of the access, which [`Copier::complete_access`] repeats.
    pub number: u64,
    /// Address of the line.
    pub far: u64,
    /// Contents to write; `None` for a read.
    pub data: Option<Box<Data>>,
}

/// One line of a transfer.
#[derive(Clone, Copy, Debug)]
struct LineCopy {
    /// Number of the transfer, a key of [`Copier::remaining_lines`].
    transfer: u64,
    direction: Direction,
    /// Index of the scratchpad line.
    line: usize,
    /// Address of the other side.
    far: u64,
}

/// The engine. A channel requests the lines of its transfers in order, and they are copied in any order. Transfers of
/// one direction are counted as complete in the order of their start.
#[derive(Clone, Debug)]
pub struct Copier {
    /// Address ranges that transfers may read and write.
    far: Vec<Range<u64>>,
    /// Maximum number of outstanding transfers.
    max_transfers: usize,
    /// Number of incomplete lines of each outstanding transfer.
    remaining_lines: BTreeMap<u64, usize>,
    /// Number of started transfers by direction, and those of them that are not counted as complete, oldest first.
    started: [u64; 2],
    uncounted: [VecDeque<u64>; 2],
    /// Lines not yet requested from far memory, by channel.
    waiting: Vec<VecDeque<LineCopy>>,
    /// Number of outstanding accesses, by channel.
    in_flight: Vec<usize>,
    /// Outstanding accesses by number.
    outstanding: BTreeMap<u64, LineCopy>,
    /// Number of transfers so far, which is the number of the next one.
    transfers: u64,
    /// Number of accesses so far, which is the number of the next one.
    accesses: u64,
}

impl Copier {
    /// Creates an engine with at most `max_transfers` outstanding transfers, and one channel. Each transfer must lie
    /// within one of the ranges `far`.
    pub fn new(far: Vec<Range<u64>>, max_transfers: usize) -> Copier {
        Copier {
            far,
            max_transfers,
            remaining_lines: BTreeMap::new(),
            started: [0; 2],
            uncounted: Default::default(),
            waiting: vec![VecDeque::new()],
            in_flight: vec![0],
            outstanding: BTreeMap::new(),
            transfers: 0,
            accesses: 0,
        }
    }

    /// Sets the number of channels of an engine without transfers: with 1, fetches and stores take turns in the order
    /// of their start; with 2, each direction has a channel of its own.
    pub fn with_channels(mut self, channels: usize) -> Copier {
        self.waiting = vec![VecDeque::new(); channels.clamp(1, 2)];
        self.in_flight = vec![0; self.waiting.len()];
        self
    }

    /// Returns the number of channels.
    pub fn channels(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the channel of a direction.
    fn channel_of(&self, direction: Direction) -> usize {
        (direction as usize).min(self.channels() - 1)
    }

    /// Drops all transfers and sets new ranges. Numbering continues, so responses to dropped accesses are recognised
    /// and ignored.
    pub fn set_permitted_ranges(&mut self, far: Vec<Range<u64>>, max_transfers: usize) {
        let (transfers, accesses) = (self.transfers, self.accesses);
        *self = Copier {
            transfers,
            accesses,
            ..Copier::new(far, max_transfers).with_channels(self.channels())
        };
    }

    /// Returns the number of outstanding transfers.
    pub fn outstanding_transfers(&self) -> usize {
        self.remaining_lines.len()
    }

    /// Returns the number of transfers of a direction that were started since the permitted ranges were set.
    pub fn started_transfers(&self, direction: Direction) -> u64 {
        self.started[direction as usize]
    }

    /// Returns the number of the oldest transfers of a direction that are all complete.
    pub fn completed_transfers(&self, direction: Direction) -> u64 {
        self.started[direction as usize] - self.uncounted[direction as usize].len() as u64
    }

    /// True if a line is waiting to be requested from far memory by this channel.
    pub(crate) fn is_waiting(&self, channel: usize) -> bool {
        !self.waiting[channel].is_empty()
    }

    /// Returns the number of outstanding accesses of a channel.
    pub(crate) fn in_flight(&self, channel: usize) -> usize {
        self.in_flight[channel]
    }

    /// Validates a transfer. `lines` is the number of lines of the scratchpad. The error is the first one in the order
    /// no line, scratchpad, alignment, far range.
    fn validate_transfer(&self, transfer: Transfer, lines: usize) -> Result<(), TransferError> {
        let bytes = (transfer.lines as u64).checked_mul(LINE as u64);
        let end = bytes.and_then(|bytes| transfer.far.checked_add(bytes));
        let last = transfer.line.checked_add(transfer.lines);
        if transfer.lines == 0 {
            return Err(TransferError::NoLine);
        }
        if last.is_none_or(|last| last > lines) {
            return Err(TransferError::Scratchpad);
        }
        if !transfer.far.is_multiple_of(LINE as u64) {
            return Err(TransferError::WithinLine);
        }
        let is_permitted = end.is_some_and(|end| {
            let contains = |range: &Range<u64>| range.start <= transfer.far && end <= range.end;
            self.far.iter().any(contains)
        });
        is_permitted.then_some(()).ok_or(TransferError::Far)
    }

    /// Starts a transfer. `lines` is the number of lines of the scratchpad.
    ///
    /// # Errors
    /// [`Rejection::Invalid`] if the transfer is invalid, otherwise [`Rejection::Busy`] if the maximum is
    /// outstanding.
    pub fn start_transfer(&mut self, transfer: Transfer, lines: usize) -> Result<(), Rejection> {
        self.validate_transfer(transfer, lines)
            .map_err(Rejection::Invalid)?;
        if self.remaining_lines.len() >= self.max_transfers {
            return Err(Rejection::Busy);
        }
        let number = self.transfers;
        self.transfers += 1;
        self.remaining_lines.insert(number, transfer.lines);
        self.started[transfer.direction as usize] += 1;
        self.uncounted[transfer.direction as usize].push_back(number);
        let channel = self.channel_of(transfer.direction);
        self.waiting[channel].extend((0..transfer.lines).map(|i| LineCopy {
            transfer: number,
            direction: transfer.direction,
            line: transfer.line + i,
            far: transfer.far + (i * LINE) as u64,
        }));
        Ok(())
    }

    /// Returns the next access of a channel to far memory, if any. A line to be stored is read from the scratchpad now.
    pub fn next_access(&mut self, channel: usize, scratchpad: &Scratchpad) -> Option<Access> {
        let line_copy = self.waiting.get_mut(channel)?.pop_front()?;
        let number = self.accesses;
        self.accesses += 1;
        self.outstanding.insert(number, line_copy);
        self.in_flight[channel] += 1;
        let data = match line_copy.direction {
            Direction::Fetch => None,
            Direction::Store => scratchpad.line(line_copy.line).map(|data| Box::new(*data)),
        };
        let far = line_copy.far;
        Some(Access { number, far, data })
    }

    /// Completes an access; `data` is the line that was read, and ignored for a store. Sets the line's write stamp
    /// after a fetch, its read stamp after a store. Returns false if no such access is outstanding.
    pub fn complete_access(
        &mut self,
        scratchpad: &mut Scratchpad,
        number: u64,
        data: &Data,
        now: u64,
    ) -> bool {
        let Some(line_copy) = self.outstanding.remove(&number) else {
            return false;
        };
        let channel = self.channel_of(line_copy.direction);
        self.in_flight[channel] -= 1;
        match line_copy.direction {
            Direction::Fetch => scratchpad.fill(line_copy.line, data, now),
            Direction::Store => scratchpad.record_store(line_copy.line, now),
        }
        if let Some(remaining) = self.remaining_lines.get_mut(&line_copy.transfer) {
            *remaining -= 1;
            if *remaining == 0 {
                self.remaining_lines.remove(&line_copy.transfer);
            }
        }
        let uncounted = &mut self.uncounted[line_copy.direction as usize];
        while (uncounted.front()).is_some_and(|oldest| !self.remaining_lines.contains_key(oldest)) {
            uncounted.pop_front();
        }
        true
    }
}

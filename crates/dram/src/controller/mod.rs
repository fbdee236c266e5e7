//! A DRAM with a scheduler: channels with banks that keep the timing rules of JEDEC, and a scheduler for each channel.
//!
//! An operation on a line is a number of bursts, which its channel schedules with those of other operations. So the end
//! of an operation is known only when its last column command is issued: [`Controller::advance`] reports it then.

mod banks;
mod first_ready;
mod group_machines;
#[cfg(test)]
mod tests;
mod timing;

use std::collections::VecDeque;
use std::ops::Range;

use crate::jedec::{JedecDram, Scheduler};
use crate::Line;
use banks::Banks;
use cohkit_units::Time;
use first_ready::FirstReady;
use group_machines::GroupMachines;
use timing::{Clock, Timing};

/// A burst of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Burst {
    /// Place of the operation in the channel's list.
    operation: u32,
    bank: usize,
    row: u32,
    write: bool,
    /// Clock at which the burst entered its queue, or reaches the channel.
    since: Clock,
    /// True if its row was opened for it.
    missed: bool,
}

/// A burst that has been transferred, and the clock at which its data end.
pub(crate) struct Served {
    burst: Burst,
    end: Clock,
}

/// An operation whose bursts have all been scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Number that [`Controller::submit`] was given.
    pub number: u32,
    /// Time at which the requester receives the completion, in picoseconds.
    pub end: Time,
    /// True if a row had to be opened for a burst of the operation.
    pub missed: bool,
}

/// An operation in progress.
#[derive(Clone, Copy)]
struct Operation {
    number: u32,
    /// Bursts that have not been transferred.
    bursts: u32,
    end: Clock,
    missed: bool,
}

/// Queues and scheduler of a channel.
enum Queues {
    FirstReady(FirstReady),
    GroupMachines(GroupMachines),
}

/// Bursts on their way to a queue in the order of their arrival, each with its clock in `since`. Most arrive after all
/// others.
type Arrivals = VecDeque<Burst>;

/// A channel: its banks, the bursts that wait for them, and their operations.
struct Channel {
    banks: Banks,
    queues: Queues,
    arrivals: Arrivals,
    /// Bursts that have arrived and found no room in a queue, in order of arrival.
    blocked: VecDeque<Burst>,
    operations: Vec<Operation>,
    free_operations: Vec<u32>,
    /// Next clock at which a command may be legal or a burst arrives.
    next: Clock,
    /// First clock after the commands that have been issued.
    free_from: Clock,
}

impl Channel {
    fn new(dram: &JedecDram) -> Channel {
        let capacity = dram.queue_entries.value as usize;
        let closes_rows = dram.closed_page.value == 1;
        let timing = Timing::new(dram);
        let queues = match dram.scheduler {
            Scheduler::FirstReady => {
                let max_wait = dram.clocks(dram.max_wait.value);
                Queues::FirstReady(FirstReady::new(capacity, max_wait, closes_rows))
            }
            Scheduler::GroupMachines => {
                let ratio = dram.controller_clocks.value.max(1);
                Queues::GroupMachines(GroupMachines::new(capacity, ratio, closes_rows))
            }
        };
        let (groups, banks) = (dram.bank_groups.value, dram.banks_per_group.value);
        Channel {
            banks: Banks::new(timing, groups as usize, banks as usize),
            queues,
            arrivals: Arrivals::new(),
            blocked: VecDeque::new(),
            operations: Vec::new(),
            free_operations: Vec::new(),
            next: Clock::MAX,
            free_from: 0,
        }
    }

    /// Adds an operation without bursts. Returns its place.
    fn add_operation(&mut self, number: u32, bursts: u32) -> u32 {
        let operation = Operation {
            number,
            bursts,
            end: 0,
            missed: false,
        };
        match self.free_operations.pop() {
            Some(place) => {
                self.operations[place as usize] = operation;
                place
            }
            None => {
                self.operations.push(operation);
                self.operations.len() as u32 - 1
            }
        }
    }

    /// Lets a burst arrive at the clock in its `since`.
    fn add_arrival(&mut self, burst: Burst) {
        match self.arrivals.back() {
            Some(last) if last.since > burst.since => {
                let is_earlier = |other: &Burst| other.since <= burst.since;
                let place = self.arrivals.partition_point(is_earlier);
                self.arrivals.insert(place, burst);
            }
            _ => self.arrivals.push_back(burst),
        }
        self.next = self.next.min(self.align(burst.since.max(self.free_from)));
    }

    /// Returns the first clock from `clock` on at which the scheduler issues commands.
    #[inline(always)]
    fn align(&self, clock: Clock) -> Clock {
        match &self.queues {
            Queues::FirstReady(_) => clock,
            Queues::GroupMachines(machines) => machines.align(clock),
        }
    }

    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.blocked.is_empty()
            && match &self.queues {
                Queues::FirstReady(queue) => queue.is_empty(),
                Queues::GroupMachines(machines) => machines.is_empty(),
            }
    }

    /// Moves bursts that have arrived into their queues, in order. The first that finds no room stops all others.
    #[inline(always)]
    fn accept_arrivals(&mut self, now: Clock) {
        while let Some(&burst) = self.blocked.front() {
            if !self.accept(now, burst) {
                break;
            }
            self.blocked.pop_front();
        }
        while let Some(&burst) = self.arrivals.front() {
            if burst.since > now {
                break;
            }
            self.arrivals.pop_front();
            if !self.blocked.is_empty() || !self.accept(now, burst) {
                self.blocked.push_back(burst);
            }
        }
    }

    /// Lets a burst enter its queue at `now`, if there is room.
    #[inline(always)]
    fn accept(&mut self, now: Clock, burst: Burst) -> bool {
        let burst = Burst {
            since: now,
            ..burst
        };
        match &mut self.queues {
            Queues::FirstReady(queue) => queue.accept(burst),
            Queues::GroupMachines(machines) => machines.accept(burst, &self.banks),
        }
    }

    /// Issues the commands of one clock, or of one clock of the controller, and determines the next one.
    fn step(&mut self, now: Clock) -> Option<Served> {
        if self.is_idle() {
            self.banks.refresh_while_idle(now);
        }
        self.accept_arrivals(now);
        let refresh_due = self.banks.refresh_due();
        let (mut next, served) = match &mut self.queues {
            _ if refresh_due <= now => (self.step_refresh(now), None),
            Queues::FirstReady(queue) => queue.step(now, &mut self.banks),
            Queues::GroupMachines(machines) => machines.step(now, &mut self.banks),
        };
        if let Some(burst) = self.arrivals.front() {
            next = next.min(burst.since);
        }
        next = match self.is_idle() && self.arrivals.is_empty() {
            true => Clock::MAX,
            // A burst that has been transferred may leave room for a blocked one.
            false if served.is_some() && !self.blocked.is_empty() => now + 1,
            false => next.min(refresh_due.max(now + 1)),
        };
        self.free_from = now + 1;
        self.next = match next {
            Clock::MAX => Clock::MAX,
            next => self.align(next.max(self.free_from)),
        };
        served
    }

    /// Closes all rows for a refresh that is due, or refreshes. Returns the next clock for a command.
    fn step_refresh(&mut self, now: Clock) -> Clock {
        let (is_open, earliest) = self.banks.next_for_refresh();
        if earliest > now {
            return earliest;
        }
        match is_open {
            true => self.banks.precharge_all(now),
            false => {
                self.banks.refresh(now);
                if let Queues::GroupMachines(machines) = &mut self.queues {
                    machines.forget_open_rows(&self.banks);
                }
            }
        }
        now + 1
    }

    /// Issues all commands up to `now`, and calls `finish` for each operation that has been scheduled to its end.
    fn advance(&mut self, now: Clock, mut finish: impl FnMut(Operation)) {
        while self.next <= now {
            let Some(Served { burst, end }) = self.step(self.next) else {
                continue;
            };
            let operation = &mut self.operations[burst.operation as usize];
            operation.bursts -= 1;
            operation.end = operation.end.max(end);
            operation.missed |= burst.missed;
            if operation.bursts == 0 {
                finish(*operation);
                self.free_operations.push(burst.operation);
            }
        }
    }
}

/// Location of a burst in a DRAM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Location {
    bank: usize,
    row: u32,
}

/// A divisor. Most are powers of two, for which a shift is much faster than a division.
#[derive(Clone, Copy)]
struct Divisor {
    value: u64,
    /// Logarithm of the value, if it is a power of two.
    shift: Option<u32>,
}

impl Divisor {
    fn new(value: u64) -> Divisor {
        Divisor {
            value,
            shift: value.is_power_of_two().then(|| value.trailing_zeros()),
        }
    }

    /// Returns quotient and remainder.
    #[inline(always)]
    fn divide(self, number: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (number >> shift, number & (self.value - 1)),
            None => (number / self.value, number % self.value),
        }
    }
}

/// Division of addresses among channels, bank groups, banks, rows and columns.
struct AddressMap {
    channels: Divisor,
    /// True if higher address bits are folded into the number of the channel, and into that of the bank.
    channel_hash: bool,
    bank_hash: bool,
    groups: Divisor,
    banks_per_group: Divisor,
    /// Number of banks of a group that lie below the column in an address, at most two, and above it.
    low_banks: Divisor,
    high_banks: Divisor,
    bursts_per_line: u64,
    bursts_per_row: Divisor,
}

impl AddressMap {
    fn new(dram: &JedecDram, line_bytes: u32) -> AddressMap {
        let burst_bytes = dram.burst_bytes.value;
        let banks_per_group = dram.banks_per_group.value;
        let low_banks = banks_per_group.min(2);
        AddressMap {
            channels: Divisor::new(dram.channels.value),
            channel_hash: dram.channel_hash.value != 0,
            bank_hash: dram.bank_hash.value != 0,
            groups: Divisor::new(dram.bank_groups.value),
            banks_per_group: Divisor::new(banks_per_group),
            low_banks: Divisor::new(low_banks),
            high_banks: Divisor::new(banks_per_group / low_banks),
            bursts_per_line: u64::from(line_bytes).div_ceil(burst_bytes),
            bursts_per_row: Divisor::new((dram.row_bytes.value / burst_bytes).max(1)),
        }
    }

    /// Returns the channel of a line.
    fn channel(&self, line: Line) -> usize {
        let line = match self.channel_hash {
            true => u64::from(line ^ line >> 5 ^ line >> 13),
            false => u64::from(line),
        };
        self.channels.divide(line).1 as usize
    }

    /// Returns the bank and the row of a burst of a line. Above the burst are the bits of the bank group and one bit of
    /// the bank, then the column, the other bits of the bank, and the row.
    fn locate(&self, line: Line, burst: u64) -> Location {
        let place = self.channels.divide(line.into()).0 * self.bursts_per_line + burst;
        let (place, mut group) = self.groups.divide(place);
        let (place, low_bank) = self.low_banks.divide(place);
        let (place, _) = self.bursts_per_row.divide(place);
        let (row, high_bank) = self.high_banks.divide(place);
        let mut bank = low_bank + self.low_banks.value * high_bank;
        if self.bank_hash {
            let (row, low_bits) = self.groups.divide(row);
            group ^= low_bits;
            bank ^= self.banks_per_group.divide(row).1;
        }
        Location {
            bank: (group + self.groups.value * bank) as usize,
            row: row as u32,
        }
    }
}

/// A DRAM with its channels.
pub struct Controller {
    map: AddressMap,
    burst_bytes: u32,
    /// Clock period, in picoseconds.
    period: Time,
    /// Latency of controller and wires: request path, response path.
    latency: (Time, Time),
    channels: Vec<Channel>,
}

impl Controller {
    /// Creates an idle DRAM with all rows closed, for lines of `line_bytes`.
    pub fn new(dram: &JedecDram, line_bytes: u32) -> Controller {
        let latency = dram.controller_latency.value;
        Controller {
            map: AddressMap::new(dram, line_bytes),
            burst_bytes: dram.burst_bytes.value as u32,
            period: dram.clock_period.value.max(1),
            latency: (latency / 2, latency - latency / 2),
            channels: (0..dram.channels.value)
                .map(|_| Channel::new(dram))
                .collect(),
        }
    }

    /// Submits an operation on some bytes of a line, which reaches the DRAM at `arrival`. Its end is reported with
    /// `number`.
    pub fn submit(
        &mut self,
        arrival: Time,
        (line, bytes): (Line, Range<u32>),
        write: bool,
        number: u32,
    ) {
        let clock = (arrival + self.latency.0).div_ceil(self.period);
        let first = u64::from(bytes.start / self.burst_bytes);
        let end = u64::from(bytes.end.div_ceil(self.burst_bytes)).max(first + 1);
        let channel = &mut self.channels[self.map.channel(line)];
        let operation = channel.add_operation(number, (end - first) as u32);
        for burst in first..end {
            let Location { bank, row } = self.map.locate(line, burst);
            channel.add_arrival(Burst {
                operation,
                bank,
                row,
                write,
                since: clock,
                missed: false,
            });
        }
    }

    /// Returns the next time at which the DRAM has something to do, in picoseconds.
    pub fn next(&self) -> Option<Time> {
        let clocks = self.channels.iter().map(|channel| channel.next);
        let next = clocks.min().filter(|&clock| clock < Clock::MAX);
        next.map(|clock| clock * self.period)
    }

    /// Issues all commands up to `now`, and adds the operations that have been scheduled to their end to `finished`.
    pub fn advance(&mut self, now: Time, finished: &mut Vec<Finished>) {
        let (clock, period, latency) = (now / self.period, self.period, self.latency.1);
        for channel in &mut self.channels {
            channel.advance(clock, |operation| {
                finished.push(Finished {
                    number: operation.number,
                    end: operation.end * period + latency,
                    missed: operation.missed,
                });
            });
        }
    }

    /// Number of channels, and of banks of all channels.
    pub fn counts(&self) -> (usize, usize) {
        let banks = self.channels.iter().map(|channel| channel.banks.count());
        (self.channels.len(), banks.sum())
    }

    /// Returns the duration of an operation on a whole line with the current open rows and without any other operation,
    /// and the time for which it uses the data bus, both in picoseconds.
    pub fn uncontended(&self, line: Line) -> (Time, Time) {
        let channel = &self.channels[self.map.channel(line)];
        let (timing, bursts) = (channel.banks.timing(), self.map.bursts_per_line);
        let Location { bank, row } = self.map.locate(line, 0);
        let preparation = match channel.banks.open_row(bank) {
            Some(open_row) if open_row == row => 0,
            Some(_) => timing.rp + timing.rcd,
            None => timing.rcd,
        };
        let transfer = timing.ccd_s.max(timing.burst) * (bursts - 1) + timing.burst;
        let clocks = preparation + timing.cl + transfer;
        let latency = self.latency.0 + self.latency.1;
        (
            clocks * self.period + latency,
            timing.burst * bursts * self.period,
        )
    }

    /// Latency of controller and wires, in picoseconds.
    pub fn latency(&self) -> Time {
        self.latency.0 + self.latency.1
    }

    /// Returns the channel of a line, and the bank of its first burst among those of all channels.
    pub fn resources(&self, line: Line) -> (usize, usize) {
        let channel = self.map.channel(line);
        let bank = self.map.locate(line, 0).bank;
        (
            channel,
            channel * self.channels[channel].banks.count() + bank,
        )
    }
}

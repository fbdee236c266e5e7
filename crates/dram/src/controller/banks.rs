//! Banks of one channel: their open rows, and the earliest clock at which each command is legal.

use super::timing::{Clock, Timing};

/// A command on the command bus of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// Opens a row of a bank.
    Activate { bank: usize, row: u32 },
    /// Closes the row of a bank.
    Precharge { bank: usize },
    /// Closes the rows of all banks.
    PrechargeAll,
    /// Reads a burst, and closes the row afterwards if `closes`.
    Read { bank: usize, closes: bool },
    /// Writes a burst, and closes the row afterwards if `closes`.
    Write { bank: usize, closes: bool },
    /// Refreshes all banks.
    Refresh,
}

#[derive(Clone, Copy, Default)]
struct Bank {
    row: Option<u32>,
    /// Earliest clocks of an activate, a column command and a precharge, as far as they follow from this bank.
    activate_from: Clock,
    column_from: Clock,
    precharge_from: Clock,
}

/// Earliest clocks of commands, as far as they follow from a bank group, or from the whole channel.
#[derive(Clone, Copy, Default)]
struct Earliest {
    activate: Clock,
    read: Clock,
    write: Clock,
}

/// Banks of a channel. Bank `B` belongs to bank group `B % groups`; the number of groups is a power of two.
pub(crate) struct Banks {
    timing: Timing,
    banks: Vec<Bank>,
    groups: Vec<Earliest>,
    channel: Earliest,
    /// Clocks of the last four activates plus tFAW, oldest first.
    activate_window: [Clock; 4],
    /// Clock from which the data bus is free.
    bus_from: Clock,
    /// Clock of the next refresh that is due.
    refresh_due: Clock,
    /// All commands, if they are recorded.
    pub trace: Option<Vec<(Clock, Command)>>,
}

impl Banks {
    /// Creates banks without open rows. The first refresh is due after one interval.
    pub fn new(timing: Timing, groups: usize, banks_per_group: usize) -> Banks {
        Banks {
            banks: vec![Bank::default(); groups * banks_per_group],
            groups: vec![Earliest::default(); groups],
            channel: Earliest::default(),
            activate_window: [0; 4],
            bus_from: 0,
            refresh_due: match timing.refi {
                0 => Clock::MAX,
                interval => interval,
            },
            trace: None,
            timing,
        }
    }

    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Number of banks.
    pub fn count(&self) -> usize {
        self.banks.len()
    }

    /// Returns the open row of a bank.
    #[inline]
    pub fn open_row(&self, bank: usize) -> Option<u32> {
        self.banks[bank].row
    }

    /// Returns the earliest clock of an activate of a closed bank.
    #[inline]
    pub fn activate_from(&self, bank: usize) -> Clock {
        let group = &self.groups[bank & (self.groups.len() - 1)];
        self.banks[bank]
            .activate_from
            .max(group.activate)
            .max(self.channel.activate)
            .max(self.activate_window[0])
    }

    /// Returns the earliest clock of a precharge of an open bank.
    #[inline]
    pub fn precharge_from(&self, bank: usize) -> Clock {
        self.banks[bank].precharge_from
    }

    /// Returns the earliest clock of a read or write of the open row of a bank.
    #[inline]
    pub fn column_from(&self, bank: usize, write: bool) -> Clock {
        let group = &self.groups[bank & (self.groups.len() - 1)];
        let (group_from, channel_from, latency) = match write {
            false => (group.read, self.channel.read, self.timing.cl),
            true => (group.write, self.channel.write, self.timing.cwl),
        };
        self.banks[bank]
            .column_from
            .max(group_from)
            .max(channel_from)
            .max(self.bus_from.saturating_sub(latency))
    }

    fn record(&mut self, clock: Clock, command: Command) {
        if let Some(trace) = &mut self.trace {
            trace.push((clock, command));
        }
    }

    /// Opens a row at a clock that is legal for it.
    pub fn activate(&mut self, clock: Clock, bank: usize, row: u32) {
        let group = bank & (self.groups.len() - 1);
        let timing = &self.timing;
        let state = &mut self.banks[bank];
        state.row = Some(row);
        state.column_from = clock + timing.rcd;
        state.precharge_from = clock + timing.ras;
        state.activate_from = clock + timing.rc();
        self.groups[group].activate = clock + timing.rrd_l;
        self.channel.activate = clock + timing.rrd_s;
        self.activate_window.rotate_left(1);
        self.activate_window[3] = clock + timing.faw;
        self.record(clock, Command::Activate { bank, row });
    }

    /// Closes the row of a bank at a clock that is legal for it.
    pub fn precharge(&mut self, clock: Clock, bank: usize) {
        let rp = self.timing.rp;
        let state = &mut self.banks[bank];
        state.row = None;
        state.activate_from = state.activate_from.max(clock + rp);
        self.record(clock, Command::Precharge { bank });
    }

    /// Reads or writes a burst of the open row at a clock that is legal for it, and closes the row afterwards if
    /// `closes`. Returns the clock at which its data have been transferred.
    pub fn column(&mut self, clock: Clock, bank: usize, write: bool, closes: bool) -> Clock {
        let group = bank & (self.groups.len() - 1);
        let timing = &self.timing;
        let (group, channel) = (&mut self.groups[group], &mut self.channel);
        let latency = if write { timing.cwl } else { timing.cl };
        let data_end = clock + latency + timing.burst;
        let next_other_group = clock + timing.ccd_s.max(timing.burst);
        let precharge_from = if write {
            channel.write = channel.write.max(next_other_group);
            group.write = group.write.max(clock + timing.ccd_l_wr);
            channel.read = channel.read.max(data_end + timing.wtr_s);
            group.read = group.read.max(data_end + timing.wtr_l);
            data_end + timing.wr
        } else {
            channel.read = channel.read.max(next_other_group);
            group.read = group.read.max(clock + timing.ccd_l);
            channel.write = channel.write.max(clock + timing.rtw);
            clock + timing.rtp
        };
        self.bus_from = data_end;
        let state = &mut self.banks[bank];
        state.precharge_from = state.precharge_from.max(precharge_from);
        if closes {
            state.row = None;
            state.activate_from = state.activate_from.max(state.precharge_from + timing.rp);
        }
        let command = match write {
            false => Command::Read { bank, closes },
            true => Command::Write { bank, closes },
        };
        self.record(clock, command);
        data_end
    }

    /// Returns the clock from which no row may be opened before a refresh.
    #[inline]
    pub fn refresh_due(&self) -> Clock {
        self.refresh_due
    }

    /// Returns the earliest clock at which all rows may be closed for a refresh that is due, if any is open, or else
    /// that of the refresh. The first value is true if a row is open.
    pub fn next_for_refresh(&self) -> (bool, Clock) {
        let mut open_banks = self
            .banks
            .iter()
            .filter(|bank| bank.row.is_some())
            .peekable();
        let is_open = open_banks.peek().is_some();
        let clock = match is_open {
            true => open_banks.map(|bank| bank.precharge_from).max(),
            false => self.banks.iter().map(|bank| bank.activate_from).max(),
        };
        (is_open, clock.unwrap_or(0))
    }

    /// Closes all rows at a clock that is legal for it.
    pub fn precharge_all(&mut self, clock: Clock) {
        for bank in self.banks.iter_mut().filter(|bank| bank.row.is_some()) {
            bank.row = None;
            bank.activate_from = bank.activate_from.max(clock + self.timing.rp);
        }
        self.record(clock, Command::PrechargeAll);
    }

    /// Refreshes all banks, which are closed, at a clock that is legal for it.
    pub fn refresh(&mut self, clock: Clock) {
        for bank in &mut self.banks {
            bank.activate_from = clock + self.timing.rfc;
        }
        self.refresh_due += self.timing.refi;
        self.record(clock, Command::Refresh);
    }

    /// Performs all refreshes that an idle channel makes before `clock`. One that has started may end after it.
    pub fn refresh_while_idle(&mut self, clock: Clock) {
        let interval = self.timing.refi;
        // All but the last two end long before `clock`, and leave all rows closed.
        if self.refresh_due < clock && (clock - self.refresh_due) / interval > 1 {
            self.perform_refresh();
            let skipped = (clock.saturating_sub(self.refresh_due) / interval).saturating_sub(1);
            self.refresh_due += skipped * interval;
        }
        while self.refresh_due < clock {
            self.perform_refresh();
        }
    }

    /// Closes all rows and refreshes all banks at the earliest clocks from the one at which a refresh is due.
    fn perform_refresh(&mut self) {
        let mut clock = self.refresh_due;
        loop {
            let (is_open, earliest) = self.next_for_refresh();
            clock = clock.max(earliest);
            match is_open {
                true => self.precharge_all(clock),
                false => return self.refresh(clock),
            }
        }
    }
}

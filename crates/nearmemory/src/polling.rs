//! Detection of cores that poll for ever: a window of time in which nothing changes that any core can read, and in which every core
//! comes back to a state that it was in before.
//!
//! What a core does follows from its registers and from what it reads. If nothing that is read changes, a core that comes back
//! to a state does so for ever, and if all cores do, nobody is left who could change anything. So a window is closed by the first
//! change, and by whatever depends on time.

use crate::events::{Time, Who};
use cohkit_riscv::{Hart, HartState};
use rustc_hash::FxHashSet;

/// Recurrences of a state that are awaited: during the first period, copies of lines may still be replaced by newer ones.
const RECURRENCES: u32 = 3;

/// An access that a core repeats for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The core.
    pub who: Who,
    /// The instruction of the last load, or where the core stands if it loads nothing.
    pub pc: u64,
    /// The address that it loads from.
    pub at: Option<u64>,
}

/// A core in the window.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// The state that is looked for, and how often it has come back.
    reference: Option<HartState>,
    recurrences: u32,
    /// Samples since the reference was taken, and how many there are until another one is.
    samples: u64,
    limit: u64,
    /// The last load from memory that others can change: its instruction and its address.
    load: Option<(u64, u64)>,
}

/// A window of time without a change so far.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    changed: bool,
    /// The time of the first sample, half-way through the window: a change that happens once has happened by then.
    samples_from: Time,
    end: Time,
    hosts: Vec<Progress>,
    mccs: Vec<Progress>,
    /// Lines of scratchpads whose stamps were loaded, and those that the host has read, which sets stamps.
    stamps: FxHashSet<(usize, u64)>,
    stamped: FxHashSet<(usize, u64)>,
}

impl Window {
    pub(crate) fn new(begin: Time, length: Time, hosts: usize, mccs: usize) -> Window {
        Window {
            changed: false,
            samples_from: begin + length / 2,
            end: begin + length,
            hosts: vec![Progress::default(); hosts],
            mccs: vec![Progress::default(); mccs],
            stamps: FxHashSet::default(),
            stamped: FxHashSet::default(),
        }
    }

    /// Something has changed that a core may read.
    pub(crate) fn change(&mut self) {
        self.changed = true;
    }

    /// A value was stored over another one.
    pub(crate) fn stored(&mut self, old: Option<u64>, new: u64) {
        self.changed |= old != Some(new);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.changed
    }

    fn progress(&self, who: Who) -> &Progress {
        match who {
            Who::Host(core) => &self.hosts[core],
            Who::Mcc(core) => &self.mccs[core],
        }
    }

    fn progress_mut(&mut self, who: Who) -> &mut Progress {
        match who {
            Who::Host(core) => &mut self.hosts[core],
            Who::Mcc(core) => &mut self.mccs[core],
        }
    }

    /// A core loads from what others can change.
    pub(crate) fn loads(&mut self, who: Who, pc: u64, at: u64) {
        self.progress_mut(who).load = Some((pc, at));
    }

    /// A core loads a stamp of a line of its scratchpad.
    pub(crate) fn loads_stamp(&mut self, mcc: usize, line: u64) {
        self.stamps.insert((mcc, line));
        self.changed |= self.stamped.contains(&(mcc, line));
    }

    /// The host reads a line of a scratchpad, which sets its stamp.
    pub(crate) fn stamps_line(&mut self, mcc: usize, line: u64) {
        self.stamped.insert((mcc, line));
        self.changed |= self.stamps.contains(&(mcc, line));
    }

    /// A core has run for a while.
    pub(crate) fn sample(&mut self, who: Who, hart: &Hart, now: Time) {
        if now < self.samples_from {
            return;
        }
        let progress = self.progress_mut(who);
        let state = hart.state();
        if progress.reference.as_ref() == Some(&state) {
            progress.recurrences += 1;
            return;
        }
        // Periods are found whatever their lengths: each reference is kept twice as long as the one before.
        progress.samples += 1;
        if progress.samples > progress.limit {
            progress.reference = Some(state);
            progress.recurrences = 0;
            progress.samples = 0;
            progress.limit = progress.limit * 2 + 1;
        }
    }

    /// True if the window is long enough, and a core was in one state only or has come back to one.
    pub(crate) fn recurs(&self, who: Who, waits: bool, now: Time) -> bool {
        let progress = self.progress(who);
        let still = waits && progress.samples <= 1 && progress.limit <= 1;
        now >= self.end && (still || progress.recurrences >= RECURRENCES)
    }

    /// The load that a core repeats.
    pub(crate) fn poll(&self, who: Who, hart: &Hart) -> Poll {
        let progress = self.progress(who);
        // Without time, no load has its instruction.
        let pc = progress.load.map_or(0, |(pc, _)| pc);
        let pc = if pc == 0 { hart.pc } else { pc };
        let at = progress.load.map(|(_, at)| at);
        Poll { who, pc, at }
    }
}

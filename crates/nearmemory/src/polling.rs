//! Livelock detection: a window of time in which no state that a core can read changes, and in which every core returns
//! to an earlier state.
//!
//! The behaviour of a core depends only on its registers and the values that it reads. If these values do not change, a
//! core that returns to a state repeats forever. If all cores do, no agent is left that could change anything. The
//! first change, and any dependence on time, therefore closes the window.

use crate::events::{CoreCounts, CoreId};
use cohkit_riscv::{Hart, HartState};
use cohkit_units::Time;
use rustc_hash::FxHashSet;

/// Required recurrences of a state: during the first period, copies of lines may still be replaced by newer ones.
const RECURRENCES: u32 = 3;

/// An access that a core repeats forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The core.
    pub core_id: CoreId,
    /// Address of the last load instruction, or the core's program counter if it loads nothing.
    pub pc: u64,
    /// The loaded address.
    pub address: Option<u64>,
}

/// Observation of a core within the window.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// State that later samples are compared with.
    reference: Option<HartState>,
    /// Number of times that the core has returned to the reference state.
    recurrences: u32,
    /// Instructions that the core had retired when it was last in the reference state. A core that is stalled there
    /// retires none, and does not return to it.
    retired: u64,
    /// Samples since the reference was taken that differ from it.
    samples: u64,
    /// Number of such samples after which the reference is replaced.
    limit: u64,
    /// The last load of state that other agents can change: its instruction and its address.
    load: Option<(u64, u64)>,
}

/// A window of time without a change so far.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// True if the window is closed: state that a core may read has changed.
    changed: bool,
    /// Time of the first sample in picoseconds, half-way through the window: one-time changes have happened by then.
    samples_from: Time,
    /// Time from which a livelock can be reported, in picoseconds.
    end: Time,
    counts: CoreCounts,
    /// Observations by number of the core.
    progress: Vec<Progress>,
    /// Scratchpad lines whose stamps their core has loaded within the window: core and line.
    loaded_stamps: FxHashSet<(usize, u64)>,
    /// Scratchpad lines whose stamps host reads have set within the window: core and line.
    updated_stamps: FxHashSet<(usize, u64)>,
}

impl Window {
    /// Opens a window of `length` picoseconds for these cores.
    pub(crate) fn new(begin: Time, length: Time, counts: CoreCounts) -> Window {
        Window {
            changed: false,
            samples_from: begin + length / 2,
            end: begin + length,
            counts,
            progress: vec![Progress::default(); counts.total()],
            loaded_stamps: FxHashSet::default(),
            updated_stamps: FxHashSet::default(),
        }
    }

    /// Records a change of state that a core may read.
    pub(crate) fn change(&mut self) {
        self.changed = true;
    }

    /// Records a store of `new` over `old`; it is a change unless both are equal.
    pub(crate) fn record_store(&mut self, old: Option<u64>, new: u64) {
        self.changed |= old != Some(new);
    }

    /// True if state that a core may read has changed.
    pub(crate) fn is_closed(&self) -> bool {
        self.changed
    }

    fn progress(&self, core_id: CoreId) -> &Progress {
        &self.progress[self.counts.index(core_id)]
    }

    fn progress_mut(&mut self, core_id: CoreId) -> &mut Progress {
        &mut self.progress[self.counts.index(core_id)]
    }

    /// Records a load of state that other agents can change.
    pub(crate) fn record_load(&mut self, core_id: CoreId, pc: u64, address: u64) {
        self.progress_mut(core_id).load = Some((pc, address));
    }

    /// Records a load of a stamp. A stamp that was set within the window closes the window.
    pub(crate) fn record_stamp_load(&mut self, mcc: usize, line: u64) {
        self.loaded_stamps.insert((mcc, line));
        self.changed |= self.updated_stamps.contains(&(mcc, line));
    }

    /// Records a host read of a scratchpad line, which sets its stamp.
    pub(crate) fn record_stamp_update(&mut self, mcc: usize, line: u64) {
        self.updated_stamps.insert((mcc, line));
        self.changed |= self.loaded_stamps.contains(&(mcc, line));
    }

    /// Samples the state of a core after its turn.
    pub(crate) fn sample(&mut self, core_id: CoreId, hart: &Hart, now: Time) {
        if now < self.samples_from {
            return;
        }
        let progress = self.progress_mut(core_id);
        let state = hart.state();
        let retired = hart.csrs.instret;
        if progress.reference.as_ref() == Some(&state) {
            progress.recurrences += u32::from(retired != progress.retired);
            progress.retired = retired;
            return;
        }
        // Each reference is kept twice as long as the previous one, so periods of any length are found.
        progress.samples += 1;
        if progress.samples > progress.limit {
            progress.reference = Some(state);
            progress.retired = retired;
            progress.recurrences = 0;
            progress.samples = 0;
            progress.limit = progress.limit * 2 + 1;
        }
    }

    /// True if the window is long enough and the core did not move or has returned to a state often enough. `waits` is
    /// true if the core waits for an event.
    pub(crate) fn has_recurred(&self, core_id: CoreId, waits: bool, now: Time) -> bool {
        let progress = self.progress(core_id);
        let is_idle = waits && progress.samples <= 1 && progress.limit <= 1;
        now >= self.end && (is_idle || progress.recurrences >= RECURRENCES)
    }

    /// Returns the load that a core repeats.
    pub(crate) fn poll(&self, core_id: CoreId, hart: &Hart) -> Poll {
        let progress = self.progress(core_id);
        // In functional simulation, loads are recorded without their instruction.
        let pc = progress.load.map_or(0, |(pc, _)| pc);
        let pc = if pc == 0 { hart.pc } else { pc };
        let address = progress.load.map(|(_, address)| address);
        Poll {
            core_id,
            pc,
            address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohkit_riscv::Extensions;

    /// Regression: a host core that was stalled by memory at several samples counted as one that repeats a loop, so a
    /// copy of 32 MiB beside a polling core ended as a livelock.
    #[test]
    fn stalled_core_does_not_return_to_its_state() {
        let core = CoreId::Host { host: 0, core: 0 };
        let counts = CoreCounts {
            hosts: 1,
            host_cores: 1,
            mccs: 0,
        };
        let mut hart = Hart::new(0, Extensions::HOST);
        let mut window = Window::new(0, 100, counts);
        for now in 50..110 {
            window.sample(core, &hart, now);
        }
        assert!(!window.has_recurred(core, false, 110));
        for now in 110..114 {
            hart.csrs.instret += 1;
            window.sample(core, &hart, now);
        }
        assert!(window.has_recurred(core, false, 114));
    }
}

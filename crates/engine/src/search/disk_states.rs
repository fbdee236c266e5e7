//! Searches with states on disk: when states leave the memory, and when assumptions about those on disk are confirmed.
//!
//! Memory for states is bounded by [`Options::max_resident`](super::Options::max_resident), and that for assumptions by
//! the same number. When the states take more, a checkpoint is written, and the earlier half of them is removed from
//! memory. [`Disk`](crate::store) describes assumptions. They are confirmed before each checkpoint and each verdict, so
//! that no checkpoint depends on a wrong one.

use super::{CheckpointError, Frontier, ProgressReporter, Search, Verdict};
use crate::store::{Store, ASSUMPTION_BYTES};

impl Search<'_> {
    /// Bytes of states that may be in memory; `None` if all states are.
    pub(super) fn resident_limit(&self) -> Option<u64> {
        let limit = self.options.max_resident;
        limit.filter(|_| self.checkpoints.is_some())
    }

    /// Memory of the states and their table, in bytes.
    pub(super) fn resident_memory(&self) -> u64 {
        self.store.resident_memory(self.resident_limit())
    }

    /// Number of parents whose successors, `successors` each, are no more assumptions than may be in memory.
    pub(super) fn parents_within_budget(&self, successors: u64) -> usize {
        let Some(limit) = self.resident_limit() else {
            return usize::MAX;
        };
        let assumption = (8 * self.store.words() + ASSUMPTION_BYTES) as u64;
        usize::try_from(limit / assumption / successors).unwrap_or(usize::MAX)
    }

    /// Prepares an empty store for states on disk, if `max_resident` is set.
    pub(super) fn prepare_store(&mut self) {
        if self.resident_limit().is_some() {
            let distrusted = self.store.states.take_distrusted();
            self.store.states.use_disk(distrusted);
        }
    }

    /// Visits all states as [`Search::visit_states`], until no assumption is wrong.
    pub(super) fn visit_confirmed_states(&mut self) -> Result<Option<Verdict>, CheckpointError> {
        loop {
            let verdict = self.visit_states()?;
            if self.confirm()? {
                return Ok(verdict);
            }
            self.return_to_checkpoint()?;
        }
    }

    /// Removes states from memory if they take too much, and writes a checkpoint if one is due. Returns true if the
    /// search has returned to a checkpoint.
    pub(super) fn move_states_to_disk(&mut self) -> Result<bool, CheckpointError> {
        let (Some(limit), Some(checkpoints)) = (self.resident_limit(), &self.checkpoints) else {
            return Ok(false);
        };
        let states = &self.store.states;
        let is_full = states.bytes_in_memory() > limit;
        let is_due = checkpoints.is_due();
        if !(is_full || is_due || states.unconfirmed_bytes() > limit) {
            self.fail_if_unreadable()?;
            return Ok(false);
        }
        if !self.confirm()? {
            self.return_to_checkpoint()?;
            return Ok(true);
        }
        self.save_checkpoint()?;
        self.drop_excess_states(self.store.len());
        Ok(false)
    }

    /// Removes the earlier half of the states in memory, if these take too much. Checkpoints have the states before
    /// `stored`.
    pub(super) fn drop_excess_states(&mut self, stored: usize) {
        let Some(limit) = self.options.max_resident else {
            return;
        };
        let states = &mut self.store.states;
        if states.bytes_in_memory() > limit {
            let kept = (limit / 2) as usize / states.stride().max(1);
            let end = self.store.len().saturating_sub(kept).min(stored);
            self.store.states.drop_before(end);
        }
    }

    /// Confirms all assumptions. Returns false if one of them is wrong.
    fn confirm(&mut self) -> Result<bool, CheckpointError> {
        let is_confirmed = self.store.states.confirm();
        self.fail_if_unreadable()?;
        Ok(is_confirmed)
    }

    /// Fails if a state on disk could not be read.
    pub(super) fn fail_if_unreadable(&mut self) -> Result<(), CheckpointError> {
        match (self.store.states.take_read_error(), &self.checkpoints) {
            (Some(error), Some(checkpoints)) => Err(checkpoints.read_error(error)),
            _ => Ok(()),
        }
    }

    /// Continues from the last checkpoint. Each return adds a distrusted state, so the search terminates.
    fn return_to_checkpoint(&mut self) -> Result<(), CheckpointError> {
        let distrusted = self.store.states.take_distrusted();
        self.store = Store::new(&self.view.packing, false);
        self.store.states.use_disk(distrusted);
        self.frontier = Frontier::default();
        self.reporter = ProgressReporter::new();
        self.unfinished_transitions = 0;
        self.parallel_expansion = None;
        self.workspace.recent.forget();
        let last = self
            .checkpoints
            .as_mut()
            .map(|checkpoints| checkpoints.rewind());
        self.resume()?;
        match &self.checkpoints {
            Some(checkpoints) => checkpoints.require(last),
            None => Ok(()),
        }
    }
}

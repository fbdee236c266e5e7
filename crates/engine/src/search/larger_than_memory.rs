//! Searches with states on disk: when states leave the memory, and when assumptions about those on disk are confirmed.
//!
//! Memory for states is bounded by [`Options::max_resident`](super::Options::max_resident). When the states take more, a
//! checkpoint is written, and the earlier half of them is removed from memory. See the module of the store for
//! assumptions. They are confirmed before each checkpoint and each verdict, so that no checkpoint depends on a wrong one.

use super::{CheckpointError, Search, Verdict, STRETCH};
use crate::store::Store;

impl Search<'_> {
    /// Bytes of states that may be in memory; `None` if all states are.
    fn resident_limit(&self) -> Option<u64> {
        let limit = self.options.max_resident;
        limit.filter(|_| self.checkpoints.is_some())
    }

    /// Prepares an empty store for states on disk, if these are wanted.
    pub(super) fn prepare_store(&mut self) {
        if self.resident_limit().is_some() {
            self.store.states.use_disk();
            // A resumed search enters states that are all different.
            self.store.states.set_careful(true);
        }
    }

    /// Visits all states as [`Search::visit_states`], until no assumption is wrong.
    pub(super) fn visit_confirmed_states(&mut self) -> Result<Option<Verdict>, CheckpointError> {
        self.adjust_care();
        loop {
            let verdict = self.visit_states()?;
            if self.confirm()? {
                return Ok(verdict);
            }
            self.return_to_checkpoint()?;
        }
    }

    /// Removes states from memory if they take too much. Returns true if the search has returned to a checkpoint.
    pub(super) fn move_states_to_disk(&mut self) -> Result<bool, CheckpointError> {
        let Some(limit) = self.resident_limit() else {
            return Ok(false);
        };
        self.fail_if_unreadable()?;
        let states = &self.store.states;
        let is_full = states.bytes_in_memory() > limit;
        // As much memory again for assumptions.
        let must_confirm = states.unconfirmed_bytes() > limit;
        if (is_full || must_confirm) && !self.confirm()? {
            self.return_to_checkpoint()?;
            return Ok(true);
        }
        if is_full {
            self.save_checkpoint()?;
            self.drop_excess_states(self.store.len());
        }
        self.adjust_care();
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

    /// Continues from the last checkpoint, and compares states at once until the search has found more than now. With
    /// each return, the search is careful further, so that it ends.
    fn return_to_checkpoint(&mut self) -> Result<(), CheckpointError> {
        self.careful_until = 1 + self.store.len().max(self.careful_until + STRETCH);
        self.store = Store::new(&self.view.packing, false);
        self.prepare_store();
        self.unfinished_transitions = 0;
        self.parallel_expansion = None;
        self.workspace.recent.forget();
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.rewind();
        }
        self.resume()?;
        self.adjust_care();
        Ok(())
    }

    /// Compares states at once if that is due.
    fn adjust_care(&mut self) {
        let is_careful = self.store.len() < self.careful_until;
        self.store.states.set_careful(is_careful);
    }
}

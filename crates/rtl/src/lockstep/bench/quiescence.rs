//! End of a run: detection of quiescence, checks for leftover state, and reports of deadlocks.

use super::*;

impl Bench<'_> {
    pub(super) fn at_rest(&self) -> bool {
        let slices_rest = self.slices.iter().all(|slice| {
            slice
                .port_queues
                .iter()
                .all(|entrance| entrance.queue.is_empty())
                && slice.departing.iter().all(Option::is_none)
                && slice.asks.is_empty()
                && slice.unlocks.is_empty()
                && slice.reads.is_empty()
                && slice.writes.is_empty()
                && slice.addresses.is_empty()
                && slice.data.is_empty()
                && slice.illegal_inputs.rest()
        });
        // A request may still wait until a full set frees a way by itself.
        let rests = 300 + (1 << self.shape.patience);
        slices_rest && self.messages_in_flight.is_empty() && self.cycle > self.progress + rests
    }

    /// Checks that no operation or message is left and that memory or the remote holds the last write.
    pub(super) fn check_final_state(&self) -> Checked {
        if self.outputs.idle.contains(&0) {
            let what = "at the end, the home has an outstanding operation without a requester";
            return noticed(Check::Rest, None, what.into());
        }
        for (at, line) in self.lines.iter().enumerate() {
            let left = |what: &str| {
                let what = format!("at the end, {what} of line {} is left", line.number);
                noticed(Check::Rest, Some(at), what)
            };
            if !line.arrived.is_empty() {
                return left("a message to the home");
            }
            if line.expected.iter().any(|expected| !expected.is_empty()) {
                return left("a message to the remote");
            }
            if !line.asked.is_empty() || line.pending.is_some() {
                return left("a local operation");
            }
            if !line.answers.is_empty() || line.unlocks != 0 {
                return left("an answer to the device");
            }
            if line.operation != Memory::Idle {
                return left("a memory operation");
            }
            let remote = &self.protocol.remote.states[usize::from(line.remote.state)];
            let holder = if remote.dirty {
                &line.copy
            } else {
                &line.memory
            };
            if !line.is_current(holder, self.words) {
                return left("a stale copy");
            }
        }
        Ok(())
    }

    pub(super) fn stuck(&self) -> Checked {
        let busy = |line: &Line| {
            !line.arrived.is_empty()
                || line.entering != 0
                || !line.asked.is_empty()
                || line.pending.is_some()
                || line.operation != Memory::Idle
        };
        let what = "no agent can make progress";
        match self.lines.iter().position(busy) {
            Some(at) => {
                let line = &self.lines[at];
                let arrived: Vec<&str> = line
                    .arrived
                    .iter()
                    .map(|message| self.protocol.message(message.kind).name.as_str())
                    .collect();
                let state = &self.rom.states[usize::from(line.home.state)];
                let (number, asked) = (line.number, &line.asked);
                let memory = std::mem::discriminant(&line.operation);
                let what = format!("{what}: line {number} is in {state}, waiting: {arrived:?}, locals {asked:?}, memory {memory:?}");
                noticed(Check::Progress, Some(at), what)
            }
            None => noticed(Check::Progress, None, what.into()),
        }
    }
}

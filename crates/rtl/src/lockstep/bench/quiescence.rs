//! End of a run: detection of quiescence, checks for leftover state, and reports of deadlocks.

use super::*;

impl Bench<'_> {
    pub(super) fn is_quiescent(&self) -> bool {
        let slices_are_idle = self.slices.iter().all(|slice| {
            slice.port_queues.iter().all(|port| port.queue.is_empty())
                && slice.departing.iter().all(Option::is_none)
                && slice.local_requests.is_empty()
                && slice.unlocks.is_empty()
                && slice.reads.is_empty()
                && slice.writes.is_empty()
                && slice.write_addresses.is_empty()
                && slice.write_data.is_empty()
                && slice.illegal_inputs.is_empty()
        });
        // A request may still wait until a full set frees a way by itself.
        let idle_cycles = 300 + (1 << self.shape.recall_delay_log2);
        slices_are_idle
            && self.messages_in_flight.is_empty()
            && self.cycle > self.last_activity + idle_cycles
    }

    /// Checks that no operation or message is left and that memory or the remote holds the last write.
    pub(super) fn check_final_state(&self) -> Checked {
        if self.outputs.idle.contains(&0) {
            let message = "at the end, the home has an outstanding operation without a requester";
            return check_failed(Check::Rest, None, message.into());
        }
        for (line_index, line) in self.lines.iter().enumerate() {
            let leftover = |item: &str| {
                let message = format!("at the end, {item} of line {} is left", line.number);
                check_failed(Check::Rest, Some(line_index), message)
            };
            if !line.arrived_messages.is_empty() {
                return leftover("a message to the home");
            }
            if line
                .expected_departures
                .iter()
                .any(|expected| !expected.is_empty())
            {
                return leftover("a message to the remote");
            }
            if !line.queued_locals.is_empty() || line.pending_local.is_some() {
                return leftover("a local operation");
            }
            if !line.answers.is_empty() || line.unlocks != 0 {
                return leftover("an answer to the device");
            }
            if line.operation != Memory::Idle {
                return leftover("a memory operation");
            }
            let remote = &self.protocol.remote.states[usize::from(line.remote.state)];
            let holder = if remote.dirty {
                &line.copy
            } else {
                &line.memory
            };
            if !line.is_current(holder, self.words) {
                return leftover("a stale copy");
            }
        }
        Ok(())
    }

    pub(super) fn report_deadlock(&self) -> Checked {
        let is_busy = |line: &Line| {
            !line.arrived_messages.is_empty()
                || line.messages_at_ports != 0
                || !line.queued_locals.is_empty()
                || line.pending_local.is_some()
                || line.operation != Memory::Idle
        };
        let message = "no agent can make progress";
        match self.lines.iter().position(is_busy) {
            Some(line_index) => {
                let line = &self.lines[line_index];
                let arrived: Vec<&str> = line
                    .arrived_messages
                    .iter()
                    .map(|message| self.protocol.message(message.kind).name.as_str())
                    .collect();
                let state = &self.rom.states[usize::from(line.home.state)];
                let (number, asked) = (line.number, &line.queued_locals);
                let memory = std::mem::discriminant(&line.operation);
                let message = format!("{message}: line {number} is in {state}, waiting: {arrived:?}, locals {asked:?}, memory {memory:?}");
                check_failed(Check::Progress, Some(line_index), message)
            }
            None => check_failed(Check::Progress, None, message.into()),
        }
    }
}

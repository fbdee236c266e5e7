//! Invariants: coherence between two rows, and quiescence at the end of a trace.

use super::{CheckResult, Line, Remote, TraceChecker};
use crate::line_data::Operation;
use cohkit_protocol::protocol::Permission;

impl TraceChecker<'_> {
    /// Checks the invariants between two rows: single writer, data value, and the limit of the device's lock.
    pub(super) fn check_coherence(&self, line: &Line) -> CheckResult {
        if !self.protocol.guarantee.coherent {
            return Ok(());
        }
        let mut permissions = line.remotes.iter().map(|remote| self.permission(remote));
        let holders = permissions
            .clone()
            .filter(|permission| *permission > Permission::None)
            .count();
        if holders > 1 && permissions.any(|permission| permission == Permission::Write) {
            return Err("single writer: another agent still has read or write permission".into());
        }
        for (number, remote) in line.remotes.iter().enumerate() {
            if self.permission(remote) > Permission::None && remote.copy != Some(line.data.last) {
                return Err(format!(
                    "data value: {} has read permission for a stale copy, which write {} changed last",
                    self.name(Some(number)),
                    remote
                        .copy
                        .map_or("none".to_string(), |copy| copy.to_string()),
                ));
            }
        }
        if line
            .lock
            .is_some_and(|limit| self.max_permission(line) > limit)
        {
            return Err("single writer: a remote has a permission that the lock excludes".into());
        }
        Ok(())
    }

    /// Checks that no message is in flight and that no line has an outstanding operation.
    pub(super) fn check_quiescent(&self) -> CheckResult {
        if let Some(flight) = self.flights.first() {
            let name = &self.protocol.message(flight.sent.message).name;
            return Err(format!("at the end {name} is in flight"));
        }
        self.lines
            .values()
            .try_for_each(|line| self.check_line_quiescent(line))
    }

    /// Checks that nothing is outstanding for a line, apart from messages.
    fn check_line_quiescent(&self, line: &Line) -> CheckResult {
        for actor in (0..line.remotes.len()).map(Some).chain([None]) {
            let (table, agent) = self.table_and_agent(actor, line);
            let state = &table.controller.states[agent.state];
            if !state.is_stable() {
                return Err(format!(
                    "at the end {} is in {}",
                    self.name(actor),
                    state.name
                ));
            }
        }
        if let (true, Some(answer)) = (self.has_answer_reports, line.unreported_answers.first()) {
            return Err(format!(
                "at the end the device has no report that it {answer}"
            ));
        }
        let is_busy = line.operation != Operation::Idle
            || line.accepted_operation.is_some()
            || line.requested_operation.is_some();
        if is_busy
            || line.lock.is_some()
            || line.deferred_write.is_some()
            || !line.data.is_quiescent()
        {
            return Err("at the end an operation is outstanding".into());
        }
        Ok(())
    }

    /// Highest permission of any remote for the line.
    pub(super) fn max_permission(&self, line: &Line) -> Permission {
        let permissions = line.remotes.iter().map(|remote| self.permission(remote));
        permissions.max().unwrap_or(Permission::None)
    }

    /// Permission of a remote in its present state.
    fn permission(&self, remote: &Remote) -> Permission {
        self.protocol.remote.states[remote.agent.state].permission
    }
}

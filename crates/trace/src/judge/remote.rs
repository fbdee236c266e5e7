//! Actions of remotes.

use super::messages::{InFlightMessage, MessageData};
use super::rows::Cause;
use super::wording::{parse_access_report, WordValue, PERFORMS, WRITES};
use super::{CheckResult, Line, TraceChecker};
use crate::line_data::{PendingAccess, Version};
use crate::table::{Agent, Response, RowEffect, Trigger};
use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::{Permission, StateId};
use std::collections::BTreeSet;

impl TraceChecker<'_> {
    /// Processes an access of a remote, by a row or in place.
    pub(super) fn apply_remote_access(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        report: &str,
    ) -> CheckResult {
        let (access, _) =
            parse_access_report(report).ok_or_else(|| format!("no agent does this: {report}"))?;
        let remote = &line.remotes[remote_index];
        let permission = self.protocol.remote.states[remote.agent.state].permission;
        let event = Event::Access(access);
        let trigger = Trigger {
            event,
            sender: None,
            actor: Some(remote_index),
            home: self.home_number(),
            fields: &[],
        };
        let response = self.remote_table.respond(&remote.agent, &trigger)?;
        let in_place = access.is_performed_in_place() && permission >= access.needs();
        // A step that only reports that an access was performed belongs to the effects of the row, which skips it.
        self.position += usize::from(!report.starts_with(PERFORMS));
        match response {
            Response::Row { .. } => {
                let from = self.position;
                self.apply_row(
                    line,
                    Cause {
                        event,
                        actor: Some(remote_index),
                        received: None,
                    },
                )?;
                if self.position == from && report.starts_with(PERFORMS) {
                    return Err(format!("it {report}, but its row does not"));
                }
                Ok(())
            }
            Response::NoRow if in_place => {
                self.perform_access(line, remote_index, access)?;
                self.check_performed_report(line, remote_index, access)?;
                let unchanged = line.remotes[remote_index].agent.clone();
                self.check_next_state(line, Some(remote_index), unchanged)
            }
            _ => {
                let state = self.state_name(Some(remote_index), line);
                Err(format!("it cannot {} in {state}", access.name()))
            }
        }
    }

    /// Performs an access on the remote's own copy: a read observes the copy, a write makes a new version of it.
    pub(super) fn perform_access(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        access: Access,
    ) -> CheckResult {
        let copy = line.remotes[remote_index].copy;
        if access.writes() {
            let whole_line = access == Access::WriteLine;
            line.remotes[remote_index].copy = Some(line.data.write(copy, whole_line)?);
            return Ok(());
        }
        let last = line.data.last;
        self.check_observed_copy(line, remote_index, copy, last)
    }

    /// Checks the copy that a read observes. With coherence, the copy must include all writes before the read began.
    /// Copies may be stale under `guarantee none`. If the protocol then promises a memory model and the home performs
    /// all writes in order, the copy must include the writes that the remote has observed or made.
    fn check_observed_copy(
        &self,
        line: &mut Line,
        remote_index: usize,
        copy: Option<Version>,
        version_at_start: Version,
    ) -> CheckResult {
        if self.protocol.guarantee.coherent {
            return line.data.check_read(copy, version_at_start);
        }
        let copy = copy.ok_or("a read completes without bytes")?;
        let last_observed = &mut line.remotes[remote_index].last_observed;
        if self.orders_writes && copy < *last_observed {
            return Err(format!(
                "a read sees the version of write {copy}, but the remote has already seen write {last_observed}"
            ));
        }
        *last_observed = copy.max(*last_observed);
        Ok(())
    }

    /// Moves all lines of a remote in state `from` to state `to`; each move must be reported, in the order of the
    /// lines. Returns whether the current line moves.
    fn move_all_lines(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        from: StateId,
        to: StateId,
    ) -> CheckResult<bool> {
        let kind = self.remote_table.kinds[remote_index].index();
        if self.protocol.kinds[kind].initial == from {
            return Err("lines change that the trace does not report".into());
        }
        self.skip_unchanged_report(line, remote_index, from);
        let (current_line, current_number) = (self.reported_line, self.line_number);
        // The current line is not among `self.lines` while its row is applied.
        let mut other_lines = std::mem::take(&mut self.lines);
        let numbers: BTreeSet<u32> = other_lines
            .keys()
            .copied()
            .chain([current_number])
            .collect();
        let mut current_line_moves = false;
        let result = numbers.into_iter().try_for_each(|line_number| {
            self.reported_line = current_line.map(|_| line_number);
            self.line_number = line_number;
            if let Some(other_line) = other_lines.get_mut(&line_number) {
                self.move_line(other_line, remote_index, from, to)?;
            } else {
                current_line_moves = self.move_line(line, remote_index, from, to)?;
            }
            Ok::<_, String>(())
        });
        self.lines = other_lines;
        (self.reported_line, self.line_number) = (current_line, current_number);
        result.map(|()| current_line_moves)
    }

    /// Skips a report that the row does not change the current line, which may precede the reports of a bulk
    /// transition.
    fn skip_unchanged_report(&mut self, line: &Line, remote_index: usize, from: StateId) {
        let agent = &line.remotes[remote_index].agent;
        let unchanged_state = self.state_text(&self.remote_table, agent);
        let next_step = self.sequence.steps.get(self.position);
        let next_step =
            next_step.filter(|step| step.agent == remote_index && self.belongs_to_row(step));
        let reports_unchanged = next_step.is_some_and(
            |step| matches!(&step.action, Action::Becomes { state } if unchanged_state == *state),
        );
        self.position += usize::from(reports_unchanged && agent.state == from.index());
    }

    /// Moves one line of a remote, the one with the number `self.line_number`, to state `to`, and checks that the trace
    /// reports it. Returns false if the line is not in state `from`.
    fn move_line(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        from: StateId,
        to: StateId,
    ) -> CheckResult<bool> {
        if line.remotes[remote_index].agent.state != from.index() {
            return Ok(false);
        }
        self.refresh_agent(Some(remote_index), &mut line.remotes[remote_index].agent);
        let mut next_agent = line.remotes[remote_index].agent.clone();
        next_agent.state = to.index();
        self.check_next_state(line, Some(remote_index), next_agent)?;
        if !self.protocol.remote.states[to.index()].holds_line {
            line.remotes[remote_index].copy = None;
        }
        Ok(true)
    }

    /// Processes an optional report that an access was performed, with the value of a word.
    pub(super) fn check_performed_report(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        access: Access,
    ) -> CheckResult {
        let Some(report) = self.next_local_action(remote_index) else {
            return Ok(());
        };
        let Some((reported, word_value)) = parse_access_report(report) else {
            return Ok(());
        };
        if reported != access || !report.starts_with(PERFORMS) {
            return Ok(());
        }
        self.position += 1;
        let Some(WordValue { word, value }) = word_value else {
            return Ok(());
        };
        let writes = access.writes();
        self.summary.values += usize::from(!writes);
        match line.remotes[remote_index].copy {
            Some(copy) if !self.protocol.guarantee.coherent => {
                line.data.record_copy_value(copy, writes, word, value)
            }
            _ => line.data.check_reported_value(writes, word, value),
        }
    }

    /// Completes the outstanding access with this copy. Returns the new version if a write was performed on it.
    fn complete_access(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        copy: Option<Version>,
    ) -> CheckResult<Option<Version>> {
        let pending_access = line.remotes[remote_index].pending_access.take();
        let pending_access = pending_access.ok_or("an access completes, but none has begun")?;
        if !pending_access.access.writes() {
            self.check_observed_copy(line, remote_index, copy, pending_access.version_at_start)?;
            return Ok(None);
        }
        match pending_access.sent_serial {
            Some(serial) if line.data.is_settled(serial) => {
                let version = line.data.version_written_by(serial);
                let last_observed = &mut line.remotes[remote_index].last_observed;
                *last_observed = version.max(*last_observed);
                Ok(None)
            }
            Some(_) => Err("a write completes although the home has not performed it".into()),
            None => {
                let whole_line = pending_access.access == Access::WriteLine;
                let written = line.data.write(copy, whole_line)?;
                self.check_report(Some(remote_index), WRITES)?;
                Ok(Some(written))
            }
        }
    }

    /// Applies a row of a remote, whose `effects` are those of its table, in order. `received` is the message that
    /// triggered the row, if one did.
    pub(super) fn apply_remote_row(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        event: Event,
        received: Option<InFlightMessage>,
        mut next_agent: Agent,
        effects: Vec<RowEffect>,
    ) -> CheckResult {
        let controller = &self.protocol.remote;
        let from = &controller.states[line.remotes[remote_index].agent.state];
        let access = match event {
            Event::Access(access) => Some(access),
            _ => None,
        };
        let received_copy = match received.map(|flight| flight.data) {
            Some(MessageData::Line(copy)) => Some(copy),
            _ => None,
        };
        if let Some(access) = access.filter(|access| access.needs() > Permission::None) {
            line.remotes[remote_index].pending_access = Some(PendingAccess {
                access,
                version_at_start: line.data.last,
                sent_serial: None,
            });
        }
        let held_copy = received_copy.or(line.remotes[remote_index].copy);
        let outcome =
            self.apply_remote_effects(line, remote_index, effects, held_copy, &mut next_agent)?;
        let to = &controller.states[next_agent.state];
        let performed_access = access.filter(|access| {
            let needed = access.needs();
            needed > Permission::None && from.permission.min(to.permission) >= needed
        });
        if received_copy.is_some() || outcome.wrote {
            line.remotes[remote_index].copy = outcome.copy;
        }
        if let Some(access) = performed_access {
            self.perform_access(line, remote_index, access)?;
            self.check_performed_report(line, remote_index, access)?;
        }
        if !to.holds_line {
            line.remotes[remote_index].copy = None;
        }
        let write_ends_access =
            to.permission > Permission::None && access.is_none() && outcome.wrote;
        if to.is_stable() || performed_access.is_some() || write_ends_access {
            end_access(line, remote_index, access);
        }
        // The bulk transition has already been reported.
        if !(outcome.reported_in_bulk && line.remotes[remote_index].agent == next_agent) {
            self.check_next_state(line, Some(remote_index), next_agent)?;
        }
        match performed_access {
            Some(access) => self.check_performed_report(line, remote_index, access),
            None => Ok(()),
        }
    }

    /// Applies the effects of a row of a remote that has or has received `copy`. A bulk transition of the current line
    /// changes the state of `next_agent`.
    fn apply_remote_effects(
        &mut self,
        line: &mut Line,
        remote_index: usize,
        effects: Vec<RowEffect>,
        copy: Option<Version>,
        next_agent: &mut Agent,
    ) -> CheckResult<EffectsOutcome> {
        let mut outcome = EffectsOutcome {
            copy,
            wrote: false,
            reported_in_bulk: false,
        };
        for effect in effects {
            match effect {
                RowEffect::Send(sent) => {
                    self.check_send(line, Some(remote_index), sent, outcome.copy)?;
                }
                RowEffect::Done => {
                    if let Some(written) = self.complete_access(line, remote_index, outcome.copy)? {
                        outcome.copy = Some(written);
                        outcome.wrote = true;
                    }
                }
                RowEffect::BulkTransition { from, to } => {
                    if self.move_all_lines(line, remote_index, from, to)? {
                        next_agent.state = to.index();
                        outcome.reported_in_bulk = true;
                    }
                }
                other => return Err(format!("a remote executes an action of a home: {other:?}")),
            }
        }
        Ok(outcome)
    }
}

/// Result of the effects of a row of a remote.
struct EffectsOutcome {
    /// Version that the remote has after them.
    copy: Option<Version>,
    /// True if a completed access wrote that version.
    wrote: bool,
    /// True if the trace has reported the next state of the line as part of a bulk transition.
    reported_in_bulk: bool,
}

/// Ends the outstanding access of a remote. If a row without an access of its own ends it, the access is complete or
/// will be retried, and a write that it has sent must not be performed any more.
fn end_access(line: &mut Line, remote_index: usize, triggering_access: Option<Access>) {
    let ended_access = line.remotes[remote_index].pending_access.take();
    let sent_write = ended_access.and_then(|ended| ended.sent_serial);
    if let (Some(serial), None) = (sent_write, triggering_access) {
        line.data.abandon_write(serial);
    }
}

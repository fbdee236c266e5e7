//! Actions of remotes.

use super::*;

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
        let row = self.remote.respond(&remote.agent, &trigger)?;
        let in_place = access.is_performed_in_place() && permission >= access.needs();
        // A step that only reports that an access was performed is consumed by the row, which must report it.
        self.position += usize::from(!report.starts_with(PERFORMS));
        match row {
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
            line.remotes[remote_index].copy = Some(line.bytes.write(copy, whole_line)?);
            return Ok(());
        }
        let last = line.bytes.last;
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
            return line.bytes.check_read(copy, version_at_start);
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

    /// Moves all lines of a remote from one state to another; each move must be reported. Returns whether the current
    /// line moves.
    fn move_all_lines(
        &mut self,
        (line, next_agent): (&mut Line, &mut Agent),
        remote_index: usize,
        [from, to]: [StateId; 2],
    ) -> CheckResult<bool> {
        let kind = self.remote.kinds[remote_index].index();
        if self.protocol.kinds[kind].initial == from {
            return Err("lines change that the trace does not report".into());
        }
        let keeps_copy = self.protocol.remote.states[to.index()].holds_line;
        let current_line = self.line;
        // The trace may first report that the row does not change the current line.
        let agent = &line.remotes[remote_index].agent;
        let unchanged_state = self.state_text(&self.remote, agent);
        let next_step = self.sequence.steps.get(self.position);
        let next_step =
            next_step.filter(|step| step.agent == remote_index && self.belongs_to_row(step));
        let reports_unchanged = next_step.is_some_and(
            |step| matches!(&step.action, Action::Becomes { state } if unchanged_state == *state),
        );
        self.position += usize::from(reports_unchanged && agent.state == from.index());
        let number = self.line_number;
        let mut other_lines = std::mem::take(&mut self.lines);
        let move_line = |checker: &mut Self, line_number: u32, line: &mut Line| {
            if line.remotes[remote_index].agent.state != from.index() {
                return Ok(false);
            }
            (checker.line, checker.line_number) = (current_line.map(|_| line_number), line_number);
            checker.refresh_agent(Some(remote_index), &mut line.remotes[remote_index].agent);
            let mut next = line.remotes[remote_index].agent.clone();
            next.state = to.index();
            checker.check_next_state(line, Some(remote_index), next)?;
            if !keeps_copy {
                line.remotes[remote_index].copy = None;
            }
            Ok::<_, String>(true)
        };
        let numbers: BTreeSet<u32> = other_lines.keys().copied().chain([number]).collect();
        let mut current_line_moves = false;
        let result = numbers.into_iter().try_for_each(|line_number| {
            let moved_line = match line_number == number {
                true => Some(&mut *line),
                false => other_lines.get_mut(&line_number),
            };
            let is_moved = moved_line.map_or(Ok(false), |moved_line| {
                move_line(self, line_number, moved_line)
            })?;
            if is_moved && line_number == number {
                next_agent.state = to.index();
                current_line_moves = true;
            }
            Ok::<_, String>(())
        });
        self.lines = other_lines;
        (self.line, self.line_number) = (current_line, number);
        result.map(|()| current_line_moves)
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
        match parse_access_report(report) {
            Some((reported, value)) if reported == access && report.starts_with(PERFORMS) => {
                self.position += 1;
                if let Some((word, value)) = value {
                    self.summary.values += usize::from(!access.writes());
                    match (
                        self.protocol.guarantee.coherent,
                        line.remotes[remote_index].copy,
                    ) {
                        (false, Some(copy)) => {
                            line.bytes
                                .record_copy_value(copy, access.writes(), word, value)?;
                        }
                        _ => line
                            .bytes
                            .check_reported_value(access.writes(), word, value)?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
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
            Some(serial) if line.bytes.is_performed(serial) => {
                let version = line.bytes.version_written_by(serial);
                let last_observed = &mut line.remotes[remote_index].last_observed;
                *last_observed = version.max(*last_observed);
                Ok(None)
            }
            Some(_) => Err("a write completes although the home has not performed it".into()),
            None => {
                let whole_line = pending_access.access == Access::WriteLine;
                let written = line.bytes.write(copy, whole_line)?;
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
                version_at_start: line.bytes.last,
                sent_serial: None,
            });
        }
        let mut copy = received_copy.or(line.remotes[remote_index].copy);
        let (mut written, mut reported_in_bulk) = (false, false);
        for effect in effects {
            match effect {
                RowEffect::Send(sent) => self.check_send(line, Some(remote_index), sent, copy)?,
                RowEffect::Done => {
                    let performed = self.complete_access(line, remote_index, copy)?;
                    written |= performed.is_some();
                    copy = performed.or(copy);
                }
                RowEffect::BulkTransition { from, to } => {
                    reported_in_bulk |=
                        self.move_all_lines((line, &mut next_agent), remote_index, [from, to])?;
                }
                other => return Err(format!("a remote executes an action of a home: {other:?}")),
            }
        }
        let to = &controller.states[next_agent.state];
        let performed_access =
            access.filter(|access| from.permission.min(to.permission) >= access.needs());
        let performed_access = performed_access.filter(|access| access.needs() > Permission::None);
        if received_copy.is_some() || written {
            line.remotes[remote_index].copy = copy;
        }
        if let Some(access) = performed_access {
            self.perform_access(line, remote_index, access)?;
            self.check_performed_report(line, remote_index, access)?;
        }
        if !to.holds_line {
            line.remotes[remote_index].copy = None;
        }
        // An access that reaches a stable state without completion is retried. Its sent write is abandoned, unless a
        // message is still to come.
        let remote = &mut line.remotes[remote_index];
        if to.is_stable()
            || performed_access.is_some()
            || to.permission > Permission::None && access.is_none() && written
        {
            let abandoned_write = remote
                .pending_access
                .take()
                .and_then(|pending_access| pending_access.sent_serial);
            if let (Some(serial), None) = (abandoned_write, access) {
                line.bytes.abandon_write(serial);
            }
        }
        // The bulk transition has already been reported.
        if !(reported_in_bulk && line.remotes[remote_index].agent == next_agent) {
            self.check_next_state(line, Some(remote_index), next_agent)?;
        }
        match performed_access {
            Some(access) => self.check_performed_report(line, remote_index, access),
            None => Ok(()),
        }
    }
}

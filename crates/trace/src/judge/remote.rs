//! Actions of remotes.

use super::*;

impl Judge<'_> {
    /// Processes an access of a remote, by a row or in place.
    pub(super) fn apply_remote_access(
        &mut self,
        line: &mut Line,
        own: usize,
        what: &str,
    ) -> Checked {
        let (access, _) =
            parse_access_report(what).ok_or_else(|| format!("no agent does this: {what}"))?;
        let remote = &line.remotes[own];
        let right = self.protocol.remote.states[remote.agent.state].right;
        let event = Event::Access(access);
        let trigger = Trigger {
            event,
            sender: None,
            own: Some(own),
            home: self.home_number(),
            fields: &[],
        };
        let row = self.remote.respond(&remote.agent, &trigger)?;
        let in_place = access.is_performed_in_place() && right >= access.needs();
        // A step that only reports that an access was performed is consumed by the row, which must report it.
        self.at += usize::from(!what.starts_with(PERFORMS));
        match row {
            Answer::Row { .. } => {
                let from = self.at;
                self.row(
                    line,
                    Cause {
                        event,
                        own: Some(own),
                        taken: None,
                    },
                )?;
                if self.at == from && what.starts_with(PERFORMS) {
                    return Err(format!("it {what}, but its row does not"));
                }
                Ok(())
            }
            Answer::None if in_place => {
                self.performs(line, own, access)?;
                self.check_performed_report(line, own, access)?;
                let stays = line.remotes[own].agent.clone();
                self.check_next_state(line, Some(own), stays)
            }
            _ => {
                let state = self.state_name(Some(own), line);
                Err(format!("it cannot {} in {state}", access.name()))
            }
        }
    }

    /// Performs an access on the remote's own copy.
    pub(super) fn performs(&mut self, line: &mut Line, own: usize, access: Access) -> Checked {
        let copy = line.remotes[own].copy;
        if access.writes() {
            let whole = access == Access::WriteLine;
            line.remotes[own].copy = Some(line.bytes.write(copy, whole)?);
            return Ok(());
        }
        let last = line.bytes.last;
        self.check_observed_copy(line, own, copy, last)
    }

    /// Checks the copy that a read observes. With coherence, the copy must include all writes before the read began.
    /// Copies may be stale under `guarantee none`. If the protocol then promises a memory model and the home performs
    /// all writes in order, the copy must include the writes that the remote has observed or made.
    fn check_observed_copy(
        &self,
        line: &mut Line,
        own: usize,
        copy: Option<Version>,
        version_at_start: Version,
    ) -> Checked {
        if self.protocol.guarantee.coherent {
            return line.bytes.read(copy, version_at_start);
        }
        let copy = copy.ok_or("a read completes without bytes")?;
        let known = &mut line.remotes[own].known;
        if self.orders_writes && copy < *known {
            return Err(format!(
                "a read sees the version of write {copy}, but the remote has already seen write {known}"
            ));
        }
        *known = copy.max(*known);
        Ok(())
    }

    /// Moves all lines of a remote from one state to another; each move must be reported. Returns whether the current
    /// line moves.
    fn move_all_lines(
        &mut self,
        (line, after): (&mut Line, &mut Agent),
        own: usize,
        [from, to]: [StateId; 2],
    ) -> Checked<bool> {
        let kind = self.remote.kinds[own].index();
        if self.protocol.kinds[kind].initial == from {
            return Err("lines change that the trace does not report".into());
        }
        let holds = self.protocol.remote.states[to.index()].holds_line;
        let here = self.line;
        // The trace may first report that the row does not change the current line.
        let agent = &line.remotes[own].agent;
        let stays = self.words(&self.remote, agent);
        let told = self.sequence.steps.get(self.at);
        let told = told.filter(|step| step.agent == own && self.belongs(step));
        let stays = told.is_some_and(
            |step| matches!(&step.action, Action::Becomes { state } if stays == *state),
        );
        self.at += usize::from(stays && agent.state == from.index());
        let number = self.number;
        let mut others = std::mem::take(&mut self.lines);
        let change = |judge: &mut Self, at: u32, line: &mut Line| {
            if line.remotes[own].agent.state != from.index() {
                return Ok(false);
            }
            (judge.line, judge.number) = (here.map(|_| at), at);
            judge.refresh_agent(Some(own), &mut line.remotes[own].agent);
            let mut next = line.remotes[own].agent.clone();
            next.state = to.index();
            judge.check_next_state(line, Some(own), next)?;
            if !holds {
                line.remotes[own].copy = None;
            }
            Ok::<_, String>(true)
        };
        let numbers: BTreeSet<u32> = others.keys().copied().chain([number]).collect();
        let mut here_too = false;
        let result = numbers.into_iter().try_for_each(|at| {
            let place = match at == number {
                true => Some(&mut *line),
                false => others.get_mut(&at),
            };
            let changed = place.map_or(Ok(false), |place| change(self, at, place))?;
            if changed && at == number {
                after.state = to.index();
                here_too = true;
            }
            Ok::<_, String>(())
        });
        self.lines = others;
        (self.line, self.number) = (here, number);
        result.map(|()| here_too)
    }

    /// Processes an optional report that an access was performed, with the value of a word.
    pub(super) fn check_performed_report(
        &mut self,
        line: &mut Line,
        own: usize,
        access: Access,
    ) -> Checked {
        let Some(what) = self.next_local_action(own) else {
            return Ok(());
        };
        match parse_access_report(what) {
            Some((told, value)) if told == access && what.starts_with(PERFORMS) => {
                self.at += 1;
                if let Some((word, value)) = value {
                    self.summary.values += usize::from(!access.writes());
                    match (self.protocol.guarantee.coherent, line.remotes[own].copy) {
                        (false, Some(copy)) => {
                            line.bytes
                                .record_copy_value(copy, access.writes(), word, value)?;
                        }
                        _ => line.bytes.told(access.writes(), word, value)?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes the outstanding access with this copy. Returns the new version if a write was performed on it.
    fn ends(
        &mut self,
        line: &mut Line,
        own: usize,
        copy: Option<Version>,
    ) -> Checked<Option<Version>> {
        let pending_access = line.remotes[own].pending_access.take();
        let pending_access = pending_access.ok_or("an access completes, but none has begun")?;
        if !pending_access.access.writes() {
            self.check_observed_copy(line, own, copy, pending_access.version_at_start)?;
            return Ok(None);
        }
        match pending_access.sent {
            Some(serial) if line.bytes.performed(serial) => {
                let made = line.bytes.version_written_by(serial);
                let known = &mut line.remotes[own].known;
                *known = made.max(*known);
                Ok(None)
            }
            Some(_) => Err("a write completes although the home has not performed it".into()),
            None => {
                let whole = pending_access.access == Access::WriteLine;
                let written = line.bytes.write(copy, whole)?;
                self.tells(Some(own), WRITES)?;
                Ok(Some(written))
            }
        }
    }

    pub(super) fn remote_row(
        &mut self,
        line: &mut Line,
        own: usize,
        event: Event,
        taken: Option<Flight>,
        mut after: Agent,
        effects: Vec<RowEffect>,
    ) -> Checked {
        let controller = &self.protocol.remote;
        let from = &controller.states[line.remotes[own].agent.state];
        let access = match event {
            Event::Access(access) => Some(access),
            _ => None,
        };
        let brought = match taken.map(|flight| flight.data) {
            Some(MessageData::Line(copy)) => Some(copy),
            _ => None,
        };
        if let Some(access) = access.filter(|access| access.needs() > Right::None) {
            line.remotes[own].pending_access = Some(PendingAccess {
                access,
                version_at_start: line.bytes.last,
                sent: None,
            });
        }
        let mut copy = brought.or(line.remotes[own].copy);
        let (mut written, mut told) = (false, false);
        for deed in effects {
            match deed {
                RowEffect::Send(sent) => self.sends(line, Some(own), sent, copy)?,
                RowEffect::Done => {
                    let performed = self.ends(line, own, copy)?;
                    written |= performed.is_some();
                    copy = performed.or(copy);
                }
                RowEffect::Every { from, to } => {
                    told |= self.move_all_lines((line, &mut after), own, [from, to])?;
                }
                other => return Err(format!("a remote executes an action of a home: {other:?}")),
            }
        }
        let to = &controller.states[after.state];
        let performs = access.filter(|access| from.right.min(to.right) >= access.needs());
        let performs = performs.filter(|access| access.needs() > Right::None);
        if brought.is_some() || written {
            line.remotes[own].copy = copy;
        }
        if let Some(access) = performs {
            self.performs(line, own, access)?;
            self.check_performed_report(line, own, access)?;
        }
        if !to.holds_line {
            line.remotes[own].copy = None;
        }
        // An access that reaches a stable state without completion is retried. Its sent write is abandoned, unless a
        // message is still to come.
        let remote = &mut line.remotes[own];
        if to.stable()
            || performs.is_some()
            || to.right > Right::None && access.is_none() && written
        {
            let given_up = remote
                .pending_access
                .take()
                .and_then(|pending_access| pending_access.sent);
            if let (Some(serial), None) = (given_up, access) {
                line.bytes.abandon_write(serial);
            }
        }
        // The bulk transition has already been reported.
        if !(told && line.remotes[own].agent == after) {
            self.check_next_state(line, Some(own), after)?;
        }
        match performs {
            Some(access) => self.check_performed_report(line, own, access),
            None => Ok(()),
        }
    }
}

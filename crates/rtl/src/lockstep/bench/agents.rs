//! The remote and the device of a run, and the messages between remote and home.

use super::*;
use crate::lockstep::reachability::within_bounds;
use cohkit_protocol::terms::StateId;
use cohkit_system::agent::{RemoteContext, Sending};
use cohkit_system::data::Extent;

/// Execution context of the remote's rows.
struct RemoteRowContext<'b, 'a> {
    bench: &'b mut Bench<'a>,
    line_index: usize,
    /// Extent of the current write within the line.
    extent: Extent,
    /// The access that starts, if the row is that of an access.
    access: Option<Access>,
}

impl RemoteContext for RemoteRowContext<'_, '_> {
    type Copy = Bytes;
    type Error = BenchError;

    fn current(&self, copy: &Bytes) -> bool {
        self.bench.lines[self.line_index].is_current(copy, self.bench.words)
    }

    fn send(&mut self, sending: Sending<Bytes>) -> Checked {
        let (bench, line_index) = (&mut *self.bench, self.line_index);
        let Sending {
            message: kind,
            to: Receiver::Home,
            bytes,
            ..
        } = sending
        else {
            return line_failure(line_index, "the remote sends to another remote".into());
        };
        let message_type = bench.protocol.message(kind);
        let mask = |random: &mut RandomGenerator| random.below(1 << 16) as u16;
        let (bytes, mask) = match (bytes, message_type.carries) {
            (Sent::None, _) => (None, u16::MAX),
            (Sent::Line(copy), _) => (Some(copy), u16::MAX),
            (Sent::Write, Carries::PartialStore) => {
                (Some(bench.random.bytes()), mask(&mut bench.random))
            }
            (Sent::Write, _) => (Some(bench.random.bytes()), u16::MAX),
        };
        bench.count_message_in_flight(line_index, kind)?;
        let (message, to, flight) = (message_type.name.clone(), HOME, bench.flight);
        bench.flight += 1;
        let sends = Action::Send {
            message,
            to,
            flight,
        };
        bench.note(line_index, REMOTE, sends);
        let message = Message {
            kind,
            bytes,
            mask,
            flight,
        };
        bench.send(line_index, true, message);
        Ok(())
    }

    fn write(&mut self, old_copy: &Bytes) -> Checked<Bytes> {
        let value = self.bench.random.bytes();
        let word = self.bench.random.below(self.bench.words as u64) as usize;
        let mut new_copy = *old_copy;
        for copy in [&mut new_copy, &mut self.bench.lines[self.line_index].latest] {
            match self.extent {
                Extent::Whole => *copy = value,
                Extent::Part => copy[word] = value[word],
            }
        }
        if let (Some(access), Extent::Part) = (self.access, self.extent) {
            self.bench
                .record_word(self.line_index, access, word, value[word]);
        }
        Ok(new_copy)
    }

    // The contents of messages were compared with the last write when memory was read for them.
    fn read(&mut self, _copy: &Bytes) -> Checked {
        Ok(())
    }

    // The write is performed when the home starts to write it.
    fn written(&mut self, _found: Option<&Bytes>) -> Checked {
        Ok(())
    }

    fn gives_up(&mut self) {}

    // Goals concern a single line, so no protocol with a constructed home has such a row.
    fn every(&mut self, from: StateId, to: StateId) -> Checked {
        let states = &self.bench.protocol.remote.states;
        let [from, to] = [from, to].map(|state| &states[state.index()].name);
        Err(BenchError {
            check: Check::Comparison,
            what: format!("`every {from} becomes {to}` changes all lines, but the bench simulates each line separately"),
            line: Some(self.line_index),
        })
    }
}

/// Number of accesses that a remote with one home attempts: the first ones of [`Access::ALL`], without those that order
/// others.
const ACCESSES: u64 = 8;

impl Bench<'_> {
    /// Lets the remote attempt up to three random accesses.
    pub(super) fn attempt_remote_accesses(&mut self) -> Checked {
        for _ in 0..self.random.below(4) {
            let line = self.random.below(self.lines.len() as u64) as usize;
            let access = Access::ALL[self.random.below(ACCESSES) as usize].0;
            if !self.lines[line].is_directed {
                self.start_access(line, access)?;
            }
        }
        Ok(())
    }

    pub(super) fn start_access(&mut self, line_index: usize, access: Access) -> Checked {
        let unit = self.unit(line_index);
        let line = &self.lines[line_index];
        let permission = self.protocol.remote.states[usize::from(line.remote.state)].right;
        let mut remote = line.remote.clone();
        let outcome =
            self.step_remote_controller(line_index, &mut remote, Event::Access(access))?;
        if let Outcome::Taken { acts, .. } = &outcome {
            if !within_bounds(self.protocol, &self.lines[line_index].in_flight, acts) {
                return Ok(());
            }
            let is_request = |act: &Act| matches!(act, Act::Send { message, .. } if self.protocol.class(*message) == Some(Class::Request));
            if acts.iter().any(is_request) {
                if self.requests[unit] >= self.max_requests {
                    return Ok(());
                }
                self.requests[unit] += 1;
            }
        }
        let line = &mut self.lines[line_index];
        if line.remote != remote {
            self.last_advance = self.cycle;
        }
        line.remote = remote;
        let row = match outcome {
            Outcome::Taken { rule, acts } => Some((rule, acts)),
            // Performed in place, without a row.
            Outcome::Unexpected
                if access.is_performed_in_place() && permission >= access.needs() =>
            {
                None
            }
            _ => return Ok(()),
        };
        let is_read =
            matches!(access, Access::Load | Access::ReadOnce) && permission >= Right::Read;
        if is_read && !self.lines[line_index].is_current(&self.lines[line_index].copy, self.words) {
            let number = self.lines[line_index].number;
            return line_failure(
                line_index,
                format!("the remote reads stale data of line {number}"),
            );
        }
        let what = access.name().into();
        self.note(line_index, REMOTE, Action::Does { what });
        if is_read {
            let word = self.cycle as usize % self.words;
            self.record_word(line_index, access, word, self.lines[line_index].copy[word]);
        }
        match row {
            Some(row) => self.apply_remote_row(line_index, row, None, Some(access))?,
            None if access.writes() => {
                let (copy, extent, access) =
                    (self.lines[line_index].copy, Extent::Part, Some(access));
                let bench = &mut *self;
                let mut context = RemoteRowContext {
                    bench,
                    line_index,
                    extent,
                    access,
                };
                self.lines[line_index].copy = context.write(&copy)?;
            }
            None => {}
        }
        self.note_remote_state(line_index);
        Ok(())
    }

    /// Executes an event in the remote's controller, which updates the configuration.
    fn step_remote_controller(
        &self,
        line_index: usize,
        remote: &mut Configuration,
        event: Event,
    ) -> Checked<Outcome> {
        let trigger = Trigger {
            home: 0,
            event,
            sender: None,
            executing_remote: Some(0),
            fields: &[],
        };
        let stepped = self
            .remote_machine
            .step(remote, trigger, &mut { &self.protocol.remote });
        stepped.or_else(|stopped| line_failure(line_index, format!("{:?}", stopped.fault)))
    }

    /// Applies a row of the remote.
    fn apply_remote_row(
        &mut self,
        line_index: usize,
        (rule, acts): (usize, Vec<Act>),
        received_bytes: Option<Bytes>,
        access: Option<Access>,
    ) -> Checked {
        let (protocol, rules) = (self.protocol, self.rules.clone());
        let plan = &rules.plans[rule];
        let old_copy = self.lines[line_index].copy;
        // A write that completes without the previous contents covers the whole line.
        let extent = match access {
            Some(Access::WriteLine) => Extent::Whole,
            None if !plan.is_partial_write => Extent::Whole,
            _ => Extent::Part,
        };
        let mut context = RemoteRowContext {
            bench: self,
            line_index,
            extent,
            access,
        };
        let new_copy = agent::remote(
            protocol,
            &rules.facts,
            plan,
            acts,
            &old_copy,
            received_bytes.as_ref(),
            &mut context,
        );
        self.lines[line_index].copy = new_copy.map_err(|error| error.on_line(line_index))?;
        Ok(())
    }

    /// Records the value of the accessed word, if the run keeps a complete trace.
    fn record_word(&mut self, line_index: usize, access: Access, word: usize, value: u64) {
        if self.is_recording_history {
            let what = format!("performs a {} of word {word}: {value}", access.name());
            self.note(line_index, REMOTE, Action::Does { what });
        }
    }

    fn note_remote_state(&mut self, line_index: usize) {
        let state = usize::from(self.lines[line_index].remote.state);
        let state = self.protocol.remote.states[state].name.clone();
        self.note(line_index, REMOTE, Action::Becomes { state });
    }

    /// Returns the unit of a line, numbered over all slices.
    pub(super) fn unit(&self, line_index: usize) -> usize {
        self.lines[line_index].number as usize % self.requests.len()
    }

    /// Records that a message is in flight until its consumption.
    pub(super) fn count_message_in_flight(
        &mut self,
        line_index: usize,
        message: MessageId,
    ) -> Checked {
        let line = &mut self.lines[line_index];
        line.in_flight.push(message);
        match self.protocol.bounds.exceeded(line.in_flight.len()) {
            Some(limit) => line_failure(line_index, format!("{limit} for line {}", line.number)),
            None => Ok(()),
        }
    }

    /// Records the consumption of a message.
    pub(super) fn consume_message(&mut self, line_index: usize, message: MessageId) {
        let in_flight = &mut self.lines[line_index].in_flight;
        if let Some(position) = in_flight.iter().position(|&other| other == message) {
            in_flight.swap_remove(position);
        }
    }

    /// Schedules the arrival of a message; messages of an ordered group arrive in order.
    pub(super) fn send(&mut self, line_index: usize, to_home: bool, message: Message) {
        if self.lines[line_index].is_holding_messages {
            self.lines[line_index]
                .held_messages
                .push((to_home, message));
            return;
        }
        self.lines[line_index].messages_in_flight += 1;
        let channel = self.protocol.message(message.kind).channel;
        // A random eighth of the messages has up to six times the latency.
        let slowdown = if self.random.below(8) == 0 { 6 } else { 1 };
        let mut arrival_cycle = match self.run.exact {
            true => self.cycle + self.run.delay,
            false => self.cycle + 1 + self.random.below(slowdown * self.run.delay),
        };
        if let Some(group) = self.protocol.order_of(ChannelId(channel.0)) {
            let earliest = &mut self.lines[line_index].earliest_arrival[usize::from(to_home)]
                [group % CIRCUITS];
            arrival_cycle = arrival_cycle.max(*earliest);
            *earliest = arrival_cycle;
        }
        self.sequence += 1;
        self.messages_in_flight.insert(
            (arrival_cycle, self.sequence),
            (line_index, to_home, message),
        );
    }

    pub(super) fn deliver(&mut self) -> Checked {
        while let Some(entry) = self.messages_in_flight.first_entry() {
            if entry.key().0 > self.cycle {
                break;
            }
            let (line_index, to_home, message) = entry.remove();
            self.last_activity = self.cycle;
            self.lines[line_index].messages_in_flight -= 1;
            if to_home {
                self.queue_at_port(line_index, message);
            } else {
                self.deliver_to_remote(line_index, message)?;
            }
        }
        Ok(())
    }

    /// Queues a message at the home's port.
    pub(super) fn queue_at_port(&mut self, line_index: usize, message: Message) {
        let slice = self.lines[line_index].number as usize % SLICES;
        let circuit = self.input_circuit(message.kind);
        self.lines[line_index].messages_at_ports += 1;
        self.slices[slice].port_queues[circuit]
            .queue
            .push_back((line_index, message));
    }

    pub(super) fn deliver_to_remote(&mut self, line_index: usize, message: Message) -> Checked {
        let message_type = self.protocol.message(message.kind);
        let mut remote = self.lines[line_index].remote.clone();
        let row = match self.step_remote_controller(
            line_index,
            &mut remote,
            Event::Message(message.kind),
        )? {
            Outcome::Taken { rule, acts } => (rule, acts),
            Outcome::Stall => {
                self.send(line_index, false, message);
                return Ok(());
            }
            _ => {
                return line_failure(
                    line_index,
                    format!("the remote has no row for {}", message_type.name),
                )
            }
        };
        if self.lines[line_index].remote.state != remote.state {
            self.last_advance = self.cycle;
        }
        self.lines[line_index].remote = remote;
        self.note(
            line_index,
            REMOTE,
            Action::Receive {
                message: message_type.name.clone(),
                from: HOME,
                flight: message.flight,
            },
        );
        self.consume_message(line_index, message.kind);
        let received_bytes = message.bytes.filter(|_| message_type.carries.line());
        self.apply_remote_row(line_index, row, received_bytes, None)?;
        self.note_remote_state(line_index);
        Ok(())
    }

    pub(super) fn input_circuit(&self, kind: MessageId) -> usize {
        let event = self
            .rom
            .events
            .iter()
            .find(|event| event.event == Event::Message(kind));
        event.map_or(0, |event| event.circuit)
    }

    pub(super) fn start_device_operations(&mut self, starts_accesses: bool) -> Checked {
        let line_index = self.random.below(self.lines.len() as u64) as usize;
        let slice = self.lines[line_index].number as usize % SLICES;
        let may_start = starts_accesses
            && self.random.below(16) < self.run.device
            && !self.lines[line_index].is_directed;
        if may_start && !self.home.locals.is_empty() {
            let line = &mut self.lines[line_index];
            // Sometimes the device releases a lock that it may not hold, if the protocol has locks.
            let has_locks = self.rom.locking.contains(&true);
            if has_locks && self.random.below(8) == 0 && line.unlocks == 0 {
                self.unlock(line_index);
            } else if line.queued_locals.len() < 3 && self.slices[slice].local_requests.len() < 4 {
                let operation = self.random.below(self.home.locals.len() as u64) as u8;
                line.queued_locals.push_back(operation);
                self.slices[slice]
                    .local_requests
                    .push_back((line_index, operation));
            }
        }
        // The device uses and releases the lines that it has locked; at the end of the run, all of them at once.
        let first_line = self.random.below(self.lines.len() as u64) as usize;
        for line_index in if starts_accesses {
            first_line..first_line + 1
        } else {
            0..self.lines.len()
        } {
            let line = &mut self.lines[line_index];
            let Some(lock_limit) = line
                .lock_permission
                .filter(|_| line.lock_reported && line.unlocks == 0 && !line.is_holding_messages)
            else {
                continue;
            };
            if !line.is_current(&line.memory, self.words) {
                return line_failure(
                    line_index,
                    format!(
                        "the device reads stale data of line {} under its lock",
                        line.number
                    ),
                );
            }
            let permission = self.protocol.remote.states[usize::from(line.remote.state)].right;
            if permission > lock_limit {
                return line_failure(
                    line_index,
                    format!(
                        "the remote has the permission {permission:?} to line {} under the device's lock",
                        line.number
                    ),
                );
            }
            // The device may write if the remote has no read permission.
            if lock_limit == Right::None && !self.endpoint.has_memory() && self.random.below(2) == 0
            {
                line.memory = self.random.bytes();
                line.latest = line.memory;
            }
            self.unlock(line_index);
        }
        Ok(())
    }

    /// Lets the device release a line's lock.
    pub(super) fn unlock(&mut self, line_index: usize) {
        self.lines[line_index].unlocks += 1;
        let slice = self.lines[line_index].number as usize % SLICES;
        self.slices[slice].unlocks.push_back(line_index);
    }
}

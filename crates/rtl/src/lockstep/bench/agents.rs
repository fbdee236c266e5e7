//! The remote and the device of a run, and the messages between remote and home.

use super::*;
use crate::lockstep::reachability::within_bounds;
use cohkit_protocol::terms::StateId;
use cohkit_system::agent::{RemoteContext, Sending};
use cohkit_system::data::Extent;

/// Execution context of the remote's rows.
struct RemoteRowContext<'b, 'a> {
    bench: &'b mut Bench<'a>,
    at: usize,
    /// Extent of the current write within the line.
    extent: Extent,
    /// The access that starts, if the row is that of an access.
    access: Option<Access>,
}

impl RemoteContext for RemoteRowContext<'_, '_> {
    type Copy = Bytes;
    type Wrong = Wrong;

    fn current(&self, copy: &Bytes) -> bool {
        self.bench.lines[self.at].is_current(copy, self.bench.words)
    }

    fn send(&mut self, sending: Sending<Bytes>) -> Checked {
        let (bench, at) = (&mut *self.bench, self.at);
        let Sending {
            message: kind,
            to: Receiver::Home,
            bytes,
            ..
        } = sending
        else {
            return wrong(at, "the remote sends to another remote".into());
        };
        let about = bench.protocol.message(kind);
        let mask = |chance: &mut RandomGenerator| chance.below(1 << 16) as u16;
        let (bytes, mask) = match (bytes, about.carries) {
            (Sent::None, _) => (None, u16::MAX),
            (Sent::Line(copy), _) => (Some(copy), u16::MAX),
            (Sent::Write, Carries::PartialStore) => {
                (Some(bench.chance.bytes()), mask(&mut bench.chance))
            }
            (Sent::Write, _) => (Some(bench.chance.bytes()), u16::MAX),
        };
        bench.count_message_in_flight(at, kind)?;
        let (message, to, flight) = (about.name.clone(), HOME, bench.flight);
        bench.flight += 1;
        let sends = Action::Send {
            message,
            to,
            flight,
        };
        bench.note(at, REMOTE, sends);
        let message = Message {
            kind,
            bytes,
            mask,
            flight,
        };
        bench.send(at, true, message);
        Ok(())
    }

    fn write(&mut self, on: &Bytes) -> Checked<Bytes> {
        let value = self.bench.chance.bytes();
        let word = self.bench.chance.below(self.bench.words as u64) as usize;
        let mut after = *on;
        for copy in [&mut after, &mut self.bench.lines[self.at].latest] {
            match self.extent {
                Extent::Whole => *copy = value,
                Extent::Part => copy[word] = value[word],
            }
        }
        if let (Some(access), Extent::Part) = (self.access, self.extent) {
            self.bench.record_word(self.at, access, word, value[word]);
        }
        Ok(after)
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
        Err(Wrong {
            check: Check::Comparison,
            what: format!("`every {from} becomes {to}` changes all lines, but the bench simulates each line separately"),
            line: Some(self.at),
        })
    }
}

/// Number of accesses that a remote with one home attempts: the first ones of [`Access::ALL`], without those that order
/// others.
const ACCESSES: u64 = 8;

impl Bench<'_> {
    /// Lets the remote attempt up to three random accesses.
    pub(super) fn remote_acts(&mut self) -> Checked {
        for _ in 0..self.chance.below(4) {
            let line = self.chance.below(self.lines.len() as u64) as usize;
            let access = Access::ALL[self.chance.below(ACCESSES) as usize].0;
            if !self.lines[line].is_directed {
                self.access(line, access)?;
            }
        }
        Ok(())
    }

    pub(super) fn access(&mut self, at: usize, access: Access) -> Checked {
        let unit = self.unit(at);
        let line = &self.lines[at];
        let right = self.protocol.remote.states[usize::from(line.remote.state)].right;
        let mut remote = line.remote.clone();
        let outcome = self.remote_steps(at, &mut remote, Event::Access(access))?;
        if let Outcome::Taken { acts, .. } = &outcome {
            if !within_bounds(self.protocol, &self.lines[at].in_flight, acts) {
                return Ok(());
            }
            let asks = |act: &Act| matches!(act, Act::Send { message, .. } if self.protocol.class(*message) == Some(Class::Request));
            if acts.iter().any(asks) {
                if self.requests[unit] >= self.max_requests {
                    return Ok(());
                }
                self.requests[unit] += 1;
            }
        }
        let line = &mut self.lines[at];
        if line.remote != remote {
            self.advance = self.cycle;
        }
        line.remote = remote;
        let row = match outcome {
            Outcome::Taken { rule, acts } => Some((rule, acts)),
            // Performed in place, without a row.
            Outcome::Unexpected if access.is_performed_in_place() && right >= access.needs() => {
                None
            }
            _ => return Ok(()),
        };
        let reads = matches!(access, Access::Load | Access::ReadOnce) && right >= Right::Read;
        if reads && !self.lines[at].is_current(&self.lines[at].copy, self.words) {
            let number = self.lines[at].number;
            return wrong(at, format!("the remote reads stale data of line {number}"));
        }
        let what = access.name().into();
        self.note(at, REMOTE, Action::Does { what });
        if reads {
            let word = self.cycle as usize % self.words;
            self.record_word(at, access, word, self.lines[at].copy[word]);
        }
        match row {
            Some(row) => self.apply_remote_row(at, row, None, Some(access))?,
            None if access.writes() => {
                let (copy, extent, access) = (self.lines[at].copy, Extent::Part, Some(access));
                let bench = &mut *self;
                let mut around = RemoteRowContext {
                    bench,
                    at,
                    extent,
                    access,
                };
                self.lines[at].copy = around.write(&copy)?;
            }
            None => {}
        }
        self.becomes(at);
        Ok(())
    }

    /// Executes an event in the remote's controller, which updates the configuration.
    fn remote_steps(
        &self,
        at: usize,
        remote: &mut Configuration,
        event: Event,
    ) -> Checked<Outcome> {
        let occasion = Trigger {
            home: 0,
            event,
            sender: None,
            own: Some(0),
            fields: &[],
        };
        let stepped = self
            .remote_machine
            .step(remote, occasion, &mut { &self.protocol.remote });
        stepped.or_else(|stopped| wrong(at, format!("{:?}", stopped.fault)))
    }

    /// Applies a row of the remote.
    fn apply_remote_row(
        &mut self,
        at: usize,
        (rule, acts): (usize, Vec<Act>),
        brought: Option<Bytes>,
        access: Option<Access>,
    ) -> Checked {
        let (protocol, rules) = (self.protocol, self.rules.clone());
        let plan = &rules.plans[rule];
        let held = self.lines[at].copy;
        // A write that completes without the previous contents covers the whole line.
        let extent = match access {
            Some(Access::WriteLine) => Extent::Whole,
            None if !plan.is_partial_write => Extent::Whole,
            _ => Extent::Part,
        };
        let mut around = RemoteRowContext {
            bench: self,
            at,
            extent,
            access,
        };
        let done = agent::remote(
            protocol,
            &rules.facts,
            plan,
            acts,
            &held,
            brought.as_ref(),
            &mut around,
        );
        self.lines[at].copy = done.map_err(|wrong| wrong.about(at))?;
        Ok(())
    }

    /// Records the value of the accessed word, if the run keeps a complete trace.
    fn record_word(&mut self, at: usize, access: Access, word: usize, value: u64) {
        if self.is_recording_history {
            let what = format!("performs a {} of word {word}: {value}", access.name());
            self.note(at, REMOTE, Action::Does { what });
        }
    }

    fn becomes(&mut self, at: usize) {
        let state = usize::from(self.lines[at].remote.state);
        let state = self.protocol.remote.states[state].name.clone();
        self.note(at, REMOTE, Action::Becomes { state });
    }

    /// Returns the unit of a line, numbered over all slices.
    pub(super) fn unit(&self, at: usize) -> usize {
        self.lines[at].number as usize % self.requests.len()
    }

    /// Records that a message is in flight until its consumption.
    pub(super) fn count_message_in_flight(&mut self, at: usize, message: MessageId) -> Checked {
        let line = &mut self.lines[at];
        line.in_flight.push(message);
        match self.protocol.bounds.exceeded(line.in_flight.len()) {
            Some(what) => wrong(at, format!("{what} for line {}", line.number)),
            None => Ok(()),
        }
    }

    /// Records the consumption of a message.
    pub(super) fn consume_message(&mut self, at: usize, message: MessageId) {
        let in_flight = &mut self.lines[at].in_flight;
        if let Some(place) = in_flight.iter().position(|&other| other == message) {
            in_flight.swap_remove(place);
        }
    }

    /// Schedules the arrival of a message; messages of an ordered group arrive in order.
    pub(super) fn send(&mut self, at: usize, to_home: bool, message: Message) {
        if self.lines[at].is_holding_messages {
            self.lines[at].held.push((to_home, message));
            return;
        }
        self.lines[at].messages_in_flight += 1;
        let channel = self.protocol.message(message.kind).channel;
        // A random eighth of the messages has up to six times the latency.
        let slow = if self.chance.below(8) == 0 { 6 } else { 1 };
        let mut time = match self.run.exact {
            true => self.cycle + self.run.delay,
            false => self.cycle + 1 + self.chance.below(slow * self.run.delay),
        };
        if let Some(group) = self.protocol.order_of(ChannelId(channel.0)) {
            let last = &mut self.lines[at].order[usize::from(to_home)][group % CIRCUITS];
            time = time.max(*last);
            *last = time;
        }
        self.sequence += 1;
        self.messages_in_flight
            .insert((time, self.sequence), (at, to_home, message));
    }

    pub(super) fn deliver(&mut self) -> Checked {
        while let Some(entry) = self.messages_in_flight.first_entry() {
            if entry.key().0 > self.cycle {
                break;
            }
            let (at, to_home, message) = entry.remove();
            self.progress = self.cycle;
            self.lines[at].messages_in_flight -= 1;
            if to_home {
                self.arrive(at, message);
            } else {
                self.deliver_to_remote(at, message)?;
            }
        }
        Ok(())
    }

    /// Queues a message at the home's port.
    pub(super) fn arrive(&mut self, at: usize, message: Message) {
        let slice = self.lines[at].number as usize % SLICES;
        let circuit = self.input_circuit(message.kind);
        self.lines[at].entering += 1;
        self.slices[slice].port_queues[circuit]
            .queue
            .push_back((at, message));
    }

    pub(super) fn deliver_to_remote(&mut self, at: usize, message: Message) -> Checked {
        let about = self.protocol.message(message.kind);
        let mut remote = self.lines[at].remote.clone();
        let row = match self.remote_steps(at, &mut remote, Event::Message(message.kind))? {
            Outcome::Taken { rule, acts } => (rule, acts),
            Outcome::Leave => {
                self.send(at, false, message);
                return Ok(());
            }
            _ => return wrong(at, format!("the remote has no row for {}", about.name)),
        };
        if self.lines[at].remote.state != remote.state {
            self.advance = self.cycle;
        }
        self.lines[at].remote = remote;
        self.note(
            at,
            REMOTE,
            Action::Receive {
                message: about.name.clone(),
                from: HOME,
                flight: message.flight,
            },
        );
        self.consume_message(at, message.kind);
        let brought = message.bytes.filter(|_| about.carries.line());
        self.apply_remote_row(at, row, brought, None)?;
        self.becomes(at);
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

    pub(super) fn device_acts(&mut self, more: bool) -> Checked {
        let at = self.chance.below(self.lines.len() as u64) as usize;
        let slice = self.lines[at].number as usize % SLICES;
        let begins = more && self.chance.below(16) < self.run.device && !self.lines[at].is_directed;
        if begins && !self.home.locals.is_empty() {
            let line = &mut self.lines[at];
            // Sometimes the device releases a lock that it may not hold, if the protocol has locks.
            let locks = self.rom.locking.contains(&true);
            if locks && self.chance.below(8) == 0 && line.unlocks == 0 {
                self.unlock(at);
            } else if line.asked.len() < 3 && self.slices[slice].asks.len() < 4 {
                let operation = self.chance.below(self.home.locals.len() as u64) as u8;
                line.asked.push_back(operation);
                self.slices[slice].asks.push_back((at, operation));
            }
        }
        // The device uses and releases the lines that it has locked; at the end of the run, all of them at once.
        let one = self.chance.below(self.lines.len() as u64) as usize;
        for at in if more {
            one..one + 1
        } else {
            0..self.lines.len()
        } {
            let line = &mut self.lines[at];
            let Some(kept) = line
                .locked
                .filter(|_| line.told && line.unlocks == 0 && !line.is_holding_messages)
            else {
                continue;
            };
            if !line.is_current(&line.memory, self.words) {
                return wrong(
                    at,
                    format!(
                        "the device reads stale data of line {} under its lock",
                        line.number
                    ),
                );
            }
            let right = self.protocol.remote.states[usize::from(line.remote.state)].right;
            if right > kept {
                return wrong(
                    at,
                    format!(
                        "the remote has the permission {right:?} to line {} under the device's lock",
                        line.number
                    ),
                );
            }
            // The device may write if the remote has no read permission.
            if kept == Right::None && !self.behind.has_memory() && self.chance.below(2) == 0 {
                line.memory = self.chance.bytes();
                line.latest = line.memory;
            }
            self.unlock(at);
        }
        Ok(())
    }

    /// Lets the device release a line's lock.
    pub(super) fn unlock(&mut self, at: usize) {
        self.lines[at].unlocks += 1;
        let slice = self.lines[at].number as usize % SLICES;
        self.slices[slice].unlocks.push_back(at);
    }
}

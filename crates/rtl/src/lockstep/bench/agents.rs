//! The remote and the device of a run, and what is under way between remote and home.

use super::*;
use crate::lockstep::ways::within_bounds;

impl Bench<'_> {
    /// The remote begins an access now and then.
    pub(super) fn remote_acts(&mut self) -> Checked {
        for _ in 0..self.chance.below(4) {
            let line = self.chance.below(self.lines.len() as u64) as usize;
            let access = Access::ALL[self.chance.below(Access::ALL.len() as u64) as usize].0;
            if !self.lines[line].guided {
                self.access(line, access)?;
            }
        }
        Ok(())
    }

    pub(super) fn access(&mut self, at: usize, access: Access) -> Checked {
        let unit = self.unit(at);
        let line = &mut self.lines[at];
        let state = &self.protocol.remote.states[usize::from(line.remote.state)];
        let right = state.right;
        let occasion = Occasion {
            event: Event::Access(access),
            sender: None,
            own: Some(0),
            fields: &[],
        };
        let mut remote = line.remote.clone();
        let stepped = self
            .remote_machine
            .step(&mut remote, occasion, &mut { &self.protocol.remote });
        let outcome = stepped.or_else(|stopped| wrong(at, format!("{:?}", stopped.fault)))?;
        if let Outcome::Taken { acts, .. } = &outcome {
            if !within_bounds(self.protocol, &line.in_flight, acts) {
                return Ok(());
            }
            let asks = |act: &Act| matches!(act, Act::Send { message, .. } if self.protocol.class(*message) == Some(Class::Request));
            if acts.iter().any(asks) {
                if self.requests[unit] >= self.most_requests {
                    return Ok(());
                }
                self.requests[unit] += 1;
            }
        }
        if line.remote != remote {
            self.advance = self.cycle;
        }
        line.remote = remote;
        let acts = match outcome {
            Outcome::Taken { acts, .. } => acts,
            // Performed in place, without a row.
            Outcome::Unexpected if access == Access::Load && right >= Right::Read => Vec::new(),
            Outcome::Unexpected if access == Access::Store && right == Right::Write => Vec::new(),
            _ => return Ok(()),
        };
        let next = &self.protocol.remote.states[usize::from(line.remote.state)];
        let reads = matches!(access, Access::Load | Access::ReadOnce) && right >= Right::Read;
        let writes = access.writes() && right == Right::Write && next.right == Right::Write;
        if reads && line.copy[..self.words] != line.latest[..self.words] {
            return wrong(
                at,
                format!("the remote reads old bytes of line {}", line.number),
            );
        }
        let name = next.name.clone();
        self.note(
            at,
            REMOTE,
            Action::Does {
                what: access.name().into(),
            },
        );
        let copy = self.lines[at].copy;
        for act in acts {
            self.remote_sends(at, act, copy)?;
        }
        if writes {
            let value = self.chance.bytes();
            let word = self.chance.below(self.words as u64) as usize;
            let line = &mut self.lines[at];
            match access {
                Access::WriteLine => line.copy = value,
                _ => line.copy[word] = value[word],
            }
            line.latest = line.copy;
        }
        self.note(at, REMOTE, Action::Becomes { state: name });
        Ok(())
    }

    /// The unit, among all, that a line belongs to.
    pub(super) fn unit(&self, at: usize) -> usize {
        self.lines[at].number as usize % self.requests.len()
    }

    pub(super) fn remote_sends(&mut self, at: usize, act: Act, copy: Bytes) -> Checked {
        let Act::Send {
            message,
            to: Receiver::Home,
            ..
        } = act
        else {
            return Ok(());
        };
        let (bytes, mask) = match self.protocol.message(message).carries {
            Carries::Nothing => (None, u16::MAX),
            Carries::Line | Carries::DirtyLine => (Some(copy), u16::MAX),
            Carries::Store => (Some(self.chance.bytes()), u16::MAX),
            Carries::PartialStore => (Some(self.chance.bytes()), self.chance.below(1 << 16) as u16),
        };
        self.departs(at, message)?;
        let flight = self.flight;
        self.flight += 1;
        self.note(
            at,
            REMOTE,
            Action::Send {
                message: self.protocol.message(message).name.clone(),
                to: HOME,
                flight,
            },
        );
        self.send(
            at,
            true,
            Message {
                kind: message,
                bytes,
                mask,
                flight,
            },
        );
        Ok(())
    }

    /// A message is in flight from now on, until it is taken.
    pub(super) fn departs(&mut self, at: usize, message: MessageId) -> Checked {
        let line = &mut self.lines[at];
        line.in_flight.push(message);
        match self.protocol.bounds.exceeded(line.in_flight.len()) {
            Some(what) => wrong(at, format!("{what} for line {}", line.number)),
            None => Ok(()),
        }
    }

    /// A message was taken.
    pub(super) fn lands(&mut self, at: usize, message: MessageId) {
        let in_flight = &mut self.lines[at].in_flight;
        if let Some(place) = in_flight.iter().position(|&other| other == message) {
            in_flight.swap_remove(place);
        }
    }

    /// Puts a message on its way; those of an order arrive in order.
    pub(super) fn send(&mut self, at: usize, to_home: bool, message: Message) {
        if self.lines[at].holds_back {
            self.lines[at].held.push((to_home, message));
            return;
        }
        self.lines[at].under_way += 1;
        let channel = self.protocol.message(message.kind).channel;
        // Some are much later than most.
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
        self.under_way
            .insert((time, self.sequence), (at, to_home, message));
    }

    pub(super) fn deliver(&mut self) -> Checked {
        while let Some(entry) = self.under_way.first_entry() {
            if entry.key().0 > self.cycle {
                break;
            }
            let (at, to_home, message) = entry.remove();
            self.progress = self.cycle;
            self.lines[at].under_way -= 1;
            if to_home {
                self.arrive(at, message);
            } else {
                self.remote_takes(at, message)?;
            }
        }
        Ok(())
    }

    /// Puts a message before the home's port.
    pub(super) fn arrive(&mut self, at: usize, message: Message) {
        let slice = self.lines[at].number as usize % SLICES;
        let circuit = self.circuit_in(message.kind);
        self.lines[at].entering += 1;
        self.slices[slice].entrances[circuit]
            .queue
            .push_back((at, message));
    }

    pub(super) fn remote_takes(&mut self, at: usize, message: Message) -> Checked {
        let about = self.protocol.message(message.kind);
        let line = &mut self.lines[at];
        let (before, from) = (line.copy, line.remote.state);
        let occasion = Occasion {
            event: Event::Message(message.kind),
            sender: None,
            own: Some(0),
            fields: &[],
        };
        let stepped = self
            .remote_machine
            .step(&mut line.remote, occasion, &mut { &self.protocol.remote });
        let outcome = stepped.or_else(|stopped| wrong(at, format!("{:?}", stopped.fault)))?;
        let acts = match outcome {
            Outcome::Taken { acts, .. } => acts,
            Outcome::Leave => {
                self.send(at, false, message);
                return Ok(());
            }
            _ => return wrong(at, format!("the remote has no row for {}", about.name)),
        };
        let next = &self.protocol.remote.states[usize::from(line.remote.state)];
        if line.remote.state != from {
            self.advance = self.cycle;
        }
        let mut copy = before;
        if let (true, Some(bytes)) = (about.carries.line(), message.bytes) {
            copy = bytes;
            if next.holds_line {
                line.copy = bytes;
            }
        }
        let name = next.name.clone();
        self.note(
            at,
            REMOTE,
            Action::Receive {
                message: about.name.clone(),
                from: HOME,
                flight: message.flight,
            },
        );
        self.lands(at, message.kind);
        for act in acts {
            self.remote_sends(at, act, copy)?;
        }
        self.note(at, REMOTE, Action::Becomes { state: name });
        Ok(())
    }

    pub(super) fn circuit_in(&self, kind: MessageId) -> usize {
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
        let begins = more && self.chance.below(16) < self.run.device && !self.lines[at].guided;
        if begins && !self.home.locals.is_empty() {
            let line = &mut self.lines[at];
            // Now and then it gives back a lock that it may not have, if there are any.
            let locks = self.rom.locking.contains(&true);
            if locks && self.chance.below(8) == 0 && line.unlocks == 0 {
                self.unlock(at);
            } else if line.asked.len() < 3 && self.slices[slice].asks.len() < 4 {
                let operation = self.chance.below(self.home.locals.len() as u64) as u8;
                line.asked.push_back(operation);
                self.slices[slice].asks.push_back((at, operation));
            }
        }
        // What it has locked it uses and gives back, sooner at the end.
        let one = self.chance.below(self.lines.len() as u64) as usize;
        for at in if more {
            one..one + 1
        } else {
            0..self.lines.len()
        } {
            let line = &mut self.lines[at];
            let Some(kept) = line
                .locked
                .filter(|_| line.told && line.unlocks == 0 && !line.holds_back)
            else {
                continue;
            };
            if line.memory[..self.words] != line.latest[..self.words] {
                return wrong(
                    at,
                    format!(
                        "the device reads old bytes of line {} under its lock",
                        line.number
                    ),
                );
            }
            let right = self.protocol.remote.states[usize::from(line.remote.state)].right;
            if right > kept {
                return wrong(
                    at,
                    format!(
                        "the remote has the right {right:?} to line {} under the device's lock",
                        line.number
                    ),
                );
            }
            // What the remote may not read, the device may write.
            if kept == Right::None && !self.behind.remembers() && self.chance.below(2) == 0 {
                line.memory = self.chance.bytes();
                line.latest = line.memory;
            }
            self.unlock(at);
        }
        Ok(())
    }

    /// The device gives a line's lock back.
    pub(super) fn unlock(&mut self, at: usize) {
        self.lines[at].unlocks += 1;
        let slice = self.lines[at].number as usize % SLICES;
        self.slices[slice].unlocks.push_back(at);
    }
}

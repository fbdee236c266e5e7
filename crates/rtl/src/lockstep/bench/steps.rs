//! Steps of the home's units: the controller takes each step as well, which determines the expected outputs of the RTL.

use super::unit_resources::Use;
use super::*;
use cohkit_system::agent::{HomeContext, HomeInput, MemoryOp, Sending};

impl Bench<'_> {
    /// Checks a step of a unit against the controller.
    pub(super) fn home_steps(&mut self, step: u64) -> Checked {
        let field = |low: u32, bits: u32| (step >> low & ((1 << bits) - 1)) as usize;
        let (next, effect, state, number) =
            (field(36, 8), field(44, 2), field(46, 8), field(54, 6));
        if self.is_illegal_drop(step & ((1 << 36) - 1), state, number, effect) {
            return Ok(());
        }
        let at = self.line_of(step & ((1 << 36) - 1), "a step")?;
        let (evict, held) = (field(60, 1) != 0, field(61, 1) != 0);
        let Some(about) = self.rom.events.get(number) else {
            return wrong(
                at,
                format!("the home accepts an event with the undefined number {number}, which does not exist"),
            );
        };
        let line = &mut self.lines[at];
        let states = &self.rom.states;
        let place = format!(
            "on {} of line {} in {}",
            about.name,
            line.number,
            states[usize::from(line.home.state)]
        );
        if state != usize::from(line.home.state) {
            return wrong(
                at,
                format!(
                    "{place}, the home looks up the state {}",
                    states.get(state).map_or("?", |name| name)
                ),
            );
        }
        let event = about.event;
        let (home, expected, acts) =
            self.execute_in_controller(at, event, (effect, next), &place)?;
        let line = &self.lines[at];
        let used = Use {
            event: about.event,
            row: self.rom.row(state, number),
            state: line.home.state,
            evict,
            is_own_operation: evict || line.pending.is_some_and(|(_, own)| own),
        };
        let slice = line.number as usize % SLICES;
        // A refusal of the directory's own operation is no step either.
        if expected == 1 || expected == 2 && evict {
            self.stalls(slice, &[]);
        } else {
            self.check_stall_reason(at, slice, &used, held, &place)?;
        }
        // A resource is missing; the unit will retry the event.
        if held {
            return Ok(());
        }
        self.counts_event(slice, number, &used, expected);
        let line = &mut self.lines[at];
        let rights = [&line.home, &home].map(|home| self.rom.rights[usize::from(home.state)]);
        if let (true, [before, after]) = (rights[0] != rights[1], rights) {
            let change = Change {
                line: line.number,
                before,
                after,
            };
            let unit = line.number as usize % self.requests.len();
            self.changes.record_change(unit, change, self.cycle);
        }
        line.home = home;
        self.report.covered[state][number] = true;
        if expected >= 2 {
            self.progress = self.cycle;
        }
        let event = about.event;
        if matches!(event, Event::MemoryData(_) | Event::MemoryDone) {
            self.advance = self.cycle;
        }
        let after = states[usize::from(line.home.state)].clone();
        self.record_port_event(PortEvent::Handles(at, event));
        let message = self.consume(at, event, expected, evict, &place)?;
        if expected == 3 {
            self.apply_home_actions(at, event, acts, message, place)?;
            self.note(at, HOME, Action::Becomes { state: after });
        }
        if expected >= 2 {
            let granted = used.row.grant.and_then(|grant| {
                let sent = &self.rom.sends[usize::from(grant)];
                let expected = self.lines[at].expected[sent.circuit].iter();
                let last = expected.rev().find(|message| message.kind == sent.message);
                last.map(|message| message.flight)
            });
            self.update_resources(at, &used, granted);
        }
        Ok(())
    }

    /// Executes an event in the controller. Returns its new configuration, the number of the effect, and its actions.
    /// Fails if effect or next state differ from those that the unit reports.
    fn execute_in_controller(
        &self,
        at: usize,
        event: Event,
        (effect, next): (usize, usize),
        place: &str,
    ) -> Checked<(Configuration, usize, Vec<Act>)> {
        let states = &self.rom.states;
        let occasion = Trigger {
            home: 0,
            event,
            sender: Some(0),
            own: None,
            fields: &[],
        };
        let mut home = self.lines[at].home.clone();
        let stepped = self
            .home_machine
            .step(&mut home, occasion, &mut { self.home });
        let outcome = stepped.or_else(|stopped| wrong(at, format!("{:?}", stopped.fault)))?;
        let (expected, acts) = match outcome {
            Outcome::Unexpected => (0, Vec::new()),
            Outcome::Leave => (1, Vec::new()),
            Outcome::Refuse => (2, Vec::new()),
            Outcome::Taken { acts, .. } => (3, acts),
        };
        let names = ["cannot happen", "stalls it", "refuses it", "takes it"];
        if effect != expected {
            return wrong(
                at,
                format!(
                    "{place}, the home {}; by the controller it {}",
                    names[effect], names[expected]
                ),
            );
        }
        if expected == 3 && next != usize::from(home.state) {
            let after = &states[usize::from(home.state)];
            return wrong(
                at,
                format!(
                    "{place}, the home goes to {}; by the controller to {after}",
                    states.get(next).map_or("?", |name| name)
                ),
            );
        }
        Ok((home, expected, acts))
    }

    /// Checks that the unit had a reason to stall an event, and that it had the resources for an event that it
    /// consumed.
    fn check_stall_reason(
        &mut self,
        at: usize,
        slice: usize,
        used: &Use,
        held: bool,
        place: &str,
    ) -> Checked {
        let (missing_resources, sure) = self.missing_resources(at, used);
        match (held, missing_resources.is_empty(), sure) {
            (true, false, _) => self.stalls(slice, &missing_resources),
            (true, true, _) => {
                return wrong(
                    at,
                    format!("{place}, the home stalls although all resources are free"),
                )
            }
            (false, _, true) => {
                let last = missing_resources.last();
                return wrong(
                    at,
                    format!("{place}, the home continues without a free {last:?}"),
                );
            }
            (false, ..) => {}
        }
        Ok(())
    }

    /// Removes the event of a step from its queue.
    pub(super) fn consume(
        &mut self,
        at: usize,
        event: Event,
        effect: usize,
        evict: bool,
        place: &str,
    ) -> Checked<Option<Message>> {
        let taken = effect >= 2;
        if self.behind.has_memory() {
            self.predict_action(at, event, evict);
        }
        let line = &mut self.lines[at];
        let missing = || wrong(at, format!("{place}, no such input has reached the home"));
        let what = match event {
            Event::Message(kind) => {
                let Some(index) = line.arrived.iter().position(|message| message.kind == kind)
                else {
                    return missing();
                };
                if !taken {
                    return Ok(None);
                }
                let message = line.arrived.remove(index);
                self.consume_message(at, kind);
                let unit = self.unit(at);
                match self.protocol.class(kind) {
                    Some(Class::Request) => self.requests[unit] -= 1,
                    _ => self.responses[unit] -= 1,
                }
                let name = self.protocol.message(kind).name.clone();
                self.note(
                    at,
                    HOME,
                    Action::Receive {
                        message: name,
                        from: REMOTE,
                        flight: message.flight,
                    },
                );
                return Ok(Some(message));
            }
            Event::Local(operation) if evict => {
                if effect == 3 {
                    line.pending = Some((operation, true));
                    self.report.evictions += 1;
                }
                "makes room".to_string()
            }
            Event::Local(operation) => {
                if line.asked.front() != Some(&operation) {
                    return missing();
                }
                if taken {
                    line.asked.pop_front();
                }
                if effect == 3 {
                    line.pending = Some((operation, false));
                } else if effect == 2 {
                    line.answers.push(Answer {
                        unlock: false,
                        refused: true,
                        operation,
                    });
                }
                format!("takes {}", self.home.locals[usize::from(operation)].name)
            }
            Event::Unlock => {
                if line.unlocks == 0 {
                    return missing();
                }
                if effect == 2 {
                    line.answers.push(Answer {
                        unlock: true,
                        refused: true,
                        operation: 0,
                    });
                }
                "takes the unlock".into()
            }
            Event::MemoryData(_) => {
                if !matches!(line.operation, Memory::Read(_)) {
                    return missing();
                }
                "takes the memory's data".into()
            }
            Event::MemoryDone => {
                if line.operation != Memory::Written {
                    return missing();
                }
                line.operation = Memory::Idle;
                "hears that memory is done".into()
            }
            Event::Access(_) => return missing(),
        };
        if taken {
            self.note(at, HOME, Action::Does { what });
        }
        Ok(None)
    }

    /// Applies the actions of the home's controller, which the RTL must then perform.
    fn apply_home_actions(
        &mut self,
        at: usize,
        event: Event,
        acts: Vec<Act>,
        message: Option<Message>,
        place: String,
    ) -> Checked {
        let (protocol, rules) = (self.protocol, self.rules.clone());
        let brought = match (&message, &self.lines[at].operation) {
            (Some(message), _) => message.bytes,
            (None, Memory::Read(bytes)) if matches!(event, Event::MemoryData(_)) => Some(*bytes),
            _ => None,
        };
        let taken = HomeInput {
            message: message.as_ref().map(|message| message.kind),
            sender: Some(0),
            brought: brought.as_ref(),
        };
        let mut around = HomeRowContext {
            bench: self,
            at,
            message: message.as_ref(),
            place: &place,
        };
        let done = agent::home(protocol, &rules.facts, acts, taken, &mut around);
        done.map_err(|wrong| wrong.about(at))
    }
}

/// Execution context of the home's rows.
struct HomeRowContext<'b, 'a> {
    bench: &'b mut Bench<'a>,
    at: usize,
    /// The message that the row consumes, if any.
    message: Option<&'b Message>,
    /// Description of the event for error messages.
    place: &'b str,
}

impl HomeRowContext<'_, '_> {
    fn line(&mut self) -> &mut Line {
        &mut self.bench.lines[self.at]
    }

    fn wrong<T>(&self, what: &str) -> Checked<T> {
        wrong(self.at, format!("{}, {what}", self.place))
    }

    fn unknown<T>(&self) -> Checked<T> {
        self.wrong("constructed homes have no such action")
    }
}

impl HomeContext for HomeRowContext<'_, '_> {
    type Copy = Bytes;
    type Wrong = Wrong;

    fn current(&self, copy: &Bytes) -> bool {
        self.bench.lines[self.at].is_current(copy, self.bench.words)
    }

    /// Bytes carry their values, so comparison with the last write shows that they are stale.
    fn mark_stale(&self, copy: &Bytes) -> Bytes {
        *copy
    }

    fn send(&mut self, sending: Sending<Bytes>) -> Checked {
        let at = self.at;
        let kind = sending.message;
        self.bench.count_message_in_flight(at, kind)?;
        let name = &self.bench.protocol.message(kind).name;
        let bytes = match sending.bytes {
            Sent::Line(bytes) if !self.current(&bytes) => {
                return self.wrong(&format!("memory was stale when it was read for {name}"));
            }
            Sent::Line(bytes) => {
                self.line().operation = Memory::Idle;
                Some(bytes)
            }
            Sent::None | Sent::Write => None,
        };
        let sent = self
            .bench
            .rom
            .sends
            .iter()
            .find(|sent| sent.message == kind);
        let circuit = sent.map_or(0, |sent| sent.circuit);
        let flight = self.bench.flight;
        self.bench.flight += 1;
        self.line().expected[circuit].push_back(Message {
            kind,
            bytes,
            mask: u16::MAX,
            flight,
        });
        let (message, to) = (name.clone(), REMOTE);
        let sends = Action::Send {
            message,
            to,
            flight,
        };
        self.bench.note(at, HOME, sends);
        Ok(())
    }

    fn memory(&self) -> Bytes {
        self.bench.lines[self.at].memory
    }

    fn set_memory(&mut self, _copy: &Bytes) -> Checked {
        self.unknown()
    }

    fn lock(&self) -> Right {
        self.bench.lines[self.at].locked.unwrap_or(Right::None)
    }

    fn store(&mut self, _from: Option<u8>, _whole: bool) -> Checked {
        self.unknown()
    }

    fn defer_write(&mut self, _from: Option<u8>, _whole: bool) -> Checked {
        self.unknown()
    }

    fn take_deferred_write(&mut self) -> Checked<(Option<u8>, bool)> {
        self.unknown()
    }

    fn start(&mut self, wish: MemoryOp<Bytes>) -> Checked {
        let state = usize::from(self.line().home.state);
        self.line().right = match wish {
            MemoryOp::Read => self.bench.read_permission(self.at),
            _ => self.bench.rom.rights[state],
        };
        if wish == MemoryOp::Read {
            self.line().operation = Memory::ReadWanted;
            return Ok(());
        }
        let Some(&Message {
            bytes: Some(bytes),
            mask,
            ..
        }) = self.message
        else {
            return self.wrong("memory is written without data");
        };
        let words = self.bench.words;
        let latest = &mut self.line().latest;
        if let MemoryOp::Write(copy) = &wish {
            if !self.current(copy) {
                return self.wrong("the remote wrote back stale data");
            }
        } else {
            // A write without caching is performed at this moment.
            for (word, &bytes) in bytes.iter().enumerate().take(words) {
                let covered = covered(mask, word, words);
                latest[word] = latest[word] & !covered | bytes & covered;
            }
        }
        self.line().operation = Memory::WriteWanted(bytes, mask);
        Ok(())
    }

    fn acknowledge(&mut self, operation: u8) -> Checked {
        self.bench.record_operation_end();
        let Some((pending, of_directory)) = self.line().pending.take() else {
            return self.wrong("no operation is outstanding to be acknowledged");
        };
        let Local { ensures, locks, .. } = self.bench.home.locals[usize::from(operation)];
        let state = usize::from(self.line().remote.state);
        let right = self.bench.protocol.remote.states[state].right;
        if pending != operation || right > ensures {
            return self.wrong(&format!(
                "the remote has the permission {right:?} when operation {operation} is acknowledged"
            ));
        }
        if locks {
            self.line().locked = Some(ensures);
        }
        if !of_directory && self.bench.behind.asks() {
            self.bench.complete_endpoint_operation(self.at)?;
        } else if !of_directory {
            self.line().answers.push(Answer {
                unlock: false,
                refused: false,
                operation,
            });
        }
        Ok(())
    }

    fn unlocked(&mut self) {
        let line = self.line();
        line.locked = None;
        line.told = false;
        line.answers.push(Answer {
            unlock: true,
            refused: false,
            operation: 0,
        });
    }
}

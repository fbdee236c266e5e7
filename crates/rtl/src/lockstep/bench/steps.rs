//! Steps of the home's units: the controller takes each step as well, which determines the expected outputs of the RTL.

use super::unit_resources::Use;
use super::*;
use cohkit_system::agent::{HomeContext, HomeInput, MemoryOp, Sending};

impl Bench<'_> {
    /// Checks a step of a unit against the controller.
    pub(super) fn check_home_step(&mut self, step: u64) -> Checked {
        let field = |low: u32, bits: u32| (step >> low & ((1 << bits) - 1)) as usize;
        let (next, effect, state, number) =
            (field(36, 8), field(44, 2), field(46, 8), field(54, 6));
        if self.is_illegal_drop(step & ((1 << 36) - 1), state, number, effect) {
            return Ok(());
        }
        let line_index = self.line_of(step & ((1 << 36) - 1), "a step")?;
        let (evict, is_stalled) = (field(60, 1) != 0, field(61, 1) != 0);
        let Some(occurrence) = self.rom.events.get(number) else {
            return line_failure(
                line_index,
                format!("the home accepts an event with the undefined number {number}, which does not exist"),
            );
        };
        let line = &mut self.lines[line_index];
        let states = &self.rom.states;
        let location = format!(
            "on {} of line {} in {}",
            occurrence.name,
            line.number,
            states[usize::from(line.home.state)]
        );
        if state != usize::from(line.home.state) {
            return line_failure(
                line_index,
                format!(
                    "{location}, the home looks up the state {}",
                    states.get(state).map_or("?", |name| name)
                ),
            );
        }
        let event = occurrence.event;
        let (home, expected, acts) =
            self.execute_in_controller(line_index, event, (effect, next), &location)?;
        let line = &self.lines[line_index];
        let used = Use {
            event: occurrence.event,
            row: self.rom.row(state, number),
            state: line.home.state,
            evict,
            is_own_operation: evict
                || line
                    .pending_local
                    .is_some_and(|(_, by_directory)| by_directory),
        };
        let slice = line.number as usize % SLICES;
        // A refusal of the directory's own operation is no step either.
        if expected == 1 || expected == 2 && evict {
            self.count_stall(slice, &[]);
        } else {
            self.check_stall_reason(line_index, slice, &used, is_stalled, &location)?;
        }
        // A resource is missing; the unit will retry the event.
        if is_stalled {
            return Ok(());
        }
        self.count_event(slice, number, &used, expected);
        let line = &mut self.lines[line_index];
        let permissions = [&line.home, &home].map(|home| self.rom.rights[usize::from(home.state)]);
        if let (true, [before, after]) = (permissions[0] != permissions[1], permissions) {
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
            self.last_activity = self.cycle;
        }
        let event = occurrence.event;
        if matches!(event, Event::MemoryData(_) | Event::MemoryDone) {
            self.last_advance = self.cycle;
        }
        let next_state = states[usize::from(line.home.state)].clone();
        self.record_port_event(PortEvent::Handles(line_index, event));
        let message = self.consume(line_index, event, expected, evict, &location)?;
        if expected == 3 {
            self.apply_home_actions(line_index, event, acts, message, location)?;
            self.note(line_index, HOME, Action::Becomes { state: next_state });
        }
        if expected >= 2 {
            let granted = used.row.grant.and_then(|grant| {
                let sent = &self.rom.sends[usize::from(grant)];
                let expected = self.lines[line_index].expected_departures[sent.circuit].iter();
                let newest = expected.rev().find(|message| message.kind == sent.message);
                newest.map(|message| message.flight)
            });
            self.update_resources(line_index, &used, granted);
        }
        Ok(())
    }

    /// Executes an event in the controller. Returns its new configuration, the number of the effect, and its actions.
    /// Fails if effect or next state differ from those that the unit reports.
    fn execute_in_controller(
        &self,
        line_index: usize,
        event: Event,
        (effect, next): (usize, usize),
        location: &str,
    ) -> Checked<(Configuration, usize, Vec<Act>)> {
        let states = &self.rom.states;
        let trigger = Trigger {
            home: 0,
            event,
            sender: Some(0),
            executing_remote: None,
            fields: &[],
        };
        let mut home = self.lines[line_index].home.clone();
        let stepped = self
            .home_machine
            .step(&mut home, trigger, &mut { self.home });
        let outcome =
            stepped.or_else(|stopped| line_failure(line_index, format!("{:?}", stopped.fault)))?;
        let (expected, acts) = match outcome {
            Outcome::Unexpected => (0, Vec::new()),
            Outcome::Stall => (1, Vec::new()),
            Outcome::Refuse => (2, Vec::new()),
            Outcome::Taken { acts, .. } => (3, acts),
        };
        let names = ["cannot happen", "stalls it", "refuses it", "takes it"];
        if effect != expected {
            return line_failure(
                line_index,
                format!(
                    "{location}, the home {}; by the controller it {}",
                    names[effect], names[expected]
                ),
            );
        }
        if expected == 3 && next != usize::from(home.state) {
            let expected_state = &states[usize::from(home.state)];
            return line_failure(
                line_index,
                format!(
                    "{location}, the home goes to {}; by the controller to {expected_state}",
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
        line_index: usize,
        slice: usize,
        used: &Use,
        is_stalled: bool,
        location: &str,
    ) -> Checked {
        let (missing_resources, is_certain) = self.missing_resources(line_index, used);
        match (is_stalled, missing_resources.is_empty(), is_certain) {
            (true, false, _) => self.count_stall(slice, &missing_resources),
            (true, true, _) => {
                return line_failure(
                    line_index,
                    format!("{location}, the home stalls although all resources are free"),
                )
            }
            (false, _, true) => {
                let resource = missing_resources.last();
                return line_failure(
                    line_index,
                    format!("{location}, the home continues without a free {resource:?}"),
                );
            }
            (false, ..) => {}
        }
        Ok(())
    }

    /// Removes the event of a step from its queue.
    pub(super) fn consume(
        &mut self,
        line_index: usize,
        event: Event,
        effect: usize,
        evict: bool,
        location: &str,
    ) -> Checked<Option<Message>> {
        let is_consumed = effect >= 2;
        if self.endpoint.has_memory() {
            self.predict_action(line_index, event, evict);
        }
        let line = &mut self.lines[line_index];
        let missing = || {
            line_failure(
                line_index,
                format!("{location}, no such input has reached the home"),
            )
        };
        let what = match event {
            Event::Message(kind) => {
                let Some(index) = line
                    .arrived_messages
                    .iter()
                    .position(|message| message.kind == kind)
                else {
                    return missing();
                };
                if !is_consumed {
                    return Ok(None);
                }
                let message = line.arrived_messages.remove(index);
                self.consume_message(line_index, kind);
                let unit = self.unit(line_index);
                match self.protocol.class(kind) {
                    Some(Class::Request) => self.requests[unit] -= 1,
                    _ => self.responses[unit] -= 1,
                }
                let name = self.protocol.message(kind).name.clone();
                self.note(
                    line_index,
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
                    line.pending_local = Some((operation, true));
                    self.report.evictions += 1;
                }
                "makes room".to_string()
            }
            Event::Local(operation) => {
                if line.queued_locals.front() != Some(&operation) {
                    return missing();
                }
                if is_consumed {
                    line.queued_locals.pop_front();
                }
                if effect == 3 {
                    line.pending_local = Some((operation, false));
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
        if is_consumed {
            self.note(line_index, HOME, Action::Does { what });
        }
        Ok(None)
    }

    /// Applies the actions of the home's controller, which the RTL must then perform.
    fn apply_home_actions(
        &mut self,
        line_index: usize,
        event: Event,
        acts: Vec<Act>,
        message: Option<Message>,
        location: String,
    ) -> Checked {
        let (protocol, rules) = (self.protocol, self.rules.clone());
        let received_bytes = match (&message, &self.lines[line_index].operation) {
            (Some(message), _) => message.bytes,
            (None, Memory::Read(bytes)) if matches!(event, Event::MemoryData(_)) => Some(*bytes),
            _ => None,
        };
        let input = HomeInput {
            message: message.as_ref().map(|message| message.kind),
            sender: Some(0),
            brought: received_bytes.as_ref(),
        };
        let mut context = HomeRowContext {
            bench: self,
            line_index,
            message: message.as_ref(),
            location: &location,
        };
        let result = agent::home(protocol, &rules.facts, acts, input, &mut context);
        result.map_err(|error| error.on_line(line_index))
    }
}

/// Execution context of the home's rows.
struct HomeRowContext<'b, 'a> {
    bench: &'b mut Bench<'a>,
    line_index: usize,
    /// The message that the row consumes, if any.
    message: Option<&'b Message>,
    /// Description of the event for error messages.
    location: &'b str,
}

impl HomeRowContext<'_, '_> {
    fn line(&mut self) -> &mut Line {
        &mut self.bench.lines[self.line_index]
    }

    fn failure<T>(&self, message: &str) -> Checked<T> {
        line_failure(self.line_index, format!("{}, {message}", self.location))
    }

    fn unsupported<T>(&self) -> Checked<T> {
        self.failure("constructed homes have no such action")
    }
}

impl HomeContext for HomeRowContext<'_, '_> {
    type Copy = Bytes;
    type Error = BenchError;

    fn current(&self, copy: &Bytes) -> bool {
        self.bench.lines[self.line_index].is_current(copy, self.bench.words)
    }

    /// Bytes carry their values, so comparison with the last write shows that they are stale.
    fn mark_stale(&self, copy: &Bytes) -> Bytes {
        *copy
    }

    fn send(&mut self, sending: Sending<Bytes>) -> Checked {
        let line_index = self.line_index;
        let kind = sending.message;
        self.bench.count_message_in_flight(line_index, kind)?;
        let name = &self.bench.protocol.message(kind).name;
        let bytes = match sending.bytes {
            Sent::Line(bytes) if !self.current(&bytes) => {
                return self.failure(&format!("memory was stale when it was read for {name}"));
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
        self.line().expected_departures[circuit].push_back(Message {
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
        self.bench.note(line_index, HOME, sends);
        Ok(())
    }

    fn memory(&self) -> Bytes {
        self.bench.lines[self.line_index].memory
    }

    fn set_memory(&mut self, _copy: &Bytes) -> Checked {
        self.unsupported()
    }

    fn lock(&self) -> Right {
        self.bench.lines[self.line_index]
            .lock_permission
            .unwrap_or(Right::None)
    }

    fn store(&mut self, _from: Option<u8>, _whole: bool) -> Checked {
        self.unsupported()
    }

    fn defer_write(&mut self, _from: Option<u8>, _whole: bool) -> Checked {
        self.unsupported()
    }

    fn take_deferred_write(&mut self) -> Checked<(Option<u8>, bool)> {
        self.unsupported()
    }

    fn start(&mut self, operation: MemoryOp<Bytes>) -> Checked {
        let state = usize::from(self.line().home.state);
        self.line().permission = match operation {
            MemoryOp::Read => self.bench.read_permission(self.line_index),
            _ => self.bench.rom.rights[state],
        };
        if operation == MemoryOp::Read {
            self.line().operation = Memory::ReadWanted;
            return Ok(());
        }
        let Some(&Message {
            bytes: Some(bytes),
            mask,
            ..
        }) = self.message
        else {
            return self.failure("memory is written without data");
        };
        let words = self.bench.words;
        let latest = &mut self.line().latest;
        if let MemoryOp::Write(copy) = &operation {
            if !self.current(copy) {
                return self.failure("the remote wrote back stale data");
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
        let Some((pending, by_directory)) = self.line().pending_local.take() else {
            return self.failure("no operation is outstanding to be acknowledged");
        };
        let Local { ensures, locks, .. } = self.bench.home.locals[usize::from(operation)];
        let state = usize::from(self.line().remote.state);
        let permission = self.bench.protocol.remote.states[state].right;
        if pending != operation || permission > ensures {
            return self.failure(&format!(
                "the remote has the permission {permission:?} when operation {operation} is acknowledged"
            ));
        }
        if locks {
            self.line().lock_permission = Some(ensures);
        }
        if !by_directory && self.bench.endpoint.drives_local_ports() {
            self.bench.complete_endpoint_operation(self.line_index)?;
        } else if !by_directory {
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
        line.lock_permission = None;
        line.lock_reported = false;
        line.answers.push(Answer {
            unlock: true,
            refused: false,
            operation: 0,
        });
    }
}

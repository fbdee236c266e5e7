//! Steps of the home's units: the controller executes each step too, which determines the expected outputs of the RTL.

use super::context::Context;
use super::counts::Counts;
use super::endpoint::EndpointModel;
use super::error::{line_failure, BenchError, Checked};
use super::line::{
    covered_bits, Answer, Bytes, Direction, Line, Memory, Message, PendingLocal, HOME,
};
use super::port_events::PortEvent;
use super::units::{RowUse, Units};
use crate::lockstep::changes::{Change, Changes};
use crate::lockstep::model::SLICES;
use crate::lockstep::words::ReportedStep;
use crate::rom::Effect;
use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Event, Local};
use cohkit_protocol::execute::{Act, Configuration, Outcome};
use cohkit_protocol::protocol::Permission;
use cohkit_system::agent::{
    self, Bytes as Sent, HomeContext, HomeInput, MemoryOp, OutgoingMessage, RowContext, RowProblem,
};

/// The home's controller, with everything that its steps determine.
pub(super) struct Home<'b, 'a> {
    /// Time, lines and report of the run.
    pub context: &'b mut Context<'a>,
    /// Resources of all units.
    pub units: &'b mut Units,
    /// Expected counter values of each slice.
    pub counts: &'b mut [Counts; SLICES],
    /// Permission changes that each unit must report, including those that may be lost.
    pub changes: &'b mut Changes,
    /// Reference model of the endpoint behind the home.
    pub endpoint: &'b mut EndpointModel,
}

impl Home<'_, '_> {
    /// Checks a step of a unit against the controller.
    pub fn check_step(&mut self, step: &ReportedStep) -> Checked {
        let reference = self.context.reference.clone();
        let line_index = self.context.line_of(step.line, "a step")?;
        let Some(rom_event) = reference.rom.events.get(step.event) else {
            let number = step.event;
            return line_failure(
                line_index,
                format!("the home accepts an event with the undefined number {number}, which does not exist"),
            );
        };
        let line = &self.context.lines[line_index];
        let states = &reference.rom.states;
        let (number, state) = (line.number, usize::from(line.home.state));
        let location = format!(
            "on {} of line {number} in {}",
            rom_event.name, states[state]
        );
        if step.state != state {
            let looked_up = states.get(step.state).map_or("?", |name| name);
            let message = format!("{location}, the home looks up the state {looked_up}");
            return line_failure(line_index, message);
        }
        let event = rom_event.event;
        let (home, acts) = self.execute_in_controller(line_index, event, step, &location)?;
        let completes_own = line.pending_local.is_some_and(|local| local.by_directory);
        let used = RowUse {
            event,
            row: reference.rom.row(step.state, step.event),
            state: line.home.state,
            evict: step.evict,
            is_own_operation: step.evict || completes_own,
        };
        let slice = number as usize % SLICES;
        let effect = step.effect;
        // A refusal of the directory's own operation is a stall, too: the directory tries another line.
        if effect == Effect::Stall || effect == Effect::Refuse && step.evict {
            self.counts[slice].record_stall(&[]);
            self.context.report.explained_stalls += 1;
        } else {
            self.check_stall_reason(line_index, &used, step.is_stalled, &location)?;
        }
        // A resource is missing; the unit will retry the event.
        if step.is_stalled {
            return Ok(());
        }
        self.counts[slice].record_event(step.event, &used, effect);
        self.enter_state(line_index, home);
        self.context.report.covered[step.state][step.event] = true;
        if effect.consumes_event() {
            self.context.record_activity();
        }
        if matches!(event, Event::MemoryData(_) | Event::MemoryDone) {
            self.context.last_advance = self.context.cycle;
        }
        (self.context).record_port_event(PortEvent::EventHandled(line_index, event));
        self.apply_event(line_index, &used, effect, acts, &location)
    }

    /// Changes the home's state of a line, and records the permission change that its unit must report.
    fn enter_state(&mut self, line_index: usize, home: Configuration) {
        let Context {
            reference,
            lines,
            cycle,
            ..
        } = &mut *self.context;
        let line = &mut lines[line_index];
        let [before, after] =
            [&line.home, &home].map(|home| reference.rom.permissions[usize::from(home.state)]);
        if before != after {
            let change = Change {
                line: line.number,
                before,
                after,
            };
            self.changes
                .record_change(reference.unit(line.number), change, *cycle);
        }
        line.home = home;
    }

    /// Removes the event of a step from its queue if it is consumed, and applies the controller's actions.
    fn apply_event(
        &mut self,
        line_index: usize,
        used: &RowUse,
        effect: Effect,
        acts: Vec<Act>,
        location: &str,
    ) -> Checked {
        let reference = self.context.reference.clone();
        (self.endpoint).predict_action(self.context, line_index, used.event, used.evict);
        let message = match used.event {
            Event::Message(_) => self.consume_message(line_index, used.event, effect, location)?,
            _ => {
                self.consume_event(line_index, used, effect, location)?;
                None
            }
        };
        if effect == Effect::Take {
            let state = usize::from(self.context.lines[line_index].home.state);
            self.apply_actions(line_index, used.event, acts, message, location)?;
            let state = reference.rom.states[state].clone();
            (self.context).record_action(line_index, HOME, Action::Becomes { state });
        }
        if effect.consumes_event() {
            let granted = used.row.grant.and_then(|grant| {
                let sent = &reference.rom.sends[usize::from(grant)];
                let line = &self.context.lines[line_index];
                let expected = line.messages.expected[sent.circuit].iter();
                let newest = expected.rev().find(|message| message.kind == sent.message);
                newest.map(|message| message.flight)
            });
            self.units.update(self.context, line_index, used, granted);
        }
        Ok(())
    }

    /// Executes an event in the controller. Returns its new configuration and its actions. Fails if effect or next
    /// state differ from those that the unit reports.
    fn execute_in_controller(
        &self,
        line_index: usize,
        event: Event,
        step: &ReportedStep,
        location: &str,
    ) -> Checked<(Configuration, Vec<Act>)> {
        let reference = &self.context.reference;
        let states = &reference.rom.states;
        let (home, outcome) = reference.step_home(&self.context.lines[line_index], event);
        let outcome = outcome.or_else(|fault| line_failure(line_index, fault))?;
        let (expected, acts) = match outcome {
            Outcome::Unexpected => (Effect::Never, Vec::new()),
            Outcome::Stall => (Effect::Stall, Vec::new()),
            Outcome::Refuse => (Effect::Refuse, Vec::new()),
            Outcome::Taken { acts, .. } => (Effect::Take, acts),
        };
        if step.effect != expected {
            return line_failure(
                line_index,
                format!(
                    "{location}, the home {}; by the controller it {}",
                    describe_effect(step.effect),
                    describe_effect(expected)
                ),
            );
        }
        if expected == Effect::Take && step.next != usize::from(home.state) {
            let expected_state = &states[usize::from(home.state)];
            return line_failure(
                line_index,
                format!(
                    "{location}, the home goes to {}; by the controller to {expected_state}",
                    states.get(step.next).map_or("?", |name| name)
                ),
            );
        }
        Ok((home, acts))
    }

    /// Checks that the unit had a reason to stall an event, and that it had the resources for an event that it
    /// consumed.
    fn check_stall_reason(
        &mut self,
        line_index: usize,
        used: &RowUse,
        is_stalled: bool,
        location: &str,
    ) -> Checked {
        let missing = self.units.missing_resources(self.context, line_index, used);
        if !is_stalled {
            return match missing.possible.last().filter(|_| missing.is_certain) {
                None => Ok(()),
                Some(resource) => {
                    let message =
                        format!("{location}, the home continues without a free {resource:?}");
                    line_failure(line_index, message)
                }
            };
        }
        let report = &mut self.context.report;
        match missing.possible.len() {
            0 => {
                let message =
                    format!("{location}, the home stalls although all resources are free");
                return line_failure(line_index, message);
            }
            1 => report.explained_stalls += 1,
            _ => report.ambiguous_stalls += 1,
        }
        let slice = self.context.slice(line_index);
        self.counts[slice].record_stall(&missing.possible);
        Ok(())
    }

    /// Removes the message of a step from those that have arrived, if it is consumed.
    fn consume_message(
        &mut self,
        line_index: usize,
        event: Event,
        effect: Effect,
        location: &str,
    ) -> Checked<Option<Message>> {
        let arrived = &mut self.context.lines[line_index].messages.arrived;
        let position = arrived
            .iter()
            .position(|message| Event::Message(message.kind) == event);
        let Some(position) = position else {
            return missing_input(line_index, location);
        };
        if !effect.consumes_event() {
            return Ok(None);
        }
        let message = arrived.remove(position);
        let (kind, flight) = (message.kind, message.flight);
        self.context.consume_message(line_index, kind);
        let is_request = self.context.reference.is_request(kind);
        (self.units).record_consumption(self.context.unit(line_index), is_request);
        (self.context).record_receive(line_index, Direction::ToHome, kind, flight);
        Ok(Some(message))
    }

    /// Removes the event of a step that is no message from its queue, if it is consumed.
    fn consume_event(
        &mut self,
        line_index: usize,
        used: &RowUse,
        effect: Effect,
        location: &str,
    ) -> Checked {
        let context = &mut *self.context;
        let is_consumed = effect.consumes_event();
        let line = &mut context.lines[line_index];
        let refusal = |unlock: bool, operation: u8| Answer {
            unlock,
            refused: true,
            operation,
        };
        let what = match used.event {
            Event::Local(operation) if used.evict => {
                if effect == Effect::Take {
                    line.pending_local = Some(PendingLocal {
                        operation,
                        by_directory: true,
                    });
                    context.report.evictions += 1;
                }
                "makes room".to_string()
            }
            Event::Local(operation) if line.queued_locals.front() == Some(&operation) => {
                if is_consumed {
                    line.queued_locals.pop_front();
                }
                if effect == Effect::Take {
                    line.pending_local = Some(PendingLocal {
                        operation,
                        by_directory: false,
                    });
                } else if effect == Effect::Refuse {
                    line.answers.push(refusal(false, operation));
                }
                let local = &context.reference.home.locals[usize::from(operation)];
                format!("takes {}", local.name)
            }
            Event::Unlock if line.unlocks > 0 => {
                if effect == Effect::Refuse {
                    line.answers.push(refusal(true, 0));
                }
                "takes the unlock".into()
            }
            Event::MemoryData(_) if matches!(line.operation, Memory::Read(_)) => {
                "takes the memory's data".into()
            }
            Event::MemoryDone if line.operation == Memory::Written => {
                line.operation = Memory::Idle;
                "hears that memory is done".into()
            }
            _ => return missing_input(line_index, location),
        };
        if is_consumed {
            context.record_action(line_index, HOME, Action::Does { what });
        }
        Ok(())
    }

    /// Applies the actions of the home's controller, which the RTL must then perform.
    fn apply_actions(
        &mut self,
        line_index: usize,
        event: Event,
        acts: Vec<Act>,
        message: Option<Message>,
        location: &str,
    ) -> Checked {
        let reference = self.context.reference.clone();
        let received_bytes = match (&message, &self.context.lines[line_index].operation) {
            (Some(message), _) => message.bytes,
            (None, Memory::Read(bytes)) if matches!(event, Event::MemoryData(_)) => Some(*bytes),
            _ => None,
        };
        let input = HomeInput {
            message: message.as_ref().map(|message| message.kind),
            carried_copy: received_bytes.as_ref(),
        };
        let mut row = HomeRow {
            context: &mut *self.context,
            endpoint: &mut *self.endpoint,
            line_index,
            acts: acts.into_iter(),
            message: message.as_ref(),
            location,
        };
        let result = agent::home(&reference.facts, input, &mut row);
        result.map_err(|error| error.on_line(line_index))
    }
}

/// Returns a description of an effect, for error messages.
fn describe_effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Never => "cannot happen",
        Effect::Stall => "stalls it",
        Effect::Refuse => "refuses it",
        Effect::Take => "takes it",
    }
}

/// Returns a failure: the home handles an event that has not occurred.
fn missing_input<T>(line_index: usize, location: &str) -> Checked<T> {
    let message = format!("{location}, no such input has reached the home");
    line_failure(line_index, message)
}

/// Execution context of the home's rows.
struct HomeRow<'b, 'a> {
    /// Time, lines and report of the run.
    context: &'b mut Context<'a>,
    /// Reference model of the endpoint behind the home.
    endpoint: &'b mut EndpointModel,
    /// Line of the row, as an index into the context's lines.
    line_index: usize,
    /// Acts of the row.
    acts: std::vec::IntoIter<Act>,
    /// The message that the row consumes, if any.
    message: Option<&'b Message>,
    /// Description of the event for error messages.
    location: &'b str,
}

impl HomeRow<'_, '_> {
    /// Returns the state of the row's line.
    fn line(&mut self) -> &mut Line {
        &mut self.context.lines[self.line_index]
    }

    /// Returns a failed comparison, with the event that caused it.
    fn failure<T>(&self, message: &str) -> Checked<T> {
        line_failure(self.line_index, format!("{}, {message}", self.location))
    }

    /// Returns a failure for an action that no home in the hardware has.
    fn unsupported<T>(&self) -> Checked<T> {
        self.failure("constructed homes have no such action")
    }
}

impl RowContext for HomeRow<'_, '_> {
    type Copy = Bytes;
    type Fields = Vec<u16>;
    type Error = BenchError;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn report(&mut self, problem: RowProblem<Bytes>) -> Checked {
        Err(problem.violation(self.context.reference.protocol).into())
    }

    fn is_current(&self, copy: &Bytes) -> bool {
        self.context.is_current(self.line_index, copy)
    }

    fn send(&mut self, outgoing: OutgoingMessage<Bytes>) -> Checked {
        let (line_index, kind) = (self.line_index, outgoing.message);
        self.context.count_message_in_flight(line_index, kind)?;
        let reference = self.context.reference.clone();
        let bytes = match outgoing.bytes {
            Sent::Line(bytes) if !self.is_current(&bytes) => {
                let name = &reference.protocol.message(kind).name;
                return self.failure(&format!("memory was stale when it was read for {name}"));
            }
            Sent::Line(bytes) => {
                self.line().operation = Memory::Idle;
                Some(bytes)
            }
            Sent::None | Sent::Write => None,
        };
        let mut sends = reference.rom.sends.iter();
        let circuit = sends
            .find(|sent| sent.message == kind)
            .map_or(0, |sent| sent.circuit);
        let flight = (self.context).record_send(line_index, Direction::ToRemote, kind);
        self.line().messages.expected[circuit].push_back(Message {
            kind,
            bytes,
            mask: u16::MAX,
            flight,
        });
        Ok(())
    }
}

impl HomeContext for HomeRow<'_, '_> {
    /// Bytes carry their values, so comparison with the last write shows that they are stale.
    fn mark_stale(&self, copy: &Bytes) -> Bytes {
        *copy
    }

    fn memory(&mut self) -> Bytes {
        self.context.lines[self.line_index].memory
    }

    fn may_read_memory(&self) -> bool {
        let line = &self.context.lines[self.line_index];
        self.context.reference.facts.slot || line.lock_permission != Some(Permission::Write)
    }

    fn set_memory(&mut self, _copy: Bytes) -> Checked {
        self.unsupported()
    }

    fn store(&mut self, _whole: bool) -> Checked {
        self.unsupported()
    }

    fn defer_write(&mut self, _whole: bool) -> Checked {
        self.unsupported()
    }

    fn commit_deferred(&mut self) -> Checked {
        self.unsupported()
    }

    fn start(&mut self, operation: MemoryOp<Bytes>) -> Checked {
        let reference = self.context.reference.clone();
        let line = self.line();
        line.permission = match operation {
            MemoryOp::Read => reference.read_permission(line),
            _ => reference.rom.permissions[usize::from(line.home.state)],
        };
        if operation == MemoryOp::Read {
            line.operation = Memory::ReadWanted;
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
        let words = reference.words;
        if let MemoryOp::Write(copy) = &operation {
            if !self.is_current(copy) {
                return self.failure("the remote wrote back stale data");
            }
        } else {
            // A write without caching is performed at this moment.
            let latest = &mut self.line().latest;
            for (word, &bytes) in bytes.iter().enumerate().take(words) {
                let covered = covered_bits(mask, word, words);
                latest[word] = latest[word] & !covered | bytes & covered;
            }
        }
        self.line().operation = Memory::WriteWanted(bytes, mask);
        Ok(())
    }

    fn acknowledge(&mut self, operation: u8) -> Checked {
        let reference = self.context.reference.clone();
        self.context.record_operation_end();
        let Some(pending) = self.line().pending_local.take() else {
            return self.failure("no operation is outstanding to be acknowledged");
        };
        let Local { ensures, locks, .. } = reference.home.locals[usize::from(operation)];
        let permission = self.context.permission(self.line_index);
        if pending.operation != operation || permission > ensures {
            return self.failure(&format!(
                "the remote has the permission {permission:?} when operation {operation} is acknowledged"
            ));
        }
        if locks {
            self.line().lock_permission = Some(ensures);
        }
        if pending.by_directory {
            return Ok(());
        }
        if reference.shape.endpoint.drives_local_ports() {
            self.endpoint
                .complete_operation(self.context, self.line_index)?;
        } else {
            self.line().answers.push(Answer {
                unlock: false,
                refused: false,
                operation,
            });
        }
        Ok(())
    }

    fn acknowledge_unlock(&mut self) {
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

//! The home: its controller, its units, and its memory operations.

use super::{
    reaction, InFlightMessage, LineState, MemoryChannel, Progress, StepError, Transition,
    SENT_STORES, ZERO_LATENCY_MEMORY,
};
use cohkit_application::interface::{Event, Line, Operation, Scenario, Words};
use cohkit_protocol::controller::Event as Cause;
use cohkit_protocol::execute::{Act, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{Class, MessageId, Permission};
use cohkit_protocol::rows::event_words;
use cohkit_system::agent::{
    self, Bytes, HomeContext, HomeInput, MemoryOp, OutgoingMessage, RowContext, RowProblem,
};
use std::hash::Hash;

impl<S: Scenario> Transition<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Offers a message to the home. Returns false if the home stalls it.
    pub(super) fn offer_message(
        &mut self,
        line: Line,
        flight: &InFlightMessage,
    ) -> Result<bool, StepError> {
        let event = Cause::Message(flight.message);
        let trigger = trigger(event, Some(flight.remote.into()), &flight.fields);
        self.offer_home_event(line, trigger, flight.words.as_ref())
    }

    /// Offers the completion of a memory operation to the home. Returns false if this is no step. A completion that
    /// the home stalls for the first time is a step: the operation becomes ready, and its unit may start another
    /// one.
    pub(super) fn offer_completion(&mut self, line: Line, event: Cause) -> Result<bool, StepError> {
        let trigger = trigger(event, None, &[]);
        let line_state = &mut self.state.lines[line as usize];
        let progress = match event {
            Cause::MemoryDone => &mut line_state.writing,
            _ => &mut line_state.reading,
        };
        let previous_progress = std::mem::replace(progress, Progress::Idle);
        let (model, line_state) = (self.static_model.model, &self.state.lines[line as usize]);
        let (outcome, _) = reaction(
            model.protocol,
            &self.static_model.home,
            model.home,
            &line_state.home,
            trigger,
        )?;
        let is_alternative = matches!(event, Cause::MemoryData(1..));
        if is_alternative && outcome == Outcome::Unexpected {
            return Ok(false);
        }
        let is_consumed = self.offer_home_event(line, trigger, None)?;
        if is_consumed || previous_progress == Progress::Ready {
            return Ok(is_consumed);
        }
        let line_state = &mut self.state.lines[line as usize];
        match event {
            Cause::MemoryDone => line_state.writing = Progress::Ready,
            _ => line_state.reading = Progress::Ready,
        }
        Ok(true)
    }

    /// Offers a local operation or an unlock, by its index in the unit's queue, to the home. Returns false if the
    /// home stalls it.
    pub(super) fn consume_operation(
        &mut self,
        unit: usize,
        index: usize,
    ) -> Result<bool, StepError> {
        let (line, operation) = self.state.units[unit].locals[index];
        let event = operation.map_or(Cause::Unlock, Cause::Local);
        let trigger = trigger(event, None, &[]);
        let is_consumed = self.offer_home_event(line, trigger, None)?;
        if is_consumed {
            self.state.units[unit].locals.remove(index);
        }
        Ok(is_consumed)
    }

    /// Offers an event to the home, and applies its reaction. Returns false if the home stalls the event, its unit
    /// lacks a resource, or the application has yet to receive an event about the line. `words` is the data of the
    /// event's message.
    pub(super) fn offer_home_event(
        &mut self,
        line: Line,
        trigger: Trigger,
        words: Option<&Words>,
    ) -> Result<bool, StepError> {
        let model = self.static_model.model;
        let configuration = self.state.lines[line as usize].home.clone();
        let (outcome, reaction) = reaction(
            model.protocol,
            &self.static_model.home,
            model.home,
            &configuration,
            trigger,
        )?;
        let Some(reaction) = reaction else {
            return match outcome {
                Outcome::Stall => Ok(false),
                _ => {
                    let state = &model.home.states[usize::from(configuration.state)].name;
                    let event = event_words(model.protocol, model.home, trigger.event);
                    Err(StepError::Violation(format!(
                        "the home of line {line} has no rule for {event} in {state}"
                    )))
                }
            };
        };
        let unit_index = self.static_model.unit(line);
        if self.lacks_resource(unit_index, line, &reaction.acts) {
            return Ok(false);
        }
        // The application must receive an event about a line before the next one is created; otherwise their number
        // would be unbounded.
        let (from, to) = (
            self.static_model.known_permission(&configuration),
            self.static_model.known_permission(&reaction.next),
        );
        let notifies = from != to
            || reaction
                .acts
                .iter()
                .any(|act| matches!(act, Act::Acknowledge(_)));
        if notifies && self.has_pending_notification(line) {
            return Ok(false);
        }
        if let Cause::Message(message) = trigger.event {
            self.count_answer(unit_index, line, message);
        }
        self.state.lines[line as usize].home = reaction.next;
        let static_model = self.static_model;
        let data = words.map(|words| Some(words.clone()));
        let input = HomeInput {
            message: match trigger.event {
                Cause::Message(message) => Some(message),
                _ => None,
            },
            carried_copy: data.as_ref(),
        };
        let mut context = PlayHomeContext {
            transition: self,
            line,
            acts: reaction.acts.into_iter(),
        };
        agent::home(&static_model.facts, input, &mut context)?;
        if from != to {
            self.schedule_event(
                MemoryChannel::Notification(line),
                Event::PermissionChange { line, from, to },
            );
        }
        Ok(true)
    }

    /// Returns true if the application has yet to receive a notification about a line.
    fn has_pending_notification(&self, line: Line) -> bool {
        let mut pending_events = self.state.pending_events.iter();
        pending_events.any(|&(channel, _)| channel == MemoryChannel::Notification(line))
    }

    /// Counts a message that answers a forward of a unit.
    fn count_answer(&mut self, unit_index: usize, line: Line, message: MessageId) {
        let unit = &mut self.state.units[unit_index];
        let answer = self.static_model.model.protocol.class(message) == Some(Class::Answer);
        if answer && unit.forwards > 0 && unit.forwarding == line {
            unit.forwards -= 1;
        }
        // The line of completed forwards is irrelevant; clear it to merge equivalent states.
        if unit.forwards == 0 {
            unit.forwarding = 0;
        }
    }

    /// Returns true if a unit lacks a resource for the home's actions: a memory read or write, or the coherence
    /// transaction.
    pub(super) fn lacks_resource(&self, unit: usize, line: Line, acts: &[Act]) -> bool {
        let model = self.static_model.model;
        let busy_lines = |progress_of: fn(&LineState) -> Progress| {
            let lines = self.state.lines.iter().enumerate();
            let is_busy = |(number, line): &(usize, &LineState)| {
                let is_pending = !matches!(progress_of(line), Progress::Idle | Progress::Ready);
                self.static_model.unit(*number as Line) == unit && is_pending
            };
            lines.filter(is_busy).count()
        };
        acts.iter().any(|act| match act {
            Act::StartRead => busy_lines(|line| line.reading) >= model.max_reads,
            Act::StartWrite | Act::StartStore { .. } => busy_lines(|line| line.writing) > 0,
            Act::Send { message, .. } => {
                let unit = &self.state.units[unit];
                let is_forward = model.protocol.class(*message) == Some(Class::Forward);
                is_forward && unit.forwards > 0 && unit.forwarding != line
            }
            _ => false,
        })
    }

    /// Starts a read by memory, or by the application that serves the line.
    fn start_read(&mut self, line: Line) {
        let line_state = &mut self.state.lines[line as usize];
        if !self.static_model.placement.serves(line) {
            line_state.reading = Progress::Busy;
            return;
        }
        line_state.reading = Progress::Waiting;
        let mut next_configuration = line_state.home.clone();
        let has = self.static_model.known_permission(&next_configuration);
        let trigger = trigger(Cause::MemoryData(0), None, &[]);
        let mut tables = self.static_model.model.home;
        let result = self
            .static_model
            .home
            .step(&mut next_configuration, trigger, &mut tables);
        let wants = match result {
            Ok(Outcome::Taken { .. }) => self.static_model.known_permission(&next_configuration),
            _ => Permission::None,
        };
        let wants = if wants > has { wants } else { Permission::None };
        self.schedule_event(MemoryChannel::Read(line), Event::Read { line, wants, has });
    }

    /// Starts a write to memory, or to the application that serves the line. The contents change at once; only the
    /// completion takes time.
    fn start_write(&mut self, line: Line, words: Words) {
        let line_state = &mut self.state.lines[line as usize];
        line_state.memory = words.clone();
        if let Some(dirty) = self.state.outstanding_operations.get_mut(&line) {
            *dirty = true;
        }
        if self.static_model.placement.serves(line) {
            line_state.writing = Progress::Waiting;
            let keeps = self.static_model.known_permission(&line_state.home);
            self.schedule_event(
                MemoryChannel::Write(line),
                Event::Write { line, words, keeps },
            );
        } else {
            line_state.writing = Progress::Busy;
        }
    }

    /// Completes a local operation of the application, and checks what the operation promises: memory is current,
    /// and no cache has more permission than it ensures. `local` is its index in the home's controller.
    pub(super) fn acknowledge(&mut self, line: Line, local: u8) -> Result<(), StepError> {
        let local = &self.static_model.model.home.locals[usize::from(local)];
        let line_state = &self.state.lines[line as usize];
        if line_state.memory != line_state.latest {
            return Err(StepError::Violation(format!(
                "line {line} is given to {}, but memory is stale",
                self.static_model.name
            )));
        }
        for (number, remote) in line_state.remotes.iter().enumerate() {
            let permission = self.static_model.permission_of(&remote.configuration);
            if permission > local.ensures {
                let (name, operation_name) =
                    (self.static_model.remote_name(number as u8), &local.name);
                return Err(StepError::Violation(format!(
                    "{name} may {permission} line {line} after {operation_name}"
                )));
            }
        }
        let dirty = self
            .state
            .outstanding_operations
            .remove(&line)
            .unwrap_or(false);
        if local.locks {
            self.state.locks.insert(line, local.ensures);
        }
        let operation = match local.ensures {
            Permission::None => Operation::CleanInvalidate,
            _ => Operation::Clean,
        };
        let done = Event::LocalCompletion {
            line,
            operation,
            dirty,
        };
        self.schedule_event(MemoryChannel::Notification(line), done);
        Ok(())
    }
}

/// Returns the trigger of a home's event.
fn trigger(event: Cause, sender: Option<u16>, fields: &[u16]) -> Trigger<'_> {
    Trigger {
        home: 0,
        event,
        sender,
        executing_remote: None,
        fields,
    }
}

/// Environment of the home's row, for [`agent::home`].
struct PlayHomeContext<'r, 'm, 'a, S: Scenario> {
    /// State that the row changes.
    transition: &'r mut Transition<'m, 'a, S>,
    /// Line of the row.
    line: Line,
    /// Acts of the row.
    acts: std::vec::IntoIter<Act>,
}

impl<S: Scenario> RowContext for PlayHomeContext<'_, '_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    type Copy = Option<Words>;
    type Fields = Vec<u16>;
    type Error = StepError;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn report(&mut self, problem: RowProblem<Option<Words>>) -> Result<(), StepError> {
        let protocol = self.transition.static_model.model.protocol;
        Err(StepError::Violation(problem.violation(protocol).into()))
    }

    fn is_current(&self, copy: &Option<Words>) -> bool {
        copy.as_ref() == Some(&self.transition.state.lines[self.line as usize].latest)
    }

    fn send(&mut self, outgoing: OutgoingMessage<Option<Words>>) -> Result<(), StepError> {
        let Receiver::Remote(remote) = outgoing.to else {
            return Err(StepError::Violation("the home sends to itself".to_string()));
        };
        let (static_model, line) = (self.transition.static_model, self.line);
        let words = match outgoing.bytes {
            Bytes::None => None,
            Bytes::Line(words) => words,
            Bytes::Write => return Err(StepError::unsupported(SENT_STORES)),
        };
        let OutgoingMessage {
            message, fields, ..
        } = outgoing;
        if static_model.model.protocol.class(message) == Some(Class::Forward)
            && static_model.answers
        {
            let unit = &mut self.transition.state.units[static_model.unit(line)];
            unit.forwards += 1;
            unit.forwarding = line;
        }
        (self.transition).send(line, message, remote as u8, false, fields, words)
    }
}

impl<S: Scenario> HomeContext for PlayHomeContext<'_, '_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Words carry their values, so comparison with the last write shows that they are stale.
    fn mark_stale(&self, copy: &Option<Words>) -> Option<Words> {
        copy.clone()
    }

    fn memory(&mut self) -> Option<Words> {
        Some(
            self.transition.state.lines[self.line as usize]
                .memory
                .clone(),
        )
    }

    fn may_read_memory(&self) -> bool {
        // A lock that leaves the caches no permission permits the device to write.
        let device_may_write =
            self.transition.state.locks.get(&self.line) == Some(&Permission::None);
        self.transition.static_model.facts.slot || !device_may_write
    }

    fn set_memory(&mut self, _copy: Option<Words>) -> Result<(), StepError> {
        Err(StepError::unsupported(ZERO_LATENCY_MEMORY))
    }

    fn store(&mut self, _whole: bool) -> Result<(), StepError> {
        Err(StepError::unsupported(ZERO_LATENCY_MEMORY))
    }

    fn defer_write(&mut self, _whole: bool) -> Result<(), StepError> {
        Err(StepError::unsupported(ZERO_LATENCY_MEMORY))
    }

    fn commit_deferred(&mut self) -> Result<(), StepError> {
        Err(StepError::unsupported(ZERO_LATENCY_MEMORY))
    }

    fn start(&mut self, operation: MemoryOp<Option<Words>>) -> Result<(), StepError> {
        match operation {
            MemoryOp::Read => self.transition.start_read(self.line),
            MemoryOp::Write(Some(words)) => self.transition.start_write(self.line, words),
            MemoryOp::Write(None) => {
                let line = self.line;
                return Err(StepError::Violation(format!(
                    "the home writes line {line} without bytes"
                )));
            }
            MemoryOp::Store { .. } => return Err(StepError::unsupported(SENT_STORES)),
        }
        Ok(())
    }

    fn acknowledge(&mut self, local: u8) -> Result<(), StepError> {
        self.transition.acknowledge(self.line, local)
    }

    fn acknowledge_unlock(&mut self) {}
}

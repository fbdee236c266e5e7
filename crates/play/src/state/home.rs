//! The home: its controller, its units, and its memory operations.

use super::*;
use cohkit_protocol::rows::event_words;
use cohkit_system::agent::{self, Bytes, HomeContext, HomeInput, MemoryOp, Sending};

impl<S: Scenario> Transition<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Offers a message to the home. Returns false if the home stalls it.
    pub(super) fn offer_message(&mut self, line: Line, flight: &Flight) -> Result<bool, Violation> {
        let trigger = Trigger {
            home: 0,
            event: Cause::Message(flight.message),
            sender: Some(flight.remote.into()),
            own: None,
            fields: &flight.fields,
        };
        self.home_event(line, trigger, flight.words.as_ref())
    }

    pub(super) fn memory_event(&mut self, line: Line, event: Cause) -> Result<bool, Violation> {
        let trigger = Trigger {
            home: 0,
            event,
            sender: None,
            own: None,
            fields: &[],
        };
        let place = &mut self.state.lines[line as usize];
        let progress = match event {
            Cause::MemoryDone => &mut place.writing,
            _ => &mut place.reading,
        };
        let before = std::mem::replace(progress, Progress::Idle);
        let (model, place) = (self.of.model, &self.state.lines[line as usize]);
        let (outcome, _) = reaction(
            model.protocol,
            &self.of.home,
            model.home,
            &place.home,
            trigger,
        )?;
        let alternative = matches!(event, Cause::MemoryData(1..));
        if alternative && outcome == Outcome::Unexpected {
            return Ok(false);
        }
        let taken = self.home_event(line, trigger, None)?;
        if taken || before == Progress::Ready {
            return Ok(taken);
        }
        let place = &mut self.state.lines[line as usize];
        match event {
            Cause::MemoryDone => place.writing = Progress::Ready,
            _ => place.reading = Progress::Ready,
        }
        Ok(true)
    }

    pub(super) fn local(&mut self, unit: usize, place: usize) -> Result<bool, Violation> {
        let (line, local) = self.state.units[unit].locals[place];
        let trigger = Trigger {
            home: 0,
            event: local.map_or(Cause::Unlock, Cause::Local),
            sender: None,
            own: None,
            fields: &[],
        };
        let taken = self.home_event(line, trigger, None)?;
        if taken {
            self.state.units[unit].locals.remove(place);
        }
        Ok(taken)
    }

    /// Offers an event to the home. Returns false if the home stalls it or its unit lacks a resource.
    pub(super) fn home_event(
        &mut self,
        line: Line,
        trigger: Trigger,
        words: Option<&Words>,
    ) -> Result<bool, Violation> {
        let model = self.of.model;
        let before = self.state.lines[line as usize].home.clone();
        let (outcome, reaction) =
            reaction(model.protocol, &self.of.home, model.home, &before, trigger)?;
        let Some(reaction) = reaction else {
            return match outcome {
                Outcome::Leave => Ok(false),
                _ => {
                    let state = &model.home.states[usize::from(before.state)].name;
                    let event = event_words(model.protocol, model.home, trigger.event);
                    Err(format!(
                        "the home of line {line} has no rule for {event} in {state}"
                    ))
                }
            };
        };
        let number = self.of.unit(line);
        if self.lacks_resource(number, line, &reaction.acts) {
            return Ok(false);
        }
        // The application must receive an event about a line before the next one is created; otherwise their number
        // would be unbounded.
        let (from, to) = (
            self.of.known_permission(&before),
            self.of.known_permission(&reaction.next),
        );
        let tells = from != to
            || reaction
                .acts
                .iter()
                .any(|act| matches!(act, Act::Acknowledge(_)));
        if tells
            && self
                .state
                .pending_events
                .iter()
                .any(|&(way, _)| way == MemoryChannel::Told(line))
        {
            return Ok(false);
        }
        if let Cause::Message(message) = trigger.event {
            let unit = &mut self.state.units[number];
            let answer = model.protocol.class(message) == Some(Class::Answer);
            if answer && unit.forwards > 0 && unit.forwarding == line {
                unit.forwards -= 1;
            }
            // The line of completed forwards is irrelevant; clear it to merge equivalent states.
            if unit.forwards == 0 {
                unit.forwarding = 0;
            }
        }
        self.state.lines[line as usize].home = reaction.next;
        let of = self.of;
        let brought = words.map(|words| Some(words.clone()));
        let taken = HomeInput {
            message: match trigger.event {
                Cause::Message(message) => Some(message),
                _ => None,
            },
            sender: trigger.sender.map(|sender| sender as u8),
            brought: brought.as_ref(),
        };
        let mut around = PlayHomeContext {
            transition: self,
            line,
        };
        agent::home(model.protocol, &of.facts, reaction.acts, taken, &mut around)?;
        if from != to {
            self.schedule_event(MemoryChannel::Told(line), Event::Changed { line, from, to });
        }
        Ok(true)
    }

    /// True if a unit lacks a resource for the home's actions.
    pub(super) fn lacks_resource(&self, unit: usize, line: Line, acts: &[Act]) -> bool {
        let model = self.of.model;
        let busy = |of: fn(&LineState) -> Progress| {
            let lines = self.state.lines.iter().enumerate();
            let busy = lines.filter(|(number, line)| {
                let of = of(line);
                let busy = !matches!(of, Progress::Idle | Progress::Ready);
                self.of.unit(*number as Line) == unit && busy
            });
            busy.count()
        };
        acts.iter().any(|act| match act {
            Act::StartRead => busy(|line| line.reading) >= model.reads,
            Act::StartWrite | Act::StartStore { .. } => busy(|line| line.writing) > 0,
            Act::Send { message, .. } => {
                let unit = &self.state.units[unit];
                let forward = model.protocol.class(*message) == Some(Class::Forward);
                forward && unit.forwards > 0 && unit.forwarding != line
            }
            _ => false,
        })
    }

    /// Starts a read by memory, or by the application that serves the line.
    fn start_read(&mut self, line: Line) {
        let place = &mut self.state.lines[line as usize];
        if !self.of.placement.serves(line) {
            place.reading = Progress::Busy;
            return;
        }
        place.reading = Progress::Waiting;
        let mut granted = place.home.clone();
        let has = self.of.known_permission(&granted);
        let trigger = Trigger {
            home: 0,
            event: Cause::MemoryData(0),
            sender: None,
            own: None,
            fields: &[],
        };
        let mut tables = self.of.model.home;
        let stepped = self.of.home.step(&mut granted, trigger, &mut tables);
        let wants = match stepped {
            Ok(Outcome::Taken { .. }) => self.of.known_permission(&granted),
            _ => Right::None,
        };
        let wants = if wants > has { wants } else { Right::None };
        self.schedule_event(MemoryChannel::Read(line), Event::Read { line, wants, has });
    }

    /// Starts a write to memory, or to the application that serves the line.
    fn start_write(&mut self, line: Line, words: Words) {
        let place = &mut self.state.lines[line as usize];
        place.memory = words.clone();
        if let Some(dirty) = self.state.outstanding_operations.get_mut(&line) {
            *dirty = true;
        }
        if self.of.placement.serves(line) {
            place.writing = Progress::Waiting;
            let keeps = self.of.known_permission(&place.home);
            self.schedule_event(
                MemoryChannel::Write(line),
                Event::Write { line, words, keeps },
            );
        } else {
            place.writing = Progress::Busy;
        }
    }

    /// Completes a local operation of the application, and checks what the operation promises.
    pub(super) fn acknowledge(&mut self, line: Line, local: u8) -> Result<(), Violation> {
        let local = &self.of.model.home.locals[usize::from(local)];
        let place = &self.state.lines[line as usize];
        if place.memory != place.last {
            return Err(format!(
                "line {line} is given to {}, but memory is stale",
                self.of.name
            ));
        }
        for (number, remote) in place.remotes.iter().enumerate() {
            let right = self.of.right(&remote.configuration);
            if right > local.ensures {
                let (name, what) = (self.of.remote_name(number as u8), &local.name);
                return Err(format!("{name} may {right} line {line} after {what}"));
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
            Right::None => Operation::CleanInvalidate,
            _ => Operation::Clean,
        };
        let done = Event::Done {
            line,
            operation,
            dirty,
        };
        self.schedule_event(MemoryChannel::Told(line), done);
        Ok(())
    }
}

/// Execution context of a home's row.
struct PlayHomeContext<'r, 'm, 'a, S: Scenario> {
    transition: &'r mut Transition<'m, 'a, S>,
    line: Line,
}

impl<S: Scenario> HomeContext for PlayHomeContext<'_, '_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    type Copy = Option<Words>;
    type Wrong = Violation;

    fn current(&self, copy: &Option<Words>) -> bool {
        copy.as_ref() == Some(&self.transition.state.lines[self.line as usize].last)
    }

    /// Words carry their values, so comparison with the last write shows that they are stale.
    fn mark_stale(&self, copy: &Option<Words>) -> Option<Words> {
        copy.clone()
    }

    fn send(&mut self, sending: Sending<Option<Words>>) -> Result<(), Violation> {
        let Receiver::Remote(remote) = sending.to else {
            return Err("the home sends to itself".into());
        };
        let (of, line) = (self.transition.of, self.line);
        let words = match sending.bytes {
            Bytes::None => None,
            Bytes::Line(words) => words,
            Bytes::Write => return Err(SENT_STORES.into()),
        };
        let Sending {
            message, fields, ..
        } = sending;
        if of.model.protocol.class(message) == Some(Class::Forward) && of.answers {
            let unit = &mut self.transition.state.units[of.unit(line)];
            unit.forwards += 1;
            unit.forwarding = line;
        }
        (self.transition).send(line, message, remote as u8, false, fields, words)
    }

    fn memory(&self) -> Option<Words> {
        Some(
            self.transition.state.lines[self.line as usize]
                .memory
                .clone(),
        )
    }

    fn set_memory(&mut self, _copy: &Option<Words>) -> Result<(), Violation> {
        Err(ZERO_LATENCY_MEMORY.into())
    }

    fn lock(&self) -> Right {
        match self.transition.state.locks.get(&self.line) {
            Some(Right::None) => Right::Write,
            Some(_) => Right::Read,
            None => Right::None,
        }
    }

    fn store(&mut self, _from: Option<u8>, _whole: bool) -> Result<(), Violation> {
        Err(ZERO_LATENCY_MEMORY.into())
    }

    fn defer_write(&mut self, _from: Option<u8>, _whole: bool) -> Result<(), Violation> {
        Err(ZERO_LATENCY_MEMORY.into())
    }

    fn take_deferred_write(&mut self) -> Result<(Option<u8>, bool), Violation> {
        Err(ZERO_LATENCY_MEMORY.into())
    }

    fn start(&mut self, wish: MemoryOp<Option<Words>>) -> Result<(), Violation> {
        match wish {
            MemoryOp::Read => self.transition.start_read(self.line),
            MemoryOp::Write(Some(words)) => self.transition.start_write(self.line, words),
            MemoryOp::Write(None) => {
                let line = self.line;
                return Err(format!("the home writes line {line} without bytes"));
            }
            MemoryOp::Store { .. } => return Err(SENT_STORES.into()),
        }
        Ok(())
    }

    fn acknowledge(&mut self, local: u8) -> Result<(), Violation> {
        self.transition.acknowledge(self.line, local)
    }

    fn unlocked(&mut self) {}
}

//! The home: its controller, its units, and its memory operations.

use super::*;

impl<S: Scenario> Moment<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// The home takes a message, if it can now.
    pub(super) fn home_takes(&mut self, line: Line, flight: &Flight) -> Result<bool, Violation> {
        let occasion = Occasion {
            event: Cause::Message(flight.message),
            sender: Some(flight.remote),
            own: None,
            fields: &flight.fields,
        };
        self.home_event(line, occasion, flight.words.as_ref())
    }

    pub(super) fn memory_event(&mut self, line: Line, event: Cause) -> Result<bool, Violation> {
        let occasion = Occasion {
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
        let (game, place) = (self.of.game, &self.state.lines[line as usize]);
        let (outcome, _) = reaction(&self.of.home, game.home, &place.home, occasion)?;
        let alternative = matches!(event, Cause::MemoryData(1..));
        if alternative && outcome == Outcome::Unexpected {
            return Ok(false);
        }
        let taken = self.home_event(line, occasion, None)?;
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
        let occasion = Occasion {
            event: local.map_or(Cause::Unlock, Cause::Local),
            sender: None,
            own: None,
            fields: &[],
        };
        let taken = self.home_event(line, occasion, None)?;
        if taken {
            self.state.units[unit].locals.remove(place);
        }
        Ok(taken)
    }

    /// The home takes an event, unless it leaves it or its unit lacks what that takes.
    pub(super) fn home_event(
        &mut self,
        line: Line,
        occasion: Occasion,
        words: Option<&Words>,
    ) -> Result<bool, Violation> {
        let game = self.of.game;
        let before = self.state.lines[line as usize].home.clone();
        let (outcome, reaction) = reaction(&self.of.home, game.home, &before, occasion)?;
        let Some(reaction) = reaction else {
            return match outcome {
                Outcome::Leave => Ok(false),
                _ => {
                    let state = &game.home.states[usize::from(before.state)].name;
                    let event = occasion.event;
                    Err(format!(
                        "the home of line {line} has no rule for {event:?} in {state}"
                    ))
                }
            };
        };
        let number = self.of.unit(line);
        if self.lacks(number, line, &reaction.acts) {
            return Ok(false);
        }
        // What is told of a line is heard before there is more to tell of it; otherwise nothing would bound it.
        let (from, to) = (self.of.known(&before), self.of.known(&reaction.next));
        let tells = from != to
            || reaction
                .acts
                .iter()
                .any(|act| matches!(act, Act::Acknowledge(_)));
        if tells
            && self
                .state
                .coming
                .iter()
                .any(|&(way, _)| way == Way::Told(line))
        {
            return Ok(false);
        }
        if let Cause::Message(message) = occasion.event {
            let unit = &mut self.state.units[number];
            let answer = game.protocol.class(message) == Some(Class::Answer);
            if answer && unit.forwards > 0 && unit.forwarding == line {
                unit.forwards -= 1;
            }
            // Which line it was is history.
            if unit.forwards == 0 {
                unit.forwarding = 0;
            }
        }
        let next = reaction.next.clone();
        self.state.lines[line as usize].home = reaction.next;
        for act in reaction.acts {
            self.home_act(line, number, act, words, &next)?;
        }
        if from != to {
            self.tell(Way::Told(line), Event::Changed { line, from, to });
        }
        Ok(true)
    }

    /// Whether a unit lacks a place for what the home is about to do.
    pub(super) fn lacks(&self, unit: usize, line: Line, acts: &[Act]) -> bool {
        let game = self.of.game;
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
            Act::StartRead => busy(|line| line.reading) >= game.reads,
            Act::StartWrite | Act::StartStore { .. } => busy(|line| line.writing) > 0,
            Act::Send { message, .. } => {
                let unit = &self.state.units[unit];
                let forward = game.protocol.class(*message) == Some(Class::Forward);
                forward && unit.forwards > 0 && unit.forwarding != line
            }
            _ => false,
        })
    }

    pub(super) fn home_act(
        &mut self,
        line: Line,
        number: usize,
        act: Act,
        words: Option<&Words>,
        next: &Configuration,
    ) -> Result<(), Violation> {
        let protocol = self.of.game.protocol;
        let place = &mut self.state.lines[line as usize];
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                let Receiver::Remote(remote) = to else {
                    return Err("the home sends to itself".into());
                };
                let carries = protocol.message(message).carries.line();
                let words = carries.then(|| place.memory.clone());
                if protocol.class(message) == Some(Class::Forward) && self.of.answers {
                    let unit = &mut self.state.units[number];
                    unit.forwards += 1;
                    unit.forwarding = line;
                }
                self.send(line, message, remote, false, fields, words)?;
            }
            Act::StartRead if self.of.placement.serves(line) => {
                place.reading = Progress::Waiting;
                let mut granted = next.clone();
                let occasion = Occasion {
                    event: Cause::MemoryData(0),
                    sender: None,
                    own: None,
                    fields: &[],
                };
                let mut tables = self.of.game.home;
                let stepped = self.of.home.step(&mut granted, occasion, &mut tables);
                let has = self.of.known(next);
                let wants = match stepped {
                    Ok(Outcome::Taken { .. }) => self.of.known(&granted),
                    _ => Right::None,
                };
                let wants = if wants > has { wants } else { Right::None };
                self.tell(Way::Read(line), Event::Read { line, wants, has });
            }
            Act::StartRead => place.reading = Progress::Busy,
            Act::StartWrite => {
                let Some(words) = words else {
                    return Err(format!("the home writes line {line} without bytes"));
                };
                place.memory = words.clone();
                if let Some(dirty) = self.state.asked.get_mut(&line) {
                    *dirty = true;
                }
                if self.of.placement.serves(line) {
                    place.writing = Progress::Waiting;
                    let (words, keeps) = (words.clone(), self.of.known(next));
                    self.tell(Way::Write(line), Event::Write { line, words, keeps });
                } else {
                    place.writing = Progress::Busy;
                }
            }
            Act::Acknowledge(local) => self.acknowledge(line, local)?,
            Act::Unlocked => {}
            Act::StartStore { .. }
            | Act::WriteMemory
            | Act::SetAside
            | Act::WriteAside
            | Act::Done => {
                return Err("homes whose memory acts at once are not explored here".into());
            }
        }
        Ok(())
    }

    /// The home has done what the application asked for.
    pub(super) fn acknowledge(&mut self, line: Line, local: u8) -> Result<(), Violation> {
        let local = &self.of.game.home.locals[usize::from(local)];
        let place = &self.state.lines[line as usize];
        if place.memory != place.last {
            return Err(format!(
                "line {line} is given to {}, but memory is old",
                self.of.name
            ));
        }
        for (number, remote) in place.remotes.iter().enumerate() {
            let right = self.of.right(&remote.configuration);
            if right > local.ensures {
                let (name, what) = (self.of.name_of(number as u8), &local.name);
                return Err(format!("{name} may {right:?} line {line} after {what}"));
            }
        }
        let dirty = self.state.asked.remove(&line).unwrap_or(false);
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
        self.tell(Way::Told(line), done);
        Ok(())
    }
}

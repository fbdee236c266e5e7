//! A trace is followed step by step.

mod home;
mod remote;
mod words;

use crate::bytes::{Bytes, Operation, UnderWay, Version, Write};
use crate::table::{Agent, Answer, Deed, Happening, Sent, Table, Value};
use cohkit_base::sequence::{lifeline, Action, Sequence};
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::protocol::{Carries, MessageId, Protocol, Right, StateId, Type};
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::written_out::Homes;
use std::collections::{BTreeMap, BTreeSet};
use words::{is_effect, kind_of, told_access, MOST_CHOICES, PERFORMS, WRITES};

/// Why a trace is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The step at which it is, counted from 1; behind the last for what is left at the end.
    pub step: usize,
    /// Why, in a sentence.
    pub why: String,
}

/// What a trace that is in order tells of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Steps.
    pub steps: usize,
    /// Rows that were taken.
    pub rows: usize,
    /// Messages that were sent.
    pub messages: usize,
    /// Values of words that were read and compared with the last write.
    pub values: usize,
}

/// How many remotes a trace has: those of its agents that come before the home. `None` if no agent is the home.
pub fn remotes(sequence: &Sequence, home: &str) -> Option<usize> {
    let named = |agent: &String| {
        let plain = lifeline(home, "home");
        *agent == plain || *agent == format!("{plain} (home)") || agent == "home"
    };
    sequence.agents.iter().position(named)
}

/// Judges a trace; `home` is the controller of the home for as many remotes as the trace has. Gives what it tells of.
///
/// # Errors
/// What is wrong with it first.
pub fn judge(
    protocol: &Protocol,
    home: &Controller,
    sequence: &Sequence,
    at_rest: bool,
) -> Result<Summary, Refused> {
    let refused = |step: usize| {
        move |why| Refused {
            step: step + 1,
            why,
        }
    };
    let name = &protocol.name;
    if let Some(what) = protocol.has_in_common() {
        let why = format!("{name} has {what}, of which traces do not tell");
        return Err(refused(0)(why));
    }
    let mut states = protocol.remote.states.iter();
    if !protocol.guarantee.coherent && states.any(|state| state.right == Right::Write) {
        let why = format!("{name} has `guarantee none` and copies that may be written, of which traces do not tell what they hold");
        return Err(refused(0)(why));
    }
    let Some(remotes) = remotes(sequence, &home.name) else {
        let why = format!("none of its agents is the home, {}", home.name);
        return Err(refused(0)(why));
    };
    let kinds: Vec<KindId> = sequence.agents[..remotes]
        .iter()
        .map(|agent| kind_of(protocol, agent))
        .collect();
    let mut judge = Judge {
        protocol,
        sequence,
        remote: Table {
            controller: &protocol.remote,
            kinds: &kinds,
            homes: Homes(protocol.homes),
        },
        home: Table {
            controller: home,
            kinds: &kinds,
            homes: Homes(protocol.homes),
        },
        lines: BTreeMap::new(),
        at: 0,
        line: None,
        tells_answers: sequence.steps.iter().any(|step| {
            step.agent > remotes
                && matches!(&step.action, Action::Does { what } if what.starts_with("is told of "))
        }),
        sorts: sequence
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Does { what } if step.agent == remotes => what.split(' ').next(),
                _ => None,
            })
            .collect(),
        // Behind the home, which may have any name.
        tells_all: sequence.agents[remotes + 1..]
            .iter()
            .any(|agent| agent.starts_with("memory")),
        summary: Summary::default(),
    };
    while judge.at < sequence.steps.len() {
        judge
            .group()
            .map_err(refused(judge.at.min(sequence.steps.len() - 1)))?;
    }
    if at_rest {
        let rest = judge.lines.values().try_for_each(|line| judge.rests(line));
        rest.map_err(refused(sequence.steps.len()))?;
    }
    judge.summary.steps = sequence.steps.len();
    Ok(judge.summary)
}

/// A message in flight.
#[derive(Clone, Debug)]
struct Flight {
    number: u32,
    sent: Sent,
    from: Option<usize>,
    brings: Brings,
    /// Flights that it must not overtake.
    behind: Vec<u32>,
}

/// The bytes that a message brings.
#[derive(Clone, Copy, Debug)]
enum Brings {
    Nothing,
    Line(Version),
    Write(Write),
}

/// A caching agent.
#[derive(Clone, Debug)]
struct Remote {
    agent: Agent,
    copy: Option<Version>,
    under_way: Option<UnderWay>,
    /// Where copies may be old: the last write of the line that it has seen, or made.
    known: Version,
}

/// Everything about one line.
#[derive(Clone, Debug)]
struct Line {
    remotes: Vec<Remote>,
    home: Agent,
    flights: Vec<Flight>,
    bytes: Bytes,
    operation: Operation,
    aside: Option<Write>,
    /// What the device has asked for, if the trace tells of that.
    asked: Option<usize>,
    accepted: Option<usize>,
    /// Whether that is what a directory does to make room.
    own: bool,
    /// The most that remotes may do under the device's lock.
    lock: Option<Right>,
    /// What the home has answered the device, and it has not been told that the device hears.
    answers: Vec<String>,
}

struct Judge<'j> {
    protocol: &'j Protocol,
    sequence: &'j Sequence,
    remote: Table<'j>,
    home: Table<'j>,
    lines: BTreeMap<u32, Line>,
    /// The step at hand, and the line of its row as it is told.
    at: usize,
    line: Option<u32>,
    /// Whether it is told what the device hears.
    tells_answers: bool,
    /// The first words of what the home does by itself.
    sorts: BTreeSet<&'j str>,
    /// Whether the trace tells all that happens around agents, as those of models do, which have memory as an agent.
    tells_all: bool,
    summary: Summary,
}

type Checked<T = ()> = Result<T, String>;

/// What sets a row off.
struct Cause {
    event: Event,
    own: Option<usize>,
    /// The message that is taken.
    taken: Option<Flight>,
}

impl Judge<'_> {
    /// One step, with all that belongs to the same row.
    fn group(&mut self) -> Checked {
        let step = &self.sequence.steps[self.at];
        self.line = step.line;
        let number = step.line.unwrap_or(0);
        let mut line = match self.lines.remove(&number) {
            Some(line) => line,
            None => self.begins(),
        };
        let agent = step.agent;
        let home = self.remote.kinds.len();
        match &step.action {
            action if agent == home && is_effect(action) => {
                // That the home hears of what memory has done is not told where it is told that memory has done it.
                let events = match line.operation {
                    Operation::Read(Some(_)) => (0..MOST_CHOICES).map(Event::MemoryData).collect(),
                    Operation::Written => vec![Event::MemoryDone],
                    _ => return Err("nothing is told that makes the home do this".into()),
                };
                self.any_row(&mut line, events)?;
            }
            Action::Send { .. } | Action::Becomes { .. } => {
                return Err("nothing is told that makes it do this".into());
            }
            Action::Receive {
                message,
                from,
                flight,
            } => {
                let taken = self.arrives(&mut line, message, *from, *flight)?;
                self.at += 1;
                let cause = Cause {
                    event: Event::Message(taken.sent.message),
                    own: taken.sent.to,
                    taken: Some(taken),
                };
                self.row(&mut line, cause)?;
            }
            Action::Does { what } if agent < home => self.remote_does(&mut line, agent, what)?,
            Action::Does { what } if agent == home => self.home_does(&mut line, what)?,
            Action::Does { what } => self.other_does(&mut line, what)?,
        }
        self.coherent(&line)?;
        self.lines.insert(number, line);
        Ok(())
    }

    fn begins(&self) -> Line {
        let kinds = self.remote.kinds.iter();
        let remotes = kinds.map(|kind| Remote {
            agent: self
                .remote
                .begins(self.protocol.kinds[kind.index()].initial),
            copy: None,
            under_way: None,
            known: 0,
        });
        Line {
            remotes: remotes.collect(),
            home: self.home.begins(StateId(0)),
            flights: Vec::new(),
            bytes: Bytes::default(),
            operation: Operation::Idle,
            aside: None,
            asked: None,
            accepted: None,
            own: false,
            lock: None,
            answers: Vec::new(),
        }
    }

    /// The lifeline of a remote, or of the home.
    fn lifeline(&self, agent: Option<usize>) -> usize {
        agent.unwrap_or(self.remote.kinds.len())
    }

    fn name(&self, agent: Option<usize>) -> &str {
        &self.sequence.agents[self.lifeline(agent)]
    }

    /// A message leaves its channel.
    fn arrives(&self, line: &mut Line, words: &str, from: usize, number: u32) -> Checked<Flight> {
        let taker = self.sequence.steps[self.at].agent;
        let place = line
            .flights
            .iter()
            .position(|flight| flight.number == number);
        let place = place.ok_or_else(|| format!("{words} is taken, and is not in flight"))?;
        let flight = line.flights.remove(place);
        let (sender, receiver) = (self.lifeline(flight.from), self.lifeline(flight.sent.to));
        if (sender, receiver) != (from, taker) {
            let (sender, receiver) = (self.name(flight.from), self.name(flight.sent.to));
            return Err(format!("{words} is on its way from {sender} to {receiver}"));
        }
        self.is_called(&flight.sent, words)?;
        if let Some(earlier) = line
            .flights
            .iter()
            .find(|f| flight.behind.contains(&f.number))
        {
            let earlier = &self.protocol.message(earlier.sent.message).name;
            return Err(format!("{words} overtakes {earlier}"));
        }
        Ok(flight)
    }

    fn state_name(&self, own: Option<usize>, line: &Line) -> String {
        let (table, agent) = self.side(own, line);
        table.controller.states[agent.state].name.clone()
    }

    fn side<'l>(&'l self, own: Option<usize>, line: &'l Line) -> (&'l Table<'l>, &'l Agent) {
        match own {
            Some(own) => (&self.remote, &line.remotes[own].agent),
            None => (&self.home, &line.home),
        }
    }

    /// What the same agent does next, of the same line.
    fn next_does(&self, agent: usize) -> Option<&str> {
        let step = self.sequence.steps.get(self.at)?;
        match &step.action {
            Action::Does { what } if step.agent == agent && step.line == self.line => Some(what),
            _ => None,
        }
    }

    /// Something happens to an agent: what its table says has to be told next.
    fn row(&mut self, line: &mut Line, cause: Cause) -> Checked {
        let Cause { event, own, taken } = cause;
        if let Event::Local(local) = event {
            let asked = line.asked.take();
            if self.tells_all && asked != Some(local.into()) {
                return Err("the device has not asked for this".into());
            }
        }
        let (table, agent) = self.side(own, line);
        let none = Vec::new();
        let happens = Happening {
            event,
            sender: taken.as_ref().and_then(|flight| flight.from),
            own,
            fields: taken.as_ref().map_or(&none, |flight| &flight.sent.fields),
        };
        let state = &table.controller.states[agent.state];
        let (after, deeds) = match table.says(agent, &happens)? {
            Answer::Row { after, deeds } => (after, deeds),
            Answer::Refused if own.is_none() => {
                let Event::Local(local) = event else {
                    line.answers.push("is refused its unlock".into());
                    return Ok(());
                };
                let name = &self.home.controller.locals[usize::from(local)].name;
                line.answers.push(format!("is refused {name}"));
                return self.tells(None, &format!("refuses {name}"));
            }
            Answer::None => {
                return Err(format!("there is no row for this in {}", state.name));
            }
            Answer::Waits | Answer::Refused => {
                return Err(format!("in {} this has to wait", state.name));
            }
        };
        self.summary.rows += 1;
        match own {
            Some(own) => self.remote_row(line, own, event, taken, after, deeds),
            None => self.home_row(line, event, taken, after, deeds),
        }
    }

    /// A trace that tells all, or that tells such things at all, tells this of an agent now; any other one may.
    fn tells(&mut self, agent: Option<usize>, what: &str) -> Checked {
        let told = self.next_does(self.lifeline(agent)) == Some(what);
        self.at += usize::from(told);
        let sort = what.split(' ').next();
        let tells = self.tells_all || self.sorts.contains(&sort.unwrap_or_default());
        match told || !tells {
            true => Ok(()),
            false => Err(format!("it is not told that {} {what}", self.name(agent))),
        }
    }

    fn most(&self, line: &Line) -> Right {
        let rights = line.remotes.iter().map(|remote| self.right(remote));
        rights.max().unwrap_or(Right::None)
    }

    fn right(&self, remote: &Remote) -> Right {
        self.protocol.remote.states[remote.agent.state].right
    }

    /// A message has to be told that the row at hand sends.
    fn sends(
        &mut self,
        line: &mut Line,
        from: Option<usize>,
        sent: Sent,
        copy: Option<Version>,
    ) -> Checked {
        let about = self.protocol.message(sent.message);
        let told = self.sequence.steps.get(self.at);
        let told = told.filter(|step| step.agent == self.lifeline(from) && step.line == self.line);
        let Some(Action::Send {
            message,
            to,
            flight,
        }) = told.map(|step| &step.action)
        else {
            let (name, to) = (&about.name, self.name(sent.to));
            return Err(format!(
                "{} has to send {name} to {to} now",
                self.name(from)
            ));
        };
        self.is_called(&sent, message)?;
        if *to != self.lifeline(sent.to) {
            let (told, to) = (self.sequence.agents.get(*to), self.name(sent.to));
            return Err(format!(
                "{message} goes to {told:?}; its row sends it to {to}"
            ));
        }
        if line.flights.iter().any(|other| other.number == *flight) {
            return Err(format!("{message} has the number of another one in flight"));
        }
        let brings = match about.carries {
            Carries::Nothing => Brings::Nothing,
            Carries::Line | Carries::DirtyLine => Brings::Line(
                copy.ok_or_else(|| format!("{message} takes a line that is not there"))?,
            ),
            Carries::Store | Carries::PartialStore => {
                let whole = about.carries == Carries::Store;
                let serial = line.bytes.sends();
                if let Some(under_way) = from.and_then(|from| line.remotes[from].under_way.as_mut())
                {
                    under_way.sent = Some(serial);
                }
                Brings::Write(Write { serial, whole })
            }
        };
        let goes_before = |earlier: &&Flight| {
            (earlier.from, earlier.sent.to) == (from, sent.to)
                && self.stays_behind(sent.message, earlier.sent.message)
        };
        let behind = line.flights.iter().filter(goes_before);
        let behind = behind.map(|earlier| earlier.number).collect();
        line.flights.push(Flight {
            number: *flight,
            sent,
            from,
            brings,
            behind,
        });
        self.at += 1;
        self.summary.messages += 1;
        Ok(())
    }

    /// Whether a message may not overtake an earlier one between the same agents.
    fn stays_behind(&self, message: MessageId, earlier: MessageId) -> bool {
        let channel = |message: MessageId| self.protocol.message(message).channel;
        let shares =
            |order: &Vec<_>| order.contains(&channel(message)) && order.contains(&channel(earlier));
        let behind = &self.protocol.behind;
        self.protocol.orders.iter().any(shares)
            || behind
                .iter()
                .any(|behind| behind.message == message && behind.earlier.contains(&earlier))
    }

    /// The state that a row leads to has to be told if it is another one, and may be told if not.
    fn becomes(&mut self, line: &mut Line, own: Option<usize>, after: Agent) -> Checked {
        let (table, before) = self.side(own, line);
        let told = self.sequence.steps.get(self.at);
        let told = told.filter(|step| step.agent == self.lifeline(own) && step.line == self.line);
        let words = self.words(table, &after);
        let moves = words != self.words(table, before);
        match told.map(|step| &step.action) {
            Some(Action::Becomes { state }) => {
                if !self.fits(&words, state) {
                    let name = &words.0;
                    let agent = self.name(own);
                    return Err(format!("{agent} becomes {state}; its row leads to {name}"));
                }
                self.at += 1;
            }
            _ if moves => return Err(format!("{} has to become {} now", self.name(own), words.0)),
            _ => {}
        }
        match own {
            Some(own) => line.remotes[own].agent = after,
            None => line.home = after,
        }
        Ok(())
    }

    /// What has to hold between any two rows.
    fn coherent(&self, line: &Line) -> Checked {
        if !self.protocol.guarantee.coherent {
            return Ok(());
        }
        let mut rights = line.remotes.iter().map(|remote| self.right(remote));
        let holders = rights.clone().filter(|right| *right > Right::None).count();
        if holders > 1 && rights.any(|right| right == Right::Write) {
            return Err("single writer: a right to write is not alone".into());
        }
        for (number, remote) in line.remotes.iter().enumerate() {
            if self.right(remote) > Right::None && remote.copy != Some(line.bytes.last) {
                return Err(format!(
                    "data value: {} may read a copy that write {} was not the last to change",
                    self.name(Some(number)),
                    remote
                        .copy
                        .map_or("none".to_string(), |copy| copy.to_string()),
                ));
            }
        }
        if line.lock.is_some_and(|most| self.most(line) > most) {
            return Err("single writer: a remote has a right that the lock excludes".into());
        }
        Ok(())
    }

    /// That nothing is under way.
    fn rests(&self, line: &Line) -> Checked {
        if let Some(flight) = line.flights.first() {
            let name = &self.protocol.message(flight.sent.message).name;
            return Err(format!("at the end {name} is in flight"));
        }
        for own in (0..line.remotes.len()).map(Some).chain([None]) {
            let (table, agent) = self.side(own, line);
            let state = &table.controller.states[agent.state];
            if !state.stable() {
                return Err(format!(
                    "at the end {} is in {}",
                    self.name(own),
                    state.name
                ));
            }
        }
        if let (true, Some(answer)) = (self.tells_answers, line.answers.first()) {
            return Err(format!(
                "at the end the device has not heard that it {answer}"
            ));
        }
        let busy =
            line.operation != Operation::Idle || line.accepted.is_some() || line.asked.is_some();
        if busy || line.lock.is_some() || line.aside.is_some() || !line.bytes.rest() {
            return Err("at the end something is under way".into());
        }
        Ok(())
    }
}

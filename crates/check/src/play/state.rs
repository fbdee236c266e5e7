//! A state of a game, and what can happen in it.

use cohkit_application::contract::Contract;
use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step,
    Thread, Update, Words,
};
use cohkit_protocol::controller::{Access, Controller, Event as Cause};
use cohkit_protocol::execute::{Act, Configuration, Machine, Occasion, Outcome, Receiver};
use cohkit_protocol::protocol::{Class, MessageId, Right};
use std::collections::BTreeMap;
use std::hash::Hash;

use super::Game;

/// Steps of a thread in a row that access nothing, at most.
const MOST_STEPS: usize = 1000;

/// Coherence has no part in them.
const NO_BUS: &str = "registers and the CPU's own memory are not explored here";

/// Everything at some moment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State<A, T> {
    lines: Vec<LineState>,
    units: Vec<Unit>,
    application: A,
    contract: Contract,
    /// Events on their way to the application. Those about reads, about writes, and all others of one line come in order.
    coming: Vec<(Way, Event)>,
    /// What the application's memory has not done yet.
    memory: Vec<Job>,
    own: BTreeMap<Line, Words>,
    timers: Vec<u32>,
    locks: BTreeMap<Line, Right>,
    /// Local operations that are not complete: whether the line has been written back meanwhile.
    asked: BTreeMap<Line, bool>,
    threads: Vec<Running<T>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct LineState {
    home: Configuration,
    remotes: Vec<Remote>,
    memory: Words,
    /// What was written last.
    last: Words,
    /// Messages in flight, of one order in the order of sending.
    flights: Vec<Flight>,
    reading: Progress,
    writing: Progress,
}

/// How far a memory operation of the home is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Progress {
    Idle,
    /// The application has it.
    Waiting,
    /// Memory is about it.
    Busy,
    /// It has ended, so that the unit may begin another, but the home has not taken that yet.
    Ready,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Remote {
    configuration: Configuration,
    words: Option<Words>,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Flight {
    message: MessageId,
    /// Sender or receiver, whichever is a remote.
    remote: u8,
    to_home: bool,
    fields: Vec<u16>,
    words: Option<Words>,
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Unit {
    forwards: u32,
    forwarding: Line,
    /// Requests that wait beside their circuit, and the one that stops it.
    waiting: Vec<(Line, Flight)>,
    head: Option<(Line, Flight)>,
    /// Local operations and unlocks (none) of the application; those of one line come in order.
    locals: Vec<(Line, Option<u8>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Way {
    Read(Line),
    Write(Line),
    Told(Line),
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Job {
    Fetch { tag: u32, next: Line, end: Line },
    Store { tag: u32, line: Line, words: Words },
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Running<T> {
    thread: T,
    /// The access that it waits for; none when it has stopped.
    doing: Option<Step>,
}

/// What happens next.
#[derive(Clone, Copy)]
enum Choice {
    /// A thread tries its access.
    Access(usize),
    /// A cache gives up a line, or the right to write it.
    GiveUp(Line, u8, Access),
    /// A message reaches a remote, or is a response that reaches the home.
    Arrives(Line, usize),
    /// A unit takes the request that it kept waiting at this place, or the one that stops its circuit.
    Waited(usize, Option<usize>),
    /// A unit takes a local operation or an unlock.
    Local(usize, usize),
    /// The home's read ends, with this alternative of what may follow; or its write.
    Read(Line, u8),
    Written(Line),
    /// An event reaches the application; its memory does a job; its timer fires.
    Event(usize),
    Job(usize),
    Timer(usize),
}

type Violation = String;

/// What does not change in a game.
pub(super) struct Machines<'a, S> {
    game: &'a Game<'a, S>,
    remote: Machine<'a>,
    home: Machine<'a>,
    placement: Placement,
    name: String,
    /// Whether answers tell that a forward is over.
    answers: bool,
    choices: u8,
}

impl<A, T> State<A, T> {
    /// Whether nothing is left to do.
    pub fn ended(&self) -> bool {
        let quiet = |line: &LineState| {
            line.flights.is_empty()
                && line.reading == Progress::Idle
                && line.writing == Progress::Idle
        };
        let idle =
            |unit: &Unit| unit.waiting.is_empty() && unit.head.is_none() && unit.locals.is_empty();
        self.threads.iter().all(|thread| thread.doing.is_none())
            && self.lines.iter().all(quiet)
            && self.units.iter().all(idle)
            && self.coming.is_empty()
            && self.memory.is_empty()
            && self.asked.is_empty()
            && self.contract.open().next().is_none()
    }
}

/// The data of a state. Lines begin with zeros.
struct Data<'a, 'b, S: Scenario>(&'a Machines<'b, S>, &'a State<S::Application, S::Thread>);

impl<S: Scenario> Contents for Data<'_, '_, S> {
    fn word(&self, line: Line, word: u16) -> u64 {
        let Some(line) = self.1.lines.get(line as usize) else {
            return 0;
        };
        let mut remotes = line.remotes.iter();
        let held = remotes.find_map(|remote| {
            let right = self.0.right(&remote.configuration);
            remote.words.as_ref().filter(|_| right > Right::None)
        });
        let words = held.unwrap_or(&line.memory);
        words.get(usize::from(word)).copied().unwrap_or(0)
    }

    fn initial(&self, _line: Line, _word: u16) -> u64 {
        0
    }
}

impl<'a, S: Scenario> Machines<'a, S> {
    pub fn new(game: &'a Game<'a, S>) -> Self {
        let application = game.scenario.application();
        let choices = game.home.rules.iter().map(|rule| match rule.event {
            Cause::MemoryData(choice) => choice + 1,
            _ => 1,
        });
        let mut ids = game.protocol.message_ids();
        Machines {
            remote: Machine::new(&game.protocol.remote, game.remotes),
            home: Machine::new(game.home, game.remotes),
            placement: application.placement(),
            name: application.name().to_string(),
            answers: ids.any(|id| game.protocol.class(id) == Some(Class::Answer)),
            choices: choices.max().unwrap_or(1),
            game,
        }
    }

    fn right(&self, remote: &Configuration) -> Right {
        self.game.protocol.remote.states[usize::from(remote.state)].right
    }

    fn known(&self, home: &Configuration) -> Right {
        let Game {
            rights,
            home: controller,
            remotes,
            ..
        } = self.game;
        rights.most(controller, *remotes, home)
    }

    fn group(&self, message: MessageId) -> Option<usize> {
        let protocol = self.game.protocol;
        protocol.order_of(protocol.message(message).channel)
    }

    fn unit(&self, line: Line) -> usize {
        (line % self.game.units) as usize
    }

    fn name_of(&self, remote: u8) -> String {
        let name = &self.game.protocol.remote.name;
        match self.game.remotes {
            1 => name.clone(),
            _ => format!("{name} {remote}"),
        }
    }

    fn message(&self, message: MessageId) -> &str {
        &self.game.protocol.message(message).name
    }

    /// Whether a scenario's own claims hold at an end.
    pub fn verify(&self, state: &State<S::Application, S::Thread>) -> Result<(), Violation>
    where
        S::Thread: Clone,
    {
        let threads: Vec<S::Thread> = state.threads.iter().map(|t| t.thread.clone()).collect();
        let data = Data(self, state);
        let scenario = self.game.scenario;
        let verdict = scenario.verify(&state.application, &threads, &data);
        verdict.map_err(|wrong| format!("{}: {wrong}", self.name))
    }

    /// Why a state may lead to no end.
    pub fn stuck(&self, state: &State<S::Application, S::Thread>) -> Violation {
        let mut what = vec!["the end cannot be reached from here".to_string()];
        for (number, thread) in state.threads.iter().enumerate() {
            if let Some(step) = thread.doing {
                what.push(format!("thread {number} waits for {step:?}"));
            }
        }
        let open = state.contract.open();
        what.extend(open.map(|open| format!("{} {} of line {}", self.name, open.what, open.line)));
        for (number, line) in state.lines.iter().enumerate() {
            let home = &self.game.home.states[usize::from(line.home.state)].name;
            what.push(format!("line {number}: home in {home}"));
        }
        what.join("; ")
    }
}

impl<S: Scenario> Machines<'_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// The state in which everything begins.
    pub fn initial(&self) -> Result<State<S::Application, S::Thread>, Violation> {
        let words: Words = vec![0].into();
        let remote = Remote {
            configuration: self.remote.initial(),
            words: None,
        };
        let line = LineState {
            home: self.home.initial(),
            remotes: vec![remote; usize::from(self.game.remotes)],
            memory: words.clone(),
            last: words,
            flights: Vec::new(),
            reading: Progress::Idle,
            writing: Progress::Idle,
        };
        let threads = self.game.scenario.threads().into_iter();
        let threads = threads.map(|thread| Running {
            thread,
            doing: None,
        });
        let mut state = State {
            lines: vec![line; self.game.lines as usize],
            units: vec![Unit::default(); self.game.units as usize],
            application: self.game.scenario.application(),
            contract: Contract::new(self.placement.clone(), self.game.lines),
            coming: Vec::new(),
            memory: Vec::new(),
            own: BTreeMap::new(),
            timers: Vec::new(),
            locks: BTreeMap::new(),
            asked: BTreeMap::new(),
            threads: threads.collect(),
        };
        let mut moment = Moment {
            of: self,
            state: &mut state,
        };
        moment.hear(Event::Start { words: 1 })?;
        for thread in 0..moment.state.threads.len() {
            moment.advance(thread, 0)?;
        }
        Ok(state)
    }

    /// Calls with each step that can be taken: whether it is spontaneous, what it is called, and what it leads to.
    #[allow(clippy::type_complexity)]
    pub fn successors(
        &self,
        state: &State<S::Application, S::Thread>,
        each: &mut dyn FnMut(
            bool,
            &dyn Fn() -> String,
            Result<State<S::Application, S::Thread>, Violation>,
        ),
    ) {
        for choice in self.choices(state) {
            let mut after = state.clone();
            let mut moment = Moment {
                of: self,
                state: &mut after,
            };
            let result = match moment.take(choice) {
                // What has to wait is no step.
                Ok(false) => continue,
                Ok(true) => Ok(after),
                Err(what) => Err(what),
            };
            let spontaneous = matches!(choice, Choice::GiveUp(..));
            each(spontaneous, &|| self.label(state, choice), result);
        }
    }

    fn choices(&self, state: &State<S::Application, S::Thread>) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (number, thread) in state.threads.iter().enumerate() {
            if thread.doing.is_some() {
                choices.push(Choice::Access(number));
            }
        }
        for (number, line) in state.lines.iter().enumerate() {
            let number = number as Line;
            for (place, flight) in line.flights.iter().enumerate() {
                let group = self.group(flight.message);
                let same = |other: &Flight| {
                    (other.remote, other.to_home) == (flight.remote, flight.to_home)
                        && group.is_some()
                        && self.group(other.message) == group
                };
                let twin = line.flights[..place].iter().any(|other| other == flight);
                if !line.flights[..place].iter().any(same) && !twin {
                    choices.push(Choice::Arrives(number, place));
                }
            }
            if matches!(line.reading, Progress::Busy | Progress::Ready) {
                choices.extend((0..self.choices).map(|choice| Choice::Read(number, choice)));
            }
            if matches!(line.writing, Progress::Busy | Progress::Ready) {
                choices.push(Choice::Written(number));
            }
            for remote in 0..self.game.remotes {
                choices.push(Choice::GiveUp(number, remote, Access::Evict));
                choices.push(Choice::GiveUp(number, remote, Access::Demote));
            }
        }
        for (number, unit) in state.units.iter().enumerate() {
            choices
                .extend((0..unit.waiting.len()).map(|place| Choice::Waited(number, Some(place))));
            if unit.head.is_some() {
                choices.push(Choice::Waited(number, None));
            }
            for (place, (line, _)) in unit.locals.iter().enumerate() {
                if !unit.locals[..place].iter().any(|(other, _)| other == line) {
                    choices.push(Choice::Local(number, place));
                }
            }
        }
        for (place, (way, _)) in state.coming.iter().enumerate() {
            if !state.coming[..place].iter().any(|(other, _)| other == way) {
                choices.push(Choice::Event(place));
            }
        }
        choices.extend((0..state.memory.len()).map(Choice::Job));
        choices.extend((0..state.timers.len()).map(Choice::Timer));
        choices
    }

    fn label(&self, state: &State<S::Application, S::Thread>, choice: Choice) -> String {
        let flight = |line: Line, flight: &Flight, waited: &str| {
            let remote = self.name_of(flight.remote);
            let message = self.message(flight.message);
            match flight.to_home {
                true => format!("line {line}: the home takes {message} from {remote}{waited}"),
                false => format!("line {line}: {remote} takes {message}"),
            }
        };
        match choice {
            Choice::Access(thread) => match state.threads[thread].doing {
                Some(step) => format!("thread {thread}: {step:?}"),
                None => String::new(),
            },
            Choice::GiveUp(line, remote, access) => {
                format!(
                    "line {line}: {} does {}",
                    self.name_of(remote),
                    access.name()
                )
            }
            Choice::Arrives(line, place) => {
                flight(line, &state.lines[line as usize].flights[place], "")
            }
            Choice::Waited(unit, place) => {
                let unit = &state.units[unit];
                let waiting = place.map(|place| &unit.waiting[place]);
                match waiting.or(unit.head.as_ref()) {
                    Some((line, waiting)) => flight(*line, waiting, ", which waited"),
                    None => String::new(),
                }
            }
            Choice::Local(unit, place) => match state.units[unit].locals[place] {
                (line, None) => format!("line {line}: the home takes the unlock"),
                (line, Some(local)) => {
                    let name = &self.game.home.locals[usize::from(local)].name;
                    format!("line {line}: the home takes {name}")
                }
            },
            Choice::Read(line, _) => format!("line {line}: the home's read ends"),
            Choice::Written(line) => format!("line {line}: the home's write ends"),
            Choice::Event(place) => format!("{} hears {:?}", self.name, state.coming[place].1),
            Choice::Job(place) => match &state.memory[place] {
                Job::Fetch { next, .. } => format!("{} fetches line {next}", self.name),
                Job::Store { line, .. } => format!("{} stores line {line}", self.name),
            },
            Choice::Timer(place) => format!("timer {} fires", state.timers[place]),
        }
    }
}

/// A state that is changing.
struct Moment<'m, 'a, S: Scenario> {
    of: &'m Machines<'a, S>,
    state: &'m mut State<S::Application, S::Thread>,
}

/// An agent's reaction.
struct Reaction {
    acts: Vec<Act>,
    next: Configuration,
}

impl<S: Scenario> Moment<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Takes a step, unless what it begins with has to wait.
    fn take(&mut self, choice: Choice) -> Result<bool, Violation> {
        match choice {
            Choice::Access(thread) => self.access(thread),
            Choice::GiveUp(line, remote, access) => {
                let Some(reaction) = self.remote_step(line, remote, Cause::Access(access))? else {
                    return Ok(false);
                };
                if !self.within_bounds(line, remote, &reaction) {
                    return Ok(false);
                }
                self.react(line, remote, reaction, None)?;
                Ok(true)
            }
            Choice::Arrives(line, place) => self.arrives(line, place),
            Choice::Waited(unit, place) => {
                let kept = match place {
                    Some(place) => self.state.units[unit].waiting[place].clone(),
                    None => match self.state.units[unit].head.clone() {
                        Some(head) => head,
                        None => return Ok(false),
                    },
                };
                if !self.home_takes(kept.0, &kept.1)? {
                    return Ok(false);
                }
                let unit = &mut self.state.units[unit];
                match place {
                    Some(place) => drop(unit.waiting.remove(place)),
                    None => unit.head = None,
                }
                // A place beside the circuit is free: the request that stops it may take it.
                if unit.waiting.len() < self.of.game.waiting {
                    unit.waiting.extend(unit.head.take());
                    unit.waiting.sort();
                }
                Ok(true)
            }
            Choice::Local(unit, place) => self.local(unit, place),
            Choice::Read(line, choice) => self.memory_event(line, Cause::MemoryData(choice)),
            Choice::Written(line) => self.memory_event(line, Cause::MemoryDone),
            Choice::Event(place) => {
                let (_, event) = self.state.coming.remove(place);
                self.hear(event)?;
                Ok(true)
            }
            Choice::Job(place) => {
                self.job(place)?;
                Ok(true)
            }
            Choice::Timer(place) => {
                let tag = self.state.timers.remove(place);
                self.hear(Event::Timer { tag })?;
                Ok(true)
            }
        }
    }

    fn remote_step(
        &self,
        line: Line,
        remote: u8,
        event: Cause,
    ) -> Result<Option<Reaction>, Violation> {
        let occasion = Occasion {
            event,
            sender: None,
            own: Some(remote),
            fields: &[],
        };
        Ok(self.remote_reacts(line, remote, occasion)?.1)
    }

    fn remote_reacts(
        &self,
        line: Line,
        remote: u8,
        occasion: Occasion,
    ) -> Result<(Outcome, Option<Reaction>), Violation> {
        let before = &self.state.lines[line as usize].remotes[usize::from(remote)];
        let controller = &self.of.game.protocol.remote;
        reaction(&self.of.remote, controller, &before.configuration, occasion)
    }

    /// Whether the bounds of the text let a spontaneous step send what it sends.
    fn within_bounds(&self, line: Line, remote: u8, reaction: &Reaction) -> bool {
        let bounds = &self.of.game.protocol.bounds.per_message;
        bounds.iter().all(|(kind, bound)| {
            let sends = |act: &Act| matches!(act, Act::Send { message, .. } if message == kind);
            let flights = self.state.lines[line as usize].flights.iter();
            let same = |flight: &&Flight| flight.message == *kind && flight.remote == remote;
            !reaction.acts.iter().any(sends)
                || flights.filter(same).count() < usize::from(bound.limit)
        })
    }

    /// A thread tries its access: performs it, or begins what it takes.
    fn access(&mut self, thread: usize) -> Result<bool, Violation> {
        let Some(step) = self.state.threads[thread].doing else {
            return Ok(false);
        };
        let Some((line, kind)) = access_of(step) else {
            return Ok(false);
        };
        let remote = (thread % usize::from(self.of.game.remotes)) as u8;
        let enough = match kind {
            Access::Load => Right::Read,
            _ => Right::Write,
        };
        let held = &self.state.lines[line as usize].remotes[usize::from(remote)];
        let before = self.of.right(&held.configuration);
        let reaction = self.remote_step(line, remote, Cause::Access(kind))?;
        match reaction {
            Some(reaction) => {
                let after = self.of.right(&reaction.next);
                if before < enough && !self.within_bounds(line, remote, &reaction) {
                    return Ok(false);
                }
                self.react(line, remote, reaction, None)?;
                if before >= enough && after >= enough {
                    self.perform(thread, line, remote)?;
                }
                Ok(true)
            }
            None if before >= enough => {
                self.perform(thread, line, remote)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// A thread's access is performed in its cache's copy.
    fn perform(&mut self, thread: usize, line: Line, remote: u8) -> Result<(), Violation> {
        let place = &mut self.state.lines[line as usize];
        let Some(words) = place.remotes[usize::from(remote)].words.clone() else {
            return Err(format!(
                "{} has no bytes of line {line}",
                self.of.name_of(remote)
            ));
        };
        if words != place.last {
            let (has, last) = (&words, &place.last);
            return Err(format!(
                "thread {thread} finds {has:?} in line {line}, but {last:?} was written last"
            ));
        }
        let (result, words) = self.performed(thread, words);
        let place = &mut self.state.lines[line as usize];
        place.last = words.clone();
        place.remotes[usize::from(remote)].words = Some(words);
        self.advance(thread, result)
    }

    /// What a thread's access gives it, and what it makes of a line.
    fn performed(&self, thread: usize, mut words: Words) -> (u64, Words) {
        let word = words[0];
        match self.state.threads[thread].doing {
            Some(Step::Store { value, .. }) => {
                words[0] = value;
                (0, words)
            }
            Some(Step::Update { update, .. }) => {
                words[0] = Update::of(update, word);
                (word, words)
            }
            _ => (word, words),
        }
    }

    /// A thread goes on to its next access.
    fn advance(&mut self, thread: usize, mut result: u64) -> Result<(), Violation> {
        for _ in 0..MOST_STEPS {
            let running = &mut self.state.threads[thread];
            let step = running.thread.step(std::mem::take(&mut result));
            match step {
                Step::Stop => {
                    running.doing = None;
                    return Ok(());
                }
                Step::Hint { line } => {
                    let remote = (thread % usize::from(self.of.game.remotes)) as u8;
                    self.inside(thread, line, 0)?;
                    let begun = self.remote_step(line, remote, Cause::Access(Access::Load))?;
                    if let Some(reaction) = begun {
                        self.react(line, remote, reaction, None)?;
                    }
                }
                Step::Load { line, word }
                | Step::LoadExclusive { line, word }
                | Step::Store { line, word, .. }
                | Step::Update { line, word, .. } => {
                    running.doing = Some(step);
                    return self.inside(thread, line, word);
                }
                Step::ReadRegister { .. }
                | Step::WriteRegister { .. }
                | Step::LoadHost { .. }
                | Step::StoreHost { .. } => {
                    return Err(format!("thread {thread}: {NO_BUS}"));
                }
                // Stores are performed in order here.
                Step::Fence
                | Step::Work(_)
                | Step::Count { .. }
                | Step::Begin
                | Step::End { .. } => {}
            }
        }
        Err(format!(
            "thread {thread} makes {MOST_STEPS} steps that access nothing"
        ))
    }

    fn inside(&self, thread: usize, line: Line, word: u16) -> Result<(), Violation> {
        match line < self.of.game.lines && word == 0 {
            true => Ok(()),
            false => Err(format!(
                "thread {thread} accesses word {word} of line {line}; here there are {} lines of one word",
                self.of.game.lines
            )),
        }
    }

    /// A message reaches its receiver.
    fn arrives(&mut self, line: Line, place: usize) -> Result<bool, Violation> {
        let flight = self.state.lines[line as usize].flights[place].clone();
        if !flight.to_home {
            let occasion = Occasion {
                event: Cause::Message(flight.message),
                sender: None,
                own: Some(flight.remote),
                fields: &flight.fields,
            };
            let (outcome, reaction) = self.remote_reacts(line, flight.remote, occasion)?;
            let Some(reaction) = reaction else {
                let (name, message) = (self.of.name_of(flight.remote), flight.message);
                return match outcome {
                    Outcome::Leave => Ok(false),
                    _ => Err(format!(
                        "{name} has no rule for {} of line {line}",
                        self.of.message(message)
                    )),
                };
            };
            self.state.lines[line as usize].flights.remove(place);
            self.react(line, flight.remote, reaction, Some(&flight))?;
            return Ok(true);
        }
        let class = self.of.game.protocol.class(flight.message);
        if class != Some(Class::Request) {
            if !self.home_takes(line, &flight)? {
                return Ok(false);
            }
            self.state.lines[line as usize].flights.remove(place);
            return Ok(true);
        }
        let number = self.of.unit(line);
        if self.state.units[number].head.is_some() {
            return Ok(false);
        }
        if !self.home_takes(line, &flight)? {
            // It leaves its channel to wait beside it, or at its head.
            let unit = &mut self.state.units[number];
            match unit.waiting.len() < self.of.game.waiting {
                true => {
                    unit.waiting.push((line, flight));
                    unit.waiting.sort();
                }
                false => unit.head = Some((line, flight)),
            }
        }
        self.state.lines[line as usize].flights.remove(place);
        Ok(true)
    }

    /// A cache has reacted: its bytes, its right, what it sends.
    fn react(
        &mut self,
        line: Line,
        remote: u8,
        reaction: Reaction,
        message: Option<&Flight>,
    ) -> Result<(), Violation> {
        let protocol = self.of.game.protocol;
        let own = &self.state.lines[line as usize].remotes[usize::from(remote)];
        let before = self.of.right(&own.configuration);
        let held = own.words.clone();
        let brought = message.and_then(|message| message.words.clone());
        let mut done = None;
        for act in reaction.acts {
            match act {
                Act::Send {
                    message: kind,
                    fields,
                    to,
                } => {
                    if to != Receiver::Home {
                        return Err("caches that send to each other are not explored here".into());
                    }
                    let carries = protocol.message(kind).carries.line();
                    let words = brought.clone().or(held.clone()).filter(|_| carries);
                    if carries && words.is_none() {
                        let name = self.of.name_of(remote);
                        return Err(format!("{name} sends line {line}, which it does not have"));
                    }
                    self.send(line, kind, remote, true, fields, words);
                }
                Act::Done => done = brought.clone(),
                _ => return Err(format!("{} acts as a home", self.of.name_of(remote))),
            }
        }
        let state = &protocol.remote.states[usize::from(reaction.next.state)];
        let (holds, right) = (state.holds_line, state.right);
        let own = &mut self.state.lines[line as usize].remotes[usize::from(remote)];
        own.configuration = reaction.next;
        own.words = brought.or(held).filter(|_| holds);
        if let Some(words) = done {
            self.done(line, remote, words)?;
        }
        if right > before {
            self.check_right(line, remote, right)?;
        }
        Ok(())
    }

    /// An access is performed with bytes that are not kept.
    fn done(&mut self, line: Line, remote: u8, words: Words) -> Result<(), Violation> {
        let of = |(number, thread): (usize, &Running<S::Thread>)| {
            let access = thread.doing.and_then(access_of)?;
            let its = number % usize::from(self.of.game.remotes) == usize::from(remote);
            (its && access.0 == line).then_some(number)
        };
        let Some(thread) = self.state.threads.iter().enumerate().find_map(of) else {
            return Err(format!("nobody waits for line {line}"));
        };
        let (result, after) = self.performed(thread, words.clone());
        if after != words {
            return Err(format!(
                "thread {thread} writes a copy of line {line} that is not kept"
            ));
        }
        self.advance(thread, result)
    }

    fn check_right(&self, line: Line, remote: u8, right: Right) -> Result<(), Violation> {
        let compatible =
            |other: Right| other == Right::None || (right, other) == (Right::Read, Right::Read);
        let place = &self.state.lines[line as usize];
        for (number, other) in place.remotes.iter().enumerate() {
            let theirs = self.of.right(&other.configuration);
            if number != usize::from(remote) && !compatible(theirs) {
                let (name, other) = (self.of.name_of(remote), self.of.name_of(number as u8));
                return Err(format!(
                    "{name} may {right:?} line {line} while {other} may {theirs:?}"
                ));
            }
        }
        let lock = match self.state.locks.get(&line) {
            Some(Right::None) => Right::Write,
            Some(_) => Right::Read,
            None => Right::None,
        };
        match compatible(lock) {
            true => Ok(()),
            false => Err(format!(
                "{} may {right:?} line {line} under the lock of {}",
                self.of.name_of(remote),
                self.of.name
            )),
        }
    }

    fn send(
        &mut self,
        line: Line,
        message: MessageId,
        remote: u8,
        to_home: bool,
        fields: Vec<u16>,
        words: Option<Words>,
    ) {
        let flight = Flight {
            message,
            remote,
            to_home,
            fields,
            words,
        };
        let group = self.of.group(message);
        let flights = &mut self.state.lines[line as usize].flights;
        // What is not ordered lies sorted before what is.
        let unordered = flights.partition_point(|flight| self.of.group(flight.message).is_none());
        match group {
            Some(_) => flights.push(flight),
            None => {
                let place = flights[..unordered].partition_point(|other| *other < flight);
                flights.insert(place, flight);
            }
        }
    }

    /// The home takes a message, if it can now.
    fn home_takes(&mut self, line: Line, flight: &Flight) -> Result<bool, Violation> {
        let occasion = Occasion {
            event: Cause::Message(flight.message),
            sender: Some(flight.remote),
            own: None,
            fields: &flight.fields,
        };
        self.home_event(line, occasion, flight.words.as_ref())
    }

    fn memory_event(&mut self, line: Line, event: Cause) -> Result<bool, Violation> {
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

    fn local(&mut self, unit: usize, place: usize) -> Result<bool, Violation> {
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
    fn home_event(
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
    fn lacks(&self, unit: usize, line: Line, acts: &[Act]) -> bool {
        let game = self.of.game;
        let busy = |of: fn(&LineState) -> Progress| {
            let mut lines = self.state.lines.iter().enumerate();
            lines.any(|(number, line)| {
                let of = of(line);
                let busy = !matches!(of, Progress::Idle | Progress::Ready);
                self.of.unit(number as Line) == unit && busy
            })
        };
        acts.iter().any(|act| match act {
            Act::StartRead => busy(|line| line.reading),
            Act::StartWrite | Act::StartStore { .. } => busy(|line| line.writing),
            Act::Send { message, .. } => {
                let unit = &self.state.units[unit];
                let forward = game.protocol.class(*message) == Some(Class::Forward);
                forward && unit.forwards > 0 && unit.forwarding != line
            }
            _ => false,
        })
    }

    fn home_act(
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
                self.send(line, message, remote, false, fields, words);
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
            Act::StartStore { .. } | Act::WriteMemory | Act::Done => {
                return Err("homes whose memory acts at once are not explored here".into());
            }
        }
        Ok(())
    }

    /// The home has done what the application asked for.
    fn acknowledge(&mut self, line: Line, local: u8) -> Result<(), Violation> {
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

    fn tell(&mut self, way: Way, event: Event) {
        self.state.coming.push((way, event));
        // Between different ways there is no order.
        self.state.coming.sort_by_key(|&(way, _)| way);
    }

    /// The application hears of an event, and acts.
    fn hear(&mut self, event: Event) -> Result<(), Violation> {
        self.state.contract.event(&event);
        let mut actions = Actions::new();
        self.state.application.handle(event, &mut actions);
        let actions: Vec<Action> = actions.take().collect();
        for action in actions {
            let judged = self.state.contract.action(&action);
            judged.map_err(|breach| {
                format!("line {}: {} {}", breach.line, self.of.name, breach.what)
            })?;
            self.carry_out(action)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Answer { line, words } => {
                self.write_by_application(line, words)?;
                self.state.lines[line as usize].reading = Progress::Ready;
            }
            Action::Accept { line } => self.state.lines[line as usize].writing = Progress::Ready,
            Action::Local {
                line,
                operation,
                lock,
            } => {
                let mut locals = self.of.game.home.locals.iter();
                let wanted = |l: &cohkit_protocol::controller::Local| {
                    l.ensures == operation.leaves() && l.locks == lock
                };
                let (Some(local), true) = (locals.position(wanted), line < self.of.game.lines)
                else {
                    let (name, what) = (&self.of.name, operation.name());
                    return Err(format!(
                        "{name} asks for a {what} of line {line}, which there is not"
                    ));
                };
                self.state.asked.insert(line, false);
                let unit = self.of.unit(line);
                self.state.units[unit]
                    .locals
                    .push((line, Some(local as u8)));
            }
            Action::Unlock { line } => {
                self.state.locks.remove(&line);
                let unit = self.of.unit(line);
                self.state.units[unit].locals.push((line, None));
            }
            Action::Fetch { tag, first, lines } => {
                let end = first.saturating_add(lines);
                let next = first;
                self.state.memory.push(Job::Fetch { tag, next, end });
            }
            Action::Store { tag, line, words } => {
                self.state.memory.push(Job::Store { tag, line, words });
            }
            Action::Wake { tag, .. } => self.state.timers.push(tag),
            Action::Count { .. } | Action::Begin { .. } | Action::End { .. } => {}
            Action::Reply { .. } | Action::HostFetch { .. } | Action::HostStore { .. } => {
                return Err(format!("{}: {NO_BUS}", self.of.name));
            }
        }
        Ok(())
    }

    /// The application's memory does a job: what it reads or writes, it reads or writes now.
    fn job(&mut self, place: usize) -> Result<(), Violation> {
        let homed =
            |of: &Self, line: Line| line < of.of.game.lines && !of.of.placement.serves(line);
        match self.state.memory[place].clone() {
            Job::Fetch { tag, next, end } => {
                let words = match homed(self, next) {
                    true => self.state.lines[next as usize].memory.clone(),
                    false => {
                        let own = self.state.own.get(&next).cloned();
                        own.unwrap_or_else(|| vec![0].into())
                    }
                };
                match next + 1 < end {
                    true => {
                        let next = next + 1;
                        self.state.memory[place] = Job::Fetch { tag, next, end };
                    }
                    false => drop(self.state.memory.remove(place)),
                }
                let line = next;
                self.hear(Event::Fetched { tag, line, words })
            }
            Job::Store { tag, line, words } => {
                self.state.memory.remove(place);
                match homed(self, line) {
                    true => self.write_by_application(line, words)?,
                    false => drop(self.state.own.insert(line, words)),
                }
                self.hear(Event::Stored { tag })
            }
        }
    }

    /// The application gives a line of the home these words.
    fn write_by_application(&mut self, line: Line, words: Words) -> Result<(), Violation> {
        let place = &mut self.state.lines[line as usize];
        if words.len() != place.memory.len() {
            let name = &self.of.name;
            return Err(format!(
                "{name} gives line {line} {} words, not one",
                words.len()
            ));
        }
        if words == place.memory {
            return Ok(());
        }
        if place.memory != place.last {
            return Err(format!(
                "{} changes line {line} from old bytes",
                self.of.name
            ));
        }
        for (number, remote) in place.remotes.iter().enumerate() {
            if self.of.right(&remote.configuration) > Right::None {
                let (name, other) = (&self.of.name, self.of.name_of(number as u8));
                return Err(format!(
                    "{name} changes line {line}, of which {other} has a copy"
                ));
            }
        }
        place.memory = words.clone();
        place.last = words;
        Ok(())
    }
}

/// The line and kind of a step's access.
fn access_of(step: Step) -> Option<(Line, Access)> {
    match step {
        Step::Load { line, .. } => Some((line, Access::Load)),
        Step::LoadExclusive { line, .. } | Step::Store { line, .. } | Step::Update { line, .. } => {
            Some((line, Access::Store))
        }
        _ => None,
    }
}

/// What a controller does with an event, and where that leads if it takes it.
fn reaction(
    machine: &Machine,
    controller: &Controller,
    before: &Configuration,
    occasion: Occasion,
) -> Result<(Outcome, Option<Reaction>), Violation> {
    let mut next = before.clone();
    let mut tables = controller;
    match machine.step(&mut next, occasion, &mut tables) {
        Ok(Outcome::Taken { rule, acts }) => {
            let reaction = Reaction {
                acts: acts.clone(),
                next,
            };
            Ok((Outcome::Taken { rule, acts }, Some(reaction)))
        }
        Ok(outcome) => Ok((outcome, None)),
        Err(interrupted) => Err(format!(
            "a rule cannot be executed: {:?}",
            interrupted.fault
        )),
    }
}

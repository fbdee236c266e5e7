//! The lines of a protocol's caches, each apart from all others where a protocol lets them be.
//!
//! What happens to a line depends on no other line, but for the order of messages in channels that are ordered across
//! lines. So the worlds of single lines are numbered, and what each leads to is worked out once, however often the line is
//! met beside others: what is explored besides are rows of numbers.
//!
//! Registers and several homes join lines: then one world has all of them, and the row has one number for it.
//! Of two levels of caches, what is numbered of a line are both.

use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::threads::Accesses;
use cohkit_system::world::{Carried, Ended, Levels, Operation, System, Wrong};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::cores::{Asked, Asks, Wish};
use crate::kinds::{write, Kinds};
use crate::machine::{Machine, MachineState, Queue};
use crate::mixes;
use crate::program::{Program, Update, Via};
use crate::values::{Values, Written};
use crate::worlds::Worlds;

/// The number of a line's world, or of that of all lines.
pub type Line = u32;

/// What ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finished {
    /// A thread's access of a line of the world, with the value found; `None` if the home has performed a write, and gives
    /// none back.
    Access(u8, u8, Option<i64>),
    /// What a thread asked for that is about no line.
    Asked(u8, Asked),
}

/// What happens to a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// What the line is then.
    pub to: Line,
    /// What ends with it.
    pub ended: Vec<Finished>,
    /// Whether a cache gives up what it was not asked for.
    pub gives_up: bool,
    /// The order whose first message arrives.
    pub takes: Option<Queue>,
    /// The orders that messages are put in.
    pub puts: Vec<Queue>,
}

/// Worlds that are kept from one program to the next, at most: a hundred bytes each.
const KNOWN: usize = 2_000_000;

/// Lines whose moves are kept, and accesses whose beginnings are, at most: some hundred bytes each. States that were met
/// one soon after the other have lines in common, so those that were met long ago are hardly asked for again.
const STEPS: usize = 200_000;

/// A line of a world, a thread, and what it begins there.
type Begin = (Line, u8, u8, Update, Access);

/// The lines of a protocol's caches, one cache for each of so many threads.
pub struct Lines<'p> {
    machine: Machine<'p>,
    kinds: Kinds,
    /// Those of each thread's cache.
    accesses: Vec<Accesses>,
    /// Whether one world has all lines.
    joined: bool,
    worlds: Worlds,
    /// What was made last of a number.
    last: Option<(Line, Rc<MachineState<Values>>)>,
    /// What may happen to a line, with what caches give up that they were not asked for, or without it.
    moves: FxHashMap<(Line, bool), Rc<[Move]>>,
    begun: FxHashMap<Begin, Option<Rc<Move>>>,
}

impl<'p> Lines<'p> {
    /// None met so far, for programs whose threads run on caches of these kinds, and at most so many locations. There is
    /// `room` for so many equal messages of a line, and for so many of an order.
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        kinds: impl Into<Kinds>,
        locations: u8,
        room: u16,
    ) -> Lines<'p> {
        let kinds = kinds.into();
        let lines = match protocol.joins_lines() {
            Some(_) => (locations.max(2) - 1) * protocol.homes as u8 + 1,
            None => 1,
        };
        let system = System::new(protocol, home, kinds.remotes(protocol), lines, room);
        Lines::on(Machine::One(Box::new(system), kinds.numbers()), kinds)
    }

    /// The same before the lower level of two, where each thread has a seat: a cluster, and a cache of it.
    ///
    /// # Errors
    /// What the protocols lack to be run.
    pub fn below(levels: Levels<'p>, seats: Vec<(u8, u8)>) -> Result<Lines<'p>, String> {
        for protocol in [levels.outer.protocol, levels.inner.protocol] {
            if let Some(what) = protocol.joins_lines() {
                return Err(format!(
                    "{} has {what}, and is one of two levels",
                    protocol.name
                ));
            }
            if protocol.several_tables() {
                let several = "has several kinds of remotes, and is one of two levels";
                return Err(format!("{} {several}", protocol.name));
            }
        }
        let kinds = Kinds::from(seats.len() as u8);
        Ok(Lines::on(Machine::Two(Box::new(levels), seats), kinds))
    }

    fn on(machine: Machine<'p>, kinds: Kinds) -> Lines<'p> {
        Lines {
            accesses: kinds.accesses(machine.protocol()),
            joined: machine.protocol().joins_lines().is_some(),
            machine,
            kinds,
            worlds: Worlds::default(),
            last: None,
            moves: FxHashMap::default(),
            begun: FxHashMap::default(),
        }
    }

    /// The protocol of the caches that threads are before.
    pub fn protocol(&self) -> &'p Protocol {
        self.machine.protocol()
    }

    /// How many threads there are, each before a cache.
    pub fn threads(&self) -> u8 {
        self.kinds.threads()
    }

    /// The first access that a program needs and its threads' caches have no row for, in a sentence.
    pub fn lacks(&self, program: &Program) -> Option<String> {
        self.kinds.lacks(self.protocol(), program)
    }

    /// The program as the cores before these caches run it.
    pub fn ordered(&self, program: &Program) -> Program {
        mixes::ordered(self.protocol(), &self.kinds, program)
    }

    /// The ways in which locations may lie at the homes, homes being alike: of each, the line of every location.
    pub fn placements(&self, locations: usize) -> Vec<Vec<u8>> {
        let homes = self.machine.protocol().homes as u8;
        // Which home each location is at: a new home is the first one that nothing is at.
        let mut at: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..locations {
            at = (at.into_iter())
                .flat_map(|before| {
                    let met = before.iter().max().map_or(0, |last| last + 1);
                    (0..=met.min(homes - 1)).map(move |home| [&before[..], &[home]].concat())
                })
                .collect();
        }
        // Line L is home L mod their number's.
        let lines = |at: Vec<u8>| {
            let line = |(place, home): (usize, &u8)| {
                let before = at[..place].iter().filter(|other| *other == home).count();
                before as u8 * homes + home
            };
            at.iter().enumerate().map(line).collect()
        };
        at.into_iter().map(lines).collect()
    }

    /// Programs in the order in which they share the most: by their threads and, where one world has all lines, by their
    /// locations. What is known of lines is known to all programs of one group.
    pub fn groups(protocol: &Protocol, programs: Vec<Program>) -> Vec<Vec<Program>> {
        let joined = protocol.joins_lines().is_some();
        let mut groups: BTreeMap<(usize, usize), Vec<Program>> = BTreeMap::new();
        for program in programs {
            let locations = if joined { program.locations.len() } else { 0 };
            let group = groups.entry((program.threads.len(), locations));
            group.or_default().push(program);
        }
        groups.into_values().collect()
    }

    /// Whether one world has all lines.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// The worlds of a line.
    pub(crate) fn state(&self, line: Line) -> MachineState<Values> {
        let worlds = self.worlds.worlds(line, self.machine.systems());
        self.machine.state(worlds.into_iter())
    }

    /// The same, made once of the same number.
    fn before(&mut self, line: Line) -> Rc<MachineState<Values>> {
        match &self.last {
            Some((last, state)) if *last == line => Rc::clone(state),
            _ => {
                let state = Rc::new(self.state(line));
                self.last = Some((line, Rc::clone(&state)));
                state
            }
        }
    }

    /// The system of one level.
    pub(crate) fn system(&self) -> Option<&System<'p>> {
        match &self.machine {
            Machine::One(system, _) => Some(system),
            Machine::Two(..) => None,
        }
    }

    /// The system of one level, and all of its worlds that programs have met.
    pub fn met(&self) -> Option<(&System<'p>, impl Iterator<Item = MachineState<Values>> + '_)> {
        let all = 0..self.worlds.count() as Line;
        Some((self.system()?, all.map(|number| self.state(number))))
    }

    /// Forgets what is known if that is much: beyond it more memory is taken than time is saved. Numbers of lines mean
    /// nothing afterwards.
    pub fn forget(&mut self) {
        if self.worlds.count() > KNOWN {
            self.worlds = Worlds::default();
            self.last = None;
            self.moves.clear();
            self.begun.clear();
        }
    }

    /// The thread of each remote of one level.
    pub(crate) fn thread_of_each(&self) -> Vec<usize> {
        let numbers = self.kinds.numbers();
        let thread = |remote| numbers.iter().position(|number| *number == remote);
        (0..self.threads()).filter_map(thread).collect()
    }

    /// What that is about no line a thread's cache takes part in.
    pub fn asks(&self, thread: usize) -> Asks {
        Asks::of(&self.accesses[thread])
    }

    /// The lines that nobody has read or written, with these values in the memory of each line that holds a location.
    ///
    /// # Errors
    /// What does not hold of them.
    pub fn first(&mut self, values: &[(u8, i64)]) -> Result<Vec<Line>, Wrong> {
        let worlds: Vec<Vec<(u8, i64)>> = match self.joined() {
            true => vec![values.to_vec()],
            false => values.iter().map(|&(_, value)| vec![(0, value)]).collect(),
        };
        let mut first = Vec::new();
        for values in worlds {
            let mut state: MachineState<Values> = self.machine.first();
            for (line, value) in values {
                let line = usize::from(line);
                for world in state.worlds_mut() {
                    world.data.last[line].1 = value;
                }
                let above = state.worlds_mut().next();
                above.expect("there is one").lines[line].memory.1 = value;
            }
            first.push(self.number(state)?);
        }
        Ok(first)
    }

    /// The value that was written last to a line of a world.
    pub fn value(&self, line: Line, within: u8) -> i64 {
        self.worlds.data(line).last[usize::from(within)].1
    }

    /// Whether everything that was written is where all will find it.
    pub fn settled(&self, line: Line) -> bool {
        let worlds = self.worlds.worlds(line, self.machine.systems());
        worlds.iter().all(|world| {
            let mut flights = world.network.flights();
            let mut lines = world.lines.iter();
            !flights.any(|flight| matches!(flight.carried, Carried::Write(..)))
                && !lines.any(|place| {
                    place.aside.is_some() || matches!(place.operation, Operation::Store { .. })
                })
        })
    }

    /// What holds of every world is asked of each once.
    fn number(&mut self, state: MachineState<Values>) -> Result<Line, Wrong> {
        let (number, new) = self.worlds.number(state.worlds());
        if new {
            self.machine.claims(&state)?;
        }
        Ok(number)
    }

    /// What may happen to a line without its threads, and unless caches are `giving_up` what they were not asked for,
    /// without that.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn moves(&mut self, line: Line, giving_up: bool) -> Result<Rc<[Move]>, Wrong> {
        if let Some(moves) = self.moves.get(&(line, giving_up)) {
            return Ok(Rc::clone(moves));
        }
        let before = self.before(line);
        let mut moves = Vec::new();
        for step in self.machine.steps(&before, giving_up) {
            let mut next = MachineState::clone(&before);
            let mut ended = Vec::new();
            if self.machine.take(&mut next, step, &mut ended)? {
                // An order of a single line binds no others, and a world of all lines keeps them by itself.
                let takes = match self.joined() {
                    true => None,
                    false => self.machine.takes(step),
                };
                let gives_up = self.machine.gives_up(&before, step);
                moves.push(self.told(&before, next, ended, takes, gives_up)?);
            }
        }
        let moves: Rc<[Move]> = moves.into();
        if self.moves.len() >= STEPS {
            self.moves.clear();
        }
        self.moves.insert((line, giving_up), Rc::clone(&moves));
        Ok(moves)
    }

    /// A thread begins an access to a line of a world, or performs it at once. `None` if it has to be tried again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn begin(
        &mut self,
        line: Line,
        within: u8,
        thread: u8,
        wish: Wish,
    ) -> Result<Option<Rc<Move>>, Wrong> {
        let of = &self.accesses[usize::from(thread)];
        let (access, what) = match wish {
            Wish::Read(_, true) => (of.acquire, Update::Add(0)),
            Wish::Read(_, false) => (of.read, Update::Add(0)),
            Wish::Write(_, value, release, via) => (write(of, via, release), Update::Set(value)),
            Wish::Update(_, update, Via::Text) => (of.update, update),
            Wish::Update(_, update, via) => (write(of, via, false), update),
        };
        let access = access.expect("nothing is run that a cache lacks a row for");
        self.begins(line, within, thread, (access, what))
    }

    /// A thread asks for what is about no line. `None` if it has to be tried again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn ask(&mut self, line: Line, thread: u8, asked: Asked) -> Result<Option<Rc<Move>>, Wrong> {
        let of = &self.accesses[usize::from(thread)];
        let access = match asked {
            Asked::Fence => of.fence,
            Asked::Acquired => of.acquired,
        };
        let access = access.expect("threads ask for what there is");
        let begun = self.begins(line, 0, thread, (access, Update::Add(0)))?;
        // What ends with it is what was asked for, and no access of the line.
        Ok(begun.map(|begun| {
            let ended = begun
                .ended
                .iter()
                .map(|one| Finished::Asked(thread_of(*one), asked));
            Rc::new(Move {
                ended: ended.collect(),
                ..Move::clone(&begun)
            })
        }))
    }

    fn begins(
        &mut self,
        line: Line,
        within: u8,
        thread: u8,
        (access, what): (Access, Update),
    ) -> Result<Option<Rc<Move>>, Wrong> {
        let key = (line, within, thread, what, access);
        if let Some(known) = self.begun.get(&key) {
            return Ok(known.clone());
        }
        let before = self.before(line);
        let mut next = MachineState::clone(&before);
        let mut ended = Vec::new();
        let (at, what) = ((within, thread), (access, Written(Some(what))));
        let begun = match self.machine.begin(&mut next, at, what, &mut ended)? {
            true => Some(Rc::new(self.told(&before, next, ended, None, false)?)),
            false => None,
        };
        if self.begun.len() >= STEPS {
            self.begun.clear();
        }
        self.begun.insert(key, begun.clone());
        Ok(begun)
    }

    fn told(
        &mut self,
        before: &MachineState<Values>,
        after: MachineState<Values>,
        ended: Vec<Ended<Values>>,
        takes: Option<Queue>,
        gives_up: bool,
    ) -> Result<Move, Wrong> {
        let ended = ended.into_iter();
        let ended =
            ended.map(|one| Finished::Access(one.remote, one.line, one.found.map(|copy| copy.1)));
        let mut puts = Vec::new();
        if !self.joined() {
            let had: BTreeMap<Queue, usize> = self.machine.queued(before).into_iter().collect();
            for (queue, queued) in self.machine.queued(&after) {
                let had = had.get(&queue).copied().unwrap_or(0);
                let kept = had - usize::from(takes == Some(queue));
                puts.extend(std::iter::repeat_n(queue, queued - kept));
            }
        }
        Ok(Move {
            to: self.number(after)?,
            ended: ended.collect(),
            gives_up,
            takes,
            puts,
        })
    }
}

fn thread_of(finished: Finished) -> u8 {
    match finished {
        Finished::Access(thread, ..) | Finished::Asked(thread, _) => thread,
    }
}

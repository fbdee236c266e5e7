//! A whole system without time: what may happen next, and what it leads to.
//!
//! A [`System`] is what does not change: a protocol, its home, how many remotes and lines. A [`World`] is everything at some
//! moment. [`World::steps`] names what may happen, [`World::take`] lets it happen, [`World::claims`] says what must hold.
//! It is plain and exact, and is what the checker's models are compared with; for large systems it is slow.
//!
//! Remotes start every access whenever their rows let them, the device asks for local operations and gives its locks back
//! when it likes. Who wants threads or an application in their place, drives the agents by [`crate::agent`].

mod claims;
mod common;
mod explore;
mod joint;
mod lent;
mod levels;
mod network;
mod renamed;
mod steps;
mod words;

use cohkit_protocol::controller::Controller;
use cohkit_protocol::execute::{Configuration, Machine};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_protocol::remotes::Remotes;

use crate::agent::Violation;
use crate::data::Data;
use crate::plan::{Facts, Plan};
use crate::stores::{AtomicRead, Stores, Ticket};

pub use common::Common;
pub use explore::{explore, Explored, Found};
pub use joint::{explore_levels, Search};
pub use lent::{MORE_THAN_LENT, WRITES_UNLENT};
pub use levels::{Clusters, LevelStep, Levels};
pub use network::{Arrival, Carried, End, Flight, Network, Order};
pub use steps::{Ended, Step};

/// What does not change in a system.
pub struct System<'p> {
    /// The protocol.
    pub protocol: &'p Protocol,
    /// Its home, written by hand or constructed.
    pub home: &'p Controller,
    /// Caching agents.
    pub remotes: u8,
    /// How many of each kind.
    pub of_each: Remotes,
    /// Cache lines.
    pub lines: u8,
    /// Most equal messages without an order, and most messages per line in one order, where the text states no bound.
    pub room: u16,
    /// Whether the device may ask for its next local operation before the one that the home has accepted is acknowledged.
    pub ask_ahead: bool,
    /// If the memory is lent: of each message, the right to it without which the home does not take it.
    lent: Option<Vec<Right>>,
    facts: Facts,
    /// What follows from each row of remote and home.
    plans: [Vec<Plan>; 2],
    machines: [Machine<'p>; 2],
    /// Whether rows of remotes, and of the home, choose one member of a set.
    chooses: [bool; 2],
}

impl<'p> System<'p> {
    /// A system of so many remotes and lines.
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        remotes: impl Into<Remotes>,
        lines: u8,
        room: u16,
    ) -> System<'p> {
        let of_each = remotes.into();
        let facts = Facts::new(protocol, home);
        System {
            protocol,
            home,
            remotes: of_each.total() as u8,
            of_each,
            lines,
            room,
            ask_ahead: true,
            lent: None,
            plans: [
                Plan::of(&protocol.remote, Some(&facts.accesses)),
                Plan::of(home, None),
            ],
            machines: [
                Machine::new(&protocol.remote, of_each),
                Machine::new(home, of_each),
            ],
            chooses: [&protocol.remote, home].map(|of| of.rules.iter().any(|row| row.chooses())),
            facts,
        }
    }

    fn remote_machine(&self) -> &Machine<'p> {
        &self.machines[0]
    }

    fn home_machine(&self) -> &Machine<'p> {
        &self.machines[1]
    }

    /// Slots of a variable in a configuration of the home.
    pub fn slots_of_home(&self, variable: u16) -> std::ops::Range<usize> {
        self.home_machine().slots(variable)
    }

    /// The number of a line's home.
    fn home_of(&self, line: u8) -> u16 {
        u16::from(line) % self.protocol.homes
    }

    fn right(&self, remote: &Configuration) -> Right {
        self.protocol.remote.states[usize::from(remote.state)].right
    }
}

/// A caching agent, for one line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Remote<D: Data> {
    /// Its state and variables.
    pub configuration: Configuration,
    /// Its copy of the line; the default where it has none.
    pub copy: D::Copy,
    /// What the write under way writes, where somebody has begun it and what it writes makes a difference.
    pub writes: Option<D::Write>,
    /// What the atomic access in progress has found, where it makes a difference.
    pub found: Option<D::Copy>,
    /// Its pending stores.
    pub stores: Stores,
}

/// How far a memory operation is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation<D: Data> {
    /// There is none.
    Idle,
    /// The line is to be read.
    Read,
    /// It has been read.
    Sampled(D::Copy),
    /// This copy is to be written.
    Write(D::Copy),
    /// The bytes of a write are to be written.
    Store {
        /// Whether they are those of the whole line.
        whole: bool,
        /// What it writes.
        what: D::Write,
    },
    /// It has been written.
    Done,
}

/// A write whose bytes a home has set aside.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SetAside<D: Data> {
    /// Who sent it.
    pub from: u8,
    /// Whether its bytes are those of the whole line.
    pub whole: bool,
    /// What it writes.
    pub what: D::Write,
    /// Whether it is still to be performed, and in which order.
    pub ticket: Ticket,
}

/// The device's lock on a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lock {
    /// None.
    Open,
    /// The device may do this much with the line.
    Held(Right),
    /// Its unlock has been taken and not yet confirmed.
    GivenBack,
}

/// Everything about one line, messages apart.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Line<D: Data> {
    /// The home's state and variables.
    pub home: Configuration,
    /// What memory holds.
    pub memory: D::Copy,
    /// The right to it: to write, but where it is lent.
    pub lent: Right,
    /// The caching agents.
    pub remotes: Vec<Remote<D>>,
    /// The memory operation under way.
    pub operation: Operation<D>,
    /// The write whose bytes the home has set aside.
    pub aside: Option<SetAside<D>>,
    /// What the write writes that the home has taken and not given to memory, where that makes a difference.
    pub kept: Option<D::Write>,
    /// The local operation that the device asks for.
    pub asked: Option<u8>,
    /// The one that the home has accepted and not yet acknowledged.
    pub accepted: Option<u8>,
    /// The device's lock.
    pub lock: Lock,
}

/// Everything at some moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World<D: Data> {
    /// What is known of the bytes of all copies together.
    pub data: D,
    /// The lines.
    pub lines: Vec<Common<Line<D>>>,
    /// The messages under way.
    pub network: Network<D>,
}

/// Why a step cannot be taken to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// It breaks a property.
    Violated(Violation),
    /// It takes more room than there is, which says nothing about the protocol.
    Exceeded(String),
}

impl From<Violation> for Wrong {
    fn from(violation: Violation) -> Wrong {
        Wrong::Violated(violation)
    }
}

impl<D: Data> World<D> {
    /// The world in which everything begins.
    pub fn new(system: &System) -> World<D> {
        let data = D::new(system.lines);
        let remote = |number| {
            let (kind, _) = system.of_each.kind(u16::from(number));
            let initial = system.protocol.kinds[kind.index()].initial;
            Remote {
                configuration: system.remote_machine().initial_in(initial),
                copy: D::Copy::default(),
                writes: None,
                found: None,
                stores: Stores::default(),
            }
        };
        let line = |line| {
            Common::new(Line {
                home: system.home_machine().initial(),
                memory: match system.lent {
                    Some(_) => D::Copy::default(),
                    None => data.initial(line),
                },
                lent: match system.lent {
                    Some(_) => Right::None,
                    None => Right::Write,
                },
                remotes: (0..system.remotes).map(remote).collect(),
                operation: Operation::Idle,
                aside: None,
                kept: None,
                asked: None,
                accepted: None,
                lock: Lock::Open,
            })
        };
        let mut world = World {
            lines: (0..system.lines).map(line).collect(),
            network: Network::new(),
            data,
        };
        (0..system.lines).for_each(|line| world.lent_writes(system, line));
        world
    }

    /// Whether nothing is under way.
    pub fn quiescent(&self, system: &System) -> bool {
        let stable =
            |of: &Controller, at: &Configuration| of.states[usize::from(at.state)].stable();
        self.network.is_empty()
            && self.lines.iter().all(|line| {
                stable(system.home, &line.home)
                    && line
                        .remotes
                        .iter()
                        .all(|remote| stable(&system.protocol.remote, &remote.configuration))
                    && line.operation == Operation::Idle
                    && line.aside.is_none()
                    && line.asked.is_none()
                    && line.accepted.is_none()
                    && line.lock == Lock::Open
            })
    }

    /// Whether a copy of a line other than that of one agent (memory, if it is none) is current. Only then a write there
    /// changes something.
    /// Where copies may be old, nothing that a write does to them is looked at.
    fn another_is_current(&self, system: &System, line: u8, own: Option<u8>) -> bool {
        if !system.facts.coherent {
            return false;
        }
        let place = &self.lines[usize::from(line)];
        let current = |copy: &D::Copy| self.data.current(line, copy);
        let mut remotes = (0..).zip(&place.remotes);
        let slot = match &place.operation {
            Operation::Sampled(copy) | Operation::Write(copy) => current(copy),
            _ => false,
        };
        let mut flights = self.network.flights().filter(|flight| flight.line == line);
        let answered = |remote: &Remote<D>| remote.stores.read == AtomicRead::Last;
        place.remotes.iter().any(answered)
            || remotes.any(|(number, remote)| Some(number) != own && current(&remote.copy))
            || own.is_some() && current(&place.memory)
            || slot
            || flights.any(|flight| matches!(&flight.carried, Carried::Line(copy) if current(copy)))
    }

    /// A write makes all copies of a line old, and memory too unless it is in memory that a part of it is written.
    fn age(&mut self, system: &System, line: u8, memory_too: bool) {
        if !system.facts.coherent {
            return;
        }
        self.outdate_answers(line);
        if !D::AGES {
            return;
        }
        let place = &mut self.lines[usize::from(line)];
        for remote in &mut place.remotes {
            remote.copy = D::aged(&remote.copy);
        }
        if memory_too {
            place.memory = D::aged(&place.memory);
        }
        if let Operation::Sampled(copy) | Operation::Write(copy) = &mut place.operation {
            *copy = D::aged(copy);
        }
        self.network.change(line, D::aged);
    }

    /// A store to a line is performed: what atomic accesses have read before is not the last value any more.
    fn outdate_answers(&mut self, line: u8) {
        let last = |remote: &Remote<D>| remote.stores.read == AtomicRead::Last;
        let place = &mut self.lines[usize::from(line)];
        if place.remotes.iter().any(last) {
            for remote in place.remotes.iter_mut().filter(|remote| last(remote)) {
                remote.stores.read = AtomicRead::Outdated;
            }
        }
    }
}

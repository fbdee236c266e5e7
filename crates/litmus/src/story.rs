//! What happens on the way to an end, step by step, to be drawn.
//!
//! A step is told by what differs after it: messages that are no longer under way have been taken, new ones were sent by who
//! took them, and memory, registers of homes and threads are not what they were. So nothing that runs programs has to tell.

use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_protocol::value_text::{AgentNames, Contents};
use cohkit_system::stores::Ticket;
use cohkit_system::world::{Carried, Flight, System, World};

use crate::cores::{Asked, Core, Wish};
use crate::program::{Location, Program, Update, Via};
use crate::values::{Values, Written};

/// What a thread does in a step of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// It begins an access.
    Begins(u8, Wish),
    /// It asks for what is about no line.
    Asks(u8, Asked),
    /// It reads out of its own stores.
    Forwards(u8),
    /// Something happens without it.
    Nothing,
}

/// What differs before and after a step.
pub struct Change<'s> {
    /// The system of the world that changes.
    pub system: &'s System<'s>,
    /// The location of each of its lines; nothing where no location is.
    pub locations: &'s [Option<Location>],
    /// The world, if one changes.
    pub worlds: Option<[&'s World<Values>; 2]>,
    /// The threads.
    pub cores: [&'s [Core]; 2],
}

/// A message under way, the number of the step that sent it, and its sender.
type UnderWay = (Flight<Values>, u32, usize);

/// A sequence as it is told.
pub struct Story<'s> {
    program: &'s Program,
    /// The thread of each remote.
    threads: Vec<usize>,
    /// Remotes by the names of their threads, and homes.
    names: AgentNames,
    sequence: Sequence,
    under_way: Vec<UnderWay>,
    flights: u32,
}

impl<'s> Story<'s> {
    /// Nothing has happened among the threads of a program, of which each remote has one, and so many homes of one name.
    pub fn new(
        program: &'s Program,
        (home, homes): (&str, usize),
        threads: Vec<usize>,
    ) -> Story<'s> {
        let mut agents: Vec<String> = (0..program.threads.len())
            .map(|n| format!("P{n}"))
            .collect();
        let names = AgentNames {
            remotes: threads
                .iter()
                .map(|&thread| agents[thread].clone())
                .collect(),
            homes: cohkit_base::sequence::homes(home, homes as u16),
        };
        agents.extend_from_slice(&names.homes);
        Story {
            program,
            names,
            threads,
            sequence: Sequence {
                agents,
                steps: Vec::new(),
            },
            under_way: Vec::new(),
            flights: 0,
        }
    }

    /// All that was told.
    pub fn sequence(self) -> Sequence {
        self.sequence
    }

    fn step(&mut self, agent: usize, action: Action) {
        self.sequence.steps.push(Step {
            agent,
            action,
            line: None,
            visible: true,
        });
    }

    fn does(&mut self, agent: usize, what: String) {
        self.step(agent, Action::Does { what });
    }

    /// Tells a step.
    pub fn tell(&mut self, did: Did, change: &Change) {
        let name = |at: Location| &self.program.locations[usize::from(at)];
        let mut actor = match did {
            Did::Begins(thread, _) | Did::Asks(thread, _) | Did::Forwards(thread) => {
                Some(usize::from(thread))
            }
            Did::Nothing => None,
        };
        let begun = match did {
            Did::Begins(_, Wish::Read(at, acquire)) => Some(format!(
                "{} {}",
                if acquire { "acquires" } else { "loads" },
                name(at)
            )),
            Did::Begins(_, Wish::Write(at, value, release, via)) => {
                let what = if release { "releases" } else { "stores" };
                let how = match via {
                    Via::Text => "",
                    Via::Back => ", written back",
                    Via::Acknowledged => ", acknowledged",
                };
                Some(format!("{what} {} = {value}{how}", name(at)))
            }
            Did::Begins(_, Wish::Update(at, ..)) => Some(format!("changes {}", name(at))),
            Did::Asks(_, Asked::Fence) => Some("fences".to_string()),
            Did::Asks(_, Asked::Acquired) => Some("has acquired".to_string()),
            Did::Forwards(_) => Some("reads its own store".to_string()),
            Did::Nothing => None,
        };
        if let (Some(agent), Some(what)) = (actor, begun) {
            self.does(agent, what);
        }
        if let Some([before, after]) = change.worlds {
            let (taken, sent) = differ(flights(before), flights(after));
            for flight in &taken {
                actor = Some(self.takes(flight, change));
            }
            self.home_changes(change, [before, after]);
            for flight in sent {
                self.sends(actor, flight, change);
            }
        }
        let [before, after] = change.cores;
        for (number, (before, after)) in before.iter().zip(after).enumerate() {
            let code = &self.program.threads[number].code;
            for (place, at) in before
                .open()
                .filter(|begun| !after.open().any(|other| other == *begun))
            {
                if let (Some(at), Some(to)) = (at, code[place].fills()) {
                    let name = &self.program.locations[usize::from(at)];
                    let value = after.registers[to];
                    self.does(number, format!("finds {name} = {value}"));
                }
            }
        }
    }

    /// The receiver takes a message; gives who that is.
    fn takes(&mut self, flight: &Flight<Values>, change: &Change) -> usize {
        let same = self
            .under_way
            .iter()
            .position(|(other, ..)| other == flight);
        let (_, number, from) = self.under_way.remove(same.expect("it was sent"));
        let agent = self.receiver(flight, change);
        let message = self.words(flight, change);
        self.step(
            agent,
            Action::Receive {
                message,
                from,
                flight: number,
            },
        );
        agent
    }

    fn sends(&mut self, actor: Option<usize>, flight: Flight<Values>, change: &Change) {
        let from = match flight.from {
            Some(remote) => self.threads[usize::from(remote)],
            None => actor.unwrap_or_else(|| self.home(flight.line, change)),
        };
        let message = self.words(&flight, change);
        let to = self.receiver(&flight, change);
        let number = self.flights;
        self.flights += 1;
        self.step(
            from,
            Action::Send {
                message,
                to,
                flight: number,
            },
        );
        self.under_way.push((flight, number, from));
    }

    /// The lifeline of a line's home.
    fn home(&self, line: u8, change: &Change) -> usize {
        let homes = usize::from(change.system.protocol.homes);
        self.program.threads.len() + usize::from(line) % homes
    }

    fn receiver(&self, flight: &Flight<Values>, change: &Change) -> usize {
        match flight.to {
            Some(remote) => self.threads[usize::from(remote)],
            None => self.home(flight.line, change),
        }
    }

    /// A message with its location, the value that it carries, and its fields: `Release(y=1, epoch=0)`.
    fn words(&self, flight: &Flight<Values>, change: &Change) -> String {
        let message = change.system.protocol.message(flight.message);
        let mut parts = Vec::new();
        let at = change.locations.get(usize::from(flight.line)).copied();
        if let (true, Some(at)) = (message.about_line, at.flatten()) {
            let name = &self.program.locations[usize::from(at)];
            parts.push(match &flight.carried {
                Carried::Line((_, value))
                | Carried::Write(Written(Some(Update::Set(value))), _) => {
                    format!("{name}={value}")
                }
                _ => name.clone(),
            });
        }
        parts.extend(self.names.fields(&message.fields, &flight.fields));
        match parts.is_empty() {
            true => message.name.clone(),
            false => format!("{}({})", message.name, parts.join(", ")),
        }
    }

    /// What homes have written to memory, and what they count.
    fn home_changes(&mut self, change: &Change, [before, after]: [&World<Values>; 2]) {
        let system = change.system;
        for (line, (old, new)) in before.lines.iter().zip(&after.lines).enumerate() {
            let home = self.home(line as u8, change);
            let at = change.locations.get(line).copied().flatten();
            if let (true, Some(at)) = (old.memory != new.memory, at) {
                let name = &self.program.locations[usize::from(at)];
                self.does(home, format!("writes {name} = {}", new.memory.1));
            }
            // Registers are one for all lines of a home.
            if line >= usize::from(system.protocol.homes) {
                continue;
            }
            let registers = (0..).zip(&system.home.variables);
            for (number, variable) in registers.filter(|(_, variable)| variable.register) {
                let slots = system.slots_of_home(number);
                let [old, new] = [&old.home, &new.home]
                    .map(|home| Contents::of(variable.ty, &home.slots[slots.clone()]));
                for state in self.names.changes(variable, &old, &new) {
                    self.step(home, Action::Becomes { state });
                }
            }
        }
    }
}

/// The messages in flight, sorted, without what changes while a message stays in flight: the order among messages, and the
/// rank of a posted store.
fn flights(world: &World<Values>) -> Vec<Flight<Values>> {
    let flights = world.network.flights().cloned();
    let mut flights: Vec<_> = flights
        .map(|flight| Flight {
            early: false,
            first: false,
            carried: match flight.carried {
                Carried::Write(write, _) => Carried::Write(write, Ticket::VOID),
                other => other,
            },
            ..flight
        })
        .collect();
    flights.sort();
    flights
}

/// Those that are in the first list alone, and in the second alone.
fn differ<T: PartialEq>(before: Vec<T>, mut after: Vec<T>) -> (Vec<T>, Vec<T>) {
    let mut gone = Vec::new();
    for one in before {
        match after.iter().position(|other| *other == one) {
            Some(place) => {
                after.remove(place);
            }
            None => gone.push(one),
        }
    }
    (gone, after)
}

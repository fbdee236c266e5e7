//! Which rows of the ROM can be used at all, and the way to each: what remote, circuits, device and memory have to do.
//!
//! One line is followed with its remote and its home from the initial situation on, through every order in which
//! accesses begin, messages arrive, memory ends and the device asks. This is what the checker explores for one remote and
//! one line, without bytes and rights: a row that has no way here is one that the checker calls unreachable.

use crate::rom::{Memory, Rom};
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Occasion, Outcome};
use cohkit_protocol::protocol::{MessageId, Protocol};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Most situations that are followed. A home that has more has no ways; the protocols at hand have thousands.
const MOST: usize = 2_000_000;

/// Whether the bounds of the text let an access send what it sends while these messages of the line are in flight.
pub(super) fn within_bounds(protocol: &Protocol, in_flight: &[MessageId], acts: &[Act]) -> bool {
    let sends = |kind| {
        let sends = |act: &Act| matches!(act, Act::Send { message, .. } if *message == kind);
        acts.iter().any(sends)
    };
    let count = |kind| in_flight.iter().filter(|&&other| other == kind).count();
    protocol.bounds.let_begin(sends, count)
}

/// One thing that is done about a line, or let happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// The remote begins an access.
    Access(Access),
    /// A message arrives at the remote.
    ToRemote(MessageId),
    /// A message arrives at the home.
    ToHome(MessageId),
    /// The device asks for a local operation.
    Local(u8),
    /// The device gives its lock back, or one that it does not have.
    Unlock,
    /// Memory has read or written.
    Memory,
}

/// A line with all that is under way for it. Messages of one order stand in it, all others by their numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Situation {
    /// The remote's state.
    pub remote: u16,
    /// The home's state.
    pub home: u16,
    /// What memory is doing.
    pub memory: Memory,
    /// Messages under way to the home.
    pub to_home: Vec<MessageId>,
    /// Messages under way to the remote.
    pub to_remote: Vec<MessageId>,
}

impl Situation {
    /// Puts messages of one direction into the order in which situations are told apart.
    pub fn arrange(protocol: &Protocol, messages: &mut [MessageId]) {
        messages.sort_by_key(|&message| match order(protocol, message) {
            Some(group) => (group + 1, 0),
            None => (0, message.0),
        });
    }
}

fn order(protocol: &Protocol, message: MessageId) -> Option<usize> {
    protocol.order_of(protocol.message(message).channel)
}

/// A move out of a situation: the row that it uses, if the home takes part in it, and the situation that it leads to.
struct Edge {
    does: Move,
    row: Option<(u16, u16)>,
    to: u32,
}

/// Every situation of a line, and the moves between them.
pub struct Ways {
    situations: FxHashMap<Situation, u32>,
    edges: Vec<Vec<Edge>>,
    /// The rows that some move uses, those with the shortest ways first, then in the order of the ROM.
    rows: Vec<(usize, usize)>,
}

impl Ways {
    /// Follows a line of this protocol; `None` if there are too many situations.
    pub fn new(protocol: &Protocol, home: &Controller, rom: &Rom) -> Option<Ways> {
        let explorer = Explorer {
            protocol,
            rom,
            home,
            home_machine: Machine::new(home, 1),
            remote_machine: Machine::new(&protocol.remote, 1),
        };
        let first = Situation {
            remote: explorer.remote_machine.initial().state,
            home: explorer.home_machine.initial().state,
            memory: Memory::None,
            to_home: Vec::new(),
            to_remote: Vec::new(),
        };
        let mut ways = Ways {
            situations: FxHashMap::default(),
            edges: Vec::new(),
            rows: Vec::new(),
        };
        ways.situations.insert(first.clone(), 0);
        let mut queue = VecDeque::from([first]);
        let mut known = vec![vec![false; rom.events.len()]; rom.states.len()];
        while let Some(situation) = queue.pop_front() {
            let mut edges = Vec::new();
            for Step { does, row, next } in explorer.moves(&situation) {
                let count = ways.situations.len() as u32;
                let to = *ways.situations.entry(next).or_insert_with_key(|next| {
                    queue.push_back(next.clone());
                    count
                });
                if let Some((state, event)) = row {
                    let place = (usize::from(state), usize::from(event));
                    if !std::mem::replace(&mut known[place.0][place.1], true) {
                        ways.rows.push(place);
                    }
                }
                edges.push(Edge { does, row, to });
            }
            ways.edges.push(edges);
            if ways.situations.len() > MOST {
                return None;
            }
        }
        Some(ways)
    }

    /// The rows that can be used, the nearest to the initial situation first.
    pub fn rows(&self) -> &[(usize, usize)] {
        &self.rows
    }

    /// The place of a row among them, counted from the last; `None` if it cannot be used.
    pub fn aim(&self, row: (usize, usize)) -> Option<usize> {
        self.rows.iter().rev().position(|&other| other == row)
    }

    /// How many situations there are.
    pub fn situations(&self) -> usize {
        self.edges.len()
    }

    /// The moves that lead to one with which the row is used, that one included; `None` if there is no way from here.
    pub fn to(&self, from: u32, (state, event): (usize, usize)) -> Option<Vec<Move>> {
        let row = Some((state as u16, event as u16));
        // For each situation that was reached the one before it, and the move between.
        let mut before: FxHashMap<u32, (u32, Move)> = FxHashMap::default();
        let mut queue = VecDeque::from([from]);
        while let Some(here) = queue.pop_front() {
            for edge in &self.edges[here as usize] {
                if edge.row == row {
                    let mut moves = vec![edge.does];
                    let mut at = here;
                    while at != from {
                        let (previous, does) = before[&at];
                        moves.push(does);
                        at = previous;
                    }
                    moves.reverse();
                    return Some(moves);
                }
                if edge.to != from && !before.contains_key(&edge.to) {
                    before.insert(edge.to, (here, edge.does));
                    queue.push_back(edge.to);
                }
            }
        }
        None
    }

    /// A situation's number, if it is one of this home.
    pub fn number(&self, situation: &Situation) -> Option<u32> {
        self.situations.get(situation).copied()
    }

    /// The number of the situation that a move leads to.
    pub fn after(&self, from: u32, does: Move) -> Option<u32> {
        self.edges[from as usize]
            .iter()
            .find(|edge| edge.does == does)
            .map(|edge| edge.to)
    }
}

/// A move, the row that it uses, and the situation that it leads to.
struct Step {
    does: Move,
    row: Option<(u16, u16)>,
    next: Situation,
}

struct Explorer<'a> {
    protocol: &'a Protocol,
    rom: &'a Rom,
    home: &'a Controller,
    home_machine: Machine<'a>,
    remote_machine: Machine<'a>,
}

impl Explorer<'_> {
    fn moves(&self, from: &Situation) -> Vec<Step> {
        let mut moves = Vec::new();
        for (access, _) in Access::ALL {
            if let Some(next) = self.remote(from, Event::Access(access)) {
                moves.push(Step {
                    does: Move::Access(access),
                    row: None,
                    next,
                });
            }
        }
        for place in self.arrives(&from.to_remote) {
            let mut rest = from.clone();
            let message = rest.to_remote.remove(place);
            if let Some(next) = self.remote(&rest, Event::Message(message)) {
                moves.push(Step {
                    does: Move::ToRemote(message),
                    row: None,
                    next,
                });
            }
        }
        for place in self.arrives(&from.to_home) {
            let mut rest = from.clone();
            let message = rest.to_home.remove(place);
            self.home(
                from,
                &rest,
                Move::ToHome(message),
                Event::Message(message),
                &mut moves,
            );
        }
        let mut own = |does, event| self.home(from, from, does, event, &mut moves);
        for local in 0..self.home.locals.len() as u8 {
            own(Move::Local(local), Event::Local(local));
        }
        if self.rom.locking.contains(&true) {
            own(Move::Unlock, Event::Unlock);
        }
        match from.memory {
            Memory::None => {}
            Memory::Read => own(Move::Memory, Event::MemoryData(0)),
            Memory::Write => own(Move::Memory, Event::MemoryDone),
        }
        moves
    }

    /// Places of the messages that can arrive next: of equal ones, and of an order, the first.
    fn arrives(&self, messages: &[MessageId]) -> Vec<usize> {
        let first = |&place: &usize| {
            !messages[..place].iter().any(|&earlier| {
                let group = order(self.protocol, messages[place]);
                earlier == messages[place]
                    || group.is_some() && group == order(self.protocol, earlier)
            })
        };
        (0..messages.len()).filter(first).collect()
    }

    /// What an event at the remote leads to; `None` if there is no row for it, or it waits.
    fn remote(&self, from: &Situation, event: Event) -> Option<Situation> {
        let mut remote = self.remote_machine.initial();
        remote.state = from.remote;
        let occasion = Occasion {
            home: 0,
            event,
            sender: None,
            own: Some(0),
            fields: &[],
        };
        let stepped = self
            .remote_machine
            .step(&mut remote, occasion, &mut { &self.protocol.remote });
        let Ok(Outcome::Taken { acts, .. }) = stepped else {
            return None;
        };
        // A victim that a bound holds back waits, and with it the access.
        let begins = matches!(event, Event::Access(_));
        if begins && !within_bounds(self.protocol, &from.to_home, &acts) {
            return None;
        }
        let mut next = from.clone();
        next.remote = remote.state;
        for act in acts {
            if let Act::Send { message, .. } = act {
                next.to_home.push(message);
            }
        }
        Situation::arrange(self.protocol, &mut next.to_home);
        Some(next)
    }

    /// Adds what an event at the home leads to. `rest` is the situation without the message that it takes.
    fn home(
        &self,
        from: &Situation,
        rest: &Situation,
        does: Move,
        event: Event,
        moves: &mut Vec<Step>,
    ) {
        let mut home = Configuration {
            state: from.home,
            ..self.home_machine.initial()
        };
        let occasion = Occasion {
            home: 0,
            event,
            sender: Some(0),
            own: None,
            fields: &[],
        };
        let number = self
            .rom
            .events
            .iter()
            .position(|about| about.event == event);
        let number = number.expect("the ROM knows every event of its home") as u16;
        let row = Some((from.home, number));
        let acts = match self
            .home_machine
            .step(&mut home, occasion, &mut { self.home })
        {
            Ok(Outcome::Taken { acts, .. }) => acts,
            // A message that is left stays; what the device asked for is refused or asked for again.
            Ok(Outcome::Leave | Outcome::Refuse) => {
                moves.push(Step {
                    does,
                    row,
                    next: from.clone(),
                });
                return;
            }
            _ => return,
        };
        let mut next = rest.clone();
        next.home = home.state;
        if does == Move::Memory {
            next.memory = Memory::None;
        }
        for act in acts {
            match act {
                Act::Send { message, .. } => next.to_remote.push(message),
                Act::StartRead => next.memory = Memory::Read,
                Act::StartWrite | Act::StartStore { .. } => next.memory = Memory::Write,
                _ => {}
            }
        }
        Situation::arrange(self.protocol, &mut next.to_remote);
        moves.push(Step { does, row, next });
    }
}

//! Reachable rows of the ROM, and a path to each: the necessary actions of remote, circuits, device and memory.
//!
//! The search follows one line with its remote and its home from the initial state. It explores all orders of accesses,
//! message arrivals, memory completions and device operations. The state space equals the checker's for one remote and
//! one line, without data and permissions. A row without a path here is therefore one that the checker reports as
//! unreachable.

use crate::rom::{Memory, Rom};
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{MessageId, Protocol};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Maximum number of states that are explored. A home with more has no paths; those of the shipped protocols have
/// thousands.
const MAX_LINE_STATES: usize = 2_000_000;

/// True if the protocol's bounds permit the messages of an access while the messages `in_flight` of the line are in
/// flight.
pub(super) fn within_bounds(protocol: &Protocol, in_flight: &[MessageId], acts: &[Act]) -> bool {
    let sends_kind = |kind| {
        let sends_this = |act: &Act| matches!(act, Act::Send { message, .. } if *message == kind);
        acts.iter().any(sends_this)
    };
    let count = |kind| in_flight.iter().filter(|&&other| other == kind).count();
    protocol.bounds.can_start_access(sends_kind, count)
}

/// A transition of a line, caused by the environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// The remote starts an access.
    Access(Access),
    /// A message arrives at the remote.
    ToRemote(MessageId),
    /// A message arrives at the home.
    ToHome(MessageId),
    /// The device requests a local operation.
    Local(u8),
    /// The device releases its lock, or one that it does not hold.
    Unlock,
    /// Memory completes a read or write.
    Memory,
}

/// State of a line with its pending operations. Messages of an ordered group are in order; all others are sorted by
/// number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LineState {
    /// The remote's state.
    pub remote: u16,
    /// The home's state.
    pub home: u16,
    /// Operation of memory in progress.
    pub memory: Memory,
    /// Messages in flight to the home.
    pub to_home: Vec<MessageId>,
    /// Messages in flight to the remote.
    pub to_remote: Vec<MessageId>,
}

impl LineState {
    /// Sorts the messages of one direction into their canonical order.
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

/// A transition: the row that it uses if the home takes part, and the successor state.
struct Edge {
    transition: Move,
    row: Option<(u16, u16)>,
    to: u32,
}

/// Reachable states of a line, and the transitions between them.
pub struct ReachabilityGraph {
    line_states: FxHashMap<LineState, u32>,
    edges: Vec<Vec<Edge>>,
    /// Rows used by some transition, in order of distance from the initial state, then in the order of the ROM.
    rows: Vec<(usize, usize)>,
}

impl ReachabilityGraph {
    /// Explores a line of this protocol; `None` if there are too many states.
    pub fn new(protocol: &Protocol, home: &Controller, rom: &Rom) -> Option<ReachabilityGraph> {
        let explorer = Explorer {
            protocol,
            rom,
            home,
            home_machine: Machine::new(home, 1),
            remote_machine: Machine::new(&protocol.remote, 1),
        };
        let initial_state = LineState {
            remote: explorer.remote_machine.initial().state,
            home: explorer.home_machine.initial().state,
            memory: Memory::None,
            to_home: Vec::new(),
            to_remote: Vec::new(),
        };
        let mut graph = ReachabilityGraph {
            line_states: FxHashMap::default(),
            edges: Vec::new(),
            rows: Vec::new(),
        };
        graph.line_states.insert(initial_state.clone(), 0);
        let mut queue = VecDeque::from([initial_state]);
        let mut is_listed = vec![vec![false; rom.events.len()]; rom.states.len()];
        while let Some(line_state) = queue.pop_front() {
            let mut edges = Vec::new();
            for Step {
                transition,
                row,
                next,
            } in explorer.moves(&line_state)
            {
                let count = graph.line_states.len() as u32;
                let to = *graph.line_states.entry(next).or_insert_with_key(|next| {
                    queue.push_back(next.clone());
                    count
                });
                if let Some((state, event)) = row {
                    let row_position = (usize::from(state), usize::from(event));
                    if !std::mem::replace(&mut is_listed[row_position.0][row_position.1], true) {
                        graph.rows.push(row_position);
                    }
                }
                edges.push(Edge {
                    transition,
                    row,
                    to,
                });
            }
            graph.edges.push(edges);
            if graph.line_states.len() > MAX_LINE_STATES {
                return None;
            }
        }
        Some(graph)
    }

    /// Returns the reachable rows, in order of distance from the initial state.
    pub fn rows(&self) -> &[(usize, usize)] {
        &self.rows
    }

    /// Returns the index of a row among the reachable rows, counted from the last; `None` if it is unreachable.
    pub fn index_from_last(&self, row: (usize, usize)) -> Option<usize> {
        self.rows.iter().rev().position(|&other| other == row)
    }

    /// Returns the number of states.
    pub fn line_states(&self) -> usize {
        self.edges.len()
    }

    /// Returns a shortest sequence of moves that ends with the use of the row; `None` if no path exists from this
    /// state.
    pub fn path_to(&self, from: u32, (state, event): (usize, usize)) -> Option<Vec<Move>> {
        let row = Some((state as u16, event as u16));
        // For each visited state, its predecessor and the move between them.
        let mut predecessors: FxHashMap<u32, (u32, Move)> = FxHashMap::default();
        let mut queue = VecDeque::from([from]);
        while let Some(current) = queue.pop_front() {
            for edge in &self.edges[current as usize] {
                if edge.row == row {
                    let mut moves = vec![edge.transition];
                    let mut state_on_path = current;
                    while state_on_path != from {
                        let (previous, transition) = predecessors[&state_on_path];
                        moves.push(transition);
                        state_on_path = previous;
                    }
                    moves.reverse();
                    return Some(moves);
                }
                if edge.to != from && !predecessors.contains_key(&edge.to) {
                    predecessors.insert(edge.to, (current, edge.transition));
                    queue.push_back(edge.to);
                }
            }
        }
        None
    }

    /// Returns the number of a state, if this home can reach it.
    pub fn number(&self, line_state: &LineState) -> Option<u32> {
        self.line_states.get(line_state).copied()
    }

    /// Returns the number of the successor state of a move.
    pub fn successor(&self, from: u32, transition: Move) -> Option<u32> {
        self.edges[from as usize]
            .iter()
            .find(|edge| edge.transition == transition)
            .map(|edge| edge.to)
    }
}

/// A move, the row that it uses, and its successor state.
struct Step {
    transition: Move,
    row: Option<(u16, u16)>,
    next: LineState,
}

struct Explorer<'a> {
    protocol: &'a Protocol,
    rom: &'a Rom,
    home: &'a Controller,
    home_machine: Machine<'a>,
    remote_machine: Machine<'a>,
}

impl Explorer<'_> {
    fn moves(&self, from: &LineState) -> Vec<Step> {
        let mut moves = Vec::new();
        for (access, _) in Access::ALL {
            if let Some(next) = self.remote_successor(from, Event::Access(access)) {
                moves.push(Step {
                    transition: Move::Access(access),
                    row: None,
                    next,
                });
            }
        }
        for position in self.deliverable(&from.to_remote) {
            let mut rest = from.clone();
            let message = rest.to_remote.remove(position);
            if let Some(next) = self.remote_successor(&rest, Event::Message(message)) {
                moves.push(Step {
                    transition: Move::ToRemote(message),
                    row: None,
                    next,
                });
            }
        }
        for position in self.deliverable(&from.to_home) {
            let mut rest = from.clone();
            let message = rest.to_home.remove(position);
            self.add_home_successor(
                from,
                &rest,
                Move::ToHome(message),
                Event::Message(message),
                &mut moves,
            );
        }
        let mut add_home_move =
            |transition, event| self.add_home_successor(from, from, transition, event, &mut moves);
        for local in 0..self.home.locals.len() as u8 {
            add_home_move(Move::Local(local), Event::Local(local));
        }
        if self.rom.locking.contains(&true) {
            add_home_move(Move::Unlock, Event::Unlock);
        }
        match from.memory {
            Memory::None => {}
            Memory::Read => add_home_move(Move::Memory, Event::MemoryData(0)),
            Memory::Write => add_home_move(Move::Memory, Event::MemoryDone),
        }
        moves
    }

    /// Returns the indices of the messages that may arrive next: the first of equal messages and of each ordered group.
    fn deliverable(&self, messages: &[MessageId]) -> Vec<usize> {
        let is_first = |&position: &usize| {
            !messages[..position].iter().any(|&earlier| {
                let group = order(self.protocol, messages[position]);
                earlier == messages[position]
                    || group.is_some() && group == order(self.protocol, earlier)
            })
        };
        (0..messages.len()).filter(is_first).collect()
    }

    /// Returns the successor state of an event at the remote; `None` if there is no row for the event or it stalls.
    fn remote_successor(&self, from: &LineState, event: Event) -> Option<LineState> {
        let mut remote = self.remote_machine.initial();
        remote.state = from.remote;
        let trigger = Trigger {
            home: 0,
            event,
            sender: None,
            executing_remote: Some(0),
            fields: &[],
        };
        let stepped = self
            .remote_machine
            .step(&mut remote, trigger, &mut { &self.protocol.remote });
        let Ok(Outcome::Taken { acts, .. }) = stepped else {
            return None;
        };
        // An access stalls while a bound prevents its victim message.
        let starts_access = matches!(event, Event::Access(_));
        if starts_access && !within_bounds(self.protocol, &from.to_home, &acts) {
            return None;
        }
        let mut next = from.clone();
        next.remote = remote.state;
        for act in acts {
            if let Act::Send { message, .. } = act {
                next.to_home.push(message);
            }
        }
        LineState::arrange(self.protocol, &mut next.to_home);
        Some(next)
    }

    /// Adds the successor state of an event at the home. `rest` is the state without the consumed message.
    fn add_home_successor(
        &self,
        from: &LineState,
        rest: &LineState,
        transition: Move,
        event: Event,
        moves: &mut Vec<Step>,
    ) {
        let mut home = Configuration {
            state: from.home,
            ..self.home_machine.initial()
        };
        let trigger = Trigger {
            home: 0,
            event,
            sender: Some(0),
            executing_remote: None,
            fields: &[],
        };
        let number = self
            .rom
            .events
            .iter()
            .position(|occurrence| occurrence.event == event);
        let number = number.expect("the ROM knows every event of its home") as u16;
        let row = Some((from.home, number));
        let acts = match self
            .home_machine
            .step(&mut home, trigger, &mut { self.home })
        {
            Ok(Outcome::Taken { acts, .. }) => acts,
            // A stalled message remains; an operation of the device is refused, or requested again.
            Ok(Outcome::Stall | Outcome::Refuse) => {
                moves.push(Step {
                    transition,
                    row,
                    next: from.clone(),
                });
                return;
            }
            _ => return,
        };
        let mut next = rest.clone();
        next.home = home.state;
        if transition == Move::Memory {
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
        LineState::arrange(self.protocol, &mut next.to_remote);
        moves.push(Step {
            transition,
            row,
            next,
        });
    }
}

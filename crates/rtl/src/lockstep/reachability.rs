//! Reachable rows of the ROM, and a path to each: the necessary actions of remote, circuits, device and memory.
//!
//! The search follows one line with its remote and its home from the initial state. It explores all orders of accesses,
//! message arrivals, memory completions and device operations. The state space equals the checker's for one remote and
//! one line, without data and permissions. A row without a path here is therefore one that the checker reports as
//! unreachable.

use crate::rom::{Memory, Rom};
use cohkit_base::exploration::{Exploration, Limits, TransitionSystem};
use cohkit_base::interner::Interner;
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{MessageId, Protocol};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::convert::Infallible;

/// Maximum number of states that are explored. A home with more has no paths; those of the shipped protocols have
/// thousands.
const MAX_LINE_STATES: usize = 2_000_000;

/// True if the protocol's bounds permit the messages of an access while the messages `in_flight` of the line are in
/// flight.
pub(super) fn within_bounds(protocol: &Protocol, in_flight: &[MessageId], acts: &[Act]) -> bool {
    let sent = acts.iter().filter_map(Act::sent_message);
    let count = |kind| in_flight.iter().filter(|&&other| other == kind).count();
    protocol.bounds.can_start_access(sent, count)
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

/// Returns the ordered group of a message; `None` if its channel is unordered.
fn order(protocol: &Protocol, message: MessageId) -> Option<usize> {
    protocol.order_of(protocol.message(message).channel)
}

/// A transition: the row that it uses if the home takes part, and the successor state.
struct Edge {
    /// Cause of the transition.
    transition: Move,
    /// State and event of the row in the ROM; `None` if only the remote takes part.
    row: Option<(u16, u16)>,
    /// Number of the successor state.
    to: u32,
}

/// Reachable states of a line, and the transitions between them.
pub struct ReachabilityGraph {
    /// States by their numbers; number 0 is the initial state.
    line_states: Interner<LineState>,
    /// Transitions of each state, by its number.
    edges: Vec<Vec<Edge>>,
    /// Rows used by some transition, in order of distance from the initial state, then in the order of the ROM.
    rows: Vec<(usize, usize)>,
}

impl ReachabilityGraph {
    /// Explores a line of this protocol; `None` if there are more than two million states.
    pub fn new(protocol: &Protocol, home: &Controller, rom: &Rom) -> Option<ReachabilityGraph> {
        let mut line = LineSystem {
            protocol,
            rom,
            home,
            home_machine: Machine::new(home, 1),
            remote_machine: Machine::new(&protocol.remote, 1),
        };
        let initial_state = LineState {
            remote: line.remote_machine.initial().state,
            home: line.home_machine.initial().state,
            memory: Memory::None,
            to_home: Vec::new(),
            to_remote: Vec::new(),
        };
        let mut exploration = Exploration::new(initial_state);
        let mut limits = Limits {
            max_states: MAX_LINE_STATES,
            should_continue: &mut || true,
        };
        let (mut edges, mut rows) = (Vec::new(), Vec::new());
        let mut is_listed = vec![vec![false; rom.events.len()]; rom.states.len()];
        while exploration.next(&mut limits).ok()?.is_some() {
            let mut edges_of_state = Vec::new();
            exploration.expand(&mut line, |(transition, row), to| {
                if let Some((state, event)) = row {
                    let row_position = (usize::from(state), usize::from(event));
                    if !std::mem::replace(&mut is_listed[row_position.0][row_position.1], true) {
                        rows.push(row_position);
                    }
                }
                edges_of_state.extend(to.map(|to| Edge {
                    transition,
                    row,
                    to,
                }));
            });
            edges.push(edges_of_state);
        }
        Some(ReachabilityGraph {
            line_states: exploration.into_states(),
            edges,
            rows,
        })
    }

    /// Returns the reachable rows, each as state and event of the ROM, in order of distance from the initial state.
    pub fn rows(&self) -> &[(usize, usize)] {
        &self.rows
    }

    /// Returns the index of a row among the reachable rows, counted from the last; `None` if it is unreachable.
    pub fn index_from_last(&self, row: (usize, usize)) -> Option<usize> {
        self.rows.iter().rev().position(|&other| other == row)
    }

    /// Returns the number of reachable states.
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
        self.line_states.number(line_state)
    }

    /// Returns the number of the successor state of a move; `None` if the move is impossible in this state.
    pub fn successor(&self, from: u32, transition: Move) -> Option<u32> {
        self.edges[from as usize]
            .iter()
            .find(|edge| edge.transition == transition)
            .map(|edge| edge.to)
    }
}

/// A line with its remote and its home, as a transition system.
struct LineSystem<'a> {
    /// Protocol of the line, for bounds and orders of messages.
    protocol: &'a Protocol,
    /// ROM of the home, for the numbers of events.
    rom: &'a Rom,
    /// Controller of the home.
    home: &'a Controller,
    /// Interpreter of the home's controller, for one remote.
    home_machine: Machine<'a>,
    /// Interpreter of the remote's controller.
    remote_machine: Machine<'a>,
}

/// A move, and the row that it uses if the home takes part.
type Step = (Move, Option<(u16, u16)>);

impl TransitionSystem<LineState> for LineSystem<'_> {
    type Step = Step;
    type Error = Infallible;

    fn successors(
        &mut self,
        from: &LineState,
        visit: &mut dyn FnMut(Step, Result<LineState, Infallible>),
    ) {
        for (access, _) in Access::ALL {
            if let Some(next) = self.remote_successor(from, Event::Access(access)) {
                visit((Move::Access(access), None), Ok(next));
            }
        }
        for position in self.deliverable(&from.to_remote) {
            let mut rest = from.clone();
            let message = rest.to_remote.remove(position);
            if let Some(next) = self.remote_successor(&rest, Event::Message(message)) {
                visit((Move::ToRemote(message), None), Ok(next));
            }
        }
        let mut visit_home = |transition, event, rest: &LineState| {
            if let Some((row, next)) = self.home_successor(from, rest, event) {
                visit((transition, Some(row)), Ok(next));
            }
        };
        for position in self.deliverable(&from.to_home) {
            let mut rest = from.clone();
            let message = rest.to_home.remove(position);
            visit_home(Move::ToHome(message), Event::Message(message), &rest);
        }
        for local in 0..self.home.locals.len() as u8 {
            visit_home(Move::Local(local), Event::Local(local), from);
        }
        if self.rom.locking.contains(&true) {
            visit_home(Move::Unlock, Event::Unlock, from);
        }
        match from.memory {
            Memory::None => {}
            Memory::Read => visit_home(Move::Memory, Event::MemoryData(0), from),
            Memory::Write => visit_home(Move::Memory, Event::MemoryDone, from),
        }
    }
}

impl LineSystem<'_> {
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
        (next.to_home).extend(acts.iter().filter_map(Act::sent_message));
        LineState::arrange(self.protocol, &mut next.to_home);
        Some(next)
    }

    /// Returns the row of an event at the home, and the successor state; `None` if the home does not expect the event.
    /// `rest` is the state without the consumed message.
    fn home_successor(
        &self,
        from: &LineState,
        rest: &LineState,
        event: Event,
    ) -> Option<((u16, u16), LineState)> {
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
        let row = (from.home, number);
        let acts = match self
            .home_machine
            .step(&mut home, trigger, &mut { self.home })
        {
            Ok(Outcome::Taken { acts, .. }) => acts,
            // A stalled message remains; an operation of the device is refused, or requested again.
            Ok(Outcome::Stall | Outcome::Refuse) => return Some((row, from.clone())),
            _ => return None,
        };
        let mut next = rest.clone();
        next.home = home.state;
        if matches!(event, Event::MemoryData(_) | Event::MemoryDone) {
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
        Some((row, next))
    }
}

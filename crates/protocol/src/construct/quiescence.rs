//! The quiescence check: quiescence is reachable from every state without new spontaneous actions.
//!
//! It explores the product of a constructed home, its remotes and a device that requests local operations, without
//! data. The property is stronger than "some quiescent state is reachable by any moves": a wait for a victim that the
//! remote need not send counts as stuck. The device is assumed to unlock. The checker's model checks the data, on the
//! same controllers.

use super::environment::{ConfigurationId, Environment, Move};
use super::explain::{Drawing, Input};
use super::explore::{Cell, HomeGraph};
use super::fault::{Fault, FaultKind, Note};
use super::program::{CURRENT_REQUEST, LOCAL, LOCKED, MEMORY};
use crate::controller::Event;
use crate::execute::{Act, Receiver};
use crate::protocol::{Class, MessageId, VariableId};
use cohkit_base::exploration::{Exploration, Limits, TransitionSystem};
use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_base::words::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

/// Result of the quiescence check.
#[derive(Debug)]
pub struct QuiescenceReport {
    /// Number of states of the product.
    pub states: usize,
    /// Number of states from which quiescence cannot be reached.
    pub stuck: usize,
    /// Maximum number of messages in flight between one remote and the home.
    pub in_flight: usize,
    /// Transitions of the home that never occur in the product.
    pub unexercised: Vec<HomeTransition>,
    /// Transitions of the home that send a forward again in a loop that only fairness ends.
    pub resends: Vec<HomeTransition>,
    /// The fault, if a state is stuck.
    pub fault: Option<Box<Fault>>,
    /// The assumption of fairness, if there is such a loop.
    pub note: Option<Note>,
}

/// Reaction of the home to an input in a state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HomeTransition {
    /// Index of the home's state in its [`HomeGraph`].
    pub state: u32,
    /// Position of the reaction in [`HomeGraph::cells`] of this state.
    pub position: u32,
}

/// A state of the product of home, remotes and device.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ProductState {
    /// Index of the home's state in its [`HomeGraph`].
    home: u32,
    /// Configuration of each remote.
    configurations: Vec<ConfigurationId>,
    /// Local operation that the device requests, plus 1; 0 for none.
    requested_local: u8,
}

/// Move from one state to another.
#[derive(Clone)]
enum Label {
    /// Silent move of a remote: its index, its configuration before the move, and the move.
    Silent(u16, ConfigurationId, Move),
    /// Reaction of the home.
    Home(HomeTransition),
    /// The device requests this local operation, an index into the policy's local operations.
    RequestLocal(u8),
}

impl Label {
    /// Returns true for a move that no agent may rely on: an access of a remote, or a request of the device.
    fn is_spontaneous(&self) -> bool {
        match self {
            Label::Silent(_, _, step) => matches!(step.event, Event::Access(_)),
            Label::Home(..) => false,
            Label::RequestLocal(_) => true,
        }
    }
}

/// Move from a state of the product.
struct Edge {
    /// Number of the state after the move.
    to: u32,
    /// The move.
    label: Label,
}

/// Visitor of the successors of a state.
type Visitor<'v> = dyn FnMut(Label, Result<ProductState, Infallible>) + 'v;

/// Product of a home with its remotes and a device that requests one local operation at a time.
struct Product<'p, 'a> {
    /// Behaviour of the remotes, which may find new configurations.
    environment: &'p mut Environment<'a>,
    /// States and reactions of the home.
    graph: &'p HomeGraph,
    /// Position in the cells of a home state, by state and input.
    cells: FxHashMap<(u32, Input), u32>,
    /// Messages that the home receives.
    to_home: Vec<MessageId>,
}

/// Runs the quiescence check on a home. Returns `None` if `cancel` is set in the meantime.
pub fn check_quiescence(
    environment: &mut Environment,
    graph: &HomeGraph,
    cancel: &AtomicBool,
) -> Option<QuiescenceReport> {
    let mut cells = FxHashMap::default();
    for (state, row) in graph.cells.iter().enumerate() {
        for (position, (input, _)) in row.iter().enumerate() {
            cells.insert((state as u32, *input), position as u32);
        }
    }
    let to_home = environment
        .protocol
        .message_ids()
        .filter(|&message| environment.to_home(message))
        .collect();
    let mut product = Product {
        environment,
        graph,
        cells,
        to_home,
    };
    let configurations = vec![product.environment.initial(); graph.remotes as usize];
    let initial = ProductState {
        home: 0,
        configurations,
        requested_local: 0,
    };
    let mut exploration = Exploration::new(initial);
    let mut limits = Limits {
        max_states: usize::MAX,
        should_continue: &mut || !cancel.load(Ordering::Relaxed),
    };
    let mut edges: Vec<Vec<Edge>> = Vec::new();
    let mut exercised = FxHashSet::default();
    let mut in_flight = 0;
    while let Some(from) = exploration.next(&mut limits).ok()? {
        for &configuration in &exploration.states()[from].configurations {
            in_flight = in_flight.max(
                product
                    .environment
                    .configuration(configuration)
                    .messages()
                    .count(),
            );
        }
        let mut row = Vec::new();
        exploration.expand(&mut product, |label, to| {
            if let Label::Home(transition) = label {
                exercised.insert(transition);
            }
            row.extend(to.map(|to| Edge { to, label }));
        });
        edges.push(row);
    }
    let lost = exploration.lost(&product);
    let fault = lost.first().map(|&first| {
        let dead_end = (lost.iter().copied()).find(|&state| exploration.is_dead_end(state));
        let (stuck_state, is_dead_end) = (dead_end.unwrap_or(first), dead_end.is_some());
        product.stuck_fault(&exploration, &edges, stuck_state, is_dead_end, lost.len())
    });
    let (resends, cycle) = product.resends(&edges);
    let note = cycle.map(|cycle| {
        let sequence = product.draw(cycle.iter());
        Note {
            text: format!(
                "assumes fairness: the home may resend a forward in a loop (in {} of the home's transitions); the verdict holds if no message is overtaken forever",
                resends.len()
            ),
            sequence: Some(sequence),
        }
    });
    let mut unexercised = Vec::new();
    for (state, cells) in graph.cells.iter().enumerate() {
        for (position, (_, cell)) in cells.iter().enumerate() {
            let transition = HomeTransition {
                state: state as u32,
                position: position as u32,
            };
            if matches!(cell, Cell::Take { .. }) && !exercised.contains(&transition) {
                unexercised.push(transition);
            }
        }
    }
    Some(QuiescenceReport {
        states: exploration.states().len(),
        stuck: lost.len(),
        in_flight,
        unexercised,
        resends,
        fault,
        note,
    })
}

impl TransitionSystem<ProductState> for Product<'_, '_> {
    /// A move of the home, a remote or the device.
    type Step = Label;
    /// No successor fails: faults of rows were found when the home was explored.
    type Error = Infallible;

    /// Visits the moves of each remote, messages that the home takes, local operations, and the completions of
    /// memory.
    fn successors(&mut self, product_state: &ProductState, visit: &mut Visitor) {
        for remote in 0..product_state.configurations.len() {
            let configuration = product_state.configurations[remote];
            let moves = self.environment.moves(configuration);
            for step in moves.as_ref().as_ref().map_or(&[][..], |moves| moves) {
                let mut successor = product_state.clone();
                successor.configurations[remote] = step.to;
                let label = Label::Silent(remote as u16, configuration, step.clone());
                visit(label, Ok(successor));
            }
            for index in 0..self.to_home.len() {
                let message = self.to_home[index];
                let Some(next_configuration) = self.environment.receive(configuration, message)
                else {
                    continue;
                };
                let mut successor = product_state.clone();
                successor.configurations[remote] = next_configuration;
                let input = (Event::Message(message), Some(remote as u16));
                self.visit_home_reaction(successor, input, visit);
            }
        }
        for local in 0..self.environment.policy().locals.len() as u8 {
            let mut successor = product_state.clone();
            if product_state.requested_local == 0 {
                successor.requested_local = local + 1;
                visit(Label::RequestLocal(local), Ok(successor));
            } else if product_state.requested_local == local + 1 {
                successor.requested_local = 0;
                self.visit_home_reaction(successor, (Event::Local(local), None), visit);
            }
        }
        for event in [
            Event::Unlock,
            Event::MemoryData(0),
            Event::MemoryData(1),
            Event::MemoryDone,
        ] {
            self.visit_home_reaction(product_state.clone(), (event, None), visit);
        }
    }

    fn spontaneous(label: &Label) -> bool {
        label.is_spontaneous()
    }

    fn quiescent(&self, product_state: &ProductState) -> bool {
        let slots = &self.graph.states()[product_state.home as usize].slots;
        let remotes = self.graph.remotes as usize;
        let slot = |variable: VariableId| slots[variable.index() + remotes - 1];
        [CURRENT_REQUEST, LOCAL, MEMORY, LOCKED]
            .iter()
            .all(|&variable| slot(variable) == 0)
            && product_state.requested_local == 0
            && product_state.configurations.iter().all(|&configuration| {
                let configuration = self.environment.configuration(configuration);
                configuration.messages().next().is_none()
                    && self.environment.protocol.remote.states[configuration.state.index()]
                        .is_stable()
            })
    }
}

impl Product<'_, '_> {
    /// Visits the home's reaction to an input, which `successor` no longer contains.
    fn visit_home_reaction(
        &mut self,
        mut successor: ProductState,
        input: Input,
        visit: &mut Visitor,
    ) {
        let Some(&position) = self.cells.get(&(successor.home, input)) else {
            return;
        };
        let label = Label::Home(HomeTransition {
            state: successor.home,
            position,
        });
        match &self.graph.cells[successor.home as usize][position as usize].1 {
            Cell::Stall => return,
            // A rejected local operation is gone; a rejected unlock changes nothing.
            Cell::Refuse if input.0 == Event::Unlock => return,
            Cell::Refuse => {}
            Cell::Take { acts, to } => {
                successor.home = *to;
                for act in acts {
                    if let Act::Send {
                        message,
                        to: Receiver::Remote(remote),
                        ..
                    } = act
                    {
                        let configuration = &mut successor.configurations[*remote as usize];
                        *configuration = self.environment.send(*configuration, *message);
                    }
                }
            }
        }
        visit(label, Ok(successor));
    }

    /// Describes a state from which quiescence is unreachable. `dead_end` is true if the state has no successor at all;
    /// otherwise the sequence ends with a loop that repeats forever. `stuck` is the number of all such states.
    fn stuck_fault(
        &mut self,
        exploration: &Exploration<ProductState>,
        edges: &[Vec<Edge>],
        state: u32,
        dead_end: bool,
        stuck: usize,
    ) -> Box<Fault> {
        let path = exploration.path_to(self, state).into_iter();
        let mut path: Vec<Label> = path.map(|(_, label)| label).collect();
        let mut sequence = self.draw(path.iter());
        if !dead_end {
            let agents = sequence.agents.len();
            path.extend(find_cycle(edges, state as usize).into_iter().cloned());
            let full_sequence = self.draw(path.iter());
            let loop_start = sequence.steps.len();
            let remark = Action::Does {
                what: "the following steps repeat forever".into(),
            };
            sequence = full_sequence;
            sequence.steps.insert(
                loop_start,
                Step {
                    agent: agents.min(self.graph.remotes as usize),
                    action: remark,
                    line: None,
                    visible: true,
                },
            );
        }
        let stuck_state = &exploration.states()[state];
        let configurations: Vec<String> = stuck_state
            .configurations
            .iter()
            .map(|&configuration| self.environment.configuration_text(configuration))
            .collect();
        let summary = if dead_end {
            "no agent can make progress"
        } else {
            "messages circulate forever"
        };
        let waits = self.describe_waits(stuck_state).join("; ");
        Box::new(Fault {
            kind: if dead_end {
                FaultKind::DeadEnd
            } else {
                FaultKind::Livelock
            },
            text: format!(
                "{summary} in {}: {waits}; {stuck} of {} cannot become quiescent",
                configurations.join(" and "),
                counted(exploration.states().len() as u64, "state")
            ),
            remedy: None,
            span: self.environment.policy().span,
            explanations: vec![sequence],
        })
    }

    /// Describes the wait-for relations in a state from which quiescence is unreachable, one clause each.
    fn describe_waits(&self, product_state: &ProductState) -> Vec<String> {
        let protocol = self.environment.protocol;
        let policy = self.environment.policy();
        let mut waits = Vec::new();
        let is_stalled = |input: Input| {
            self.cells
                .get(&(product_state.home, input))
                .is_some_and(|&position| {
                    self.graph.cells[product_state.home as usize][position as usize].1
                        == Cell::Stall
                })
        };
        for (remote, &configuration) in product_state.configurations.iter().enumerate() {
            let configuration = self.environment.configuration(configuration);
            let agent = match product_state.configurations.len() {
                1 => protocol.remote.name.clone(),
                _ => format!("{} {remote}", protocol.remote.name),
            };
            let state = &protocol.remote.states[configuration.state.index()];
            if !state.is_stable() {
                let names: Vec<_> = state
                    .waits
                    .iter()
                    .map(|&message| format!("`{}`", protocol.message(message).name))
                    .collect();
                waits.push(format!(
                    "`{agent}` in `{}` waits for {}",
                    state.name,
                    names.join(" or ")
                ));
            }
            for message in configuration.messages() {
                let name = &protocol.message(message).name;
                if !self.environment.to_home(message) {
                    waits.push(format!(
                        "`{agent}` in `{}` stalls `{name}` in its channel",
                        state.name
                    ));
                } else if is_stalled((Event::Message(message), Some(remote as u16))) {
                    waits.push(format!(
                        "the home stalls `{name}` of `{agent}` in its channel"
                    ));
                } else {
                    waits.push(format!("`{name}` of `{agent}` is behind it"));
                }
            }
        }
        let slots = &self.graph.states()[product_state.home as usize].slots;
        let slot =
            |variable: VariableId| slots[variable.index() + product_state.configurations.len() - 1];
        if let Some(request) = (slot(CURRENT_REQUEST) as usize).checked_sub(1) {
            waits.push(format!(
                "the home has `{}` in progress",
                protocol.message(policy.requests[request].message).name
            ));
        }
        if let Some(local) = (slot(LOCAL) as usize).checked_sub(1) {
            waits.push(format!(
                "the device waits for `{}`",
                policy.locals[local].name
            ));
        }
        if let Some(local) = (product_state.requested_local as usize).checked_sub(1) {
            waits.push(format!(
                "the device waits for `{}` to be accepted",
                policy.locals[local].name
            ));
        }
        waits
    }

    /// Draws the message sequence of a run from the initial state.
    fn draw<'l>(&mut self, labels: impl Iterator<Item = &'l Label>) -> Sequence {
        let locals = &self.environment.policy().locals;
        let mut drawing = Drawing::new(self.environment, self.graph.remotes);
        let device = drawing.home_agent() + 1;
        for label in labels {
            match label {
                Label::Silent(remote, configuration, step) => {
                    drawing.silent(*remote, &[(*configuration, step.clone())])
                }
                Label::Home(transition) => {
                    let (input, cell) = self.reaction(*transition);
                    match cell {
                        Cell::Take { acts, .. } => drawing.home(*input, acts),
                        _ => drawing.push(
                            device,
                            Action::Does {
                                what: "is refused".into(),
                            },
                            true,
                        ),
                    }
                }
                Label::RequestLocal(local) => {
                    let what = format!("requests {}", locals[*local as usize].name);
                    drawing.push(device, Action::Does { what }, true);
                }
            }
        }
        drawing.sequence
    }

    /// Home transitions that send a forward inside a loop of moves that are not spontaneous, and one such loop.
    fn resends(&self, edges: &[Vec<Edge>]) -> (Vec<HomeTransition>, Option<Vec<Label>>) {
        let component = components(edges);
        let mut resends = FxHashSet::default();
        let mut first_resend = None;
        for (from, row) in edges.iter().enumerate() {
            for edge in row {
                let Label::Home(transition) = edge.label else {
                    continue;
                };
                let (_, Cell::Take { acts, .. }) = self.reaction(transition) else {
                    continue;
                };
                let forwards = acts.iter().any(|act| {
                    matches!(act, Act::Send { message, .. } if self.environment.class(*message) == Class::Forward)
                });
                if forwards && component[from] == component[edge.to as usize] {
                    resends.insert(transition);
                    first_resend.get_or_insert((from as u32, edge));
                }
            }
        }
        let mut resends: Vec<_> = resends.into_iter().collect();
        resends.sort_unstable();
        let cycle = first_resend.map(|(from, edge)| cycle_through(edges, &component, from, edge));
        (resends, cycle)
    }

    /// Input of a transition of the home, and the reaction to it.
    fn reaction(&self, transition: HomeTransition) -> &(Input, Cell) {
        &self.graph.cells[transition.state as usize][transition.position as usize]
    }
}

/// Returns the labels of a cycle that begins with an edge from `from` and returns there by a shortest path inside the
/// component of `from`. The edge leads to a state of the same component.
fn cycle_through(edges: &[Vec<Edge>], component: &[u32], from: u32, edge: &Edge) -> Vec<Label> {
    // Breadth-first search; `parents` has the state before each visited state, and the label between the two.
    let mut parents: FxHashMap<u32, (u32, &Label)> = FxHashMap::default();
    let mut queue = VecDeque::from([edge.to]);
    while let Some(state) = queue.pop_front() {
        if state == from {
            break;
        }
        for next in &edges[state as usize] {
            let is_unvisited = next.to != edge.to && !parents.contains_key(&next.to);
            let is_inside = component[state as usize] == component[next.to as usize];
            if is_unvisited && !next.label.is_spontaneous() && is_inside {
                parents.insert(next.to, (state, &next.label));
                queue.push_back(next.to);
            }
        }
    }
    let mut backwards = Vec::new();
    let mut state = from;
    while state != edge.to {
        let Some(&(parent, label)) = parents.get(&state) else {
            break;
        };
        backwards.push(label.clone());
        state = parent;
    }
    let path_back = backwards.into_iter().rev();
    std::iter::once(edge.label.clone())
        .chain(path_back)
        .collect()
}

/// Moves that are not spontaneous, from a state until a state repeats.
fn find_cycle(edges: &[Vec<Edge>], start: usize) -> Vec<&Label> {
    let mut visited = FxHashSet::default();
    let (mut state, mut labels) = (start, Vec::new());
    while visited.insert(state) {
        let Some(edge) = edges[state]
            .iter()
            .find(|edge| !edge.label.is_spontaneous())
        else {
            break;
        };
        labels.push(&edge.label);
        state = edge.to as usize;
    }
    labels
}

/// Number of the strongly connected component of each state, by moves that are not spontaneous (Tarjan's algorithm,
/// without recursion).
fn components(edges: &[Vec<Edge>]) -> Vec<u32> {
    /// Mark of states without an index or a component.
    const UNSEEN: u32 = u32::MAX;
    let count = edges.len();
    let (mut index, mut low, mut component) =
        (vec![UNSEEN; count], vec![0; count], vec![UNSEEN; count]);
    let (mut next_index, mut next_component) = (0, 0);
    let mut stack = Vec::new();
    for root in 0..count {
        if index[root] != UNSEEN {
            continue;
        }
        // Nodes of the current path, each with the number of its edges that were followed: the call stack of the
        // recursive form.
        let mut calls = vec![(root, 0)];
        while let Some((node, position)) = calls.last_mut() {
            let node = *node;
            if *position == 0 && index[node] == UNSEEN {
                index[node] = next_index;
                low[node] = next_index;
                next_index += 1;
                stack.push(node);
            }
            if let Some(edge) = edges[node].get(*position) {
                *position += 1;
                let to = edge.to as usize;
                if edge.label.is_spontaneous() {
                    continue;
                }
                if index[to] == UNSEEN {
                    calls.push((to, 0));
                } else if component[to] == UNSEEN {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            if low[node] == index[node] {
                while let Some(member) = stack.pop() {
                    component[member] = next_component;
                    if member == node {
                        break;
                    }
                }
                next_component += 1;
            }
            calls.pop();
            if let Some(&(parent, _)) = calls.last() {
                low[parent] = low[parent].min(low[node]);
            }
        }
    }
    component
}

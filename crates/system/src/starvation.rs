//! Starvation: a transaction that never ends, on an infinite path that treats all messages fairly.
//!
//! A transaction of a remote lasts while the remote is in a state that waits for messages, and one of the home while the
//! home is in such a state. Steps that must happen are assumed to be fair: arrivals of each message type at each pair of
//! sender and receiver, each part of a memory operation, the home's local operations and unlocks, and grants of each
//! permission by an outer level. A message that stalls at the head of an input queue has arrived. Nothing is assumed of
//! accesses and of the device's requests, which may start again and again or never; so a path may also end in a state
//! in which nothing must happen.
//!
//! A transaction that ends without performing its access counts as ended, so a remote that returns to a stable state
//! and tries again does not starve by this definition. A home may serve one request after the other without a stable
//! state in between, so a home's transaction counts only on paths on which no agent begins anything.

use crate::data::{Data, Extent};
use crate::state::{Arrival, Endpoint, Step, StepError, System, SystemState};
use cohkit_base::exploration::{Exploration, Limits, Stop};
use cohkit_base::fair_cycles::{CycleStep, Graph, Transition};
use cohkit_protocol::protocol::{MessageId, Permission};
use rustc_hash::FxHashMap;

pub use cohkit_base::fair_cycles::Fairness;

/// No bytes: the executor moves messages and permissions only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NoData;

impl Data for NoData {
    type Copy = ();
    type Write = ();
    const KEEPS_VALUES: bool = false;
    const TRACKS_STALENESS: bool = false;

    fn new(_lines: u8) -> NoData {
        NoData
    }

    fn initial(&self, _line: u8) {}

    fn is_current(&self, _line: u8, _copy: &()) -> bool {
        true
    }

    fn write(&mut self, _line: u8, _copy: &(), _extent: Extent, _write: &()) {}

    fn mark_stale(_copy: &()) {}
}

/// An agent with a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// The remote with this number.
    Remote(u8),
    /// The home.
    Home,
}

/// An infinite path: its steps, and then other steps again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lasso {
    /// Steps before the cycle.
    pub prefix: Vec<Step>,
    /// Steps that repeat; empty if nothing happens any more.
    pub cycle: Vec<Step>,
}

/// A transaction that never ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Starvation {
    /// Agent whose transaction never ends.
    pub agent: Waiting,
    /// Line of the transaction.
    pub line: u8,
    /// Path on which it never ends.
    pub lasso: Lasso,
}

impl Starvation {
    /// True if nothing happens any more.
    pub fn is_deadlock(&self) -> bool {
        self.lasso.cycle.is_empty()
    }

    /// True if the steps that repeat start nothing: messages circulate, and no agent makes progress by itself.
    pub fn is_livelock(&self) -> bool {
        !self.is_deadlock() && !self.lasso.cycle.iter().any(|step| step.spontaneous())
    }
}

/// Result of the search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Every transaction ends.
    NoStarvation,
    /// A transaction does not.
    Starves(Starvation),
    /// A step violates a property or exceeds a capacity, so that the paths are not known.
    StepFailed(StepError),
    /// A limit ended the search.
    Stopped(Stop),
}

/// Answer with the numbers of states and of transitions.
pub type Search = (Answer, usize, usize);

/// Class of steps that are treated fairly together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    /// Arrivals of messages of a type about a line, from a sender to a receiver; the last number is the sending home.
    Arrival(MessageId, u8, Endpoint, Endpoint, u8),
    /// A memory operation, or the home's consumption of its result, on a line.
    Memory(u8, u8),
    /// A local operation or an unlock of a line.
    Local(u8, u8),
    /// The outer level grants this permission to a line.
    Backing(u8, Permission),
}

/// Class of a step in a state; `None` for steps that may never happen.
fn class<D: Data>(state: &SystemState<D>, step: Step) -> Option<Class> {
    Some(match step {
        Step::Access(..)
        | Step::Hit(..)
        | Step::RequestLocal(..)
        | Step::DeviceWrite(_)
        | Step::LowerBacking(..)
        | Step::ExternalWrite(_) => return None,
        Step::Deliver(_) | Step::DeliverChoosing(..) | Step::StallAtHead(_) => {
            let arrival = match step {
                Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => arrival,
                Step::StallAtHead(order) => Arrival::Ordered(order),
                _ => return None,
            };
            let message = state.network.at(arrival)?;
            Class::Arrival(
                message.message,
                message.line,
                message.from,
                message.to,
                message.home,
            )
        }
        Step::MemoryOperation(line) => Class::Memory(line, 0),
        Step::MemoryData(line, _) => Class::Memory(line, 1),
        Step::MemoryDone(line) => Class::Memory(line, 2),
        Step::Local(line) => Class::Local(line, 0),
        Step::Unlock(line) => Class::Local(line, 1),
        Step::RaiseBacking(line, permission) => Class::Backing(line, permission),
    })
}

/// Searches for a transaction that never ends, on a path that is fair: first on paths of steps that must happen.
pub fn search(system: &System, fairness: Fairness, mut limits: Limits) -> Search {
    let mut executor = system;
    let mut exploration = Exploration::new(SystemState::<NoData>::new(system));
    // Paths of steps that must happen, and paths of all steps.
    let mut paths = [Paths::default(), Paths::default()];
    let mut classes: FxHashMap<Class, u32> = FxHashMap::default();
    let counts = |exploration: &Exploration<_>, paths: &[Paths; 2]| {
        let transitions = paths[1].steps.iter().flatten().count();
        (exploration.states().len(), transitions)
    };
    loop {
        let number = match exploration.next(&mut limits) {
            Ok(Some(number)) => number,
            Ok(None) => break,
            Err(stop) => {
                let (states, transitions) = counts(&exploration, &paths);
                return (Answer::Stopped(stop), states, transitions);
            }
        };
        let state = exploration.states()[number].clone();
        let (mut transitions, mut failure) = (Vec::new(), None);
        exploration.expand(&mut executor, |step, successor| match successor {
            Ok(to) => {
                let class = class(&state, step).map(|class| {
                    let next = classes.len() as u32;
                    *classes.entry(class).or_insert(next)
                });
                transitions.push((Some(step), (class, to)));
            }
            Err(error) => failure = failure.take().or(Some(error)),
        });
        // Where nothing must happen, a path may stay for ever.
        if transitions.iter().all(|(_, (class, _))| class.is_none()) {
            transitions.push((None, (None, number)));
        }
        let forced =
            (transitions.iter()).filter(|(step, (class, _))| class.is_some() || step.is_none());
        paths[0].add_state(forced.copied());
        paths[1].add_state(transitions.iter().copied());
        if let Some(error) = failure {
            let (states, transitions) = counts(&exploration, &paths);
            return (Answer::StepFailed(error), states, transitions);
        }
    }
    let remotes = (0..system.remotes).map(Waiting::Remote);
    let agents: Vec<Waiting> = remotes.chain([Waiting::Home]).collect();
    let (states, transitions) = counts(&exploration, &paths);
    for (is_complete, paths) in [(false, &paths[0]), (true, &paths[1])] {
        let agents = agents
            .iter()
            .filter(|&&agent| !is_complete || agent != Waiting::Home);
        for (line, &agent) in
            (0..system.lines).flat_map(|line| agents.clone().map(move |agent| (line, agent)))
        {
            let waits = |number: u32| waits(system, &exploration.states()[number], agent, line);
            let Some(cycle) = paths.graph.fair_cycle(fairness, waits) else {
                continue;
            };
            let begin = cycle.first().map_or(0, |&(state, _)| state);
            let prefix = exploration.path_to(&mut executor, begin).into_iter();
            let lasso = Lasso {
                prefix: prefix.map(|(_, step)| step).collect(),
                cycle: cycle.iter().filter_map(|&step| paths.step(step)).collect(),
            };
            let starvation = Starvation { agent, line, lasso };
            return (Answer::Starves(starvation), states, transitions);
        }
    }
    (Answer::NoStarvation, states, transitions)
}

/// The graph of states, and the step of each transition; `None` if nothing happens.
#[derive(Default)]
struct Paths {
    graph: Graph,
    steps: Vec<Option<Step>>,
}

impl Paths {
    /// Adds the next state with its transitions and their steps.
    fn add_state(&mut self, transitions: impl Iterator<Item = (Option<Step>, Transition)>) {
        let mut edges = Vec::new();
        for (step, transition) in transitions {
            self.steps.push(step);
            edges.push(transition);
        }
        self.graph.add_state(edges);
    }

    /// Step of a part of a cycle.
    fn step(&self, (state, place): CycleStep) -> Option<Step> {
        let end = self.graph.end_of(state);
        self.steps[end - self.graph.of(state).len() + place]
    }
}

/// True if an agent has a transaction on a line.
fn waits<D: Data>(system: &System, state: &SystemState<D>, agent: Waiting, line: u8) -> bool {
    let line = &state.lines[usize::from(line)];
    let (controller, configuration) = match agent {
        Waiting::Remote(number) => (
            &system.protocol.remote,
            &line.remotes[usize::from(number)].configuration,
        ),
        Waiting::Home => (system.home, &line.home),
    };
    !controller.states[usize::from(configuration.state)].is_stable()
}

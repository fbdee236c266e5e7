//! Exploration of a scenario: applications behind a home, with threads, in every order of events.
//!
//! [`explore`] visits every state of an [`ExplorationModel`] and returns its [`Ending`].
//! The simulator runs a [`Scenario`] with time. Here, its application and its threads take part in an exhaustive
//! search: messages overtake each other as their channels allow, memory has arbitrary latency, and caches evict at any
//! time. Both execute the same code, so a violation found here also exists there.
//!
//! The home's units are modelled. A unit has a limited number of memory reads, and one memory write and one coherence
//! transaction at a time. It defers a limited number of requests and stalls its request channel at the next one.
//!
//! Checked properties: the application's contract; the protocol's (single writer, every load returns the last write, no
//! unexpected message); the scenario's own verification in final states. In addition, a final state is reachable from
//! every state without spontaneous evictions.
//!
//! A state is a Rust value and not packed, because an application's state may be of any type. The search suits some
//! hundred thousand states, not a hundred million.
//!
//! The crate does not know time or finite models: it uses neither `sim` nor `engine` nor `check`.
//!
//! ```
//! use cohkit_application::shared_table::SharedTable;
//! use cohkit_play::{explore, Ending, ExplorationModel};
//! use cohkit_protocol::{construct::construct, text::parse};
//!
//! // The device and a thread of the CPU increment the same word, once each.
//! let scenario = SharedTable {
//!     rows: 1, contended: 1000, cached: false,
//!     device: Some(1), engines: 1, outstanding: 1,
//!     thread: Some(1), threads: 1,
//! };
//! let ending = |text: &str| {
//!     let protocol = parse(text).expect("the file has no errors");
//!     let construction = construct(&protocol).expect("there is a home");
//!     let (home, permissions) = (&construction.controller(1), &construction.permissions(1));
//!     explore(&ExplorationModel {
//!         protocol: &protocol, home, permissions, scenario: &scenario,
//!         remotes: 1, lines: 1, words: 1, units: 1, waiting: 1, reads: 1, max_states: 10_000,
//!     })
//! };
//! let eci = include_str!("../../../protocols/eci.coh");
//! assert!(matches!(ending(eci), Ending::Verified { .. }));
//!
//! // A CPU that swaps its answers: the home takes a line that the CPU has written for clean.
//! let swapped = eci.replace("send AckDirty ", "send _").replace("send AckClean ", "send AckDirty ");
//! let swapped = swapped.replace("send _", "send AckClean ");
//! let Ending::Violated { steps, .. } = ending(&swapped) else { panic!("no violation") };
//! assert_eq!(steps.last().unwrap(), "line 0: the home takes AckClean from cpu");
//! ```

mod state;

use cohkit_application::interface::{Application, Scenario, Thread};
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::rc::Rc;

use state::{State, StaticModel};

/// The model to explore.
pub struct ExplorationModel<'a, S> {
    /// The protocol; the caches execute its remotes' controller.
    pub protocol: &'a Protocol,
    /// The home's controller, constructed from a policy.
    pub home: &'a Controller,
    /// The home's knowledge of the remotes' permissions.
    pub permissions: &'a KnownPermissions,
    /// The application and its threads, in their initial states.
    pub scenario: &'a S,
    /// Number of caches; thread N uses cache N modulo this number.
    pub remotes: u16,
    /// Number of lines of the home, from line 0.
    pub lines: u32,
    /// Words per line.
    pub words: u16,
    /// Number of the home's units; line L belongs to unit L modulo this number.
    pub units: u32,
    /// Maximum number of requests that a unit defers.
    pub waiting: usize,
    /// Maximum outstanding memory reads per unit, including reads that the application withholds.
    pub reads: usize,
    /// Maximum number of states to visit.
    pub max_states: usize,
}

/// Result of an exploration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All properties hold in all states.
    Verified {
        /// Number of reachable states.
        states: usize,
        /// Number of final states.
        ends: usize,
    },
    /// A property is violated.
    Violated {
        /// The violated property, as a sentence.
        what: String,
        /// A shortest trace to the violation.
        steps: Vec<String>,
    },
    /// A step is outside the model, with the reason as a sentence: it has no part in coherence.
    NotExplored(String),
    /// The state limit was exceeded. All properties hold so far, except the reachability of the end, which was not
    /// checked.
    Undecided {
        /// Number of states visited.
        states: usize,
    },
}

/// Explores all states of a game.
pub fn explore<S: Scenario>(model: &ExplorationModel<S>) -> Ending
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    explore_while(model, &mut || true).expect("nothing stops it")
}

/// Explores all states of a game while `should_continue` returns true; it is called every 256 states. Returns `None` if stopped.
pub fn explore_while<S: Scenario>(
    model: &ExplorationModel<S>,
    should_continue: &mut dyn FnMut() -> bool,
) -> Option<Ending>
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    let static_model = StaticModel::new(model);
    let mut search = Search {
        states: Vec::new(),
        numbers: FxHashMap::default(),
        parents: Vec::new(),
        reverse_edges: Vec::new(),
        deadlocked: Vec::new(),
    };
    let mut ends = Vec::new();
    match static_model.initial() {
        Ok(state) => {
            search.add_state(state, None);
        }
        Err(reason) => return Some(ending(reason, Vec::new())),
    }
    let mut next = 0;
    while let Some(state) = search.states.get(next).cloned() {
        if next % 256 == 0 && !should_continue() {
            return None;
        }
        let current = next as u32;
        if state.is_final() {
            ends.push(current);
            if let Err(reason) = static_model.verify(&state) {
                return Some(search.violation_ending(&static_model, current, None, reason));
            }
        }
        let mut step_index = 0;
        let mut has_forced_step = false;
        let mut violation = None;
        static_model.successors(&state, &mut |spontaneous, _, successor| {
            match successor {
                Ok(successor) => {
                    let number = search.add_state(successor, Some((current, step_index)));
                    if !spontaneous {
                        has_forced_step = true;
                        search.reverse_edges.push((number, current));
                    }
                }
                Err(reason) => violation = violation.take().or(Some((step_index, reason))),
            }
            step_index += 1;
        });
        if let Some((step_index, reason)) = violation {
            return Some(search.violation_ending(&static_model, current, Some(step_index), reason));
        }
        search.deadlocked.push(!has_forced_step);
        next += 1;
        if search.states.len() > model.max_states {
            let states = next;
            return Some(Ending::Undecided { states });
        }
    }
    let states = search.states.len();
    Some(match search.find_unfinishable(&ends) {
        Some(unfinishable) => {
            let reason = static_model.describe_obstacles(&search.states[unfinishable as usize]);
            search.violation_ending(&static_model, unfinishable, None, reason)
        }
        None => Ending::Verified {
            states,
            ends: ends.len(),
        },
    })
}

struct Search<A, T> {
    states: Vec<Rc<State<A, T>>>,
    numbers: FxHashMap<Rc<State<A, T>>, u32>,
    /// For each state: its predecessor, and the index of the step among the predecessor's steps.
    parents: Vec<Option<(u32, u32)>>,
    /// Reversed edges of forced steps: (successor, predecessor).
    reverse_edges: Vec<(u32, u32)>,
    /// True for states without a forced step to a successor.
    deadlocked: Vec<bool>,
}

impl<A: Application + Clone + Eq + Hash, T: Thread + Clone + Eq + Hash> Search<A, T> {
    fn add_state(&mut self, state: State<A, T>, parent: Option<(u32, u32)>) -> u32 {
        let state = Rc::new(state);
        let new = self.states.len() as u32;
        let number = *self.numbers.entry(Rc::clone(&state)).or_insert(new);
        if number == new {
            self.states.push(state);
            self.parents.push(parent);
        }
        number
    }

    /// Returns the first state from which no final state is reachable by forced steps. Prefers a deadlocked state,
    /// which is easier to explain.
    fn find_unfinishable(&self, ends: &[u32]) -> Option<u32> {
        let mut reverse_edges = self.reverse_edges.clone();
        reverse_edges.sort_unstable();
        let mut reaches_end = vec![false; self.states.len()];
        let mut stack = ends.to_vec();
        while let Some(number) = stack.pop() {
            if std::mem::replace(&mut reaches_end[number as usize], true) {
                continue;
            }
            let first = reverse_edges.partition_point(|&(to, _)| to < number);
            let from = reverse_edges[first..]
                .iter()
                .take_while(|&&(to, _)| to == number);
            stack.extend(from.map(|&(_, from)| from));
        }
        let mut unfinishable = (0..reaches_end.len()).filter(|&number| !reaches_end[number]);
        let first = unfinishable.clone().next();
        let deadlocked = unfinishable.find(|&number| self.deadlocked[number]);
        deadlocked.or(first).map(|unfinishable| unfinishable as u32)
    }

    /// Builds the trace to a state, optionally followed by one more step.
    fn violation_ending<S: Scenario<Application = A, Thread = T>>(
        &self,
        static_model: &StaticModel<S>,
        last: u32,
        extra_step: Option<u32>,
        reason: String,
    ) -> Ending {
        let mut path: Vec<(u32, u32)> = extra_step
            .map(|step_index| (last, step_index))
            .into_iter()
            .collect();
        let mut number = last;
        while let Some((parent, step_index)) = self.parents[number as usize] {
            path.push((parent, step_index));
            number = parent;
        }
        let mut steps = Vec::new();
        for &(state, chosen) in path.iter().rev() {
            let mut step_index = 0;
            static_model.successors(&self.states[state as usize], &mut |_, label, _| {
                if step_index == chosen {
                    steps.push(label());
                }
                step_index += 1;
            });
        }
        ending(reason, steps)
    }
}

/// Converts a violation, or a step outside the model, to the result.
fn ending(reason: String, steps: Vec<String>) -> Ending {
    let unsupported = [state::NO_BUS, state::NO_HOST];
    match unsupported
        .iter()
        .any(|unsupported| reason.ends_with(unsupported))
    {
        true => Ending::NotExplored(reason),
        false => Ending::Violated {
            what: reason,
            steps,
        },
    }
}

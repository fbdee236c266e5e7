//! Exploration of a scenario: applications behind a home, with threads, in every order of events.
//!
//! [`explore`] visits every state of an [`ExplorationModel`] and returns its [`ExplorationResult`].
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
//! use cohkit_play::{explore, ExplorationResult, ExplorationModel};
//! use cohkit_protocol::{construct::construct, text::parse};
//!
//! // The device and a thread of the CPU increment the same word, once each.
//! let scenario = SharedTable {
//!     rows: 1, contended: 1000, cached: false,
//!     device: Some(1), engines: 1, outstanding: 1,
//!     thread: Some(1), threads: 1,
//! };
//! let result = |text: &str| {
//!     let protocol = parse(text).expect("the file has no errors");
//!     let construction = construct(&protocol).expect("there is a home");
//!     let (home, permissions) = (&construction.controller(1), &construction.permissions(1));
//!     explore(&ExplorationModel {
//!         protocol: &protocol, home, permissions, scenario: &scenario,
//!         remotes: 1, lines: 1, words: 1, units: 1, max_deferred: 1, max_reads: 1, max_states: 10_000,
//!     })
//! };
//! let eci = include_str!("../../../protocols/eci.coh");
//! assert!(matches!(result(eci), ExplorationResult::Verified { .. }));
//!
//! // A CPU that swaps its answers: the home takes a line that the CPU has written for clean.
//! let swapped = eci.replace("send AckDirty ", "send _").replace("send AckClean ", "send AckDirty ");
//! let swapped = swapped.replace("send _", "send AckClean ");
//! let ExplorationResult::Violated { steps, .. } = result(&swapped) else { panic!("no violation") };
//! assert_eq!(steps.last().unwrap(), "line 0: the home takes AckClean from cpu");
//! ```

mod state;

use cohkit_application::interface::{Application, Scenario, Thread};
use cohkit_base::exploration::{Exploration, Limits, Stop};
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use std::hash::Hash;

use state::{Choice, State, StaticModel, StepError};

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
    /// Number of caches, at least 1; thread N uses cache N modulo this number.
    pub remotes: u16,
    /// Number of lines of the home, numbered from 0.
    pub lines: u32,
    /// Number of 64-bit words of a line.
    pub words: u16,
    /// Number of the home's units, at least 1; line L belongs to unit L modulo this number.
    pub units: u32,
    /// Maximum number of requests that a unit defers. One more stalls the unit's request channel.
    pub max_deferred: usize,
    /// Maximum outstanding memory reads per unit, including reads that the application withholds.
    pub max_reads: usize,
    /// Maximum number of states to visit.
    pub max_states: usize,
}

/// Result of an exploration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExplorationResult {
    /// All properties hold in all states.
    Verified {
        /// Number of reachable states.
        states: usize,
        /// Number of final states.
        final_states: usize,
    },
    /// A property is violated.
    Violated {
        /// Violated property, as a sentence without a full stop.
        violation: String,
        /// Labels of the steps of a shortest trace to the violation. Empty if the initial state violates a property.
        steps: Vec<String>,
    },
    /// A step is outside the model, such as a register access, a message between caches, or a store that a cache sends
    /// to the home. Contains the reason, a sentence without a full stop.
    NotExplored(String),
    /// The state limit was exceeded. All properties hold so far, except the reachability of the end, which was not
    /// checked.
    Undecided {
        /// Number of states visited.
        states: usize,
    },
}

/// Explores all states of a model and returns the result. The size of the model is limited by
/// [`ExplorationModel::max_states`].
pub fn explore<S: Scenario>(model: &ExplorationModel<S>) -> ExplorationResult
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    explore_while(model, &mut || true).expect("nothing stops it")
}

/// Explores all states of a model while `should_continue` returns true. The function is called every 256 states.
/// Returns `None` if it stopped the search.
pub fn explore_while<S: Scenario>(
    model: &ExplorationModel<S>,
    should_continue: &mut dyn FnMut() -> bool,
) -> Option<ExplorationResult>
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    let mut static_model = StaticModel::new(model);
    let mut exploration = match static_model.initial() {
        Ok(state) => Exploration::new(state),
        Err(reason) => return Some(result(reason, Vec::new())),
    };
    let mut limits = Limits {
        max_states: model.max_states,
        should_continue,
    };
    let mut final_states = 0;
    loop {
        let current = match exploration.next(&mut limits) {
            Ok(Some(number)) => number,
            Ok(None) => break,
            Err(Stop::StateLimit) => {
                let states = exploration.expanded();
                return Some(ExplorationResult::Undecided { states });
            }
            Err(Stop::Cancelled) => return None,
        };
        let state = &exploration.states()[current];
        if state.is_final() {
            final_states += 1;
            if let Err(reason) = static_model.verify(state) {
                let steps = trace(&mut static_model, &exploration, current, None);
                return Some(result(reason, steps));
            }
        }
        let mut violation = None;
        exploration.expand(&mut static_model, |choice, successor| {
            let failure = successor.err().map(|reason| (choice, reason));
            violation = violation.take().or(failure);
        });
        if let Some((choice, reason)) = violation {
            let steps = trace(&mut static_model, &exploration, current, Some(choice));
            return Some(result(reason, steps));
        }
    }
    let lost = exploration.lost(&static_model);
    // A deadlock is easier to explain than a state with further steps.
    let deadlock = (lost.iter()).find(|&&number| exploration.is_dead_end(number));
    Some(match deadlock.or(lost.first()) {
        Some(&number) => {
            let violation = static_model.describe_obstacles(&exploration.states()[number]);
            let steps = trace(&mut static_model, &exploration, number, None);
            ExplorationResult::Violated { violation, steps }
        }
        None => ExplorationResult::Verified {
            states: exploration.states().len(),
            final_states,
        },
    })
}

/// Returns the labels of the steps on a shortest path to the state with number `last`, optionally followed by one more
/// step.
fn trace<S: Scenario>(
    static_model: &mut StaticModel<S>,
    exploration: &Exploration<State<S::Application, S::Thread>>,
    last: u32,
    extra_step: Option<Choice>,
) -> Vec<String>
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    let mut path = exploration.path_to(static_model, last);
    path.extend(extra_step.map(|choice| (last, choice)));
    let label =
        |&(state, choice): &(u32, Choice)| static_model.label(&exploration.states()[state], choice);
    path.iter().map(label).collect()
}

/// Returns the result for a step without a successor, at the end of `steps`.
fn result(error: StepError, steps: Vec<String>) -> ExplorationResult {
    match error {
        StepError::Violation(violation) => ExplorationResult::Violated { violation, steps },
        StepError::Unsupported(reason) => ExplorationResult::NotExplored(reason),
    }
}

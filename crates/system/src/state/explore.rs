//! Breadth-first exploration of all states that a system can reach.

use cohkit_base::exploration::{Exploration, Limits, TransitionSystem};
use std::hash::Hash;

use super::{Clusters, LevelStep, Levels, Step, StepError, System, SystemState};
use crate::agent::Violation;
use crate::data::Data;

/// A transition system with properties that hold in every state.
pub trait CheckedSystem<S: Clone + Eq + Hash>: TransitionSystem<S, Error = StepError> {
    /// Checks the properties of a state.
    ///
    /// # Errors
    /// The first violated property.
    fn claims(&self, state: &S) -> Result<(), Violation>;

    /// Returns a shortest path to a state, followed by the step with the violation `failure`, if any.
    fn path_to(
        &mut self,
        exploration: &Exploration<S>,
        number: u32,
        failure: Option<(Self::Step, StepError)>,
    ) -> Vec<Self::Step>
    where
        Self: Sized,
    {
        let path = exploration.path_to(self, number).into_iter();
        let failing_step = failure.map(|(step, _)| step);
        path.map(|(_, step)| step).chain(failing_step).collect()
    }
}

/// Visits the successors of a state by each of its possible steps. `take` takes a step, and returns false if nothing
/// can happen by it.
fn visit_successors<S: Clone, T: Copy>(
    state: &S,
    steps: impl IntoIterator<Item = T>,
    take: impl Fn(&mut S, T) -> Result<bool, StepError>,
    visit: &mut dyn FnMut(T, Result<S, StepError>),
) {
    for step in steps {
        let mut next = state.clone();
        match take(&mut next, step) {
            Ok(false) => {}
            Ok(true) => visit(step, Ok(next)),
            Err(error) => visit(step, Err(error)),
        }
    }
}

impl<D: Data> TransitionSystem<SystemState<D>> for &System<'_> {
    type Step = Step;
    type Error = StepError;

    fn successors(
        &mut self,
        state: &SystemState<D>,
        visit: &mut dyn FnMut(Step, Result<SystemState<D>, StepError>),
    ) {
        let take = |next: &mut SystemState<D>, step| next.take(self, step);
        visit_successors(state, state.steps(self), take, visit);
    }
    fn spontaneous(step: &Step) -> bool {
        step.spontaneous()
    }
    fn quiescent(&self, state: &SystemState<D>) -> bool {
        state.quiescent(self)
    }
}

impl<D: Data> CheckedSystem<SystemState<D>> for &System<'_> {
    fn claims(&self, state: &SystemState<D>) -> Result<(), Violation> {
        state.claims(self)
    }
}

impl<D: Data> TransitionSystem<Clusters<D>> for &Levels<'_> {
    type Step = LevelStep;
    type Error = StepError;

    fn successors(
        &mut self,
        state: &Clusters<D>,
        visit: &mut dyn FnMut(LevelStep, Result<Clusters<D>, StepError>),
    ) {
        let take = |next: &mut Clusters<D>, step| next.take(self, step);
        visit_successors(state, state.steps(self), take, visit);
    }
    fn spontaneous(step: &LevelStep) -> bool {
        step.spontaneous()
    }
    fn quiescent(&self, state: &Clusters<D>) -> bool {
        state.quiescent(self)
    }
}

impl<D: Data> CheckedSystem<Clusters<D>> for &Levels<'_> {
    fn claims(&self, state: &Clusters<D>) -> Result<(), Violation> {
        state.claims(self)
    }
}

/// Result of an exploration.
#[derive(Debug)]
pub enum Found<W, S> {
    /// No state and no step violates a property.
    Safe {
        /// All states, in the order of their discovery.
        states: Vec<W>,
        /// Number of transitions between these states.
        transitions: u64,
        /// Distance of the farthest state from the initial state, in steps.
        depth: u64,
        /// A shortest path to a state from which steps that must happen cannot reach quiescence, if any.
        stuck_path: Option<Vec<S>>,
    },
    /// Violations at the shortest distance from the initial state.
    Violated {
        /// The violations, in the order of their discovery.
        errors: Vec<StepError>,
        /// A path to the first of them.
        path: Vec<S>,
    },
    /// State limit reached, or cancelled.
    LimitReached {
        /// Number of states visited.
        states: usize,
    },
}

impl<W, S> Found<W, S> {
    /// Replaces each state by `()`.
    pub(super) fn without_states(self) -> Found<(), S> {
        match self {
            Found::Safe {
                states,
                transitions,
                depth,
                stuck_path,
            } => Found::Safe {
                states: vec![(); states.len()],
                transitions,
                depth,
                stuck_path,
            },
            Found::Violated { errors, path } => Found::Violated { errors, path },
            Found::LimitReached { states } => Found::LimitReached { states },
        }
    }
}

/// Explores from `begin`, and stops when more than `max_states` states are found.
pub fn explore<S: Clone + Eq + Hash, T: CheckedSystem<S>>(
    mut system: T,
    begin: S,
    max_states: usize,
) -> Found<S, T::Step> {
    let limits = Limits {
        max_states,
        should_continue: &mut || true,
    };
    explore_within(&mut system, begin, limits)
}

/// As [`explore`], within limits. Explores one level of the breadth-first search at a time, to collect all violations at
/// the same distance.
pub fn explore_within<S: Clone + Eq + Hash, T: CheckedSystem<S>>(
    system: &mut T,
    begin: S,
    mut limits: Limits,
) -> Found<S, T::Step> {
    let mut exploration = Exploration::new(begin);
    let (mut transitions, mut depth) = (0, 0);
    let (mut level_end, mut checked) = (0, 0);
    let (mut of_steps, mut of_states) = (Vec::new(), Vec::new());
    loop {
        let states = exploration.states().values();
        for (number, state) in (checked as u32..).zip(&states[checked..]) {
            let violation = system.claims(state).err();
            of_states.extend(violation.map(|violation| (violation.into(), number, None)));
        }
        checked = states.len();
        let Ok(next) = exploration.next(&mut limits) else {
            return Found::LimitReached { states: checked };
        };
        if exploration.expanded() == level_end {
            // Violations of the states found in the last level are as far away as those of the steps to them.
            let mut violations = of_steps.drain(..).chain(of_states.drain(..));
            if let Some((error, number, step)) = violations.next() {
                let errors = std::iter::once(StepError::clone(&error));
                let errors = errors.chain(violations.map(|(error, ..)| error)).collect();
                let failure = step.map(|step| (step, error));
                let path = system.path_to(&exploration, number, failure);
                return Found::Violated { errors, path };
            }
            if next.is_none() {
                break;
            }
            depth += u64::from(level_end > 0);
            level_end = checked;
        }
        let number = exploration.expanded() as u32;
        exploration.expand(system, |step, successor| match successor {
            Ok(_) => transitions += 1,
            Err(error) => of_steps.push((error, number, Some(step))),
        });
    }
    let stuck_state = exploration.lost(system).first().copied();
    Found::Safe {
        stuck_path: stuck_state.map(|number| system.path_to(&exploration, number, None)),
        states: exploration.into_states().into_values(),
        transitions,
        depth,
    }
}

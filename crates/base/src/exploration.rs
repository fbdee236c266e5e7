//! Breadth-first exploration of transition systems.
//!
//! A [`TransitionSystem`] has states and steps. An [`Exploration`] numbers the states in the order of their discovery,
//! and records the predecessor of each state and the transitions of forced steps. Its user takes the states one by one
//! from [`Exploration::next`], which enforces the limits, and lets [`Exploration::expand`] find their successors. The
//! user decides which properties are checked, and when a violation ends the exploration.

use crate::interner::Interner;
use std::hash::Hash;

/// Number of states between two calls of [`Limits::should_continue`].
const POLL_INTERVAL: usize = 256;

/// Steps between states of type `S`.
pub trait TransitionSystem<S> {
    /// A step. It is the label of its transition.
    type Step;
    /// Violated property, or reason why a step has no successor.
    type Error;

    /// Calls `visit` with each step that is possible in a state, in a fixed order, and its successor or its error.
    fn successors(&mut self, state: &S, visit: &mut dyn FnMut(Self::Step, Result<S, Self::Error>));
    /// True if progress must not depend on the step, such as an access that a core may or may not make. All other
    /// steps are forced. [`Exploration::lost`] needs this method and the next.
    fn spontaneous(_step: &Self::Step) -> bool {
        true
    }
    /// True if nothing is outstanding in a state.
    fn quiescent(&self, _state: &S) -> bool {
        true
    }
}

/// Limits of an exploration.
pub struct Limits<'l> {
    /// Maximum number of states; the exploration stops when it has found more.
    pub max_states: usize,
    /// Returns false to cancel the exploration. It is called every 256 states.
    pub should_continue: &'l mut dyn FnMut() -> bool,
}

/// Limit that ends an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// There are more states than permitted.
    StateLimit,
    /// The exploration was cancelled.
    Cancelled,
}

/// The states found so far. They are expanded in the order of their numbers, which is that of their discovery.
pub struct Exploration<S> {
    /// States by number.
    states: Interner<S>,
    /// Number of the state from which each state was discovered. That of the initial state has no meaning.
    predecessors: Vec<u32>,
    /// Numbers of the successors by forced steps, of all expanded states one after the other.
    forced: Vec<u32>,
    /// End of each expanded state's successors in `forced`.
    forced_ends: Vec<usize>,
}

impl<S: Clone + Eq + Hash> Exploration<S> {
    /// Starts an exploration. The initial state has the number 0.
    pub fn new(initial: S) -> Exploration<S> {
        let mut exploration = Exploration {
            states: Interner::default(),
            predecessors: Vec::new(),
            forced: Vec::new(),
            forced_ends: Vec::new(),
        };
        exploration.add(initial, 0);
        exploration
    }

    /// The states, by their numbers.
    pub fn states(&self) -> &Interner<S> {
        &self.states
    }

    /// As [`Exploration::states`], by value.
    pub fn into_states(self) -> Interner<S> {
        self.states
    }

    /// Number of expanded states.
    pub fn expanded(&self) -> usize {
        self.forced_ends.len()
    }

    /// Returns the number of the next state to expand, or `None` if all states are expanded.
    ///
    /// # Errors
    /// The limit that ends the exploration. The state limit is tested after the first state is expanded.
    pub fn next(&self, limits: &mut Limits) -> Result<Option<u32>, Stop> {
        let expanded = self.expanded();
        if expanded > 0 && self.states.len() > limits.max_states {
            return Err(Stop::StateLimit);
        }
        if expanded == self.states.len() {
            return Ok(None);
        }
        match expanded.is_multiple_of(POLL_INTERVAL) && !(limits.should_continue)() {
            true => Err(Stop::Cancelled),
            false => Ok(Some(expanded as u32)),
        }
    }

    /// Expands the next state, which must exist. Calls `visit` with each step that is possible there, and the
    /// number of its successor or the error of the step.
    pub fn expand<T: TransitionSystem<S>>(
        &mut self,
        system: &mut T,
        mut visit: impl FnMut(T::Step, Result<u32, T::Error>),
    ) {
        let number = self.expanded() as u32;
        let state = self.states[number].clone();
        system.successors(&state, &mut |step, successor| {
            let successor = successor.map(|successor| self.add(successor, number).0);
            if let (Ok(successor), false) = (&successor, T::spontaneous(&step)) {
                self.forced.push(*successor);
            }
            visit(step, successor);
        });
        self.end_expansion();
    }

    /// Adds a successor of the state `from`. Returns its number, and true if it is new.
    pub fn add(&mut self, state: S, from: u32) -> (u32, bool) {
        let (number, is_new) = self.states.add(state);
        if is_new {
            self.predecessors.push(from);
        }
        (number, is_new)
    }

    /// Marks the next state as expanded: it has no successors, or [`Exploration::add`] has added them.
    pub fn end_expansion(&mut self) {
        self.forced_ends.push(self.forced.len());
    }

    /// Successors of an expanded state by forced steps.
    fn forced_successors(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let begin = number
            .checked_sub(1)
            .map_or(0, |previous| self.forced_ends[previous]);
        &self.forced[begin..self.forced_ends[number]]
    }

    /// True if no forced step leaves an expanded state. Panics if the state is not expanded.
    pub fn is_dead_end(&self, number: u32) -> bool {
        self.forced_successors(number).is_empty()
    }

    /// Returns the states, in ascending order, from which forced steps cannot reach quiescence. All states are expanded.
    pub fn lost<T: TransitionSystem<S>>(&self, system: &T) -> Vec<u32> {
        let is_quiescent = |state| system.quiescent(state);
        // By number, true if forced steps are known to lead from the state to quiescence.
        let mut reaches: Vec<bool> = self.states.values().iter().map(is_quiescent).collect();
        // Most successors have higher numbers, so most states are decided in the first round.
        let mut undecided: Vec<u32> = (0..reaches.len() as u32).rev().collect();
        loop {
            let count_before = undecided.len();
            undecided.retain(|&number| {
                let mut successors = self.forced_successors(number).iter();
                reaches[number as usize] =
                    reaches[number as usize] || successors.any(|&to| reaches[to as usize]);
                !reaches[number as usize]
            });
            if undecided.len() == count_before {
                undecided.reverse();
                return undecided;
            }
        }
    }

    /// Returns the numbers of the states on a shortest path to a state, from the initial state.
    pub fn states_to(&self, mut number: u32) -> Vec<u32> {
        let mut states = vec![number];
        while number != 0 {
            number = self.predecessors[number as usize];
            states.push(number);
        }
        states.reverse();
        states
    }

    /// Returns a shortest path to a state: each step, after the number of the state in which it is taken. `system`
    /// must be the one that was explored.
    pub fn path_to<T: TransitionSystem<S>>(
        &self,
        system: &mut T,
        number: u32,
    ) -> Vec<(u32, T::Step)> {
        let states = self.states_to(number);
        let step = |pair: &[u32]| {
            let [from, to] = [pair[0], pair[1]].map(|number| &self.states[number]);
            let mut first = None;
            system.successors(from, &mut |step, successor| {
                if first.is_none() && successor.is_ok_and(|successor| successor == *to) {
                    first = Some((pair[0], step));
                }
            });
            first
        };
        states.windows(2).filter_map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Exploration, Limits, Stop, TransitionSystem};

    /// Numbers below a bound. A forced step halves an even number, and a spontaneous one adds 3. The step to 7 fails.
    struct Numbers(u32);

    /// Step of these numbers.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Step {
        /// Forced: halves an even number.
        Halve,
        /// Spontaneous: adds 3.
        AddThree,
    }

    impl TransitionSystem<u32> for Numbers {
        type Step = Step;
        type Error = &'static str;

        fn successors(
            &mut self,
            state: &u32,
            visit: &mut dyn FnMut(Step, Result<u32, &'static str>),
        ) {
            if state.is_multiple_of(2) {
                visit(Step::Halve, Ok(state / 2));
            }
            match state + 3 {
                7 => visit(Step::AddThree, Err("seven")),
                sum if sum < self.0 => visit(Step::AddThree, Ok(sum)),
                _ => {}
            }
        }
        fn spontaneous(step: &Step) -> bool {
            *step == Step::AddThree
        }
        fn quiescent(&self, state: &u32) -> bool {
            *state == 1
        }
    }

    /// Explores from 8. Returns the exploration, the number of errors, and the limit that ended it.
    fn explore(
        max_states: usize,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> (Exploration<u32>, usize, Option<Stop>) {
        let mut exploration = Exploration::new(8);
        let mut errors = 0;
        let mut limits = Limits {
            max_states,
            should_continue,
        };
        loop {
            match exploration.next(&mut limits) {
                Ok(Some(_)) => {}
                Ok(None) => return (exploration, errors, None),
                Err(stop) => return (exploration, errors, Some(stop)),
            }
            exploration.expand(&mut Numbers(12), |_, successor| {
                errors += usize::from(successor.is_err());
            });
        }
    }

    #[test]
    fn states_are_numbered_in_breadth_first_order() {
        let (exploration, errors, stop) = explore(100, &mut || true);
        assert_eq!(exploration.states().values(), [8, 4, 11, 2, 1, 5]);
        assert_eq!((errors, stop), (1, None));
        let path = exploration.path_to(&mut Numbers(12), 5);
        assert_eq!(
            path,
            [(0, Step::Halve), (1, Step::Halve), (3, Step::AddThree)]
        );
    }

    #[test]
    fn lost_states_do_not_reach_quiescence_by_forced_steps() {
        let (exploration, ..) = explore(100, &mut || true);
        // From 8, 4 and 2 halving leads to 1. No forced step leaves 11 and 5.
        assert_eq!(exploration.lost(&Numbers(12)), [2, 5]);
        assert_eq!(
            [0, 2, 5].map(|number| exploration.is_dead_end(number)),
            [false, true, true]
        );
    }

    #[test]
    fn limits_end_an_exploration() {
        let (exploration, _, stop) = explore(2, &mut || true);
        assert_eq!((exploration.expanded(), stop), (1, Some(Stop::StateLimit)));
        let (exploration, _, stop) = explore(100, &mut || false);
        assert_eq!((exploration.expanded(), stop), (0, Some(Stop::Cancelled)));
    }
}

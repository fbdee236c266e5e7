//! Fair cycles of a finite graph: infinite paths on which no class of transitions is neglected.
//!
//! A path is *strongly fair* if it takes transitions of each class that is enabled infinitely often, and *weakly fair*
//! if it takes transitions of each class that is enabled from some point on in every state. [`Graph::fair_cycle`] finds
//! a cycle of states that a claim about infinite paths forbids. The search removes from each strongly connected
//! component the states in which a class is enabled that the component never takes, and searches what is left.
//!
//! Source of the method: E. A. Emerson and C.-L. Lei, "Modalities for model checking: branching time logic strikes
//! back", Science of Computer Programming 8, 1987.
//!
//! ```
//! use cohkit_base::fair_cycles::{Fairness, Graph};
//!
//! // State 0 may repeat itself (class 0), or leave for state 1 (class 1), which has no transition.
//! let mut graph = Graph::default();
//! graph.add_state([(Some(0), 0), (Some(1), 1)]);
//! graph.add_state([]);
//! assert!(graph.fair_cycle(Fairness::Weak, |_| true).is_none());
//! ```

use std::collections::{BTreeSet, VecDeque};

/// Assumption on infinite paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fairness {
    /// A class that is enabled from some point on in every state is taken infinitely often.
    Weak,
    /// A class that is enabled infinitely often is taken infinitely often.
    Strong,
}

/// A transition: its class, or `None` if nothing is assumed of it, and the number of the state that it leads to.
pub type Transition = (Option<u32>, u32);

/// States and transitions, by number.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    transitions: Vec<Transition>,
    /// End of each state's transitions.
    ends: Vec<usize>,
}

/// A part of a cycle: a state, and the transition that leaves it, numbered among those of the state from 0.
pub type CycleStep = (u32, usize);

impl Graph {
    /// Adds the next state with its transitions.
    pub fn add_state(&mut self, transitions: impl IntoIterator<Item = Transition>) {
        self.transitions.extend(transitions);
        self.ends.push(self.transitions.len());
    }

    /// Number of the transitions of a state and of all states before it.
    pub fn end_of(&self, state: u32) -> usize {
        self.ends[state as usize]
    }

    /// Transitions of a state.
    pub fn of(&self, state: u32) -> &[Transition] {
        let end = self.ends[state as usize];
        let start = match state {
            0 => 0,
            _ => self.ends[state as usize - 1],
        };
        &self.transitions[start..end]
    }

    /// Classes that are enabled in a state.
    fn enabled(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        self.of(state).iter().filter_map(|&(class, _)| class)
    }

    /// Returns a fair cycle within the states that satisfy `within`; `None` if there is none.
    pub fn fair_cycle(
        &self,
        fairness: Fairness,
        within: impl Fn(u32) -> bool,
    ) -> Option<Vec<CycleStep>> {
        let count = self.ends.len() as u32;
        let mut parts: Vec<Vec<u32>> = vec![(0..count).filter(|&state| within(state)).collect()];
        while let Some(part) = parts.pop() {
            let inside: BTreeSet<u32> = part.iter().copied().collect();
            for component in self.components(&inside) {
                let members: BTreeSet<u32> = component.iter().copied().collect();
                let taken: BTreeSet<u32> = self
                    .inner(&members)
                    .filter_map(|(_, (class, _))| class)
                    .collect();
                if self.inner(&members).next().is_none() {
                    continue;
                }
                let neglected = |class: &u32| !taken.contains(class);
                let rest: Vec<u32> = match fairness {
                    Fairness::Strong => (component.iter().copied())
                        .filter(|&state| !self.enabled(state).any(|class| neglected(&class)))
                        .collect(),
                    Fairness::Weak => {
                        match self.enabled_throughout(&component).iter().any(neglected) {
                            true => Vec::new(),
                            false => component.clone(),
                        }
                    }
                };
                if rest.len() == component.len() {
                    return Some(self.cycle(&members, fairness));
                }
                if !rest.is_empty() {
                    parts.push(rest);
                }
            }
        }
        None
    }

    /// Classes that are enabled in all of these states.
    fn enabled_throughout(&self, states: &[u32]) -> BTreeSet<u32> {
        let mut classes: Option<BTreeSet<u32>> = None;
        for &state in states {
            let enabled: BTreeSet<u32> = self.enabled(state).collect();
            classes = Some(match classes {
                None => enabled,
                Some(classes) => &classes & &enabled,
            });
        }
        classes.unwrap_or_default()
    }

    /// Transitions between members, each with its state.
    fn inner<'a>(
        &'a self,
        members: &'a BTreeSet<u32>,
    ) -> impl Iterator<Item = (u32, Transition)> + 'a {
        let of = |&state: &u32| {
            self.of(state)
                .iter()
                .map(move |&transition| (state, transition))
        };
        members
            .iter()
            .flat_map(of)
            .filter(|(_, (_, to))| members.contains(to))
    }

    /// Strongly connected components of a set of states (Tarjan's algorithm, without recursion).
    fn components(&self, inside: &BTreeSet<u32>) -> Vec<Vec<u32>> {
        const NEW: u32 = u32::MAX;
        let mut search = ComponentSearch {
            order: vec![NEW; self.ends.len()],
            low: vec![NEW; self.ends.len()],
            is_open: vec![false; self.ends.len()],
            open: Vec::new(),
            next: 0,
            components: Vec::new(),
        };
        for &root in inside {
            if search.order[root as usize] != NEW {
                continue;
            }
            let mut calls = vec![(root, 0)];
            search.enter(root);
            while let Some((state, place)) = calls.pop() {
                let followers = self.of(state);
                match followers.get(place) {
                    Some(&(_, to)) => {
                        calls.push((state, place + 1));
                        if !inside.contains(&to) {
                            continue;
                        }
                        match search.order[to as usize] {
                            NEW => {
                                search.enter(to);
                                calls.push((to, 0));
                            }
                            order if search.is_open[to as usize] => search.lower(state, order),
                            _ => {}
                        }
                    }
                    None => {
                        search.leave(state);
                        if let Some(&(parent, _)) = calls.last() {
                            search.lower(parent, search.low[state as usize]);
                        }
                    }
                }
            }
        }
        search.components
    }

    /// Returns a fair cycle through members of a fair component.
    fn cycle(&self, members: &BTreeSet<u32>, fairness: Fairness) -> Vec<CycleStep> {
        let Some(&start) = members.first() else {
            return Vec::new();
        };
        let mut cycle: Vec<CycleStep> = Vec::new();
        let mut last = start;
        loop {
            let mut visited: Vec<u32> = cycle.iter().map(|&(state, _)| state).collect();
            visited.push(last);
            let taken: BTreeSet<u32> = (cycle.iter())
                .filter_map(|&(state, place)| self.of(state)[place].0)
                .collect();
            let missing = match fairness {
                Fairness::Strong => (visited.iter().flat_map(|&state| self.enabled(state)))
                    .find(|class| !taken.contains(class)),
                Fairness::Weak => {
                    let throughout = self.enabled_throughout(&visited);
                    throughout.into_iter().find(|class| !taken.contains(class))
                }
            };
            let path = match missing {
                Some(class) => self.path(members, last, |_, (taken, to)| {
                    let is_disabled =
                        fairness == Fairness::Weak && self.enabled(to).all(|other| other != class);
                    taken == Some(class) || is_disabled
                }),
                None if last == start && !cycle.is_empty() => return cycle,
                None => self.path(members, last, |_, (_, to)| to == start),
            };
            // The component is strongly connected and fair, so that there is a path.
            let Some((path, end)) = path else {
                return cycle;
            };
            cycle.extend(path);
            last = end;
        }
    }

    /// Returns a shortest path of members from a state whose last transition satisfies `ends`, and the state after it.
    fn path(
        &self,
        members: &BTreeSet<u32>,
        from: u32,
        ends: impl Fn(u32, Transition) -> bool,
    ) -> Option<(Vec<CycleStep>, u32)> {
        let mut arrivals: std::collections::BTreeMap<u32, CycleStep> = Default::default();
        let mut queue = VecDeque::from([from]);
        let mut seen = BTreeSet::from([from]);
        while let Some(state) = queue.pop_front() {
            for (place, &transition) in self.of(state).iter().enumerate() {
                let to = transition.1;
                if !members.contains(&to) {
                    continue;
                }
                if ends(state, transition) {
                    let mut path = vec![(state, place)];
                    let mut at = state;
                    while at != from {
                        let step = arrivals[&at];
                        path.push(step);
                        at = step.0;
                    }
                    path.reverse();
                    return Some((path, to));
                }
                if seen.insert(to) {
                    arrivals.insert(to, (state, place));
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

/// State of Tarjan's algorithm.
struct ComponentSearch {
    /// Order in which each state was entered.
    order: Vec<u32>,
    /// Least order that is known to be reachable from each state.
    low: Vec<u32>,
    is_open: Vec<bool>,
    /// States whose component is not complete, in the order in which they were entered.
    open: Vec<u32>,
    next: u32,
    components: Vec<Vec<u32>>,
}

impl ComponentSearch {
    /// Enters a state.
    fn enter(&mut self, state: u32) {
        let index = state as usize;
        (self.order[index], self.low[index], self.is_open[index]) = (self.next, self.next, true);
        self.open.push(state);
        self.next += 1;
    }

    /// Notes that a state reaches another one.
    fn lower(&mut self, state: u32, order: u32) {
        let low = &mut self.low[state as usize];
        *low = (*low).min(order);
    }

    /// Leaves a state, whose component is complete if it is the first one of it.
    fn leave(&mut self, state: u32) {
        if self.low[state as usize] != self.order[state as usize] {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.open.pop() {
            self.is_open[member as usize] = false;
            component.push(member);
            if member == state {
                break;
            }
        }
        component.sort_unstable();
        self.components.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// True if a cycle is one of the graph's, within the states, and fair.
    fn is_fair(
        graph: &Graph,
        cycle: &[CycleStep],
        fairness: Fairness,
        within: impl Fn(u32) -> bool,
    ) -> bool {
        let next = |at: usize| cycle[(at + 1) % cycle.len()].0;
        let is_closed = (0..cycle.len()).all(|at| graph.of(cycle[at].0)[cycle[at].1].1 == next(at));
        let is_within = cycle.iter().all(|&(state, _)| within(state));
        let taken: BTreeSet<u32> = cycle
            .iter()
            .filter_map(|&(state, place)| graph.of(state)[place].0)
            .collect();
        let states: Vec<u32> = cycle.iter().map(|&(state, _)| state).collect();
        let demanded: BTreeSet<u32> = match fairness {
            Fairness::Strong => states
                .iter()
                .flat_map(|&state| graph.enabled(state))
                .collect(),
            Fairness::Weak => graph.enabled_throughout(&states),
        };
        !cycle.is_empty() && is_closed && is_within && demanded.is_subset(&taken)
    }

    /// Decides whether there is a fair cycle, by the definition: a closed walk that takes all inner transitions of a
    /// set of states exists if the set is strongly connected, and no smaller set of transitions matters.
    fn has_fair_cycle(
        graph: &Graph,
        count: u32,
        fairness: Fairness,
        within: impl Fn(u32) -> bool,
    ) -> bool {
        (1u32..1 << count).any(|set| {
            let members: BTreeSet<u32> = (0..count).filter(|state| set >> state & 1 == 1).collect();
            if !members.iter().all(|&state| within(state)) || graph.inner(&members).next().is_none()
            {
                return false;
            }
            let reaches = |from: u32| {
                let mut seen = BTreeSet::from([from]);
                let mut open = vec![from];
                while let Some(state) = open.pop() {
                    for &(_, to) in graph.of(state) {
                        if members.contains(&to) && seen.insert(to) {
                            open.push(to);
                        }
                    }
                }
                seen
            };
            if members.iter().any(|&state| reaches(state) != members) {
                return false;
            }
            let taken: BTreeSet<u32> = graph
                .inner(&members)
                .filter_map(|(_, (class, _))| class)
                .collect();
            let states: Vec<u32> = members.iter().copied().collect();
            match fairness {
                Fairness::Strong => states
                    .iter()
                    .all(|&state| graph.enabled(state).all(|class| taken.contains(&class))),
                Fairness::Weak => graph.enabled_throughout(&states).is_subset(&taken),
            }
        })
    }

    #[test]
    fn cycles_of_random_graphs_are_fair_and_none_is_missed() {
        let (mut found, mut none) = (0, 0);
        for seed in 0..20_000 {
            let mut random = SplitMix64::new(seed);
            let count = 1 + random.below(6) as u32;
            let mut graph = Graph::default();
            for _ in 0..count {
                let transitions: Vec<Transition> = (0..random.below(4))
                    .map(|_| {
                        (
                            Some(random.below(4) as u32).filter(|&class| class < 3),
                            random.below(count.into()) as u32,
                        )
                    })
                    .collect();
                graph.add_state(transitions);
            }
            let excluded = random.below(u64::from(count) + 2) as u32;
            let within = |state: u32| state != excluded;
            for fairness in [Fairness::Weak, Fairness::Strong] {
                let cycle = graph.fair_cycle(fairness, within);
                let expected = has_fair_cycle(&graph, count, fairness, within);
                assert_eq!(
                    cycle.is_some(),
                    expected,
                    "seed {seed}, {fairness:?}: {graph:?}"
                );
                match cycle {
                    Some(cycle) => {
                        assert!(
                            is_fair(&graph, &cycle, fairness, within),
                            "seed {seed}, {fairness:?}: {cycle:?}"
                        );
                        found += 1;
                    }
                    None => none += 1,
                }
            }
        }
        assert!(
            found > 5_000 && none > 5_000,
            "{found} with a fair cycle, {none} without"
        );
    }
}

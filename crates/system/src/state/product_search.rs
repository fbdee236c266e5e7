//! Exploration of two levels with interned states.
//!
//! A step at an outer cache, or below it, depends on the outer state and on the one inner state below. Its only effect
//! on the other inner states is to make their copies stale. Outer and inner states are therefore interned, and the
//! steps of each pair are computed once. The explored states are rows: the index of the outer state, and that of each
//! inner state. Caches below one outer cache are symmetric, and so are the outer caches with clusters of one kind,
//! together with the systems below them. One row represents all rows that differ only by such a permutation.

mod bridge;

use cohkit_base::exploration::{Exploration, Limits, TransitionSystem};
use cohkit_base::interner::Interner;
use cohkit_protocol::protocol::Permission;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

use super::explore::{explore_within, CheckedSystem, Found};
use super::levels::{
    check_line, permissions, Clusters, LevelPermissions, LevelStep, Levels, Shared,
};
use super::{StepError, System, SystemState};
use crate::agent::Violation;

pub use bridge::{bridge_tables, BridgeRow, BridgeState, Level, NoTable};

/// Limits and options of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Maximum number of rows to visit.
    pub max_rows: usize,
    /// True to identify rows that differ only in the numbers of caches.
    pub symmetry: bool,
}

/// Explores two levels, and stops at `search.max_rows` rows or when `should_continue` returns false. The result
/// contains no states.
pub fn explore_levels(
    levels: &Levels,
    search: Search,
    should_continue: &mut dyn FnMut() -> bool,
) -> Found<(), LevelStep> {
    let mut product = Product::new(levels, search.symmetry);
    let found = product.explore(search.max_rows, should_continue);
    found.without_states()
}

/// Number of the outer state, and of each inner state among those of its kind of cluster.
type Row = SmallVec<[u32; 4]>;

/// Receives a search, a step that is possible in its current row, and the step's successor or violation.
type VisitSuccessor<'v, Search> = &'v mut dyn FnMut(&mut Search, LevelStep, Result<Row, StepError>);

/// Interned states of one level, each with properties that are computed once.
struct StateTable<A> {
    /// States by index; equal states have one index.
    states: Interner<Rc<SystemState<Shared>>>,
    /// Properties of each state.
    properties: Vec<A>,
}

impl<A> StateTable<A> {
    /// An empty table.
    fn new() -> StateTable<A> {
        StateTable {
            states: Interner::default(),
            properties: Vec::new(),
        }
    }

    /// Returns the index of a state; `compute` is called if the state is new.
    fn intern(
        &mut self,
        system_state: SystemState<Shared>,
        compute: impl FnOnce(&SystemState<Shared>) -> A,
    ) -> u32 {
        let (number, is_new) = self.states.add(Rc::new(system_state));
        if is_new {
            self.properties.push(compute(&self.states[number]));
        }
        number
    }
}

/// Properties of an outer state.
struct UpperLevel {
    /// True if the outer system is quiescent.
    quiescent: bool,
    /// Per line, the permissions of the caches.
    permissions: Vec<Vec<Permission>>,
    /// Per cache, one bit per line: set if the copy is current.
    copies: Vec<u8>,
}

/// Properties of an inner state.
struct LowerLevel {
    /// True if the inner system is quiescent.
    quiescent: bool,
    /// Combined permissions per line.
    held: Vec<LevelPermissions>,
}

/// A step at an outer cache or below it, with its successors.
struct Move {
    /// Step that leads to the successor.
    step: LevelStep,
    /// Index of the outer state after the step.
    outer: u32,
    /// Index of the inner state after the step, at the cache of the step.
    inner: u32,
    /// Line that a cache has written in the step, if any. Copies of it in the other inner systems become stale.
    wrote: Option<u8>,
}

/// All steps at an outer cache and below it, and their violations.
struct Moves {
    /// Steps that are possible, with their successors.
    steps: Vec<Move>,
    /// Steps that violate a property or exceed a capacity.
    violations: Vec<(LevelStep, StepError)>,
}

/// Interned states of the clusters of one kind.
struct ClusterStates<'l, 'p> {
    /// System below an outer cache.
    system: &'l System<'p>,
    /// Inner states of all clusters of the kind.
    states: StateTable<LowerLevel>,
    /// Inner states after a write of a line below another outer cache.
    mark_stale: FxHashMap<(u32, u8), u32>,
    /// Inner states with a different memory, by the bits of the lines that are current in it.
    with_memory: FxHashMap<(u32, u8), u32>,
    /// Representative of each inner state under permutation of its caches.
    representatives: FxHashMap<u32, u32>,
    /// Permutations of the caches below an outer cache.
    orders: Vec<Vec<u8>>,
}

impl<'l, 'p> ClusterStates<'l, 'p> {
    /// A table without states. Without `symmetry`, no states are identified.
    fn new(system: &'l System<'p>, symmetry: bool) -> ClusterStates<'l, 'p> {
        ClusterStates {
            system,
            states: StateTable::new(),
            mark_stale: FxHashMap::default(),
            with_memory: FxHashMap::default(),
            representatives: FxHashMap::default(),
            orders: permutations(system, symmetry),
        }
    }

    /// Returns the index of an inner state.
    fn intern(&mut self, system_state: SystemState<Shared>) -> u32 {
        let system = self.system;
        self.states.intern(system_state, |system_state| LowerLevel {
            quiescent: system_state.quiescent(system),
            held: (0..system.lines)
                .map(|line| LevelPermissions::of(system_state, system, line))
                .collect(),
        })
    }

    /// A copy of an inner state.
    fn state(&self, number: u32) -> SystemState<Shared> {
        SystemState::clone(&self.states.states[number])
    }

    /// An inner state after a write of a line below another outer cache.
    fn mark_stale(&mut self, inner: u32, line: u8) -> u32 {
        if let Some(&known) = self.mark_stale.get(&(inner, line)) {
            return known;
        }
        let mut system_state = self.state(inner);
        system_state.mark_copies_stale(self.system, line, true);
        let number = self.intern(system_state);
        self.mark_stale.insert((inner, line), number);
        number
    }

    /// An inner state with this memory: a bit per line, set if the line is current in the outer copy.
    fn with_memory(&mut self, inner: u32, copies: u8) -> u32 {
        if let Some(&known) = self.with_memory.get(&(inner, copies)) {
            return known;
        }
        let mut system_state = self.state(inner);
        for (line, line_state) in system_state.lines.iter_mut().enumerate() {
            line_state.memory = copies >> line & 1 != 0;
        }
        let number = self.intern(system_state);
        self.with_memory.insert((inner, copies), number);
        number
    }

    /// Smallest index among the permutations of an inner state. All of them are interned.
    fn representative(&mut self, inner: u32) -> u32 {
        if let Some(&known) = self.representatives.get(&inner) {
            return known;
        }
        let system_state = Rc::clone(&self.states.states[inner]);
        let images: Vec<u32> = (0..self.orders.len())
            .map(|order| {
                let permuted = system_state.permuted(self.system, &self.orders[order]);
                self.intern(permuted)
            })
            .collect();
        let representative = images.iter().copied().min().unwrap_or(inner);
        for image in images {
            self.representatives.insert(image, representative);
        }
        representative
    }
}

/// The product of the outer system and the inner systems. Its states are rows.
struct Product<'l, 'p> {
    /// Outer and inner system.
    levels: &'l Levels<'p>,
    /// Number of outer caches, each with an inner system below it.
    clusters: u8,
    /// Outer states.
    outer: StateTable<UpperLevel>,
    /// Inner states, by kind of cluster.
    inner: Vec<ClusterStates<'l, 'p>>,
    /// Steps of an outer state that run no row of a cache.
    at_home: FxHashMap<u32, Rc<Moves>>,
    /// Steps at an outer cache and below it, by outer state, inner state and the cache's number.
    at_cache: FxHashMap<(u32, u32, u8), Rc<Moves>>,
    /// Outer states with permuted caches, by the index of the permutation.
    permuted: FxHashMap<(u32, u8), u32>,
    /// Permutations of the outer caches, each with its cluster, the identity first.
    orders: Vec<Vec<u8>>,
    /// Initial state of each inner system, in place of one that a step does not read.
    placeholders: Vec<SystemState<Shared>>,
}

/// All permutations of a system's remotes, the identity first. Only the identity if the remotes have several kinds or
/// are more than four, or without symmetry.
fn permutations(system: &System, symmetry: bool) -> Vec<Vec<u8>> {
    let count = system.remotes;
    let mut permutations = vec![vec![]];
    if !symmetry || system.protocol.kinds.len() > 1 || count > 4 {
        return vec![(0..count).collect()];
    }
    for next in 0..count {
        let extended = permutations.iter().flat_map(|order: &Vec<u8>| {
            (0..=order.len()).rev().map(move |position| {
                let mut order = order.clone();
                order.insert(position, next);
                order
            })
        });
        permutations = extended.collect();
    }
    permutations
}

impl<'l, 'p> Product<'l, 'p> {
    /// A product without interned states. Without `symmetry`, no rows are identified.
    fn new(levels: &'l Levels<'p>, symmetry: bool) -> Product<'l, 'p> {
        Product {
            clusters: levels.outer.remotes,
            outer: StateTable::new(),
            inner: (levels.kinds.iter())
                .map(|kind| ClusterStates::new(&kind.system, symmetry))
                .collect(),
            at_home: FxHashMap::default(),
            at_cache: FxHashMap::default(),
            permuted: FxHashMap::default(),
            orders: permutations(&levels.outer, symmetry)
                .into_iter()
                .filter(|order| levels.keeps_kinds(order))
                .collect(),
            placeholders: (0..levels.outer.remotes)
                .map(|number| SystemState::new(levels.inner(number)))
                .collect(),
            levels,
        }
    }

    /// Inner states of the kind of a cluster.
    fn cluster(&mut self, number: usize) -> &mut ClusterStates<'l, 'p> {
        &mut self.inner[self.levels.kind_of_cluster[number]]
    }

    /// Properties of the inner states of a row.
    fn lower_levels<'r>(&'r self, row: &'r Row) -> impl Iterator<Item = &'r LowerLevel> + Clone {
        let kinds = self.levels.kind_of_cluster.iter();
        (row[1..].iter().zip(kinds))
            .map(|(&inner, &kind)| &self.inner[kind].states.properties[inner as usize])
    }

    /// Returns the index of an outer state.
    fn intern_outer(&mut self, system_state: SystemState<Shared>) -> u32 {
        let system = &self.levels.outer;
        self.outer.intern(system_state, |system_state| UpperLevel {
            quiescent: system_state.quiescent(system),
            permissions: (0..system.lines)
                .map(|line| permissions(system_state, system, line))
                .collect(),
            copies: (0..usize::from(system.remotes))
                .map(|remote| {
                    let lines = (0..).zip(&system_state.lines);
                    let bits = lines.map(|(l, line)| u8::from(line.remotes[remote].copy) << l);
                    bits.sum()
                })
                .collect(),
        })
    }

    /// Explores all rows, and stops at `max_rows` of them or when `should_continue` returns false.
    fn explore(
        &mut self,
        max_rows: usize,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Found<Row, LevelStep> {
        let begin = self.begin();
        let begin = self.representative(begin);
        let limits = Limits {
            max_states: max_rows,
            should_continue,
        };
        explore_within(self, begin, limits)
    }

    /// The initial row.
    fn begin(&mut self) -> Row {
        let begin: Clusters = Clusters::new(self.levels);
        let mut row = Row::from_slice(&[self.intern_outer(begin.outer)]);
        for (number, inner) in begin.inner.into_iter().enumerate() {
            row.push(self.cluster(number).intern(inner));
        }
        row
    }

    /// Returns the steps of an outer state that run no row of a cache, computed on first use.
    fn at_home(&mut self, outer: u32) -> Rc<Moves> {
        if let Some(known) = self.at_home.get(&outer) {
            return Rc::clone(known);
        }
        let clusters = Clusters {
            outer: SystemState::clone(&self.outer.states[outer]),
            inner: self.placeholders.clone(),
        };
        let steps = clusters.outer.steps(&self.levels.outer).into_iter();
        let steps = steps.filter(|&step| clusters.cache_and_line(step).is_none());
        let moves = Rc::new(self.moves(&clusters, 0, steps.map(LevelStep::Outer).collect()));
        self.at_home.insert(outer, Rc::clone(&moves));
        moves
    }

    /// Returns the steps at an outer cache and in the system below it, computed on first use.
    fn at_cache(&mut self, outer: u32, inner: u32, number: u8) -> Rc<Moves> {
        if let Some(known) = self.at_cache.get(&(outer, inner, number)) {
            return Rc::clone(known);
        }
        let mut systems = self.placeholders.clone();
        systems[usize::from(number)] = self.cluster(number.into()).state(inner);
        let clusters = Clusters {
            outer: SystemState::clone(&self.outer.states[outer]),
            inner: systems,
        };
        let outer_steps = clusters.outer.steps(&self.levels.outer).into_iter();
        let cache_steps = outer_steps.filter(|&step| {
            clusters
                .cache_and_line(step)
                .is_some_and(|(cache, _)| cache == number)
        });
        let mut steps: Vec<LevelStep> = cache_steps.map(LevelStep::Outer).collect();
        let inner_steps = clusters.inner[usize::from(number)].steps(self.levels.inner(number));
        steps.extend(
            inner_steps
                .into_iter()
                .map(|step| LevelStep::Inner(number, step)),
        );
        let moves = Rc::new(self.moves(&clusters, number, steps));
        self.at_cache
            .insert((outer, inner, number), Rc::clone(&moves));
        moves
    }

    /// Tries these steps in a state of both levels, of which only the outer state and the inner state below cache
    /// `number` are used.
    fn moves(&mut self, clusters: &Clusters, number: u8, steps: Vec<LevelStep>) -> Moves {
        let mut moves = Moves {
            steps: Vec::new(),
            violations: Vec::new(),
        };
        for step in steps {
            let mut next = clusters.clone();
            let result = match step {
                LevelStep::Outer(step) => next
                    .take_outer(self.levels, step)
                    .map(|is_taken| (is_taken, None)),
                LevelStep::Inner(number, step) => {
                    next.take_inner(self.levels, number, step, &mut Vec::new())
                }
            };
            match result {
                Ok((false, _)) => {}
                Ok((true, wrote)) => {
                    let inner = next.inner.swap_remove(usize::from(number));
                    moves.steps.push(Move {
                        step,
                        outer: self.intern_outer(next.outer),
                        inner: self.cluster(number.into()).intern(inner),
                        wrote,
                    });
                }
                Err(error) => moves.violations.push((step, error)),
            }
        }
        moves
    }

    /// Calls `visit` with each step of a row and its successor, which is not a representative yet, or its violation.
    fn concrete_successors(&mut self, row: &Row, visit: VisitSuccessor<Self>) {
        let home = self.at_home(row[0]);
        for (step, error) in &home.violations {
            visit(self, *step, Err(error.clone()));
        }
        for step in &home.steps {
            let mut next = row.clone();
            next[0] = step.outer;
            self.update_inner_memory(row[0], &mut next, None);
            visit(self, step.step, Ok(next));
        }
        for number in 0..self.clusters {
            let position = usize::from(number) + 1;
            let moves = self.at_cache(row[0], row[position], number);
            for (step, error) in &moves.violations {
                visit(self, *step, Err(error.clone()));
            }
            for step in &moves.steps {
                let mut next = row.clone();
                (next[0], next[position]) = (step.outer, step.inner);
                if let Some(line) = step.wrote {
                    for sibling in (1..row.len()).filter(|&sibling| sibling != position) {
                        next[sibling] = self.cluster(sibling - 1).mark_stale(next[sibling], line);
                    }
                }
                self.update_inner_memory(row[0], &mut next, Some(position));
                visit(self, step.step, Ok(next));
            }
        }
    }

    /// Updates the memory of the inner states to the outer copies, except below `current`, which is up to date.
    fn update_inner_memory(&mut self, outer_before: u32, row: &mut [u32], current: Option<usize>) {
        for position in (1..row.len()).filter(|&position| Some(position) != current) {
            let copies = |outer: u32| self.outer.properties[outer as usize].copies[position - 1];
            let (old, new) = (copies(outer_before), copies(row[0]));
            if old != new {
                row[position] = self.cluster(position - 1).with_memory(row[position], new);
            }
        }
    }

    /// Returns the representative of a row under permutation of the caches.
    fn representative(&mut self, mut row: Row) -> Row {
        for (number, inner) in row[1..].iter_mut().enumerate() {
            let cluster = self.cluster(number);
            if cluster.orders.len() > 1 {
                *inner = cluster.representative(*inner);
            }
        }
        let mut smallest = row.clone();
        for order in 1..self.orders.len() {
            let mut candidate = row.clone();
            for (cache, &number) in self.orders[order].iter().enumerate() {
                candidate[usize::from(number) + 1] = row[cache + 1];
            }
            // The outer states decide only between equal inner states, so they are seldom permuted.
            if candidate[1..] > smallest[1..] {
                continue;
            }
            candidate[0] = self.permuted_outer(row[0], order);
            if (&candidate[1..], candidate[0]) < (&smallest[1..], smallest[0]) {
                smallest = candidate;
            }
        }
        smallest
    }

    /// Outer state with the outer caches permuted by the order with this index.
    fn permuted_outer(&mut self, outer: u32, order: usize) -> u32 {
        let key = (outer, order as u8);
        if let Some(&known) = self.permuted.get(&key) {
            return known;
        }
        let system_state = Rc::clone(&self.outer.states[outer]);
        let permuted = system_state.permuted(&self.levels.outer, &self.orders[order]);
        let number = self.intern_outer(permuted);
        self.permuted.insert(key, number);
        number
    }
}

impl TransitionSystem<Row> for Product<'_, '_> {
    type Step = LevelStep;
    type Error = StepError;

    fn successors(&mut self, row: &Row, visit: &mut dyn FnMut(LevelStep, Result<Row, StepError>)) {
        self.concrete_successors(row, &mut |product, step, next| {
            visit(step, next.map(|next| product.representative(next)));
        });
    }
    fn spontaneous(step: &LevelStep) -> bool {
        step.spontaneous()
    }
    fn quiescent(&self, row: &Row) -> bool {
        self.outer.properties[row[0] as usize].quiescent
            && self.lower_levels(row).all(|lower| lower.quiescent)
    }
}

impl CheckedSystem<Row> for Product<'_, '_> {
    fn claims(&self, row: &Row) -> Result<(), Violation> {
        let above = &self.outer.properties[row[0] as usize].permissions;
        for (line, above) in above.iter().enumerate() {
            check_line(above, self.lower_levels(row).map(|lower| lower.held[line]))?;
        }
        Ok(())
    }

    /// A path to a row or to one that it represents, followed by a step with the violation `failure`. Rows are
    /// representatives, so the path is found by replaying the search with concrete rows.
    fn path_to(
        &mut self,
        exploration: &Exploration<Row>,
        number: u32,
        failure: Option<(LevelStep, StepError)>,
    ) -> Vec<LevelStep> {
        let mut path = Vec::new();
        let mut current_row = self.begin();
        for &number in &exploration.states_to(number)[1..] {
            let mut successor = None;
            self.concrete_successors(&current_row, &mut |product, step, next| {
                if let (None, Ok(next)) = (&successor, next) {
                    if product.representative(next.clone()) == exploration.states()[number] {
                        successor = Some((step, next));
                    }
                }
            });
            // Symmetric rows have symmetric successors.
            let Some((step, next)) = successor else { break };
            path.push(step);
            current_row = next;
        }
        if let Some((mut step, error)) = failure {
            let mut is_found = false;
            self.concrete_successors(&current_row, &mut |_, candidate, next| {
                if !is_found && next.as_ref() == Err(&error) {
                    (step, is_found) = (candidate, true);
                }
            });
            path.push(step);
        }
        path
    }
}

//! Reachability properties: whether rules can always lead to a state that satisfies a condition. For *drain*, these are
//! the quiescent states, and only rules that are not spontaneous count; for liveness, all rules count.
//!
//! The check runs after all reachable states are known. It repeats the moves by firing the rules again, which needs no
//! memory during the search. It first visits the states from the last to the first. Most moves lead from early states
//! to late ones, so most targets have been decided before. A state with a move to one that reaches the goal reaches it
//! too.
//! This takes one bit per state. The few undecided states are swept again. When sweeps decide few further states, the
//! remaining moves are stored and followed backward.
//!
//! States are swept in groups of [`STRETCHES_PER_GROUP`] stretches. Within a group, each stretch uses the results of earlier groups
//! and its own. The order of results therefore does not depend on the number of threads.

use super::batch::BATCH;
use super::worker::Worker;
use super::{FailedCheck, Phase, Reason, Search, Verdict, MIN_STATES_FOR_THREADS, STRETCH};
use crate::interpret::Fault;
use crate::native::{with_words, word_count, Kernel, NeedsInterpreter};
use crate::program::RuleSelection;
use crate::store::{hash, FullStates, StateHashes, Store};
use crate::threads::run_in_parallel;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Number of stretches in a group, which are swept in parallel.
const STRETCHES_PER_GROUP: usize = 16;

/// Reason why a check ended without a result.
enum StopReason {
    /// The search was cancelled.
    Interrupted,
    /// The condition cannot be evaluated in this state.
    Fault(usize, Fault),
}

/// One bit per state.
struct StateSet(Vec<u64>);

impl StateSet {
    /// An empty set for this many states.
    fn new(states: usize) -> StateSet {
        StateSet(vec![0; states.div_ceil(64)])
    }

    fn contains(&self, state: usize) -> bool {
        self.0[state / 64] >> (state % 64) & 1 != 0
    }

    fn insert(&mut self, state: usize) {
        self.0[state / 64] |= 1 << (state % 64);
    }
}

/// A move between undecided states, given by their positions in the list of these. Ordered by target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BackwardMove {
    /// State to which the move leads.
    target: u32,
    /// State in which it begins.
    source: u32,
}

/// Moves of undecided states.
#[derive(Default)]
struct UndecidedMoves {
    /// Moves among these states.
    moves: Vec<BackwardMove>,
    /// Positions of the states with a move to a reached state.
    reaching: Vec<u32>,
}

impl Search<'_> {
    /// Searches for states from which rules that are not spontaneous never lead to a quiescent state.
    pub(super) fn check_quiescence(&mut self) -> Verdict {
        let view = self.view;
        match &view.quiescent {
            Some(conjuncts) if !conjuncts.is_empty() => self.check_reachability(conjuncts, None),
            _ => Verdict::Holds,
        }
    }

    /// Searches for states from which rules never lead to a state that satisfies a liveness property.
    pub(super) fn check_liveness(&mut self) -> Verdict {
        let program = self.program;
        for (property, conjuncts) in &program.properties.liveness {
            let verdict = self.check_reachability(conjuncts, Some(*property));
            if verdict != Verdict::Holds {
                return verdict;
            }
        }
        Verdict::Holds
    }

    /// Searches for states from which no state that satisfies all conjuncts is reachable. `liveness` is the index of the
    /// liveness property with these conjuncts; `None` for the quiescent condition.
    fn check_reachability(&mut self, conjuncts: &[u32], liveness: Option<u32>) -> Verdict {
        let selection = match liveness {
            Some(_) => RuleSelection::All,
            None => RuleSelection::NonSpontaneous,
        };
        match self.states_out_of_reach(conjuncts, selection) {
            Err(StopReason::Interrupted) => Verdict::Undecided(Reason::Interrupted),
            Err(StopReason::Fault(state, fault)) => {
                Verdict::FailedCheck(FailedCheck::Fault(fault), self.path(state))
            }
            Ok(None) => Verdict::Undecided(Reason::MaxMemory),
            Ok(Some(stuck_states)) => self.unreachable_goal_verdict(&stuck_states, liveness),
        }
    }

    /// Verdict on the states from which the goal is unreachable, in ascending order.
    fn unreachable_goal_verdict(&self, stuck_states: &[u32], liveness: Option<u32>) -> Verdict {
        let (Some(&first), count) = (stuck_states.first(), stuck_states.len() as u64) else {
            return Verdict::Holds;
        };
        if let Some(property) = liveness {
            return Verdict::FailedCheck(
                FailedCheck::OutOfReach(property, count),
                self.path(first as usize),
            );
        }
        let mut dead_end = None;
        let mut worker = Worker::new(self.program, self.view);
        for &state in stuck_states {
            self.visit_moves(
                &[state],
                RuleSelection::NonSpontaneous,
                &mut worker,
                &mut |state, moves| {
                    dead_end = moves.is_empty().then_some(state);
                },
            );
            if dead_end.is_some() {
                break;
            }
        }
        match dead_end {
            Some(state) => Verdict::FailedCheck(FailedCheck::DeadEnd(count), self.path(state)),
            None => Verdict::FailedCheck(FailedCheck::Livelock(count), self.path(first as usize)),
        }
    }

    /// States from which no state that satisfies all conjuncts is reachable; `None` if that takes too much memory.
    fn states_out_of_reach(
        &mut self,
        conjuncts: &[u32],
        selection: RuleSelection,
    ) -> Result<Option<Vec<u32>>, StopReason> {
        let count = self.store.len();
        let Some(mut reached) = self.states_satisfying(conjuncts)? else {
            return Ok(None);
        };
        // `None` for all states at first, then the undecided ones.
        let mut undecided: Option<Vec<u32>> = None;
        loop {
            let count_before = undecided.as_ref().map_or(count, Vec::len);
            let still_undecided = self.sweep(undecided.as_deref(), &mut reached, selection)?;
            let (undecided_count, decided_count) =
                (still_undecided.len(), count_before - still_undecided.len());
            if undecided_count == 0 || decided_count == 0 {
                return Ok(Some(still_undecided));
            }
            if self.exceeds_memory_limit((count / 8 + 8 * undecided_count) as u64) {
                return Ok(None);
            }
            undecided = Some(still_undecided);
            // Sweeps that decide at least half of the states cost no more together than one further sweep of all.
            if decided_count < count_before / 2 {
                break;
            }
        }
        self.decide_backward(undecided.unwrap_or_default(), &reached, selection)
    }

    /// True if this many bytes in addition to the states exceed the memory limit.
    fn exceeds_memory_limit(&self, bytes: u64) -> bool {
        let memory = self.resident_memory() + bytes;
        self.options.max_memory.is_some_and(|max| memory > max)
    }

    /// States that satisfy all conjuncts; `None` if the memory limit is too small.
    fn states_satisfying(&mut self, conjuncts: &[u32]) -> Result<Option<StateSet>, StopReason> {
        let count = self.store.len();
        if self.exceeds_memory_limit(count as u64 / 8) {
            return Ok(None);
        }
        // Machine code exists only for the quiescent condition.
        let has_native_code = self.view.quiescent.as_deref() == Some(conjuncts);
        let (program, view, store) = (self.program, self.view, &self.store);
        let kernel = self.machine_code.kernel();
        let words = view.packing.words;
        let stretches: Vec<usize> = (0..count).step_by(STRETCH).collect();
        let states_in_stretch = |first: usize| {
            let mut worker = Worker::new(program, view);
            let mut state_words = vec![0; words];
            let mut satisfying = Vec::new();
            for state in first..count.min(first + STRETCH) {
                if let (Some(kernel), true) = (kernel, has_native_code) {
                    store.read(state, &mut state_words);
                    if let Ok(holds) = kernel.is_quiescent(&state_words) {
                        satisfying.extend(holds.then_some(state));
                        continue;
                    }
                }
                worker.load(store, state);
                match worker.holds(conjuncts) {
                    Ok(holds) => satisfying.extend(holds.then_some(state)),
                    Err(fault) => return Err(StopReason::Fault(state, fault)),
                }
            }
            Ok(satisfying)
        };
        let mut satisfying_states = StateSet::new(count);
        for group in stretches.chunks(STRETCHES_PER_GROUP) {
            if self.is_cancelled() {
                return Err(StopReason::Interrupted);
            }
            for satisfying in self.run_group(group.to_vec(), states_in_stretch) {
                satisfying?
                    .into_iter()
                    .for_each(|state| satisfying_states.insert(state));
            }
        }
        Ok(Some(satisfying_states))
    }

    /// Runs `work` on each part of a group in parallel, and returns the results in order.
    fn run_group<P: Send, T: Send>(&self, parts: Vec<P>, work: impl Fn(P) -> T + Sync) -> Vec<T> {
        let threads = self.options.threads.clamp(1, parts.len().max(1));
        if threads == 1 || self.store.len() < MIN_STATES_FOR_THREADS {
            return parts.into_iter().map(work).collect();
        }
        let next = AtomicUsize::new(0);
        let slots: Vec<Mutex<(Option<P>, Option<T>)>> =
            (parts.into_iter().map(|part| Mutex::new((Some(part), None)))).collect();
        run_in_parallel(vec![(); threads], |()| loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(Ok(mut slot)) = slots.get(number).map(Mutex::lock) else {
                return;
            };
            slot.1 = slot.0.take().map(&work);
        });
        let results = slots.into_iter().map(|slot| slot.into_inner());
        results.filter_map(|slot| slot.ok()?.1).collect()
    }

    /// Visits states, or all if `None`, from the last to the first. Marks those that lead to a reached state, and
    /// returns the undecided ones.
    fn sweep(
        &mut self,
        states: Option<&[u32]>,
        reached: &mut StateSet,
        selection: RuleSelection,
    ) -> Result<Vec<u32>, StopReason> {
        let count = states.map_or(self.store.len(), <[u32]>::len);
        let mut undecided = Vec::new();
        let ends: Vec<usize> = (0..count).rev().step_by(STRETCH).map(|i| i + 1).collect();
        for group in ends.chunks(STRETCHES_PER_GROUP) {
            if self.is_cancelled() {
                return Err(StopReason::Interrupted);
            }
            let reached_before = &*reached;
            let results = self.run_group(group.to_vec(), |end| {
                let stretch = end.saturating_sub(STRETCH)..end;
                let stretch_states: Vec<u32> = match states {
                    Some(states) => states[stretch].iter().rev().copied().collect(),
                    None => stretch.rev().map(|state| state as u32).collect(),
                };
                let unknown_states: Vec<u32> = (stretch_states.into_iter())
                    .filter(|&state| !reached_before.contains(state as usize))
                    .collect();
                self.sweep_stretch(&unknown_states, reached_before, selection)
            });
            for (decided, still_undecided) in results {
                decided
                    .into_iter()
                    .for_each(|state| reached.insert(state as usize));
                undecided.extend(still_undecided);
            }
            let remaining = group.last().map_or(0, |end| end.saturating_sub(STRETCH));
            self.frontier.next = self.store.len() - remaining;
            self.report_progress(Phase::Drain);
        }
        self.frontier.next = self.store.len();
        undecided.reverse();
        Ok(undecided)
    }

    /// Divides states, in descending order, into those that lead to a reached state and the others.
    fn sweep_stretch(
        &self,
        states: &[u32],
        reached: &StateSet,
        selection: RuleSelection,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut decided, mut undecided) = (Vec::new(), Vec::new());
        let Some((&last, &first)) = states.first().zip(states.last()) else {
            return (decided, undecided);
        };
        // States of this stretch that have been decided, by their distance from its first.
        let mut decided_in_stretch = StateSet::new((last - first) as usize + 1);
        let mut worker = Worker::new(self.program, self.view);
        self.visit_moves(states, selection, &mut worker, &mut |state, targets| {
            let is_reached = |&target: &u32| {
                let in_stretch = first <= target && target <= last;
                reached.contains(target as usize)
                    || in_stretch && decided_in_stretch.contains((target - first) as usize)
            };
            if targets.iter().any(is_reached) {
                decided_in_stretch.insert(state - first as usize);
                decided.push(state as u32);
            } else {
                undecided.push(state as u32);
            }
        });
        (decided, undecided)
    }

    /// Decides states, in ascending order, by following their moves backward. Returns those from which no reached state
    /// is reachable; `None` if the moves take too much memory.
    fn decide_backward(
        &mut self,
        states: Vec<u32>,
        reached: &StateSet,
        selection: RuleSelection,
    ) -> Result<Option<Vec<u32>>, StopReason> {
        let Some(undecided_moves) = self.undecided_moves(&states, reached, selection)? else {
            return Ok(None);
        };
        let UndecidedMoves {
            mut moves,
            reaching: mut queue,
        } = undecided_moves;
        moves.sort_unstable();
        let mut reaches_goal = StateSet::new(states.len());
        for &position in &queue {
            reaches_goal.insert(position as usize);
        }
        while let Some(target) = queue.pop() {
            let first_move = moves.partition_point(|step| step.target < target);
            let moves_to_target = moves[first_move..].iter();
            for step in moves_to_target.take_while(|step| step.target == target) {
                if !reaches_goal.contains(step.source as usize) {
                    reaches_goal.insert(step.source as usize);
                    queue.push(step.source);
                }
            }
        }
        let never_reaches = |&position: &usize| !reaches_goal.contains(position);
        let unreachable_states = (0..states.len())
            .filter(never_reaches)
            .map(|position| states[position]);
        Ok(Some(unreachable_states.collect()))
    }

    /// Moves of undecided states; `None` if they take too much memory.
    fn undecided_moves(
        &self,
        states: &[u32],
        reached: &StateSet,
        selection: RuleSelection,
    ) -> Result<Option<UndecidedMoves>, StopReason> {
        let mut all = UndecidedMoves::default();
        let position = |state: u32| states.binary_search(&state).map(|position| position as u32);
        let starts: Vec<usize> = (0..states.len()).step_by(STRETCH).collect();
        for group in starts.chunks(STRETCHES_PER_GROUP) {
            if self.is_cancelled() {
                return Err(StopReason::Interrupted);
            }
            let results = self.run_group(group.to_vec(), |first| {
                let stretch = &states[first..states.len().min(first + STRETCH)];
                let mut found = UndecidedMoves::default();
                let mut worker = Worker::new(self.program, self.view);
                self.visit_moves(stretch, selection, &mut worker, &mut |state, targets| {
                    let Ok(source) = position(state as u32) else {
                        return;
                    };
                    let is_reached = |&target: &u32| reached.contains(target as usize);
                    if targets.iter().any(is_reached) {
                        found.reaching.push(source);
                        return;
                    }
                    let positions = targets.iter().filter_map(|&target| position(target).ok());
                    let moves = positions.map(|target| BackwardMove { target, source });
                    found.moves.extend(moves);
                });
                found
            });
            for found in results {
                all.moves.extend(found.moves);
                all.reaching.extend(found.reaching);
            }
            // One bit per state, two 4-byte numbers per undecided state, and 8 bytes per move; sorting doubles these.
            if self.exceeds_memory_limit(
                (self.store.len() / 8 + 8 * states.len() + 16 * all.moves.len()) as u64,
            ) {
                return Ok(None);
            }
        }
        Ok(Some(all))
    }

    /// Calls `visit` with each of the states and its successors by the selected rules.
    fn visit_moves(
        &self,
        states: &[u32],
        selection: RuleSelection,
        worker: &mut Worker,
        visit: &mut dyn FnMut(usize, &[u32]),
    ) {
        let words = self.view.packing.words;
        let kernel = self.machine_code.kernel();
        let native_result = kernel.and_then(|kernel| {
            with_words!(
                words,
                W,
                self.visit_moves_native::<W>(kernel, states, selection, worker, visit)
            )
        });
        if native_result.is_none() {
            for &state in states {
                self.visit_moves_interpreted(state as usize, selection, worker, visit);
            }
        }
    }

    /// True if all successors by these rules are stored. Without the spontaneous rules, rules of a larger priority value
    /// may fire, and lead to states that are not stored.
    fn stores_successors(&self, selection: RuleSelection) -> bool {
        let rules = &self.view.rules;
        let mut priorities = rules
            .iter()
            .map(|&rule| self.program.rules[rule as usize].priority);
        let first = priorities.next();
        matches!(selection, RuleSelection::All)
            || priorities.all(|priority| Some(priority) == first)
    }

    /// As [`Search::visit_moves`], for one state and by the interpreter.
    fn visit_moves_interpreted(
        &self,
        state: usize,
        selection: RuleSelection,
        worker: &mut Worker,
        visit: &mut dyn FnMut(usize, &[u32]),
    ) {
        worker.load(&self.store, state);
        let are_stored = self.stores_successors(selection);
        let mut targets = Vec::new();
        let _ = worker.expand(selection, |worker, _| {
            let hash = hash(&worker.child);
            targets.extend(self.store.find(hash, &worker.child, are_stored));
            Ok(())
        });
        visit(state, &targets);
    }

    /// As [`Search::visit_moves`], by machine code, in batches.
    fn visit_moves_native<const W: usize>(
        &self,
        kernel: &Kernel,
        states: &[u32],
        selection: RuleSelection,
        worker: &mut Worker,
        visit: &mut dyn FnMut(usize, &[u32]),
    ) {
        let words = word_count::<W>(self.view.packing.words);
        let mut parent = [0; W];
        let mut batch = SuccessorBatch::<W> {
            are_stored: self.stores_successors(selection),
            ..SuccessorBatch::default()
        };
        for &state in states {
            let state = state as usize;
            self.store
                .states
                .read::<FullStates>(state, &mut parent[..words]);
            let children_before = batch.children.len();
            let reach = |child: &[u64; W]| {
                let mut child = *child;
                let stored = &mut child[..words];
                (self.view).canonicalise(stored, &mut worker.scratch);
                let hash = hash(stored);
                self.store.table.prefetch(hash);
                batch.children.push((child, hash));
            };
            match kernel.expand(&parent, selection, reach) {
                Ok(_) => batch.parents.push((state, batch.children.len())),
                Err(NeedsInterpreter) => {
                    batch.children.truncate(children_before);
                    batch.look_up(&self.store, visit);
                    self.visit_moves_interpreted(state, selection, worker, visit);
                }
            }
            if batch.children.len() >= BATCH {
                batch.look_up(&self.store, visit);
            }
        }
        batch.look_up(&self.store, visit);
    }
}

/// Expanded states, and their successors that have not been looked up yet.
#[derive(Default)]
struct SuccessorBatch<const W: usize> {
    /// Canonical successors with their hashes, in the order of their parents.
    children: Vec<([u64; W], u64)>,
    /// Expanded states, each with the end of its successors in `children`.
    parents: Vec<(usize, usize)>,
    /// True if all successors are known to be stored.
    are_stored: bool,
    /// Reusable buffer: numbers of the successors of one state.
    targets: Vec<u32>,
}

impl<const W: usize> SuccessorBatch<W> {
    /// Looks up all successors, calls `visit` with each expanded state and its successors, and empties the batch.
    fn look_up(&mut self, store: &Store, visit: &mut dyn FnMut(usize, &[u32])) {
        let words = word_count::<W>(store.words());
        for &(_, hash) in &self.children {
            if let Some(state) = store.table.likely_entry(hash) {
                store.states.prefetch(state);
            }
        }
        let mut children_start = 0;
        for (state, end) in self.parents.drain(..) {
            self.targets.clear();
            let stored_children = self.children[children_start..end]
                .iter()
                .filter_map(|(child, hash)| store.find(*hash, &child[..words], self.are_stored));
            self.targets.extend(stored_children);
            visit(state, &self.targets);
            children_start = end;
        }
        self.children.clear();
    }
}

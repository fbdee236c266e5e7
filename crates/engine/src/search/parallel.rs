//! Expansion of a stretch of states by several threads.
//!
//! In parallel, threads take chunks of the stretch in order, compute successors, and claim table entries for new ones.
//! A new state is a candidate at first; if two threads find it, the earlier parent counts.
//! After the last chunk, the candidates get their numbers in the order of their parents, and are stored.
//! If a violation or limit is found, all candidates are discarded, and one thread repeats the stretch.

use super::batch::{expand_native, Stop, Successors, Workspace};
use super::candidates::{CandidateNumbers, Candidates, SLAB_SIZE};
use super::worker::Worker;
use super::{FailedCheck, Search};
use crate::native::{Guards, Kernel};
use crate::program::{Program, RuleSelection};
use crate::store::{
    hash, ClaimResult, CompactStates, EntryPosition, FullStates, Reservation, StateHashes, Store,
    StorePolicy, CANDIDATE,
};
use crate::threads::Team;
use crate::view::View;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of parents that a thread takes at a time.
const CHUNK: usize = if cfg!(debug_assertions) { 16 } else { 128 };

/// Prefetch distance for table entries of candidates.
const PREFETCH_DISTANCE: usize = 16;

/// Data of parallel expansion that is kept from stretch to stretch.
pub(super) struct ParallelExpansion {
    /// New states of the current stretch.
    candidates: Candidates,
    /// Threads that expand stretches.
    team: Team,
    /// Data of each thread.
    thread_states: Vec<ThreadState>,
    /// Expected new states per parent, with a large margin.
    growth: f64,
}

impl ParallelExpansion {
    /// Starts the threads, for states of `words` words.
    fn new(words: usize, threads: usize) -> ParallelExpansion {
        let team = Team::new(threads);
        ParallelExpansion {
            candidates: Candidates::new(words),
            thread_states: (0..team.len()).map(|_| ThreadState::default()).collect(),
            team,
            growth: 4.0,
        }
    }
}

/// Data of one thread that is kept from stretch to stretch.
#[derive(Default)]
struct ThreadState {
    /// Buffers of the expansion.
    workspace: Workspace,
    /// Numbers of candidates that this thread may use.
    numbers: CandidateNumbers,
    /// Candidates that this thread found in the current stretch, in the order of their parents.
    candidates_found: Vec<FoundCandidate>,
}

impl ThreadState {
    /// Discards the candidates of the last stretch. With `scarce`, gives up the thread's slabs too; see
    /// [`Candidates::clear`].
    fn start_stretch(&mut self, scarce: bool) {
        self.candidates_found.clear();
        self.numbers.restart();
        if scarce {
            self.numbers.forget();
        }
    }
}

/// A candidate that a thread found from this parent. Another thread may have found it from an earlier parent.
struct FoundCandidate {
    /// Entry of the candidate in the table.
    entry: u32,
    /// Parent, counted from the first state of the stretch.
    parent: u32,
    /// Position of the entry in the table.
    position: EntryPosition,
}

/// A chunk that a thread expands.
struct Chunk {
    /// States of the chunk.
    parents: Range<usize>,
    /// Range of its candidates in [`ThreadState::candidates_found`].
    candidates: Range<usize>,
    /// Deadlocks to be recorded, and whether they are quiescent.
    deadlocks: Vec<(usize, bool)>,
}

/// Results of one thread.
struct ThreadResults {
    /// Rules fired.
    transitions: u64,
    /// Chunks that the thread expanded, in the order in which it took them.
    chunks: Vec<Chunk>,
    /// Number of entries put into the table.
    entered: usize,
}

/// Chunks of all threads in the order of their parents, each with the index of the thread that expanded it.
fn chunks_in_order(results: &[ThreadResults]) -> Vec<(usize, &Chunk)> {
    let mut chunks: Vec<(usize, &Chunk)> = (results.iter().enumerate())
        .flat_map(|(thread, thread_results)| {
            let chunks = thread_results.chunks.iter();
            chunks.map(move |chunk| (thread, chunk))
        })
        .collect();
    chunks.sort_by_key(|(_, chunk)| chunk.parents.start);
    chunks
}

impl Search<'_> {
    /// Expands states from `next` on, at most to `end`, and returns the next state to expand.
    /// Returns `None`, without effect, if one thread has to expand the stretch.
    pub(super) fn expand_parallel(&mut self, end: usize, threads: usize) -> Option<usize> {
        let mut expansion = (self.parallel_expansion.take())
            .unwrap_or_else(|| ParallelExpansion::new(self.store.words(), threads));
        let next = self.expand_stretch_parallel(end, &mut expansion);
        self.parallel_expansion = Some(expansion);
        next
    }

    /// Expands a stretch as [`Search::expand_parallel`], with the given reusable data.
    /// If a thread fails or the state limit is exceeded, removes all candidates from the table and returns `None`.
    fn expand_stretch_parallel(
        &mut self,
        end: usize,
        expansion: &mut ParallelExpansion,
    ) -> Option<usize> {
        let ParallelExpansion {
            candidates,
            team,
            thread_states,
            growth,
        } = expansion;
        let threads = team.len();
        let first = self.frontier.next;
        // Each thread may leave most of a slab unused.
        let expected = ((end - first) as f64 * *growth) as usize + threads * SLAB_SIZE;
        self.store.reserve(expected, team);
        let scarce = candidates.clear(self.store.table.number_limit(), expected);
        for thread_state in thread_states.iter_mut() {
            thread_state.start_stretch(scarce);
        }
        let candidates = &*candidates;
        let lost_counts: Vec<AtomicUsize> = (0..(end - first).div_ceil(CHUNK))
            .map(|_| AtomicUsize::new(0))
            .collect();
        let shared = SharedSearchData {
            store: &self.store,
            kernel: self.machine_code.kernel(),
            guards: self.guards,
            candidates,
            lost_counts: &lost_counts,
            first,
            end,
            chunk: AtomicUsize::new(0),
            table_is_full: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            cancel: self.options.cancel,
        };
        let (program, view) = (self.program, self.view);
        let table_share = (self.store.table.free_entries() / threads).saturating_sub(SLAB_SIZE);
        let results =
            team.run_in_parallel(
                thread_states.iter_mut().collect(),
                |thread_state| match shared.store.states.is_compacted() {
                    true => shared.run::<CompactStates>(program, view, thread_state, table_share),
                    false => shared.run::<FullStates>(program, view, thread_state, table_share),
                },
            );
        let table_filled = shared.table_is_full.into_inner();
        let failed = shared.failed.into_inner();

        let chunks = chunks_in_order(&results);
        let count = |chunk: &Chunk| {
            let lost_count = &lost_counts[(chunk.parents.start - first) / CHUNK];
            chunk.candidates.len() - lost_count.load(Ordering::Relaxed)
        };
        // After a failure, some chunks are incomplete.
        let new_count: usize = match failed {
            true => 0,
            false => chunks.iter().map(|(_, chunk)| count(chunk)).sum(),
        };
        if failed || (self.store.len() + new_count) as u64 > self.state_limit() {
            self.discard_candidates(thread_states);
            return None;
        }
        let next = (chunks.last()).map_or(first, |(_, chunk)| chunk.parents.end);
        // Expect twice the observed growth, and four times if the table became full.
        let average = new_count as f64 / (next - first).max(1) as f64;
        *growth = 2.0 * average * if table_filled { 2.0 } else { 1.0 };

        for thread_results in &results {
            self.transitions += thread_results.transitions;
            self.store.table.add_to_count(thread_results.entered);
        }
        for &(state, quiescent) in chunks.iter().flat_map(|(_, chunk)| &chunk.deadlocks) {
            self.record_deadlock(state, quiescent);
        }
        self.store_candidates(first, chunks, count, thread_states, candidates, team);
        Some(next)
    }

    /// Removes the candidates of a stretch from the table.
    fn discard_candidates(&mut self, thread_states: &mut [ThreadState]) {
        for thread_state in thread_states {
            for found in &thread_state.candidates_found {
                self.store.table.remove(found.position);
            }
            thread_state.workspace.recent.forget();
        }
    }

    /// Stores the new states in the order of their parents. Each chunk comes with the thread that expanded it; `count`
    /// returns the number of its candidates that no earlier parent has taken over.
    fn store_candidates(
        &mut self,
        first: usize,
        chunks: Vec<(usize, &Chunk)>,
        count: impl Fn(&Chunk) -> usize,
        thread_states: &[ThreadState],
        candidates: &Candidates,
        team: &Team,
    ) {
        let mut number = self.store.len() as u32;
        let Store {
            states,
            parents,
            table,
        } = &mut self.store;
        let reservations = states.append(chunks.iter().map(|(_, chunk)| count(chunk)), team);
        let mut work: Vec<(&[FoundCandidate], Vec<_>)> = (thread_states.iter())
            .map(|thread_state| (&*thread_state.candidates_found, vec![]))
            .collect();
        for (&(thread, chunk), reservation) in chunks.iter().zip(reservations) {
            work[thread].1.push((chunk, reservation, number));
            number += count(chunk) as u32;
        }
        let words = self.view.packing.words;
        let parent_map = &*parents;
        let fragments = team.run_in_parallel(work, |(found, chunks)| {
            let mut state = vec![0; words];
            let mut store = |(chunk, mut reservation, mut number): (&Chunk, Reservation, u32)| {
                // Parents count from one in a parent map.
                let mut fragment = parent_map.new_fragment(chunk.parents.start as u64);
                let found = &found[chunk.candidates.clone()];
                for i in 0..found.len() {
                    if let Some(ahead) = found.get(i + PREFETCH_DISTANCE) {
                        table.prefetch_position(ahead.position);
                    }
                    let found = &found[i];
                    if candidates.parent(found.entry) != found.parent {
                        continue;
                    }
                    candidates.read(found.entry, &mut state);
                    reservation.push(&state);
                    table.replace(found.position, number);
                    fragment.append_child((first + found.parent as usize) as u64 + 1);
                    number += 1;
                }
                fragment
            };
            chunks.into_iter().map(&mut store).collect::<Vec<_>>()
        });
        let mut fragments: Vec<_> = fragments.into_iter().map(Vec::into_iter).collect();
        for (thread, _) in chunks {
            if let Some(fragment) = fragments[thread].next() {
                parents.append(&fragment);
            }
        }
        // The last chunks may have exceeded the intended load of the table.
        self.store.reserve(0, team);
    }
}

/// Data shared by the threads.
struct SharedSearchData<'a> {
    /// States known before the stretch; the table also receives candidates.
    store: &'a Store,
    /// Machine code, if it exists.
    kernel: Option<&'a Kernel>,
    /// See [`Worker::guards`].
    guards: Option<&'a Guards>,
    /// New states of all threads.
    candidates: &'a Candidates,
    /// Per chunk: number of candidates that an earlier parent has taken over.
    lost_counts: &'a [AtomicUsize],
    /// First state of the stretch.
    first: usize,
    /// End of the stretch.
    end: usize,
    /// Number of the next chunk to take.
    chunk: AtomicUsize,
    /// True once the table is full: no further chunks are taken.
    table_is_full: AtomicBool,
    /// True if one thread has to repeat the stretch.
    failed: AtomicBool,
    /// See [`Options::cancel`].
    cancel: Option<&'a AtomicBool>,
}

impl SharedSearchData<'_> {
    /// Expands chunks on one thread.
    fn run<K: StorePolicy>(
        &self,
        program: &Program,
        view: &View,
        thread_state: &mut ThreadState,
        table_share: usize,
    ) -> ThreadResults {
        let ThreadState {
            workspace,
            numbers,
            candidates_found,
        } = thread_state;
        let mut worker = Worker::new(program, view);
        worker.guards = self.guards;
        let mut thread = ThreadExpansion {
            policy: PhantomData::<K>,
            shared: self,
            invariant_checker: Worker::new(program, view),
            table_share,
            numbers,
            candidates_found,
            completed: 0,
            results: ThreadResults {
                transitions: 0,
                chunks: Vec::new(),
                entered: 0,
            },
        };
        if !thread.expand(workspace, &mut worker) {
            self.failed.store(true, Ordering::Relaxed);
        }
        thread.results
    }

    /// Takes the next chunk of parents; `None` after the last.
    fn take_chunk(&self) -> Option<Range<usize>> {
        if self.table_is_full.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.chunk.fetch_add(1, Ordering::Relaxed);
        let first = self.first + number * CHUNK;
        (first < self.end).then(|| first..self.end.min(first + CHUNK))
    }
}

/// State of one thread.
struct ThreadExpansion<'a, K> {
    /// Storage policy of the store.
    policy: PhantomData<K>,
    /// Data of all threads.
    shared: &'a SharedSearchData<'a>,
    /// Interpreter that judges invariants if no machine code exists.
    invariant_checker: Worker<'a>,
    /// Number of entries it may put into the table before the table counts as full.
    table_share: usize,
    /// Numbers of candidates that the thread may use.
    numbers: &'a mut CandidateNumbers,
    /// Candidates found in this stretch, in the order of their parents.
    candidates_found: &'a mut Vec<FoundCandidate>,
    /// Number of its completed chunks; later ones are in progress.
    completed: usize,
    /// Results so far, with the chunks taken.
    results: ThreadResults,
}

impl<K: StorePolicy> ThreadExpansion<'_, K> {
    /// Expands chunks until none are left. Returns false if one thread has to repeat the stretch.
    fn expand(&mut self, workspace: &mut Workspace, worker: &mut Worker) -> bool {
        let mut from = self.shared.first;
        loop {
            let interpreted_states = match (self.shared.kernel)
                .map(|kernel| expand_native(kernel, from, worker.view, workspace, self))
            {
                Some(Ok(())) => return true,
                Some(Err(Stop::Interrupted(_))) => return false,
                Some(Err(Stop::NeedsInterpreter(state))) => state..state + 1,
                Some(Err(Stop::NoMachineCode)) | None => match self.next_states(from) {
                    Some(states) => states,
                    None => return true,
                },
            };
            from = interpreted_states.end;
            for state in interpreted_states {
                if self.is_cancelled() || !self.expand_interpreted(state, worker) {
                    return false;
                }
            }
        }
    }

    /// Expands one state with the interpreter. Returns false if one thread has to repeat the stretch.
    fn expand_interpreted(&mut self, state: usize, worker: &mut Worker) -> bool {
        worker.load(self.shared.store, state);
        let result = worker.expand(RuleSelection::All, |worker, _| {
            match self.enter(hash(&worker.child), &worker.child, state) {
                true => Ok(()),
                // Any error ends the expansion.
                false => Err(FailedCheck::Deadlock),
            }
        });
        let Ok(expansion) = result else { return false };
        if !expansion.moves {
            match worker.judge_deadlock() {
                Ok(None) => {}
                Ok(Some(quiescent)) if !worker.view.stop_at_deadlock => {
                    self.results.chunks[self.completed]
                        .deadlocks
                        .push((state, quiescent));
                }
                _ => return false,
            }
        }
        self.complete_parent(state, expansion.transitions);
        true
    }

    /// True if all invariants hold in a state.
    fn satisfies_invariants(&mut self, state: &[u64]) -> bool {
        match self.shared.kernel {
            Some(kernel) => kernel.satisfies_invariants(state),
            None if self.invariant_checker.view.invariants.is_empty() => true,
            None => {
                let packing = &self.invariant_checker.view.packing;
                packing.unpack(state, &mut self.invariant_checker.machine.frame);
                self.invariant_checker.violated_invariant().is_none()
            }
        }
    }
}

impl<K: StorePolicy> Successors for ThreadExpansion<'_, K> {
    type Policy = K;

    #[inline(always)]
    fn store(&self) -> &Store {
        self.shared.store
    }

    #[inline(always)]
    fn next_states(&mut self, from: usize) -> Option<Range<usize>> {
        let chunks = &mut self.results.chunks;
        let mut in_progress = chunks[self.completed..].iter().map(|chunk| &chunk.parents);
        if let Some(parents) = in_progress.find(|parents| from < parents.end) {
            return Some(from.max(parents.start)..parents.end);
        }
        let parents = self.shared.take_chunk()?;
        chunks.push(Chunk {
            parents: parents.clone(),
            candidates: 0..0,
            deadlocks: Vec::new(),
        });
        Some(parents)
    }

    #[inline(always)]
    fn prefetch(&self, entry: u32) {
        match entry & CANDIDATE {
            0 => self.shared.store.states.prefetch(entry),
            _ => self.shared.candidates.prefetch(entry),
        }
    }

    #[inline(always)]
    fn enter(&mut self, hash: u64, state: &[u64], parent: usize) -> bool {
        let SharedSearchData {
            store,
            candidates,
            failed,
            ..
        } = self.shared;
        let Some(new) = candidates.next_entry(self.numbers) else {
            return false;
        };
        let parent = (parent - self.shared.first) as u32;
        let is_equal = |entry: u32| match entry & CANDIDATE {
            0 => store.states.equals::<K>(entry as usize, state),
            _ if candidates.holds_state(entry, state) => true,
            _ => {
                // The choice between two states with equal signatures must not depend on the speed of threads.
                if K::COMPACT && candidates.hash(entry) == hash {
                    failed.store(true, Ordering::Relaxed);
                }
                false
            }
        };
        let write = || candidates.write(new, state, parent);
        let position = match store.table.claim(hash, new, write, is_equal) {
            ClaimResult::New(position) => {
                self.results.entered += 1;
                if self.results.entered > self.table_share {
                    self.shared.table_is_full.store(true, Ordering::Relaxed);
                }
                if !self.satisfies_invariants(state) {
                    self.shared.failed.store(true, Ordering::Relaxed);
                }
                position
            }
            ClaimResult::Known(entry, _) if entry & CANDIDATE == 0 => return true,
            ClaimResult::Known(entry, position) => {
                let Some(earlier_parent) = candidates.record_parent(entry, parent) else {
                    return true;
                };
                self.shared.lost_counts[earlier_parent as usize / CHUNK]
                    .fetch_add(1, Ordering::Relaxed);
                self.candidates_found.push(FoundCandidate {
                    entry,
                    parent,
                    position,
                });
                return true;
            }
            ClaimResult::Full => return false,
        };
        candidates.mark_used(self.numbers);
        self.candidates_found.push(FoundCandidate {
            entry: new,
            parent,
            position,
        });
        true
    }

    #[inline(always)]
    fn complete_parent(&mut self, parent: usize, transitions: u64) {
        self.results.transitions += transitions;
        let (completed_chunks, in_progress) = self.results.chunks.split_at_mut(self.completed);
        let Some(chunk) = in_progress.first_mut() else {
            return;
        };
        if parent + 1 == chunk.parents.end {
            let first = completed_chunks
                .last()
                .map_or(0, |chunk| chunk.candidates.end);
            chunk.candidates = first..self.candidates_found.len();
            self.completed += 1;
        }
    }

    #[inline(always)]
    fn is_cancelled(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_set(&self.shared.failed) || self.shared.cancel.is_some_and(is_set)
    }
}

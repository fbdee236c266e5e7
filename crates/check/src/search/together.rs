//! A stretch of states expanded on several threads.
//!
//! Threads take chunks of the stretch in order, compute successors, and claim places for the new ones in the table,
//! all side by side. A new state is a candidate at first; if two threads find it, the one with the earlier parent stays.
//! When all are through, the candidates get their numbers in the order of their parents, and are stored.
//! If anything is found that has to be reported, all candidates are taken back, and one thread goes over the stretch again.

use super::batch::{swift, Near, Successors};
use super::candidates::{Candidates, Numbers};
use super::*;
use crate::native::Kernel;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

/// Parents that a thread takes at a time.
const CHUNK: usize = if cfg!(debug_assertions) { 16 } else { 256 };

/// How many candidates ahead their places are asked for.
const AHEAD: usize = 16;

/// What threads need besides, kept from stretch to stretch.
pub(super) struct Together {
    candidates: Candidates,
    /// For each thread.
    near: Vec<Near>,
    /// New states per parent to be expected, with a large margin.
    growth: f64,
}

impl Together {
    pub fn new(words: usize) -> Together {
        Together {
            candidates: Candidates::new(words),
            near: Vec::new(),
            growth: 4.0,
        }
    }
}

/// A candidate of a thread.
struct Own {
    entry: u32,
    place: Place,
}

/// A chunk that a thread has expanded.
struct Chunk {
    parents: Range<usize>,
    /// Which of the thread's candidates it led to.
    candidates: Range<usize>,
    /// Deadlocks to be noted, and whether they are quiescent.
    stuck: Vec<(usize, bool)>,
}

/// What a thread has found.
struct Finds {
    transitions: u64,
    own: Vec<Own>,
    chunks: Vec<Chunk>,
    /// How many entries it has put into the table.
    entered: usize,
}

impl Search<'_> {
    /// Expands states from `next` on, at most to `end`, and gives the next one to be expanded.
    /// `None`, with nothing done, if one thread has to do it.
    pub(super) fn together(&mut self, end: usize, threads: usize) -> Option<usize> {
        let mut memory = (self.memory.take()).unwrap_or_else(|| Together::new(self.store.words()));
        memory.candidates.clear();
        let next = self.stretch_together(end, threads, &mut memory);
        self.memory = Some(memory);
        next
    }

    fn stretch_together(
        &mut self,
        end: usize,
        threads: usize,
        memory: &mut Together,
    ) -> Option<usize> {
        let first = self.next;
        let expected = ((end - first) as f64 * memory.growth) as usize;
        (self.store.table).reserve(expected + threads, &self.store.states, threads);
        memory.near.resize_with(threads, Near::default);
        let candidates = &memory.candidates;
        let lost: Vec<AtomicUsize> = (0..(end - first).div_ceil(CHUNK))
            .map(|_| AtomicUsize::new(0))
            .collect();
        let all = All {
            store: &self.store,
            kernel: self.native.as_ref().map(|native| &native.kernel),
            guards: self.guards,
            candidates,
            lost: &lost,
            first,
            end,
            chunk: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            cancel: self.options.cancel,
        };
        let (program, view) = (self.program, self.view);
        let share = self.store.table.left() / threads;
        let finds = side_by_side(memory.near.iter_mut().collect(), |near| {
            all.run(program, view, near, share)
        });
        let closed = all.closing.into_inner();
        let failed = all.failed.into_inner();

        // In the order of their parents, with the thread that has expanded each.
        let mut chunks: Vec<(usize, &Chunk)> = finds
            .iter()
            .enumerate()
            .flat_map(|(thread, finds)| finds.chunks.iter().map(move |chunk| (thread, chunk)))
            .collect();
        chunks.sort_by_key(|(_, chunk)| chunk.parents.start);
        let count = |chunk: &Chunk| {
            let lost = &lost[(chunk.parents.start - first) / CHUNK];
            chunk.candidates.len() - lost.load(Ordering::Relaxed)
        };
        let new: usize = chunks.iter().map(|(_, chunk)| count(chunk)).sum();
        let fits = self.store.len() as u64 + new as u64 <= self.most_states();
        if failed || !fits {
            for own in finds.iter().flat_map(|finds| &finds.own) {
                self.store.table.clear(own.place);
            }
            memory.near.iter_mut().for_each(|near| near.recent.forget());
            return None;
        }
        let next = (chunks.last()).map_or(first, |(_, chunk)| chunk.parents.end);
        // Twice what there was, and twice that where it was not enough.
        let growth = new as f64 / (next - first).max(1) as f64;
        memory.growth = 2.0 * growth * if closed { 2.0 } else { 1.0 };

        for finds in &finds {
            self.transitions += finds.transitions;
            self.store.table.counted(finds.entered);
        }
        for &(state, quiescent) in chunks.iter().flat_map(|(_, chunk)| &chunk.stuck) {
            self.note_deadlock(state, quiescent);
        }
        let mut number = self.store.len() as u32;
        let Store {
            states,
            genealogy,
            table,
        } = &mut self.store;
        let rooms = states.append(chunks.iter().map(|(_, chunk)| count(chunk)));
        let mut work: Vec<(&[Own], Vec<_>)> = finds.iter().map(|f| (&*f.own, vec![])).collect();
        for (&(thread, chunk), room) in chunks.iter().zip(rooms) {
            work[thread].1.push((chunk, room, number));
            number += count(chunk) as u32;
        }
        let words = self.view.packing.words;
        let known = &*genealogy;
        let families = side_by_side(work, |(own, chunks)| {
            let mut state = vec![0; words];
            let mut store = |(chunk, mut room, mut number): (&Chunk, Room, u32)| {
                // Parents count from one in a genealogy.
                let mut family = known.behind(chunk.parents.start as u64);
                let own = &own[chunk.candidates.clone()];
                for i in 0..own.len() {
                    if let Some(ahead) = own.get(i + AHEAD) {
                        table.prefetch_place(ahead.place);
                    }
                    let own = &own[i];
                    if !candidates.stays(own.entry) {
                        continue;
                    }
                    candidates.read(own.entry, &mut state);
                    room.push(&state);
                    table.replace(own.place, number);
                    family.birth(first as u64 + candidates.parent(own.entry) as u64 + 1);
                    number += 1;
                }
                family
            };
            chunks.into_iter().map(&mut store).collect::<Vec<_>>()
        });
        let mut families: Vec<_> = families.into_iter().map(Vec::into_iter).collect();
        for (thread, _) in chunks {
            if let Some(family) = families[thread].next() {
                genealogy.append(&family);
            }
        }
        // Not even the last chunks leave the table full.
        table.reserve(0, states, threads);
        Some(next)
    }
}

/// What the threads share.
struct All<'a> {
    store: &'a Store,
    kernel: Option<&'a Kernel>,
    /// See [`Worker::guards`].
    guards: Option<&'a Guards>,
    candidates: &'a Candidates,
    /// How many candidates of each chunk have given way.
    lost: &'a [AtomicUsize],
    /// The first state of the stretch and the one behind it.
    first: usize,
    end: usize,
    /// The next chunk to be taken.
    chunk: AtomicUsize,
    /// Set when the table gets full: those chunks that are begun are the last.
    closing: AtomicBool,
    /// Set when one thread has to do it.
    failed: AtomicBool,
    cancel: Option<&'a AtomicBool>,
}

impl All<'_> {
    fn run(&self, program: &Program, view: &View, near: &mut Near, share: usize) -> Finds {
        let mut worker = Worker::new(program, view);
        worker.guards = self.guards;
        let mut thread = Thread {
            all: self,
            judge: Worker::new(program, view),
            share,
            numbers: Numbers::default(),
            finds: Finds {
                transitions: 0,
                own: Vec::new(),
                chunks: Vec::new(),
                entered: 0,
            },
        };
        while !self.closing.load(Ordering::Relaxed) {
            if thread.cancelled() {
                self.failed.store(true, Ordering::Relaxed);
                break;
            }
            let number = self.chunk.fetch_add(1, Ordering::Relaxed);
            let first = self.first + number * CHUNK;
            if first >= self.end {
                break;
            }
            let parents = first..self.end.min(first + CHUNK);
            let before = thread.finds.own.len();
            let mut stuck = Vec::new();
            if !thread.expand(parents.clone(), near, &mut worker, &mut stuck) {
                self.failed.store(true, Ordering::Relaxed);
                break;
            }
            thread.finds.chunks.push(Chunk {
                parents,
                candidates: before..thread.finds.own.len(),
                stuck,
            });
        }
        thread.finds
    }
}

/// One of the threads.
struct Thread<'a> {
    all: &'a All<'a>,
    /// Judges the invariants where there is no machine code.
    judge: Worker<'a>,
    /// How many entries it may put into the table before it gets full.
    share: usize,
    numbers: Numbers,
    finds: Finds,
}

impl Thread<'_> {
    /// Expands states in a row; false if something has to be reported.
    fn expand(
        &mut self,
        states: Range<usize>,
        near: &mut Near,
        worker: &mut Worker,
        stuck: &mut Vec<(usize, bool)>,
    ) -> bool {
        let mut next = states.start;
        while next < states.end {
            let plain = match (self.all.kernel)
                .map(|kernel| swift(kernel, next..states.end, worker.view, near, self))
            {
                Some(Ok(())) => return true,
                Some(Err(Stop::Interrupted(_))) => return false,
                Some(Err(Stop::Plain(state))) => state..state + 1,
                Some(Err(Stop::NoMachineCode)) | None => next..states.end,
            };
            next = plain.end;
            for state in plain {
                if self.cancelled() || !self.plain(state, worker, stuck) {
                    return false;
                }
            }
        }
        true
    }

    /// Expands one state with the interpreter.
    fn plain(&mut self, state: usize, worker: &mut Worker, stuck: &mut Vec<(usize, bool)>) -> bool {
        worker.load(self.all.store, state);
        let result = worker.expand(true, |worker, _| {
            match self.enter(hash(&worker.child), &worker.child, state) {
                true => Ok(()),
                // Whatever it is, it ends the expansion.
                false => Err(Broken::Deadlock),
            }
        });
        let Ok(expansion) = result else { return false };
        self.done(state, expansion.transitions);
        if expansion.moves {
            return true;
        }
        match worker.deadlock() {
            Ok(None) => true,
            Ok(Some(quiescent)) if !worker.view.stop_at_deadlock => {
                stuck.push((state, quiescent));
                true
            }
            _ => false,
        }
    }

    /// Whether all invariants hold in a state.
    fn fine(&mut self, state: &[u64]) -> bool {
        match self.all.kernel {
            Some(kernel) => kernel.fine(state),
            None if self.judge.view.invariants.is_empty() => true,
            None => {
                let packing = &self.judge.view.packing;
                packing.unpack(state, &mut self.judge.machine.frame);
                self.judge.broken_invariant().is_none()
            }
        }
    }
}

impl Successors for Thread<'_> {
    #[inline(always)]
    fn store(&self) -> &Store {
        self.all.store
    }

    #[inline(always)]
    fn prefetch(&self, entry: u32) {
        match entry & CANDIDATE {
            0 => self.all.store.states.prefetch(entry),
            _ => self.all.candidates.prefetch(entry),
        }
    }

    #[inline(always)]
    fn enter(&mut self, hash: u64, state: &[u64], parent: usize) -> bool {
        let All {
            store, candidates, ..
        } = *self.all;
        let Some(new) = candidates.next(&mut self.numbers) else {
            return false;
        };
        let parent = (parent - self.all.first) as u32;
        let same = |entry: u32| match entry & CANDIDATE {
            0 => store.states.is(entry as usize, state),
            _ => candidates.is(entry, state),
        };
        let write = || candidates.write(new, state, parent);
        let place = match store.table.claim(hash, new, write, same) {
            Claimed::New(place) => {
                self.finds.entered += 1;
                if self.finds.entered > self.share {
                    self.all.closing.store(true, Ordering::Relaxed);
                }
                if !self.fine(state) {
                    self.all.failed.store(true, Ordering::Relaxed);
                }
                place
            }
            Claimed::Known(entry, place) => {
                let mut entry = entry;
                loop {
                    if entry & CANDIDATE == 0 || candidates.parent(entry) <= parent {
                        return true;
                    }
                    write();
                    match store.table.exchange(place, Some(entry), new) {
                        Ok(()) => break,
                        Err(there) => entry = there,
                    }
                }
                let chunk = candidates.lose(entry) as usize / CHUNK;
                self.all.lost[chunk].fetch_add(1, Ordering::Relaxed);
                place
            }
            Claimed::Full => return false,
        };
        candidates.used(&mut self.numbers);
        self.finds.own.push(Own { entry: new, place });
        true
    }

    #[inline(always)]
    fn done(&mut self, _: usize, transitions: u64) {
        self.finds.transitions += transitions;
    }

    #[inline(always)]
    fn cancelled(&self) -> bool {
        let set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        set(&self.all.failed) || self.all.cancel.is_some_and(set)
    }
}

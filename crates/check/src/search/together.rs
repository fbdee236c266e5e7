//! A stretch of states expanded on several threads.
//!
//! First the successors are computed, in parts of the stretch. Then each thread enters those that belong to
//! its regions of the table, in order; the first of equal ones stays, as a candidate. At last all
//! candidates get their numbers, in the order of their parents, and are stored.
//! If anything is found that has to be reported, the stretch is taken back, and one thread goes over it again.

use super::*;
use crate::native::{exact, with_words, Kernel};
use std::sync::atomic::AtomicUsize;

/// Successors of some states in a row.
#[derive(Default)]
pub(super) struct Part {
    transitions: u64,
    words: Vec<u64>,
    hashes: Vec<u64>,
    /// The successors that belong to each thread.
    shares: Vec<Vec<u32>>,
    /// Where the successors of each parent end.
    ends: Vec<u32>,
    /// A bit for each successor that is new.
    fresh: Vec<u64>,
    /// Deadlocks to be noted, and whether they are quiescent.
    stuck: Vec<(usize, bool)>,
}

/// Parts of a stretch at the most; so many numbers fit beside those of successors in an entry of the table.
const MOST_PARTS: usize = 1 << 7;
const SUCCESSOR_BITS: u32 = 24;

/// Successors that are looked for together.
const BATCH: usize = 32;

impl Part {
    fn clear(&mut self, threads: usize) {
        self.transitions = 0;
        self.words.clear();
        self.hashes.clear();
        self.shares.resize_with(threads, Vec::new);
        self.shares.iter_mut().for_each(Vec::clear);
        self.ends.clear();
        self.stuck.clear();
    }

    /// Closes the row of the last parent's successors: finds their hashes and to whom they belong.
    #[inline(always)]
    fn hash(&mut self, words: usize) {
        let threads = self.shares.len();
        let known = self.hashes.len() * words;
        for child in self.words[known..].chunks_exact(words.max(1)) {
            let hash = hash(child);
            self.shares[owner(region_of(hash), threads)].push(self.hashes.len() as u32);
            self.hashes.push(hash);
        }
        self.ends.push(self.hashes.len() as u32);
    }
}

impl Search<'_> {
    /// Expands the states from `next` to `end`. False, with nothing done, if one thread has to do it.
    pub(super) fn together(&mut self, end: usize, threads: usize) -> bool {
        let count = (threads * 4).min(MOST_PARTS);
        let mut parts = std::mem::take(&mut self.parts);
        parts.resize_with(count, Part::default);
        let done =
            self.expand_parts(end, threads, &mut parts) && self.enter_parts(threads, &mut parts);
        if done {
            for part in &parts {
                self.transitions += part.transitions;
                for &(state, quiescent) in &part.stuck {
                    self.note_deadlock(state, quiescent);
                }
            }
        }
        self.parts = parts;
        done
    }

    /// Computes the successors; false if something has to be reported.
    fn expand_parts(&self, end: usize, threads: usize, parts: &mut [Part]) -> bool {
        let size = (end - self.next).div_ceil(parts.len());
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let places: Vec<_> = parts.iter_mut().map(std::sync::Mutex::new).collect();
        let expander = Expander {
            store: &self.store,
            program: self.program,
            view: self.view,
            kernel: self.native.as_ref().map(|native| &native.kernel),
        };
        let cancelled = || {
            self.options
                .cancel
                .is_some_and(|c| c.load(Ordering::Relaxed))
        };
        let first_state = self.next;
        side_by_side(vec![(); threads], |()| {
            let mut worker = Worker::new(expander.program, expander.view);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(Ok(mut part)) = places.get(number).map(|place| place.try_lock()) else {
                    return;
                };
                part.clear(threads);
                let first = end.min(first_state + number * size);
                let states = first..end.min(first + size);
                let fine = expander.expand(states, &mut worker, &mut part);
                let many = part.hashes.len() >> SUCCESSOR_BITS > 0;
                if !fine || many || cancelled() {
                    stop.store(true, Ordering::Relaxed);
                }
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        !stop.into_inner()
    }

    /// Enters what is new; false, with nothing entered, if something has to be reported.
    fn enter_parts(&mut self, threads: usize, parts: &mut [Part]) -> bool {
        let words = self.view.packing.words;
        let (program, view) = (self.program, self.view);
        let kernel = self.native.as_ref().map(|native| &native.kernel);
        let room = self.most_states() - self.store.len() as u64;
        let Store {
            states,
            genealogy,
            regions,
        } = &mut self.store;

        let all = Entering {
            states,
            parts,
            words,
            kernel,
        };
        let owned = side_by_side(shares(regions, threads), |share| {
            all.enter(share, || Worker::new(program, view))
        });
        let new: usize = owned.iter().map(|owned| owned.fresh.len()).sum();
        if new as u64 > room || owned.iter().any(|owned| owned.broken) {
            side_by_side(shares(regions, threads), |share| {
                let forget = |region: &mut Region| region.forget_candidates(&all);
                share.regions.iter_mut().for_each(forget);
            });
            return false;
        }

        // Numbers are given in the order of the parts and of the successors in them.
        for part in parts.iter_mut() {
            part.fresh.clear();
            part.fresh.resize(part.hashes.len().div_ceil(64), 0);
        }
        for &entry in owned.iter().flat_map(|owned| &owned.fresh) {
            let (part, i) = place(entry);
            parts[part].fresh[i / 64] |= 1 << (i % 64);
        }
        let mut number = states.len() as u32;
        let mut firsts = Vec::new();
        let mut before: Vec<Vec<u32>> = Vec::new();
        for part in parts.iter() {
            firsts.push(number);
            let count = |bits: &u64| {
                number += bits.count_ones();
                number - bits.count_ones()
            };
            before.push(part.fresh.iter().map(count).collect());
        }
        let parent = self.next;
        let mut parent = parent as u64;
        for part in parts.iter() {
            let mut first = 0;
            for &end in &part.ends {
                parent += 1;
                for i in first as usize..end as usize {
                    if part.fresh[i / 64] >> (i % 64) & 1 != 0 {
                        genealogy.birth(parent);
                    }
                }
                first = end;
            }
        }
        let counts = (firsts.iter().zip(firsts.iter().skip(1).chain([&number])))
            .map(|(first, next)| (next - first) as usize);
        let places = states.append(counts);
        let (parts, before) = (&*parts, &before);
        let mut work: Vec<(Share, Vec<_>, &Owned)> = (shares(regions, threads).into_iter())
            .zip(&owned)
            .map(|(share, owned)| (share, Vec::new(), owned))
            .collect();
        for (i, storing) in parts.iter().zip(places).enumerate() {
            work[i % threads].1.push(storing);
        }
        side_by_side(work, |(mut share, storing, owned)| {
            for (part, mut place) in storing {
                for (i, &bits) in part.fresh.iter().enumerate() {
                    let mut bits = bits;
                    while bits != 0 {
                        let child = i * 64 + bits.trailing_zeros() as usize;
                        place.push(&part.words[child * words..(child + 1) * words]);
                        bits &= bits - 1;
                    }
                }
            }
            for &entry in &owned.fresh {
                let (part, i) = place(entry);
                let earlier = parts[part].fresh[i / 64] & ((1 << (i % 64)) - 1);
                let number = before[part][i / 64] + earlier.count_ones();
                let hash = parts[part].hashes[i];
                share.region(hash).replace(hash, entry, number);
            }
        });
        true
    }
}

/// Part and place in it of a candidate.
fn place(entry: u32) -> (usize, usize) {
    let candidate = (entry & !CANDIDATE) as usize;
    let mask = (1 << SUCCESSOR_BITS) - 1;
    (candidate >> SUCCESSOR_BITS, candidate & mask)
}

/// The thread that fills a region.
#[inline(always)]
fn owner(region: usize, threads: usize) -> usize {
    region * threads / REGIONS
}

/// The regions that one thread fills, which lie in a row.
struct Share<'a> {
    own: usize,
    /// Number of the first region.
    first: usize,
    regions: &'a mut [Region],
}

impl Share<'_> {
    #[inline(always)]
    fn region(&mut self, hash: u64) -> &mut Region {
        &mut self.regions[region_of(hash) - self.first]
    }
}

fn shares(regions: &mut [Region], threads: usize) -> Vec<Share<'_>> {
    let mut shares = Vec::new();
    let mut rest = regions;
    let mut first = 0;
    for own in 0..threads {
        let end = (first..REGIONS).find(|&region| owner(region, threads) > own);
        let count = end.unwrap_or(REGIONS) - first;
        let (regions, behind) = rest.split_at_mut(count);
        rest = behind;
        shares.push(Share {
            own,
            first,
            regions,
        });
        first += count;
    }
    shares
}

/// What computing successors needs.
struct Expander<'a> {
    store: &'a Store,
    program: &'a Program,
    view: &'a View,
    kernel: Option<&'a Kernel>,
}

impl Expander<'_> {
    /// Expands states in a row; false if something has to be reported.
    fn expand(&self, states: std::ops::Range<usize>, worker: &mut Worker, part: &mut Part) -> bool {
        let words = self.view.packing.words;
        match self.kernel {
            None => {
                for state in states {
                    if !self.plain(state, worker, part) {
                        return false;
                    }
                    part.hash(words);
                }
                true
            }
            Some(kernel) => {
                let done = with_words!(words, W, self.swift::<W>(kernel, states, worker, part));
                done.unwrap_or(false)
            }
        }
    }

    fn swift<const W: usize>(
        &self,
        kernel: &Kernel,
        states: std::ops::Range<usize>,
        worker: &mut Worker,
        part: &mut Part,
    ) -> bool {
        let words = exact::<W>(self.view.packing.words);
        // Words behind the state stay zero.
        let mut parent = [0; W];
        for state in states {
            self.store.states.read(state, &mut parent[..words]);
            let before = part.words.len();
            let reach = |child: &[u64; W]| {
                let mut child = *child;
                let stored = &mut child[..words];
                (self.view).canonicalise(stored, &mut worker.scratch);
                part.words.extend_from_slice(stored);
            };
            match kernel.expand(&parent, true, reach) {
                Ok(fired) if fired.moves || self.view.deadlock == Deadlock::Off => {
                    part.transitions += fired.transitions;
                }
                _ => {
                    part.words.truncate(before);
                    if !self.plain(state, worker, part) {
                        return false;
                    }
                }
            }
            part.hash(words);
        }
        true
    }

    /// Expands one state with the interpreter.
    fn plain(&self, state: usize, worker: &mut Worker, part: &mut Part) -> bool {
        worker.load(self.store, state);
        let words = &mut part.words;
        let result = worker.expand(true, |worker, _| {
            words.extend_from_slice(&worker.child);
            Ok(())
        });
        let Ok(expansion) = result else { return false };
        part.transitions += expansion.transitions;
        if expansion.moves {
            return true;
        }
        match worker.deadlock() {
            Ok(None) => true,
            Ok(Some(quiescent)) if !self.view.stop_at_deadlock => {
                part.stuck.push((state, quiescent));
                true
            }
            _ => false,
        }
    }
}

/// All successors of a stretch, to be entered.
struct Entering<'a> {
    states: &'a States,
    parts: &'a [Part],
    words: usize,
    kernel: Option<&'a Kernel>,
}

/// What one thread has entered.
#[derive(Default)]
struct Owned {
    /// Entries of the candidates.
    fresh: Vec<u32>,
    /// Whether one of them breaks an invariant.
    broken: bool,
}

impl Hashes for Entering<'_> {
    fn prefetch(&self, entry: u32) {
        if entry & CANDIDATE == 0 {
            self.states.prefetch(entry);
        }
    }

    fn hash(&self, entry: u32) -> u64 {
        match entry & CANDIDATE {
            0 => self.states.hash(entry),
            _ => {
                let (part, i) = place(entry);
                self.parts[part].hashes[i]
            }
        }
    }
}

impl Entering<'_> {
    fn state(&self, part: usize, i: usize) -> &[u64] {
        &self.parts[part].words[i * self.words..(i + 1) * self.words]
    }

    fn same(&self, entry: u32, state: &[u64]) -> bool {
        match entry & CANDIDATE {
            0 => self.states.is(entry as usize, state),
            _ => {
                let (part, i) = place(entry);
                self.state(part, i) == state
            }
        }
    }

    /// Enters the successors that belong to a share, and judges the invariants of the new ones.
    fn enter<'w>(&self, mut share: Share, worker: impl Fn() -> Worker<'w>) -> Owned {
        let mut owned = Owned::default();
        let mut worker = worker();
        for (number, part) in self.parts.iter().enumerate() {
            for batch in part.shares[share.own].chunks(BATCH) {
                for &i in batch {
                    let hash = part.hashes[i as usize];
                    share.region(hash).prefetch(hash);
                }
                for &i in batch {
                    let hash = part.hashes[i as usize];
                    let guess = share.region(hash).guess(hash);
                    if let Some(state) = guess.filter(|entry| entry & CANDIDATE == 0) {
                        self.states.prefetch(state);
                    }
                }
                for &i in batch {
                    let hash = part.hashes[i as usize];
                    let region = share.region(hash);
                    let state = self.state(number, i as usize);
                    region.reserve(self);
                    if let Err(free) = region.find(hash, |entry| self.same(entry, state)) {
                        let entry = CANDIDATE | (number as u32) << SUCCESSOR_BITS | i;
                        region.fill(free, hash, entry);
                        owned.fresh.push(entry);
                        owned.broken |= !self.fine(state, &mut worker);
                    }
                }
            }
        }
        owned
    }

    /// Whether all invariants hold in a state.
    fn fine(&self, state: &[u64], worker: &mut Worker) -> bool {
        match self.kernel {
            Some(kernel) => kernel.fine(state),
            None if worker.view.invariants.is_empty() => true,
            None => {
                let packing = &worker.view.packing;
                packing.unpack(state, &mut worker.machine.frame);
                worker.broken_invariant().is_none()
            }
        }
    }
}

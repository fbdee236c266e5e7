//! Exploration of two levels with interned states.
//!
//! A step at an outer cache, or below it, depends on the outer state and on the one inner state below. Its only effect
//! on the other inner states is to make their copies stale. Outer and inner states are therefore interned, and the
//! steps of each pair are computed once. The explored states are rows: the index of the outer state, and that of each
//! inner state. Caches below one outer cache are symmetric, and so are the outer caches together with the systems below
//! them. One row represents all rows that differ only by such a permutation.

use rustc_hash::FxHashMap;
use std::rc::Rc;

use super::explore::{Found, SearchState};
use super::levels::{judge, rights, Clusters, LevelPermissions, LevelStep, Levels, Shared};
use super::{System, World, Wrong};
use crate::agent::Violation;
use crate::interner::Rows;
use cohkit_protocol::protocol::Right;

/// Limits and options of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Maximum number of rows to visit.
    pub most: usize,
    /// True to identify rows that differ only in the numbers of caches.
    pub symmetry: bool,
}

/// Explores two levels, and stops at `search.most` rows or when `go_on` returns false. The result contains no states.
pub fn explore_levels(
    levels: &Levels,
    search: Search,
    go_on: &mut dyn FnMut() -> bool,
) -> Found<(), LevelStep> {
    let mut joint = ProductSearch::new(levels, search.symmetry);
    joint.explore(search.most, go_on)
}

/// Interned states of one sort, each with properties that are computed once.
struct Parts<A> {
    worlds: Vec<Rc<World<Shared>>>,
    numbers: FxHashMap<Rc<World<Shared>>, u32>,
    about: Vec<A>,
}

impl<A> Parts<A> {
    fn new() -> Parts<A> {
        Parts {
            worlds: Vec::new(),
            numbers: FxHashMap::default(),
            about: Vec::new(),
        }
    }

    fn number(&mut self, world: World<Shared>, about: impl FnOnce(&World<Shared>) -> A) -> u32 {
        if let Some(&number) = self.numbers.get(&world) {
            return number;
        }
        let number = self.worlds.len() as u32;
        self.about.push(about(&world));
        let world = Rc::new(world);
        self.worlds.push(Rc::clone(&world));
        self.numbers.insert(world, number);
        number
    }
}

/// Properties of an outer state.
struct UpperLevel {
    quiescent: bool,
    /// Per line, the permissions of the caches.
    rights: Vec<Vec<Right>>,
    /// Per cache, one bit per line: set if the copy is current.
    copies: Vec<u8>,
}

/// Properties of an inner state.
struct LowerLevel {
    quiescent: bool,
    /// Combined permissions per line.
    held: Vec<LevelPermissions>,
}

/// A step at an outer cache or below it, with its successors.
struct Move {
    step: LevelStep,
    outer: u32,
    inner: u32,
    /// The line that the step writes.
    wrote: Option<u8>,
}

/// All steps at an outer cache and below it, and their violations.
struct Moves {
    good: Vec<Move>,
    wrong: Vec<(LevelStep, Wrong)>,
}

struct ProductSearch<'l, 'p> {
    levels: &'l Levels<'p>,
    clusters: u8,
    outer: Parts<UpperLevel>,
    inner: Parts<LowerLevel>,
    /// Steps of an outer state that run no row of a cache.
    at_home: FxHashMap<u32, Rc<Moves>>,
    /// Steps at an outer cache and below it, by outer state, inner state and the cache's number.
    at_cache: FxHashMap<(u32, u32, u8), Rc<Moves>>,
    /// Inner states after a write of a line below another outer cache.
    mark_stale: FxHashMap<(u32, u8), u32>,
    /// Inner states with a different memory, by the bits of the lines that are current in it.
    with_memory: FxHashMap<(u32, u8), u32>,
    /// Representative of each inner state under permutation of its caches.
    alike: FxHashMap<u32, u32>,
    /// Outer states with permuted caches, by the index of the permutation.
    permuted: FxHashMap<(u32, u8), u32>,
    /// Permutations of the outer caches, and of the caches below one of them.
    orders: [Vec<Vec<u8>>; 2],
    /// Placeholder for an inner state that a step does not read.
    placeholder: World<Shared>,
}

/// All permutations of a system's remotes, the identity first. Only the identity if the remotes have several kinds or
/// are more than four, or without symmetry.
fn orders(system: &System, symmetry: bool) -> Vec<Vec<u8>> {
    let count = system.remotes;
    let mut all = vec![vec![]];
    if !symmetry || system.protocol.kinds.len() > 1 || count > 4 {
        return vec![(0..count).collect()];
    }
    for next in 0..count {
        let longer = all.iter().flat_map(|order: &Vec<u8>| {
            (0..=order.len()).rev().map(move |place| {
                let mut order = order.clone();
                order.insert(place, next);
                order
            })
        });
        all = longer.collect();
    }
    all
}

impl<'l, 'p> ProductSearch<'l, 'p> {
    fn new(levels: &'l Levels<'p>, symmetry: bool) -> ProductSearch<'l, 'p> {
        ProductSearch {
            clusters: levels.outer.remotes,
            outer: Parts::new(),
            inner: Parts::new(),
            at_home: FxHashMap::default(),
            at_cache: FxHashMap::default(),
            mark_stale: FxHashMap::default(),
            with_memory: FxHashMap::default(),
            alike: FxHashMap::default(),
            permuted: FxHashMap::default(),
            orders: [&levels.outer, &levels.inner].map(|system| orders(system, symmetry)),
            placeholder: World::new(&levels.inner),
            levels,
        }
    }

    fn intern_outer(&mut self, world: World<Shared>) -> u32 {
        let system = &self.levels.outer;
        self.outer.number(world, |world| UpperLevel {
            quiescent: world.quiescent(system),
            rights: (0..system.lines)
                .map(|line| rights(world, system, line))
                .collect(),
            copies: (0..usize::from(system.remotes))
                .map(|remote| {
                    let lines = (0..).zip(&world.lines);
                    let bits = lines.map(|(l, line)| u8::from(line.remotes[remote].copy) << l);
                    bits.sum()
                })
                .collect(),
        })
    }

    fn intern_inner(&mut self, world: World<Shared>) -> u32 {
        let system = &self.levels.inner;
        self.inner.number(world, |world| LowerLevel {
            quiescent: world.quiescent(system),
            held: (0..system.lines)
                .map(|line| LevelPermissions::of(world, system, line))
                .collect(),
        })
    }

    /// The initial row.
    fn begin(&mut self) -> Vec<u32> {
        let begin: Clusters = Clusters::new(self.levels);
        let mut row = vec![self.intern_outer(begin.outer)];
        for inner in begin.inner {
            row.push(self.intern_inner(inner));
        }
        row
    }

    /// Steps of an outer state that run no row of a cache.
    fn at_home(&mut self, outer: u32) -> Rc<Moves> {
        if let Some(known) = self.at_home.get(&outer) {
            return Rc::clone(known);
        }
        let below = vec![self.placeholder.clone(); usize::from(self.clusters)];
        let clusters = Clusters {
            outer: World::clone(&self.outer.worlds[outer as usize]),
            inner: below,
        };
        let steps = clusters.outer.steps(&self.levels.outer).into_iter();
        let steps = steps.filter(|&step| clusters.at(step).is_none());
        let moves = Rc::new(self.moves(&clusters, 0, steps.map(LevelStep::Outer).collect()));
        self.at_home.insert(outer, Rc::clone(&moves));
        moves
    }

    /// Steps at an outer cache, and in the system below it.
    fn at_cache(&mut self, outer: u32, inner: u32, number: u8) -> Rc<Moves> {
        if let Some(known) = self.at_cache.get(&(outer, inner, number)) {
            return Rc::clone(known);
        }
        let mut below = vec![self.placeholder.clone(); usize::from(self.clusters)];
        below[usize::from(number)] = World::clone(&self.inner.worlds[inner as usize]);
        let clusters = Clusters {
            outer: World::clone(&self.outer.worlds[outer as usize]),
            inner: below,
        };
        let above = clusters.outer.steps(&self.levels.outer).into_iter();
        let its = above.filter(|&step| clusters.at(step).is_some_and(|(at, _)| at == number));
        let mut steps: Vec<LevelStep> = its.map(LevelStep::Outer).collect();
        let own = clusters.inner[usize::from(number)].steps(&self.levels.inner);
        steps.extend(own.into_iter().map(|step| LevelStep::Inner(number, step)));
        let moves = Rc::new(self.moves(&clusters, number, steps));
        self.at_cache
            .insert((outer, inner, number), Rc::clone(&moves));
        moves
    }

    fn moves(&mut self, clusters: &Clusters, number: u8, steps: Vec<LevelStep>) -> Moves {
        let mut moves = Moves {
            good: Vec::new(),
            wrong: Vec::new(),
        };
        for step in steps {
            let mut next = clusters.clone();
            let taken = match step {
                LevelStep::Outer(step) => next.take_outer(self.levels, step).map(|t| (t, None)),
                LevelStep::Inner(number, step) => {
                    next.take_inner(self.levels, number, step, &mut Vec::new())
                }
            };
            match taken {
                Ok((false, _)) => {}
                Ok((true, wrote)) => {
                    let inner = next.inner.swap_remove(usize::from(number));
                    moves.good.push(Move {
                        step,
                        outer: self.intern_outer(next.outer),
                        inner: self.intern_inner(inner),
                        wrote,
                    });
                }
                Err(wrong) => moves.wrong.push((step, wrong)),
            }
        }
        moves
    }

    /// An inner state after a write of a line below another outer cache.
    fn mark_stale(&mut self, inner: u32, line: u8) -> u32 {
        if let Some(&known) = self.mark_stale.get(&(inner, line)) {
            return known;
        }
        let mut world = World::clone(&self.inner.worlds[inner as usize]);
        world.age(&self.levels.inner, line, true);
        let number = self.intern_inner(world);
        self.mark_stale.insert((inner, line), number);
        number
    }

    /// An inner state with this memory: a bit per line, set if the line is current in the outer copy.
    fn with_memory(&mut self, inner: u32, copies: u8) -> u32 {
        if let Some(&known) = self.with_memory.get(&(inner, copies)) {
            return known;
        }
        let mut world = World::clone(&self.inner.worlds[inner as usize]);
        for (line, place) in world.lines.iter_mut().enumerate() {
            place.memory = copies >> line & 1 != 0;
        }
        let number = self.intern_inner(world);
        self.with_memory.insert((inner, copies), number);
        number
    }

    /// Calls `each` with every successor of a row and its step. Returns the steps that violate a property.
    fn successors(
        &mut self,
        row: &[u32],
        each: &mut dyn FnMut(&mut Self, &[u32], LevelStep),
    ) -> Vec<(LevelStep, Wrong)> {
        let mut wrong = Vec::new();
        let mut next = row.to_vec();
        let home = self.at_home(row[0]);
        wrong.extend(home.wrong.iter().cloned());
        for step in &home.good {
            next.copy_from_slice(row);
            next[0] = step.outer;
            self.join(row[0], &mut next, None);
            each(self, &next, step.step);
        }
        for number in 0..self.clusters {
            let own = usize::from(number) + 1;
            let moves = self.at_cache(row[0], row[own], number);
            wrong.extend(moves.wrong.iter().cloned());
            for step in &moves.good {
                next.copy_from_slice(row);
                (next[0], next[own]) = (step.outer, step.inner);
                if let Some(line) = step.wrote {
                    for other in (1..row.len()).filter(|&other| other != own) {
                        next[other] = self.mark_stale(next[other], line);
                    }
                }
                self.join(row[0], &mut next, Some(own));
                each(self, &next, step.step);
            }
        }
        wrong
    }

    /// Updates the memory of the inner states to the outer copies, except below `own`, which is up to date.
    fn join(&mut self, before: u32, row: &mut [u32], own: Option<usize>) {
        for other in (1..row.len()).filter(|&other| Some(other) != own) {
            let copies = |outer: u32| self.outer.about[outer as usize].copies[other - 1];
            let (old, new) = (copies(before), copies(row[0]));
            if old != new {
                row[other] = self.with_memory(row[other], new);
            }
        }
    }

    /// Replaces a row by its representative under permutation of the caches.
    fn replace_by_representative(&mut self, row: &mut Vec<u32>) {
        if self.orders[1].len() > 1 {
            for inner in &mut row[1..] {
                *inner = self.inner_representative(*inner);
            }
        }
        let mut least: Option<Vec<u32>> = None;
        for order in 1..self.orders[0].len() {
            let mut other = vec![0; row.len()];
            for (cache, &number) in self.orders[0][order].iter().enumerate() {
                other[usize::from(number) + 1] = row[cache + 1];
            }
            // The outer states decide only between equal inner states, so they are seldom permuted.
            let best = least.as_deref().unwrap_or(row);
            if other[1..] > best[1..] {
                continue;
            }
            other[0] = self.permuted_outer(row[0], order);
            let best = least.as_deref().unwrap_or(row);
            if (&other[1..], other[0]) < (&best[1..], best[0]) {
                least = Some(other);
            }
        }
        if let Some(least) = least {
            *row = least;
        }
    }

    fn inner_representative(&mut self, inner: u32) -> u32 {
        if let Some(&known) = self.alike.get(&inner) {
            return known;
        }
        let world = Rc::clone(&self.inner.worlds[inner as usize]);
        let all: Vec<u32> = (0..self.orders[1].len())
            .map(|order| {
                let permuted = world.permuted(&self.levels.inner, &self.orders[1][order]);
                self.intern_inner(permuted)
            })
            .collect();
        let least = all.iter().copied().min().unwrap_or(inner);
        for other in all {
            self.alike.insert(other, least);
        }
        least
    }

    fn permuted_outer(&mut self, outer: u32, order: usize) -> u32 {
        let key = (outer, order as u8);
        if let Some(&known) = self.permuted.get(&key) {
            return known;
        }
        let world = Rc::clone(&self.outer.worlds[outer as usize]);
        let permuted = world.permuted(&self.levels.outer, &self.orders[0][order]);
        let number = self.intern_outer(permuted);
        self.permuted.insert(key, number);
        number
    }

    fn claims(&self, row: &[u32]) -> Result<(), Violation> {
        let above = &self.outer.about[row[0] as usize].rights;
        for (line, above) in above.iter().enumerate() {
            let below = row[1..].iter();
            judge(
                above,
                below.map(|&inner| self.inner.about[inner as usize].held[line]),
            )?;
        }
        Ok(())
    }

    fn quiescent(&self, row: &[u32]) -> bool {
        let mut below = row[1..].iter();
        self.outer.about[row[0] as usize].quiescent
            && below.all(|&inner| self.inner.about[inner as usize].quiescent)
    }

    fn explore(&mut self, most: usize, go_on: &mut dyn FnMut() -> bool) -> Found<(), LevelStep> {
        let mut first = self.begin();
        let begin = first.clone();
        self.replace_by_representative(&mut first);
        let mut rows = Rows::default();
        rows.add(&first);
        // Predecessor of each row, and the successors by steps that must happen.
        let mut from = vec![0u32];
        let mut must: Vec<u32> = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        let (mut level, mut depth, mut transitions) = (0, 0, 0u64);
        let mut row = first.clone();
        loop {
            let last = rows.len();
            let mut wrong: Vec<(Wrong, usize, Option<LevelStep>)> = Vec::new();
            for number in level..last {
                if let Err(broken) = self.claims(rows.row(number)) {
                    wrong.push((broken.into(), number, None));
                }
            }
            if wrong.is_empty() {
                for number in level..last {
                    if number % 1024 == 0 && !go_on() {
                        return Found::TooMany { worlds: last };
                    }
                    row.copy_from_slice(rows.row(number));
                    let met = self.successors(&row, &mut |joint, next, step| {
                        transitions += 1;
                        let mut next = next.to_vec();
                        joint.replace_by_representative(&mut next);
                        let (to, new) = rows.add(&next);
                        if new {
                            from.push(number as u32);
                        }
                        if !<Clusters>::spontaneous(step) {
                            must.push(to as u32);
                        }
                    });
                    ends.push(must.len());
                    wrong.extend(
                        met.into_iter()
                            .map(|(step, what)| (what, number, Some(step))),
                    );
                    if rows.len() > most {
                        return Found::TooMany { worlds: rows.len() };
                    }
                }
                if !wrong.is_empty() {
                    // Claims violated by rows that were found before the level ended are at the same distance.
                    for number in last..rows.len() {
                        if let Err(broken) = self.claims(rows.row(number)) {
                            wrong.push((broken.into(), number, None));
                        }
                    }
                }
            }
            if let Some((what, number, step)) = wrong.first().cloned() {
                let way = self.way(begin, &rows, &from, number, step.map(|step| (step, what)));
                let what = wrong.into_iter().map(|(what, ..)| what).collect();
                return Found::Wrong { what, way };
            }
            if rows.len() == last {
                break;
            }
            level = last;
            depth += 1;
        }
        let lost = self.lost(&rows, &must, &ends);
        Found::Safe {
            lost: lost.map(|number| self.way(begin, &rows, &from, number, None)),
            worlds: vec![(); rows.len()],
            transitions,
            depth,
        }
    }

    /// The first row, if any, from which steps that must happen do not reach quiescence.
    fn lost(&self, rows: &Rows, must: &[u32], ends: &[usize]) -> Option<usize> {
        let mut saved: Vec<bool> = (0..rows.len())
            .map(|n| self.quiescent(rows.row(n)))
            .collect();
        loop {
            let mut more = false;
            // Most rows lead to rows of a higher index.
            for number in (0..rows.len()).rev() {
                if saved[number] {
                    continue;
                }
                let begin = if number == 0 { 0 } else { ends[number - 1] };
                let mut to = must[begin..ends[number]].iter();
                if to.any(|&to| saved[to as usize]) {
                    saved[number] = true;
                    more = true;
                }
            }
            if !more {
                return saved.iter().position(|&saved| !saved);
            }
        }
    }

    /// A path to a row or to one that it represents, followed by a step with the violation `then`. Rows are
    /// representatives, so the path is found by replaying the search with concrete rows.
    fn way(
        &mut self,
        begin: Vec<u32>,
        rows: &Rows,
        from: &[u32],
        number: usize,
        then: Option<(LevelStep, Wrong)>,
    ) -> Vec<LevelStep> {
        let mut along = vec![number];
        while let Some(&number) = along.last().filter(|&&number| number > 0) {
            along.push(from[number] as usize);
        }
        let mut way = Vec::new();
        let mut at = begin;
        for &number in along.iter().rev().skip(1) {
            let mut found = None;
            self.successors(&at, &mut |joint, next, step| {
                if found.is_none() {
                    let mut other = next.to_vec();
                    joint.replace_by_representative(&mut other);
                    if other == rows.row(number) {
                        found = Some((step, next.to_vec()));
                    }
                }
            });
            // Symmetric rows have symmetric successors.
            let Some((step, next)) = found else { break };
            way.push(step);
            at = next;
        }
        if let Some((step, what)) = then {
            let wrong = self.successors(&at, &mut |_, _, _| {});
            let its = wrong.iter().find(|(_, other)| *other == what);
            way.push(its.map_or(step, |(step, _)| *step));
        }
        way
    }
}

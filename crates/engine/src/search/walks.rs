//! Random walks, for models that are too large to be searched.
//!
//! A walk begins in a start state and takes one step after the other, each of those that lead to a different
//! state being as likely, until none does or it is long enough. Everything that one step can do from a state on the
//! way is judged, not only the step that is taken.
//!
//! Which way a walk takes depends on the seed and its number alone, and what threads find is put together in the order of
//! the numbers. So the report does not depend on the number of threads.

use super::*;
use crate::native::{with_words, Kernel};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// States that are told apart at the most; more are not counted.
const MOST_TOLD_APART: usize = 1 << 22;

/// Walks of each thread between two looks at what has been found.
const ROUND: usize = 4;

/// How to walk.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub seed: u64,
    /// Steps of all walks together; the one at hand then is ended.
    pub steps: u64,
    /// Most steps of one walk.
    pub length: u64,
}

/// What all walks came to.
pub(crate) struct Walked {
    /// Never [`Verdict::Holds`].
    pub verdict: Verdict,
    pub walks: u64,
    pub steps: u64,
    /// Rules fired, those included that were only tried.
    pub transitions: u64,
    /// Steps of the longest walk.
    pub longest: u64,
    /// Different states on the way.
    pub states: u64,
    /// Whether these are all, and not only those that could be told apart.
    pub counted: bool,
    /// The numbers of the rules that fired.
    pub fired: FxHashSet<u32>,
    /// Bytes for states.
    pub memory: u64,
}

/// What one walk came to.
struct Walk {
    path: Path,
    /// What ends it, but for its length.
    broken: Option<Event>,
    transitions: u64,
    /// Hashes of the states on the way.
    hashes: Vec<u64>,
}

/// A step from the state at hand.
struct Next {
    rule: u32,
    /// Where its state begins among those of all steps.
    at: usize,
}

/// Walks until there are enough steps or something is found.
pub(crate) fn walk(program: &Program, view: &View, plan: &Plan, options: &Options) -> Walked {
    let frame = Worker::new(program, view).machine.frame;
    let effort = match plan.steps < WORTH_OPTIMISING as u64 {
        true => Effort::Quick,
        false => Effort::Thorough,
    };
    let native = match options.engine {
        Engine::Interpreter => None,
        Engine::Adaptive | Engine::Native => {
            Native::new(program, view, &frame, effort, options.threads)
        }
    };
    let threads = options.threads.max(1);
    let walkers = (0..threads).map(|_| Walker {
        worker: Worker::new(program, view),
        kernel: native.as_ref().map(|native| &native.kernel),
        plan: *plan,
        cancel: options.cancel,
        fired: FxHashSet::default(),
        nexts: Vec::new(),
        states: Vec::new(),
    });
    let mut walkers: Vec<Walker> = walkers.collect();
    let mut seen: FxHashSet<u64> = FxHashSet::default();
    let mut walked = Walked {
        verdict: Verdict::Undecided(Reason::MaxSteps),
        walks: 0,
        steps: 0,
        transitions: 0,
        longest: 0,
        states: 0,
        counted: true,
        fired: FxHashSet::default(),
        memory: 0,
    };
    let (began, mut told) = (Instant::now(), Instant::now());
    let mut spent = 0;
    'rounds: while spent < plan.steps {
        let first = walked.walks;
        let shares: Vec<(usize, &mut Walker)> = walkers.iter_mut().enumerate().collect();
        let round = side_by_side(shares, |(share, walker)| {
            let numbers = (0..ROUND).map(|i| first + (i * threads + share) as u64);
            let walks = numbers.map(|number| {
                let walk = walker.walk(number);
                (walk, std::mem::take(&mut walker.fired))
            });
            walks.collect::<Vec<_>>()
        });
        if options.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            walked.verdict = Verdict::Undecided(Reason::Interrupted);
            break;
        }
        let mut round: Vec<_> = round.into_iter().map(Vec::into_iter).collect();
        for number in 0..ROUND * threads {
            let Some((walk, fired)) = round[number % threads].next() else {
                break;
            };
            let steps = walk.path.rules.len() as u64;
            walked.walks += 1;
            walked.steps += steps;
            walked.transitions += walk.transitions;
            walked.longest = walked.longest.max(steps);
            walked.fired.extend(fired);
            for hash in walk.hashes {
                match seen.len() < MOST_TOLD_APART {
                    true => _ = seen.insert(hash),
                    false => walked.counted &= seen.contains(&hash),
                }
            }
            if let Some(event) = walk.broken {
                let path = walkers[0].shortened(walk.path, event.rule);
                walked.verdict = Verdict::Broken(event.what, path);
                break 'rounds;
            }
            // A walk that cannot begin counts for one step, so that there is an end.
            spent += steps.max(1);
            if spent >= plan.steps {
                break;
            }
        }
        if let Some(progress) = options.progress {
            if told.elapsed() >= Duration::from_millis(100) {
                told = Instant::now();
                progress(&Progress {
                    phase: Phase::Walk,
                    states: seen.len() as u64,
                    transitions: walked.transitions,
                    depth: walked.longest,
                    queue: plan.steps.saturating_sub(spent),
                    ahead: Some(plan.steps.saturating_sub(spent)),
                    memory: memory(&seen),
                    rate: walked.steps as f64 / began.elapsed().as_secs_f64().max(1e-9),
                });
            }
        }
    }
    walked.states = seen.len() as u64;
    walked.memory = memory(&seen);
    walked
}

/// Bytes of the hashes; does not depend on the machine.
fn memory(seen: &FxHashSet<u64>) -> u64 {
    (seen.len() * size_of::<u64>()) as u64
}

/// Numbers that follow from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn of(seed: u64, number: u64) -> Chance {
        Chance(hash(&[seed, number]))
    }

    /// One of the numbers below a bound, all as likely but for one in 2^32.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * bound as u128) >> 64) as usize
    }
}

/// One thread's walks.
struct Walker<'a> {
    worker: Worker<'a>,
    kernel: Option<&'a Kernel>,
    plan: Plan,
    cancel: Option<&'a AtomicBool>,
    /// The numbers of the rules that fired in the walk at hand.
    fired: FxHashSet<u32>,
    /// What leads on from the state at hand, and to which states.
    nexts: Vec<Next>,
    states: Vec<u64>,
}

impl Walker<'_> {
    fn walk(&mut self, number: u64) -> Walk {
        let mut chance = Chance::of(self.plan.seed, number);
        let mut walk = Walk {
            path: Path::default(),
            broken: None,
            transitions: 0,
            hashes: Vec::new(),
        };
        match self.begin(&mut chance, &mut walk) {
            Ok(true) => {}
            Ok(false) => return walk,
            Err(event) => walk.broken = Some(event),
        }
        while walk.broken.is_none() && (walk.path.rules.len() as u64) < self.plan.length {
            if self.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                break;
            }
            match self.expand(&mut walk.transitions) {
                Err(event) => walk.broken = Some(event),
                Ok(()) if self.nexts.is_empty() => break,
                Ok(()) => {
                    let next = &self.nexts[chance.below(self.nexts.len())];
                    let words = self.worker.parent.len();
                    let state = &self.states[next.at..next.at + words];
                    self.worker.parent.copy_from_slice(state);
                    walk.path.rules.push(next.rule);
                    walk.hashes.push(hash(state));
                }
            }
        }
        walk
    }

    /// Goes to one of the start states; whether there is any.
    fn begin(&mut self, chance: &mut Chance, walk: &mut Walk) -> Result<bool, Event> {
        let starts = self.worker.program.start_count();
        let first = chance.below(starts.max(1) as usize) as u32;
        self.nexts.clear();
        for start in (first..starts).chain(0..first) {
            let machine = &mut self.worker.machine;
            let begun = machine.start(start);
            let fault = |fault| Event {
                rule: None,
                what: Broken::Fault(fault),
            };
            walk.path.start = start;
            if !(begun.map_err(fault)? && machine.assumed().map_err(fault)?) {
                continue;
            }
            if let Some(what) = self.worker.broken_invariant() {
                return Err(Event { rule: None, what });
            }
            self.worker.pack_child();
            self.worker.parent.copy_from_slice(&self.worker.child);
            walk.hashes.push(hash(&self.worker.parent));
            return Ok(true);
        }
        walk.path.start = NO_START;
        Ok(false)
    }

    /// Finds what leads on from the state at hand; what can go wrong there is an error.
    fn expand(&mut self, transitions: &mut u64) -> Result<(), Event> {
        if let Some(kernel) = self.kernel {
            let words = self.worker.parent.len();
            let fired = with_words!(words, W, self.swift::<W>(kernel));
            if let Some(Some(fired)) = fired {
                *transitions += fired;
                return Ok(());
            }
        }
        self.plain(transitions)
    }

    /// The same by machine code; `None` if the interpreter has to look at the state.
    fn swift<const W: usize>(&mut self, kernel: &Kernel) -> Option<u64> {
        let words = self.worker.parent.len();
        // Words behind the state stay zero.
        let mut parent = [0; W];
        parent[..words].copy_from_slice(&self.worker.parent);
        self.nexts.clear();
        self.states.clear();
        let mut fine = true;
        let (program, view) = (self.worker.program, self.worker.view);
        let fired = kernel.expand_by_rule(&parent, true, |(instance, beyond), child: &[u64; W]| {
            fine &= kernel.fine(child);
            let rule = program.rules[view.rules[instance] as usize].number + beyond;
            let at = self.states.len();
            self.nexts.push(Next { rule, at });
            self.states.extend_from_slice(&child[..words]);
        });
        match fired {
            Ok(fired) if fine && !self.nexts.is_empty() => {
                // Where the interpreter looks at the state again, it says which rules it has tried.
                self.fired.extend(self.nexts.iter().map(|next| next.rule));
                Some(fired.transitions)
            }
            _ => None,
        }
    }

    /// The same by the interpreter.
    fn plain(&mut self, transitions: &mut u64) -> Result<(), Event> {
        let worker = &mut self.worker;
        worker
            .view
            .packing
            .unpack(&worker.parent, &mut worker.machine.frame);
        let (nexts, states, fired) = (&mut self.nexts, &mut self.states, &mut self.fired);
        nexts.clear();
        states.clear();
        let expansion = worker.expand(true, |worker, rule| {
            fired.insert(rule);
            if let Some(broken) = worker.broken_invariant() {
                return Err(broken);
            }
            let at = states.len();
            nexts.push(Next { rule, at });
            states.extend_from_slice(&worker.child);
            Ok(())
        })?;
        *transitions += expansion.transitions;
        if expansion.moves {
            return Ok(());
        }
        let what = match worker.deadlock() {
            Err(fault) => Broken::Fault(fault),
            Ok(Some(_)) => Broken::Deadlock,
            Ok(None) => return Ok(()),
        };
        Err(Event { rule: None, what })
    }

    /// A way through states of a path alone, from its start to its end, as short as there is one;
    /// and then the rule by which something goes wrong.
    fn shortened(&mut self, path: Path, last: Option<u32>) -> Path {
        let rules = self.short_cut(&path).unwrap_or(path.rules);
        Path {
            start: path.start,
            rules: rules.into_iter().chain(last).collect(),
        }
    }

    fn short_cut(&mut self, path: &Path) -> Option<Vec<u32>> {
        let worker = &mut self.worker;
        let packing = &worker.view.packing;
        worker.machine.start(path.start).ok()?;
        let mut state = vec![0; packing.words];
        packing.pack(&worker.machine.frame, &mut state);
        // How each state of the path is reached: from which, and by which rule.
        let mut reached: FxHashMap<Vec<u64>, Option<(Vec<u64>, u32)>> = FxHashMap::default();
        let first = state.clone();
        reached.insert(state.clone(), None);
        for &rule in &path.rules {
            packing.unpack(&state, &mut worker.machine.frame);
            let instance = worker.program.rule(rule)?;
            worker.machine.fire(instance, rule).ok()?;
            packing.pack(&worker.machine.frame, &mut state);
            reached.insert(state.clone(), None);
        }
        let mut queue = VecDeque::from([first.clone()]);
        while let Some(from) = queue.pop_front() {
            if from == state {
                break;
            }
            worker.parent.copy_from_slice(&from);
            packing.unpack(&from, &mut worker.machine.frame);
            let _ = worker.expand(true, |worker, rule| {
                if worker.child == first {
                    return Ok(());
                }
                if let Some(way @ None) = reached.get_mut(&worker.child) {
                    *way = Some((from.clone(), rule));
                    queue.push_back(worker.child.clone());
                }
                Ok(())
            });
        }
        let mut rules = Vec::new();
        while state != first {
            let (from, rule) = reached.remove(&state)??;
            rules.push(rule);
            state = from;
        }
        rules.reverse();
        Some(rules)
    }
}

//! A program in the simulator: one run is one order of events, that which random times of messages and threads make.

use cohkit_application::interface::{
    Actions, Application, Contents, Event, Placement, Step, Table, Update as Change,
};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_protocol::threads::Accesses;
use cohkit_sim::data::Random;
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::platform::{Platform, Quantity};
use cohkit_sim::scenario::{Playable, Played};
use cohkit_sim::simulation::{play_while, Lower, RunError, Setup};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cores::{Asked, Asks, Core, Cores, Wish};
use crate::mixes::ordered;
use crate::models::end;
use crate::program::{End, Instruction, Program, Update};

/// What was seen in runs with consecutive seeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Each end, with how often it was seen and the first seed that shows it.
    pub ends: BTreeMap<End, (u64, u64)>,
    /// Runs that came to their end.
    pub runs: u64,
    /// Messages sent in these runs, by name.
    pub messages: BTreeMap<String, u64>,
    /// What went wrong, with the seed that shows it; no run follows.
    pub failure: Option<(String, u64)>,
}

/// Why programs cannot be run in time.
#[derive(Clone, PartialEq, Debug)]
pub enum NotRun {
    /// They do not fit the protocol, or the machine.
    Cannot(String),
    /// It was told to stop.
    Interrupted,
}

/// How often a program is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What stands between threads and caches.
    pub cores: Cores,
    /// Runs.
    pub runs: u64,
    /// The seed of the first; each further one has the next.
    pub seed: u64,
}

/// A level of caches: their protocol, with its home for so many of them.
#[derive(Clone, Debug)]
pub struct Level<'p> {
    /// The protocol.
    pub protocol: &'p Protocol,
    /// Its home.
    pub home: Controller,
    /// How many caches are before the home.
    pub caches: u16,
}

/// What the threads of a program run on: caches, and where these are no thread's, those below each of them, of which there
/// is at least one for each thread in all.
#[derive(Clone, Debug)]
pub struct Machine<'p> {
    /// The level before memory.
    pub upper: Level<'p>,
    /// What is below each of its caches.
    pub lower: Option<Level<'p>>,
}

impl Machine<'_> {
    /// Caches that are before cores.
    fn caches(&self) -> u16 {
        let below = self.lower.as_ref().map_or(1, |lower| lower.caches);
        self.upper.caches * below
    }

    /// A run of a program on it, in small caches and with times that make races likely.
    fn setup(&self, scenario: InTime) -> Setup {
        let Level {
            protocol,
            home,
            caches,
        } = &self.upper;
        let mut torture = Platform::torture(*caches);
        let scenario = Arc::new(scenario);
        let homes = Quantity::given(protocol.homes.into(), "of the text");
        torture.home.count = (protocol.homes > 1).then_some(homes);
        let mut setup = Setup::with_threads((*protocol).clone(), home.clone(), torture, scenario);
        let below = self.lower.as_ref().map(|level| Lower {
            protocol: level.protocol.clone(),
            home: level.home.clone(),
            platform: Platform::torture(level.caches),
        });
        setup.below = below.map(Box::new);
        setup
    }
}

/// How the threads of a program may be spread over clusters, as numbers of these and of caches in each: a cluster for each
/// thread, one for every two, one for all.
pub fn clusters(threads: u16) -> Vec<[u16; 2]> {
    let mut all = vec![[threads, 1], [threads.div_ceil(2), 2], [1, threads]];
    all.dedup();
    all
}

/// Runs a program on small machines that make races likely, once for each seed, which chooses among the machines. `goes_on`
/// is asked before each run.
///
/// # Errors
/// Why it cannot be run.
pub fn observe(
    machines: &[Machine],
    program: &Program,
    options: &Options,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Seen, NotRun> {
    let Some(first) = machines.first() else {
        return Err(NotRun::Cannot("there is no machine".into()));
    };
    let protocol = first.lower.as_ref().unwrap_or(&first.upper).protocol;
    let remote = &protocol.remote;
    let mut code = program.threads.iter().flat_map(|thread| &thread.code);
    let atomic = code.any(|instruction| matches!(instruction, Instruction::Atomic { .. }));
    let copies = remote.states.iter().any(|s| s.right >= Right::Write);
    if atomic && !copies {
        let name = &protocol.name;
        return Err(NotRun::Cannot(format!(
            "threads of the simulator change words in copies of their caches, and those of {name} have none to write"
        )));
    }
    let accesses = Accesses::of(protocol);
    let mut seen = Seen {
        ends: BTreeMap::new(),
        runs: 0,
        messages: BTreeMap::new(),
        failure: None,
    };
    for run in 0..options.runs {
        if !goes_on() {
            return Err(NotRun::Interrupted);
        }
        let seed = options.seed.wrapping_add(run);
        let machine = &machines[(seed % machines.len() as u64) as usize];
        let mut setup = machine.setup(InTime {
            program: ordered(protocol, program),
            cores: options.cores,
            // What follows a read that acquires, the simulator's threads ask for themselves.
            asks: Asks {
                acquired: false,
                ..Asks::of(&accesses)
            },
            caches: machine.caches().into(),
            seed,
        });
        setup.seed = seed;
        if let Some(play) = &mut setup.play {
            play.tables = true;
        }
        match play_while(&setup, &mut |_| true) {
            Ok(performance) => {
                let rows = performance.tables.into_iter().flat_map(|table| table.rows);
                let values = rows.flatten().map(|value| value as i64);
                let end = End(program.observed().into_iter().zip(values).collect());
                seen.ends.entry(end).or_insert((0, seed)).0 += 1;
                seen.runs += 1;
                for (name, sent) in performance.statistics.messages {
                    *seen.messages.entry(name).or_default() += sent;
                }
            }
            Err(RunError::Failure(failure)) => {
                seen.failure = Some((failure.to_string(), seed));
                return Ok(seen);
            }
            Err(RunError::Setup(what)) => return Err(NotRun::Cannot(what)),
            Err(RunError::Stopped) => return Err(NotRun::Interrupted),
        }
    }
    Ok(seen)
}

/// A program whose threads run on cores of the simulator.
#[derive(Clone)]
struct InTime {
    program: Program,
    cores: Cores,
    /// What that is about no line caches take part in.
    asks: Asks,
    /// Those before cores; a thread has one, and there may be more.
    caches: usize,
    seed: u64,
}

/// Lines that locations may lie in: few enough that some share a set of the small caches, and evict each other.
const LINES: u32 = 16;

impl InTime {
    /// Each location has a line, which another seed puts elsewhere.
    fn lines(&self) -> Vec<u32> {
        let mut random = Random::new(self.seed);
        let mut lines: Vec<u32> = Vec::new();
        while lines.len() < self.program.locations.len() {
            let line = random.below(LINES.into()) as u32;
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

impl Playable for InTime {
    fn uses(&self) -> u32 {
        LINES
    }

    fn words_used(&self) -> u64 {
        1
    }

    fn has_end(&self) -> bool {
        true
    }

    fn threads_only(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn Played> {
        let mut cores = Core::all(&self.program);
        for (core, thread) in cores.iter_mut().zip(&self.program.threads) {
            core.asks = self.asks;
            core.settle(&thread.code, self.cores);
        }
        let ports = match self.cores {
            Cores::InOrder => 1,
            Cores::StoreBuffer => 2,
            Cores::Relaxed(_) => 3,
        };
        // Nothing else is drawn from this one.
        let random = Random::new(!self.seed);
        Box::new(Running {
            lines: self.lines(),
            test: self.clone(),
            cores,
            steps: vec![Doing::Nothing; self.caches * ports],
            random,
            memory: RefCell::new(Vec::new()),
            nobody: Nobody,
        })
    }
}

/// What a thread or a buffer of stores is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Nothing,
    /// It has waited for its next step.
    Waited,
    /// Its access is under way.
    Access(Wish),
    /// What memory is asked for besides is.
    Asks(Asked),
}

/// Threads, each on several cores of the simulator before one cache: on the first of them all but what a buffer of stores
/// sends, which has the second, or whatever a window has for them.
struct Running {
    test: InTime,
    lines: Vec<u32>,
    cores: Vec<Core>,
    steps: Vec<Doing>,
    random: Random,
    /// What memory holds at the end.
    memory: RefCell<Vec<i64>>,
    nobody: Nobody,
}

impl Running {
    /// What a word of the simulator means: it begins with any value.
    fn difference(&self, at: u8) -> u64 {
        let line = self.lines[usize::from(at)];
        let first = self.test.program.initial[usize::from(at)] as u64;
        cohkit_sim::data::Data::untouched_word(line, 0).wrapping_sub(first)
    }

    fn accesses(&self, wish: Wish) -> Step {
        let (line, word) = (self.lines[usize::from(wish.location())], 0);
        let shift = self.difference(wish.location());
        let of = |value: i64| (value as u64).wrapping_add(shift);
        let update = match wish {
            Wish::Read(_, false) => return Step::Load { line, word },
            Wish::Read(_, true) => return Step::Acquire { line, word },
            Wish::Write(_, value, false, _) => {
                let value = of(value);
                return Step::Store { line, word, value };
            }
            Wish::Write(_, value, true, _) => {
                let value = of(value);
                return Step::Release { line, word, value };
            }
            Wish::Update(_, Update::Set(value), _) => Change::Swap(of(value)),
            Wish::Update(_, Update::Add(by), _) => Change::Add(by as u64),
            Wish::Update(_, Update::SetIf(old, new), _) => Change::CompareSwap {
                old: of(old),
                new: of(new),
            },
        };
        Step::Update { line, word, update }
    }

    /// Something takes up to so many nanoseconds, often none.
    fn waits(&mut self, most: u64) -> Step {
        let long = self.random.below(2);
        Step::Work(self.random.below(1 + long * most * NANOSECOND))
    }

    /// It looks again a little later, when others have gone on.
    fn looks_again(&self, number: usize) -> Step {
        Step::LoadHost {
            word: number as u32,
        }
    }

    /// What a core of the simulator may begin for its thread.
    fn may_begin(&self, number: usize) -> Vec<Wish> {
        let caches = self.test.caches;
        let (port, thread) = (number / caches, number % caches);
        let code = &self.test.program.threads[thread].code;
        let its_own = |wish: &Wish| match self.test.cores {
            Cores::InOrder => true,
            Cores::StoreBuffer => matches!(wish, Wish::Write(..)) == (port == 1),
            // What another of the thread's cores is about is taken.
            Cores::Relaxed(_) => {
                let mut others = self.steps.iter().skip(thread).step_by(caches);
                !others.any(|doing| *doing == Doing::Access(*wish))
            }
        };
        let wishes = self.cores[thread].wishes(code, self.test.cores);
        wishes.filter(its_own).collect()
    }

    /// The next step of a core of the simulator.
    fn next(&mut self, number: usize) -> Step {
        let (port, thread) = (number / self.test.caches, number % self.test.caches);
        let wishes = self.may_begin(number);
        let chosen = match wishes.len() {
            0 | 1 => wishes.first(),
            several => wishes.get(self.random.below(several as u64) as usize),
        };
        if let Some(&wish) = chosen {
            self.steps[number] = Doing::Access(wish);
            return self.accesses(wish);
        }
        let code = &self.test.program.threads[thread].code;
        let core = &mut self.cores[thread];
        let asks = |asked: &Asked| core.asks_for(code, self.test.cores, *asked);
        let asked = [Asked::Fence, Asked::Acquired].into_iter().find(asks);
        if let (0, Some(asked)) = (port, asked) {
            self.steps[number] = Doing::Asks(asked);
            return Step::Fence;
        }
        if port == 0 {
            // What it has written itself may be read before memory has it, or after.
            let reads = self.random.below(2) == 0;
            let forwarded = core.forwards(code, self.test.cores).next();
            if let (true, Some(at)) = (reads, forwarded) {
                core.forward(code, at);
                core.settle(code, self.test.cores);
                self.steps[number] = Doing::Nothing;
                return self.waits(0);
            }
            if core.through(code) && !matches!(self.test.cores, Cores::Relaxed(_)) {
                return Step::Stop;
            }
        }
        if core.stopped(code) {
            return Step::Stop;
        }
        if port > 0 {
            self.steps[number] = Doing::Nothing;
        }
        self.looks_again(number)
    }
}

impl Played for Running {
    fn application(&mut self) -> &mut dyn Application {
        &mut self.nobody
    }

    fn threads(&self) -> usize {
        self.steps.len()
    }

    fn step(&mut self, number: usize, result: u64) -> Step {
        let thread = number % self.test.caches;
        if thread >= self.cores.len() {
            return Step::Stop;
        }
        if let Doing::Access(wish) = self.steps[number] {
            let code = &self.test.program.threads[thread].code;
            let value = result.wrapping_sub(self.difference(wish.location()));
            self.cores[thread].ended(code, wish.location(), value as i64);
            self.cores[thread].settle(code, self.test.cores);
            self.steps[number] = Doing::Nothing;
        }
        if let Doing::Asks(asked) = self.steps[number] {
            let code = &self.test.program.threads[thread].code;
            self.cores[thread].answered(code, self.test.cores, asked);
            self.cores[thread].settle(code, self.test.cores);
            self.steps[number] = Doing::Nothing;
        }
        // Between its steps it waits for as long as messages take, and now and then for far longer.
        if self.steps[number] == Doing::Nothing {
            self.steps[number] = Doing::Waited;
            let most = if self.random.below(4) == 0 { 1600 } else { 200 };
            return self.waits(most);
        }
        self.next(number)
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let values = (0..).zip(&self.lines).map(|(at, &line)| {
            let word = contents.word(line, 0);
            word.wrapping_sub(self.difference(at)) as i64
        });
        self.memory.replace(values.collect());
        Ok(())
    }

    /// What is observed, in its order.
    fn tables(&self) -> Vec<Table> {
        let End(values) = end(&self.test.program, &self.cores, &self.memory.borrow());
        let values = values.into_values().map(|value| value as u64);
        vec![Table {
            name: "end",
            rows: vec![values.collect()],
        }]
    }
}

/// Nothing is behind the home.
struct Nobody;

impl Application for Nobody {
    fn name(&self) -> &str {
        "litmus"
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn handle(&mut self, _event: Event, _actions: &mut Actions) {}
}

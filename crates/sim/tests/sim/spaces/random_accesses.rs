//! Scenario of random accesses to the host's memory and to the device's lines.

use cohkit_application::interface::{
    Actions, Application, Contents, Event, Line, Placement, Scenario, Step, Thread, Update,
};

/// Scenario: a device and threads that access the same words of the host's memory at random, and lines of the device as
/// well.
#[derive(Clone)]
pub(super) struct RandomAccesses {
    /// Number of threads of the host.
    pub(super) threads: u32,
    /// Number of words that device and threads store to.
    words: u32,
    /// Number of concurrent accesses of the device.
    pub(super) concurrent: u32,
    /// Total number of accesses, of the device and of each thread.
    pub(super) accesses: u32,
    /// True if the device only loads, its transfers write, and threads access only the device's lines.
    pub(super) only_transfers: bool,
    /// Seed of all random choices.
    seed: u64,
}

/// Returns a scenario of random accesses whose parameters depend on the seed.
pub(super) fn random_accesses(seed: u64) -> RandomAccesses {
    RandomAccesses {
        threads: 1 + (seed % 3) as u32,
        words: 16 * (3 + (seed % 5) as u32),
        concurrent: 1 + (seed % 6) as u32,
        accesses: 200,
        only_transfers: false,
        seed,
    }
}

/// Number of words that only the device changes, each by adding 1.
const COUNTERS: u32 = 8;

/// Number of lines of the device.
const DEVICE_LINES: Line = 6;

/// Device that accesses the host's memory, and serves the lines of its own memory.
pub(super) struct RandomDevice {
    /// Parameters of the scenario.
    parameters: RandomAccesses,
    /// State of the random generator.
    random: u64,
    /// Number of accesses that are still to be issued.
    remaining: u32,
    /// Number of additions to the counters so far.
    added: u64,
}

/// Thread that accesses the host's memory and the device's lines.
pub(super) struct RandomThread {
    /// Parameters of the scenario.
    parameters: RandomAccesses,
    /// State of the random generator.
    random: u64,
    /// Number of accesses that are still to be issued.
    remaining: u32,
}

/// Draws a number below a bound.
fn draw_below(random: &mut u64, bound: u32) -> u32 {
    *random = cohkit_sim::data::mix(*random);
    (*random >> 33) as u32 % bound
}

impl RandomDevice {
    /// Issues a random access with this tag, unless all have been issued.
    fn issue_next_access(&mut self, tag: u32, actions: &mut Actions) {
        if self.remaining == 0 {
            return;
        }
        self.remaining -= 1;
        let (parameters, random) = (self.parameters.clone(), &mut self.random);
        let first = COUNTERS + draw_below(random, parameters.words);
        let count = 1 + draw_below(random, 40);
        let cached = draw_below(random, 2) == 0;
        let value = u64::from(draw_below(random, u32::MAX));
        let choice = match parameters.only_transfers {
            true => 9 - 9 * draw_below(random, 2),
            false => draw_below(random, 10),
        };
        match choice {
            // Cached loads keep copies that the writes of transfers must invalidate.
            0 if parameters.only_transfers => actions.coherent_load(tag, first, count, true),
            0 | 1 => actions.coherent_load(tag, first, count, cached),
            2 | 3 => actions.coherent_store(tag, first, [value].into(), cached),
            4 => {
                let words = (0..u64::from(count)).map(|word| value + word).collect();
                actions.coherent_store(tag, first, words, cached);
            }
            5 => {
                let words = (0..16).map(|word| value ^ word).collect();
                actions.coherent_store(tag, first.next_multiple_of(16), words, cached);
            }
            6 => {
                let (old, new) = (value, value + 1);
                actions.coherent_update(tag, first, Update::CompareSwap { old, new });
            }
            8 => actions.host_fetch(tag, first, count),
            9 => {
                let words = (0..u64::from(count)).map(|word| value + word).collect();
                actions.host_store(first, words);
                // A store has no completion.
                actions.host_fetch(tag, first, 1);
            }
            _ => {
                self.added += 1;
                let word = draw_below(random, COUNTERS);
                actions.coherent_update(tag, word, Update::Add(1));
            }
        }
    }
}

impl Application for RandomDevice {
    fn name(&self) -> &str {
        "mixed"
    }
    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..DEVICE_LINES)
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { .. } => {
                (0..self.parameters.concurrent).for_each(|tag| self.issue_next_access(tag, actions))
            }
            Event::CoherentLoadCompletion { tag, .. }
            | Event::CoherentStoreCompletion { tag }
            | Event::HostFetchCompletion { tag, .. } => self.issue_next_access(tag, actions),
            Event::Read { line, .. } => actions.fetch(0, line, 1),
            Event::FetchCompletion { line, words, .. } => actions.answer(line, words),
            Event::Write { line, words, .. } => actions.store(line, line, words),
            Event::StoreCompletion { tag } => actions.accept(tag),
            _ => {}
        }
    }
}

impl Thread for RandomThread {
    fn step(&mut self, _: u64) -> Step {
        if self.remaining == 0 {
            return Step::Stop;
        }
        self.remaining -= 1;
        let random = &mut self.random;
        let word = draw_below(random, COUNTERS + self.parameters.words);
        let line = draw_below(random, DEVICE_LINES);
        let value = u64::from(draw_below(random, u32::MAX));
        match draw_below(random, 6) {
            _ if self.parameters.only_transfers => Step::Load { line, word: 3 },
            0 | 1 => Step::LoadHost { word },
            2 | 3 if word >= COUNTERS => Step::StoreHost { word, value },
            4 => Step::Load { line, word: 3 },
            _ => Step::Store {
                line,
                word: 3,
                value,
            },
        }
    }
}

impl Scenario for RandomAccesses {
    type Application = RandomDevice;
    type Thread = RandomThread;
    fn lines(&self) -> Line {
        DEVICE_LINES
    }
    fn words(&self) -> u64 {
        4
    }
    fn terminates(&self) -> bool {
        true
    }
    fn host_words(&self) -> u64 {
        u64::from(COUNTERS + self.words) + 60
    }
    fn application(&self) -> RandomDevice {
        let (parameters, random) = (self.clone(), self.seed);
        let (remaining, added) = (self.accesses, 0);
        RandomDevice {
            parameters,
            random,
            remaining,
            added,
        }
    }
    fn threads(&self) -> Vec<RandomThread> {
        let thread = |number: u32| RandomThread {
            parameters: self.clone(),
            random: self.seed + 1000 + u64::from(number),
            remaining: self.accesses,
        };
        (0..self.threads).map(thread).collect()
    }
    /// Checks that no addition is lost.
    fn verify(
        &self,
        application: &RandomDevice,
        _: &[RandomThread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        let counters = (0..COUNTERS).map(|word| contents.host(word).expect("host word"));
        match counters.sum::<u64>() == application.added && application.remaining == 0 {
            true => Ok(()),
            false => Err(format!(
                "the counters do not add up to {} additions",
                application.added
            )),
        }
    }
}

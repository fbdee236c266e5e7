//! Several applications behind one device, each with lines, threads and registers of its own.

use cohkit_testing::setups;

use cohkit_application::dma::Copies;
use cohkit_application::interface::{
    Actions, Application, Contents, Event, Line, Placement, Scenario, Step, Thread,
};
use cohkit_application::invalidation::Invalidation;
use cohkit_application::locks::LockTable;
use cohkit_application::prefetcher::Prefetch;
use cohkit_application::rpc::Calls;
use cohkit_application::rpc_bus::BusCalls;
use cohkit_application::shared_table::SharedTable;
use cohkit_sim::combined_scenario::CombinedScenario;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::{Playable, Tally};
use cohkit_sim::simulation::{Setup, Simulation};
use setups::{protocol, seeds};
use std::sync::{Arc, OnceLock};

/// Returns a setup that runs scenarios behind one device. Its home is constructed once.
fn machine(parts: Vec<Arc<dyn Playable>>, seed: u64) -> Setup {
    static MACHINE: OnceLock<Setup> = OnceLock::new();
    let setup = MACHINE.get_or_init(|| {
        let mut platform = Platform::torture(1);
        platform.lines = 4096;
        let calls: Arc<dyn Playable> = Arc::new(Calls::new(1, 1, Some(1)));
        let setup = Setup::with_scenario(protocol("eci"), platform, calls);
        setup.expect("protocol with a home")
    });
    let combined = CombinedScenario::new(parts).expect("compatible scenarios");
    let mut setup = setup.clone();
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup.workload.cores = combined.begin().threads() as u32;
    if let Some(play) = &mut setup.play {
        play.scenario = Arc::new(combined);
    }
    setup
}

/// Runs a setup to its end.
fn play(setup: &Setup) -> Result<Tally, String> {
    let mut simulation = Simulation::new(setup, None).map_err(|error| format!("setup: {error}"))?;
    simulation.run().map_err(|failure| failure.to_string())?;
    Ok(simulation.tally())
}

/// Returns the shipped applications, small; each of a different kind.
fn parts(seed: u64) -> [Arc<dyn Playable>; 7] {
    [
        Arc::new(Calls::new(1 + (seed % 3) as u32, 1, Some(20))),
        Arc::new(LockTable {
            records: 1 + (seed % 7) as Line,
            threads: 2,
            device: 2,
            hold: 50_000,
            pause: 20_000,
            transactions: Some(15),
            messages: seed.is_multiple_of(3),
            cached: false,
            words: seed.is_multiple_of(2),
        }),
        Arc::new(Prefetch {
            hints: 0,
            lines: 32,
            blocks: 2,
            block: 8,
            burst: 4,
            threads: 2,
            reads: Some(60),
            written: 300,
        }),
        Arc::new(SharedTable {
            rows: 3,
            contended: 1000,
            engines: 1,
            outstanding: 1,
            device: Some(40),
            threads: 2,
            thread: Some(30),
            cached: false,
        }),
        Arc::new(BusCalls {
            contexts: 2,
            words: 1 + (seed % 4) as u32,
            calls: Some(15),
            descriptors: seed.is_multiple_of(2),
        }),
        Arc::new(Copies {
            threads: 2,
            words: 1 + (seed % 20) as u32,
            descriptors: 1 + (seed % 3) as u32,
            rings: Some(8),
            interrupts: seed.is_multiple_of(2),
        }),
        Arc::new(Invalidation {
            lines: 40,
            outstanding: 3,
            dirty: true,
            held: true,
            start_delay: 0,
            cached: false,
        }),
    ]
}

#[test]
fn combined_applications_complete() {
    for seed in seeds(30) {
        let applications = parts(seed);
        // Two or more of them, in a different order for each seed.
        let part_count = 2 + (seed % 5) as usize;
        let chosen_parts =
            (0..part_count).map(|n| Arc::clone(&applications[(seed as usize + n * 5) % 7]));
        let tally = play(&machine(chosen_parts.collect(), seed)).unwrap_or_else(|failure| {
            panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim combined_scenarios::combined_applications_complete\n{failure}")
        });
        let count = |name| tally.counts.get(name).copied().unwrap_or(0);
        let includes =
            |number: usize| (0..part_count).any(|n| (seed as usize + n * 5) % 7 == number);
        let calls = 20 * (1 + seed % 3) * u64::from(includes(0)) + 30 * u64::from(includes(4));
        assert_eq!(count("calls"), calls, "seed {seed}");
        assert_eq!(count("host locks"), 30 * u64::from(includes(1)));
        assert_eq!(count("device locks"), 30 * u64::from(includes(1)));
        assert_eq!(count("device increments"), 40 * u64::from(includes(3)));
        assert_eq!(count("invalidated"), 40 * u64::from(includes(6)));
        assert_eq!(count("rings"), 16 * u64::from(includes(5)));
    }
}

/// Two instances of one application keep to their own lines, threads and registers.
#[test]
fn combined_instances_use_only_their_own_resources() {
    for seed in seeds(10) {
        let calls = || Arc::new(Calls::new(2, 2, Some(25))) as Arc<dyn Playable>;
        let tally = play(&machine(vec![calls(), calls()], seed)).expect("run without violation");
        assert_eq!(tally.counts["calls"], 100);
    }
}

/// An application that accesses lines beyond its own, where those of another begin.
#[derive(Clone, PartialEq)]
enum OutOfBounds {
    /// The thread loads a word of line 2; only lines 0 and 1 belong to the scenario.
    Thread,
    /// The application cleans and invalidates line 2, which it does not serve.
    Local,
    /// The application stores to line 2 and reads it back. This is valid: beyond its served lines, it has memory of
    /// its own.
    Store,
    /// The application fetches lines 0 to 2 at once, of its served lines and its own memory.
    Fetch,
}

impl Application for OutOfBounds {
    fn name(&self) -> &str {
        "beyond"
    }
    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..2)
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        use cohkit_application::interface::Operation::CleanInvalidate;
        match event {
            Event::Start { words } => match self {
                OutOfBounds::Thread => {}
                OutOfBounds::Local => actions.local(2, CleanInvalidate, false),
                // Beyond its served lines an application has memory of its own.
                OutOfBounds::Store => actions.store(7, 2, vec![5; words.into()].into()),
                OutOfBounds::Fetch => actions.fetch(0, 0, 3),
            },
            Event::StoreCompletion { tag: 7 } => actions.fetch(8, 2, 1),
            Event::FetchCompletion {
                tag: 8,
                line,
                words,
            } => {
                actions.count(
                    "own words",
                    u64::from(line == 2 && words.iter().all(|w| *w == 5)),
                );
            }
            _ => {}
        }
    }
}

impl Thread for OutOfBounds {
    fn step(&mut self, _: u64) -> Step {
        match std::mem::replace(self, OutOfBounds::Store) {
            OutOfBounds::Thread => Step::Load { line: 2, word: 0 },
            _ => Step::Stop,
        }
    }
}

impl Scenario for OutOfBounds {
    type Application = OutOfBounds;
    type Thread = OutOfBounds;
    fn lines(&self) -> Line {
        2
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> OutOfBounds {
        self.clone()
    }
    fn threads(&self) -> Vec<OutOfBounds> {
        vec![self.clone()]
    }
    fn verify(&self, _: &OutOfBounds, _: &[OutOfBounds], _: &dyn Contents) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn out_of_bounds_accesses_are_detected() {
    let play_beside_calls = |application: OutOfBounds| {
        let calls = Arc::new(Calls::new(1, 1, Some(5))) as Arc<dyn Playable>;
        play(&machine(vec![Arc::new(application), calls], 1))
    };
    for (application, expected) in [
        (OutOfBounds::Thread, "thread 0 accesses word 0 of line"),
        (
            OutOfBounds::Local,
            "cleans a line outside the memory of the home",
        ),
        (OutOfBounds::Fetch, "reads 3 lines at once"),
    ] {
        let failure = play_beside_calls(application)
            .err()
            .expect("detected out-of-bounds access");
        assert!(failure.contains(expected), "{failure}");
    }
    let tally = play_beside_calls(OutOfBounds::Store).expect("run without violation");
    assert_eq!((tally.counts["own words"], tally.counts["calls"]), (1, 5));
}

#[test]
fn engines_cannot_be_combined_with_other_applications() {
    let table = |cached| SharedTable {
        rows: 4,
        contended: 1000,
        engines: 1,
        outstanding: 1,
        device: Some(1),
        threads: 1,
        thread: Some(1),
        cached,
    };
    let parts = |cached| {
        [true, cached]
            .map(|c| Arc::new(table(c)) as Arc<dyn Playable>)
            .to_vec()
    };
    let error = CombinedScenario::new(parts(false))
        .err()
        .expect("rejected combination");
    assert!(error.contains("cannot be combined with another"), "{error}");
}

/// A home that does not report changes of permission serves applications only if none of them needs these reports.
#[test]
fn combination_observes_changes_if_a_part_does() {
    let observing = parts(0)
        .iter()
        .filter(|part| part.observes_changes())
        .count();
    assert!((1..parts(0).len()).contains(&observing), "{observing}");
    for part in parts(0) {
        let observes = part.observes_changes();
        let mut others = parts(0).into_iter();
        let other = others.find(|part| !part.observes_changes());
        let other = other.expect("an application that needs no reports");
        let combined = CombinedScenario::new(vec![other, part]).expect("compatible scenarios");
        assert_eq!(combined.observes_changes(), observes);
    }
}

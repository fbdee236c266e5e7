//! Applications behind a home under random delays, reordering and back-pressure, every byte watched.

mod common;

use cohkit_application::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
};
use cohkit_application::invalidation::Invalidation;
use cohkit_application::prefetcher::Prefetch;
use cohkit_application::rpc::Calls;
use cohkit_application::shared_table::SharedTable;
use cohkit_protocol::protocol::Right;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::{Playable, Tally};
use cohkit_sim::simulation::{RunError, Setup, Simulation};
use common::protocol;
use std::sync::Arc;

const SEEDS: u64 = 50;

/// A machine that makes races likely.
fn machine(scenario: Arc<dyn Playable>, remotes: u8, seed: u64) -> Setup {
    let protocol = protocol("eci");
    let mut platform = Platform::torture(remotes);
    platform.lines = 4096;
    let line = u64::from(protocol.line_bytes);
    // Every second group of three seeds has something between the cores and their caches.
    if seed / 3 % 2 == 1 {
        platform.cores.write_buffer.value = 2 * line;
        platform.cores.l1.value = 4 * line;
    }
    let mut setup = Setup::with_scenario(protocol, platform, scenario).expect("there is a home");
    setup.seed = seed;
    setup.oracle = Level::Bytes;
    setup
}

fn play(setup: &Setup) -> Result<Tally, String> {
    let mut simulation = Simulation::new(setup, None).expect("it makes sense");
    simulation.run().map_err(|failure| failure.to_string())?;
    Ok(simulation.tally())
}

/// Plays a scenario with all seeds. COHKIT_SEED=n repeats one.
fn torture(name: &str, scenario: impl Fn(u64) -> Arc<dyn Playable>, judge: impl Fn(u64, &Tally)) {
    let only = std::env::var("COHKIT_SEED").ok();
    for seed in 0..SEEDS {
        if only.as_ref().is_some_and(|only| *only != seed.to_string()) {
            continue;
        }
        let remotes = 1 + (seed % 3) as u8;
        let setup = machine(scenario(seed), remotes, seed);
        let tally = play(&setup).unwrap_or_else(|failure| {
            panic!(
                "COHKIT_SEED={seed} cargo test -p cohkit-sim --test applications {name}\n{failure}"
            )
        });
        judge(seed, &tally);
    }
}

#[test]
fn shared_table() {
    let table = |seed: u64| SharedTable {
        rows: 1 + (seed % 5) as Line,
        contended: 1000,
        outstanding: 1 + (seed % 3) as u32,
        device: Some(200),
        threads: 1 + (seed % 4) as u32,
        thread: Some(150),
    };
    torture(
        "shared_table",
        |seed| Arc::new(table(seed)),
        |seed, tally| {
            assert_eq!(tally.counts["device increments"], 200);
            let threads = u64::from(table(seed).threads);
            assert_eq!(tally.counts["increments"], 150 * threads);
            assert_eq!(tally.times["clean-invalidate"].count(), 200);
        },
    );
}

#[test]
fn invalidation() {
    let engine = |seed: u64| Invalidation {
        lines: 60,
        outstanding: 1 + (seed % 9) as u32,
        dirty: seed.is_multiple_of(2),
        held: !seed.is_multiple_of(7),
    };
    torture(
        "invalidation",
        |seed| Arc::new(engine(seed)),
        |seed, tally| {
            assert_eq!(tally.counts["invalidated"], 60);
            let held = engine(seed).held;
            assert_eq!(held, tally.counts["already evicted"] < 60);
        },
    );
}

#[test]
fn prefetcher() {
    torture(
        "prefetcher",
        |seed| {
            Arc::new(Prefetch {
                lines: 64,
                blocks: (seed % 4) as u32,
                block: 8,
                burst: 1 << (seed % 4),
                threads: 1 + (seed % 3) as u32,
                reads: Some(100),
            })
        },
        |seed, tally| {
            let hits = tally.counts.get("hits").copied().unwrap_or(0);
            assert_eq!(hits > 0, seed % 4 > 0, "{:?}", tally.counts);
        },
    );
}

#[test]
fn rpc() {
    torture(
        "rpc",
        |seed| {
            Arc::new(Calls {
                contexts: 1 + (seed % 3) as u32,
                payload: 1 + (seed % 4) as Line,
                calls: Some(40),
            })
        },
        |seed, tally| {
            let contexts = 1 + seed % 3;
            assert_eq!(tally.counts["calls"], 40 * contexts);
            assert_eq!(tally.times["call"].count(), 40 * contexts);
        },
    );
}

/// Breaks the contract in one of several ways when the CPU reads line 3.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Breaker(&'static str);

impl Application for Breaker {
    fn name(&self) -> &str {
        "breaker"
    }
    fn placement(&self) -> Placement {
        Placement::Between(0..8)
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        let words = || vec![0; 16].into_boxed_slice();
        match event {
            Event::Read { line, .. } if line != 3 => actions.answer(line, words()),
            Event::Read { line, .. } => match self.0 {
                "answers twice" => {
                    actions.answer(line, words());
                    actions.answer(line, words());
                }
                "never answers" => {}
                "answers short" => actions.answer(line, vec![0; 3].into_boxed_slice()),
                "unlocks" => actions.unlock(line),
                "accepts" => actions.accept(line),
                "writes" => actions.store(0, 20, words()),
                "keeps a lock" => {
                    actions.answer(line, words());
                    actions.local(20, Operation::Clean, true);
                }
                "asks twice" => {
                    actions.local(20, Operation::Clean, true);
                    actions.local(20, Operation::CleanInvalidate, false);
                }
                "reads on" => actions.fetch(0, 0, Line::MAX),
                way => unreachable!("{way}"),
            },
            Event::Write { line, .. } => actions.accept(line),
            Event::Changed {
                line,
                to: Right::Write,
                ..
            } => actions.local(line, Operation::Clean, false),
            _ => {}
        }
    }
}

/// Loads words of some lines.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Loads(Vec<Line>);

impl Thread for Loads {
    fn step(&mut self, _result: u64) -> Step {
        match self.0.pop() {
            Some(line) => Step::Load { line, word: 0 },
            None => Step::Stop,
        }
    }
}

#[derive(Clone)]
struct Broken(&'static str, Vec<Vec<Line>>);

impl Scenario for Broken {
    type Application = Breaker;
    type Thread = Loads;
    fn lines(&self) -> Line {
        8
    }
    fn ends(&self) -> bool {
        true
    }
    fn application(&self) -> Breaker {
        Breaker(self.0)
    }
    fn threads(&self) -> Vec<Loads> {
        self.1.iter().cloned().map(Loads).collect()
    }
    fn verify(&self, _: &Breaker, _: &[Loads], contents: &dyn Contents) -> Result<(), String> {
        match contents.word(2, 0) {
            0 => Ok(()),
            word => Err(format!("line 2 begins with {word}")),
        }
    }
}

/// Whoever breaks the contract is named, with the line.
#[test]
fn broken_contracts_are_reported_by_name() {
    let mut all = String::new();
    for (way, lines) in [
        ("answers twice", vec![3, 2]),
        ("never answers", vec![3, 2]),
        ("answers short", vec![3, 2]),
        ("unlocks", vec![3, 2]),
        ("accepts", vec![3, 2]),
        ("writes", vec![3, 2]),
        ("keeps a lock", vec![3, 2]),
        ("asks twice", vec![3, 2]),
        ("reads on", vec![3, 2]),
        // Nothing wrong, except that line 2 is never answered with zeros.
        ("no wrong", vec![4]),
        // A thread beyond memory.
        ("nothing", vec![5000]),
    ] {
        let setup = machine(Arc::new(Broken(way, vec![lines])), 1, 0);
        let Err(RunError::Failure(failure)) = cohkit_sim::simulation::run(&setup) else {
            panic!("{way}: nothing was reported");
        };
        assert_ne!(failure.kind, FailureKind::DataValue);
        all.push_str(&format!(
            "{way}: {}, line {}, {} ns: {}\n",
            failure.kind,
            failure.line,
            failure.time / 1000,
            failure.text
        ));
    }
    expect_test::expect![[r#"
        answers twice: contract of an application, line 3, 211 ns: breaker answers a read that is not open
        never answers: no progress, line 3, 211 ns: no access has been performed for 0 ns; the oldest was issued at 128 ns: breaker has not answered a read
        answers short: contract of an application, line 3, 211 ns: breaker gives a line of 3 words; lines have 16
        unlocks: contract of an application, line 3, 211 ns: breaker unlocks what it has not locked
        accepts: contract of an application, line 3, 211 ns: breaker accepts a write that is not open
        writes: contract of an application, line 20, 211 ns: breaker writes memory of a line that it has not locked and invalidated
        keeps a lock: no progress, line 20, 253 ns: breaker has not given its lock back, and nothing else is left to do
        asks twice: contract of an application, line 20, 211 ns: breaker asks for a clean-invalidate before its clean is complete
        reads on: contract of an application, line 0, 211 ns: breaker reads 4294967295 lines at once; 65536 is the most
        no wrong: result of a scenario, line 0, 127 ns: breaker: line 2 begins with 8604477608339801740
        nothing: contract of an application, line 5000, 0 ns: thread 0 accesses word 0 of line 5000; there are 4096 lines of 16 words
    "#]].assert_eq(&all);
}

/// A core does not wait for ever, even if all others go on.
#[test]
fn a_core_gives_up() {
    let lines = vec![vec![3, 2], vec![1; 20_000]];
    let mut setup = machine(Arc::new(Broken("never answers", lines)), 1, 0);
    setup.platform.cores.timeout.value = 20_000_000;
    let Err(RunError::Failure(failure)) = cohkit_sim::simulation::run(&setup) else {
        panic!("nothing was reported");
    };
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.line, 3);
    assert!(
        failure.text.contains("breaker has not answered a read"),
        "{}",
        failure.text
    );
}

/// One clean-invalidate at a time takes as long as published (CCKit, table 3: 350 ns).
#[test]
fn clean_invalidate_takes_its_time() {
    for name in ["enzian-dc-bram", "enzian-dc-ddr"] {
        let engine = Invalidation {
            lines: 200,
            outstanding: 1,
            dirty: false,
            held: true,
        };
        let platform = Platform::shipped(name).unwrap();
        let setup = Setup::with_scenario(protocol("eci"), platform, Arc::new(engine)).unwrap();
        let tally = play(&setup).unwrap();
        assert_eq!(tally.counts.get("written back"), Some(&0));
        let nanoseconds = tally.times["clean-invalidate"].mean() / 1000.0;
        assert!(
            (nanoseconds / 350.0 - 1.0).abs() < 0.05,
            "{name}: {nanoseconds} ns"
        );
    }
}

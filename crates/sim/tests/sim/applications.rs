//! Applications behind a home under random delays, reordering and back-pressure; the oracle checks every byte.

use cohkit_testing::setups;

use cohkit_application::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
};
use cohkit_application::invalidation::Invalidation;
use cohkit_application::kernel::NoApplication;
use cohkit_application::locks::LockTable;
use cohkit_application::prefetcher::Prefetch;
use cohkit_application::rpc::Calls;
use cohkit_application::rpc_bus::BusCalls;
use cohkit_application::shared_table::SharedTable;
use cohkit_application::view::{Client, Maintainer, Order, View};
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Permission;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::explain::FailureKind;
use cohkit_sim::kernel::SECOND;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Memory, Platform};
use cohkit_sim::scenario::{Playable, Tally};
use cohkit_sim::simulation::{RunError, Setup, Simulation};
use setups::protocol;
use std::sync::Arc;

/// Number of seeds per application; COHKIT_SEEDS overrides it.
const SEEDS: u64 = 50;

/// Returns a setup in which races are likely.
fn machine(scenario: Arc<dyn Playable>, remotes: u16, seed: u64) -> Setup {
    let protocol = protocol("eci");
    let mut platform = Platform::torture(remotes);
    platform.lines = 4096;
    let line = u64::from(protocol.line_bytes);
    // Every second group of three seeds has components between the cores and their caches.
    if seed / 3 % 2 == 1 {
        platform.cores.write_buffer.value = 2 * line;
        platform.cores.l1_size.value = 4 * line;
    }
    let mut setup =
        Setup::with_scenario(protocol, platform, scenario).expect("protocol with a home");
    setup.seed = seed;
    setup.oracle = Level::Bytes;
    setup
}

/// Runs a setup to its end; the error is the failure as text.
fn play(setup: &Setup) -> Result<Tally, String> {
    let mut simulation = Simulation::new(setup, None).expect("valid setup");
    simulation.run().map_err(|failure| failure.to_string())?;
    Ok(simulation.tally())
}

/// Runs a scenario with all seeds. COHKIT_SEED=n repeats one.
fn torture(scenario: impl Fn(u64) -> Arc<dyn Playable>, judge: impl Fn(u64, &Tally)) {
    for seed in setups::seeds(SEEDS) {
        let remotes = 1 + (seed % 3) as u16;
        let mut setup = machine(scenario(seed), remotes, seed);
        // If slices are slow to accept unlocks, a later operation on the same line could overtake one.
        if seed % 5 == 4 {
            setup.platform.home.local_issue_interval.value = 200_000;
        }
        let tally = play(&setup).unwrap_or_else(|failure| {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("applications::");
            panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim {test}\n{failure}")
        });
        judge(seed, &tally);
    }
}

#[test]
fn shared_table() {
    let table = |seed: u64| SharedTable {
        cached: false,
        rows: 1 + (seed % 5) as Line,
        contended: 1000,
        engines: 1,
        outstanding: 1 + (seed % 3) as u32,
        device: Some(200),
        threads: 1 + (seed % 4) as u32,
        thread: Some(150),
    };
    torture(
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
        start_delay: 0,
        cached: false,
    };
    torture(
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
        |seed| {
            Arc::new(Prefetch {
                hints: (seed % 3) as u32,
                lines: 64,
                blocks: (seed % 4) as u32,
                block: 8,
                burst: 1 << (seed % 4),
                threads: 1 + (seed % 3) as u32,
                reads: Some(200),
                written: 300 * (seed % 3) as u32,
            })
        },
        |seed, tally| {
            let hits = tally.counts.get("hits").copied().unwrap_or(0);
            assert_eq!(hits > 0, seed % 4 > 0, "{:?}", tally.counts);
            let written = tally.counts.get("lines written").copied().unwrap_or(0);
            assert_eq!(written, (1 + seed % 3) * 60 * (seed % 3));
        },
    );
}

#[test]
fn rpc() {
    torture(
        |seed| {
            let calls = Calls::new(1 + (seed % 3) as u32, 1 + (seed % 4) as Line, Some(40));
            Arc::new(Calls {
                hints: (seed / 4 % 3) as Line,
                ..calls
            })
        },
        |seed, tally| {
            let contexts = 1 + seed % 3;
            assert_eq!(tally.counts["calls"], 40 * contexts);
            assert_eq!(tally.times["call"].count(), 40 * contexts);
        },
    );
}

/// Each line of results but the first of a call is prefetched once. A prefetch takes the write permission that the load
/// needs, so the device answers one read of each line, and lines are loaded at most as fast as the core issues.
#[test]
fn prefetched_results_of_calls_arrive_together() {
    let run = |hints| {
        let calls = Calls {
            hints,
            ..Calls::new(1, 20, Some(50))
        };
        let platform = Platform::shipped("enzian-dc-bram").unwrap();
        let setup = Setup::with_scenario(protocol("eci"), platform, Arc::new(calls)).unwrap();
        let mut simulation = Simulation::new(&setup, None).expect("valid setup");
        simulation.run().expect("no failure");
        let mean = simulation.tally().times["call"].mean();
        let statistics = simulation.statistics();
        (
            mean,
            ["prefetches", "messages"].map(|name| statistics.get(name)),
        )
    };
    let (slow, [no_prefetches, messages]) = run(0);
    let (fast, [prefetches, same_messages]) = run(4);
    assert_eq!(no_prefetches.unwrap_or(0.0), 0.0);
    assert_eq!(prefetches, Some(50.0 * 19.0));
    assert_eq!(messages, same_messages);
    // Up to five lines are on their way at once, where each load waited for its own line before.
    assert!(fast < slow / 2.0, "{fast} {slow}");
}

/// A prefetch with write permission brings the line in for reading if caches send stores to the home.
#[test]
fn exclusive_prefetches_read_where_stores_are_sent() {
    let prefetch = Step::PrefetchExclusive { line: 3 };
    let load = Step::Load { line: 3, word: 0 };
    // In reverse order.
    let steps = vec![load, Step::Work(10_000_000), prefetch];
    for (name, request) in [("write-through", "Read"), ("eci", "ReadExclusive")] {
        let scenario = Arc::new(ThreadsAlone(vec![Steps(steps.clone())]));
        let platform = Platform::shipped("enzian-dc-bram").unwrap();
        let setup = Setup::with_scenario(protocol(name), platform, scenario).unwrap();
        let statistics = cohkit_sim::simulation::run(&setup).unwrap();
        assert_eq!(statistics.get("hits"), Some(1.0), "{name}");
        assert_eq!(statistics.sent(request), Some(1), "{name}");
    }
}

#[test]
fn rpc_over_a_bus() {
    torture(
        |seed| {
            Arc::new(BusCalls {
                contexts: 1 + (seed % 3) as u32,
                words: 1 + (seed % 7) as u32,
                calls: Some(40),
                descriptors: seed.is_multiple_of(2),
            })
        },
        |seed, tally| {
            let contexts = 1 + seed % 3;
            assert_eq!(tally.counts["calls"], 40 * contexts);
            assert_eq!(tally.times["call"].count(), 40 * contexts);
        },
    );
}

/// Reading long results word by word is not polling.
#[test]
fn reading_long_results_is_not_polling() {
    let calls = BusCalls {
        contexts: 1,
        words: 4096,
        calls: Some(2),
        descriptors: true,
    };
    let platform = Platform::shipped("enzian-dc-bram").expect("shipped platform");
    let setup = Setup::with_scenario(protocol("eci"), platform, Arc::new(calls));
    let tally = play(&setup.expect("protocol with a home")).expect("completed run");
    assert_eq!(tally.counts["calls"], 2);
}

/// Returns a lock table whose parameters depend on the seed.
fn locks(seed: u64, messages: bool) -> LockTable {
    LockTable {
        cached: false,
        records: 1 + (seed % 3) as Line,
        threads: 1 + (seed % 4) as u32,
        device: (seed % 5) as u32,
        hold: 1000 * (seed % 50),
        pause: 500 * (seed % 7),
        transactions: Some(30),
        messages,
        words: seed.is_multiple_of(2),
    }
}

#[test]
fn locks_in_memory() {
    torture(
        |seed| Arc::new(locks(seed, false)),
        |seed, tally| {
            let count = |name| tally.counts.get(name).copied().unwrap_or(0);
            assert_eq!(count("host locks"), 30 * (1 + seed % 4));
            assert_eq!(count("device locks"), 30 * (seed % 5));
        },
    );
}

#[test]
fn locks_by_messages() {
    torture(
        |seed| Arc::new(locks(seed, true)),
        |seed, tally| {
            let count = |name| tally.counts.get(name).copied().unwrap_or(0);
            assert_eq!(count("host locks"), 30 * (1 + seed % 4));
            assert_eq!(count("device locks"), 30 * (seed % 5));
            assert_eq!(tally.times["host lock"].count(), 30 * (1 + seed % 4));
        },
    );
}

/// Transactions that the end of the run interrupts release the device's locks.
#[test]
fn locks_are_released_at_the_end_of_the_run() {
    for (messages, seed) in [(false, 3), (true, 3), (false, 9), (true, 9)] {
        let mut table = locks(seed, messages);
        table.transactions = None;
        let mut setup = machine(Arc::new(table), 1, seed);
        let play_settings = setup.play.as_mut().expect("setup with a scenario");
        play_settings.until = Some(50_000_000);
        let tally = play(&setup).unwrap_or_else(|failure| panic!("{seed} {messages}: {failure}"));
        assert!(tally.counts["device locks"] > 20, "{:?}", tally.counts);
    }
}

/// Returns a view of about `rows` orders of some customers; each seed appends different parts.
pub(crate) fn view(seed: u64, rows: u64, incremental: bool) -> View {
    let order = |number: u64| Order {
        customer: 1 + (number * 7 + seed) % 23,
        price: 100 * number + seed,
    };
    View {
        orders: (0..rows + seed % 5).map(order).collect(),
        updates: 1 + seed % 11,
        transactions: 5,
        incremental,
        words: 16 >> (seed % 4),
        outstanding: 1 + (seed % 5) as usize,
        in_host: false,
    }
}

#[test]
fn incremental_view_is_correct() {
    torture(
        |seed| Arc::new(view(seed, 60, true)),
        |_, tally| {
            assert_eq!(tally.counts["transactions"], 5);
            assert_eq!(tally.times["first response"].count(), 1);
            assert_eq!(tally.times["response"].count(), 4);
        },
    );
}

#[test]
fn recomputed_view_is_correct() {
    torture(
        |seed| Arc::new(view(seed, 60, false)),
        |seed, tally| {
            let scenario = view(seed, 60, true);
            assert_eq!(tally.counts["rows appended"], 5 * scenario.updates);
            // Each transaction reads all rows present at that time.
            let lines_of_rows = |rows: u64| (2 * rows).div_ceil(scenario.words);
            let initial_rows = scenario.orders.len() as u64 - 5 * scenario.updates;
            // The first view is made at the start.
            let rows = (0..=5).map(|transaction| initial_rows + transaction * scenario.updates);
            assert_eq!(
                tally.counts["lines scanned"],
                rows.map(lines_of_rows).sum::<u64>()
            );
        },
    );
}

/// The thread detects a row that the device's view lacks.
#[test]
fn wrong_view_is_detected() {
    #[derive(Clone)]
    struct WrongView(View);
    impl Scenario for WrongView {
        type Application = Maintainer;
        type Thread = Client;
        fn lines(&self) -> Line {
            self.0.lines()
        }
        fn terminates(&self) -> bool {
            true
        }
        /// The device starts with other prices.
        fn application(&self) -> Maintainer {
            let mut wrong_prices = self.0.clone();
            wrong_prices.orders = (wrong_prices.orders.iter())
                .map(|order| Order {
                    price: order.price + 1,
                    ..*order
                })
                .collect();
            wrong_prices.application()
        }
        fn threads(&self) -> Vec<Client> {
            self.0.threads()
        }
        fn verify(
            &self,
            application: &Maintainer,
            threads: &[Client],
            contents: &dyn Contents,
        ) -> Result<(), String> {
            self.0.verify(application, threads, contents)
        }
    }
    let setup = machine(Arc::new(WrongView(view(1, 60, true))), 1, 1);
    let failure = play(&setup).err().expect("detected wrong view");
    let expected = "materialised view: the view was wrong after 5 of 5 transactions";
    assert!(failure.contains(expected), "{failure}");
}

/// An application that breaks its contract in one of several ways when the CPU reads line 3.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct ContractBreaker(&'static str);

impl Application for ContractBreaker {
    fn name(&self) -> &str {
        "breaker"
    }
    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..8)
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
                "keeps a lock" | "asks under its lock" => {
                    actions.answer(line, words());
                    actions.local(20, Operation::Clean, true);
                }
                "cleans its own" => actions.local(5000, Operation::Clean, false),
                "asks twice" => {
                    actions.local(20, Operation::Clean, true);
                    actions.local(20, Operation::CleanInvalidate, false);
                }
                "reads a word" => actions.read_words(0, 5000, 0, 1),
                "reads a line" => actions.read_words(0, 5000, 0, 16),
                "reads on" => actions.fetch(0, 0, Line::MAX),
                "replies" => actions.reply(7, 1),
                "reads far" => actions.host_fetch(0, 5, u32::MAX),
                "wakes itself" => {
                    actions.answer(line, words());
                    actions.wake(0, 1000);
                }
                "wakes itself at once" => actions.wake(0, 0),
                "keeps busy" => {
                    actions.answer(line, words());
                    actions.wake(1, SECOND / 1000);
                }
                "is never woken" => actions.wake(0, u64::MAX),
                "answers after 0.5 s" => actions.wake(0, SECOND / 2),
                "answers after 2 s" => actions.wake(0, 2 * SECOND),
                breach => unreachable!("{breach}"),
            },
            Event::Timer { .. } if self.0 == "wakes itself" => actions.wake(0, 1000),
            Event::Timer { .. } if self.0 == "wakes itself at once" => actions.wake(0, 0),
            Event::Timer { .. } if self.0 == "keeps busy" => {
                actions.local(20, Operation::Clean, false);
                actions.wake(1, SECOND / 1000);
            }
            Event::Timer { .. } => actions.answer(3, words()),
            Event::ReadCompletion { .. } if self.0.starts_with("reads a ") => {
                actions.answer(3, words());
            }
            Event::Write { .. } if self.0 == "never accepts" => {}
            Event::Write { line, .. } => actions.accept(line),
            Event::LocalCompletion { line: 20, .. } if self.0 == "asks under its lock" => {
                actions.local(20, Operation::CleanInvalidate, false);
            }
            Event::PermissionChange {
                line,
                to: Permission::Write,
                ..
            } => actions.local(line, Operation::Clean, false),
            _ => {}
        }
    }
}

/// A thread that loads words of some lines, and stores to line 6.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct LineLoads(Vec<Line>);

impl Thread for LineLoads {
    fn step(&mut self, _result: u64) -> Step {
        match self.0.pop() {
            Some(line @ 6) => Step::Store {
                line,
                word: 0,
                value: 1,
            },
            Some(line) => Step::Load { line, word: 0 },
            None => Step::Stop,
        }
    }
}

/// Scenario with a breaker and threads that load these lines.
#[derive(Clone)]
struct BreakerScenario(&'static str, Vec<Vec<Line>>);

impl Scenario for BreakerScenario {
    type Application = ContractBreaker;
    type Thread = LineLoads;
    fn lines(&self) -> Line {
        8
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> ContractBreaker {
        ContractBreaker(self.0)
    }
    fn threads(&self) -> Vec<LineLoads> {
        self.1.iter().cloned().map(LineLoads).collect()
    }
    fn verify(
        &self,
        _: &ContractBreaker,
        _: &[LineLoads],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        match contents.word(2, 0) {
            0 => Ok(()),
            word => Err(format!("line 2 begins with {word}")),
        }
    }
}

/// A report of a broken contract names the application and the line.
#[test]
fn broken_contracts_are_reported_by_name() {
    let mut reports = String::new();
    for (breach, lines) in [
        ("answers twice", vec![3, 2]),
        ("never answers", vec![3, 2]),
        ("answers short", vec![3, 2]),
        ("unlocks", vec![3, 2]),
        ("accepts", vec![3, 2]),
        ("writes", vec![3, 2]),
        ("keeps a lock", vec![3, 2]),
        ("asks twice", vec![3, 2]),
        ("asks under its lock", vec![3, 2]),
        ("cleans its own", vec![3, 2]),
        ("never accepts", vec![4, 6]),
        ("reads on", vec![3, 2]),
        ("replies", vec![3, 2]),
        ("reads far", vec![3, 2]),
        ("wakes itself", vec![3]),
        ("wakes itself at once", vec![3]),
        ("is never woken", vec![3]),
        // No breach, except that line 2 is never answered with zeros.
        ("no wrong", vec![4]),
        // A thread accesses a line beyond memory.
        ("nothing", vec![5000]),
    ] {
        let setup = machine(Arc::new(BreakerScenario(breach, vec![lines])), 1, 0);
        let Err(RunError::Failure(failure)) = cohkit_sim::simulation::run(&setup) else {
            panic!("{breach}: nothing was reported");
        };
        assert_ne!(failure.kind, FailureKind::DataValue);
        reports.push_str(&format!(
            "{breach}: {}, line {}, {} ns: {}\n",
            failure.kind,
            failure.line,
            failure.time / 1000,
            failure.text
        ));
    }
    expect_test::expect![[r#"
        answers twice: contract of an application, line 3, 211 ns: breaker answers a read that is not outstanding
        never answers: no progress, line 3, 211 ns: no access was performed for 0 ns; the oldest was issued at 128 ns: breaker has not answered a read
        answers short: contract of an application, line 3, 211 ns: breaker gives a line of 3 words; lines have 16
        unlocks: contract of an application, line 3, 211 ns: breaker unlocks a line that it has not locked
        accepts: contract of an application, line 3, 211 ns: breaker accepts a write that is not outstanding
        writes: contract of an application, line 20, 211 ns: breaker writes memory of a line that it has not locked and invalidated
        keeps a lock: no progress, line 20, 253 ns: breaker has not released its lock, and no other event is pending
        asks twice: contract of an application, line 20, 211 ns: breaker asks for a clean-invalidate before its clean is complete
        asks under its lock: contract of an application, line 20, 215 ns: breaker asks for a clean-invalidate under its own lock
        cleans its own: contract of an application, line 5000, 211 ns: breaker cleans a line outside the memory of the home
        never accepts: no progress, line 6, 307 ns: breaker has not accepted a write, and no other event is pending
        reads on: contract of an application, line 0, 211 ns: breaker reads 4294967295 lines at once; 65536 is the most
        replies: contract of an application, line 0, 211 ns: breaker answers thread 7, which has no outstanding register read
        reads far: contract of an application, line 0, 211 ns: 4294967295 words from 5 on exceed the CPU's own memory
        wakes itself: contract of an application, line 0, 1048703 ns: breaker wakes itself 1048576 times in a row without any other activity
        wakes itself at once: contract of an application, line 0, 44 ns: breaker wakes itself 1048576 times in a row without any other activity
        is never woken: contract of an application, line 0, 44 ns: breaker requests a wake-up after 18446744073709551615 ps, which is beyond the end of simulated time
        no wrong: result of a scenario, line 0, 127 ns: breaker: line 2 begins with 8604477608339801740
        nothing: contract of an application, line 5000, 0 ns: thread 0 accesses word 0 of line 5000; there are 4096 lines of 16 words
    "#]].assert_eq(&reports);
}

/// A thread that reads a register that no component answers or that does not exist, or that polls a word that never
/// changes.
#[derive(Clone)]
struct UnansweredAccess(Step);

impl Thread for UnansweredAccess {
    fn step(&mut self, _result: u64) -> Step {
        self.0
    }
}

impl Scenario for UnansweredAccess {
    type Application = ContractBreaker;
    type Thread = UnansweredAccess;
    fn lines(&self) -> Line {
        8
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> ContractBreaker {
        ContractBreaker("nothing")
    }
    fn threads(&self) -> Vec<UnansweredAccess> {
        vec![self.clone()]
    }
    fn verify(
        &self,
        _: &ContractBreaker,
        _: &[UnansweredAccess],
        _: &dyn Contents,
    ) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn unanswered_register_reads_are_reported() {
    let report = |step: Step, change: fn(&mut Platform)| {
        let mut setup = machine(Arc::new(UnansweredAccess(step)), 1, 0);
        change(&mut setup.platform);
        match cohkit_sim::simulation::run(&setup) {
            Err(RunError::Failure(failure)) => failure.to_string().lines().next().map(String::from),
            _ => None,
        }
    };
    let read = Step::ReadRegister { register: 5 };
    let reports = [
        report(read, |_| {}),
        report(read, |platform| platform.cores.timeout.value = 20_000),
        report(read, |platform| platform.bus = None),
        report(Step::LoadHost { word: 3 }, |_| {}),
    ];
    expect_test::expect![[r#"
        [
            Some(
                "no progress: breaker has not answered thread 0, which reads a register, and no other event is pending (line 0, at 61.000 ns)",
            ),
            Some(
                "timeout of a core: core 0 has waited for an access since 1 ns, and reports a timeout (line 0, at 25.000 ns)",
            ),
            Some(
                "contract of an application: no device bus (table `[bus]`) in torture (line 0, at 1.000 ns)",
            ),
            Some(
                "no progress: thread 0 polls the CPU's own memory, into which breaker has written nothing for 200002 ns (line 0, at 200003.000 ns)",
            ),
        ]"#]].assert_eq(&format!("{reports:#?}"));
}

/// A thread that executes these steps in reverse order.
#[derive(Clone)]
struct Steps(Vec<Step>);

impl Thread for Steps {
    fn step(&mut self, _result: u64) -> Step {
        self.0.pop().unwrap_or(Step::Stop)
    }
}

/// Threads beside a breaker.
#[derive(Clone)]
struct ThreadsBesideBreaker(&'static str, Vec<Steps>);

impl Scenario for ThreadsBesideBreaker {
    type Application = ContractBreaker;
    type Thread = Steps;
    fn lines(&self) -> Line {
        8
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> ContractBreaker {
        ContractBreaker(self.0)
    }
    fn threads(&self) -> Vec<Steps> {
        self.1.clone()
    }
    fn verify(&self, _: &ContractBreaker, _: &[Steps], _: &dyn Contents) -> Result<(), String> {
        Ok(())
    }
}

/// Threads with nothing behind the home.
#[derive(Clone)]
struct ThreadsAlone(Vec<Steps>);

impl Scenario for ThreadsAlone {
    type Application = NoApplication;
    type Thread = Steps;
    fn lines(&self) -> Line {
        8
    }
    fn terminates(&self) -> bool {
        true
    }
    fn is_threads_only(&self) -> bool {
        true
    }
    fn application(&self) -> NoApplication {
        NoApplication
    }
    fn threads(&self) -> Vec<Steps> {
        self.0.clone()
    }
    fn verify(&self, _: &NoApplication, _: &[Steps], _: &dyn Contents) -> Result<(), String> {
        Ok(())
    }
}

/// A thread's accesses in flight are bounded, prefetches included: one place is left for its next access, and further
/// prefetches are dropped.
#[test]
fn prefetches_of_a_thread_are_bounded_by_the_platform() {
    let hints: Vec<Step> = (100..120).map(|line| Step::Prefetch { line }).collect();
    let load = Step::Load { line: 200, word: 0 };
    let steps = [&[load, Step::Work(10_000_000)], &hints[..]].concat();
    for (max_outstanding, distance, expected) in
        [(1, 8, 8), (1, 3, 3), (4, 3, 6), (1, 0, 0), (64, 8, 20)]
    {
        let scenario = Arc::new(ThreadsBesideBreaker("nothing", vec![Steps(steps.clone())]));
        let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
        platform.cores.max_outstanding.value = max_outstanding;
        platform.cores.prefetch_distance.value = distance;
        let setup = Setup::with_scenario(protocol("eci"), platform, scenario).unwrap();
        let statistics = cohkit_sim::simulation::run(&setup).unwrap();
        let prefetches = statistics.get("prefetches");
        assert_eq!(
            prefetches,
            Some(f64::from(expected)),
            "{max_outstanding} {distance}"
        );
        // The others are dropped. A run without drops has no such statistic.
        let dropped = 20 - expected;
        assert_eq!(
            statistics.get("prefetches_dropped"),
            (dropped > 0).then_some(f64::from(dropped)),
            "{max_outstanding} {distance}"
        );
    }
}

/// Accesses of an application at a home with a last-level cache find its lines there: from the second increment of each
/// row on, DRAM is not accessed.
#[test]
fn application_at_a_home_uses_its_last_level_cache() {
    let row_misses = |sets: &str| {
        let table = SharedTable {
            cached: false,
            rows: 64,
            contended: 1000,
            engines: 1,
            outstanding: 1,
            device: Some(2000),
            threads: 1,
            thread: Some(1),
        };
        let mut platform = Platform::shipped("thunderx1-2s").unwrap();
        platform.set("home.llc_sets", sets).unwrap();
        platform.set("home.llc_ways", "1").unwrap();
        let setup = Setup::with_scenario(protocol("eci"), platform, Arc::new(table)).unwrap();
        let statistics = cohkit_sim::simulation::run(&setup).unwrap();
        statistics.get("memory_row_misses").unwrap()
    };
    // One line of cache never has the next row; with as many lines as rows, each row misses once.
    let [always, once] = ["1", "1024"].map(row_misses);
    assert!(always > 1000.0 && once < 300.0, "{always} {once}");
}

/// Lines beyond the memory of a home are not in its last-level cache: a word of one takes one burst of a
/// DRAM, and a line two.
#[test]
fn words_beyond_the_memory_of_a_home_take_only_their_bursts() {
    let mut platform = Platform::shipped("thunderx1-2s").unwrap();
    platform.memory = Platform::shipped("peers-device-memory").unwrap().memory;
    platform.lines = 4096;
    assert!(platform.home.llc.is_some());
    let Memory::Dram(dram) = platform.memory.clone() else {
        panic!("a DRAM without a scheduler");
    };
    let [word, line] = ["reads a word", "reads a line"].map(|kind| {
        let steps = Steps(vec![Step::Load { line: 3, word: 0 }]);
        let scenario = Arc::new(ThreadsBesideBreaker(kind, vec![steps]));
        let setup = Setup::with_scenario(protocol("eci"), platform.clone(), scenario).unwrap();
        let statistics = cohkit_sim::simulation::run(&setup).unwrap();
        statistics.get("time_ns").unwrap()
    });
    let burst = (dram.bandwidth.time_of(128) - dram.bandwidth.time_of(64)) as f64 / 1000.0;
    assert!(burst > 0.0);
    assert!((line - word - burst).abs() < 0.001, "{word} {line} {burst}");
}

/// A device or a thread may be slow as long as no core times out. Progress of another core does not affect this.
#[test]
fn cores_wait_for_about_a_second() {
    let load = |line| Step::Load { line, word: 0 };
    let busy_steps: Vec<Step> = [Step::Work(SECOND / 1000), load(1)].repeat(3000);
    for other_threads in [vec![], vec![Steps(busy_steps)]] {
        let run = |breach: &'static str, steps: Vec<Step>| {
            let mut threads = vec![Steps(steps)];
            threads.extend(other_threads.clone());
            let scenario = Arc::new(ThreadsBesideBreaker(breach, threads));
            let platform = Platform::shipped("enzian-dc-bram").unwrap();
            let setup = Setup::with_scenario(protocol("eci"), platform, scenario).unwrap();
            match cohkit_sim::simulation::run(&setup) {
                Err(RunError::Failure(failure)) => {
                    Some((failure.kind, failure.line, failure.time / SECOND))
                }
                Err(error) => panic!("{error}"),
                Ok(_) => None,
            }
        };
        assert_eq!(run("answers after 0.5 s", vec![load(3)]), None);
        let work = Step::Work(3 * SECOND);
        assert_eq!(run("no wrong", vec![load(4), work, load(4)]), None);
        let mut work_steps = vec![Step::Work(50_000_000); 10];
        work_steps.insert(0, load(4));
        assert_eq!(run("no wrong", work_steps), None);
        let timeout = run("answers after 2 s", vec![load(3)]);
        assert_eq!(timeout, Some((FailureKind::Timeout, 3, 1)));
    }
}

/// A time beyond the supported range is reported, and so is an application that does not stop when requested.
#[test]
fn out_of_range_times_are_reported() {
    let report = |breach, steps: Vec<Step>, until| {
        let mut setup = machine(
            Arc::new(ThreadsBesideBreaker(breach, vec![Steps(steps)])),
            1,
            0,
        );
        setup.play.as_mut().unwrap().until = until;
        match cohkit_sim::simulation::run(&setup) {
            Err(RunError::Failure(failure)) => failure.to_string().lines().next().map(String::from),
            _ => None,
        }
    };
    let reports = [
        report(
            "no wrong",
            vec![Step::Work(u64::MAX), Step::Work(1000)],
            None,
        ),
        report(
            "keeps busy",
            vec![Step::Load { line: 3, word: 0 }],
            Some(SECOND / 1000),
        ),
    ];
    expect_test::expect![[r#"
        [
            Some(
                "contract of an application: thread 0 works for 18446744073709551615 ps, which is beyond the end of simulated time (line 0, at 0.000 ns)",
            ),
            Some(
                "contract of an application: breaker still runs 1000000044 ns after the request to stop (line 0, at 1001000044.212 ns)",
            ),
        ]"#]].assert_eq(&format!("{reports:#?}"));
    let count = Step::Count {
        name: "much",
        by: u64::MAX,
    };
    let setup = machine(
        Arc::new(ThreadsBesideBreaker(
            "no wrong",
            vec![Steps(vec![count, count])],
        )),
        1,
        0,
    );
    assert_eq!(play(&setup).unwrap().counts["much"], u64::MAX);
}

/// A core times out even if all others make progress.
#[test]
fn core_reports_a_timeout() {
    let lines = vec![vec![3, 2], vec![1; 20_000]];
    let mut setup = machine(Arc::new(BreakerScenario("never answers", lines)), 1, 0);
    setup.platform.cores.timeout.value = 20_000_000;
    let Err(RunError::Failure(failure)) = cohkit_sim::simulation::run(&setup) else {
        panic!("no timeout was reported");
    };
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.line, 3);
    assert!(
        failure.text.contains("breaker has not answered a read"),
        "{}",
        failure.text
    );
}

/// A core also times out without an application, on one space and on two.
#[test]
fn core_times_out_independently() {
    for (machine, text) in [
        ("enzian-dc-bram", "eci"),
        ("enzian-cpu-home", "eci-near"),
        ("peers-device-memory", "mesi"),
    ] {
        let timeout_failure = |timeout: &str| {
            let mut platform = Platform::shipped(machine).unwrap();
            platform.set("cores.timeout", timeout).unwrap();
            let reads = Workload::pass(Pattern::Sequential, Access::Load, 64, 1, 1);
            let setup = Setup::new(protocol(text), platform, reads).unwrap();
            match cohkit_sim::simulation::run(&setup) {
                Err(RunError::Failure(failure)) => Some((failure.kind, failure.text)),
                Err(error) => panic!("{machine}: {error}"),
                Ok(_) => None,
            }
        };
        assert_eq!(timeout_failure("1ms"), None, "{machine}");
        let expected = "core 0 has waited for an access since 0 ns, and reports a timeout";
        let result = timeout_failure("1ns");
        assert_eq!(
            result,
            Some((FailureKind::Timeout, expected.to_string())),
            "{machine}"
        );
    }
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
            start_delay: 0,
            cached: false,
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

/// A home with hand-written rows serves a device application that need not observe the CPU's permissions: device bias
/// of CXL.mem is its lock.
#[test]
fn unobserving_application_runs_beside_a_row_home() {
    for layer in ["none", "cxl-256"] {
        let table = SharedTable {
            rows: 16,
            contended: 500,
            engines: 1,
            outstanding: 3,
            device: Some(200),
            threads: 2,
            thread: Some(300),
            cached: false,
        };
        let engine = Invalidation {
            lines: 40,
            outstanding: 5,
            dirty: true,
            held: true,
            start_delay: 100_000_000,
            cached: false,
        };
        let mut platform = Platform::shipped("peers-device-memory").unwrap();
        platform.set("link.layer", layer).unwrap();
        let play_on_row_home = |scenario| {
            let text = protocol("cxl-mem");
            let setup = Setup::with_scenario(text, platform.clone(), scenario).unwrap();
            play(&setup).unwrap_or_else(|failure| panic!("{layer}: {failure}"))
        };
        let counts = play_on_row_home(Arc::new(table)).counts;
        assert_eq!(
            (counts["increments"], counts["device increments"]),
            (600, 200)
        );
        let counts = play_on_row_home(Arc::new(engine)).counts;
        assert_eq!((counts["invalidated"], counts["written back"]), (40, 40));
    }
    // This application would wait forever for its start event.
    let observing = Invalidation {
        lines: 1,
        outstanding: 1,
        dirty: false,
        held: true,
        start_delay: 0,
        cached: false,
    };
    let platform = Platform::shipped("peers-device-memory").unwrap();
    let error = Setup::with_scenario(protocol("cxl-mem"), platform, Arc::new(observing)).err();
    let error = error.expect("rejection by a hand-written home").to_string();
    assert!(error.contains("hand-written"), "{error}");
}

/// Each line that a device takes costs the messages of its protocol, and on a pipe their headers and bytes.
#[test]
fn each_recalled_line_costs_its_protocol_messages() {
    // Messages for a line that the host has modified: forward and answer; snoop or request, write-back, its completion
    // and answer; request, data and GO.
    let of_eci = [("peers-device-memory", "eci", 2, 2 * 16 + 128)];
    let of_cxl = [
        ("peers-device-memory", "cxl-mem", 4, 4 * 16 + 64),
        ("peers-device-memory", "cxl-bias", 4, 4 * 16 + 64),
        ("peers-host-memory", "cxl-cache", 3, 3 * 16 + 64),
    ];
    for (machine, name, messages, bytes) in of_eci.into_iter().chain(of_cxl) {
        let cached = name == "cxl-cache";
        let engine = Invalidation {
            lines: 50,
            outstanding: 1,
            dirty: true,
            held: true,
            start_delay: 100_000_000,
            cached,
        };
        let platform = Platform::shipped(machine).unwrap();
        let setup = Setup::with_scenario(protocol(name), platform, Arc::new(engine));
        let mut setup = setup.unwrap_or_else(|error| panic!("{name}: {error}"));
        // By the end of the warm-up, all lines have been accessed.
        setup.play.as_mut().unwrap().warm_up = 100_000_000;
        let tally = play(&setup).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!(tally.counts.get("touched"), None);
        assert_eq!(tally.counts["invalidated"], 50);
        let traffic = tally.traffic[usize::from(cached)];
        assert_eq!(
            (traffic.messages, traffic.bytes),
            (50 * messages, 50 * bytes),
            "{name}"
        );
    }
}

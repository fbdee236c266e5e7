//! Kernels on hosts with protocols of `ordering`: their results are correct if the protocol keeps its order, and an
//! order violation is detected by a wrong result.

use cohkit_testing::orderings;
use cohkit_testing::setups;

use cohkit_application::interface::{Scenario, Step, Thread, Update};
use cohkit_application::kernel::{
    mix64, Array, Barrier, Core, Granularity, Hosts, Kernel, KernelScenario, Memory, WordAddress,
};
use cohkit_application::matrix_market;
use cohkit_application::shipped::{visit, visit_with_graph, Visitor};
use cohkit_sim::explain::FailureKind;
use cohkit_sim::scenario::Playable;
use cohkit_sim::simulation::{play_while, RunError};
use orderings::{changed_ordering, correct_orderings, machine, orderings, setup};
use setups::seeds;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

/// All kernels, with small parameters.
const KERNELS: [(&str, &[(&str, u64)]); 12] = [
    (
        "pagerank",
        &[("vertices", 96), ("rounds", 2), ("release", 64)],
    ),
    ("sssp", &[("vertices", 64), ("release", 64)]),
    (
        "padding",
        &[
            ("rows", 6),
            ("columns", 20),
            ("pad", 3),
            ("part", 4),
            ("block", 3),
        ],
    ),
    (
        "task-queue",
        &[("tasks", 6), ("slots", 2), ("most", 6), ("bins", 4)],
    ),
    (
        "histogram",
        &[
            ("bins", 10),
            ("values", 30),
            ("rounds", 3),
            ("release", 128),
        ],
    ),
    (
        "histogram",
        &[("atomic", 1), ("bins", 10), ("values", 30), ("rounds", 3)],
    ),
    (
        "transpose",
        &[("size", 10), ("rounds", 3), ("release", 192)],
    ),
    ("mocfe", &[("steps", 1)]),
    ("cmc2d", &[("steps", 1), ("threads", 4)]),
    ("bigfft", &[("steps", 1), ("threads", 2)]),
    ("crystal-router", &[("steps", 2)]),
    ("exchange", &[("fanout", 3), ("stores", 8), ("releases", 3)]),
];

/// Visitor that returns a scenario as a pointer.
struct Plays;

impl Visitor for Plays {
    type Output = Arc<dyn Playable>;

    fn visit<S: Scenario + Clone + Send + Sync + 'static>(self, scenario: S) -> Arc<dyn Playable> {
        Arc::new(scenario)
    }
}

fn parameters_by_name(parameters: &[(&str, u64)]) -> BTreeMap<String, u64> {
    parameters
        .iter()
        .map(|&(name, n)| (name.into(), n))
        .collect()
}

/// Returns the shipped kernel of this name with these parameters.
fn kernel(name: &str, parameters: &[(&str, u64)]) -> Arc<dyn Playable> {
    visit(name, &parameters_by_name(parameters), Plays).unwrap()
}

#[test]
fn kernels_are_correct_under_jitter() {
    for (ordering, protocol) in &correct_orderings(8) {
        for (name, parameters) in KERNELS {
            for seed in seeds(2) {
                let mut platform = machine();
                platform.link.jitter.value = 300_000;
                let mut setup = setup(protocol, &platform, kernel(name, parameters));
                setup.seed = seed;
                if let Err(error) = play_while(&setup, &mut |_| true) {
                    panic!("{ordering}, {name}, COHKIT_SEED={seed}: {error}");
                }
            }
        }
    }
}

/// Sequence numbers order stores at one directory, which then homes all shared data. The protocols have no atomic
/// accesses, and an exchange needs two hosts.
#[test]
fn kernels_are_correct_with_sequence_numbers() {
    let sizes = [("numbers", 256), ("most", 255)];
    let mut programs = 0;
    for ordering in ["seq", "tso/seq"] {
        let protocol = orderings::ordering(ordering, &sizes);
        let needs_atomics = |(name, parameters): &(&str, &[(&str, u64)])| {
            matches!(*name, "task-queue" | "padding" | "exchange")
                || parameters.contains(&("atomic", 1))
        };
        let kernels = KERNELS.iter().filter(|kernel| !needs_atomics(kernel));
        for (name, parameters) in kernels {
            let parameters = [parameters, &[("homes", 1)][..]].concat();
            for seed in seeds(2) {
                let mut platform = machine();
                platform.link.jitter.value = 300_000;
                let mut setup = setup(&protocol, &platform, kernel(name, &parameters));
                setup.seed = seed;
                let played = play_while(&setup, &mut |_| true).unwrap_or_else(|error| {
                    panic!("{ordering}, {name}, COHKIT_SEED={seed}: {error}")
                });
                // The sequence numbers wrap.
                programs += usize::from(played.statistics.sent("Write").unwrap() > 256);
            }
        }
    }
    assert!(programs > 10, "{programs}");
}

/// Threads add to a word, and raise another to the maximum that any has seen by compare-and-swap. They also pass a slot
/// from thread to thread in turns. The owner stores to the slot, then announces the next turn by an atomic access that
/// is ordered after all its stores.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Atomics;

/// Number of turns that each thread takes.
const TURNS: u64 = 4;

impl Kernel for Atomics {
    fn hosts(&self) -> Hosts {
        Hosts {
            homes: 8,
            threads: 8,
        }
    }

    fn lines(&self) -> u32 {
        let mut memory = Memory::new(8);
        self.places(&mut memory);
        memory.lines()
    }

    async fn run(self, core: Core) -> Result<(), String> {
        let mut memory = Memory::new(8);
        let Places {
            sum,
            largest,
            turn,
            handed,
            mut barrier,
        } = self.places(&mut memory);
        if core.number == 0 {
            for array in [sum, largest, turn, handed] {
                core.store(array, 0, 0).await;
            }
        }
        barrier.wait(&core).await;
        core.begin().await;
        let me = u64::from(core.number);
        let mut error = None;
        for round in 0..TURNS {
            core.add(sum.at(0), me + 1).await;
            let candidate = mix64(me << 8 | round) >> 8;
            let mut current = core.load(largest.at(0)).await;
            while current < candidate {
                let update = Update::CompareSwap {
                    old: current,
                    new: candidate,
                };
                let previous = core.update(largest.at(0), update).await;
                if previous == current {
                    break;
                }
                current = previous;
            }
            // The slot is in another home's memory than the word with the current turn.
            let own_turn = round * 8 + me;
            while core.update(turn.at(0), Update::Add(0)).await != own_turn {
                core.work(10_000).await;
            }
            let previous = core.load(handed.at(0)).await;
            if previous != own_turn {
                error = Some(format!("turn {own_turn} finds {previous}"));
            }
            core.store(handed, 0, own_turn + 1).await;
            core.add_ordered(turn.at(0), 1).await;
        }
        barrier.wait(&core).await;
        core.end("done").await;
        error.map_or(Ok(()), Err)
    }

    fn check(&self, word: &dyn Fn(WordAddress) -> u64) -> Result<(), String> {
        let places = self.places(&mut Memory::new(8));
        let candidates =
            (0..8).flat_map(|me| (0..TURNS).map(move |round| mix64(me << 8 | round) >> 8));
        for (array, expected) in [
            (places.sum, 36 * TURNS),
            (places.largest, candidates.max().unwrap()),
            (places.turn, 8 * TURNS),
        ] {
            let value = word(array.at(0));
            if value != expected {
                return Err(format!("{value:#x} instead of {expected:#x}"));
            }
        }
        Ok(())
    }
}

/// Words of the kernel, each on a home of its own.
struct Places {
    /// Sum of all additions.
    sum: Array,
    /// Maximum of the threads' candidates, raised by compare-and-swap.
    largest: Array,
    /// Number of the current turn; thread `t` has turns `t`, `t + 8`, and so on.
    turn: Array,
    /// Slot that is passed on. It must hold the number of the turn before that turn begins.
    handed: Array,
    /// Barrier of all threads.
    barrier: Barrier,
}

impl Atomics {
    /// Allocates the words, always at the same places.
    fn places(&self, memory: &mut Memory) -> Places {
        let mut array_on = |host| memory.array(host, 1, Granularity::Line);
        let (sum, largest, turn, handed) = (array_on(1), array_on(2), array_on(3), array_on(6));
        Places {
            sum,
            largest,
            turn,
            handed,
            barrier: Barrier::new(memory, 8),
        }
    }
}

/// Homes perform atomic accesses, for which the protocols have rows.
#[test]
fn atomics_are_performed_at_homes_under_jitter() {
    let kernels = [
        Arc::new(KernelScenario(Atomics)) as Arc<dyn Playable>,
        kernel("task-queue", KERNELS[3].1),
        kernel("histogram", KERNELS[5].1),
    ];
    for (ordering, protocol) in correct_orderings(8) {
        for (number, kernel) in kernels.iter().enumerate() {
            for seed in seeds(100) {
                let mut platform = machine();
                platform.link.jitter.value = 300_000;
                let mut setup = setup(&protocol, &platform, Arc::clone(kernel));
                setup.seed = seed;
                let played = play_while(&setup, &mut |_| true).unwrap_or_else(|error| {
                    panic!("{ordering}, kernel {number}, COHKIT_SEED={seed}: {error}")
                });
                let sent = played.statistics.sent("Atomic").unwrap();
                assert!(sent > 8, "{ordering}, kernel {number}: {sent}");
                assert_eq!(played.statistics.sent("OldValue"), Some(sent), "{ordering}");
            }
        }
    }
}

/// A home that answers with the value it has written, or does not perform the access, is detected.
#[test]
fn wrong_atomic_responses_are_detected() {
    let row = "Atomic if count(sharers - { sender }) == 0 | send OldValue, write,";
    for (faulty, kind, expected) in [
        (
            "write, send OldValue,",
            FailureKind::DataValue,
            "and is answered with",
        ),
        ("send OldValue,", FailureKind::DataValue, "not performed"),
    ] {
        let faulty_row = row.replace("send OldValue, write,", faulty);
        let protocol = changed_ordering("so-strict", &[], &[(row, &faulty_row)]);
        let setup = setup(&protocol, &machine(), Arc::new(KernelScenario(Atomics)));
        match play_while(&setup, &mut |_| true) {
            Err(RunError::Failure(failure)) => {
                assert_eq!(failure.kind, kind, "{}", failure.text);
                assert!(failure.text.contains(expected), "{}", failure.text);
            }
            other => panic!("{faulty}: {:?}", other.map(|_| ())),
        }
    }
}

/// An L1 loses the lines that its cache invalidates in a bulk transition, here after each acquire. Otherwise a thread
/// reads values of the round before.
#[test]
fn l1_loses_the_lines_of_a_bulk_transition() {
    let protocol = setups::protocol("self-invalidate");
    let platform = machine();
    assert!(platform.cores.l1_size.value > 0);
    for (name, parameters) in [
        ("bigfft", &[("steps", 24)][..]),
        (
            "pagerank",
            &[("vertices", 96), ("rounds", 3), ("release", 64)],
        ),
    ] {
        let setup = setup(&protocol, &platform, kernel(name, parameters));
        let played = play_while(&setup, &mut |_| true).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(played.statistics.get("l1_hits").unwrap() > 0.0, "{name}");
    }
}

/// Two cores of each host run a thread each.
#[test]
fn several_cores_of_each_host_take_part() {
    let protocols = orderings(8);
    for (ordering, protocol) in &protocols[..3] {
        for (name, parameters) in KERNELS {
            let has_parameter =
                |name: &str| parameters.iter().any(|&(parameter, _)| parameter == name);
            let threads = [("threads", 16)];
            let added = if has_parameter("threads") {
                &[][..]
            } else {
                &threads
            };
            let mut platform = machine();
            platform.remotes = 16;
            let kernel = kernel(name, &[parameters, added].concat());
            if let Err(error) = play_while(&setup(protocol, &platform, kernel), &mut |_| true) {
                panic!("{ordering}, {name}: {error}");
            }
        }
    }
}

/// Data for the threads of a host are stored and announced once per host, and each thread reads correct values.
#[test]
fn host_is_notified_once_for_all_its_threads() {
    const THREADS: u64 = 24;
    let (_, protocol) = &orderings(8)[2];
    let mut platform = machine();
    platform.remotes = THREADS as u16;
    platform.link.jitter.value = 300_000;
    // Each thread has neighbours on all eight hosts. A barrier of 24 has five rounds; path lengths take as many rounds
    // as necessary.
    let kernels: [(_, &[(&str, u64)], _); 3] = [
        (
            "pagerank",
            &[("vertices", 96), ("far", 24)],
            Some(4 * 8 + 5),
        ),
        ("sssp", &[("vertices", 96), ("far", 24)], None),
        ("transpose", &[("size", 30), ("rounds", 3)], Some(3 * 8)),
    ];
    for (name, parameters, releases) in kernels {
        for seed in seeds(2) {
            let parameters = [parameters, &[("threads", THREADS), ("release", 1 << 20)]].concat();
            let mut setup = setup(protocol, &platform, kernel(name, &parameters));
            setup.seed = seed;
            let played = play_while(&setup, &mut |_| true)
                .unwrap_or_else(|error| panic!("{name}, COHKIT_SEED={seed}: {error}"));
            let sent = played.statistics.sent("Release").unwrap();
            if let Some(releases) = releases {
                assert_eq!(sent, THREADS * releases, "{name}, COHKIT_SEED={seed}");
            }
        }
    }
}

/// A kernel uses the graph of a file; kernels without a graph reject one.
#[test]
fn graphs_are_read_from_files() {
    let text = include_str!("../../../../tests/graphs/two-rings.mtx");
    let edges = Arc::new(matrix_market::read(text).unwrap());
    let lines_used = |name, parameters: &[(&str, u64)]| {
        visit_with_graph(
            name,
            &parameters_by_name(parameters),
            Some(Arc::clone(&edges)),
            Plays,
        )
        .map(|play| play.line_count())
    };
    let (_, protocol) = &orderings(8)[0];
    for name in ["pagerank", "sssp"] {
        let kernel =
            visit_with_graph(name, &BTreeMap::new(), Some(Arc::clone(&edges)), Plays).unwrap();
        let played = play_while(&setup(protocol, &machine(), kernel), &mut |_| true);
        let played = played.unwrap_or_else(|error| panic!("{name}: {error}"));
        // A part of three vertices has neighbours in two or three others, and stores no more than their words.
        let sent = played.statistics.sent("Write").unwrap();
        assert!((24..2_000).contains(&sent), "{name}: {sent}");
    }
    let error_of = |name, parameters: &[(&str, u64)]| lines_used(name, parameters).unwrap_err();
    let far_error = error_of("sssp", &[("far", 2)]);
    assert_eq!(
        far_error,
        "far applies only to a generated graph, but a graph file is given"
    );
    let padding_error = error_of("padding", &[]);
    assert_eq!(
        padding_error,
        "padding does not use a graph; pagerank and sssp do"
    );
}

/// Stores of host 0 to the memory of host 5 arrive late, after their reader has learnt of them from other hosts. Posted
/// stores do not keep such an order, nor do releases that commit without the notifications that they need.
#[test]
fn stores_overtaken_by_a_flag_are_detected() {
    let mut platform = machine();
    let hosts = platform.hosts.as_mut().unwrap();
    (hosts.extra_latency_from.value, hosts.extra_latency_to.value) = (0, 5);
    hosts.extra_latency.value = 100_000_000;
    let sizes = [("homes", 8), ("epochs", 16), ("entries", 8), ("most", 255)];
    let change = (" and notify_count[sender][epoch] == notifications", "");
    let faulty = ("faulty", changed_ordering("cord", &sizes, &[change]));
    let protocols = orderings(8).into_iter().chain([faulty]);
    for (ordering, protocol) in protocols {
        let setup = setup(&protocol, &platform, kernel("padding", KERNELS[2].1));
        match (ordering, play_while(&setup, &mut |_| true)) {
            ("mp" | "faulty", Err(RunError::Failure(failure))) => {
                assert_eq!(failure.kind, FailureKind::Result);
                assert!(failure.text.contains(": element "), "{}", failure.text);
            }
            ("mp" | "faulty", Ok(_)) => panic!("{ordering}: the wrong order is not detected"),
            (_, Ok(_)) => {}
            (_, Err(error)) => panic!("{ordering}: {error}"),
        }
    }
}

/// Advances a thread with arbitrary words, and compares it with a copy.
struct Copies;

impl Visitor for Copies {
    type Output = ();

    fn visit<S>(self, scenario: S)
    where
        S: Scenario,
        S::Thread: Clone + Eq + Hash,
    {
        for mut thread in scenario.threads() {
            for word in 0..60 {
                let _ = thread.step(word % 3);
            }
            let mut copy = thread.clone();
            assert!(copy == thread);
            for word in 0..60 {
                let (step, copied_step): (Step, Step) = (thread.step(word), copy.step(word));
                assert_eq!(step, copied_step);
            }
            let previous = thread.clone();
            let _ = thread.step(0);
            assert!(previous != thread);
        }
    }
}

#[test]
fn cloned_thread_continues_like_the_original() {
    for (name, parameters) in KERNELS {
        visit(name, &parameters_by_name(parameters), Copies).unwrap();
    }
}

/// A thread that raises a distant flag, and then reads a flag of its own that has been raised.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Looks;

impl Kernel for Looks {
    fn hosts(&self) -> Hosts {
        Hosts {
            homes: 8,
            threads: 1,
        }
    }

    fn lines(&self) -> u32 {
        8
    }

    async fn run(self, core: Core) -> Result<(), String> {
        let mut memory = Memory::new(8);
        let (near, far) = (memory.flag(0), memory.flag(1));
        core.release_flag(near, 1).await;
        core.acquire_flag(near, 1).await;
        core.begin().await;
        core.release_flag(far, 1).await;
        core.acquire_flag(near, 1).await;
        core.end("done").await;
        Ok(())
    }
}

#[test]
fn acquire_waits_for_an_earlier_release() {
    for (name, protocol) in orderings(8) {
        let setup = setup(&protocol, &machine(), Arc::new(KernelScenario(Looks)));
        let played = play_while(&setup, &mut |_| true).unwrap_or_else(|e| panic!("{name}: {e}"));
        let time = played.tally.times["done"].mean();
        // The round trip takes 150 ns; posted stores have none.
        assert_eq!(name != "mp", time > 150_000.0, "{name}: {time} ps");
    }
}

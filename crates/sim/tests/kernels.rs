//! Kernels on hosts with texts of `ordering`: what they calculate is right where the order is kept, and found out where not.

mod common;
#[path = "common/orderings.rs"]
mod orderings;

use cohkit_application::interface::{Scenario, Step, Thread};
use cohkit_application::kernel::{Core, Hosts, Kernel, Kernels, Memory};
use cohkit_application::matrix_market;
use cohkit_application::shipped::{visit, visit_on, Visitor};
use cohkit_sim::explain::FailureKind;
use cohkit_sim::scenario::Playable;
use cohkit_sim::simulation::{play_while, RunError};
use common::seeds;
use orderings::{changed, machine, orderings, setup};
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

/// All of them, small.
const KERNELS: [(&str, &[(&str, u64)]); 11] = [
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
        "transpose",
        &[("size", 10), ("rounds", 3), ("release", 192)],
    ),
    ("mocfe", &[("steps", 1)]),
    ("cmc2d", &[("steps", 1), ("threads", 4)]),
    ("bigfft", &[("steps", 1), ("threads", 2)]),
    ("crystal-router", &[("steps", 2)]),
    ("exchange", &[("fanout", 3), ("stores", 8), ("releases", 3)]),
];

struct Plays;

impl Visitor for Plays {
    type Output = Arc<dyn Playable>;

    fn visit<S: Scenario + Clone + Send + Sync + 'static>(self, scenario: S) -> Arc<dyn Playable> {
        Arc::new(scenario)
    }
}

fn numbers(given: &[(&str, u64)]) -> BTreeMap<String, u64> {
    given.iter().map(|&(name, n)| (name.into(), n)).collect()
}

fn kernel(name: &str, given: &[(&str, u64)]) -> Arc<dyn Playable> {
    visit(name, &numbers(given), Plays).unwrap()
}

#[test]
fn kernels_calculate_what_is_right_whatever_is_late() {
    for (ordering, protocol) in &orderings(8)[..3] {
        for (name, given) in KERNELS {
            for seed in seeds(2) {
                let mut platform = machine();
                platform.link.jitter.value = 300_000;
                let mut setup = setup(protocol, &platform, kernel(name, given));
                setup.seed = seed;
                if let Err(error) = play_while(&setup, &mut |_| true) {
                    panic!("{ordering}, {name}, COHKIT_SEED={seed}: {error}");
                }
            }
        }
    }
}

/// Two cores of each host have a thread of their own.
#[test]
fn several_cores_of_each_host_take_part() {
    let protocols = orderings(8);
    for (ordering, protocol) in &protocols[..3] {
        for (name, given) in KERNELS {
            let own = |name: &str| given.iter().any(|&(given, _)| given == name);
            let threads = [("threads", 16)];
            let more = if own("threads") { &[][..] } else { &threads };
            let mut platform = machine();
            platform.remotes = 16;
            let kernel = kernel(name, &[given, more].concat());
            if let Err(error) = play_while(&setup(protocol, &platform, kernel), &mut |_| true) {
                panic!("{ordering}, {name}: {error}");
            }
        }
    }
}

/// A graph of a file is the one that is calculated on, and no other can be given.
#[test]
fn graphs_are_taken_from_files() {
    let text = include_str!("../../../tests/graphs/two-rings.mtx");
    let edges = Arc::new(matrix_market::read(text).unwrap());
    let on = |name, given: &[(&str, u64)]| {
        visit_on(name, &numbers(given), Some(Arc::clone(&edges)), Plays).map(|play| play.uses())
    };
    let (_, protocol) = &orderings(8)[0];
    for name in ["pagerank", "sssp"] {
        let kernel = visit_on(name, &BTreeMap::new(), Some(Arc::clone(&edges)), Plays).unwrap();
        let played = play_while(&setup(protocol, &machine(), kernel), &mut |_| true);
        let played = played.unwrap_or_else(|error| panic!("{name}: {error}"));
        // A part of three vertices has neighbours in two or three others, and no more than words for these are stored.
        let sent = played.statistics.sent("Write").unwrap();
        assert!((24..2_000).contains(&sent), "{name}: {sent}");
    }
    let refused = |name, given: &[(&str, u64)]| on(name, given).unwrap_err();
    let far = refused("sssp", &[("far", 2)]);
    assert_eq!(far, "far is of a graph that is generated, and one is given");
    let padding = refused("padding", &[]);
    assert_eq!(padding, "padding takes no graph; pagerank and sssp do");
}

/// What host 0 stores in the memory of host 5 is late there, and who reads it has heard of it from others. Posted stores do
/// not keep such an order, nor do releases that commit without the notifications that they need.
#[test]
fn what_is_late_behind_a_flag_is_found_out() {
    let mut platform = machine();
    let hosts = platform.hosts.as_mut().unwrap();
    (hosts.late_from.value, hosts.late_to.value) = (0, 5);
    hosts.late.value = 100_000_000;
    let sizes = [("homes", 8), ("epochs", 16), ("entries", 8), ("most", 255)];
    let change = (" and told[sender][epoch] == needs", "");
    let faulty = ("faulty", changed("cord", &sizes, &[change]));
    let all = orderings(8).into_iter().chain([faulty]);
    for (ordering, protocol) in all {
        let setup = setup(&protocol, &platform, kernel("padding", KERNELS[2].1));
        match (ordering, play_while(&setup, &mut |_| true)) {
            ("mp" | "faulty", Err(RunError::Failure(failure))) => {
                assert_eq!(failure.kind, FailureKind::Result);
                assert!(failure.text.contains(": element "), "{}", failure.text);
            }
            ("mp" | "faulty", Ok(_)) => panic!("{ordering}: what is wrong is not found out"),
            (_, Ok(_)) => {}
            (_, Err(error)) => panic!("{ordering}: {error}"),
        }
    }
}

/// Brings a thread some way with words that nobody has stored, and compares a copy of it.
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
                let (one, other): (Step, Step) = (thread.step(word), copy.step(word));
                assert_eq!(one, other);
            }
            let before = thread.clone();
            let _ = thread.step(0);
            assert!(before != thread);
        }
    }
}

#[test]
fn a_copy_of_a_thread_goes_on_as_the_thread_does() {
    for (name, given) in KERNELS {
        visit(name, &numbers(given), Copies).unwrap();
    }
}

/// A thread that raises a flag far away, and then looks at one of its own that has been raised.
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
        core.tell(near, 1).await;
        core.hear(near, 1).await;
        core.begin().await;
        core.tell(far, 1).await;
        core.hear(near, 1).await;
        core.end("done").await;
        Ok(())
    }
}

#[test]
fn an_acquire_waits_for_an_earlier_release() {
    for (name, protocol) in orderings(8) {
        let setup = setup(&protocol, &machine(), Arc::new(Kernels(Looks)));
        let played = play_while(&setup, &mut |_| true).unwrap_or_else(|e| panic!("{name}: {e}"));
        let time = played.tally.times["done"].mean();
        // The way there and back is 300 ns; of posted stores nothing comes back.
        assert_eq!(name != "mp", time > 300_000.0, "{name}: {time} ps");
    }
}

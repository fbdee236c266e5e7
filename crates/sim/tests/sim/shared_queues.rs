//! Simulations of protocols with registers, lineless messages, several homes and shared input queues.

use cohkit_testing::setups;
mod networks;

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Platform, Switch};
use cohkit_sim::simulation::{run, Setup};
use cohkit_units::Quantity;
use setups::{parse, seeds};

/// Protocol whose stores carry epochs, and whose homes count and order them.
const ORDERED_AT_HOMES: &str = include_str!("../../../../tests/homes/ordered-at-homes.coh");
/// Number of accesses of a run, of all cores together.
const ACCESSES: u64 = 600;

/// Returns a short stress run whose cores have one outstanding access.
fn torture(protocol: Protocol, remotes: u16, seed: u64) -> Setup {
    let mut platform = Platform::torture(remotes);
    platform.home.count = Some(Quantity::given(protocol.homes.into(), "a test"));
    if seed % 2 == 1 {
        let latency = Quantity::given(20 * NANOSECOND, "a test");
        platform.switch = Some(Switch { latency });
    }
    let mut workload = Workload::pass(
        Pattern::Random,
        Access::Load,
        1 + (seed % 7) as u32,
        u32::from(remotes),
        1,
    );
    workload.mix = vec![
        (Access::Load, 4),
        (Access::Store, 8),
        (Access::Acquire, 2),
        (Access::Release, 3),
        (Access::Fence, 1),
    ];
    workload.accesses = ACCESSES;
    let mut setup = Setup::new(protocol, platform, workload).unwrap();
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

/// Fails a test with the command that repeats the run.
fn panic_with_seed(seed: u64, failure: impl std::fmt::Display) -> ! {
    panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim shared_queues::\n{failure}")
}

#[test]
fn stores_ordered_at_homes_all_arrive() {
    let protocol = parse(ORDERED_AT_HOMES);
    let mut sent = [0; 4];
    let mut runs = 0;
    for seed in seeds(200) {
        let remotes = 1 + (seed % 4) as u16;
        let setup = torture(protocol.clone(), remotes, seed);
        let statistics = run(&setup).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        assert_eq!(statistics.get("accesses"), Some(ACCESSES as f64), "{seed}");
        for (sum, name) in sent.iter_mut().zip(["Release", "Ask", "Notify", "Empty"]) {
            *sum += statistics.sent(name).unwrap();
        }
        runs += 1;
        // Each request for a notification is answered by one, and each end of an epoch by one acknowledgement.
        assert_eq!(statistics.sent("Ask"), statistics.sent("Notify"));
        let epoch_ends = ["Release", "Empty"].map(|name| statistics.sent(name).unwrap());
        assert_eq!(statistics.sent("Ack"), Some(epoch_ends[0] + epoch_ends[1]));
    }
    assert!(sent.iter().all(|&sent| sent > 10 * runs), "{sent:?}");
}

/// A store whose counter is at its maximum waits for a release, which a core with one outstanding access never issues.
#[test]
fn store_that_waits_for_a_later_release_deadlocks() {
    let stall_row = ORDERED_AT_HOMES
        .find("  I | store if sent[home] == most")
        .unwrap();
    let next_row = ORDERED_AT_HOMES.find("  I | release").unwrap();
    let text = format!(
        "{}{}",
        &ORDERED_AT_HOMES[..stall_row],
        &ORDERED_AT_HOMES[next_row..]
    );
    let failure = run(&torture(parse(&text), 1, 4)).unwrap_err();
    let report = failure.to_string();
    assert!(report.contains("no progress"), "{report}");
}

/// Each seeded fault loses an acknowledgement, a store, a count or a notification, and some of the seeds detect it.
#[test]
fn faults_of_stores_ordered_at_homes_are_detected() {
    for (label, original, faulty) in [
        (
            "an acknowledgement is forgotten",
            "served[sender] += 1, send Ack | stay",
            "served[sender] += 1 | stay",
        ),
        (
            "a store is not performed",
            "| write, arrived[sender][epoch] += 1 |",
            "| arrived[sender][epoch] += 1 |",
        ),
        (
            "a store is not counted",
            "| write, arrived[sender][epoch] += 1 |",
            "| write |",
        ),
        (
            "a release does not count at its own home",
            "served[sender] += 1, send Ack | stay",
            "send Ack | stay",
        ),
        (
            "a home is notified that does not need it",
            "to at",
            "to whom",
        ),
    ] {
        let faulty = match faulty {
            "to whom" => ORDERED_AT_HOMES.replacen(
                "(whose = sender, epoch = epoch) to at",
                "(whose = sender, epoch = turn) to at",
                1,
            ),
            _ => {
                assert!(ORDERED_AT_HOMES.contains(original), "{label}");
                ORDERED_AT_HOMES.replacen(original, faulty, 1)
            }
        };
        let is_detected = seeds(20).any(|seed| run(&torture(parse(&faulty), 2, seed)).is_err());
        assert!(is_detected, "{label}");
    }
}

/// Part of the expected error, and the unsupported change of the setup that causes it.
type UnsupportedChange = (&'static str, fn(&mut Setup));

#[test]
fn unsupported_settings_are_rejected_by_name() {
    let changes: [UnsupportedChange; 3] = [
        ("set `home.count`", |setup| {
            setup.platform.home.count = Some(Quantity::given(1, "a test"));
        }),
        ("one outstanding", |setup| setup.workload.outstanding = 2),
        ("`cores.write_buffer`", |setup| {
            setup.platform.cores.write_buffer = Quantity::given(4, "a test");
        }),
    ];
    for (expected, change) in changes {
        let mut setup = torture(parse(ORDERED_AT_HOMES), 2, 0);
        change(&mut setup);
        let failure = run(&setup).unwrap_err().to_string();
        assert!(failure.contains(expected), "{failure}");
    }
}

/// Messages between homes arrive in order if the protocol declares one. Without the declaration, some do not.
#[test]
fn ordered_home_to_home_messages_arrive_in_order() {
    let text = include_str!("../../../../tests/homes/in-order.coh");
    let unordered = text.replace("  ordered pass\n", "");
    assert_ne!(text, unordered);
    let (mut sent, mut reordered) = (0, 0);
    for seed in seeds(60) {
        let run_text = |text: &str| {
            let mut setup = torture(parse(text), 1 + (seed % 4) as u16, seed);
            setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 4)];
            run(&setup)
        };
        let statistics = run_text(text).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        let [first, last] = ["First", "Last"].map(|name| statistics.sent(name).unwrap());
        assert_eq!(first, last);
        sent += first;
        if let Err(failure) = run_text(&unordered) {
            assert!(
                failure.to_string().contains("no unexpected message"),
                "{failure}"
            );
            reordered += 1;
        }
    }
    assert!(
        sent > 1000 && reordered > 20,
        "{sent} sent, {reordered} of 60 seeds reorder undeclared messages"
    );
}

/// A protocol whose cache stalls a message of one line. In a channel ordered across lines this delays later messages of
/// other lines.
const STALLS_ACROSS_LINES: &str = r#"protocol left "Stores that are acknowledged twice, the second time in an order of all lines"
line 64 bytes
size homes 2
channels {
  ask remote -> home; data home -> remote; first home -> remote; second home -> remote
  ordered second
}
messages { ask: Get, Write (partial store); data: Data (line); first: First; second: Second }
remote cache {
  states { I; R waits Data; W waits First; X waits Second }
  I | load   | send Get    | R
  R | Data   | done        | I
  I | store  | send Write  | W
  W | First  | done        | X
  W | Second | stall
  X | Second |             | I
}
home memory {
  states { L }
  variables { unused: remote }
  L | Get   | send Data                        | stay
  L | Write | write, send First, send Second   | stay
}
system pair { remotes 1; lines 2; homes 1 }
"#;

#[test]
fn stalled_message_blocks_an_order_across_lines() {
    let mut stalls = 0.0;
    for seed in seeds(20) {
        let mut setup = torture(parse(STALLS_ACROSS_LINES), 1 + (seed % 4) as u16, seed);
        setup.workload.cores *= 4;
        setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 4)];
        let statistics = run(&setup).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        assert_eq!(statistics.sent("First"), statistics.sent("Second"));
        stalls += statistics.get("stalls_controller").unwrap();
    }
    assert!(stalls > 200.0, "{stalls}");
}

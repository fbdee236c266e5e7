//! Litmus tests on protocols with several homes, and with registers that couple lines.
//!
//! The protocols order write-through stores by acknowledgements, epochs or sequence numbers. Each must show only the
//! outcomes that its guaranteed memory model allows, and each seeded fault must show a forbidden outcome.

use crate::protocol_files;

use cohkit_base::sequence::Action;
use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Outcome;
use cohkit_litmus::run::{run, run_on, shortest_path, Options, RunResult};
use cohkit_protocol::protocol::{Home, Protocol};
use protocol_files::read;
use std::collections::BTreeSet;

/// Stores that are ordered at the source, which waits for acknowledgements before a release.
const SO: &str = include_str!("../../../../ordering/so.coh");
/// Stores that are ordered at the source, with at most one outstanding store per line.
const SO_STRICT: &str = include_str!("../../../../ordering/so-strict.coh");
/// Posted stores, ordered between one core and one home only.
const MP: &str = include_str!("../../../../ordering/mp.coh");
/// Stores with sequence numbers, which a directory commits in order.
const SEQ: &str = include_str!("../../../../ordering/seq.coh");
/// Stores that are ordered at the directories.
const CORD: &str = include_str!("../../../../ordering/cord.coh");
/// Stores in write-back caches, ordered at the source.
const WB: &str = include_str!("../../../../ordering/wb.coh");
// The same protocols with total store order.
const SO_TSO: &str = include_str!("../../../../ordering/tso/so.coh");
const CORD_TSO: &str = include_str!("../../../../ordering/tso/cord.coh");
const WB_TSO: &str = include_str!("../../../../ordering/tso/wb.coh");
const MP_TSO: &str = include_str!("../../../../ordering/tso/mp.coh");
const SEQ_TSO: &str = include_str!("../../../../ordering/tso/seq.coh");
/// Stores that are ordered at the homes, without caches.
const ORDERED: &str = include_str!("../../../../tests/homes/ordered-at-homes.coh");

/// Runs all classic litmus tests of at most `max_threads` threads. Returns the first one with an outcome that the
/// guaranteed memory model forbids, or with another violation.
fn first_failure(protocol: &Protocol, max_threads: usize) -> Option<String> {
    let Home::Controller(home) = &protocol.home else {
        panic!("a home written as rows")
    };
    let options = Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        max_spontaneous_evictions: 0,
        ..Options::default()
    };
    let model = protocol.guarantee.model.expect("a guarantee");
    let mut programs = 0;
    let candidates = classic()
        .into_iter()
        .filter(|p| p.threads.len() <= max_threads);
    for group in Lines::groups(protocol, candidates.collect()) {
        let (threads, locations) = (group[0].threads.len(), group[0].locations.len());
        let (threads, locations) = (threads as u8, locations as u8);
        let mut lines = Lines::new(protocol, home, threads, locations, options.channel_capacity);
        for program in &group {
            let failure = match run_on(&mut lines, program, &options, &mut || true) {
                RunResult::Outcomes { outcomes, .. } => {
                    let allowed = allowed(program, model).unwrap();
                    let forbidden = outcomes.iter().find(|outcome| !allowed.contains(outcome));
                    forbidden
                        .map(|outcome| format!("ends with {}", program.format_outcome(outcome)))
                }
                // Some protocols have no access that reads and writes atomically.
                RunResult::UnsupportedProgram(_) => continue,
                other => Some(format!("{other:?}")),
            };
            programs += 1;
            if let Some(description) = failure {
                return Some(format!("{}: {description}", program.name));
            }
        }
    }
    assert!(programs > 50, "{programs}");
    None
}

/// The unchanged protocol, with which the faults below are compared.
#[test]
fn home_ordered_stores_are_release_consistent() {
    assert_eq!(first_failure(&read(ORDERED), 3), None);
}

/// Model checking with arbitrary accesses does not check the order of values at several lines, so it need not find
/// these faults.
#[test]
fn faults_of_the_order_at_homes_are_refuted_by_programs() {
    let faults = [
        ("a release asks no other home for a notification", "needs = count(touched + waiting - { home })", "needs = 0"),
        (
            "a release does not wait for stores at its own home",
            "Release if arrived[sender][epoch] == stores and served",
            "Release if served",
        ),
        (
            "a release does not wait for its turn",
            " and served[sender] == turn and told",
            " and told",
        ),
        (
            "a release does not wait for notifications",
            " and told[sender][epoch] == needs",
            "",
        ),
        (
            "a home notifies before the stores are there",
            "Ask if arrived[sender][epoch] == stores and served[sender] == turn",
            "Ask if served[sender] == turn",
        ),
        (
            "a home notifies before its turn",
            "Ask if arrived[sender][epoch] == stores and served[sender] == turn",
            "Ask if arrived[sender][epoch] == stores",
        ),
        (
            "a fence is acknowledged before the stores are there",
            "Empty if arrived[sender][epoch] == stores and served[sender] == turn",
            "Empty if served[sender] == turn",
        ),
        (
            "a release asks no home with earlier releases for a notification",
            "count(touched + waiting - { home })),\n      for h in touched + waiting - { home }",
            "count(touched - { home })),\n      for h in touched - { home }",
        ),
        (
            "a fence does not wait for acknowledgements",
            "fence if count(touched + waiting) == 0",
            "fence if count(touched) == 0",
        ),
        (
            "an acquire does not wait for earlier releases",
            "acquire if count(waiting) == 0",
            "acquire",
        ),
        (
            "a release begins before earlier stores",
            "release after all;",
            "release after load acquire;",
        ),
        (
            "accesses of one core to one line are unordered",
            "  ordered store, read per line     # what one core does to one line; nothing else is in order\n",
            "",
        ),
        (
            "a home notifies itself",
            "send Notify (whose = sender, epoch = epoch) to at",
            "send Notify (whose = sender, epoch = epoch) to home",
        ),
    ];
    for (description, original, replacement) in faults {
        assert!(ORDERED.contains(original), "{description}");
        let failure = first_failure(&read(&ORDERED.replace(original, replacement)), 3);
        assert!(failure.is_some(), "{description}");
    }
}

/// Returns whether a classic program can satisfy its condition on a protocol, and whether release consistency allows
/// it.
fn condition_results(text: &str, name: &str) -> (bool, bool) {
    let (protocol, program) = (read(text), named(name).expect("a shape"));
    let Home::Controller(home) = &protocol.home else {
        panic!("a home written as rows")
    };
    let options = Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        ..Options::default()
    };
    let found = run(&protocol, home, &program, &options, &mut || true);
    let RunResult::Outcomes { outcomes, .. } = found else {
        panic!("{name}: {found:?}")
    };
    let holds = |outcome: &_| program.holds(outcome);
    let allowed = allowed(&program, Model::Rc).unwrap();
    (outcomes.iter().any(holds), allowed.iter().any(holds))
}

/// Programs of up to three threads.
#[test]
fn source_and_number_ordering_are_release_consistent() {
    for text in [SO, SO_STRICT, SEQ] {
        assert_eq!(first_failure(&read(text), 3), None);
    }
}

/// Returns the part of a protocol file with the program order of accesses and the guarantee.
fn orders_of(text: &str) -> &str {
    let (_, from) = text.split_once("accesses {").expect("orders");
    let (block, _) = from.split_once("channels {").expect("channels");
    block
}

/// Returns the part of a protocol file after the program order: channels, messages and rows.
fn text_after_orders(text: &str) -> String {
    let (_, from) = text.split_once("channels {").expect("channels");
    from.to_string()
}

/// The program order in `accesses` orders stores at the source, so the rows are the same for both memory models. With
/// the program order of release consistency, the protocol violates total store order.
#[test]
fn source_ordering_shares_rows_between_models() {
    for (rc, tso) in [
        (MP, MP_TSO),
        (SEQ, SEQ_TSO),
        (SO_STRICT, SO_TSO),
        (WB, WB_TSO),
    ] {
        assert_eq!(text_after_orders(rc), text_after_orders(tso));
    }
    for (rc, tso) in [(SO_STRICT, SO_TSO), (WB, WB_TSO)] {
        let weaker = orders_of(rc).replace("guarantee rc", "guarantee tso");
        let weaker = tso.replace(orders_of(tso), &weaker);
        let failure = first_failure(&read(&weaker), 2).expect("a program");
        assert!(failure.contains("ends with"), "{failure}");
    }
}

/// Faults of total store order at homes, each refuted by a classic program of two threads.
#[test]
fn faults_of_total_store_order_at_homes_are_refuted_by_programs() {
    let faults = [
        (
            "a store waits for no other home",
            "notifications = count(unacked_homes - { home })",
            "notifications = 0",
            "",
        ),
        (
            "a store does not wait for earlier stores",
            "expected_sequence[sender] == sequence and notify_count",
            "notify_count",
            "ends with",
        ),
        (
            "a store does not wait for notifications",
            "expected_sequence[sender] == sequence and notify_count[sender][epoch] == notifications",
            "expected_sequence[sender] == sequence",
            "ends with",
        ),
        (
            "a home notifies before earlier stores",
            "NotifyRequest if expected_sequence[sender] == sequence\n",
            "NotifyRequest if notify_count[sender][epoch] == 0\n",
            "Stuck",
        ),
        (
            "a fence waits for nothing",
            "fence if count(unacked_homes) == 0",
            "fence",
            "ends with",
        ),
        (
            "an acquire waits for no release",
            "acquire if count(unacked_homes) == 0",
            "acquire",
            "ends with",
        ),
        (
            "loads are unordered",
            "load    after load acquire, before store release",
            "load    before store release",
            "ends with",
        ),
        (
            "copies stay when a store commits",
            "defer, send Inv to owner, requestor := sender, request_epoch := epoch, owner := none | Release_AD",
            "write, notify_count[sender][epoch] := 0, expected_sequence[sender] += 1, send ReleaseAck | stay",
            "a readable copy is stale",
        ),
    ];
    let mut missed = Vec::new();
    for (description, original, replacement, expected) in faults {
        assert!(CORD_TSO.contains(original), "{description}");
        let failure = first_failure(&read(&CORD_TSO.replace(original, replacement)), 2);
        if !failure
            .as_ref()
            .is_some_and(|found| found.contains(expected))
        {
            missed.push((description, failure));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Three threads have too many states for a test; the example `orderings` runs them.
#[test]
fn directory_ordering_is_release_consistent_for_two_threads() {
    assert_eq!(first_failure(&read(CORD), 2), None);
}

/// The first thread writes X and releases Y, the second acquires Y and releases Z, the third acquires Z and reads X.
/// The old X is forbidden. Posted stores are ordered between two points only, and X and Y are at different homes.
#[test]
fn posted_stores_to_two_homes_violate_release_consistency() {
    let one_home = MP.replace("size homes 2", "size homes 1");
    let one_home = one_home.split("system two").next().unwrap();
    for shape in ["MP+popl+poap", "ISA2+popl+poal+poap"] {
        assert_eq!(condition_results(MP, shape), (true, false), "{shape}");
        assert_eq!(
            condition_results(one_home, shape),
            (false, false),
            "{shape}"
        );
        assert_eq!(condition_results(CORD, shape), (false, false), "{shape}");
    }
}

/// Checks the shortest path to an outcome that satisfies the condition of `ISA2`: its messages in the order of receipt,
/// without those that are never received, and the accesses of the last thread.
#[test]
fn shortest_path_lists_received_messages_in_order() {
    let (protocol, program) = (read(MP), named("ISA2+popl+poal+poap").expect("a shape"));
    let Home::Controller(home) = &protocol.home else {
        panic!("a home written as rows")
    };
    let options = Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        ..Options::default()
    };
    let mut lines = Lines::new(&protocol, home, 3, 3, options.channel_capacity);
    let is_goal = |outcome: Option<&Outcome>| outcome.is_some_and(|outcome| program.holds(outcome));
    let path = shortest_path(&mut lines, &program, &options, &is_goal, &mut || true)
        .expect("a path to the outcome");
    let chart = path.chart;
    assert_eq!(
        chart.agents,
        ["P0", "P1", "P2", "memory (home) 0", "memory (home) 1"]
    );
    let (mut sent, mut received, mut actions) = (BTreeSet::new(), Vec::new(), Vec::new());
    for step in &chart.steps {
        match &step.action {
            Action::Send { flight, .. } => assert!(sent.insert(*flight)),
            Action::Receive {
                message, flight, ..
            } => {
                assert!(sent.contains(flight), "{message}");
                received.push(message.as_str());
            }
            Action::Does { what } if step.agent < 3 => actions.push((step.agent, what.as_str())),
            _ => {}
        }
    }
    let [wx, wy, wz] = ["Write(x=1)", "Write(y=1)", "Write(z=1)"];
    let z = ["GetS(z)", "DataE(z=1)", "GetS(x)"];
    // The copy with the old X arrives before its invalidation.
    let x = [wx, "DataE(x=0)", "Inv(x)", "ProbeAck(x)"];
    assert_eq!(
        received,
        [&[wy, "GetS(y)", "DataE(y=1)", wz], &z[..], &x].concat()
    );
    let last_thread_actions = actions
        .iter()
        .filter(|(agent, _)| *agent == 2)
        .map(|(_, what)| *what);
    // A read that has fetched a copy is retried and hits it.
    let [acquires, loads] = ["acquires z", "loads x"];
    let expected = [
        acquires,
        acquires,
        "finds z = 1",
        loads,
        loads,
        "finds x = 0",
    ];
    assert_eq!(last_thread_actions.collect::<Vec<_>>(), expected);
    let no_path = shortest_path(&mut lines, &program, &options, &|_| false, &mut || true);
    assert_eq!(no_path, None);
}

/// A sequentially consistent acquire (`a`) waits for earlier releases; the weaker one (`q`) need not.
#[test]
fn sequentially_consistent_acquires_wait_for_releases() {
    for text in [SO, SO_STRICT, SEQ, CORD] {
        assert_eq!(condition_results(text, "SB+polas"), (false, false));
    }
    assert_eq!(condition_results(CORD, "SB+polqs"), (true, true));
}

/// Ordered messages between homes arrive in order, for every placement of locations. Without the order, the second can
/// arrive first.
#[test]
fn ordered_home_to_home_messages_arrive_in_order() {
    let text = include_str!("../../../../tests/homes/in-order.coh");
    let protocol = read(text);
    let unordered = read(&text.replace("  ordered pass\n", ""));
    let mut violations = 0;
    for name in ["SB", "MP", "2+2W", "R"] {
        let program = named(name).expect("a shape");
        let run_on_protocol = |protocol: &Protocol| {
            let Home::Controller(home) = &protocol.home else {
                panic!("a home written as rows")
            };
            run(protocol, home, &program, &Options::default(), &mut || true)
        };
        let RunResult::Outcomes { outcomes, .. } = run_on_protocol(&protocol) else {
            panic!("{name}: {:?}", run_on_protocol(&protocol))
        };
        let expected = cohkit_litmus::models::outcomes(&program, CoreKind::InOrder);
        assert_eq!(outcomes, expected, "{name}");
        violations += usize::from(matches!(run_on_protocol(&unordered), RunResult::Error(_)));
    }
    assert!(violations > 0);
}

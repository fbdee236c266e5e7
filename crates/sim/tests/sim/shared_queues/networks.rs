//! Networks: input queues that several senders share, bounded or unbounded.

use super::*;
use cohkit_sim::explain::{Failure, FailureKind};
use cohkit_sim::simulation::{trace, RunError};
use cohkit_sim::statistics::Statistics;
use cohkit_timeline::Side;

/// MESI with requests and responses in one virtual network. The directory stalls a request while it waits for a
/// response; if all caches share the input queue, the response is behind that request: a message-dependent deadlock.
const ONE_VNET: &str = include_str!("../../../../check/tests/verdicts/mesi_one_vnet.coh");
/// Requests of all caches share one input queue, in which they wait for responses of another network.
const TWO_NETWORKS: &str = include_str!("../../../../../tests/networks/two-networks.coh");
/// Full input queues stall their senders; queues of two messages each.
const BACK_PRESSURE: &str = include_str!("../../../../../tests/networks/back-pressure.coh");
/// A cache forwards a message to itself through an input queue of one message.
const SELF_SEND: &str = include_str!("../../../../../tests/networks/self-send.coh");
/// Requests and responses share an input queue; the home rejects requests instead of stalling them.
const REJECTED_REQUEST: &str = include_str!("../../../../../tests/networks/rejected-request.coh");
/// A local operation of the device waits for capacity of the channels.
const LOCAL_OPERATION_CAPACITY: &str =
    include_str!("../../../../../tests/networks/local-capacity.coh");
/// Language reference, which contains an example with a network.
const LANGUAGE: &str = include_str!("../../../../../docs/language.md");

/// Returns the example of the language reference.
fn language_example() -> &'static str {
    let begin = LANGUAGE.find("protocol shared_queue").unwrap();
    let end = begin + LANGUAGE[begin..].find("```").unwrap();
    &LANGUAGE[begin..end]
}

/// Returns a stress run on a number of lines, with loads, stores and evictions by several cores per cache.
fn contended_setup(text: &str, (remotes, lines): (u16, u32), seed: u64) -> Setup {
    let mut setup = torture(parse(text), remotes, seed);
    setup.workload.cores = 3 * u32::from(remotes);
    setup.workload.lines = lines;
    setup.workload.mix = vec![(Access::Load, 4), (Access::Store, 4), (Access::Evict, 2)];
    setup
}

/// Returns the failure of a run that made no progress.
fn no_progress_failure(result: Result<Statistics, RunError>) -> Option<Box<Failure>> {
    match result {
        Ok(_) => None,
        Err(RunError::Failure(failure)) if failure.kind == FailureKind::NoProgress => Some(failure),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the first deadlock among some runs of a protocol.
fn first_deadlock(text: &str, size: (u16, u32)) -> Option<Box<Failure>> {
    seeds(20).find_map(|seed| no_progress_failure(run(&contended_setup(text, size, seed))))
}

#[test]
fn shared_queue_for_requests_and_responses_deadlocks() {
    let with_networks =
        |networks: &str| ONE_VNET.replace("  ordered request, response\n", networks);
    let failure = first_deadlock(
        &with_networks("  network vnet { request, response }\n"),
        (3, 2),
    )
    .unwrap();
    let report = failure.to_string();
    let is_head = |wait: &&String| wait.contains("is the first in network vnet at directory");
    let head = failure
        .wait_for
        .iter()
        .find(is_head)
        .unwrap_or_else(|| panic!("{report}"));
    assert!(
        head.contains("directory is in S_D") && head.ends_with("waits for Data"),
        "{report}"
    );
    let separate_networks = "  network requests { request }\n  network responses { response }\n";
    for text in [&with_networks(separate_networks), ONE_VNET] {
        let failure = first_deadlock(text, (3, 2));
        assert!(failure.is_none(), "{}", failure.unwrap());
    }
}

#[test]
fn language_reference_example_runs() {
    let mut stalls = 0.0;
    for seed in seeds(40) {
        let setup = contended_setup(
            language_example(),
            (2 + (seed % 3) as u16, 1 + (seed % 3) as u32),
            seed,
        );
        let statistics = run(&setup).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        let get = |name| statistics.get(name).unwrap();
        assert_eq!(get("accesses") + get("accesses_skipped"), ACCESSES as f64);
        stalls += get("stalls_input_queue");
    }
    assert!(stalls > 100.0, "{stalls}");
}

/// With one queue for all channels, a request waits for an answer that is behind it.
#[test]
fn language_reference_example_deadlocks_with_one_network() {
    let text = language_example().replace("request }\n", "request, forward, grant, answer }\n");
    let text = text.replace("  network answers { forward, grant, answer }\n", "");
    let failure = first_deadlock(&text, (3, 1)).unwrap();
    let report = failure.to_string();
    assert!(report.contains("Get of line 0 from cache"), "{report}");
    assert!(
        report.contains("is the first in network requests at directory"),
        "{report}"
    );
    assert!(
        report.contains("directory is in B") && report.contains("waits for Moved"),
        "{report}"
    );
}

#[test]
fn cyclic_wait_of_full_input_queues_deadlocks() {
    let failure = first_deadlock(BACK_PRESSURE, (1, 2));
    assert!(failure.is_none(), "{}", failure.unwrap());
    let capacity_one = BACK_PRESSURE.replace("capacity 2", "capacity 1");
    let report = first_deadlock(&capacity_one, (1, 2)).unwrap().to_string();
    for expected in [
        "is the first in network requests at directory",
        "its row waits for room in network replies at cache",
        "its row waits for room in network requests at directory",
        "1 of 1 places are occupied",
    ] {
        assert!(report.contains(expected), "{expected}\n{report}");
    }
    assert!(first_deadlock(&capacity_one, (1, 1)).is_none());
}

#[test]
fn consumed_message_frees_capacity_for_its_sends() {
    let setup = |seed| {
        let mut setup = contended_setup(SELF_SEND, (1 + (seed % 2) as u16, 1), seed);
        setup.workload.mix = vec![(Access::Evict, 1)];
        setup
    };
    for seed in seeds(20) {
        let statistics = run(&setup(seed)).unwrap_or_else(|failure| panic!("{seed}: {failure}"));
        assert_eq!(statistics.sent("Ask"), statistics.sent("Pass"));
    }
}

/// An independent checker judges the trace of each run, and counts the messages in flight to each receiver.
#[test]
fn input_queue_capacity_bounds_messages_in_flight() {
    let text_with_capacity = |capacity: &str| {
        let networks = format!("network requests{capacity} {{ request }}");
        TWO_NETWORKS.replace("network requests { request }", &networks)
    };
    let mut overflow_rejections = 0;
    for capacity in [" capacity 1", " capacity 2"] {
        let text = text_with_capacity(capacity);
        for seed in seeds(10) {
            let judge = |text: &str, simulated_text: &str| {
                let setup = contended_setup(simulated_text, (4, 2), seed);
                let (_, sequence) = trace(&setup, Side::Device, 0)
                    .unwrap_or_else(|failure| panic_with_seed(seed, failure));
                cohkit_trace::judge(&parse(text), &setup.home, &sequence, true)
            };
            let verdict = judge(&text, &text);
            assert!(verdict.is_ok(), "{seed}: {verdict:?}");
            let rejection = judge(&text, &text_with_capacity(""))
                .err()
                .map(|refused| refused.reason);
            overflow_rejections += usize::from(rejection.is_some_and(|rejection| {
                rejection.contains("finds no room in network requests at directory")
            }));
        }
    }
    assert!(overflow_rejections > 10, "{overflow_rejections} of 20");
}

/// With two ECI links, messages of one sender use different links for different lines, and some arrive out of order.
#[test]
fn framed_links_preserve_sender_order() {
    for seed in seeds(10) {
        let mut setup = contended_setup(TWO_NETWORKS, (2, 4), seed);
        for (name, value) in [("link.layer", "eci"), ("link.count", "2")] {
            setup.platform.set(name, value).unwrap();
        }
        let (_, sequence) =
            trace(&setup, Side::Device, 0).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        let verdict = cohkit_trace::judge(&setup.protocol, &setup.home, &sequence, true);
        assert!(verdict.is_ok(), "{seed}: {verdict:?}");
    }
}

/// A single unit of the home completes each transaction, even if other messages wait in its input queues.
#[test]
fn transactions_do_not_wait_for_queued_answers() {
    for seed in seeds(20) {
        let mut setup = contended_setup(REJECTED_REQUEST, (3, 4), seed);
        (
            setup.platform.home.slices.value,
            setup.platform.home.units.value,
        ) = (1, 1);
        let failure = no_progress_failure(run(&setup));
        assert!(failure.is_none(), "{}", failure.unwrap());
    }
}

#[test]
fn replacement_evictions_wait_for_queue_capacity() {
    let networks = "  network requests capacity 1 { request }\n  network responses { response }\n";
    let text = ONE_VNET.replace("  ordered request, response\n", networks);
    let mut stalls = 0.0;
    for seed in seeds(20) {
        // Each cache has a capacity of four lines.
        let mut setup = contended_setup(&text, (3, 7), seed);
        setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 1)];
        setup.workload.cores = 3;
        let statistics = run(&setup).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        assert_eq!(statistics.get("accesses"), Some(ACCESSES as f64), "{seed}");
        stalls += statistics.get("stalls_input_queue").unwrap();
    }
    assert!(stalls > 1000.0, "{stalls}");
}

/// Stores are performed at the home; the cache evicts its copy before it sends them.
const EVICT_BEFORE_STORE: &str = r#"protocol copy_goes_first "Stores at the home by a cache that reads copies"
line 64 bytes
channels { up remote -> home; down home -> remote; network ups capacity 1 { up } }
messages { up: Get, Put (partial store), Gone; down: Data (line), Done, Ack }
remote cache {
  states { I; S reads; W waits Data; T waits Done; E waits Ack }
  I | load  | send Get  | W
  W | Data  |           | S
  I | store | send Put  | T
  T | Done  | done      | I
  S | evict | send Gone | E
  E | Ack   |           | I
}
home memory {
  states { A }
  variables { unused: remote }
  A | Get  | send Data        | stay
  A | Put  | write, send Done | stay
  A | Gone | send Ack         | stay
}
system one { remotes 1; lines 2 }
"#;

#[test]
fn eviction_before_a_store_waits_for_capacity() {
    let mut stalls = 0.0;
    for seed in seeds(20) {
        let mut setup = contended_setup(EVICT_BEFORE_STORE, (1, 3), seed);
        setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 1)];
        let statistics = run(&setup).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        assert_eq!(statistics.get("accesses"), Some(ACCESSES as f64), "{seed}");
        stalls += statistics.get("stalls_input_queue").unwrap();
    }
    assert!(stalls > 1000.0, "{stalls}");
}

#[test]
fn local_operation_waits_for_channel_capacity() {
    let mut stalls = 0.0;
    for seed in seeds(20) {
        let mut setup = contended_setup(LOCAL_OPERATION_CAPACITY, (2, 2), seed);
        setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 1)];
        (setup.device.operations, setup.device.lines) = (200, 2);
        let statistics = run(&setup).unwrap_or_else(|failure| panic_with_seed(seed, failure));
        assert_eq!(statistics.get("local_operations_acknowledged"), Some(200.0));
        stalls += statistics.get("stalls_input_queue").unwrap();
        let (_, sequence) = trace(&setup, Side::Device, 0).unwrap();
        let verdict = cohkit_trace::judge(&setup.protocol, &setup.home, &sequence, true);
        assert!(verdict.is_ok(), "{seed}: {verdict:?}");
    }
    assert!(stalls > 100.0, "{stalls}");
}

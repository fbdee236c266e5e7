//! Deadlocks of input queues that several senders share, and rows that choose a cache from a set. Each test also has a
//! variant without the fault, which must be verified.

use crate::support::{home_of, parse_valid};
use cohkit_check::system::{model, Options};
use cohkit_engine::{check, Options as Search, Outcome, Property};

/// MESI with requests and responses in one order from each cache. If all caches share one input queue of the directory,
/// the directory stalls a request while it waits for a response behind that request.
const ONE_VNET: &str = include_str!("../verdicts/mesi_one_vnet.coh");

/// Returns the verdict on all properties except progress.
fn outcome(text: &str, remotes: u16, lines: u8) -> Outcome {
    let protocol = parse_valid(text);
    let home = home_of(&protocol, remotes);
    let model = model(&protocol, &home, remotes, lines, &Options::default()).unwrap();
    check(&model, &Search::default()).unwrap().outcome
}

/// Only a network, which shares one input queue among all senders, has the deadlock.
#[test]
fn responses_behind_requests_in_a_shared_input_queue_deadlock() {
    let shared = |networks: &str| ONE_VNET.replace("  ordered request, response\n", networks);
    let verdict = outcome(&shared("  network vnet { request, response }\n"), 2, 1);
    let Outcome::Violated {
        property, trace, ..
    } = verdict
    else {
        panic!("no deadlock, but {verdict:?}");
    };
    assert_eq!(property, Property::NoDeadlock);
    let last_rule = &trace.steps.last().unwrap().rule;
    assert!(last_rule.contains("waits first in vnet"), "{last_rule}");
    // Separate networks, or a queue for each cache, avoid the deadlock.
    let separate_networks = "  network requests { request }\n  network responses { response }\n";
    assert_eq!(outcome(&shared(separate_networks), 2, 1), Outcome::Verified);
    assert_eq!(outcome(ONE_VNET, 2, 1), Outcome::Verified);
}

/// The home requests the line from any one of its sharers.
const PICK_SHARER: &str = include_str!("../../../../tests/networks/pick-sharer.coh");

/// The search takes the choice of every member.
#[test]
fn home_that_picks_any_sharer_is_verified() {
    assert_eq!(outcome(PICK_SHARER, 3, 1), Outcome::Verified);
    // The chosen cache is a sharer, and so never the requester.
    let without_stall = |cache: &str| {
        let stall = format!("  B | Sent if one {cache} wants | stall\n  B | Sent  |");
        outcome(&PICK_SHARER.replace("  B | Sent  |", &stall), 3, 1)
    };
    assert_eq!(without_stall("=="), Outcome::Verified);
    assert!(matches!(without_stall("!="), Outcome::Violated { .. }));
}

/// A choice from no members gives `none`, to which no message can be sent.
#[test]
fn choice_from_an_empty_set_is_a_violation() {
    let text = PICK_SHARER.replace("one := any sharers", "one := any sharers - sharers");
    let Outcome::Violated { property, .. } = outcome(&text, 2, 1) else {
        panic!("a message is sent to none");
    };
    assert_eq!(property.to_string(), "no unexpected message");
}

/// The guard of a choosing rule must use the set after the row's earlier assignments.
#[test]
fn choice_uses_values_assigned_earlier_in_its_row() {
    // Removing the requester, which is no sharer, changes nothing. Removing all sharers leaves an empty set to choose
    // from.
    let with_assignment = |assignment: &str| {
        let set = format!("{assignment}, one := any sharers");
        outcome(&PICK_SHARER.replace("one := any sharers", &set), 2, 1)
    };
    assert_eq!(with_assignment("sharers -= { sender }"), Outcome::Verified);
    assert!(matches!(
        with_assignment("sharers := {}"),
        Outcome::Violated { .. }
    ));
}

/// The home consumes a request only with free space for its reply, and a cache consumes a reply only with free space
/// for its acknowledgement.
const BACK_PRESSURE: &str = include_str!("../../../../tests/networks/back-pressure.coh");

/// Networks with a capacity of one message fill up with two lines.
#[test]
fn cyclic_wait_of_full_input_queues_deadlocks() {
    assert_eq!(outcome(BACK_PRESSURE, 1, 2), Outcome::Verified);
    let small_queues = BACK_PRESSURE.replace("capacity 2", "capacity 1");
    let verdict = outcome(&small_queues, 1, 2);
    let Outcome::Violated { property, .. } = verdict else {
        panic!("no deadlock, but {verdict:?}");
    };
    assert_eq!(property, Property::NoDeadlock);
    // One line has one message in flight at a time, and longer queues never fill.
    assert_eq!(outcome(&small_queues, 1, 1), Outcome::Verified);
    let unbounded_queues = BACK_PRESSURE.replace(" capacity 2", "");
    assert_eq!(outcome(&unbounded_queues, 1, 2), Outcome::Verified);
}

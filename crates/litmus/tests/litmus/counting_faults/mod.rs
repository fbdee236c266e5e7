//! Faults in how protocols count stores, acknowledgements and epochs. The conformance check of the guaranteed memory
//! model finds each of them with one of its programs.
//!
//! Programs with two accesses per thread are not enough, because one acknowledgement, one count and one epoch satisfy
//! them. They miss `verdicts/g01_onebit.coh` and the first fault of `cord` below.

use crate::protocol_files::{home, read};
use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::conformance_report::{
    bursts, check_conformance, classic, ConformanceVerdict, TestRun,
};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::herd;
use cohkit_litmus::run::{run, Options, RunResult};
use cohkit_litmus::warm_caches::named;
use cohkit_protocol::protocol::Protocol;
use std::borrow::Cow;

/// Stores that are ordered at the directories, by counts and epochs.
const CORD: &str = include_str!("../../../../../ordering/cord.coh");
/// The same with total store order.
const CORD_TSO: &str = include_str!("../../../../../ordering/tso/cord.coh");
/// Stores with sequence numbers, which a directory commits in order.
const SEQ: &str = include_str!("../../../../../ordering/seq.coh");
/// The same with total store order.
const SEQ_TSO: &str = include_str!("../../../../../ordering/tso/seq.coh");
/// Stores that are ordered at the source, which waits for acknowledgements.
const SO: &str = include_str!("../../../../../ordering/so.coh");
const SO_STRICT: &str = include_str!("../../../../../ordering/so-strict.coh");
/// Posted stores with credits, ordered between one core and one home only.
const MP: &str = include_str!("../../../../../ordering/mp.coh");
/// Caches that drop all copies at an acquire.
const SELF_INVALIDATE: &str = include_str!("../../../../../protocols/self-invalidate.coh");

/// A protocol file with some words replaced, and the program that refutes it.
struct Fault {
    /// Behaviour of the faulty protocol.
    description: &'static str,
    /// Name of the program that refutes the fault.
    program: &'static str,
    /// Protocol file without the fault.
    text: &'static str,
    /// Words of the protocol file, and their replacements.
    words: &'static [(&'static str, &'static str)],
    /// Part of the refutation's message.
    expected: &'static str,
}

/// Creates a fault of the protocol file `text`.
const fn fault(
    text: &'static str,
    description: &'static str,
    program: &'static str,
    words: &'static [(&'static str, &'static str)],
    expected: &'static str,
) -> Fault {
    Fault {
        description,
        program,
        text,
        words,
        expected,
    }
}

/// Refutation by an outcome that the memory model forbids.
const FORBIDDEN_OUTCOME: &str = "its outcome is";
/// Refutation by a deadlock or livelock.
const STUCK: &str = "lock: its threads";

/// Faults that need more than one store, acknowledgement or epoch in most cases.
const FAULTS: &[Fault] = &[
    fault(
        CORD,
        "a directory waits for one store of several",
        "WxWxLy+AyRx",
        &[(
            "store_count[sender][epoch] == stores",
            "(stores == 0 or store_count[sender][epoch] > 0)",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        CORD,
        "a release waits for all stores but one",
        "WxWxLy+AyRx",
        &[(
            "Release if (store_count[sender][epoch] == stores",
            "Release if (store_count[sender][epoch] + 1 >= stores",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        CORD,
        "a notification waits for one store of several",
        "WxWxLy+AyRx",
        &[(
            "NotifyRequest if store_count[sender][epoch] == stores",
            "NotifyRequest if (stores == 0 or store_count[sender][epoch] > 0)",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        CORD,
        "an empty release waits for one store of several",
        "WxWxFWy+RyFRx",
        &[(
            "EmptyRelease if store_count[sender][epoch] == stores",
            "EmptyRelease if (stores == 0 or store_count[sender][epoch] > 0)",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        CORD,
        "the second store of an epoch is not counted at its core",
        "WxWxLy+AyRx",
        &[(
            "store_count[home] < most\n    | send Relaxed (epoch = epoch), store_count[home] += 1",
            "store_count[home] < most\n    | send Relaxed (epoch = epoch)",
        )],
        STUCK,
    ),
    fault(
        CORD,
        "the second store of an epoch is not counted at its directory",
        "WxWxLy+AyRx",
        &[(
            "write, store_count[sender][epoch] += 1, sharers",
            "write, store_count[sender][epoch] := 1, sharers",
        )],
        STUCK,
    ),
    fault(
        CORD,
        "a core does not reset its counts with a release",
        "WxLxLy+AyRx",
        &[("store_count := 0, epoch += 1 | stay", "epoch += 1 | stay")],
        STUCK,
    ),
    fault(
        CORD,
        "another home is requested to notify with the count of the release's own",
        "WxWxLy+AyRx",
        &[(
            "send NotifyRequest (epoch = epoch, stores = store_count[h]",
            "send NotifyRequest (epoch = epoch, stores = store_count[home]",
        )],
        "its threads",
    ),
    fault(
        CORD,
        "the first of several acknowledgements ends the wait for all",
        "WxLxLy+AyRx",
        &[(
            "ReleaseAck if unacked[sender] == 1 |",
            "ReleaseAck if unacked[sender] >= 1 |",
        )],
        "`unacked` has no room for -1",
    ),
    fault(
        CORD,
        "an acquire waits for all homes but one",
        "SB+polas",
        &[(
            "acquire if count(unacked_homes) == 0",
            "acquire if count(unacked_homes) <= 1",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        CORD,
        "a fence waits for all homes but one",
        "WxWxFWy+RyFRx",
        &[(
            "fence if count(store_homes + unacked_homes) == 0",
            "fence if count(store_homes + unacked_homes) <= 1",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        CORD,
        "all copies but one are awaited",
        "WxWxLy+RxAyRx+Rx",
        &[(
            "GetM_A Relaxed_AD Release_AD Write_AD Atomic_AD | ProbeAck if pending_acks > 1 |",
            "GetM_A Relaxed_AD Release_AD Write_AD Atomic_AD | ProbeAck if pending_acks > 2 |",
        )],
        "",
    ),
    fault(
        CORD,
        "sequence numbers are not counted at a directory that notifies",
        "WxLyWxLy+AyRx",
        &[(
            "store_count[sender][epoch] := 0, expected_sequence[sender] += 1,\n      send Notify",
            "store_count[sender][epoch] := 0,\n      send Notify",
        )],
        STUCK,
    ),
    fault(
        CORD,
        "a core counts no sequence number for a home that it requests to notify",
        "WxLyWxLy+AyRx",
        &[(
            "sequence = next_sequence[h], release_home = home) to h, next_sequence[h] += 1 }",
            "sequence = next_sequence[h], release_home = home) to h }",
        )],
        STUCK,
    ),
    fault(
        CORD_TSO,
        "the first of several acknowledgements ends the wait for all",
        "WxLxLy+AyRx",
        &[(
            "ReleaseAck if unacked[sender] == 1 |",
            "ReleaseAck if unacked[sender] >= 1 |",
        )],
        "`unacked` has no room for -1",
    ),
    fault(
        SEQ,
        "stores are performed in any order",
        "WxLyWxLy+AyRx",
        &[
            ("Write if sequence == expected_sequence[sender]", "Write"),
            ("Idle | Write Last ", "Idle | Last "),
        ],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        SEQ,
        "the last number is not awaited",
        "WxWxWxFRy+WyFRx",
        &[(
            "send Last (sequence = next_sequence), next_sequence += 1, stores_left := 0",
            "send Last (sequence = next_sequence), next_sequence += 1, stores_left := most",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        SEQ,
        "a store that asks for an acknowledgement is not counted",
        "WxWxWxLy+AyRx",
        &[("write, expected_sequence[sender] += 1, send Ack", "write, send Ack")],
        STUCK,
    ),
    fault(
        SEQ,
        "a flush is acknowledged before the stores are there",
        "WxFRy+WyFRx",
        &[
            (
                "Flush if sequence == expected_sequence[sender] | expected_sequence[sender] += 1, send Ack",
                "Flush | expected_sequence[sender] += 1, send Ack",
            ),
            (
                "  -    | Flush                                          | stall\n",
                "",
            ),
        ],
        STUCK,
    ),
    fault(
        SEQ,
        "a core does not count a store",
        "WxWxLy+AyRx",
        &[(
            "send Write (sequence = next_sequence), next_sequence += 1",
            "send Write (sequence = next_sequence)",
        )],
        STUCK,
    ),
    fault(
        SEQ,
        "the last store before an acknowledgement leaves room",
        "WxWxWxFRy+WyFRx",
        &[(
            "send Last (sequence = next_sequence), next_sequence += 1, stores_left := 0",
            "send Last (sequence = next_sequence), next_sequence += 1, stores_left := 1",
        )],
        STUCK,
    ),
    fault(
        SEQ_TSO,
        "stores are performed in any order",
        "WxLyWxLy+AyRx",
        &[
            ("Write if sequence == expected_sequence[sender]", "Write"),
            ("Idle | Write Last ", "Idle | Last "),
        ],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        SEQ_TSO,
        "the last number is not awaited",
        "WxWxWxFRy+WyFRx",
        &[(
            "send Last (sequence = next_sequence), next_sequence += 1, stores_left := 0",
            "send Last (sequence = next_sequence), next_sequence += 1, stores_left := most",
        )],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        SO,
        "a release waits for all outstanding stores but one",
        "WxWxLy+AyRx",
        &[("release if outstanding == 0", "release if outstanding <= 1")],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        SO,
        "a core counts one of several outstanding stores",
        "WxWxLy+AyRx",
        &[("send Write, outstanding += 1", "send Write, outstanding := 1")],
        "`outstanding` has no room for -1",
    ),
    fault(
        SO,
        "stores of a core to a line are unordered",
        "WxWx",
        &[("  ordered store, read per line", "  ordered read per line")],
        "program order",
    ),
    fault(
        SO,
        "stores may not pass a release that has been sent",
        "WxLyWx",
        &[("send Release, release_pending := false", "send Release")],
        STUCK,
    ),
    fault(
        SO_STRICT,
        "all copies but one are awaited",
        "WxWxLy+RxAyRx+Rx",
        &[(
            "GetM_A Write_AD Atomic_AD | ProbeAck if pending_acks > 1 |",
            "GetM_A Write_AD Atomic_AD | ProbeAck if pending_acks > 2 |",
        )],
        "a readable copy is stale",
    ),
    fault(
        SO_STRICT,
        "a store is acknowledged before the copies are gone",
        "WxWyLz+RxAzRxRy",
        &[
            (
                "Write\n    | defer, send Inv to sharers - { sender },",
                "Write\n    | defer, send StoreAck, send Inv to sharers - { sender },",
            ),
            (
                "Write        | defer, send Inv to owner,",
                "Write | defer, send StoreAck, send Inv to owner,",
            ),
            ("write deferred, send StoreAck to requestor,", "write deferred,"),
        ],
        "a write completes although the home has not performed it",
    ),
    fault(
        MP,
        "the credit of a store that waited for copies is lost",
        "WxWx+Rx",
        &[("write deferred, send Credit to requestor,", "write deferred,")],
        STUCK,
    ),
    fault(
        MP,
        "a store takes no credit",
        "WxWx",
        &[("send Write, credits_left[home] -= 1", "send Write")],
        "`credits_left` has no room for 3",
    ),
    fault(
        SELF_INVALIDATE,
        "an acquire drops no copies",
        "WxWyLz+RxAzRxRy",
        &[("every V becomes I, every IV becomes IN", "every IV becomes IN")],
        FORBIDDEN_OUTCOME,
    ),
    fault(
        SELF_INVALIDATE,
        "a line that was outstanding at an acquire is kept",
        "MP+popl+poap+warm",
        &[("IN      | Data                | done           | I", "IN      | Data                |                | V")],
        FORBIDDEN_OUTCOME,
    ),
];

/// Returns the first refutation by programs, with the protocol's own parameters, then with those of its systems.
fn first_refutation(protocol: &Protocol, programs: &[TestRun]) -> Option<String> {
    let model = protocol.guarantee.model.expect("a guarantee");
    let mut readings = vec![protocol];
    for system in &protocol.systems {
        let sized = system.resized_protocol.as_deref();
        let is_known = |known: &&Protocol| sized.is_none_or(|sized| *known == sized);
        readings.extend(sized.filter(|_| !readings.iter().any(is_known)));
    }
    readings.into_iter().find_map(|protocol| {
        let home_of = |_| Cow::Borrowed(home(protocol));
        let found = check_conformance(
            protocol,
            model,
            programs.to_vec(),
            None,
            &home_of,
            &mut || true,
        );
        match found.verdict {
            ConformanceVerdict::Holds => None,
            ConformanceVerdict::Violated {
                program,
                description,
                ..
            } => Some(format!("{program}: {description}")),
            other => panic!("{}: {other:?}", protocol.name),
        }
    })
}

impl Fault {
    fn protocol(&self) -> Protocol {
        let mut text = self.text.to_string();
        for (original, replacement) in self.words {
            assert!(text.contains(original), "{}: {original}", self.description);
            text = text.replace(original, replacement);
        }
        read(&text)
    }
}

/// Applies each fault, and compares the refutation with the expected one.
#[test]
fn every_counting_fault_is_refuted_by_its_named_program() {
    let mut failures = Vec::new();
    for fault in FAULTS {
        let protocol = fault.protocol();
        let program = named(fault.program).expect("a program");
        let programs = [TestRun {
            program,
            max_spontaneous_evictions: 0,
        }];
        match first_refutation(&protocol, &programs) {
            Some(found) if found.contains(fault.expected) => {}
            found => failures.push(format!(
                "{}: {}: {found:?}",
                protocol.name, fault.description
            )),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The programs of the conformance check find each fault without knowledge of it.
#[test]
#[ignore = "minutes, for `make soak`"]
fn guarantee_programs_refute_every_counting_fault() {
    for fault in FAULTS {
        let protocol = fault.protocol();
        let model = protocol.guarantee.model.expect("a guarantee");
        let mut programs = bursts(model, 3);
        programs.extend(classic(&protocol, 2));
        let found = first_refutation(&protocol, &programs);
        println!("{}: {}: {found:?}", protocol.name, fault.description);
        assert!(found.is_some(), "{}: {}", protocol.name, fault.description);
    }
}

/// Fault: a release waits for one of several acknowledgements, because the protocol has a bit instead of a counter.
#[test]
fn releases_wait_for_all_acknowledgements() {
    let bit = read(include_str!("verdicts/g01_onebit.coh"));
    let found = first_refutation(&bit, &bursts(Model::Rc, 2)).expect("a program");
    assert!(
        found.starts_with("WxWyLz+AzRxRy: its outcome is"),
        "{found}"
    );
    assert_eq!(first_refutation(&bit, &classic(&bit, 3)), None);
    let counter = read(include_str!("verdicts/g01ref.coh"));
    assert_eq!(first_refutation(&counter, &bursts(Model::Rc, 3)), None);
    // The outcome that first exposed the fault.
    let program = herd::read(include_str!("verdicts/g01.litmus")).expect("a program");
    let options = Options {
        cores: CoreKind::Relaxed(bit.program_order.expect("orders")),
        ..Options::default()
    };
    let RunResult::Outcomes { outcomes, .. } =
        run(&bit, home(&bit), &program, &options, &mut || true)
    else {
        panic!("it has outcomes")
    };
    let allowed = allowed(&program, Model::Rc).expect("a small program");
    assert!(outcomes.iter().any(|outcome| program.holds(outcome)));
    assert!(!allowed.iter().any(|outcome| program.holds(outcome)));
}

/// Programs with livelock: in one protocol if two stores race, in the other always, because a register entry is kept.
#[test]
fn livelock_violates_a_guarantee() {
    for text in [
        include_str!("verdicts/m02_partial_livelock.coh"),
        include_str!("verdicts/p01_slot_kept.coh"),
    ] {
        let protocol = read(text);
        let home_of = |_| Cow::Borrowed(home(&protocol));
        let programs = classic(&protocol, 2);
        let found = check_conformance(&protocol, Model::Sc, programs, None, &home_of, &mut || true);
        match found.verdict {
            ConformanceVerdict::Violated {
                program,
                description,
                path,
                ..
            } => {
                assert_eq!(
                    description,
                    "livelock: its threads run forever, and no outcome is reachable"
                );
                assert!(path.is_some(), "{program}");
            }
            other => panic!("{}: {other:?}", protocol.name),
        }
    }
}

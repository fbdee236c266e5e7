//! Faults of `cord`, each with the program or system that refutes it.
//!
//! A fault is the protocol file with some words replaced. A program refutes it by an outcome that release consistency
//! forbids, by threads that wait for ever, or by a violated property. A system refutes it by a shortest trace.

use crate::protocol_files;

use cohkit_check::system::{model, Options as Lowered};
use cohkit_engine::{check, Options as Search, Outcome};
use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::named;
use cohkit_litmus::herd;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{run, Options, RunResult};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::parse;
use cohkit_system::state::StepError;
use protocol_files::home;
use Refutation::{Shape, System, Written};

/// Stores that are ordered at the directories, with release consistency.
const CORD: &str = include_str!("../../../../ordering/cord.coh");
/// Stores that are ordered at the directories, with total store order.
const CORD_TSO: &str = include_str!("../../../../ordering/tso/cord.coh");

/// Programs other than cycles: with a cached copy of a written location, and with more epochs than epoch numbers.
const PROGRAMS: [&str; 8] = [
    include_str!("../../../../litmus/ordering/MP+popl+copy.litmus"),
    include_str!("../../../../litmus/ordering/SB+polas+copy.litmus"),
    include_str!("../../../../litmus/ordering/MP+counts.litmus"),
    include_str!("../../../../litmus/ordering/MP+rounds.litmus"),
    include_str!("../../../../litmus/ordering/MP+epochs.litmus"),
    include_str!("../../../../litmus/ordering/MP+wrap.litmus"),
    include_str!("../../../../litmus/ordering/MP+releases.litmus"),
    include_str!("../../../../litmus/ordering/MP+homes.litmus"),
];

/// Program or system that refutes a fault.
enum Refutation {
    /// A classic shape.
    Shape(&'static str),
    /// One of [`PROGRAMS`].
    Written(&'static str),
    /// A system of the protocol file.
    System(&'static str),
}

/// A fault of `cord`, and its refutation.
struct Fault {
    /// Behaviour of the faulty protocol.
    description: &'static str,
    /// Words of the protocol file, and their replacements.
    words: &'static [(&'static str, &'static str)],
    /// Program or system that must refute the fault.
    refuted_by: Refutation,
    /// Part of the refutation: an outcome or a message.
    expected: &'static str,
}

/// Outcome of message passing: the flag is seen, and the data is old.
const HANDED_OVER: &str = "1:X0=1; 1:X2=0";
/// Description of threads that reach no outcome.
const DEADLOCK: &str = "wait forever";

/// Faults in the counts, sequence numbers, notifications and waits by which directories order stores.
const FAULTS: &[Fault] = &[
    Fault {
        description: "a notification is sent before the stores have arrived",
        words: &[(
            "NotifyRequest if store_count[sender][epoch] == stores and expected_sequence",
            "NotifyRequest if expected_sequence",
        )],
        refuted_by: Shape("MP+popl+poap"),
        expected: HANDED_OVER,
    },
    Fault {
        description: "a notification is sent before an earlier epoch end",
        words: &[(
            "NotifyRequest if store_count[sender][epoch] == stores and expected_sequence[sender] == sequence",
            "NotifyRequest if store_count[sender][epoch] == stores",
        )],
        refuted_by: Shape("MP+poll+poaa"),
        expected: DEADLOCK,
    },
    Fault {
        description: "a notification is sent to the home that sends it",
        words: &[(
            "sequence = next_sequence[h], release_home = home)",
            "sequence = next_sequence[h], release_home = h)",
        )],
        refuted_by: Shape("MP+poll+poaa"),
        expected: DEADLOCK,
    },
    Fault {
        description: "a count is not reset when its release commits",
        words: &[
            (
                "write, store_count[sender][epoch] := 0, notify_count",
                "write, notify_count",
            ),
            (
                "write deferred, store_count[requestor][request_epoch] := 0, notify_count",
                "write deferred, notify_count",
            ),
        ],
        refuted_by: System("one"),
        expected: "which holds 0..1, in 13 steps",
    },
    Fault {
        description: "a count is not reset when its home notifies",
        words: &[(
            "| store_count[sender][epoch] := 0, expected_sequence[sender] += 1,\n      send Notify",
            "| expected_sequence[sender] += 1, send Notify",
        )],
        refuted_by: System("two"),
        expected: "which holds 0..1, in 12 steps",
    },
    Fault {
        description: "notifications are not reset",
        words: &[
            ("notify_count[sender][epoch] := 0, ", ""),
            ("notify_count[requestor][request_epoch] := 0,\n", "\n"),
        ],
        refuted_by: System("two"),
        expected: "which holds 0..1, in 20 steps",
    },
    Fault {
        description: "an epoch number is reused too early",
        words: &[("size epochs 4", "size epochs 2")],
        refuted_by: Written("MP+rounds"),
        expected: DEADLOCK,
    },
    Fault {
        description: "a release does not end its epoch",
        words: &[(
            "store_count := 0, epoch += 1 | stay",
            "store_count := 0 | stay",
        )],
        refuted_by: Written("MP+rounds"),
        expected: DEADLOCK,
    },
    Fault {
        description: "a table does not count a second store of an epoch",
        words: &[(
            "  S          | Relaxed if count(sharers - { sender }) == 0\n    | write, store_count",
            "  S | Relaxed if count(sharers - { sender }) == 0 and store_count[sender][epoch] != 0 \
             | write, sharers := {} | stay\n  \
             S | Relaxed if count(sharers - { sender }) == 0 | write, store_count",
        )],
        refuted_by: Written("MP+counts"),
        expected: DEADLOCK,
    },
    Fault {
        description: "a release commits with one notification missing",
        words: &[(
            "notify_count[sender][epoch] == notifications",
            "notify_count[sender][epoch] + 1 >= notifications",
        )],
        refuted_by: Shape("MP+poll+poaa"),
        expected: HANDED_OVER,
    },
    Fault {
        description: "a release commits before the stores at its own home",
        words: &[(
            "Release if (store_count[sender][epoch] == stores and expected_sequence",
            "Release if (expected_sequence",
        )],
        refuted_by: Shape("MP+popl+poap"),
        expected: HANDED_OVER,
    },
    Fault {
        description: "a release commits before an earlier epoch end",
        words: &[(
            "stores and expected_sequence[sender] == sequence\n        and notify_count",
            "stores and notify_count",
        )],
        refuted_by: Shape("MP+poll+poaa"),
        expected: HANDED_OVER,
    },
    Fault {
        description: "homes with earlier releases are not requested to notify",
        words: &[
            (
                "notifications = count(store_homes + unacked_homes - { home })",
                "notifications = count(store_homes - { home })",
            ),
            (
                "for h in store_homes + unacked_homes - { home }",
                "for h in store_homes - { home }",
            ),
        ],
        refuted_by: Shape("MP+poll+poaa"),
        expected: HANDED_OVER,
    },
    Fault {
        description: "the count of a release is sent as 0",
        words: &[(
            "Release (epoch = epoch, stores = store_count[home],",
            "Release (epoch = epoch, stores = 0,",
        )],
        refuted_by: Shape("CoWW+popl"),
        expected: DEADLOCK,
    },
    Fault {
        description: "the count of another home is sent as 0",
        words: &[(
            "NotifyRequest (epoch = epoch, stores = store_count[h],",
            "NotifyRequest (epoch = epoch, stores = 0,",
        )],
        refuted_by: Shape("MP+popl+poap"),
        expected: DEADLOCK,
    },
    Fault {
        description: "a release is acknowledged before all copies are invalidated",
        words: &[
            (
                "request_epoch := epoch, sharers := {} | Release_AD",
                "request_epoch := epoch, sharers := {}, send ReleaseAck | Release_AD",
            ),
            (
                "request_epoch := epoch, owner := none | Release_AD",
                "request_epoch := epoch, owner := none, send ReleaseAck | Release_AD",
            ),
            (
                "expected_sequence[requestor] += 1, send ReleaseAck to requestor, ",
                "expected_sequence[requestor] += 1, ",
            ),
        ],
        refuted_by: Written("SB+polas+copy"),
        expected: "0:X2=0; 1:X4=0",
    },
    Fault {
        description: "a store is counted before all copies are invalidated",
        words: &[
            (
                "request_epoch := epoch, sharers := {} | Relaxed_AD",
                "request_epoch := epoch, sharers := {}, store_count[sender][epoch] += 1 | Relaxed_AD",
            ),
            (
                "request_epoch := epoch, owner := none | Relaxed_AD",
                "request_epoch := epoch, owner := none, store_count[sender][epoch] += 1 | Relaxed_AD",
            ),
            (
                "write deferred, store_count[requestor][request_epoch] += 1, ",
                "write deferred, ",
            ),
        ],
        refuted_by: Written("MP+popl+copy"),
        expected: "1:X2=1; 1:X4=0",
    },
    Fault {
        description: "a release does not invalidate copies",
        words: &[
            (
                "== notifications and count(sharers - { sender }) == 0)\n",
                "== notifications)\n",
            ),
            (
                "defer, send Inv to owner, requestor := sender, request_epoch := epoch, owner := none | Release_AD",
                "write, store_count[sender][epoch] := 0, notify_count[sender][epoch] := 0, expected_sequence[sender] += 1, \
                 send ReleaseAck | stay",
            ),
        ],
        refuted_by: Shape("SB+polas"),
        expected: "a readable copy is stale",
    },
    Fault {
        description: "an acquire does not wait for earlier releases",
        words: &[("acquire if count(unacked_homes) == 0", "acquire")],
        refuted_by: Shape("SB+polas"),
        expected: "0:X2=0; 1:X2=0",
    },
    Fault {
        description: "a fence does not wait for acknowledgements",
        words: &[(
            "fence if count(store_homes + unacked_homes) == 0",
            "fence if count(store_homes) == 0",
        )],
        refuted_by: Shape("SB+dmb.sys"),
        expected: "0:X2=0; 1:X2=0",
    },
    Fault {
        description: "a release begins although the table of its core is full",
        words: &[(
            "release if outstanding < entries and unacked[home] < notes",
            "release",
        )],
        refuted_by: System("one"),
        expected: "which holds 0..1, in 2 steps",
    },
];

/// Reads a protocol file that may have been changed.
fn read(text: &str) -> Protocol {
    parse(text).unwrap_or_else(|errors| {
        let messages = errors.iter().map(|e| e.render("cord", text, false));
        panic!("{}", messages.collect::<String>())
    })
}

/// Returns the program of [`PROGRAMS`] with this name.
fn stored_program(name: &str) -> Program {
    let mut programs = PROGRAMS.iter().map(|text| {
        herd::read(text).unwrap_or_else(|error| panic!("{}", error.render("program", text, false)))
    });
    let program = programs.find(|program| program.name == name);
    program.unwrap_or_else(|| panic!("no program {name}"))
}

/// Returns the first forbidden outcome, violation or deadlock of a program on a protocol, if any.
fn by_program(protocol: &Protocol, program: &Program) -> Option<String> {
    let options = Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        ..Options::default()
    };
    match run(protocol, home(protocol), program, &options, &mut || true) {
        RunResult::Outcomes { outcomes, .. } => {
            let allowed = allowed(program, Model::Rc).unwrap();
            let forbidden = outcomes.iter().find(|outcome| !allowed.contains(outcome))?;
            Some(program.format_outcome(forbidden))
        }
        RunResult::Stuck { .. } => Some(DEADLOCK.to_string()),
        RunResult::Error(StepError::Violated(violation)) => Some(violation.description),
        other => panic!("{}: {other:?}", program.name),
    }
}

/// Returns the violation of a system of the protocol, and the length of the shortest trace, if any.
fn by_system(protocol: &Protocol, name: &str) -> Option<String> {
    let system = protocol.systems.iter().find(|system| system.name == name);
    let system = system.unwrap_or_else(|| panic!("no system {name}"));
    let sized = system.resized_protocol.as_deref().unwrap_or(protocol);
    let remotes = system.remotes.total();
    let model = model(
        sized,
        home(sized),
        remotes,
        system.lines,
        &Lowered::default(),
    )
    .unwrap();
    match check(&model, &Search::default()).unwrap().outcome {
        Outcome::Verified => None,
        Outcome::Violated { message, trace, .. } => {
            Some(format!("{message}, in {} steps", trace.steps.len()))
        }
        other => panic!("{name}: {other:?}"),
    }
}

/// Applies each fault, and compares the refutation with the expected one.
#[test]
fn every_fault_is_refuted_by_its_named_check() {
    let mut failures = Vec::new();
    for fault in FAULTS {
        let mut text = CORD.to_string();
        for (original, replacement) in fault.words {
            assert!(text.contains(original), "{}: {original}", fault.description);
            text = text.replace(original, replacement);
        }
        let protocol = read(&text);
        let found = match fault.refuted_by {
            Shape(name) => by_program(&protocol, &named(name).expect("a shape")),
            Written(name) => by_program(&protocol, &stored_program(name)),
            System(name) => by_system(&protocol, name),
        };
        match found {
            Some(found) if found.contains(fault.expected) => {}
            found => failures.push(format!("{}: {found:?}", fault.description)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Classic programs of two threads have too few stores to reuse epoch numbers. A system therefore refutes this fault.
#[test]
fn system_check_refutes_the_epoch_wrap_fault() {
    assert_eq!(by_system(&read(CORD_TSO), "two"), None);
    let resets = [
        "notify_count[sender][epoch] := 0, ",
        "notify_count[requestor][request_epoch] := 0, ",
    ];
    let mut text = CORD_TSO.to_string();
    for words in resets {
        assert!(text.contains(words));
        text = text.replace(words, "");
    }
    let found = by_system(&read(&text), "two").expect("notifications are not reset");
    assert_eq!(found, "no rule leads to a different state, in 18 steps");
}

/// The programs that refute faults do not refute the protocol without faults. Other tests run the shapes and systems.
#[test]
fn programs_with_copies_and_many_epochs_are_kept() {
    let protocol = read(CORD);
    for text in PROGRAMS {
        let program = herd::read(text).unwrap();
        assert_eq!(by_program(&protocol, &program), None, "{}", program.name);
    }
}

/// The published protocol has three interpretations where epoch numbers wrap around. One program refutes each of the
/// first two, and none refutes the third.
#[test]
fn only_the_reset_of_both_ends_survives_epoch_wrap() {
    const STALE_OUTCOME: &str = "1:X2=2; 1:X4=0";
    for (text, refuted) in [
        (
            include_str!("../../../../ordering/readings/modular.coh"),
            Some("MP+epochs"),
        ),
        (
            include_str!("../../../../ordering/readings/drained.coh"),
            Some("MP+wrap"),
        ),
        (
            include_str!("../../../../ordering/readings/reset.coh"),
            None,
        ),
    ] {
        let protocol = read(text);
        for text in PROGRAMS {
            let program = herd::read(text).unwrap();
            let found = by_program(&protocol, &program);
            let context = format!("{}: {}", protocol.name, program.name);
            match Some(program.name.as_str()) == refuted {
                true => assert!(
                    found.is_some_and(|end| end.contains(STALE_OUTCOME)),
                    "{context}"
                ),
                false => assert_eq!(found, None, "{context}"),
            }
        }
    }
}

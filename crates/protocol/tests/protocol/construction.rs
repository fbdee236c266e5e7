//! Variations of one protocol, each a file whose first lines state the expected table (`#! key: value`);
//! `tests/construction/README.md` explains the keys. The sizes were found by an independent study implementation of the
//! same construction. The checker's tests read the same files for the sizes of the products.

use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_protocol::construct::explore::{Cell, HomeGraph};
use cohkit_protocol::construct::fault::FaultKind;
use cohkit_protocol::construct::{
    construct, construct_to, construct_until, ConstructionError, Extent,
};
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::Class;
use cohkit_protocol::text;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Folder of the variations.
fn construction_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/construction")
}

/// Returns the expected results from the first lines of a file.
fn expectations(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("#! "))
        .map(|line| {
            let (key, value) = line.split_once(": ").expect("`#! key: value`");
            (key.to_string(), value.to_string())
        })
        .collect()
}

/// Returns the results of the construction, under the keys of the files.
fn construction_results(text: &str) -> BTreeMap<String, String> {
    let protocol = text::parse(text).unwrap_or_else(|errors| {
        panic!(
            "{}",
            errors
                .iter()
                .map(|error| error.render("text", text, false))
                .collect::<String>()
        )
    });
    let mut results = BTreeMap::new();
    let mut record = |key: &str, value: String| results.insert(key.to_string(), value);
    match construct_to(
        &protocol,
        Extent {
            max_explored_remotes: 3,
            max_quiescence_remotes: 2,
        },
    ) {
        Err(ConstructionError::Refused(refusal)) => panic!("refused: {}", refusal.obstacle),
        Err(ConstructionError::Fault(fault)) => {
            assert!(
                !fault.explanations.is_empty(),
                "a fault is shown by a sequence"
            );
            record("verdict", fault.kind.name().to_string());
        }
        Ok(construction) => {
            let table = construction.table(false);
            let merged = construction.table(true);
            record("states", table.states.len().to_string());
            record("transitions", table.transitions().to_string());
            record(
                "merged",
                format!("{}/{}", merged.states.len(), merged.transitions()),
            );
            record("events", table.events().len().to_string());
            record("knowledge", construction.knowledge.count().to_string());
            record(
                "resends",
                if construction.quiescence[0].note.is_some() {
                    "yes"
                } else {
                    "no"
                }
                .to_string(),
            );
            if let Some(graph) = &construction.multi_remote_graph {
                record("joint states", graph.states().len().to_string());
                record("joint transitions", graph.transitions().to_string());
            }
            let verdict = construction
                .fault()
                .map_or("verified", |fault| fault.kind.name());
            record("verdict", verdict.to_string());
            for report in &construction.quiescence {
                assert!(
                    report.unexercised.is_empty(),
                    "every transition of a home happens"
                );
            }
        }
    }
    results
}

/// Compares the construction of each variation with the expectations in the file, except those about products, which
/// the checker's tests compare.
#[test]
fn variations_have_the_sizes_and_verdicts_of_the_study() {
    let mut names: Vec<_> = fs::read_dir(construction_folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "coh"))
        .collect();
    names.sort();
    assert!(names.len() > 40, "the variations are there");
    let mut mismatches = Vec::new();
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        let results = construction_results(&text);
        for (key, expected) in expectations(&text) {
            if key.contains("product") || key == "undrained" || key == "difference" {
                continue;
            }
            let actual = results.get(&key).map_or("nothing", String::as_str);
            if actual != expected {
                mismatches.push(format!(
                    "{}: {key}: expected {expected}, found {actual}",
                    path.file_name().unwrap().to_string_lossy()
                ));
            }
        }
    }
    assert!(mismatches.is_empty(), "\n{}", mismatches.join("\n"));
}

/// A caller that sets the flag gets no result.
#[test]
fn construction_is_cancelled_by_its_flag() {
    let protocol = text::parse(&read_file("base")).unwrap();
    let construct_with_flag =
        |flag| construct_until(&protocol, Extent::default(), &AtomicBool::new(flag));
    assert!(construct_with_flag(true).is_ok_and(|construction| construction.is_none()));
    assert!(construct_with_flag(false).is_ok_and(|construction| construction.is_some()));
}

/// After this answer the home cannot know whether a victim follows. It may wait for one that need not exist, and the
/// quiescence check finds the dead end.
#[test]
fn ambiguous_knowledge_is_explained() {
    let text = fs::read_to_string(construction_folder().join("ambiguous-answer.coh")).unwrap();
    let protocol = text::parse(&text).unwrap();
    let construction = construct(&protocol).ok().unwrap();
    let fault = construction.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::DeadEnd);
    assert!(construction.notes().any(|note| note
        .text
        .contains("may wait for a victim that need not exist")));
}

/// Text of a variation, given without its extension.
fn read_file(name: &str) -> String {
    fs::read_to_string(construction_folder().join(format!("{name}.coh"))).unwrap()
}

/// Knowledge sets with equal facts and futures form 45 classes, numbered from 0. Merged states of equal name get a
/// letter.
#[test]
fn knowledge_merges_under_the_facts_the_policy_reads() {
    let protocol = text::parse(&read_file("base")).unwrap();
    let construction = construct(&protocol).ok().unwrap();
    assert_eq!(construction.class_of.iter().max(), Some(&44));
    let mut names: Vec<_> = construction
        .table(true)
        .states
        .into_iter()
        .map(|state| state.name)
        .collect();
    names
        .iter_mut()
        .for_each(|name| name.truncate(name.find('~').unwrap_or(name.len())));
    names.sort();
    names.dedup();
    assert_eq!(
        names.len(),
        58,
        "69 merged states have 58 distinct names before letters are added"
    );
}

/// Counts the transitions in which an answer does not suffice and the home sends a forward again.
#[test]
fn forwards_are_sent_again_on_answers_only() {
    let protocol = text::parse(&read_file("base")).unwrap();
    let construction = construct(&protocol).ok().unwrap();
    let environment = &construction.knowledge.environment;
    let forwards = |cell: &Cell| {
        matches!(cell, Cell::Take { acts, .. } if acts.iter().any(|act| {
            matches!(act, Act::Send { message, .. } if environment.class(*message) == Class::Forward)
        }))
    };
    let on_answers = construction
        .graph
        .cells
        .iter()
        .flatten()
        .filter(|((event, _), cell)| {
            matches!(event, Event::Message(message) if environment.class(*message) == Class::Answer)
                && forwards(cell)
        });
    assert_eq!(on_answers.count(), 11);
    let report = &construction.quiescence[0];
    assert_eq!(
        report.resends.len(),
        7,
        "of these, the ones inside a loop that only fairness ends"
    );
}

/// Runs a controller on every input of a graph, and checks that it reacts as the graph does.
fn assert_same_behaviour(
    controller: &Controller,
    graph: &HomeGraph,
    start: Configuration,
    remotes: u16,
) {
    let machine = Machine::new(controller, remotes);
    let mut configurations = vec![None; graph.states().len()];
    configurations[0] = Some(start);
    for (state, cells) in graph.cells.iter().enumerate() {
        let configuration: Configuration = configurations[state]
            .clone()
            .expect("states come in breadth-first order");
        for ((event, sender), cell) in cells {
            let mut next = configuration.clone();
            let trigger = Trigger {
                home: 0,
                event: *event,
                sender: *sender,
                executing_remote: None,
                fields: &[],
            };
            let outcome = machine.step(&mut next, trigger, &mut &*controller).unwrap();
            match (outcome, cell) {
                (Outcome::Stall, Cell::Stall) | (Outcome::Refuse, Cell::Refuse) => {}
                (Outcome::Taken { acts, .. }, Cell::Take { acts: expected, to }) => {
                    assert_eq!(&acts, expected);
                    match &configurations[*to as usize] {
                        Some(reached) => assert_eq!(reached, &next),
                        None => configurations[*to as usize] = Some(next),
                    }
                }
                (outcome, cell) => {
                    panic!("{event:?} in state {state}: {outcome:?} instead of {cell:?}")
                }
            }
        }
    }
}

/// A factored controller keeps a knowledge set per remote in variables; a flat one has a state for each state of the
/// home with one remote. Both exist with and without merging.
#[test]
fn factored_and_flat_controllers_match_the_graph() {
    for name in [
        "base",
        "without-lock",
        "upgrade-without-data-acknowledged",
        "two",
        "two-exclusive-if-alone",
    ] {
        let protocol = text::parse(&read_file(name)).unwrap();
        let construction = construct(&protocol).ok().unwrap();
        for merge in [false, true] {
            let factored = construction.factored(merge);
            let remotes = construction
                .multi_remote_graph
                .as_ref()
                .map_or(1, |graph| graph.remotes);
            let graph = construction
                .multi_remote_graph
                .as_ref()
                .unwrap_or(&construction.graph);
            assert_same_behaviour(
                &factored,
                graph,
                Machine::new(&factored, remotes).initial(),
                remotes,
            );
            let flat = construction.flat(merge);
            assert_same_behaviour(
                &flat,
                &construction.graph,
                Machine::new(&flat, 1).initial(),
                1,
            );
        }
    }
}

/// One variation for each kind of fault: an unexpected message, unbounded messages in flight, a dead end and a
/// livelock.
#[test]
fn construction_fault_sequences_replay() {
    let fault = |name: &str| {
        let text = read_file(name);
        let protocol = text::parse(&text).unwrap();
        let fault = match construct(&protocol) {
            Err(ConstructionError::Fault(fault)) => *fault,
            Ok(construction) => construction.fault().unwrap().clone(),
            Err(ConstructionError::Refused(refusal)) => panic!("{}", refusal.obstacle),
        };
        fault
    };
    let unexpected = fault("upgrade-without-data");
    assert_eq!(
        unexpected.text,
        "`GrantExclusive` can reach `cpu` in state `IU`, which has no rule for it"
    );
    let last_actions: Vec<_> = unexpected.explanations[0]
        .steps
        .iter()
        .rev()
        .take(2)
        .map(|step| &step.action)
        .collect();
    assert_eq!(
        last_actions[0],
        &Action::Does {
            what: "has no rule for it".into()
        }
    );
    assert!(
        matches!(last_actions[1], Action::Receive { message, .. } if message == "GrantExclusive")
    );

    let unbounded = fault("early");
    let victims = unbounded.explanations[0].steps.iter().filter(
        |step| matches!(&step.action, Action::Send { message, .. } if message == "VictimShared"),
    );
    assert!(victims.count() >= 6, "the sequence shows the rounds");

    let dead_end = fault("defer-all-possible");
    assert!(
        dead_end
            .text
            .contains("`cpu` in `SE` stalls `ForwardInvalid` in its channel"),
        "{}",
        dead_end.text
    );
    assert!(
        dead_end
            .text
            .contains("the home stalls `Upgrade` of `cpu` in its channel"),
        "{}",
        dead_end.text
    );

    let livelock = fault("silent-eviction");
    let steps = &livelock.explanations[0].steps;
    let loop_notice = Action::Does {
        what: "the following steps repeat forever".into(),
    };
    let loop_start = steps
        .iter()
        .position(|step| step.action == loop_notice)
        .unwrap();
    let forwards = steps[loop_start..].iter().filter(
        |step| matches!(&step.action, Action::Send { message, .. } if message == "ForwardInvalid"),
    );
    assert!(forwards.count() >= 2, "the loop sends the forward again");
}

/// A knowledge set is about one remote, so a third one adds none.
#[test]
fn three_remotes_have_the_knowledge_sets_of_two() {
    for name in ["three", "three-no-device"] {
        let protocol = text::parse(&read_file(name)).unwrap();
        let sets = |explored| {
            construct_to(
                &protocol,
                Extent {
                    max_explored_remotes: explored,
                    max_quiescence_remotes: 1,
                },
            )
            .ok()
            .unwrap()
            .knowledge
            .count()
        };
        assert_eq!(sets(2), sets(3));
    }
}

/// Every local operation may lock the line: the construction still finds a home without a fault.
#[test]
fn eci_with_operations_that_always_lock() {
    // As published, both operations lock; the publication gives 79 states, 304 transitions and 25 messages.
    let eci = read_file("../../protocols/eci");
    let locking = eci.replace(" [lock] {", " lock {");
    assert_ne!(eci, locking);
    let results = construction_results(&locking);
    let sizes = ["states", "transitions", "events"].map(|key| results[key].as_str());
    assert_eq!(sizes, ["90", "307", "24"]);
}

/// Each transition of a home occurs in its product with remotes and device, and no state of the product is stuck.
#[test]
fn every_transition_of_the_shipped_homes_is_exercised() {
    for (name, remotes) in [("eci", 2), ("msi-policy", 3), ("back-invalidate", 2)] {
        let path = construction_folder().join(format!("../../protocols/{name}.coh"));
        let text = fs::read_to_string(path).unwrap();
        let protocol = text::parse(&text).unwrap();
        let construction = construct_to(
            &protocol,
            Extent {
                max_explored_remotes: remotes,
                max_quiescence_remotes: remotes,
            },
        );
        let construction = construction.ok().unwrap();
        assert_eq!(construction.quiescence.len(), remotes as usize);
        for report in &construction.quiescence {
            assert!(report.unexercised.is_empty() && report.stuck == 0);
        }
    }
}

/// A refutation shows two runs that the home cannot distinguish; the assertion holds after one of them only.
#[test]
fn answer_assertions_are_proved_or_refuted() {
    let fault_with = |expectation: &str| {
        let line = format!("  {expectation}\n  reach S with");
        let text = read_file("base").replacen("  reach S with", &line, 1);
        let protocol = text::parse(&text).unwrap();
        match construct(&protocol) {
            Err(ConstructionError::Fault(fault)) => Some(*fault),
            Err(ConstructionError::Refused(refusal)) => panic!("{}", refusal.obstacle),
            Ok(_) => None,
        }
    };
    // A dirty copy was given up, so only a new request can follow.
    assert!(fault_with("assert AckDirty implies I").is_none());
    // The answer "no copy" may have been sent while a grant was in flight.
    let fault = fault_with("assert AckNone implies I").unwrap();
    assert_eq!(fault.kind, FaultKind::WrongExpectation);
    let [consistent_run, contradicting_run] = &fault.explanations[..] else {
        panic!("two explanations")
    };
    // The home observes the same in both.
    let home_view = |sequence: &Sequence| {
        let home = |step: &&Step| step.agent == 1;
        let words = |step: &Step| match &step.action {
            Action::Send { message, .. } => format!("send {message}"),
            Action::Receive { message, .. } => format!("take {message}"),
            other => format!("{other:?}"),
        };
        sequence
            .steps
            .iter()
            .filter(home)
            .map(words)
            .collect::<Vec<_>>()
    };
    assert_eq!(home_view(consistent_run), home_view(contradicting_run));
    assert_ne!(consistent_run, contradicting_run);
}

/// A single remote without a device is never sent a forward. The fairness assumption is noted nevertheless.
#[test]
fn fairness_assumption_is_stated_when_needed() {
    for (name, is_assumed) in [
        ("two-no-device", true),
        ("silent-eviction-ordered-down", false),
    ] {
        let text = fs::read_to_string(construction_folder().join(format!("{name}.coh")))
            .expect("file of the variation");
        let protocol = text::parse(&text).expect("file without errors");
        let construction = construct(&protocol).expect("constructed home");
        let is_stated = construction
            .notes()
            .any(|note| note.text.contains("assumes fairness"));
        assert_eq!(is_stated, is_assumed, "{name}");
    }
}

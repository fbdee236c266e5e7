//! Every transition of the generated `eci` home with one change: an action dropped, another message of the same class
//! sent, or another next state. The checker refutes every mutant: merging has left no state and no action without a
//! purpose.

use cohkit_check::system;
use cohkit_engine::report::{check, Outcome};
use cohkit_engine::search::Options;
use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::{Controller, Effect, Statement};
use cohkit_protocol::protocol::{MessageId, Protocol, StateId};
use cohkit_protocol::text;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// A changed controller, and the change.
struct Mutant {
    /// Transition and its change, in words.
    description: String,
    /// Kind of the change.
    kind: &'static str,
    /// Home with the change.
    home: Controller,
}

/// A change of a row: its kind, its description, and the changed body and next state.
struct Change {
    /// Kind of the change.
    kind: &'static str,
    /// Change in words.
    description: String,
    /// Statements of the changed row.
    body: Vec<Statement>,
    /// Next state of the changed row.
    next: Option<StateId>,
}

/// Returns all mutants of a home.
fn mutants(protocol: &Protocol, home: &Controller) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (index, rule) in home.rules.iter().enumerate() {
        let Effect::Take { body, next } = &rule.effect else {
            continue;
        };
        let mut changes = Vec::new();
        for (position, statement) in body.iter().enumerate() {
            changes.push(without_statement(body, *next, position));
            if let Statement::Send { message, .. } = statement {
                changes.extend(with_other_message(
                    protocol, body, *next, position, *message,
                ));
            }
        }
        let target = next.unwrap_or(rule.state);
        changes.push(with_next_state(home, body, target));
        let state = &home.states[rule.state.index()].name;
        mutants.extend(changes.into_iter().map(|change| {
            let Change { body, next, .. } = change;
            let mut home = home.clone();
            home.rules[index].effect = Effect::Take { body, next };
            Mutant {
                description: format!("{state}, {:?}: {}", rule.event, change.description),
                kind: change.kind,
                home,
            }
        }));
    }
    mutants
}

/// Returns the change that drops the statement at a position.
fn without_statement(body: &[Statement], next: Option<StateId>, position: usize) -> Change {
    let mut changed = body.to_vec();
    let statement = changed.remove(position);
    Change {
        kind: "action dropped",
        description: format!("{statement:?} dropped"),
        body: changed,
        next,
    }
}

/// Returns the changes that send, at a position, each other message of the same class in place of `original`.
fn with_other_message(
    protocol: &Protocol,
    body: &[Statement],
    next: Option<StateId>,
    position: usize,
    original: MessageId,
) -> Vec<Change> {
    let class = protocol.class(original);
    let replacements = protocol
        .message_ids()
        .filter(|&other| other != original && protocol.class(other) == class);
    let changes = replacements.map(|replacement| {
        let mut changed = body.to_vec();
        if let Statement::Send { message, .. } = &mut changed[position] {
            *message = replacement;
        }
        let [new, old] = [replacement, original].map(|id| &protocol.message(id).name);
        Change {
            kind: "another message",
            description: format!("{new} instead of {old}"),
            body: changed,
            next,
        }
    });
    changes.collect()
}

/// Returns the change to the state after `target`, in the order of their declaration.
fn with_next_state(home: &Controller, body: &[Statement], target: StateId) -> Change {
    let other_state = StateId((target.0 + 1) % home.states.len() as u16);
    let [new, old] = [other_state, target].map(|state| &home.states[state.index()].name);
    Change {
        kind: "another next state",
        description: format!("to {new} instead of {old}"),
        body: body.to_vec(),
        next: Some(other_state),
    }
}

/// A surviving mutant would be a state or an action without a purpose.
#[test]
fn mutants_of_the_eci_home_are_refuted() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/eci.coh");
    let text = std::fs::read_to_string(file).unwrap();
    let protocol = text::parse(&text).unwrap_or_else(|errors| panic!("{}", errors[0].message));
    let construction = construct(&protocol).ok().unwrap();
    let home = construction.flat(true);
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    let verdict = |home: &Controller| {
        let model = system::model(&protocol, home, 1, 1, &system::Options::default()).unwrap();
        check(&model, &options).unwrap()
    };
    let original = verdict(&home);
    assert!(matches!(original.outcome, Outcome::Verified));

    let mutants = mutants(&protocol, &home);
    assert!(
        mutants.len() > 800,
        "every transition is changed in each way"
    );
    let next = AtomicUsize::new(0);
    let survivors = Mutex::new(BTreeMap::new());
    let refuted = Mutex::new(BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(mutant) = mutants.get(index) else {
                    return;
                };
                if let Outcome::Violated { property, .. } = verdict(&mutant.home).outcome {
                    let refutation = format!("{} refuted by {property}", mutant.kind);
                    *refuted.lock().unwrap().entry(refutation).or_default() += 1;
                } else {
                    survivors.lock().unwrap().insert(index, &mutant.description);
                }
            });
        }
    });
    for (refutation, count) in refuted.into_inner().unwrap() {
        println!("{count:4} {refutation}");
    }
    let survivors = survivors.into_inner().unwrap();
    assert!(survivors.is_empty(), "{survivors:#?}");
}

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

/// Returns all mutants of a home.
fn mutants(protocol: &Protocol, home: &Controller) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (index, rule) in home.rules.iter().enumerate() {
        let Effect::Take { body, next } = &rule.effect else {
            continue;
        };
        let state = &home.states[rule.state.index()].name;
        let mut change =
            |kind, description: String, body: Vec<Statement>, next: Option<StateId>| {
                let mut home = home.clone();
                home.rules[index].effect = Effect::Take { body, next };
                mutants.push(Mutant {
                    description: format!("{state}, {:?}: {description}", rule.event),
                    kind,
                    home,
                });
            };
        for (position, statement) in body.iter().enumerate() {
            let mut without_statement = body.clone();
            without_statement.remove(position);
            change(
                "action dropped",
                format!("{statement:?} dropped"),
                without_statement,
                *next,
            );
            let Statement::Send {
                message,
                to,
                fields,
            } = statement
            else {
                continue;
            };
            let same_class = |candidate: &MessageId| {
                candidate != message && protocol.class(*candidate) == protocol.class(*message)
            };
            for replacement in protocol.message_ids().filter(same_class) {
                let mut changed = body.clone();
                changed[position] = Statement::Send {
                    message: replacement,
                    to: to.clone(),
                    fields: fields.clone(),
                };
                let description = format!(
                    "{} instead of {}",
                    protocol.message(replacement).name,
                    protocol.message(*message).name
                );
                change("another message", description, changed, *next);
            }
        }
        let target = next.unwrap_or(rule.state);
        let other_state = StateId((target.0 + 1) % home.states.len() as u16);
        let description = format!(
            "to {} instead of {}",
            home.states[other_state.index()].name,
            home.states[target.index()].name
        );
        change(
            "another next state",
            description,
            body.clone(),
            Some(other_state),
        );
    }
    mutants
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

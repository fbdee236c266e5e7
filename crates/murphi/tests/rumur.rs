//! Rumur, an independent checker, agrees on models exported as Murphi text.

#[path = "../../engine/tests/models/mod.rs"]
mod models;
mod tools;

use cohkit_engine::model::*;
use cohkit_engine::report::{Outcome, Property};
use cohkit_engine::{check, Options};
use cohkit_murphi::Style;
use models::Ending;
use tools::{require, rumur, Compiled};

fn all() -> Vec<Model> {
    let mut broken = models::peterson(3);
    broken.rules[2].guard = Expr::Bool(true);
    vec![
        models::peterson(2),
        models::peterson(4),
        broken,
        models::dining(4),
        models::overflow(),
        models::drain(Ending::Answered),
        models::drain(Ending::Stuck),
        models::drain(Ending::Retried),
        models::copies(2, false),
        models::copies(2, true),
        models::every_construct(),
    ]
}

#[test]
fn rumur_agrees_in_verdict_and_count() {
    if !require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for model in all() {
        let ours = check(&model, &Options::default()).unwrap();
        let (fine, states, said) = rumur(&model, Style::Plain, Compiled::Well, folder.path());
        // Rumur's liveness may use spontaneous rules, so it may only miss violations that drain finds.
        let missed = matches!(
            ours.outcome,
            Outcome::Violated {
                property: Property::Drain,
                ..
            }
        );
        assert!(
            ours.outcome != Outcome::Verified || fine,
            "{}: {said}",
            model.name
        );
        assert!(
            ours.outcome == Outcome::Verified || !fine || missed,
            "{}: {said}",
            model.name
        );
        if fine {
            assert_eq!(ours.states, states as u128, "{}", model.name);
        }
    }
}

#[test]
fn rumur_agrees_on_drain() {
    if !require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for model in all().into_iter().filter(|m| m.quiescent.is_some()) {
        let ours = check(&model, &Options::default()).unwrap();
        let (fine, _, said) = rumur(&model, Style::Drain, Compiled::Well, folder.path());
        assert_eq!(
            ours.outcome == Outcome::Verified,
            fine,
            "{}: {said}",
            model.name
        );
    }
}

//! Rumur, an independent checker, agrees on models exported as Murphi text.

use cohkit_testing::{models, rumur};

use cohkit_engine::model::{Expr, Model};
use cohkit_engine::report::{Outcome, Property};
use cohkit_engine::{check, Options};
use cohkit_murphi::Style;
use models::Ending;
use rumur::{require, rumur, Compiled};

/// Returns models that are built without a text, some of them with violations.
fn models_to_compare() -> Vec<Model> {
    let mut unsafe_model = models::peterson(3);
    unsafe_model.rules[2].guard = Expr::Bool(true);
    vec![
        models::peterson(2),
        models::peterson(4),
        unsafe_model,
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

/// Exports each model as it is.
#[test]
fn rumur_agrees_in_verdict_and_count() {
    if !require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for model in models_to_compare() {
        let report = check(&model, &Options::default()).unwrap();
        let (no_violation, states, output) =
            rumur(&model, Style::Plain, Compiled::Optimised, folder.path());
        // Rumur's liveness may use spontaneous rules, so it may only miss violations that drain finds.
        let may_miss_violation = matches!(
            report.outcome,
            Outcome::Violated {
                property: Property::Drain,
                ..
            }
        );
        assert!(
            report.outcome != Outcome::Verified || no_violation,
            "{}: {output}",
            model.name
        );
        assert!(
            report.outcome == Outcome::Verified || !no_violation || may_miss_violation,
            "{}: {output}",
            model.name
        );
        if no_violation {
            assert_eq!(report.states, states as u128, "{}", model.name);
        }
    }
}

/// Exports the models with quiescent states in the form in which Rumur's liveness is equivalent to
/// drain.
#[test]
fn rumur_agrees_on_drain() {
    if !require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for model in models_to_compare()
        .into_iter()
        .filter(|m| m.quiescent.is_some())
    {
        let report = check(&model, &Options::default()).unwrap();
        let (no_violation, _, output) =
            rumur(&model, Style::Drain, Compiled::Optimised, folder.path());
        assert_eq!(
            report.outcome == Outcome::Verified,
            no_violation,
            "{}: {output}",
            model.name
        );
    }
}

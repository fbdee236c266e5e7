//! Does an independent checker agree? Exports models as Murphi text and runs Rumur on them.
//!
//! Where Rumur or a C compiler is missing the tests say so and pass, except in continuous
//! integration (`CI=true`) or with `COHKIT_REQUIRE_RUMUR=1`.

mod models;

use cohkit_check::model::*;
use cohkit_check::murphi::{print, rumur_options, Style};
use cohkit_check::report::{Outcome, Property};
use cohkit_check::{check, Options};
use models::Ending;
use std::path::Path;
use std::process::Command;

/// Whether Rumur is there; fails the test if it should be.
fn rumur_is_there() -> bool {
    let there = |tool: &str| {
        Command::new(tool)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
    };
    if there("rumur") && there("cc") {
        return true;
    }
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    assert!(
        !is("CI", "true") && !is("COHKIT_REQUIRE_RUMUR", "1"),
        "rumur and cc are needed here"
    );
    eprintln!("SKIPPED: rumur or cc is not installed, so nothing was compared (apt-get install rumur gcc)");
    false
}

/// What Rumur finds: whether all is well, its states, and what it printed.
fn rumur(model: &Model, style: Style, folder: &Path) -> (bool, u64, String) {
    let (text, c, checker) = (folder.join("m.m"), folder.join("m.c"), folder.join("m"));
    std::fs::write(&text, print(model, style)).unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let options = rumur_options(model, style);
    let (fine, said) = run(Command::new("rumur")
        .args(options)
        .args(["--threads", "1", "--output"])
        .arg(&c)
        .arg(&text));
    assert!(fine, "{said}\n{}", print(model, style));
    let (fine, said) = run(Command::new("cc")
        .args(["-O1", "-w", "-o"])
        .arg(&checker)
        .arg(&c)
        .arg("-lpthread"));
    assert!(fine, "{said}");
    let (fine, said) = run(&mut Command::new(&checker));
    // "State Space Explored:\n\n\t20 states, 34 rules fired in 0s."
    let words: Vec<&str> = said.split_whitespace().collect();
    let states = words
        .windows(2)
        .filter(|w| w[1] == "states,")
        .find_map(|w| w[0].parse().ok());
    (fine, states.unwrap_or_else(|| panic!("{said}")), said)
}

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
    if !rumur_is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for model in all() {
        let ours = check(&model, &Options::default()).unwrap();
        let (fine, states, said) = rumur(&model, Style::Plain, folder.path());
        // Rumur's liveness may use spontaneous rules, so it can miss what drain finds, but nothing else.
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
    if !rumur_is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for model in all().into_iter().filter(|m| m.quiescent.is_some()) {
        let ours = check(&model, &Options::default()).unwrap();
        let (fine, _, said) = rumur(&model, Style::Drain, folder.path());
        assert_eq!(
            ours.outcome == Outcome::Verified,
            fine,
            "{}: {said}",
            model.name
        );
    }
}

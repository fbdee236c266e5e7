//! Do all ways to check a model agree on small random models? See `examples/fuzz_models` for the long runs.

#[path = "../examples/fuzz_models/generate.rs"]
mod generate;
#[path = "../examples/fuzz_models/judge.rs"]
mod judge;
mod tools;

use judge::{Agreed, Trouble};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Verified, violated and refused models, and what failed, as texts with the command that shows it again.
#[derive(Default)]
struct Found {
    verified: usize,
    violated: usize,
    refused: usize,
    reduced: usize,
    failures: Vec<String>,
}

fn judge_all(count: usize, against: &str) -> Found {
    let next = AtomicUsize::new(0);
    let work = || {
        let folder = tempfile::tempdir().unwrap();
        let mut found = Found::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return found;
            }
            let text = generate::model(seed as u64, against == "rumur" || seed.is_multiple_of(2));
            let judged = match against {
                "rumur" => judge::rumur(&text, folder.path()),
                _ => judge::ours(&text),
            };
            match judged {
                Ok(Agreed::Verified { states, orbits }) => {
                    found.verified += 1;
                    found.reduced += usize::from(orbits < states);
                }
                Ok(Agreed::Violated) => found.violated += 1,
                Err(Trouble::Refused(why)) => {
                    eprintln!("model {seed}: {why}");
                    found.refused += 1;
                }
                Err(Trouble::Differ(what, why)) => {
                    let command = format!("cargo run -p cohkit-murphi --example fuzz_models -- --seed {seed} --count 1 --against {against}");
                    found.failures.push(format!("{what}\n{why}\n{command}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let mut all = Found::default();
        for thread in threads {
            let found = thread.join().unwrap();
            all.verified += found.verified;
            all.violated += found.violated;
            all.refused += found.refused;
            all.reduced += found.reduced;
            all.failures.extend(found.failures);
        }
        all
    })
}

/// None fails, few are refused, and enough of both verdicts are met for the comparison to mean something.
fn expect_agreement(found: &Found, count: usize) {
    assert!(found.failures.is_empty(), "{}", found.failures.join("\n\n"));
    assert!(found.refused * 100 <= count, "{} refused", found.refused);
    assert!(found.verified * 4 >= count, "{} verified", found.verified);
    assert!(found.violated * 10 >= count, "{} violated", found.violated);
}

#[test]
fn our_ways_agree() {
    const COUNT: usize = 20_000;
    let found = judge_all(COUNT, "ours");
    expect_agreement(&found, COUNT);
    assert!(
        found.reduced * 50 >= COUNT,
        "{} have symmetry",
        found.reduced
    );
}

#[test]
fn rumur_agrees() {
    const COUNT: usize = 300;
    if tools::require("rumur") {
        expect_agreement(&judge_all(COUNT, "rumur"), COUNT);
    }
}

/// A construct that is never made is never compared.
#[test]
fn every_construct_is_made() {
    let all: String = (0..1000).map(|seed| generate::model(seed, false)).collect();
    for word in [
        "scalarset(",
        "union {",
        "record ",
        "multiset [",
        "multisetadd(",
        "multisetremove(",
        "multisetremovepred(",
        "multisetcount(",
        "choose ",
        "alias ",
        "ruleset ",
        "forall ",
        "exists ",
        "switch ",
        "while ",
        "clear ",
        "undefine ",
        "isundefined(",
        "function ",
        "procedure ",
        "assume ",
        "cover ",
        "liveness ",
        "invariant ",
        "error ",
        "by -1 do",
    ] {
        assert!(all.contains(word), "`{word}` is never made");
    }
    // A function calls itself with a smaller number.
    assert!(all.contains("_0 - 1"), "no recursion is made");
}

/// What was found once, in every way there is.
#[test]
fn found_models_are_agreed_on() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/murphi/found");
    let mut models = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|e| e == "m") {
            let text = std::fs::read_to_string(&path).unwrap();
            let judged = judge::ours(&text);
            assert!(judged.is_ok(), "{}: {judged:?}", path.display());
            models += 1;
        }
    }
    assert!(models > 1);
}

/// A shrunk text keeps what makes it fail, and little else.
#[test]
fn shrinking_keeps_what_fails() {
    let text = generate::model(3, true) + "rule \"kept\" (1 < (2 + 3)) ==>\nbegin\nend;\n";
    let small = judge::shrink(&text, |t| t.contains("kept") && t.contains("<"));
    assert_eq!(small, "rule \"kept\" (1 < 0) ==>\n");
}

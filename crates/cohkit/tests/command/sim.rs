//! Tests of `cohkit sim`: the same seed gives the same bytes, and each invalid input gives one clear message.

mod failures;
mod invocation;
mod machines;
mod platforms;
mod reports;

use crate::{cohkit, text, without_run};

/// Exit code and both outputs of `cohkit sim`.
fn sim(arguments: &[&str]) -> (i32, String, String) {
    let output = cohkit([&["sim"], arguments].concat())
        .output()
        .expect("the command starts");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Arguments of a short run.
const SHORT_RUN: [&str; 6] = [
    "enzian-dc-ddr",
    "random-write",
    "--accesses",
    "30000",
    "--cores",
    "7",
];

#[test]
fn equal_seeds_give_equal_output() {
    let json = |seed: &str| {
        let arguments = [&["sim"], &SHORT_RUN[..], &["--seed", seed, "--json"]].concat();
        without_run(&cohkit(arguments).output().expect("the command starts"))
    };
    let first_result = json("1");
    assert_eq!(first_result.to_string(), json("1").to_string());
    assert_ne!(first_result["statistics"], json("2")["statistics"]);
    assert_eq!(first_result["statistics"]["accesses"], 30000.0);
    assert_eq!(sim(&SHORT_RUN), sim(&SHORT_RUN));
}

/// A composition of two levels of caches.
const TWO_LEVEL_FILE: &str = "../../protocols/two-level.coh";

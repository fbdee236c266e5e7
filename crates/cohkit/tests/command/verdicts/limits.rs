//! Limits of a search: capacity, threads, hash compaction and states.

use super::shipped_protocol;
use crate::{check, cohkit, text, transcript, without_run};
use expect_test::expect;
use std::path::Path;

#[test]
fn exceeded_capacity_is_undecided_with_a_chart() {
    let msi = shipped_protocol("msi.coh");
    let run = |options: &[&str]| {
        cohkit(["check", "--remotes", "2", "--capacity", "1"])
            .args(options)
            .arg(&msi)
            .output()
            .expect("the command starts")
    };
    expect![[r#"
        exit code 3
        msi remotes_2_lines_1: undecided: more than 1 message in flight on forward after 74 states up to symmetry, 128 transitions, depth 7
          a limit of this check, not of the protocol; `--capacity N` raises it

        cache 0               cache 1                       directory          memory
           |                     |                              |                |
           * load                |                              |                |
           *------- GetS --------+--------------------.         |                |
         [IS_D]*                 |                    :         |                |
           |                     * store              :         |                |
           |                     *------ GetM ------. :         |                |
           |                  [IM_AD]*              : :         |                |
           |                     |                  : '-------->| GetS           |
           |    .----------------+-------- Data(acks=0) --------+                |
           |    :                |                  : [S sharers={cache 0}]      |
           |    :                |                  '---------->| GetM           |
           |    :                |  .------ Data(acks=1) -------+                |
           |    : .--------------+--+ Inv(requestor=cache 1) ---+                |
           |    : :              |  :                   [M owner=cache 1]        |
           *<---' : Data(acks=0) |  :                           |                |
          [S]*    :              |  :                           |                |
           *      : evict        |  :                           |                |
           *------+ PutS --------+--+-------------------------->|                |
         [SI_A]*  :              |  :                           |                |
           |    .-+--------------+--+-------- PutAck -----------+                |
           |    : :              |  :                           |                |

        still in flight: Data(acks=1) from directory to cache 1, Inv(requestor=cache 1) from directory to cache 0, PutAck from directory to cache 0

    "#]].assert_eq(&transcript(&run(&["--ascii"])));
    let verdicts = without_run(&run(&["--json"]));
    assert_eq!(verdicts[0]["outcome"], "undecided");
    assert_eq!(verdicts[0]["reason"], "capacity");
    let counterexample = &verdicts[0]["counterexample"];
    assert_eq!(counterexample["kind"], "capacity");
    assert_eq!(
        counterexample["name"],
        "more than 1 message in flight on forward"
    );
    let steps = counterexample["sequences"][0]["steps"].as_array();
    assert!(!steps.expect("a JSON list").is_empty());
    let output = cohkit(["check", "--remotes", "2", "--capacity", "255"])
        .arg(&msi)
        .output()
        .expect("the command starts");
    let verdict = text(&output.stdout);
    assert!(
        verdict.starts_with("msi remotes_2_lines_1: verified"),
        "{verdict}"
    );
}

#[test]
fn threads_are_limited_to_processors() {
    let output = cohkit([
        "check",
        "tests/command/tiny.coh",
        "--threads",
        "1024",
        "--json",
    ])
    .output()
    .expect("the command starts");
    let verdicts: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let processors =
        std::thread::available_parallelism().expect("the number of processors is known");
    assert_eq!(verdicts[0]["run"]["threads"], processors.get().min(1024));
}

#[test]
fn hash_compaction_reports_its_omission_probability() {
    check(
        &["check", "../../models/german.m", "--hash-compaction"],
        expect![[r#"
            exit code 0
            german: verified with omission probability at most 3.0e-12: 10470 states up to symmetry, 42578 transitions, depth 26
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--hash-compaction"],
        expect![[r#"
            exit code 3
            tiny alone: undecided with omission probability at most 6.4e-17: every state was visited, but hash compaction cannot check all properties after 48 states, 108 transitions, depth 12
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
    );
    let output = cohkit([
        "check",
        "../../models/german.m",
        "--hash-compaction",
        "--json",
    ]);
    let output = { output }.output().expect("the command starts");
    let verdict: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the command prints JSON");
    assert_eq!(verdict[0]["outcome"], "verified");
    let probability = verdict[0]["omission_probability"].as_f64();
    assert!(probability.is_some_and(|p| p > 0.0 && p < 1e-11));
}

#[test]
fn hash_compaction_rejects_options_that_need_all_states() {
    for option in [
        &["--checkpoint", "nowhere"][..],
        &["--resume", "nowhere"],
        &["--coverage"],
    ] {
        let output = cohkit(["check", "tests/command/tiny.coh", "--hash-compaction"])
            .args(option)
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).expect("the output is UTF-8");
        let reason = format!("`{}` needs the expanded states", option[0]);
        assert!(stderr.contains(&reason), "{stderr}");
    }
}

/// The limit that ended a search is reported with this search's states, not with those of the previous one.
#[test]
fn progress_limit_is_reported_with_its_own_state_count() {
    let so_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ordering/so-strict.coh");
    let output = cohkit(["check", "--max-states", "1000"])
        .arg(so_file)
        .output()
        .expect("the command starts");
    let printed = text(&output.stdout);
    let expected =
        "so_strict two: undecided: progress of store: the limit on states was reached after 1000 states; \
                everything else holds in 348 states";
    assert!(printed.contains(expected), "{printed}");
}

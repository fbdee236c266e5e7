//! Tests of `cohkit check`: verdicts, their exit codes, and their reports.

use crate::{check, cohkit, interrupt, text, tiny, transcript, without_run};
use expect_test::expect;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Path of a shipped protocol file.
fn shipped_protocol(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../protocols")
        .join(name)
}

/// Copies a protocol file into a folder, with one change.
fn mutated_copy(folder: &Path, source: &Path, original: &str, mutated: &str) -> PathBuf {
    let valid = fs::read_to_string(source).expect("the file can be read");
    assert_eq!(valid.matches(original).count(), 1, "{original}");
    let file = folder.join("changed.coh");
    fs::write(&file, valid.replace(original, mutated)).expect("the file can be written");
    file
}

/// MSI whose caches keep a line on an invalidation.
fn forgetful_msi(folder: &Path) -> PathBuf {
    mutated_copy(
        folder,
        &shipped_protocol("msi.coh"),
        "  S              | Inv                     | send InvAck to requestor                       | I\n",
        "  S              | Inv                     | send InvAck to requestor                       | S\n",
    )
}

#[test]
fn correct_protocol_is_verified() {
    check(
        &["check", "tests/command/tiny.coh"],
        expect![[r#"
            exit code 0
            tiny alone: verified: 48 states, 108 transitions, depth 12
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--remotes", "2"],
        expect![[r#"
            exit code 0
            tiny remotes_2_lines_1: verified: 356 states up to symmetry, 1351 transitions, depth 21
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
}

#[test]
fn violation_is_drawn_as_a_chart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = forgetful_msi(folder.path());
    let output = cohkit(["check", "--remotes", "2", "--ascii"])
        .arg(&file)
        .output()
        .expect("the command starts");
    expect![[r#"
        exit code 1
        msi remotes_2_lines_1: violated: single writer: another agent still has read or write permission
          after 110 states up to symmetry, 177 transitions, depth 8

        cache 0                        cache 1                       directory          memory
           |                              |                              |                |
           * load                         |                              |                |
           *------------ GetS ------------+--------------------.         |                |
         [IS_D]*                          |                    :         |                |
           |                              * store              :         |                |
           |                              *------ GetM ------. :         |                |
           |                           [IM_AD]*              : :         |                |
           |                              |                  : '-------->| GetS           |
           |   .--------------------------+-------- Data(acks=0) --------+                |
           |   :                          |                  : [S sharers={cache 0}]      |
           |   :                          |                  '---------->| GetM           |
           |   :                          |  .------ Data(acks=1) -------+                |
           |   : .------------------------+--+ Inv(requestor=cache 1) ---+                |
           |   : :                        |  :                   [M owner=cache 1]        |
           |   : :                        *<-' Data(acks=1)              |                |
           |   : :                  [IM_A owed=1]*                       |                |
           *<--' : Data(acks=0)           |                              |                |
          [S]*   :                        |                              |                |
           *<----' Inv(requestor=cache 1) |                              |                |
           *----------- InvAck ---------->*                              |                |
           |                             [M]*                            |                |
           |                              |                              |                |

    "#]]
    .assert_eq(&transcript(&output));
}

#[test]
fn construction_fault_is_a_violation() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = mutated_copy(folder.path(), &tiny(), "send Gone | I", "send Gone | S");
    let output = cohkit(["check"])
        .arg(&file)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("tiny alone: violated: livelock: "), "{out}");
    assert!(err.contains("changed.coh:37:1"), "{err}");
    assert!(err.contains("Drop"), "{err}");
    let output = cohkit(["check", "--json"])
        .arg(&file)
        .output()
        .expect("the command starts");
    let verdicts = without_run(&output);
    assert_eq!(verdicts[0]["outcome"], "violated");
    assert_eq!(verdicts[0]["counterexample"]["kind"], "construction");
    assert_eq!(verdicts[0]["counterexample"]["name"], "livelock");
    assert!(verdicts[0]["states"].is_null());
}

#[test]
fn state_limit_gives_an_undecided_verdict() {
    check(
        &["check", "tests/command/tiny.coh", "--max-states", "10"],
        expect![[r#"
            exit code 3
            tiny alone: undecided: the limit on states was reached after 10 states, 16 transitions, depth 4
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--max-depth", "3"],
        expect![[r#"
            exit code 3
            tiny alone: undecided: the limit on depth was reached after 7 states, 10 transitions, depth 3
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
    );
    let msi = shipped_protocol("msi.coh");
    let output = cohkit([
        "check",
        "--max-memory",
        "1MiB",
        "--system",
        "two_lines",
        "--json",
    ])
    .arg(msi)
    .output()
    .expect("the command starts");
    assert_eq!(output.status.code(), Some(3));
    let verdicts = without_run(&output);
    assert_eq!(verdicts[0]["outcome"], "undecided");
    assert_eq!(verdicts[0]["reason"], "max_memory");
    let undecided = verdicts[0]["properties"].as_array().expect("a JSON list");
    assert!(undecided
        .iter()
        .all(|property| property["status"] == "undecided"));
}

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
fn independent_lines_are_noted_in_the_verdict() {
    check(
        &["check", "tests/command/tiny.coh", "--lines", "2"],
        expect![[r#"
            exit code 0
            tiny remotes_1_lines_2: verified: 2304 states (48 x 48, lines independent), 10368 transitions, depth 24
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    let output = cohkit(["check", "tests/command/tiny.coh", "--lines", "2", "--json"])
        .output()
        .expect("the command starts");
    let verdicts = without_run(&output);
    assert_eq!(verdicts[0]["components"], serde_json::json!([48, 48]));
}

#[test]
fn counts_of_one_use_the_singular() {
    check(
        &["check", "tests/command/tiny.coh", "--max-states", "1"],
        expect![[r#"
            exit code 3
            tiny alone: undecided: the limit on states was reached after 1 state, 2 transitions, depth 0
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
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
fn incomplete_requests_are_described() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The directory does not acknowledge an eviction while another cache shares the line.
    let file = mutated_copy(
        folder.path(),
        &shipped_protocol("msi.coh"),
        "  S S_D   | PutS PutM ",
        "  S | PutS | sharers := sharers - { sender } | stay\n  \
           S | PutM | send PutAck, sharers := sharers - { sender } | stay\n  \
           S_D | PutS PutM ",
    );
    let output = cohkit(["check", "--remotes", "2"])
        .arg(&file)
        .output()
        .expect("the command starts");
    let verdict = text(&output.stdout);
    assert!(
        verdict.contains("violated: every request can still complete: "),
        "{verdict}"
    );
    let output = cohkit(["check", "--remotes", "2", "--json"])
        .arg(&file)
        .output()
        .expect("the command starts");
    assert_eq!(
        without_run(&output)[0]["counterexample"]["kind"],
        "quiescence"
    );
}

#[test]
fn uncheckable_systems_are_bad_input() {
    check(
        &["check", "tests/command/tiny.coh", "--system", "together"],
        expect![[r#"
            exit code 2
            --- stderr
            error: tests/command/tiny.coh: no system is named `together`
              help: the only system is `alone`
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--remotes", "9"],
        expect![[r#"
            exit code 2
            --- stderr
            error: invalid value '9' for '--remotes <N>': it must be 1 to 8

            For more information, try '--help'.
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--max-memory", "much"],
        expect![[r#"
            exit code 2
            --- stderr
            error: invalid value 'much' for '--max-memory <SIZE>': an amount of memory is a number with a unit: KiB, MiB, GiB, TiB, kB, MB, GB or TB

            For more information, try '--help'.
        "#]],
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = mutated_copy(
        folder.path(),
        &tiny(),
        "system alone { remotes 1; lines 1 }\n",
        "",
    );
    let output = cohkit(["check"])
        .arg(file)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no system to check"));
}

#[test]
fn worst_outcome_of_a_batch_wins_and_all_files_are_checked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let violated = forgetful_msi(folder.path());
    let check_files = |files: &[&Path]| {
        let mut command = cohkit(["check", "--max-states", "300"]);
        let output = command.args(files).output().expect("the command starts");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), out, err)
    };
    let (missing, tiny) = (
        Path::new("missing.coh"),
        Path::new("tests/command/tiny.coh"),
    );
    let (code, out, err) = check_files(&[missing, tiny, &violated]);
    assert!(err.contains("missing.coh: no such file"), "{err}");
    assert!(out.contains("tiny alone: verified"), "{out}");
    assert!(out.contains("msi two_lines: undecided"), "{out}");
    assert_eq!(code, Some(2));
    // The undecided system comes after the violated one, or before it.
    assert_eq!(check_files(&[tiny, &violated]).0, Some(1));
    let undecided = shipped_protocol("msi.coh");
    assert_eq!(check_files(&[&undecided, tiny]).0, Some(3));
    assert_eq!(check_files(&[&undecided, &violated]).0, Some(1));
    assert_eq!(check_files(&[&violated, &undecided]).0, Some(1));
}

/// A violation found by programs wins over a system that exceeds the capacity of a channel. A placement of threads that
/// violates a property wins over one without a row for an access.
#[test]
fn violation_outranks_an_undecided_verdict() {
    let run_on = |arguments: &[&str], file: &str| {
        let mut command = cohkit(arguments);
        let output = command
            .arg(verdict_folder().join(file))
            .output()
            .expect("the command starts");
        (output.status.code(), text(&output.stdout))
    };
    let (code, out) = run_on(&["check"], "update_not_acknowledged.coh");
    assert!(out.contains("two: undecided"), "{out}");
    assert!(out.contains("programs: violated"), "{out}");
    assert_eq!(code, Some(1));
    let file = "device_not_invalidated.coh";
    let (code, out) = run_on(&["litmus", "SB", "--protocol"], file);
    assert!(
        out.contains("(cpu, cpu), cores in order: violated"),
        "{out}"
    );
    assert!(out.contains("undecided"), "{out}");
    assert_eq!(code, Some(1));
}

#[test]
fn json_results_are_independent_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = forgetful_msi(folder.path());
    let verdicts = |threads: &str| {
        let output = cohkit([
            "check",
            "tests/command/tiny.coh",
            "--json",
            "--threads",
            threads,
        ])
        .arg(&file)
        .output()
        .expect("the command starts");
        without_run(&output)
    };
    let single_threaded = verdicts("1");
    assert_eq!(single_threaded.to_string(), verdicts("2").to_string());
    assert_eq!(single_threaded.to_string(), verdicts("5").to_string());
    let summary: Vec<_> = single_threaded
        .as_array()
        .expect("a JSON list")
        .iter()
        .map(|verdict| {
            format!(
                "{} {} {}",
                verdict["system"], verdict["outcome"], verdict["states"]
            )
        })
        .collect();
    expect![[r#"
        "alone" "verified" 48
        "three_caches" "violated" 287
        "two_lines" "violated" 2421"#]]
    .assert_eq(&summary.join("\n"));
    let counterexample = &single_threaded[1]["counterexample"];
    assert_eq!(counterexample["name"], "single writer");
    let steps = &counterexample["sequences"][0]["steps"];
    assert!(!steps.as_array().expect("a JSON list").is_empty());
    assert_eq!(
        counterexample["trace"]["steps"].as_array().map(Vec::len),
        single_threaded[1]["depth"]
            .as_u64()
            .map(|depth| depth as usize)
    );
}

#[test]
fn charts_and_models_are_written_into_folders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = forgetful_msi(folder.path());
    let (charts, models) = (folder.path().join("a/charts"), folder.path().join("models"));
    let output = cohkit(["check", "--system", "three_caches", "--chart-svg"])
        .args([&charts, Path::new("--export-murphi"), &models, &file])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let svg = fs::read_to_string(charts.join("msi-three_caches.svg")).expect("a chart");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    let murphi = fs::read_to_string(models.join("msi-three_caches.m")).expect("a model");
    assert!(murphi.contains("startstate") && murphi.contains("invariant"));
    // The exported model covers fewer properties, and states so.
    let header: Vec<&str> = murphi.lines().take_while(|l| l.starts_with("--")).collect();
    let header = header.join("\n");
    assert!(header.contains("Not in this model: progress"), "{header}");
    assert!(header.contains("without the spontaneous ones"), "{header}");
    // A file is in the place of a folder.
    let output = cohkit(["check", "--chart-svg"])
        .args([&file, &file])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("a file exists where a folder is needed"));
}

#[test]
fn unwritable_output_is_reported_before_the_search() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = folder.path().join("missing/result.json");
    let models = folder.path().join("models");
    // A search of this system would take hours.
    let output = cohkit(["check", "--remotes", "4", "--lines", "4", "--export-murphi"])
        .args([
            &models,
            Path::new("--out"),
            &missing,
            &shipped_protocol("moesi.coh"),
        ])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
    let message = text(&output.stderr);
    assert!(message.contains("make the folder first"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn texts_of_one_name_are_not_exported_over_each_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let second = folder.path().join("second.coh");
    fs::copy(tiny(), &second).expect("the file can be copied");
    let models = folder.path().join("models");
    let output = cohkit(["check", "tests/command/tiny.coh", "--export-murphi"])
        .args([&models, &second])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(output.stdout.is_empty() && !models.exists());
    let message = text(&output.stderr);
    let second_name = second.display().to_string();
    for expected in ["tests/command/tiny.coh", &second_name, "`tiny`"] {
        assert!(message.contains(expected), "{message}");
    }
    // Without files to write, names may be equal.
    let output = cohkit(["check", "tests/command/tiny.coh"])
        .arg(&second)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn control_c_stops_soon_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let result = folder.path().join("result.json");
    // A search of this system would take hours.
    let mut child = cohkit(["check", "--remotes", "4", "--lines", "2", "--json", "--out"])
        .args([&result, &shipped_protocol("moesi.coh")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    interrupt(&mut child);
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(130), "{}", transcript(&output));
    assert_eq!(text(&output.stderr), "interrupted\n");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn random_walks_print_their_reproduce_command() {
    let walks = |steps: &str, options: &[&str]| {
        let arguments = ["check", "tests/command/tiny.coh", "--random-walks", steps];
        let output = cohkit([&arguments, options].concat()).output();
        transcript(&output.expect("the command starts"))
    };
    let first_output = walks("500", &["--remotes", "2", "--threads", "1"]);
    expect![[r#"
        exit code 3
        tiny remotes_2_lines_1: undecided: random walks found no violation after 147 states, 500 steps on 1 walk of at most 500, 20 of 26 rules fired
          never fired: memory is written, memory takes the store, memory takes the partial store, home hears that memory is done
          note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
          again: cohkit check tests/command/tiny.coh --random-walks 500 --remotes 2 --threads 1 --seed 0
    "#]].assert_eq(&first_output);
    let reproduce_arguments = first_output
        .lines()
        .find_map(|line| line.trim().strip_prefix("again: cohkit "))
        .expect("a reproduction command");
    let output = cohkit(reproduce_arguments.split(' '))
        .output()
        .expect("the command starts");
    let reproduced_output = transcript(&output);
    assert_eq!(
        reproduced_output,
        first_output.replace("--threads 1\n", "--threads 1 --seed 0\n")
    );
    // Other thread numbers give the same walks, another seed gives others.
    let counts = |transcript: &str| transcript.lines().nth(1).map(str::to_string);
    assert_eq!(
        counts(&walks("500", &["--remotes", "2", "--threads", "2"])),
        counts(&first_output)
    );
    assert_ne!(
        counts(&walks("500", &["--remotes", "2", "--seed", "1"])),
        counts(&first_output)
    );
    // Random walks find a violation.
    check(
        &[
            "check",
            "../../models/philosophers_deadlock.m",
            "--random-walks",
            "5000",
            "--seed",
            "3",
        ],
        expect![[r#"
            exit code 1
            philosophers_deadlock: violated: no deadlock: no rule leads to a different state
              after 28 states, 38 steps on 1 walk of at most 38, 15 of 15 rules fired

            start: Startstate 1
                 at[0] = thinking
                 at[1] = thinking
                 at[2] = thinking
                 at[3] = thinking
                 at[4] = thinking
                 taken[0] = false
                 taken[1] = false
                 taken[2] = false
                 taken[3] = false
                 taken[4] = false
              1. take the left fork (p=0)
                 at[0]: thinking -> has_left
                 taken[0]: false -> true
              2. take the left fork (p=1)
                 at[1]: thinking -> has_left
                 taken[1]: false -> true
              3. take the left fork (p=2)
                 at[2]: thinking -> has_left
                 taken[2]: false -> true
              4. take the left fork (p=4)
                 at[4]: thinking -> has_left
                 taken[4]: false -> true
              5. take the left fork (p=3)
                 at[3]: thinking -> has_left
                 taken[3]: false -> true

              failed guard conditions, by rule:
                take the left fork (p=0): at[p] = thinking; !taken[p]
                take the left fork (p=1): at[p] = thinking; !taken[p]
                take the left fork (p=2): at[p] = thinking; !taken[p]
                take the left fork (p=3): at[p] = thinking; !taken[p]
                take the left fork (p=4): at[p] = thinking; !taken[p]
                take the right fork (p=0): !taken[((p + 1) % 5)]
                take the right fork (p=1): !taken[((p + 1) % 5)]
                take the right fork (p=2): !taken[((p + 1) % 5)]
                take the right fork (p=3): !taken[((p + 1) % 5)]
                take the right fork (p=4): !taken[((p + 1) % 5)]
                stop eating (p=0): at[p] = eating
                stop eating (p=1): at[p] = eating
                stop eating (p=2): at[p] = eating
                stop eating (p=3): at[p] = eating
                stop eating (p=4): at[p] = eating
              again: cohkit check ../../models/philosophers_deadlock.m --random-walks 5000 --seed 3
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--seed", "3"],
        expect![[r#"
            exit code 2
            --- stderr
            error: the following required arguments were not provided:
              --random-walks <STEPS>

            Usage: cohkit check --random-walks <STEPS> --seed <N> <FILE>...

            For more information, try '--help'.
        "#]],
    );
    check(
        &[
            "check",
            "tests/command/tiny.coh",
            "--random-walks",
            "3",
            "--coverage",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the argument '--random-walks <STEPS>' cannot be used with '--coverage'

            Usage: cohkit check --random-walks <STEPS> <FILE>...

            For more information, try '--help'.
        "#]],
    );
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

#[test]
fn guarantees_are_judged_by_litmus_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        fs::read_to_string(shipped_protocol("write-through.coh")).expect("the file can be read");
    let check_with = |addition: &str, options: &[&str]| {
        let file = folder.path().join("guarantee.coh");
        fs::write(&file, format!("{text}{addition}\n")).expect("the file can be written");
        let arguments = ["check", file.to_str().expect("a path"), "--json"];
        let output = cohkit([&arguments, options].concat())
            .output()
            .expect("the command starts");
        let entries: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("JSON is printed");
        let last_entry = entries
            .as_array()
            .and_then(|entries| entries.last())
            .cloned();
        (output.status.code(), last_entry.expect("a verdict"))
    };
    let check_addition = |addition: &str| check_with(addition, &[]);
    // The limit also applies to each of the programs.
    let (code, verdict) = check_with("guarantee sc", &["--max-states", "100"]);
    assert_eq!(code, Some(3));
    let reason = verdict["reason"].as_str().expect("a JSON string");
    assert!(reason.ends_with(" has too many states"), "{reason}");
    for model in ["sc", "tso", "rc"] {
        let (code, verdict) = check_addition(&format!("guarantee {model}"));
        assert_eq!(code, Some(0), "{model}");
        assert_eq!(verdict["system"], "programs");
        assert_eq!(verdict["properties"][0]["status"], "holds");
        assert!(verdict["programs"]
            .as_u64()
            .is_some_and(|count| count > 150));
    }
    // Some program detects each missing order of release consistency, and each weaker order.
    let release_consistency = "acquire before all; release after all; fence after all, before all";
    for (orders, model, expected_code) in [
        (release_consistency, "rc", 0),
        (release_consistency, "tso", 1),
        ("release after all; fence after all, before all", "rc", 1),
        ("acquire before all; fence after all, before all", "rc", 1),
        ("acquire before all; release after all; fence before all", "rc", 1),
        ("acquire before all; release after all; fence after all", "rc", 1),
        ("store before all; load before all; fence before all; release before all; acquire before all", "sc", 0),
    ] {
        let (code, verdict) = check_addition(&format!("accesses {{ {orders} }}\nguarantee {model}"));
        assert_eq!(code, Some(expected_code), "{orders}: {model}: {verdict:#}");
        if expected_code == 1 {
            let counterexample = &verdict["counterexample"];
            let file = folder.path().join("guarantee.coh");
            let program = counterexample["program"].as_str().expect("a program");
            let litmus_arguments = ["litmus", program, "--protocol", file.to_str().expect("a path")];
            let litmus_output = cohkit(litmus_arguments).output().expect("the command starts");
            let litmus_output = String::from_utf8_lossy(&litmus_output.stdout).into_owned();
            assert!(litmus_output.contains("forbidden by"), "{orders}: {litmus_output}");
        }
    }
}

#[test]
fn two_levels_are_judged_together() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let composition = tests.join("two-level.coh").display().to_string();
    check(
        &["check", &composition],
        expect![[r#"
            exit code 0
            two_level joint.outer: verified: 497 states up to symmetry, 1176 transitions, depth 22
              note: 2 remotes and 2 lines together were not judged: the search reached its limit; declare a system of this size to search it completely
            two_level joint.inner: verified: 2520 states up to symmetry, 8988 transitions, depth 20
            two_level joint: verified: 953922 states up to symmetry of inner over outer, 6151097 transitions, depth 58
            two_level: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    check(
        &["check", &composition, "--max-states", "1000"],
        expect![[r#"
            exit code 3
            two_level joint.outer: verified: 497 states up to symmetry, 1176 transitions, depth 22
              note: 2 remotes and 2 lines together were not judged: the search reached its limit; declare a system of this size to search it completely
            two_level joint.inner: undecided: the limit on states was reached after 1000 states up to symmetry, 2858 transitions, depth 11
            two_level joint: undecided: state limit reached; raise it with `--max-states N`, after 1003 states up to symmetry of inner over outer
            two_level: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    // A home that is correct alone may be wrong below a cache: this one grants a write permission that the cache above
    // lacks.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    fs::copy(&composition, path("two-level.coh")).expect("the file can be copied");
    let valid = fs::read_to_string(tests.join("mesi-l1.coh")).expect("the file can be read");
    assert_eq!(valid.matches("GetS if memory writes").count(), 1);
    let mutated = valid.replace("GetS if memory writes", "GetS if owner == none");
    fs::write(path("mesi-l1.coh"), mutated).expect("the file can be written");
    check(
        &["check", &path("two-level.coh").display().to_string()],
        expect![[r#"
            exit code 1
            two_level joint.outer: verified: 497 states up to symmetry, 1176 transitions, depth 22
              note: 2 remotes and 2 lines together were not judged: the search reached its limit; declare a system of this size to search it completely
            two_level joint.inner: verified: 2520 states up to symmetry, 8988 transitions, depth 20
            two_level joint: violated: inclusion: an inner cache has more permission than its outer cache
              by inner over outer, after 13 steps:
                below cache 0: l1 0: load
                below cache 1: l1 0: load
                cache 0: load
                GetS of cache 0 reaches the home
                cache 1: load
                GetS of cache 1 reaches the home
                DataE of the home reaches cache 0
                below cache 0: clean is requested
                below cache 0: the home takes clean
                FwdGetS of the home reaches cache 0
                Data of cache 0 reaches cache 1
                below cache 1: GetS of l1 0 reaches the home
                below cache 1: DataE of the home reaches l1 0
        "#]],
    );
    let mut command = cohkit([
        "check",
        &path("two-level.coh").display().to_string(),
        "--json",
    ]);
    let output = command.output().expect("the command starts");
    let entries: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let joint = &entries[2];
    assert_eq!(
        (&joint["system"], &joint["outcome"]),
        (&"joint".into(), &"violated".into())
    );
    assert_eq!(joint["counterexample"]["name"], "inclusion");
    let steps = joint["counterexample"]["steps"].as_array();
    assert!(steps.is_some_and(|steps| steps.len() > 2), "{joint}");
}

#[test]
fn composition_verdict_is_the_product_of_its_parts() {
    let composition = shipped_protocol("eci-both.coh").display().to_string();
    check(
        &["check", &composition],
        expect![[r#"
            exit code 0
            eci_both both.far: verified: 15475 states, 56177 transitions, depth 23
              note: assumes fairness: the home may resend a forward in a loop (in 14 of the home's transitions); the verdict holds if no message is overtaken forever
            eci_both both.near: verified: 2883 states up to symmetry, 7933 transitions, depth 28
              note: assumes fairness: the home may resend a forward in a loop (in 38 of the home's transitions); the verdict holds if no message is overtaken forever
            eci_both both: verified: 44614425 states (far 15475 x near 2883, spaces that share nothing)
            eci_both: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    // A used file that is missing in the folder is taken from the shipped files; a file in the folder takes precedence.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let valid = fs::read_to_string(shipped_protocol("eci-both.coh")).expect("the file can be read");
    fs::write(path("both.coh"), &valid).expect("the file can be written");
    let outcome = |arguments: &[&str]| {
        let mut command = cohkit(["check", &path("both.coh").display().to_string()]);
        let output = command
            .args(arguments)
            .output()
            .expect("the command starts");
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8(printed).expect("the output is UTF-8"),
        )
    };
    let (code, printed) = outcome(&[]);
    assert_eq!(code, Some(0), "{printed}");
    let near_text =
        fs::read_to_string(shipped_protocol("eci-near.coh")).expect("the file can be read");
    // Programs check parts, too: the systems of this part are verified, but its guarantee does not hold.
    let with_guarantee = format!("{near_text}accesses {{ load after load }}\nguarantee sc\n");
    fs::write(path("eci-near.coh"), with_guarantee).expect("the file can be written");
    let (code, printed) = outcome(&[]);
    assert!(
        printed.contains("programs: violated: sequential consistency"),
        "{printed}"
    );
    assert!(
        printed.ends_with("\neci_both both: violated: a part is violated\n"),
        "{printed}"
    );
    assert_eq!(code, Some(1), "{printed}");
    let row = near_text
        .lines()
        .find(|row| row.contains("send AckDropped "));
    let row = row.expect("an invalidation is answered");
    let mutated_row = format!("{} S", row.trim_end_matches([' ', 'I']));
    fs::write(path("eci-near.coh"), near_text.replace(row, &mutated_row))
        .expect("the file can be written");
    let (code, printed) = outcome(&[]);
    assert!(
        printed.contains("\neci_both both: violated: a part is violated\n"),
        "{printed}"
    );
    assert_eq!(code, Some(1), "{printed}");
    for (option, expected) in [
        (&["--lines", "2"][..], "`--lines` applies to one protocol"),
        (&["--system", "far"], "the only system is `both`"),
    ] {
        let (code, printed) = outcome(option);
        assert_eq!(
            (code, printed.contains(expected)),
            (Some(2), true),
            "{printed}"
        );
    }
}

/// Two faults that need two caches and two lines at once, in protocols whose systems have only one of both; and one
/// fault that needs the parameters of the second system.
#[test]
fn joined_lines_are_checked_with_two_caches_and_two_lines() {
    for (file, system) in [
        (
            "lines_joined_with_one_remote.coh",
            "p117_lines_joined_with_one_remote two_widened: violated",
        ),
        ("widened_takes_one_remote.coh", "two_widened: violated"),
        ("widened_takes_first_sizes.coh", "b_widened: violated"),
    ] {
        let output = cohkit(["check"])
            .arg(verdict_folder().join(file))
            .output()
            .expect("the command starts");
        let printed = text(&output.stdout);
        assert!(printed.contains(system), "{file}: {printed}");
        assert_eq!(output.status.code(), Some(1), "{file}");
    }
}

/// A note names the system of two caches and two lines that is too large; a smaller one is checked.
#[test]
fn systems_that_are_too_large_to_be_added_are_named() {
    let check_output = |name: &str| {
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ordering");
        let output = cohkit(["check"])
            .arg(text.join(name))
            .output()
            .expect("the command starts");
        self::text(&output.stdout)
    };
    let mp_output = check_output("mp.coh");
    assert!(
        mp_output.contains("note: 2 remotes and 2 lines together were not judged"),
        "{mp_output}"
    );
    let seq_output = check_output("seq.coh");
    assert!(
        seq_output.contains("shared_widened: verified"),
        "{seq_output}"
    );
    assert!(
        seq_output.contains("not covered: more than 1 line evicted spontaneously"),
        "{seq_output}"
    );
}

/// A store that sends its bytes and drops its copy is posted, whatever state it leaves.
#[test]
fn posted_store_may_leave_a_state_with_a_copy() {
    let file = verdict_folder().join("posted_from_copy.coh");
    let output = cohkit(["check"])
        .arg(&file)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("two: verified"));
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

/// Folder of regression tests for wrong verdicts of earlier versions: several protocols with faults, and one without.
fn verdict_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/verdicts")
}

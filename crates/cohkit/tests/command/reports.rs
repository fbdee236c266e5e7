//! Further output of `cohkit check`: coverage, state graphs, explanations, and replayed counterexamples.

use crate::{check, cohkit, text, tiny};
use expect_test::expect;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a shipped protocol with a change.
fn mutated_protocol(folder: &Path, name: &str, change: impl Fn(String) -> String) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(format!("protocols/{name}.coh"))).expect("shipped");
    let path = folder.join(format!("{name}.coh"));
    fs::write(&path, change(text)).expect("a temporary file");
    path
}

/// MSI whose caches do not drop a line on an invalidation.
fn faulty_msi(folder: &Path) -> PathBuf {
    let keep_copy = |line: &str| match line.contains(" S  ") && line.contains("| Inv  ") {
        true => line.replace("| I", "| S").replace("| Snv", "| Inv") + "\n",
        false => line.to_string() + "\n",
    };
    mutated_protocol(folder, "msi", |text| text.lines().map(keep_copy).collect())
}

/// Exit code and both outputs of a command in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = cohkit(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Entry of the only system in a JSON output.
fn entry(json: &str) -> Value {
    let value: Value = serde_json::from_str(json).expect("the text is JSON");
    value[0].clone()
}

#[test]
fn coverage_adds_up_and_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tiny = tiny();
    let tiny = tiny.to_str().expect("the path is UTF-8");
    let result_with_threads = |threads: &str| {
        let (code, out, err) = run_in(
            folder.path(),
            &["check", tiny, "--coverage", "--json", "--threads", threads],
        );
        assert_eq!((code, err.as_str()), (0, ""));
        entry(&out)
    };
    let (single_threaded, two_threaded) = (result_with_threads("1"), result_with_threads("2"));
    assert_eq!(single_threaded["coverage"], two_threaded["coverage"]);
    let rules = single_threaded["coverage"]["rules"]
        .as_array()
        .expect("a JSON list");
    let fired: u64 = rules.iter().filter_map(|rule| rule["fired"].as_u64()).sum();
    assert_eq!(fired, single_threaded["transitions"]);
    let rows = single_threaded["coverage"]["rows"]
        .as_array()
        .expect("a JSON list");
    let agents: std::collections::BTreeSet<_> = rows
        .iter()
        .filter_map(|row| row["agent"].as_str())
        .collect();
    assert_eq!(agents.len(), 2, "{agents:?}");
    check(
        &["check", "tests/command/tiny.coh", "--coverage"],
        expect![[r#"
            exit code 0
            tiny alone: verified: 48 states, 108 transitions, depth 12
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
              rule                              instances  fired  to new states
              memory is written                         1  never              0
              memory takes the store                    1  never              0
              memory takes the partial store            1  never              0
              home hears that memory is done            1  never              0
              cache load                                1     14              3
              cache evict                               1      6              1
              home takes Get                            1      2              1
              home takes Put                            1     12              2
              home takes Gone                           1      4              0
              home takes None                           1     12              0
              cache takes Drop                          1     12              6
              cache takes Data                          2      6              2
              memory is read                            1      4              1
              home takes the memory's data              1      4              1
              device asks for clean_invalidate          1     24             24
              home takes clean_invalidate               1      8              6
            tiny: every row of both tables was taken
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
}

#[test]
fn state_graph_is_written_atomically() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tiny = tiny();
    let tiny = tiny.to_str().expect("the path is UTF-8");
    let (code, out, _) = run_in(
        folder.path(),
        &["check", tiny, "--graph", "tiny.json", "--json"],
    );
    assert_eq!(code, 0);
    let graph = fs::read_to_string(folder.path().join("tiny.json")).expect("the file can be read");
    let graph: Value = serde_json::from_str(&graph).expect("the text is JSON");
    let verdict = entry(&out);
    let count = |key: &str| graph[key].as_array().map(Vec::len);
    assert_eq!(
        count("states").map(Value::from).as_ref(),
        Some(&verdict["states"])
    );
    assert_eq!(
        count("edges").map(Value::from).as_ref(),
        Some(&verdict["transitions"])
    );
    let msi = faulty_msi(folder.path());
    let msi = msi.to_str().expect("the path is UTF-8");
    let mut transcript = String::new();
    for arguments in [
        &["check", tiny, "--graph", "tiny.svg"][..],
        &["check", tiny, "--graph", "missing/tiny.dot"],
        &["check", tiny, tiny, "--graph", "tiny.dot"],
        &["check", msi, "--graph", "tiny.dot"],
        &["check", msi, "--remotes", "3", "--graph", "tiny.dot"],
    ] {
        let (code, _, err) = run_in(folder.path(), arguments);
        let folder_name = folder.path().display().to_string();
        transcript += &format!(
            "{code}: {}",
            err.replace(&folder_name, "FOLDER").replace(tiny, "TINY")
        );
        assert!(!folder.path().join("tiny.dot").exists());
    }
    expect![[r#"
        2: error: tiny.svg: ends in neither `.dot` nor `.json`
          help: the extension selects the format: `.dot` for Graphviz, `.json` for JSON
        4: error: missing/tiny.dot: its folder does not exist; nothing was written
          help: make the folder first
        2: error: tiny.dot: is for one state graph, but several files are given
          help: check them one by one
        2: error: FOLDER/msi.coh: a state graph shows one system, not `three_caches` and `two_lines`
          help: name it with `--system`
        2: error: tiny.dot: the state graph has more than 10000 states, too many to examine; nothing was written
          help: a smaller system has fewer states
    "#]].assert_eq(&transcript);
    let (code, ..) = run_in(
        folder.path(),
        &["check", msi, "--remotes", "2", "--graph", "msi.dot"],
    );
    assert_eq!(code, 1);
    let dot = fs::read_to_string(folder.path().join("msi.dot")).expect("the file can be read");
    let marked_edges = dot
        .lines()
        .filter(|line| line.contains("->") && line.contains("color=red"));
    let (_, out, _) = run_in(folder.path(), &["check", msi, "--remotes", "2", "--json"]);
    let steps = entry(&out)["counterexample"]["trace"]["steps"]
        .as_array()
        .map(Vec::len);
    assert_eq!(Some(marked_edges.count()), steps);
}

#[test]
fn counterexample_replays() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let msi = faulty_msi(folder.path());
    let msi = msi.to_str().expect("the path is UTF-8");
    let path = |name: &str| folder.path().join(name);
    let (code, json, _) = run_in(folder.path(), &["check", msi, "--remotes", "2", "--json"]);
    assert_eq!(code, 1);
    fs::write(path("all.json"), &json).expect("the file can be written");
    let trace = &entry(&json)["counterexample"]["trace"];
    fs::write(path("trace.json"), trace.to_string()).expect("the file can be written");
    let (_, checked_output, _) = run_in(folder.path(), &["check", msi, "--remotes", "2"]);
    for arguments in [
        &["check", msi, "--replay", "all.json"][..],
        &["check", msi, "--replay", "trace.json", "--remotes", "2"],
    ] {
        let (code, replayed_output, err) = run_in(folder.path(), arguments);
        assert_eq!((code, err.as_str()), (1, ""));
        // All lines except the one with the effort of the search.
        let is_not_effort = |line: &&str| !line.starts_with("  after ");
        assert_eq!(
            replayed_output.lines().collect::<Vec<_>>(),
            checked_output
                .lines()
                .filter(is_not_effort)
                .collect::<Vec<_>>()
        );
    }
    let (code, replayed_output, _) = run_in(
        folder.path(),
        &["check", msi, "--replay", "all.json", "--json"],
    );
    assert_eq!(code, 1);
    assert_eq!(
        entry(&replayed_output)["counterexample"],
        entry(&json)["counterexample"]
    );
}

/// MSI whose directory serves a GetM only if a guard holds that is never true, and otherwise answers Nack.
fn nacking_msi(folder: &Path) -> PathBuf {
    mutated_protocol(folder, "msi", |text| {
        text.replace("count), InvAck", "count), InvAck, Nack")
            .replace("waits Data InvAck\n", "waits Data InvAck Nack\n")
            .replace(
                "  # The outstanding request",
                "  IM_AD | Nack | | I\n  SM_AD | Nack | | S\n  # The outstanding request",
            )
            .replace("I S     | GetM  ", "I S     | GetM if count(sharers) > 3 ")
            .replace("M       | GetM  ", "M       | GetM if count(sharers) > 3 ")
            .replace(
                "  S_D     | GetS GetM ",
                "  I S M | GetM | send Nack | stay\n  S_D     | GetS GetM ",
            )
    })
}

#[test]
fn starved_access_is_reported_and_replayed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let msi = nacking_msi(folder.path());
    let msi = msi.to_str().expect("the path is UTF-8");
    let (code, checked_output, err) = run_in(folder.path(), &["check", msi, "--remotes", "2"]);
    assert_eq!((code, err.as_str()), (1, ""));
    let first_line = checked_output.lines().next().unwrap_or_default();
    assert_eq!(
        first_line,
        "msi remotes_2_lines_1: violated: progress: a store of cache 0, which is in IM_AD, can never be performed"
    );
    assert!(checked_output.contains("• store"), "{checked_output}");
    let (code, json, _) = run_in(folder.path(), &["check", msi, "--remotes", "2", "--json"]);
    assert_eq!(code, 1);
    let verdict = entry(&json);
    assert_eq!(verdict["counterexample"]["kind"], "progress");
    let properties = verdict["properties"].as_array().expect("a JSON list");
    let statuses = properties.iter().map(|property| {
        let status = property["status"].as_str().expect("a JSON string");
        (property["kind"].as_str().expect("a JSON string"), status)
    });
    for (kind, status) in statuses {
        let is_violated = kind == "progress";
        assert_eq!(
            status,
            if is_violated { "violated" } else { "holds" },
            "{kind}"
        );
    }
    fs::write(folder.path().join("all.json"), &json).expect("the file can be written");
    let (code, replayed_output, err) =
        run_in(folder.path(), &["check", msi, "--replay", "all.json"]);
    assert_eq!((code, err.as_str()), (1, ""));
    let is_not_effort = |line: &&str| !line.starts_with("  after ");
    assert_eq!(
        replayed_output.lines().collect::<Vec<_>>(),
        checked_output
            .lines()
            .filter(is_not_effort)
            .collect::<Vec<_>>()
    );
    // Random walks do not check this property, and report so.
    let (code, json, _) = run_in(
        folder.path(),
        &[
            "check",
            msi,
            "--remotes",
            "2",
            "--random-walks",
            "100",
            "--json",
        ],
    );
    assert_eq!(code, 3);
    let verdict = entry(&json);
    let properties = verdict["properties"].as_array().expect("a JSON list");
    let last_property = properties.last().expect("properties");
    assert_eq!(
        (&last_property["kind"], &last_property["status"]),
        (&"progress".into(), &"undecided".into())
    );
}

#[test]
fn verdict_names_accesses_that_never_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = mutated_protocol(folder.path(), "msi", |text| {
        let text = text.replace(
            "    M      reads writes dirty\n",
            "    M      reads writes dirty\n    X      reads\n",
        );
        text.replace(
            "  IS_D           | Data    ",
            "  X | read_once | | stay\n  X | Inv | send InvAck to requestor | I\n  IS_D | Data if owed > 3 | | X\n  IS_D           | Data    ",
        )
    });
    let file = file.to_str().expect("the path is UTF-8");
    let (code, stdout, err) = run_in(folder.path(), &["check", file, "--remotes", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        stdout.contains("  note: never performed, as no cache ever starts it: read_once\n"),
        "{stdout}"
    );
}

/// Regression: a protocol without rows for evictions was verified without a note.
#[test]
fn verdict_names_missing_eviction_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = mutated_protocol(folder.path(), "write-through", |text| {
        let is_not_eviction = |line: &&str| line.split('|').nth(1).map(str::trim) != Some("evict");
        let lines: Vec<&str> = text.lines().filter(is_not_eviction).collect();
        lines.join("\n") + "\n"
    });
    let file = file.to_str().expect("the path is UTF-8");
    let (code, stdout, err) = run_in(folder.path(), &["check", file, "--remotes", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let note = "  note: never performed, as the specification has no row for it: evict\n";
    assert!(stdout.contains(note), "{stdout}");
    // Accesses that bypass the caches are optional for a protocol.
    let file = mutated_protocol(folder.path(), "msi", |text| text);
    let file = file.to_str().expect("the path is UTF-8");
    let (code, stdout, _) = run_in(folder.path(), &["check", file, "--remotes", "2"]);
    assert_eq!(code, 0);
    assert!(!stdout.contains("never performed"), "{stdout}");
}

#[test]
fn unreplayable_trace_is_rejected_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let msi = faulty_msi(folder.path());
    let msi = msi.to_str().expect("the path is UTF-8");
    let path = |name: &str| folder.path().join(name);
    let (_, json, _) = run_in(folder.path(), &["check", msi, "--remotes", "2", "--json"]);
    fs::write(path("good.json"), &json).expect("the file can be written");
    let verdict = entry(&json);
    let trace = verdict["counterexample"]["trace"].clone();
    fs::write(path("bare.json"), trace.to_string()).expect("the file can be written");
    let mut swapped = verdict.clone();
    let steps = swapped["counterexample"]["trace"]["steps"]
        .as_array_mut()
        .expect("a JSON list");
    steps.swap(2, 3);
    fs::write(path("swapped.json"), swapped.to_string()).expect("the file can be written");
    let mut with_unknown_rule = verdict.clone();
    with_unknown_rule["counterexample"]["trace"]["steps"][4]["rule_index"] = 100_000.into();
    fs::write(path("number.json"), with_unknown_rule.to_string()).expect("the file can be written");
    let mut without_counterexample = verdict.clone();
    without_counterexample["counterexample"] = Value::Null;
    fs::write(path("sound.json"), without_counterexample.to_string())
        .expect("the file can be written");
    fs::write(path("empty.json"), "").expect("the file can be written");
    // The cut is before anything that depends on the machine.
    let cut_offset = json.find("\"steps\"").expect("a trace");
    fs::write(path("cut.json"), &json[..cut_offset]).expect("the file can be written");
    fs::write(path("other.json"), "[{\"a\": 1}]").expect("the file can be written");
    fs::write(path("list.json"), "[1]").expect("the file can be written");
    fs::write(path("binary.json"), [0xff, 0xfd]).expect("the file can be written");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let shipped = |name: &str| root.join(name).display().to_string();
    let (correct_msi, mesi) = (shipped("msi.coh"), shipped("mesi.coh"));
    let mut transcript = String::new();
    for arguments in [
        &[msi, "--replay", "missing.json"][..],
        &[msi, "--replay", "."],
        &[msi, "--replay", "empty.json"],
        &[msi, "--replay", "cut.json"],
        &[msi, "--replay", "other.json"],
        &[msi, "--replay", "list.json"],
        &[msi, "--replay", "binary.json"],
        &[msi, "--replay", "sound.json"],
        &[msi, "--replay", "bare.json"],
        &[msi, "--replay", "bare.json", "--remotes", "1"],
        &[msi, "--replay", "swapped.json"],
        &[msi, "--replay", "number.json"],
        &[msi, msi, "--replay", "good.json"],
        &[&correct_msi, "--replay", "good.json"],
        &[&mesi, "--replay", "good.json"],
        &[&mesi, "--replay", "bare.json", "--remotes", "2"],
        &[msi, "--replay", "good.json", "--coverage"],
    ] {
        let arguments = [&["check"], arguments].concat();
        let (code, out, err) = run_in(folder.path(), &arguments);
        assert_eq!(out, "", "{arguments:?}");
        transcript += &format!("{code}: {}\n", err.lines().next().unwrap_or_default());
    }
    expect![[r#"
        2: error: missing.json: no such file
        2: error: .: is a folder
        2: error: empty.json: is empty
        2: error: cut.json: is not JSON: EOF while parsing a value at line 22 column 10
        2: error: other.json: has neither `counterexample`, `trace` nor `steps`
        2: error: list.json: entry 1 is no object
        2: error: binary.json: is not text: byte 0 is not UTF-8
        2: error: sound.json: holds no counterexample
        2: error: bare.json: does not name its system: `three_caches`, `two_lines`
        2: error: bare.json: does not fit msi remotes_1_lines_1: step 2: rule 3 is `cache evict (l=0, r=0)`, but the trace says `cache store (l=0, r=1)`
        2: error: swapped.json: does not fit msi remotes_2_lines_1: step 5: `cache takes Data (l=0, r=1, acks=1, current=true)` is not enabled there
        2: error: number.json: does not fit msi remotes_2_lines_1: step 5: there is no rule 100000; the model has 58, counted from 0
        2: error: good.json: is replayed on one specification, but several are given
        2: error: good.json: does not fit msi remotes_2_lines_1: step 7: `cache takes Inv (l=0, r=0)`: the model has `cache_state[0][0]` S -> I, but the trace says `forward_to_remote[0].length` 1 -> 0
        2: error: good.json: holds no counterexample for `mesi`, but of `msi remotes_2_lines_1`
        2: error: bare.json: does not fit mesi remotes_2_lines_1: step 3: rule 12 is `cache evict (l=0, r=0)`, but the trace says `directory takes GetS (l=0, s=0)`
        2: error: the argument '--replay <FILE>' cannot be used with '--coverage'
    "#]].assert_eq(&transcript);
}

#[test]
fn incomplete_request_is_explained() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The directory writes the line back, and sends no acknowledgement.
    let row_actions = "write, send PutAck, owner := none";
    let msi = mutated_protocol(folder.path(), "msi", |text| {
        assert!(text.contains(row_actions));
        text.replace(row_actions, "write, owner := none")
    });
    let msi = msi.to_str().expect("the path is UTF-8");
    let arguments = ["check", msi, "--remotes", "1", "--lines", "2"];
    let (code, out, err) = run_in(folder.path(), &arguments);
    assert_eq!((code, err.as_str()), (1, ""));
    let (_, explanation_text) = out.rsplit_once("\n\n").expect("a chart and what follows");
    expect![[r#"
        the end:
          agents waiting in this state:
            cache in MI_A waits for PutAck from the directory on channel forward, line 0
            cache in MI_A waits for PutAck from the directory on channel forward, line 1
    "#]]
    .assert_eq(&format!("the end:\n{explanation_text}"));
    let (_, json, _) = run_in(folder.path(), &[&arguments[..], &["--json"]].concat());
    let explanation = &entry(&json)["counterexample"]["explanation"];
    let waits = explanation["wait_for"].as_array().expect("a JSON list");
    for wait in waits {
        assert!(
            explanation_text.contains(wait.as_str().expect("a JSON string")),
            "{wait}"
        );
    }
    assert!(!waits.is_empty());
    fs::write(folder.path().join("trace.json"), json).expect("the file can be written");
    let (code, out, _) = run_in(folder.path(), &["check", msi, "--replay", "trace.json"]);
    assert_eq!(code, 1);
    assert!(
        out.contains("no deadlock: no rule leads to a different state"),
        "{out}"
    );
    assert!(out.ends_with(explanation_text), "{out}");
}

/// Path of a shipped Murphi model.
fn model(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    root.join(format!("{name}.m")).display().to_string()
}

#[test]
fn murphi_models_are_reported_on_alike() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let philosophers = model("philosophers_deadlock");
    let arguments = [
        "check",
        &philosophers,
        "--json",
        "--coverage",
        "--graph",
        "graph.json",
    ];
    let (code, json, err) = run_in(folder.path(), &arguments);
    assert_eq!((code, err.as_str()), (1, ""));
    let verdict = entry(&json);
    let rules = verdict["coverage"]["rules"]
        .as_array()
        .expect("a JSON list");
    let fired: u64 = rules.iter().filter_map(|rule| rule["fired"].as_u64()).sum();
    assert_eq!(fired, verdict["transitions"]);
    assert_eq!(verdict["coverage"]["rows"], serde_json::json!([]));
    let graph = fs::read_to_string(folder.path().join("graph.json")).expect("the file can be read");
    let graph: Value = serde_json::from_str(&graph).expect("the text is JSON");
    let steps = verdict["counterexample"]["trace"]["steps"]
        .as_array()
        .map(Vec::len)
        .expect("a JSON list");
    let path = graph["path"].as_array().map(Vec::len);
    assert_eq!(path, Some(steps + 1));
    let blocked = verdict["counterexample"]["explanation"]["blocked"].as_array();
    let blocked = blocked.expect("a JSON list");
    let failed_conditions = |rule: &Value| rule["failed_conditions"].as_array().map(Vec::len);
    assert!(!blocked.is_empty());
    assert!(
        blocked.iter().all(|rule| failed_conditions(rule) > Some(0)),
        "{blocked:?}"
    );
    fs::write(folder.path().join("all.json"), &json).expect("the file can be written");
    let (code, replayed, err) = run_in(
        folder.path(),
        &["check", &philosophers, "--replay", "all.json", "--json"],
    );
    assert_eq!((code, err.as_str()), (1, ""));
    let replayed = entry(&replayed);
    assert_eq!(replayed["model"], "philosophers_deadlock");
    assert_eq!(replayed["counterexample"], verdict["counterexample"]);
}

#[test]
fn trace_of_another_file_kind_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let replace_folder = |path: &str| path.replace(&folder.path().display().to_string(), "FOLDER");
    let (philosophers, both_wait) = (model("philosophers_deadlock"), model("both_wait"));
    let (lights, msi) = (model("traffic_lights"), faulty_msi(folder.path()));
    let msi = msi.to_str().expect("the path is UTF-8");
    let record_trace = |arguments: &[&str], name: &str| {
        let (_, json, _) = run_in(folder.path(), &[&["check", "--json"], arguments].concat());
        fs::write(folder.path().join(name), &json).expect("the file can be written");
        let trace = &entry(&json)["counterexample"]["trace"];
        fs::write(
            folder.path().join(format!("bare-{name}")),
            trace.to_string(),
        )
        .expect("the file can be written");
    };
    record_trace(&[&philosophers], "philosophers.json");
    record_trace(&[&lights], "lights.json");
    record_trace(&[msi, "--remotes", "2"], "msi.json");
    let mut transcript = String::new();
    for (text, trace) in [
        (both_wait.as_str(), "philosophers.json"),
        (&both_wait, "bare-philosophers.json"),
        (&both_wait, "msi.json"),
        (msi, "philosophers.json"),
        // A state that is never reached has no trace.
        (&lights, "lights.json"),
    ] {
        let (code, out, err) = run_in(folder.path(), &["check", text, "--replay", trace]);
        assert_eq!(out, "", "{trace}");
        let first_error = err
            .lines()
            .find(|line| line.starts_with("error"))
            .unwrap_or_default();
        transcript += &format!("{code}: {}\n", replace_folder(first_error));
    }
    expect![[r#"
        2: error: philosophers.json: holds no counterexample for `both_wait`, but of `philosophers_deadlock`
        2: error: bare-philosophers.json: does not fit both_wait: start state `Startstate 1`: the model has `at[0]` idle, but the trace says `at[0]` thinking
        2: error: msi.json: holds no counterexample for `both_wait`, but of `msi remotes_2_lines_1`
        2: error: philosophers.json: holds no counterexample for `msi`, but of `philosophers_deadlock`
        2: error: lights.json: that `all lights are red` is never reached cannot be shown by a trace
    "#]].assert_eq(&transcript);
}

#[test]
fn csv_and_json_results_agree() {
    let output_as = |option: &str| {
        let output = cohkit(["check", "tests/command/tiny.coh", "../../protocols/msi.coh"])
            .args(["--remotes", "1", option])
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let json: Value = serde_json::from_str(&output_as("--json")).expect("the text is JSON");
    let csv = output_as("--csv");
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("a head");
    let rows: Vec<Vec<&str>> = lines.collect();
    let entries = json.as_array().expect("a JSON list");
    assert_eq!(rows.len(), entries.len());
    let column = |name: &str| names.iter().position(|column_name| *column_name == name);
    for name in ["outcome", "protocol", "states", "transitions"] {
        let column_index =
            column(name).unwrap_or_else(|| panic!("no column `{name}` in {names:?}"));
        for (row, entry) in rows.iter().zip(entries) {
            // Counted from the end: notes, an earlier column, contain commas.
            let cell = row[row.len() + column_index - names.len()];
            assert_eq!(cell, entry[name].to_string().trim_matches('"'), "{name}");
        }
    }
    assert!(column("properties.data value.status").is_some());
    assert!(!csv.contains("seconds"), "that depends on the machine");
}

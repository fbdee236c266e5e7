//! Verdicts on compositions of two protocols.

use super::shipped_protocol;
use crate::{check, cohkit};
use expect_test::expect;
use std::fs;
use std::path::Path;

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

/// `--symmetry off` applies to the exploration of two levels together too: both clusters are distinguished.
#[test]
fn levels_are_explored_without_symmetry() {
    let protocols = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["mesi.coh", "mesi-l1.coh"] {
        fs::copy(protocols.join(name), folder.path().join(name)).expect("the file can be copied");
    }
    let text = fs::read_to_string(protocols.join("two-level.coh")).expect("the file can be read");
    let start = text.find("\nsystem ").expect("a system");
    let small = "\nsystem small { outer.home 1; l2 2 { inner.l1 1 }; outer.lines 1 }\n";
    let file = folder.path().join("two-level.coh");
    fs::write(&file, [&text[..start], small].concat()).expect("the file can be written");
    let joint = |options: &[&str]| {
        let output = cohkit(["check", "--json"])
            .arg(&file)
            .args(options)
            .output()
            .expect("the command starts");
        let verdicts: Vec<serde_json::Value> =
            serde_json::from_slice(&output.stdout).expect("the command prints JSON");
        let last = verdicts.last().expect("a verdict").clone();
        assert_eq!(last["outcome"], "verified", "{last}");
        last["states"].as_u64().expect("a number")
    };
    let (orbits, states) = (joint(&[]), joint(&["--symmetry", "off"]));
    // Most states differ from the one with both clusters exchanged.
    assert!(
        states > orbits * 19 / 10 && states <= 2 * orbits,
        "{orbits} {states}"
    );
}

#[test]
fn clusters_of_different_protocols_are_judged_together() {
    let clusters = shipped_protocol("clusters.coh").display().to_string();
    check(
        &["check", &clusters],
        expect![[r#"
            exit code 0
            clusters joint.outer: verified: 497 states up to symmetry, 1176 transitions, depth 22
              note: 2 remotes and 2 lines together were not judged: the search reached its limit; declare a system of this size to search it completely
            clusters joint.cpu: verified: 465 states, 1263 transitions, depth 19
            clusters joint.gpu: verified: 13 states, 38 transitions, depth 3
            clusters joint.gpu_widened: verified: 169 states, 819 transitions, depth 6
              note: added to the systems of the specification: rows that change every line join lines, and no system has two lines for each home
            clusters joint.gpu programs: verified: release consistency in 513 programs of at most 3 threads and 4 accesses per thread, 1 home, 513 placements, 2072227 states
              not covered: more than 1 line evicted spontaneously (`cohkit litmus --max-spontaneous-evictions N`)
              not covered: stores that are acknowledged by the home (`cohkit litmus --store-variants all`)
            clusters joint: verified: 73717 states up to symmetry of cpu, gpu over outer, 403604 transitions, depth 49
            clusters: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    // Limits of compositions, each with its help.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("composition.coh");
    let rejected = |nodes: &str, expected: expect_test::Expect| {
        let uses = "protocol c\nuse \"mesi.coh\" as outer\nuse \"mesi-l1.coh\" as cpu\n";
        fs::write(&file, format!("{uses}{nodes}\n")).expect("the file can be written");
        let mut command = cohkit(["check", &file.display().to_string()]);
        let output = command.output().expect("the command starts");
        assert_eq!(output.status.code(), Some(2));
        let printed = String::from_utf8(output.stderr).expect("the output is UTF-8");
        let lines = printed
            .lines()
            .filter(|line| line.contains("error") || line.contains("help"));
        expected.assert_eq(
            &lines
                .map(|line| format!("{}\n", line.trim()))
                .collect::<String>(),
        );
    };
    let system = "system s { outer.home 1; card 1 { cpu.l1 1 }; outer.lines 1 }";
    rejected(
        "use \"self-invalidate.coh\" as gpu\nnode card { cpu.home over gpu.cache }",
        expect![[r#"
            error[misplaced]: `self_invalidate` has `guarantee none`, and caches at the outer level
            = help: the outer protocol must be coherent; only an inner one may have `guarantee none`
        "#]],
    );
    rejected(&format!("node card {{ cpu.home over outer.cache }}\nnode other {{ cpu.home over outer.cache }}\n{system}"), expect![[r#"
        error[misplaced]: a second cache for the same home
        = help: use the protocol a second time, under another name
    "#]]);
    rejected(
        "use \"mesi-l1.coh\" as gpu\nnode card { cpu.home over outer.cache }\nnode other { outer.home over gpu.l1 }",
        expect![[r#"
            error[misplaced]: a third level
            = help: the outer protocol is below no other, and the inner protocol above none
        "#]],
    );
    // A rejected level causes no second error about the agents below it.
    rejected(
        "use \"token.coh\" as other\nnode card { other.home over cpu.home }\nsystem s { card 1 { other.cache 1 } }",
        expect![[r#"
            error[misplaced]: a home has no copy that can be the memory of another home
            = help: name the remotes of another used protocol: `INNER.home over OUTER.cache`
        "#]],
    );
    // Stores of caches without coherence must reach their home as stores.
    let gpu = fs::read_to_string(shipped_protocol("self-invalidate.coh"));
    let gpu = gpu.expect("the file can be read");
    let stores = gpu.replace("  V   reads\n", "  V   reads writes\n");
    let writes_back = gpu
        .replace("Read, ReadOnce,", "Read, PutV (line), ReadOnce,")
        .replace("                | I        # silent", "send PutV       | I")
        .replace(
            "  L       | Read                |",
            "  L | PutV | write | stay\n  L       | Read                |",
        );
    for (text, expected) in [
        (
            stores,
            expect![[r#"
        error[misplaced]: `self_invalidate` has `guarantee none`, and write permission in `V`
        = help: caches without coherence below another cache must send every store to their home
    "#]],
        ),
        (
            writes_back,
            expect![[r#"
                error[misplaced]: `self_invalidate` has `guarantee none`, and its home takes lines in `PutV`
                = help: a line that is written back may be older than a store of another cluster; send stores instead
            "#]],
        ),
    ] {
        fs::write(folder.path().join("gpu.coh"), text).expect("the file can be written");
        rejected(
            "use \"gpu.coh\" as gpu\nnode card { gpu.home over outer.cache }",
            expected,
        );
    }
    rejected("use \"self-invalidate.coh\" as gpu\nnode socket { cpu.home over outer.cache }\nnode card { gpu.home over outer.cache }\nsystem s { outer.home 1; socket 1 { cpu.l1 1 }; gpu.cache 1; outer.lines 1 }", expect![[r#"
        error[missing-block]: `s` has no home of `gpu`
        = help: count the node in which `gpu.home` is over a cache of `outer`, or leave out its `use`
    "#]]);
    rejected("node card { cpu.home over outer.cache }\nsystem s { outer.home 1; outer.cache 1; card 1 { cpu.l1 1 }; outer.lines 1 }", expect![[r#"
        error[out-of-range]: `s` has 1 home over caches of `outer`, and 2 caches that can hold their memory
        = help: count the nodes in which one is over the other, and do not count either outside them
    "#]]);
}

#[test]
fn bridges_are_printed_as_tables() {
    let clusters = shipped_protocol("clusters.coh").display().to_string();
    let table = |arguments: &[&str]| {
        let output = cohkit([&["table", &clusters], arguments].concat())
            .output()
            .expect("the command starts");
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|text| String::from_utf8(text).expect("it is UTF-8"));
        (output.status.code(), stdout, stderr)
    };
    let (code, text, _) = table(&[]);
    assert_eq!(code, Some(0));
    let (_, gpu) = text
        .split_once("\n\nclusters joint")
        .expect("a table for each inner protocol");
    let first_lines: Vec<&str> = gpu.lines().take(12).collect();
    expect![[r#"
        : bridge of gpu over outer: 13 states, 43 rows

        cache | home | recall | event          | sends         | next cache | next home | next recall
        E     | L    |        | outer: FwdGetM | outer: Data   | I
              |      |        | outer: FwdGetS | outer: 2 Data | S
              |      |        | outer: evict   | outer: PutE   | EI_A
              |      |        | gpu: Atomic    | gpu: Old      | M
              |      |        | gpu: Read      | gpu: Data
              |      |        | gpu: ReadOnce  | gpu: DataOnce
              |      |        | gpu: Write     | gpu: Ack      | M
              |      |        | gpu: WriteLine | gpu: Ack      | M
        EI_A  | L    |        | outer: FwdGetM | outer: Data   | II_A"#]].assert_eq(&first_lines.join("\n"));
    let (code, json, _) = table(&["--json"]);
    assert_eq!(code, Some(0));
    let tables: serde_json::Value = serde_json::from_str(&json).expect("the text is JSON");
    let counts = tables.as_array().expect("a list").iter();
    let counts: Vec<usize> = counts
        .map(|table| table["rows"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(counts, [178, 43]);
    let (_, markdown, _) = table(&["--markdown"]);
    assert_eq!(
        markdown
            .lines()
            .filter(|line| line.starts_with('|'))
            .count(),
        178 + 43 + 4
    );
    for option in [&["--merged"][..], &["--agent", "remote"]] {
        let (code, _, stderr) = table(option);
        assert_eq!(code, Some(2));
        assert!(stderr.contains("a composition has bridges"), "{stderr}");
    }
    // Two directions have no bridge.
    let directions = shipped_protocol("eci-both.coh").display().to_string();
    let output = cohkit(["table", &directions])
        .output()
        .expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("no home is over a cache"), "{stderr}");
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

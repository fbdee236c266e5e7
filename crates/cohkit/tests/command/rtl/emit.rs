//! `cohkit rtl emit`: the written folder builds by itself, and homes without RTL are rejected.

use crate::require::require;
use crate::{check, cohkit, text};
use expect_test::expect;
use std::fs;

#[test]
fn rtl_emit_writes_a_package_and_an_image() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("made/here");
    let emit = |extra: &[&str]| {
        let mut command = cohkit(["rtl", "emit", "../../protocols/eci.coh", "--out"]);
        let output = command
            .arg(&out)
            .args(extra)
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    expect![[r#"
        eci: 128 states, 26 events, 1556 rows of 24 bits: eci_pkg.sv, eci.mem; the top and the RTL: eci.f
    "#]]
    .assert_eq(&emit(&[]));
    let package = fs::read_to_string(out.join("eci_pkg.sv")).expect("the file can be read");
    let image = fs::read_to_string(out.join("eci.mem")).expect("the file can be read");
    // The command in the headers prints both files again, in the folder of the protocol file.
    fs::copy("../../protocols/eci.coh", folder.path().join("eci.coh"))
        .expect("the file can be copied");
    for printed in [&package, &image] {
        let command = printed.split('`').nth(1).expect("the header names it");
        let mut words = command.split(' ');
        assert_eq!(words.next(), Some("cohkit"), "{command}");
        let rerun = cohkit(words).current_dir(folder.path()).output();
        let rerun = rerun.expect("the command starts");
        assert!(rerun.status.success(), "{}", text(&rerun.stderr));
    }
    for (file, original) in [("eci_pkg.sv", &package), ("eci.mem", &image)] {
        let emitted_text =
            fs::read_to_string(folder.path().join(file)).expect("the file can be read");
        assert_eq!(emitted_text, *original);
    }
    assert_eq!(
        image.lines().filter(|line| line.starts_with('@')).count(),
        1556
    );
    let value: serde_json::Value =
        serde_json::from_str(&emit(&["--json"])).expect("the text is JSON");
    assert_eq!(value["rows"], 1556);
}

/// Regression: only the package was written, which needed further files of the repository.
#[test]
fn emitted_folder_builds_without_other_files() {
    if !require("verilator") {
        return;
    }
    for protocol in ["eci", "back-invalidate"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = cohkit(["rtl", "emit", protocol, "--json", "--out"]);
        let output = command
            .arg(folder.path())
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let value: serde_json::Value =
            serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
        let list = value["run"]["file_list"].as_str().expect("a JSON string");
        let name = value["protocol"].as_str().expect("a JSON string");
        // Files outside the list are the image, the list itself, and included files.
        let listed = fs::read_to_string(list).expect("the file can be read");
        let mut listed: Vec<&str> = listed
            .lines()
            .filter(|line| !line.starts_with('+'))
            .collect();
        let (image, list_file) = (format!("{name}.mem"), format!("{name}.f"));
        listed.extend([image.as_str(), list_file.as_str(), "assertions.svh"]);
        listed.sort_unstable();
        let mut files: Vec<String> = fs::read_dir(folder.path())
            .expect("the folder exists")
            .map(|file| {
                file.expect("a file")
                    .file_name()
                    .into_string()
                    .expect("plain")
            })
            .collect();
        files.sort_unstable();
        assert_eq!(files, listed);
        // Another size than the default, which is built faster.
        let build = |lint: bool| {
            let mut command = std::process::Command::new("verilator");
            match lint {
                true => command.args(["--lint-only", "-Wall"]),
                false => command.args(["--cc", "--build", "-j", "1"]),
            };
            command.args([
                "-F",
                list_file.as_str(),
                "--top-module",
                &format!("{name}_home"),
            ]);
            command.args(["-GUnits=1", "-GSetWidth=1", "-GWays=4"]);
            let output = command
                .current_dir(folder.path())
                .output()
                .expect("the command starts");
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stderr)
        };
        assert_eq!(build(true), "");
        build(false);
    }
}

#[test]
fn home_unsupported_by_the_hardware_is_rejected() {
    check(
        &[
            "rtl",
            "emit",
            "../../protocols/msi.coh",
            "--out",
            "/nowhere",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: no RTL for this home: it assumes zero-latency memory
              --> ../../protocols/msi.coh:78:6
               |
            78 | home directory {
               |      ^^^^^^^^^
               |
               = help: write the home as a policy; constructed homes support memory latency
        "#]],
    );
    check(
        &[
            "rtl",
            "emit",
            "../../protocols/msi-policy.coh",
            "--out",
            "/nowhere",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: no RTL for this home: the directory cannot evict: no local operation takes a line from every remote without a lock
              --> ../../protocols/msi-policy.coh:61:1
               |
            61 | home {
               | ^^^^
               |
               = help: give the home `local clean_invalidate { ensure all == I }`
        "#]],
    );
}

#[test]
fn names_reserved_by_the_package_are_rejected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let eci = fs::read_to_string("../../protocols/eci.coh").expect("the file can be read");
    let emit = |original: &str, replacement: &str| {
        let file = folder.path().join("other.coh");
        fs::write(&file, eci.replace(original, replacement)).expect("the file can be written");
        let mut command = cohkit(["rtl", "emit"]);
        let output = command.arg(&file).args(["--out", "/nowhere"]).output();
        let printed = crate::transcript(&output.expect("the command starts"));
        printed.replace(&folder.path().display().to_string(), "HERE")
    };
    expect![[r#"
        exit code 2
        --- stderr
        error: no RTL for this home: the generated package uses the name `event_e` itself
          --> HERE/other.coh:20:13
           |
        20 |             event_e, WriteLine (store), WritePartial (partial store)
           |             ^^^^^^^
           |
           = help: rename it in the specification
    "#]]
    .assert_eq(&emit("ReadOnce", "event_e"));
    expect![[r#"
        exit code 2
        --- stderr
        error: no RTL for this home: the package of the protocol `registers` would be named `registers_pkg`, the name of a package of the hardware
          --> HERE/other.coh:80:1
           |
        80 | home {
           | ^^^^
           |
           = help: give the protocol another name
    "#]]
    .assert_eq(&emit("protocol eci", "protocol registers"));
}

#[test]
fn rtl_emit_reports_an_unwritable_folder() {
    check(
        &[
            "rtl",
            "emit",
            "tests/command/tiny.coh",
            "--out",
            "/dev/null/here",
        ],
        expect![[r#"
            exit code 4
            --- stderr
            error: /dev/null/here: a file exists where a folder is needed; nothing was written
              help: name another place
        "#]],
    );
}

/// Each agent has a module, and the printed list builds in Verilator without a warning.
#[test]
fn emitted_step_functions_of_agents_are_accepted_by_verilator() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let emit = |arguments: &[&str]| {
        let mut command = cohkit(["rtl", "emit", "../../protocols/ccix.coh", "--out"]);
        let output = command
            .arg(folder.path())
            .args(arguments)
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    // `host` and `device` have the same rows.
    expect![[r#"
        home: 9 states, 15 events, 91 rows: ccix_home_step.sv
        host: 14 states, 13 events, 38 rows: ccix_host_step.sv
        types and constants: ccix_agents_pkg.sv; all files: ccix_agents.f
    "#]]
    .assert_eq(&emit(&["--agent", "home,host", "--agent", "device"]));
    let json = emit(&["--agent", "device", "--remotes", "1,3", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("the text is JSON");
    assert_eq!(
        value["remotes"],
        serde_json::json!({"host": 1, "device": 3})
    );
    assert_eq!(value["agents"][0]["module"], "ccix_host_step");
    if !require("verilator") {
        return;
    }
    let output = std::process::Command::new("verilator")
        .args([
            "--lint-only",
            "-Wall",
            "-F",
            "ccix_agents.f",
            "--top-module",
            "ccix_host_step",
        ])
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn agents_without_a_step_function_are_rejected() {
    let emit = |file: &str, arguments: &[&str]| {
        let mut command = cohkit(["rtl", "emit", file, "--out", "/nowhere"]);
        let output = command.args(arguments).output();
        crate::transcript(&output.expect("the command starts"))
    };
    expect![[r#"
        exit code 2
        --- stderr
        error: no agent is named `cash`
          help: did you mean `cache`? the agents are `home`, `cache`
    "#]]
    .assert_eq(&emit("../../protocols/msi.coh", &["--agent", "cash"]));
    expect![[r#"
        exit code 2
        --- stderr
        error: `--remotes` has 1 number, but the file has 2 kinds
          help: give one number for each of host, device: `--remotes 1,1`
    "#]]
    .assert_eq(&emit(
        "../../protocols/ccix.coh",
        &["--agent", "home", "--remotes", "3"],
    ));
    expect![[r#"
        exit code 2
        --- stderr
        error: no step function: a system has 1 to 16 caching agents
          --> ../../protocols/msi.coh:29:8
           |
        29 | remote cache {
           |        ^^^^^
    "#]]
    .assert_eq(&emit(
        "../../protocols/msi.coh",
        &["--agent", "home", "--remotes", "17"],
    ));
}

/// The system of a protocol is complete: Verilator reads its file list, and the command in its header prints it again.
#[test]
fn emitted_systems_are_complete() {
    if !require("verilator") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let emit = |protocol: &str| {
        let mut command = cohkit([
            "rtl", "emit", protocol, "--system", "2", "--json", "-o", ".",
        ]);
        let output = command.current_dir(folder.path()).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_str::<serde_json::Value>(&text(&output.stdout)).expect("the text is JSON")
    };
    let value = emit("msi");
    assert_eq!(
        (&value["caches"], &value["module"]),
        (&2.into(), &"msi_system".into())
    );
    let list = value["run"]["file_list"].as_str().expect("a JSON string");
    let mut command = std::process::Command::new("verilator");
    command.args([
        "--lint-only",
        "-Wall",
        "--top-module",
        "msi_system",
        "-F",
        list,
    ]);
    let output = command.current_dir(folder.path()).output();
    let output = output.expect("Verilator starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let top = folder.path().join("msi_system.sv");
    let printed = fs::read_to_string(&top).expect("the file can be read");
    assert!(
        printed.contains("`cohkit rtl emit msi --system 2 --out .`"),
        "{printed}"
    );
}

/// A construct that the units cannot serve is rejected with its place, and so is a wrong number of kinds.
#[test]
fn systems_without_units_are_rejected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("a path of characters");
    let refuse = |protocol: &str| {
        let output = cohkit(["rtl", "emit", protocol, "--system", "2", "--out", out]).output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    let message = refuse("token");
    assert!(
        message.contains("no system: `FwdData` may bring a line that the cache has not requested")
            && message.contains("token:95:3"),
        "{message}"
    );
    let message = refuse("ccix");
    assert!(
        message.contains("`--system` has 1 number, but the file has 2 kinds"),
        "{message}"
    );
}

/// A set-associative directory is printed with its parameters and the command that prints it again. A home without a
/// recall is rejected with the operation that it lacks.
#[test]
fn directories_with_sets_need_a_recall() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("a path of characters");
    let emit = |protocol: &str| {
        let options = [
            "--system",
            "2",
            "--directory",
            "set-associative",
            "--out",
            out,
        ];
        let output = cohkit(["rtl", "emit", protocol]).args(options).output();
        output.expect("the command starts")
    };
    let output = emit("../../docs/first-protocol/8-goals.coh");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let top = folder.path().join("first_system.sv");
    let printed = fs::read_to_string(top).expect("the file can be read");
    assert!(
        printed.contains("--system 2 --directory set-associative --out"),
        "{printed}"
    );
    assert!(
        printed.contains("parameter int unsigned DirectoryWays = 2 * Ways"),
        "{printed}"
    );
    let output = emit("msi");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    let message = text(&output.stderr);
    assert!(
        message.contains("no local operation takes a line from every remote without a lock")
            && message.contains("local clean_invalidate { ensure all == I }"),
        "{message}"
    );
}

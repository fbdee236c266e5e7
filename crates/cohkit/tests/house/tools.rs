//! Missing tools cause failures: of tests, and of `tools/setup` in continuous integration. Tests of this rule itself.

use crate::{files, require, root};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates a folder of shell scripts.
fn programs(texts: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in texts {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("it can be written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("own file");
    }
    folder
}

#[test]
fn missing_tool_fails_a_test_unless_waived() {
    let nowhere = OsStr::new("/nonexistent");
    let all = [
        "rumur",
        "verilator",
        "qemu",
        "riscv-gcc",
        "yosys",
        "z3",
        "mounts",
    ];
    for name in all {
        let what = require::is_there(name, nowhere, "").expect_err(name);
        assert!(what.contains("this test needs "), "{what}");
        assert!(what.contains(&format!("COHKIT_WITHOUT={name}")), "{what}");
        assert_eq!(require::is_there(name, nowhere, name), Ok(false));
        // Only the tool's own name disables its tests.
        let other = if name == "z3" { "yosys" } else { "z3" };
        assert!(require::is_there(name, nowhere, other).is_err());
    }
    assert_eq!(require::is_there("z3", nowhere, "rumur,z3"), Ok(false));
    let what = require::is_there("z3", nowhere, "z4").expect_err("there is no z4");
    assert!(
        what.contains("names `z4`") && what.contains("verilator"),
        "{what}"
    );
    // Verilator builds nothing without a C++ compiler.
    let half = programs(&[("verilator", ""), ("make", "")]);
    assert!(require::is_there("verilator", half.path().as_os_str(), "").is_err());
    let whole = programs(&[("verilator", ""), ("make", ""), ("c++", "")]);
    let there = require::is_there("verilator", whole.path().as_os_str(), "");
    assert_eq!(there, Ok(true));
}

#[test]
#[should_panic(expected = "COHKIT_WITHOUT=cocotb does without it")]
fn missing_tool_message_explains_the_waiver() {
    panic!("{}", require::missing("cocotb"));
}

/// No test decides by itself that a tool may be missing.
#[test]
fn no_test_passes_over_a_missing_tool_in_silence() {
    let mut found = Vec::new();
    files(&root(), &mut found);
    let is_test = |path: &&PathBuf| {
        let path = path.strip_prefix(root()).unwrap_or(path);
        let here = Path::new("crates/cohkit/tests/house/tools.rs");
        let of = |ends: &str| path.extension().is_some_and(|extension| extension == ends);
        let tests = path.iter().any(|part| part == "tests");
        tests && (of("rs") || of("py")) && path != here
    };
    let mut looked = 0;
    for path in found.iter().filter(is_test) {
        let text = std::fs::read_to_string(path).expect("it can be read");
        for word in [
            "skipped: ",
            "SKIPPED: ",
            "importorskip",
            "code() == Some(4) {",
        ] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        looked += 1;
    }
    assert!(looked > 50, "only {looked}");
}

#[test]
fn continuous_integration_leaves_nothing_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join(".ci")).expect("own folder");
    let copy = folder.path().join(".ci/run");
    std::fs::copy(root().join(".ci/run"), &copy).expect("it can be copied");
    let fake = programs(&[(
        "make",
        "echo \"$1, CI=$CI, without '${COHKIT_WITHOUT-nothing}'\"",
    )]);
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(&copy)
        .env("PATH", format!("{}:{path}", fake.path().display()))
        .env("COHKIT_WITHOUT", "verilator")
        .env("CI", "false")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "test, CI=true, without 'nothing'\n");
}

/// Set-up on a machine that has only cargo, and where nothing can be installed. It ends at the latest at its search for
/// Python, so it changes nothing here.
#[test]
fn failed_installation_ends_setup_in_ci() {
    let setup = |ci: &str| {
        let bare = programs(&[("cargo", ""), ("id", "echo 1")]);
        for tool in ["bash", "dirname", "env"] {
            let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
                .map(|folder| folder.join(tool))
                .find(|file| file.is_file())
                .expect("there are these");
            std::os::unix::fs::symlink(found, bare.path().join(tool)).expect("own folder");
        }
        let output = Command::new("bash")
            .arg(root().join("tools/setup"))
            .env_clear()
            .env("PATH", bare.path())
            .env("CI", ci)
            .output()
            .expect("bash starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{said}");
        said
    };
    let here = setup("");
    for what in ["missing: rumur", "missing: Verilator", "missing: Python"] {
        assert!(here.contains(what), "{here}");
    }
    assert!(here.contains("COHKIT_WITHOUT="), "{here}");
    let there = setup("true");
    assert!(there.contains("missing: rumur"), "{there}");
    assert!(!there.contains("missing: Verilator"), "{there}");
}

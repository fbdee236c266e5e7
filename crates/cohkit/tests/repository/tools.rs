//! Missing tools cause failures: of tests, and of `tools/setup_tests` in continuous integration. Tests of this rule
//! itself.

use crate::{files, require, root};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates a folder of shell scripts.
fn programs(texts: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in texts {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("the file can be written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("permissions can be set");
    }
    folder
}

#[test]
fn missing_tool_fails_a_test_unless_waived() {
    let missing_folder = OsStr::new("/nonexistent");
    let tools = [
        "rumur",
        "verilator",
        "qemu",
        "riscv-gcc",
        "yosys",
        "z3",
        "mounts",
        "cmake",
        "linux",
    ];
    for name in tools {
        let message = require::is_available(name, missing_folder, "").expect_err(name);
        assert!(message.contains("this test needs "), "{message}");
        assert!(
            message.contains(&format!("COHKIT_WITHOUT={name}")),
            "{message}"
        );
        assert_eq!(require::is_available(name, missing_folder, name), Ok(false));
        // Only the tool's own name disables its tests.
        let other_tool = if name == "z3" { "yosys" } else { "z3" };
        assert!(require::is_available(name, missing_folder, other_tool).is_err());
    }
    assert_eq!(
        require::is_available("z3", missing_folder, "rumur,z3"),
        Ok(false)
    );
    let message = require::is_available("z3", missing_folder, "z4").expect_err("there is no z4");
    assert!(
        message.contains("names `z4`") && message.contains("verilator"),
        "{message}"
    );
    // Verilator builds nothing without a C++ compiler.
    let incomplete = programs(&[("verilator", ""), ("make", "")]);
    assert!(require::is_available("verilator", incomplete.path().as_os_str(), "").is_err());
    let complete = programs(&[("verilator", ""), ("make", ""), ("c++", "")]);
    let result = require::is_available("verilator", complete.path().as_os_str(), "");
    assert_eq!(result, Ok(true));
}

#[test]
#[should_panic(expected = "COHKIT_WITHOUT=cocotb does without it")]
fn missing_tool_message_explains_the_waiver() {
    panic!("{}", require::missing("cocotb"));
}

/// No test decides by itself that a tool may be missing.
#[test]
fn missing_tools_are_never_ignored_silently() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    let is_test = |path: &&PathBuf| {
        let path = path.strip_prefix(root()).unwrap_or(path);
        let this_file = Path::new("crates/cohkit/tests/repository/tools.rs");
        let has_extension = |suffix: &str| {
            path.extension()
                .is_some_and(|extension| extension == suffix)
        };
        let tests = path.iter().any(|part| part == "tests");
        tests && (has_extension("rs") || has_extension("py")) && path != this_file
    };
    let mut file_count = 0;
    for path in paths.iter().filter(is_test) {
        let text = std::fs::read_to_string(path).expect("the file can be read");
        for word in [
            "skipped: ",
            "SKIPPED: ",
            "importorskip",
            "code() == Some(4) {",
        ] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        file_count += 1;
    }
    assert!(file_count > 50, "only {file_count}");
}

#[test]
fn continuous_integration_leaves_nothing_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join(".ci")).expect("the folder can be created");
    let copy = folder.path().join(".ci/run");
    std::fs::copy(root().join(".ci/run"), &copy).expect("the file can be copied");
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
        .expect("the command starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "test, CI=true, without 'nothing'\n");
}

/// Set-up on a machine that has only cargo, and where nothing can be installed. It ends at the latest at its search for
/// Python, so it changes nothing here.
#[test]
fn failed_installation_ends_setup_in_ci() {
    let setup = |ci: &str| {
        let minimal_path = programs(&[("cargo", ""), ("id", "echo 1")]);
        for tool in ["bash", "dirname", "env"] {
            let program = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
                .map(|folder| folder.join(tool))
                .find(|file| file.is_file())
                .expect("one of the files exists");
            std::os::unix::fs::symlink(program, minimal_path.path().join(tool))
                .expect("the link can be created");
        }
        let output = Command::new("bash")
            .arg(root().join("tools/setup_tests"))
            .env_clear()
            .env("PATH", minimal_path.path())
            .env("CI", ci)
            .output()
            .expect("bash starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        stderr
    };
    let local_stderr = setup("");
    for message in ["missing: rumur", "missing: Verilator", "missing: Python"] {
        assert!(local_stderr.contains(message), "{local_stderr}");
    }
    assert!(local_stderr.contains("COHKIT_WITHOUT="), "{local_stderr}");
    let ci_stderr = setup("true");
    assert!(ci_stderr.contains("missing: rumur"), "{ci_stderr}");
    assert!(!ci_stderr.contains("missing: Verilator"), "{ci_stderr}");
}

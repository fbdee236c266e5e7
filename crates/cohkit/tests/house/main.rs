//! The rules of the house that no compiler checks.

mod documents;
#[cfg(unix)]
mod tools;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies two folders below the root")
        .to_path_buf()
}

/// Where each crate stands. A crate may depend only on crates of lower floors.
const FLOORS: &[(&str, u32)] = &[
    ("cohkit-base", 0),
    ("cohkit-protocol", 1),
    ("cohkit-chart", 1),
    ("cohkit-engine", 1),
    ("cohkit-system", 2),
    ("cohkit-application", 2),
    ("cohkit-murphi", 2),
    ("cohkit-litmus", 3),
    ("cohkit-check", 3),
    ("cohkit-play", 3),
    ("cohkit-sim", 3),
    ("cohkit-rtl", 4),
    ("cohkit", 5),
    ("cohkit-python", 6),
];

#[test]
fn crates_stand_on_lower_floors() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let floor = |name: &str| {
        FLOORS
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .map(|&(_, floor)| floor)
    };
    let packages = metadata["packages"].as_array().expect("a list");
    assert!(!packages.is_empty());
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let own = floor(name).unwrap_or_else(|| panic!("give the crate {name} a floor in FLOORS"));
        for dependency in package["dependencies"].as_array().expect("a list") {
            // Tests may look around; what ships may only look down.
            if dependency["kind"] == "dev" {
                continue;
            }
            let below = dependency["name"].as_str().expect("a name");
            if let Some(floor) = floor(below) {
                assert!(floor < own, "{name} must not depend on {below}");
            }
        }
    }
}

/// All files below a folder in a fixed order, without what `make` produces.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the entry can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let made = [
                ".git",
                ".hypothesis",
                ".mypy_cache",
                ".pytest_cache",
                ".ruff_cache",
                ".venv",
                "__pycache__",
                "out",
                "target",
            ];
            if !made.contains(&name.as_ref()) {
                files(&path, found);
            }
        } else if name != ".git" {
            found.push(path);
        }
    }
}

#[test]
fn no_file_mentions_a_machine() {
    // Written in halves, so that this file does not find itself.
    let forbidden = [
        ("/ho", "me/"),
        ("/ro", "ot/"),
        ("/Use", "rs/"),
        ("/wo", "rk/"),
    ]
    .map(|(first, second)| format!("{first}{second}"));
    let mut all = Vec::new();
    files(&root(), &mut all);
    assert!(all.iter().any(|path| path.ends_with("Cargo.toml")));
    for path in all {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for word in &forbidden {
                assert!(
                    !line.contains(word.as_str()),
                    "{}:{}: a path of a machine: {line}",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

//! Rules of the repository that no compiler checks.

mod documents;
mod layers;
mod structure;
use cohkit_testing::require;
#[cfg(unix)]
mod tools;

use std::path::{Path, PathBuf};

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies two folders below the root")
        .to_path_buf()
}

/// Collects all files below a folder in a fixed order, without those that `make` produces.
fn files(folder: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the entry can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let generated = [
                ".git",
                ".hypothesis",
                ".mypy_cache",
                ".pytest_cache",
                ".ruff_cache",
                ".venv",
                "__pycache__",
                "dist",
                "node_modules",
                "out",
                "target",
            ];
            if !generated.contains(&name.as_ref()) {
                files(&path, paths);
            }
        } else if name != ".git" {
            paths.push(path);
        }
    }
}

#[test]
fn no_file_mentions_a_developer_machine() {
    // Split in halves, so that this file does not match itself.
    let forbidden = [
        ("/ho", "me/"),
        ("/ro", "ot/"),
        ("/Use", "rs/"),
        ("/wo", "rk/"),
    ]
    .map(|(first, second)| format!("{first}{second}"));
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    assert!(paths.iter().any(|path| path.ends_with("Cargo.toml")));
    for path in paths {
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

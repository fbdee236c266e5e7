//! Tests of `cohkit library`, which writes the library for programs on near-memory cores.

use crate::require::require;
use crate::{cohkit, text, transcript};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `cohkit library` for a folder.
fn write_library(folder: &Path) -> Output {
    let mut command = cohkit(["library"]);
    command.arg(folder).output().expect("the command starts")
}

/// Returns the paths of the files in the subfolder `name` of `folder`, with their subfolders, relative to `folder`.
fn files(folder: &Path, name: &str) -> io::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(folder.join(name))? {
        let entry = entry?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => paths.extend(files(folder, &name)?),
            false => _ = paths.insert(name),
        }
    }
    Ok(paths)
}

#[test]
fn written_library_matches_the_checkout() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("new/place");
    let output = transcript(&write_library(&target));
    assert!(output.starts_with("exit code 0\n"), "{output}");
    for subfolder in ["nearmemory", "docs/riscv/accumulator", "docs/riscv/arrays"] {
        let shipped = files(&root(), subfolder).expect("the files can be read");
        assert!(shipped.len() > 1, "{shipped:?}");
        assert_eq!(
            files(&target, subfolder).expect("the files can be read"),
            shipped
        );
        for name in shipped {
            let [shipped, written] =
                [root(), target.clone()].map(|folder| fs::read(folder.join(&name)));
            assert_eq!(
                shipped.expect("the file is in both folders"),
                written.expect("the file is in both folders"),
                "{name}"
            );
        }
    }
    // A second call changes nothing.
    assert_eq!(transcript(&write_library(&target)), output);
    // With a file that the user has changed, a call writes nothing, not even a missing file.
    let changed_file = target.join("nearmemory/host.h");
    fs::write(&changed_file, "// mine").expect("the file can be written");
    let deleted_file = target.join("nearmemory/channel.h");
    fs::remove_file(&deleted_file).expect("the file can be removed");
    assert_eq!(
        transcript(&write_library(&target)),
        format!(
            "exit code 2\n--- stderr\nerror: {}: already exists, and differs from the shipped file\n  help: remove it, or choose another folder\n",
            changed_file.display()
        )
    );
    assert_eq!(
        fs::read(changed_file).expect("the file can be read"),
        b"// mine"
    );
    assert!(!deleted_file.exists());
    // A file where the folder should be is an I/O error.
    let file = folder.path().join("file");
    fs::write(&file, "").expect("the file can be written");
    let output = transcript(&write_library(&file));
    assert!(
        output.starts_with("exit code 4\n--- stderr\nerror: "),
        "{output}"
    );
}

#[test]
fn printed_next_steps_work_in_the_written_library() {
    if !require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = write_library(folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let (_, next_steps) = stdout
        .split_once(":\n\n")
        .expect("the output lists the next steps");
    let next_steps = next_steps.replace(
        "  cohkit ",
        &format!("  '{}' ", env!("CARGO_BIN_EXE_cohkit")),
    );
    let mut command = Command::new("bash");
    let command = command
        .args(["-euc", &next_steps])
        .current_dir(folder.path());
    let output = command.output().expect("bash starts");
    assert_eq!(
        transcript(&output),
        "exit code 0\nbeside far memory: 1000 numbers\ntheir sum is 500500\nthe program has ended by itself, with 0\n"
    );
}
